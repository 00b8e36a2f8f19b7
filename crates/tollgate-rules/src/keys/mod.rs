//! Whose bucket a request is charged on, and how much.
//!
//! A key is the values of its attributes in order, each present or missing; never a joined text, so that no two callers
//! share a bucket by the way their values are cut.

mod cost;
mod overrides;

pub use cost::Units;
pub(crate) use cost::units;
pub(crate) use overrides::Overrides;

use crate::{model::Attribute, reading::Text};
use smallvec::SmallVec;
use tollgate::Key;

/// Whose bucket, if any.
#[derive(Clone, Debug)]
pub enum Keyed<'f> {
    /// The one with this key.
    Key(KeyValues<'f>),
    /// None: the request lacks an attribute, and is not charged then.
    Skip,
    /// None: the request has this attribute more than once, and is refused then.
    Repeated {
        /// What it has more than once.
        attribute: &'f Attribute,
    },
    /// None: the request lacks this attribute, and is refused then.
    Deny {
        /// What it lacks.
        missing: &'f Attribute,
    },
}

/// A key's values, in order.
#[derive(Clone, Default)]
pub struct KeyValues<'f> {
    values: SmallVec<[Option<Text<'f>>; 2]>,
}

impl<'f> KeyValues<'f> {
    pub(crate) fn push(&mut self, value: Option<Text<'f>>) {
        self.values.push(value);
    }

    /// The values; `None` for one that is missing.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<&str>> {
        self.values.iter().map(|value| value.as_ref().map(Text::as_str))
    }

    /// The values as the list that a [`Key`] borrows.
    #[must_use]
    pub fn texts(&self) -> KeyTexts<'_> {
        KeyTexts { texts: self.iter().collect() }
    }
}

impl std::fmt::Debug for KeyValues<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A key's values as a list of texts, to be kept as long as the [`Key`] is used.
#[derive(Clone, Debug)]
pub struct KeyTexts<'v> {
    texts: SmallVec<[Option<&'v str>; 2]>,
}

impl KeyTexts<'_> {
    /// The key that stores know: all, one text, or a list.
    #[must_use]
    pub fn key(&self) -> Key<'_> {
        match self.texts.as_slice() {
            [] => Key::All,
            [Some(text)] => Key::Text(text),
            texts => Key::List(texts),
        }
    }
}
