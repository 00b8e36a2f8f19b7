//! A key as JSON has it.

use super::{Node, expected};
use serde::{Deserialize, Deserializer};
use smallvec::{SmallVec, smallvec};
use std::borrow::Cow;

/// A key as JSON has it: a text, or a list of texts and nulls; left out, it is one bucket for all. A text is a list of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyText<'a>(pub SmallVec<[Option<Cow<'a, str>>; 1]>);

impl KeyText<'_> {
    /// Its values, for [`tollgate::Key::List`].
    #[must_use]
    pub fn values(&self) -> SmallVec<[Option<&str>; 4]> {
        self.0.iter().map(Option::as_deref).collect()
    }
}

impl<'a> From<&'a str> for KeyText<'a> {
    fn from(text: &'a str) -> Self {
        Self(smallvec![Some(text.into())])
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for KeyText<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = |item| match item {
            Node::Text(text) => Some(Some(text)),
            Node::Null => Some(None),
            _ => None,
        };
        let values = match Node::deserialize(from)? {
            Node::Text(text) => Some(smallvec![Some(text)]),
            Node::List(items) => items.into_iter().map(value).collect(),
            _ => None,
        };
        let what = "text, or a list of texts and nulls; left out, it is one bucket for all";
        values.map(Self).ok_or_else(|| expected(what))
    }
}

/// Reads a key that outlives the document, for `#[serde(deserialize_with = "owned_key")]`.
///
/// # Errors
/// Where it is none.
pub fn owned_key<'de, T: From<KeyText<'static>>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    let KeyText(values) = KeyText::deserialize(from)?;
    let owned = |value: Option<Cow<'_, str>>| value.map(|text| Cow::Owned(text.into_owned()));
    Ok(KeyText(values.into_iter().map(owned).collect()).into())
}
