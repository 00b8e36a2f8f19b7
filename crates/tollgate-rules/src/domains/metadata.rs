//! What a descriptor's `metadata` says: any tree, told to whoever asks and looked at by nobody here.

use super::scalar;
use crate::{decode::Cursor, yaml::Value};

/// Any value, as JSON has them.
#[derive(Clone, Debug, PartialEq)]
pub enum Metadata {
    /// Nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(f64),
    /// Text.
    Text(String),
    /// Several.
    List(Vec<Self>),
    /// Several, by name.
    Struct(Vec<(String, Self)>),
}

impl Metadata {
    /// Reads the value at a place of a file; notes numbers that are not written in plain decimal.
    pub(super) fn of(here: &Cursor<'_>) -> Self {
        match &here.node().value {
            Value::Null => Self::Null,
            Value::Plain(text) => {
                if let Some(refusal) = scalar::refusal(text) {
                    here.mistake(format!(
                        "error parsing metadata: {refusal}, or put it in quotes if it is text"
                    ));
                }
                Self::of_word(text)
            }
            Value::Quoted(text) => Self::Text(text.clone()),
            Value::Taken { written, .. } => Self::Text(written.clone()),
            Value::List(_) => Self::List(here.one_or_list().iter().map(Self::of).collect()),
            Value::Mapping(_) => {
                let entries = here.named("owner: team").unwrap_or_default();
                let entry = |(key, value): &(Cursor<'_>, Cursor<'_>)| {
                    (key.node().written().into_owned(), Self::of(value))
                };
                Self::Struct(entries.iter().map(entry).collect())
            }
        }
    }

    /// Reads a word without quotes: `true` or `false`, a number, or text.
    fn of_word(text: &str) -> Self {
        if let Some(it) = scalar::boolean(text) {
            return Self::Bool(it);
        }
        let is_numeric = |first: char| first.is_ascii_digit() || matches!(first, '-' | '+' | '.');
        match text.replace('_', "").parse::<f64>() {
            Ok(number)
                if number.is_finite()
                    && text.starts_with(is_numeric)
                    && !text.ends_with(char::is_alphabetic) =>
            {
                Self::Number(number)
            }
            _ => Self::Text(text.to_owned()),
        }
    }

    /// Adds what another says: of two values under one name the first stays, and what both have as structs is added likewise.
    pub fn merge(&mut self, other: &Self) {
        let (Self::Struct(own), Self::Struct(others)) = (self, other) else { return };
        for (name, value) in others {
            match own.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => known.merge(value),
                None => own.push((name.clone(), value.clone())),
            }
        }
    }
}
