//! A JSON object, read strictly: every field is known, stands there once, and is what it should be.

use anyhow::{Result, anyhow, bail};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, error::Category};
use std::fmt;
use tollgate_rules::nearest;

/// The fields of an object, in order; a name given twice is an error where a map would keep the last.
pub(crate) struct Fields(Vec<(String, Value)>);

impl Fields {
    /// Reads one object, such as `example`.
    pub(crate) fn parse(text: &str, example: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| not_an_object(&error, example))
    }

    /// Refuses a field that is none of these.
    pub(crate) fn only<const N: usize>(&self, known: [&str; N]) -> Result<()> {
        match self.names().find(|name| !known.contains(name)) {
            Some(unknown) => bail!(unknown_name("field", unknown, known)),
            None => Ok(()),
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        let index = self.0.iter().position(|(field, _)| field == name)?;
        Some(self.0.remove(index).1)
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => bail!("{name:?} must be text in quotes; read {}", shown(&other)),
        }
    }

    pub(crate) fn whole(&mut self, name: &str, max: u64) -> Result<Option<u64>> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match value.as_u64() {
            Some(number) if number <= max => Ok(Some(number)),
            _ => bail!("{name:?} must be a whole number from 0 to {max}; read {}", shown(&value)),
        }
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields: Vec<(String, Value)> = Vec::new();
                while let Some((name, value)) = map.next_entry()? {
                    if fields.iter().any(|(field, _)| *field == name) {
                        return Err(serde::de::Error::custom(format!("{name:?} is given twice")));
                    }
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

/// What serde says, without its line number: there is one line.
fn not_an_object(error: &serde_json::Error, example: &str) -> anyhow::Error {
    let said = error.to_string();
    let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
    match error.classify() {
        Category::Data if said.starts_with("invalid type") => anyhow!("must be an object such as {example}"),
        Category::Data => anyhow!("{said}"),
        _ => anyhow!("column {}: is not JSON: {said}; expected an object such as {example}", error.column()),
    }
}

/// The value, or its beginning where it is long.
pub(crate) fn shown(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

pub(crate) fn unknown_name<const N: usize>(what: &str, name: &str, known: [&str; N]) -> String {
    let meant = match nearest(name, known) {
        Some(known) => format!("did you mean {known:?}?"),
        None => format!("known are {}", quoted(&known)),
    };
    format!("there is no {what} {name:?}; {meant}")
}

pub(crate) fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}
