//! The decoder: walks a tree of YAML, knows the path to where it stands, and collects every mistake on the way.
//!
//! A [`Cursor`] stands on one value, [`Fields`] on the entries of a mapping. Whatever cannot be read is noted and comes
//! back as `None`; the walk goes on, so that one run finds all mistakes. Serde's derive would stop at the first and lose
//! its place.

use crate::{
    mistake::{Mistake, Mistakes, Position},
    nearest::nearest,
    yaml::{self, Node, Value},
};
use std::{cell::RefCell, fmt::Display};

/// Reads `text` with `walk`: what it found, or everything that is wrong.
pub(crate) fn decode<T>(text: &str, walk: impl FnOnce(&Cursor<'_>) -> Option<T>) -> Result<T, Mistakes> {
    let root = yaml::read(text).map_err(|mistake| Mistakes::new(mistake, []))?;
    let noted = RefCell::new(Vec::new());
    let found = walk(&Cursor { node: &root, path: String::new(), noted: &noted });
    let mut noted = noted.into_inner().into_iter();
    match (noted.next(), found) {
        (None, Some(found)) => Ok(found),
        (Some(first), _) => Err(Mistakes::new(first, noted)),
        (None, None) => {
            let message = "could not be read".to_owned();
            Err(Mistakes::new(Mistake { at: root.at, path: String::new(), message }, []))
        }
    }
}

/// One value, and the path to it.
pub(crate) struct Cursor<'a> {
    node: &'a Node,
    path: String,
    noted: &'a RefCell<Vec<Mistake>>,
}

impl<'a> Cursor<'a> {
    /// Notes that this value is wrong.
    pub(crate) fn mistake(&self, message: impl Into<String>) {
        note(self.noted, self.node.at, self.path.clone(), message);
    }

    /// The entries of a mapping. `example` shows one.
    pub(crate) fn mapping(&self, example: &str) -> Option<Fields<'a>> {
        let Value::Mapping(entries) = &self.node.value else {
            self.mistake(format!(
                "must be a mapping such as `{example}`; read {}",
                describe(&self.node.value)
            ));
            return None;
        };
        let mut fields = Fields {
            at: self.node.at,
            path: self.path.clone(),
            noted: self.noted,
            entries: Vec::new(),
            asked: Vec::new(),
        };
        for (key, value) in entries {
            let (Value::Plain(name) | Value::Quoted(name)) = &key.value else {
                let message = format!("keys must be names; read {}", describe(&key.value));
                note(self.noted, key.at, self.path.clone(), message);
                continue;
            };
            match fields.entries.iter().find(|entry| entry.name == name) {
                Some(first) => {
                    let message = format!("is given twice, first on line {}", first.at.line);
                    note(self.noted, key.at, fields.path_to(name), message);
                }
                None => fields.entries.push(Entry { name, at: key.at, value }),
            }
        }
        Some(fields)
    }

    /// Text, in quotes or not. `expected` says what is wanted.
    pub(crate) fn text(&self, expected: &str) -> Option<&'a str> {
        match &self.node.value {
            Value::Plain(text) | Value::Quoted(text) => Some(text),
            other => {
                self.mistake(format!("must be {expected}; read {}", describe(other)));
                None
            }
        }
    }

    /// What `parse` makes of the text.
    pub(crate) fn parsed<T, E: Display>(
        &self,
        expected: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        self.noting(parse(self.text(expected)?))
    }

    /// A whole number, zero included.
    pub(crate) fn count(&self) -> Option<u32> {
        const EXPECTED: &str = "a whole number such as 100";
        let text = match &self.node.value {
            Value::Plain(text) => text,
            other => {
                self.mistake(format!("must be {EXPECTED}; read {}", describe(other)));
                return None;
            }
        };
        let digits = text.strip_prefix('-').unwrap_or(text);
        let message = match text.parse() {
            // A sign is no part of a count, though Rust reads one.
            Ok(count) if text.starts_with(|first: char| first.is_ascii_digit()) => return Some(count),
            _ if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                format!("must be {EXPECTED}; read {:?}", shorten(text))
            }
            _ if digits.len() < text.len() => format!("must not be negative; read {:?}", shorten(text)),
            _ => format!("must be at most {}; read {:?}", u32::MAX, shorten(text)),
        };
        self.mistake(message);
        None
    }

    /// A whole number above zero.
    pub(crate) fn positive(&self) -> Option<u32> {
        match self.count()? {
            0 => {
                self.mistake("must be greater than zero; read \"0\", expected a whole number such as 100");
                None
            }
            count => Some(count),
        }
    }

    /// A number that need not be whole.
    pub(crate) fn number(&self) -> Option<f64> {
        let expected = "a number such as 3 or 2.5";
        match &self.node.value {
            Value::Plain(text) => match text.parse() {
                Ok(number) => Some(number),
                Err(_) => {
                    self.mistake(format!("must be {expected}; read {:?}", shorten(text)));
                    None
                }
            },
            other => {
                self.mistake(format!("must be {expected}; read {}", describe(other)));
                None
            }
        }
    }

    /// One of some words.
    pub(crate) fn choice<T: Copy>(&self, choices: &[(&'static str, T)]) -> Option<T> {
        let names = listed(choices.iter().map(|(name, _)| *name));
        let word = self.text(&format!("one of {names}"))?;
        let chosen = choices.iter().find(|(name, _)| *name == word);
        if chosen.is_none() {
            let meant = did_you_mean(word, choices.iter().map(|(name, _)| *name));
            self.mistake(format!("must be one of {names}; read {:?}{meant}", shorten(word)));
        }
        chosen.map(|(_, choice)| *choice)
    }

    fn noting<T, E: Display>(&self, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.mistake(error.to_string())).ok()
    }
}

