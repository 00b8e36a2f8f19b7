//! YAML, read into a tree that knows where everything stands.
//!
//! Scalars stay the text they were written as: `1.50` is not yet a number, so that no digit is lost before somebody knows
//! what it is for. Keys given twice are kept twice, for the decoder to object to. What a rule file does not need is
//! refused here: aliases (a named limit is how a rule file repeats itself), tags, several documents, deep nesting. Files
//! that were written for another program may have aliases and merge keys, which are [written out](read_expanded) then.

use crate::mistake::{Mistake, Position};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle};
use std::{borrow::Cow, collections::HashMap};

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

/// Nothing, nowhere.
impl Default for Node {
    fn default() -> Self {
        Self { at: Position { source: 0, line: 1, column: 1 }, value: Value::Null }
    }
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

    /// What in it came from the environment, each value with how it was written.
    pub(crate) fn taken(&self) -> Vec<(String, String)> {
        match &self.value {
            Value::Null | Value::Plain(_) | Value::Quoted(_) | Value::Taken { value: None, .. } => Vec::new(),
            Value::Taken { value: Some(value), written } => vec![(value.clone(), written.clone())],
            Value::List(items) => items.iter().flat_map(Self::taken).collect(),
            Value::Mapping(entries) => {
                entries.iter().flat_map(|(key, value)| [key.taken(), value.taken()]).flatten().collect()
            }
        }
    }

    /// How many values it holds, and how deep they nest.
    fn extent(&self) -> (usize, usize) {
        let add = |(size, depth): (usize, usize), (more, deeper): (usize, usize)| {
            (size.saturating_add(more), depth.max(deeper + 1))
        };
        match &self.value {
            Value::List(items) => items.iter().map(Self::extent).fold((1, 0), add),
            Value::Mapping(entries) => {
                entries.iter().flat_map(|(key, value)| [key.extent(), value.extent()]).fold((1, 0), add)
            }
            _ => (1, 0),
        }
    }

    /// It and all that is in it, as read from another of the texts that are put together.
    pub(crate) fn of_source(mut self, source: usize) -> Self {
        self.at.source = source;
        match &mut self.value {
            Value::List(items) => {
                for item in items {
                    *item = std::mem::take(item).of_source(source);
                }
            }
            Value::Mapping(entries) => {
                for entry in entries {
                    let (key, value) = std::mem::take(entry);
                    *entry = (key.of_source(source), value.of_source(source));
                }
            }
            _ => {}
        }
        self
    }

