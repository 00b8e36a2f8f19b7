//! The entries of a mapping whose shape is known.

use super::{Cursor, Message, Noted, default_of, empty_mapping, listed, note, path_to};
use crate::{
    mistake::Position,
    nearest::nearest,
    schema::{Need, Shape},
    yaml::{Node, Value},
};
use std::{borrow::Cow, collections::HashMap};

/// The entries of a mapping. What its shape does not know is unknown.
pub(crate) struct Fields<'a> {
    at: Position,
    path: String,
    noted: &'a Noted,
    shape: &'static Shape,
    entries: Vec<Entry<'a>>,
    /// Which keys were asked for, so that none of the shape's is forgotten.
    asked: Vec<&'static str>,
}

struct Entry<'a> {
    name: &'a str,
    at: Position,
    value: &'a Node,
}

impl<'a> Fields<'a> {
    pub(super) fn new(here: &Cursor<'a>, pairs: &'a [(Node, Node)], shape: &'static Shape) -> Self {
        let mut fields = Self {
            at: here.at(),
            path: here.path().to_owned(),
            noted: here.noted(),
            shape,
            entries: Vec::with_capacity(pairs.len()),
            asked: Vec::new(),
        };
        let mut seen = HashMap::new();
        for (key, value) in pairs {
            let name = match &key.value {
                Value::Plain(name) if name == "<<" => {
                    fields.note(
                        key.at,
                        name,
                        "is not supported: write the keys out instead of a merge key (`<<`)",
                    );
                    continue;
                }
                Value::Plain(name) | Value::Quoted(name) => name,
                Value::Taken { written, .. } => {
                    fields.note(key.at, written, "cannot come from the environment: write the key out");
                    continue;
                }
                other => {
                    let read = match other {
                        Value::List(_) => "a list",
                        Value::Mapping(_) => "a mapping",
                        _ => "nothing",
                    };
                    let message = format!("keys must be names; read {read}");
                    note(fields.noted, key.at, fields.path.clone(), message);
                    continue;
                }
            };
            match seen.get(name) {
                Some(line) => {
                    fields.note(key.at, name, format!("is given twice, first on line {line}"));
                }
                None => {
                    seen.insert(name, key.at.line);
                    fields.entries.push(Entry { name, at: key.at, value });
                }
            }
        }
        fields
    }

    /// The value under `name`, if there is one.
    pub(crate) fn optional(&mut self, name: &'static str) -> Option<Cursor<'a>> {
        debug_assert!(self.shape.key(name).is_some(), "{} has no key {name}", self.shape.name);
        self.asked.push(name);
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        Some(Cursor::new(entry.value, path_to(&self.path, name), self.noted))
    }

    /// What the value under `name` says, or the key's default where there is none; `None` where it is wrong.
    pub(crate) fn defaulted<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Cursor<'_>) -> Option<T>,
    ) -> Option<T> {
        match self.optional(name) {
            Some(here) => read(&here),
            None => default_of(self.shape, name, read),
        }
    }

    /// What the mapping under `name` says, or one with all its defaults where there is none; `None` where it is wrong.
    pub(crate) fn mapping_or_empty<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Cursor<'_>) -> Option<T>,
    ) -> Option<T> {
        match self.optional(name) {
            Some(here) => read(&here),
            None => empty_mapping(read),
        }
    }

    /// The value under `name`, which must be there.
    pub(crate) fn required(&mut self, name: &'static str) -> Option<Cursor<'a>> {
        let found = self.optional(name);
        let need = self.shape.key(name).map(|key| key.need);
        debug_assert!(matches!(need, Some(Need::Required(_))), "{}.{name} is not required", self.shape.name);
        if let (None, Some(Need::Required(example))) = (&found, need) {
            self.note(self.at, name, format!("is missing, such as `{name}: {example}`"));
        }
        found
    }

    /// The entries under every name that begins as `family` does: `header.NAME` has `header.x-api-key`. Each with the rest of
    /// its name.
    pub(crate) fn family(&mut self, family: &'static str) -> Vec<(&'a str, Cursor<'a>)> {
        let Some(beginning) = self.shape.key(family).and_then(|key| key.family()) else { return Vec::new() };
        self.asked.push(family);
        let of_family = |entry: &Entry<'a>| {
            let rest = entry.name.strip_prefix(beginning).filter(|rest| !rest.is_empty())?;
            Some((rest, Cursor::new(entry.value, path_to(&self.path, entry.name), self.noted)))
        };
        self.entries.iter().filter_map(of_family).collect()
    }

    /// Whether there is no entry at all.
    pub(crate) const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Which of `names` there are, in the file's order.
    pub(crate) fn among(&self, names: &[&'static str]) -> Vec<&'a str> {
        self.entries.iter().map(|entry| entry.name).filter(|name| names.contains(name)).collect()
    }

    /// Notes a mistake about the setting called `name`: at its value, or at the mapping where it has none.
    pub(crate) fn mistake(&self, name: &str, message: impl Into<Message>) {
        let at = self.entries.iter().find(|entry| entry.name == name).map_or(self.at, |entry| entry.value.at);
        self.note(at, name, self.without_values(message.into()));
    }

    /// Notes a mistake about the mapping as a whole.
    pub(crate) fn mistake_here(&self, message: impl Into<Message>) {
        note(self.noted, self.at, self.path.clone(), self.without_values(message.into()));
    }

    /// What may be shown of a message that may hold the values of these entries.
    fn without_values(&self, message: Message) -> String {
        match message {
            Cow::Owned(_) if self.entries.iter().any(|entry| entry.value.is_taken()) => {
                "does not fit the values beside it; some come from the environment, and are not shown"
                    .to_owned()
            }
            message => message.into_owned(),
        }
    }

    /// Whether an entry is there that the shape does not know.
    pub(crate) fn has_unknown(&self) -> bool {
        self.entries.iter().any(|entry| self.shape.key(entry.name).is_none())
    }

    /// Notes every entry that the shape does not know.
    pub(crate) fn finish(&self) {
        for key in self.shape.keys() {
            debug_assert!(self.asked.contains(&key.name), "{}.{} was not read", self.shape.name, key.name);
        }
        for entry in self.entries.iter().filter(|entry| self.shape.key(entry.name).is_none()) {
            let message = match self.meant(entry.name) {
                Some(name) => format!("is not a known key; did you mean `{name}`?"),
                None => {
                    let known = listed(self.shape.keys().map(|key| key.name));
                    format!("is not a known key; known here: {known}")
                }
            };
            self.note(entry.at, entry.name, message);
        }
    }

    /// The key that was probably meant, the beginning of a family included.
    fn meant(&self, typed: &str) -> Option<String> {
        let names = || self.shape.keys().map(|key| key.name);
        let families = || self.shape.keys().filter_map(|key| key.family()?.strip_suffix('.'));
        if let Some((beginning, rest)) = typed.split_once('.')
            && let Some(family) = nearest(beginning, families())
            && !rest.is_empty()
        {
            return Some(super::shorten(&format!("{family}.{}", rest.escape_debug())));
        }
        nearest(typed, names()).map(str::to_owned)
    }

    fn note(&self, at: Position, name: &str, message: impl Into<String>) {
        note(self.noted, at, path_to(&self.path, name), message);
    }
}
