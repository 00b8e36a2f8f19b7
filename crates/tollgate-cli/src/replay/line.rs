//! A line of input, read strictly: every field is known, has a meaning for the operation, and stands there once.

use super::parse_charge;
use crate::fields::{Fields, quoted, shown, unknown_name};
use anyhow::{Result, anyhow, bail};
use serde_json::Value;
use std::time::Duration;
use tollgate::{Limit, Time};

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
        let mut fields = Fields::parse(text, "{\"at_us\":0}")?;
        fields.only(FIELDS)?;
        let op = fields.op()?;
        let takes = OPS.iter().find(|(name, _)| *name == op).map_or(&[][..], |(_, takes)| takes);
        let stray = |name: &str| !takes.contains(&name) && !["at_us", "op"].contains(&name);
        if let Some(name) = fields.names().find(|name| stray(name)) {
            bail!("{name:?} has no meaning for op {op:?}, which takes {}", quoted(takes));
        }

        let at_us = fields.at_us()?;
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

/// What only a replay's lines have.
impl Fields {
    /// When, as every line must say.
    pub(super) fn at_us(&mut self) -> Result<u64> {
        let at = self.whole("at_us", LAST_US)?;
        at.ok_or_else(|| anyhow!("\"at_us\" is missing; expected microseconds since 1970, such as 0"))
    }

    fn op(&mut self) -> Result<String> {
        let op = self.text("op")?.unwrap_or_else(|| "check".to_owned());
        if !OPS.iter().any(|(name, _)| *name == op) {
            bail!(unknown_name("op", &op, OPS.map(|(name, _)| name)));
        }
        Ok(op)
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
