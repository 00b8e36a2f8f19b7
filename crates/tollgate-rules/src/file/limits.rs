//! Limits with names, and other numbers for some of their keys.

use super::{all, names::Names};
use crate::{
    decode::{Cursor, Noted},
    limit::{Algorithm, ParsedLimit, algorithm, defaulted, names_no_algorithm},
    model::{NamedLimit, Override},
    schema,
    yaml::{Node, Value},
};
use std::collections::HashSet;
use tollgate::Limit;

/// The file's limits, for rules to speak of.
pub(super) struct Limits {
    pub(super) names: Names,
    read: Vec<Read>,
    is_read: bool,
}

struct Read {
    /// Its own numbers, which rules are judged by even where the rest is wrong.
    numbers: Option<Limit>,
    limit: Option<NamedLimit>,
    /// Whether its numbers may be shown: none came from the environment.
    is_shown: bool,
}

impl Limits {
    /// The limit at a place, if its numbers could be read.
    pub(super) fn numbers(&self, place: usize) -> Option<&Limit> {
        self.read.get(place)?.numbers.as_ref()
    }

    /// Other numbers for some keys of the limit at a place.
    pub(super) fn overrides(&self, place: usize) -> &[Override] {
        let limit = self.read.get(place).and_then(|read| read.limit.as_ref());
        limit.map_or(&[], |limit| &limit.overrides)
    }

    /// Whether a message may show the numbers of the limit at a place.
    pub(super) fn is_shown(&self, place: usize) -> bool {
        self.read.get(place).is_some_and(|read| read.is_shown)
    }

    pub(super) fn into_limits(self) -> Option<Vec<NamedLimit>> {
        all(self.read.into_iter().map(|read| read.limit)).filter(|_| self.is_read)
    }
}

/// Reads `limits`.
pub(super) fn limits(limits: Option<Cursor<'_>>) -> Limits {
    let mut found = Limits { names: Names::new("limit"), read: Vec::new(), is_read: true };
    let Some(limits) = limits else { return found };
    let Some(entries) = limits.named("{ per-client: { token_bucket: { rate: 10/s, burst: 100 } } }") else {
        found.is_read = false;
        return found;
    };
    for (key, value) in entries {
        let name = found.names.add(&key);
        let (numbers, limit) = named_limit(&value);
        let limit = name.zip(limit).map(|(name, limit)| NamedLimit { name, ..limit });
        found.read.push(Read { numbers, limit, is_shown: !value.is_taken() });
    }
    found
}

/// A limit's own numbers, and all of it; its name is still to come.
fn named_limit(value: &Cursor<'_>) -> (Option<Limit>, Option<NamedLimit>) {
    const NOT_HERE: [&str; 1] = ["bandwidth"];
    let Some(entries) = value.named(schema::NAMED_LIMIT.example) else { return (None, None) };
    if let Some((key, _)) = entries.iter().find(|(key, _)| key.node().written() == "bandwidth") {
        key.mistake(
            "cannot be a named limit, because it paces one response; put it into the limits of a rule",
        );
        return (None, None);
    }
    let Some(mut fields) = value.mapping(&schema::NAMED_LIMIT) else { return (None, None) };
    let found = algorithm(&mut fields, &NOT_HERE);
    if found.is_none() {
        names_no_algorithm(&fields, &NOT_HERE);
    }
    let max_keys = defaulted(fields.optional("max_keys"), None, |keys| keys.positive().map(Some));
    let overrides = fields.optional("overrides");
    fields.finish();
    let Some(found) = found else { return (None, None) };
    let overrides = defaulted(overrides, Vec::new(), |overrides| read_overrides(overrides, &found));
    let Some(ParsedLimit::Limit(limit)) = found.parsed else { return (None, None) };
    let all = || {
        Some(NamedLimit {
            name: String::new(),
            limit: limit.clone(),
            overrides: overrides?,
            max_keys: max_keys?,
        })
    };
    (Some(limit.clone()), all())
}

fn read_overrides(overrides: &Cursor<'_>, base: &Algorithm<'_>) -> Option<Vec<Override>> {
    let mut seen = HashSet::new();
    let read = |(key, value): (Cursor<'_>, Cursor<'_>)| {
        let values = all(key
            .one_or_list()
            .iter()
            .map(|part| part.text("a key, or the list of a key's values").map(str::to_owned)));
        let values = values.filter(|values| {
            let is_new = seen.insert(values.clone());
            if values.is_empty() {
                key.mistake(
                    "must name a key: `[]` is the one bucket for all, which has the parameters of the limit itself",
                );
            } else if !is_new {
                key.mistake("is given twice");
            }
            is_new && !values.is_empty()
        });
        let limit = override_numbers(&value, base);
        Some(Override { key: values?, limit: limit? })
    };
    all(overrides.named("{ vip-7: { rate: 100/s } }")?.into_iter().map(read).collect::<Vec<_>>())
}

/// The limit's numbers with some replaced, read as if they had been written so.
fn override_numbers(value: &Cursor<'_>, base: &Algorithm<'_>) -> Option<Limit> {
    let own = match &value.node().value {
        Value::Mapping(own) => own,
        _ => {
            value.named("{ rate: 100/s }")?;
            return None;
        }
    };
    let mut entries = own.clone();
    if let Value::Mapping(inherited) = &base.numbers.node().value {
        let is_own = |key: &Node| own.iter().any(|(other, _)| other.value == key.value);
        entries.extend(inherited.iter().filter(|(key, _)| !is_own(key)).cloned());
    }
    let merged = Node { at: value.at(), value: Value::Mapping(entries) };
    let noted = Noted::default();
    let parsed = (base.read)(&value.holding(&merged, &noted));
    let is_own = |at| own.iter().any(|(key, value)| key.at == at || value.at == at);
    for mut mistake in noted.into_inner() {
        if !is_own(mistake.at) {
            // Where the limit itself is wrong, what it hands down is wrong here too: once is enough.
            if base.parsed.is_none() {
                continue;
            }
            mistake.at = value.at();
        }
        value.noted().borrow_mut().push(mistake);
    }
    match parsed? {
        ParsedLimit::Limit(limit) => Some(limit),
        ParsedLimit::Bandwidth(_) => None,
    }
}
