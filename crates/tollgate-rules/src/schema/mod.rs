//! Every key that a file may hold, described once.
//!
//! A [`Shape`] is a kind of mapping: its keys, what they hold, what they are when left out, and one line about each. The
//! decoder judges unknown and missing keys by it, and asserts that it asked for every key it promises; the JSON Schema and
//! the reference are printed from it. So the three cannot drift apart. What one key demands of another (a name that exists,
//! a burst above an initial) is not described here: the decoder says it better.

mod draft;
mod limits;
mod reference;
mod rules;
mod settings;
mod telemetry;

pub use draft::json_schema;
pub(crate) use limits::*;
pub use reference::reference;
pub(crate) use rules::*;
pub(crate) use settings::*;
pub(crate) use telemetry::*;

/// A kind of mapping.
pub(crate) struct Shape {
    /// What the schema and the reference call it.
    pub(crate) name: &'static str,
    /// What it is.
    pub(crate) about: &'static str,
    /// One, as a person would write it.
    pub(crate) example: &'static str,
    /// Its keys, in groups that several shapes may share.
    pub(crate) keys: &'static [&'static [Key]],
    /// Keys of which it holds exactly one; none where any may stand together.
    pub(crate) exactly_one: &'static [&'static str],
}

/// One key of a mapping. Where its name ends in `.NAME`, it stands for every name with that beginning.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) need: Need,
    pub(crate) about: &'static str,
}

/// Whether a key must be there.
#[derive(Clone, Copy)]
pub(crate) enum Need {
    /// It must; this is how it could look.
    Required(&'static str),
    /// It is this when left out, which the reader reads as if the file had it.
    Default(&'static str),
    /// It is this when left out, in words: what it is depends on something else.
    Otherwise(&'static str),
    /// It is nothing when left out.
    Optional,
}

/// What a key holds.
pub(crate) enum Kind {
    /// The file's version.
    Version,
    /// `true` or `false`.
    Switch,
    /// A whole number.
    Count,
    /// A whole number above zero.
    Positive,
    /// A number that need not be whole.
    Number,
    /// Text, of the sort named here.
    Text(&'static str),
    /// An amount per duration.
    Rate,
    /// A length of time.
    Duration,
    /// A number of bytes.
    Size,
    /// One of some words.
    Word(&'static [&'static str]),
    /// A mapping.
    Mapping(&'static Shape),
    /// A mapping with some of the keys of one of these shapes.
    PartOf(&'static [&'static Shape]),
    /// A mapping from names of the sort named here.
    Named(&'static str, &'static Kind),
    /// A list.
    List(&'static Kind),
    /// One, or a list of them.
    OneOrList(&'static Kind),
    /// One of several.
    Either(&'static [Kind]),
}

impl Shape {
    /// Every key, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static Key> + use<> {
        self.keys.iter().copied().flatten()
    }

    /// What a key is when left out.
    pub(crate) fn default_text(&self, name: &str) -> &'static str {
        match self.key(name).map(|key| key.need) {
            Some(Need::Default(text)) => text,
            _ => unreachable!("{}.{name} has no default", self.name),
        }
    }

    /// The key that `name` is, or stands for.
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys().find(|key| match key.family() {
            Some(beginning) => name.strip_prefix(beginning).is_some_and(|rest| !rest.is_empty()),
            None => key.name == name,
        })
    }
}

impl Key {
    const fn required(name: &'static str, kind: Kind, example: &'static str, about: &'static str) -> Self {
        Self { name, kind, need: Need::Required(example), about }
    }

    const fn defaulted(name: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Self {
        Self { name, kind, need: Need::Default(default), about }
    }

    const fn otherwise(name: &'static str, kind: Kind, words: &'static str, about: &'static str) -> Self {
        Self { name, kind, need: Need::Otherwise(words), about }
    }

    const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self { name, kind, need: Need::Optional, about }
    }

    /// What the names begin with that it stands for: `header.` for `header.NAME`.
    pub(crate) fn family(&self) -> Option<&'static str> {
        self.name.strip_suffix("NAME")
    }
}
