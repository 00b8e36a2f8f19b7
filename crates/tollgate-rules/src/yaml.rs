//! YAML, read into a tree that knows where everything stands.
//!
//! Scalars stay the text they were written as: `1.50` is not yet a number, so that no digit is lost before somebody knows
//! what it is for. Keys given twice are kept twice, for the decoder to object to. What a rule file does not need is
//! refused here: aliases (a named limit is how a rule file repeats itself), tags, several documents, deep nesting.

use crate::mistake::{Mistake, Position};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle};
use std::borrow::Cow;

/// A value and where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: Position,
    pub(crate) value: Value,
}

/// What was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Nothing, `~` or `null`.
    Null,
    /// Text without quotes: a word, a number or a quantity.
    Plain(String),
    /// Text in quotes, or a block of text.
    Quoted(String),
    /// Text that took something from the environment: it reads as if without quotes, and is never shown.
    Taken {
        /// What it is now; `None` where the environment has no such name.
        value: Option<String>,
        /// What the file says.
        written: String,
    },
    List(Vec<Node>),
    Mapping(Vec<(Node, Node)>),
}

impl Node {
    /// Whether it, or something in it, came from the environment.
    pub(crate) fn is_taken(&self) -> bool {
        match &self.value {
            Value::Null | Value::Plain(_) | Value::Quoted(_) => false,
            Value::Taken { .. } => true,
            Value::List(items) => items.iter().any(Self::is_taken),
            Value::Mapping(entries) => entries.iter().any(|(key, value)| key.is_taken() || value.is_taken()),
        }
    }

    /// It as the file has it, for a path.
    pub(crate) fn written(&self) -> Cow<'_, str> {
        match &self.value {
            Value::Null => "~".into(),
            Value::Plain(text) | Value::Quoted(text) | Value::Taken { written: text, .. } => text.into(),
            Value::List(items) => {
                let items: Vec<_> = items.iter().map(Self::written).collect();
                format!("[{}]", items.join(", ")).into()
            }
            Value::Mapping(_) => "{}".into(),
        }
    }
}

/// How deep values may nest: far more than a rule needs, far less than a stack holds.
const DEEPEST: usize = 64;

/// A list or mapping whose end has not been seen.
struct Open {
    at: Position,
    kind: Kind,
    children: Vec<Node>,
}

#[derive(Clone, Copy)]
enum Kind {
    List,
    Mapping,
}

/// The one value that `text` holds.
pub(crate) fn read(text: &str) -> Result<Node, Mistake> {
    let mut open: Vec<Open> = Vec::new();
    let mut root = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event
            .map_err(|error| mistake(position(error.marker()), format!("is not YAML: {}", error.info())))?;
        let at = position(&span.start);
        let node = match event {
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, Some(_))
            | Event::MappingStart(_, Some(_)) => {
                return Err(mistake(at, "must not carry a tag such as `!!int`"));
            }
            Event::Alias(_) => {
                return Err(mistake(at, "must be written out: aliases (`*name`) are not read"));
            }
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() == DEEPEST => {
                return Err(mistake(at, format!("must not nest deeper than {DEEPEST} levels")));
            }
            Event::SequenceStart(..) => {
                open.push(Open { at, kind: Kind::List, children: Vec::new() });
                continue;
            }
            Event::MappingStart(..) => {
                open.push(Open { at, kind: Kind::Mapping, children: Vec::new() });
                continue;
            }
            Event::Scalar(text, style, _, None) => Node { at, value: scalar(text.into_owned(), style) },
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(closed) => closed.close(),
                None => continue,
            },
            Event::DocumentStart(_) if root.is_some() => {
                return Err(mistake(at, "must be one document: remove the `---`"));
            }
            _ => continue,
        };
        match open.last_mut() {
            Some(parent) => parent.children.push(node),
            None => root = Some(node),
        }
    }
    root.ok_or_else(|| mistake(Position { line: 1, column: 1 }, "is empty"))
}

impl Open {
    fn close(self) -> Node {
        let value = match self.kind {
            Kind::List => Value::List(self.children),
            Kind::Mapping => {
                let mut children = self.children.into_iter();
                let pair = || Some((children.next()?, children.next()?));
                Value::Mapping(std::iter::from_fn(pair).collect())
            }
        };
        Node { at: self.at, value }
    }
}

fn scalar(text: String, style: ScalarStyle) -> Value {
    match (style, text.as_str()) {
        (ScalarStyle::Plain, "" | "~" | "null" | "Null" | "NULL") => Value::Null,
        (ScalarStyle::Plain, _) => Value::Plain(text),
        _ => Value::Quoted(text),
    }
}

fn position(marker: &Marker) -> Position {
    Position { line: marker.line(), column: marker.col() + 1 }
}

fn mistake(at: Position, message: impl Into<String>) -> Mistake {
    Mistake { at, path: String::new(), message: message.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn every_value_knows_its_place() {
        let root = read("a:\n  - 1.50\n  - \"x\"\nb: ~").unwrap();
        let Value::Mapping(entries) = &root.value else { panic!("{root:?}") };
        assert_eq!((entries[0].0.at, entries[1].0.at), (at(1, 1), at(4, 1)));
        assert_eq!(entries[1].1.value, Value::Null);
        let Value::List(items) = &entries[0].1.value else { panic!("{root:?}") };
        assert_eq!(items[0], Node { at: at(2, 5), value: Value::Plain("1.50".into()) });
        assert_eq!(items[1], Node { at: at(3, 5), value: Value::Quoted("x".into()) });
    }

    #[test]
    fn a_key_given_twice_is_kept_twice() {
        let root = read("{ a: 1, a: 2 }").unwrap();
        assert!(matches!(root.value, Value::Mapping(entries) if entries.len() == 2));
    }

    #[test]
    fn what_a_rule_does_not_need_is_refused() {
        assert_eq!(refusal(""), "1:1: is empty");
        assert_eq!(refusal("a: &x 1\nb: *x"), "2:4: must be written out: aliases (`*name`) are not read");
        assert_eq!(refusal("a: !!int 1"), "1:4: must not carry a tag such as `!!int`");
        assert_eq!(refusal("a: 1\n---\nb: 2"), "2:1: must be one document: remove the `---`");
        assert_eq!(refusal(&"[".repeat(100)), "1:65: must not nest deeper than 64 levels");
        assert!(read(&"[".repeat(100_000)).is_err());
        assert!(read(&"- ".repeat(100_000)).is_err());
        assert!(refusal("a: [1, 2").contains("is not YAML"));
    }

    fn at(line: usize, column: usize) -> Position {
        Position { line, column }
    }
}
