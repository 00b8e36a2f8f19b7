//! What a descriptor's `metadata` says: any tree, told to whoever asks and looked at by nobody here.

use crate::yaml::{Node, Value};

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
    /// What a value of a file is.
    pub(super) fn of(node: &Node) -> Self {
        match &node.value {
            Value::Null => Self::Null,
            Value::Plain(text) => match (text.as_str(), text.parse::<f64>()) {
                ("true" | "True" | "TRUE", _) => Self::Bool(true),
                ("false" | "False" | "FALSE", _) => Self::Bool(false),
                (_, Ok(number)) if number.is_finite() && !text.ends_with(char::is_alphabetic) => {
                    Self::Number(number)
                }
                _ => Self::Text(text.clone()),
            },
            Value::Quoted(text) => Self::Text(text.clone()),
            Value::Taken { written, .. } => Self::Text(written.clone()),
            Value::List(items) => Self::List(items.iter().map(Self::of).collect()),
            Value::Mapping(entries) => Self::Struct(
                entries.iter().map(|(key, value)| (key.written().into_owned(), Self::of(value))).collect(),
            ),
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
