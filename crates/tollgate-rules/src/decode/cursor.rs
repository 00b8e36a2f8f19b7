//! One value, and the path to it.

use super::{Fields, Message, Noted, did_you_mean, listed, note, path_to, shorten};
use crate::{
    mistake::Position,
    schema::Shape,
    yaml::{Node, Value},
};
use std::{borrow::Cow, fmt::Display};

/// One value, and the path to it.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    node: &'a Node,
    path: String,
    noted: &'a Noted,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(node: &'a Node, path: String, noted: &'a Noted) -> Self {
        Self { node, path, noted }
    }

    /// The same place, holding another value.
    pub(crate) fn holding<'b>(&self, node: &'b Node, noted: &'b Noted) -> Cursor<'b>
    where
        'a: 'b,
    {
        Cursor { node, path: self.path.clone(), noted }
    }

    /// What stands here.
    pub(crate) const fn node(&self) -> &'a Node {
        self.node
    }

    /// Where mistakes are noted.
    pub(crate) const fn noted(&self) -> &'a Noted {
        self.noted
    }

    /// Where it begins.
    pub(crate) const fn at(&self) -> Position {
        self.node.at
    }

    /// The path to it, such as `routes[0].name`.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Notes that this value is wrong.
    pub(crate) fn mistake(&self, message: impl Into<Message>) {
        let message = match (message.into(), &self.node.value) {
            (Cow::Owned(_), Value::Taken { written, .. }) => format!(
                "is not what is wanted here; it comes from the environment as `{}`, and is not shown",
                shorten(written)
            ),
            (message, _) => message.into_owned(),
        };
        self.mistake_without_values(message);
    }

    /// Notes a mistake in words that hold nobody's value.
    pub(crate) fn mistake_without_values(&self, message: impl Into<String>) {
        note(self.noted, self.node.at, self.path.clone(), message);
    }

    /// Whether it is a mapping.
    pub(crate) const fn is_mapping(&self) -> bool {
        matches!(self.node.value, Value::Mapping(_))
    }

    /// Whether something in it came from the environment.
    pub(crate) fn is_taken(&self) -> bool {
        self.node.is_taken()
    }

    /// The entries of a mapping of that shape.
    pub(crate) fn mapping(&self, shape: &'static Shape) -> Option<Fields<'a>> {
        let entries = self.pairs(shape.example)?;
        Some(Fields::new(self, entries, shape))
    }

    /// The entries of a mapping whose keys are names that the file chose, each with a cursor on the name. `example` shows one.
    pub(crate) fn named(&self, example: &str) -> Option<Vec<(Self, Self)>> {
        let entries = self.pairs(example)?.iter().map(|(key, value)| self.entry(key, value));
        let is_merge = |key: &Self| matches!(&key.node.value, Value::Plain(name) if name == "<<");
        Some(entries.filter(|(key, _)| !is_merge(key) || key.refuse_merge()).collect())
    }

    /// Notes that a merge key is not read; always `false`.
    fn refuse_merge(&self) -> bool {
        self.mistake("is not supported: write the keys out instead of a merge key (`<<`)");
        false
    }

    fn pairs(&self, example: &str) -> Option<&'a [(Node, Node)]> {
        match &self.node.value {
            Value::Mapping(entries) => Some(entries),
            other => self.instead_of(&format!("a mapping such as `{example}`"), other),
        }
    }

    /// Cursors on a key and on its value.
    fn entry(&self, key: &'a Node, value: &'a Node) -> (Self, Self) {
        let path = path_to(&self.path, &key.written());
        (Self::new(key, path.clone(), self.noted), Self::new(value, path, self.noted))
    }

    /// The items of a list. `example` shows one.
    pub(crate) fn list(&self, example: &str) -> Option<Vec<Self>> {
        match &self.node.value {
            Value::List(items) => Some(self.items(items)),
            other => self.instead_of(&format!("a list such as `{example}`"), other),
        }
    }

    /// The items of a list, or the one value there is.
    pub(crate) fn one_or_list(&self) -> Vec<Self> {
        match &self.node.value {
            Value::List(items) => self.items(items),
            _ => vec![self.clone()],
        }
    }

    fn items(&self, items: &'a [Node]) -> Vec<Self> {
        let item = |(index, node)| Self::new(node, format!("{}[{index}]", self.path), self.noted);
        items.iter().enumerate().map(item).collect()
    }

    /// Text, in quotes or not. `expected` says what is wanted.
    pub(crate) fn text(&self, expected: &str) -> Option<&'a str> {
        match &self.node.value {
            Value::Plain(text) | Value::Quoted(text) | Value::Taken { value: Some(text), .. } => Some(text),
            other => self.instead_of(expected, other),
        }
    }

    /// Text that is not in quotes, as numbers are; or that came from the environment, where quotes may be needed.
    fn plain(&self, expected: &str) -> Option<&'a str> {
        match &self.node.value {
            Value::Plain(text) | Value::Taken { value: Some(text), .. } => Some(text),
            other => self.instead_of(expected, other),
        }
    }

    /// What `parse` makes of the text.
    pub(crate) fn parsed<T, E: Display>(
        &self,
        expected: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        match parse(self.text(expected)?) {
            Ok(parsed) => Some(parsed),
            Err(error) => self.refused(expected, error.to_string()),
        }
    }

    /// A whole number, zero included.
    pub(crate) fn count(&self) -> Option<u32> {
        const EXPECTED: &str = "a whole number such as 100";
        let text = self.plain(EXPECTED)?;
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
        self.refused(EXPECTED, message)
    }

    /// A whole number above zero.
    pub(crate) fn positive(&self) -> Option<u32> {
        const MESSAGE: &str = "must be greater than zero; read \"0\", expected a whole number such as 100";
        match self.count()? {
            0 => self.refused("a whole number such as 100", MESSAGE.to_owned()),
            count => Some(count),
        }
    }

    /// A number that need not be whole.
    pub(crate) fn number(&self) -> Option<f64> {
        const EXPECTED: &str = "a number such as 3 or 2.5";
        let text = self.plain(EXPECTED)?;
        match text.parse() {
            Ok(number) => Some(number),
            Err(_) => self.refused(EXPECTED, format!("must be {EXPECTED}; read {:?}", shorten(text))),
        }
    }

    /// `true` or `false`.
    pub(crate) fn switch(&self) -> Option<bool> {
        const EXPECTED: &str = "`true` or `false`";
        match self.plain(EXPECTED)? {
            "true" => Some(true),
            "false" => Some(false),
            other => self.refused(EXPECTED, format!("must be {EXPECTED}; read {:?}", shorten(other))),
        }
    }

    /// One of some words.
    pub(crate) fn choice<T: Copy>(&self, choices: &[(&'static str, T)]) -> Option<T> {
        let names = listed(choices.iter().map(|(name, _)| *name));
        let expected = format!("one of {names}");
        let word = self.text(&expected)?;
        if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == word) {
            return Some(*choice);
        }
        let meant = did_you_mean(word, choices.iter().map(|(name, _)| *name));
        self.refused(&expected, format!("must be {expected}; read {:?}{meant}", shorten(word)))
    }

    /// Notes that the text is not what was expected. A message of a value from the environment says only what was.
    fn refused<T>(&self, expected: &str, message: String) -> Option<T> {
        match &self.node.value {
            Value::Taken { written, .. } => self.mistake_without_values(format!(
                "must be {expected}; what the environment has for `{}` is not, and is not shown",
                shorten(written)
            )),
            _ => self.mistake_without_values(message),
        }
        None
    }

    /// Notes that a value of another kind stands here.
    fn instead_of<T>(&self, expected: &str, found: &Value) -> Option<T> {
        let found = match found {
            Value::Null => "nothing",
            Value::Plain(_) => "a single value",
            Value::Quoted(_) => "text in quotes",
            Value::List(_) => "a list",
            Value::Mapping(_) => "a mapping",
            Value::Taken { value: Some(_), .. } => "a value from the environment",
            // Noted when it was not found.
            Value::Taken { value: None, .. } => return None,
        };
        self.mistake_without_values(format!("must be {expected}; read {found}"));
        None
    }
}
