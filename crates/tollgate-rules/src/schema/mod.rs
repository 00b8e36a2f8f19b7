//! The definition of every key of a rule file.
//!
//! A [`Shape`] defines a mapping: its keys, their values, their defaults, and a line of description for each. The decoder
//! uses it to report unknown and missing keys, and asserts that it reads every key that is defined; the JSON Schema and the
//! reference are generated from it. So the three agree. Constraints between keys (a name that must exist, an initial above
//! the burst) are not part of it; the decoder checks them.

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
    /// Its name in the schema and the reference.
    pub(crate) name: &'static str,
    /// Its description.
    pub(crate) about: &'static str,
    /// An example.
    pub(crate) example: &'static str,
    /// Its keys, in groups that several shapes may share.
    pub(crate) keys: &'static [&'static [Key]],
    /// Keys of which exactly one is required; empty if there is no such constraint.
    pub(crate) exactly_one: &'static [&'static str],
}

/// One key of a mapping. A name that ends in `.NAME` stands for every name with that prefix.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) need: Need,
    pub(crate) about: &'static str,
}

/// Whether a key is required, and its default.
#[derive(Clone, Copy)]
pub(crate) enum Need {
    /// Required; with an example.
    Required(&'static str),
    /// The default, which the decoder reads as if it were in the file.
    Default(&'static str),
    /// The default in words, because it depends on something else.
    Otherwise(&'static str),
    /// Optional, without a default.
    Optional,
}

/// The value of a key.
pub(crate) enum Kind {
    /// The version of the file format.
    Version,
    /// `true` or `false`.
    Switch,
    /// A whole number.
    Count,
    /// A whole number above zero.
    Positive,
    /// A number that need not be whole.
    Number,
    /// Text, with the name of what it contains.
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
    /// A mapping from names; the text says what they name.
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

    /// The default of a key.
    pub(crate) fn default_text(&self, name: &str) -> &'static str {
        match self.key(name).map(|key| key.need) {
            Some(Need::Default(text)) => text,
            _ => unreachable!("{}.{name} has no default", self.name),
        }
    }

    /// The key that `name` matches.
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

    /// The prefix of the names that it stands for: `header.` for `header.NAME`.
    pub(crate) fn family(&self) -> Option<&'static str> {
        self.name.strip_suffix("NAME")
    }
}