/// The entries of a mapping. What nobody asks for is unknown.
pub(crate) struct Fields<'a> {
    at: Position,
    path: String,
    noted: &'a RefCell<Vec<Mistake>>,
    entries: Vec<Entry<'a>>,
    asked: Vec<&'static str>,
}

struct Entry<'a> {
    name: &'a str,
    at: Position,
    value: &'a Node,
}

impl<'a> Fields<'a> {
    /// The value under `name`, if there is one.
    pub(crate) fn optional(&mut self, name: &'static str) -> Option<Cursor<'a>> {
        self.asked.push(name);
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        Some(Cursor { node: entry.value, path: self.path_to(name), noted: self.noted })
    }

    /// The value under `name`, which must be there. `example` shows one.
    pub(crate) fn required(&mut self, name: &'static str, example: &str) -> Option<Cursor<'a>> {
        let found = self.optional(name);
        if found.is_none() {
            note(self.noted, self.at, self.path_to(name), format!("is missing, such as `{name}: {example}`"));
        }
        found
    }

    /// Notes a mistake about the setting called `name`: at its value, or at the mapping where it has none.
    pub(crate) fn mistake(&self, name: &str, message: impl Into<String>) {
        let at = self.entries.iter().find(|entry| entry.name == name).map_or(self.at, |entry| entry.value.at);
        note(self.noted, at, self.path_to(name), message);
    }

    /// Notes a mistake about the mapping as a whole.
    pub(crate) fn mistake_here(&self, message: impl Into<String>) {
        note(self.noted, self.at, self.path.clone(), message);
    }

    /// Whether an entry is there that nobody has asked for so far.
    pub(crate) fn has_unknown(&self) -> bool {
        self.entries.iter().any(|entry| !self.asked.contains(&entry.name))
    }

    /// Notes every entry that nobody asked for.
    pub(crate) fn finish(&self) {
        for entry in self.entries.iter().filter(|entry| !self.asked.contains(&entry.name)) {
            let message = match nearest(entry.name, self.asked.iter().copied()) {
                Some(name) => format!("is not a known key; did you mean `{name}`?"),
                None => {
                    format!("is not a known key; known here: {}", listed(self.asked.iter().copied()))
                }
            };
            note(self.noted, entry.at, self.path_to(entry.name), message);
        }
    }

    fn path_to(&self, name: &str) -> String {
        // A name of several lines, or of thousands of letters, would hide the message it introduces.
        let name = shorten(name).escape_debug().to_string();
        if self.path.is_empty() { name } else { format!("{}.{name}", self.path) }
    }
}

/// Names in backquotes, with commas.
pub(crate) fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// `text`, or its beginning where it is too long for a message.
pub(crate) fn shorten(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn did_you_mean<'n>(typed: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    nearest(typed, known).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Plain(_) => "a single value",
        Value::Quoted(_) => "text in quotes",
        Value::List(_) => "a list",
        Value::Mapping(_) => "a mapping",
    }
}

fn note(noted: &RefCell<Vec<Mistake>>, at: Position, path: String, message: impl Into<String>) {
    noted.borrow_mut().push(Mistake { at, path, message: message.into() });
}