    fn into_entries(self) -> Vec<(Self, Self)> {
        match self.value {
            Value::Mapping(entries) => entries,
            _ => Vec::new(),
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

/// How many values aliases may stand for: a few lines of them could otherwise fill any memory.
const MOST_EXPANDED: usize = 100_000;

/// A list or mapping whose end has not been seen.
struct Open {
    at: Position,
    kind: Kind,
    anchor: usize,
    children: Vec<Node>,
}

/// What becomes of an alias.
enum Aliases {
    Refused,
    Expanded {
        /// What was given a name, by the parser's number for it.
        known: HashMap<usize, Node>,
        /// How many values may still be written out.
        left: usize,
    },
}

#[derive(Clone, Copy)]
enum Kind {
    List,
    Mapping,
}

/// The one value that `text` holds.
pub(crate) fn read(text: &str) -> Result<Node, Mistake> {
    read_with(text, Aliases::Refused)
}

/// What the parser says, and what to do about it where that is known: it names what it met, not what was meant.
fn not_yaml(said: &str) -> String {
    let mut words = said.split(|letter: char| !letter.is_alphanumeric());
    // As a word: there are unprintable characters, too.
    let advice = if words.any(|word| matches!(word, "tab" | "tabs")) {
        "; please indent with spaces"
    } else if said == "mapping values are not allowed in this context" {
        "; a text with `: ` in it needs quotes, and a key must stand as deep as its neighbours"
    } else if said.contains("quoted scalar") && !said.contains("escape") {
        "; is its closing quote missing?"
    } else if said.contains("did not find expected ','") {
        "; a bracket is not closed, or a comma is missing"
    } else {
        ""
    };
    format!("is not YAML: {said}{advice}")
}

/// The same, with aliases and merge keys (`<<`) written out.
pub(crate) fn read_expanded(text: &str) -> Result<Node, Mistake> {
    read_with(text, Aliases::Expanded { known: HashMap::new(), left: MOST_EXPANDED })
}

fn read_with(text: &str, mut aliases: Aliases) -> Result<Node, Mistake> {
    let mut open: Vec<Open> = Vec::new();
    let mut root = None;
    for event in Parser::new_from_str(text) {
        let (event, span) =
            event.map_err(|error| mistake(position(error.marker()), not_yaml(error.info())))?;
        let at = position(&span.start);
        let node = match event {
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, Some(_))
            | Event::MappingStart(_, Some(_)) => {
                return Err(mistake(at, "must not carry a tag such as `!!int`"));
            }
            Event::Alias(anchor) => aliases.written_out(anchor, at)?,
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() == DEEPEST => {
                return Err(mistake(at, format!("must not nest deeper than {DEEPEST} levels")));
            }
            Event::SequenceStart(anchor, _) => {
                open.push(Open { at, kind: Kind::List, anchor, children: Vec::new() });
                continue;
            }
            Event::MappingStart(anchor, _) => {
                open.push(Open { at, kind: Kind::Mapping, anchor, children: Vec::new() });
                continue;
            }
            Event::Scalar(text, style, anchor, None) => {
                let node = Node { at, value: scalar(text.into_owned(), style) };
                aliases.remember(anchor, &node);
                node
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(closed) => {
                    let anchor = closed.anchor;
                    let node = aliases.merged(closed.close());
                    aliases.remember(anchor, &node);
                    node
                }
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
    root.ok_or_else(|| mistake(Position { source: 0, line: 1, column: 1 }, "is empty"))
}

impl Aliases {
    /// Keeps what has a name. The parser numbers names from 1 on.
    fn remember(&mut self, anchor: usize, node: &Node) {
        if let Self::Expanded { known, .. } = self
            && anchor > 0
        {
            known.insert(anchor, node.clone());
        }
    }

    /// What an alias stands for.
    fn written_out(&mut self, anchor: usize, at: Position) -> Result<Node, Mistake> {
        let Self::Expanded { known, left } = self else {
            return Err(mistake(at, "is not supported: write the value out instead of an alias (`*name`)"));
        };
        let Some(node) = known.get(&anchor) else {
            return Err(mistake(at, "is an alias of what it stands in, which has no end"));
        };
        let (size, depth) = node.extent();
        *left = left.checked_sub(size).filter(|_| depth < DEEPEST).ok_or_else(|| {
            mistake(at, format!("makes the file too large: aliases may stand for {MOST_EXPANDED} values"))
        })?;
        Ok(Node { at, value: node.value.clone() })
    }

    /// A mapping with what its merge key names, where that is read: what it says itself comes first.
    fn merged(&self, node: Node) -> Node {
        let is_merge = |key: &Node| matches!(&key.value, Value::Plain(name) if name == "<<");
        match node.value {
            Value::Mapping(entries)
                if matches!(self, Self::Expanded { .. }) && entries.iter().any(|(key, _)| is_merge(key)) =>
            {
                let (merges, mut own): (Vec<_>, Vec<_>) =
                    entries.into_iter().partition(|(key, _)| is_merge(key));
                for (_, merge) in merges {
                    let from = match merge.value {
                        Value::List(items) => items,
                        _ => vec![merge],
                    };
                    for (key, value) in from.into_iter().flat_map(Node::into_entries) {
                        if own.iter().all(|(known, _)| known.value != key.value) {
                            own.push((key, value));
                        }
                    }
                }
                Node { at: node.at, value: Value::Mapping(own) }
            }
            value => Node { at: node.at, value },
        }
    }
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
    Position { source: 0, line: marker.line(), column: marker.col() + 1 }
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
        assert_eq!(
            refusal("a: &x 1\nb: *x"),
            "2:4: is not supported: write the value out instead of an alias (`*name`)"
        );
        assert_eq!(refusal("a: !!int 1"), "1:4: must not carry a tag such as `!!int`");
        assert_eq!(refusal("a: 1\n---\nb: 2"), "2:1: must be one document: remove the `---`");
        assert_eq!(refusal(&"[".repeat(100)), "1:65: must not nest deeper than 64 levels");
        assert!(read(&"[".repeat(100_000)).is_err());
        assert!(read(&"- ".repeat(100_000)).is_err());
        assert!(refusal("a: [1, 2").contains("is not YAML"));
    }

    #[test]
    fn the_usual_slips_are_told_with_what_to_do() {
        for (text, advice) in [
            ("a:\n\t- b", "please indent with spaces"),
            ("a: b: c", "needs quotes"),
            ("a: \"b\nc: d\n", "closing quote"),
            ("a: { b: 1", "a bracket is not closed"),
        ] {
            let told = refusal(text);
            assert!(told.contains("is not YAML") && told.contains(advice), "{text:?}: {told}");
        }
    }

    #[test]
    fn aliases_are_written_out_where_that_is_asked_for() {
        let root = read_expanded("a: &x { p: 1, q: 2 }\nb: *x\nc: { <<: *x, q: 3 }").unwrap();
        let Value::Mapping(entries) = &root.value else { panic!("{root:?}") };
        assert_eq!(entries[0].1.value, entries[1].1.value);
        let Value::Mapping(merged) = &entries[2].1.value else { panic!("{root:?}") };
        let pairs: Vec<_> = merged.iter().map(|(key, value)| (key.written(), value.written())).collect();
        assert_eq!(pairs, [("q".into(), "3".into()), ("p".into(), "1".into())]);
    }

    #[test]
    fn aliases_of_aliases_do_not_fill_the_memory() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..40 {
            let before = format!("*a{}", level - 1);
            text.push_str(&format!("a{level}: &a{level} [{}]\n", vec![before; 10].join(", ")));
        }
        let error = read_expanded(&text).unwrap_err().to_string();
        assert!(error.contains("makes the file too large"), "{error}");
        assert!(read_expanded("a: &a [*a]").is_err());
    }

    fn at(line: usize, column: usize) -> Position {
        Position { source: 0, line, column }
    }
}
