//! A line of input, read strictly: every field is known, has a meaning for the operation, and stands there once.

use super::parse_charge;
use anyhow::{Result, anyhow, bail};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, error::Category};
use std::{fmt, time::Duration};
use tollgate::{Limit, Time};
use tollgate_rules::nearest;

/// What a line asks for, and when.
pub(super) struct Line {
    pub(super) at_us: u64,
    pub(super) op: Op,
}

pub(super) enum Op {
    Check(Usage),
    Peek(Usage),
    Reserve { usage: Usage, up_to: Option<Duration>, id: Option<String> },
    Cancel { id: String },
    Refund(Usage),
    Reset { key: Key },
    SetLimit { limit: Limit, index: Option<usize> },
    Enter { usage: Usage, id: String },
    Leave { id: String },
}

/// Whose units, and how many.
#[derive(Clone)]
pub(super) struct Usage {
    pub(super) key: Key,
    pub(super) cost: u32,
}

/// Whose bucket.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Text(String),
    List(Vec<Option<String>>),
}

/// The operations, and the fields each takes beside `at_us` and `op`.
const OPS: [(&str, &[&str]); 9] = [
    ("check", &["key", "cost"]),
    ("peek", &["key", "cost"]),
    ("reserve", &["key", "cost", "up_to_us", "id"]),
    ("cancel", &["id"]),
    ("refund", &["key", "cost"]),
    ("reset", &["key"]),
    ("set_limit", &["limit", "index"]),
    ("enter", &["key", "cost", "id"]),
    ("leave", &["id"]),
];

const FIELDS: [&str; 8] = ["at_us", "op", "key", "cost", "id", "up_to_us", "limit", "index"];

/// The last microsecond a store can tell, in the year 2116.
const LAST_US: u64 = Time::END.as_nanos() / 1_000;

impl Line {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut fields: Fields = serde_json::from_str(text).map_err(|error| not_an_object(&error))?;
        if let Some(unknown) = fields.0.iter().find(|(name, _)| !FIELDS.contains(&name.as_str())) {
            bail!(unknown_name("field", &unknown.0, FIELDS));
        }
        let op = fields.op()?;
        let takes = OPS.iter().find(|(name, _)| *name == op).map_or(&[][..], |(_, takes)| takes);
        let stray = |name: &str| !takes.contains(&name) && !["at_us", "op"].contains(&name);
        if let Some((name, _)) = fields.0.iter().find(|(name, _)| stray(name)) {
            bail!("{name:?} has no meaning for op {op:?}, which takes {}", quoted(takes));
        }

        let at = fields.whole("at_us", LAST_US)?;
        let at_us =
            at.ok_or_else(|| anyhow!("\"at_us\" is missing; expected microseconds since 1970, such as 0"))?;
        let op = match op.as_str() {
            "check" => Op::Check(fields.usage()?),
            "peek" => Op::Peek(fields.usage()?),
            "reserve" => Op::Reserve {
                usage: fields.usage()?,
                up_to: fields.whole("up_to_us", u64::MAX)?.map(Duration::from_micros),
                id: fields.text("id")?,
            },
            "cancel" => Op::Cancel { id: fields.id("cancel")? },
            "refund" => Op::Refund(fields.usage()?),
            "reset" => Op::Reset { key: fields.key()? },
            "set_limit" => Op::SetLimit { limit: fields.limit()?, index: fields.index()? },
            "enter" => Op::Enter { usage: fields.usage()?, id: fields.id("enter")? },
            "leave" => Op::Leave { id: fields.id("leave")? },
            other => bail!(unknown_name("op", other, OPS.map(|(name, _)| name))),
        };
        Ok(Self { at_us, op })
    }

    pub(super) fn at(&self) -> Time {
        Time::from_micros(self.at_us)
    }
}

/// The fields of an object, in order; a name given twice is an error where a map would keep the last.
struct Fields(Vec<(String, Value)>);

impl Fields {
    fn take(&mut self, name: &str) -> Option<Value> {
        let index = self.0.iter().position(|(field, _)| field == name)?;
        Some(self.0.remove(index).1)
    }

    fn op(&mut self) -> Result<String> {
        let op = self.text("op")?.unwrap_or_else(|| "check".to_owned());
        if !OPS.iter().any(|(name, _)| *name == op) {
            bail!(unknown_name("op", &op, OPS.map(|(name, _)| name)));
        }
        Ok(op)
    }

    fn text(&mut self, name: &str) -> Result<Option<String>> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => bail!("{name:?} must be text in quotes; read {}", shown(&other)),
        }
    }

    fn whole(&mut self, name: &str, max: u64) -> Result<Option<u64>> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match value.as_u64() {
            Some(number) if number <= max => Ok(Some(number)),
            _ => bail!("{name:?} must be a whole number from 0 to {max}; read {}", shown(&value)),
        }
    }

    fn usage(&mut self) -> Result<Usage> {
        let cost = self.whole("cost", u32::MAX.into())?.unwrap_or(1);
        // The bound above is the type's own.
        Ok(Usage { key: self.key()?, cost: u32::try_from(cost)? })
    }

    fn key(&mut self) -> Result<Key> {
        let wrong = |value: &Value| {
            anyhow!("\"key\" must be text, or a list of texts and nulls; read {}", shown(value))
        };
        match self.take("key") {
            None => Ok(Key::Text(String::new())),
            Some(Value::String(text)) => Ok(Key::Text(text)),
            Some(Value::Array(values)) => values
                .into_iter()
                .map(|value| match value {
                    Value::String(text) => Ok(Some(text)),
                    Value::Null => Ok(None),
                    other => Err(wrong(&other)),
                })
                .collect::<Result<_>>()
                .map(Key::List),
            Some(other) => Err(wrong(&other)),
        }
    }

    fn id(&mut self, op: &str) -> Result<String> {
        let id = self.text("id")?;
        id.ok_or_else(|| anyhow!("\"id\" is missing; op {op:?} needs one, such as \"id\":\"a\""))
    }

    fn limit(&mut self) -> Result<Limit> {
        let Some(text) = self.text("limit")? else {
            bail!("\"limit\" is missing; expected one such as \"token_bucket: {{ rate: 10/s, burst: 5 }}\"");
        };
        parse_charge(&text)
            .map_err(|mistakes| anyhow!("\"limit\" is wrong:\n  {}", mistakes.replace('\n', "\n  ")))
    }

    fn index(&mut self) -> Result<Option<usize>> {
        let index = self.whole("index", u32::MAX.into())?;
        Ok(index.map(usize::try_from).transpose()?)
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

/// What serde says, without its line number, which is always 1 here.
fn not_an_object(error: &serde_json::Error) -> anyhow::Error {
    const EXPECTED: &str = "an object such as {\"at_us\":0}";
    let said = error.to_string();
    let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
    match error.classify() {
        Category::Data if said.starts_with("invalid type") => anyhow!("must be {EXPECTED}"),
        Category::Data => anyhow!("{said}"),
        _ => anyhow!("column {}: is not JSON: {said}; expected {EXPECTED}", error.column()),
    }
}

/// The value, or its beginning where it is long.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

fn unknown_name<const N: usize>(what: &str, name: &str, known: [&str; N]) -> String {
    let meant = match nearest(name, known) {
        Some(known) => format!("did you mean {known:?}?"),
        None => format!("known are {}", quoted(&known)),
    };
    format!("there is no {what} {name:?}; {meant}")
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}
