//! A line of input, read strictly: every field is known, has a meaning for the operation, and stands there once.

use super::parse_charge;
use anyhow::{Result, anyhow, bail};
use serde::{Deserialize, Deserializer};
use std::time::Duration;
use tollgate::{Limit, Time};
use tollgate_rules::json::{self, KeyText, owned_key, present};

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
    Reset { key: KeyText<'static> },
    SetLimit { limit: Limit, index: Option<usize> },
    Enter { usage: Usage, id: String },
    Leave { id: String },
}

/// Whose units, and how many.
#[derive(Clone)]
pub(super) struct Usage {
    pub(super) key: KeyText<'static>,
    pub(super) cost: u32,
}

/// A line as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = r#"an object such as {"at_us":0}"#)]
struct LineText {
    #[serde(deserialize_with = "at_us")]
    at_us: u64,
    #[serde(default)]
    op: OpName,
    #[serde(default, deserialize_with = "owned_key")]
    key: Option<KeyText<'static>>,
    #[serde(default, deserialize_with = "present")]
    cost: Option<u32>,
    #[serde(default, deserialize_with = "present")]
    id: Option<String>,
    #[serde(default, deserialize_with = "present")]
    up_to_us: Option<u64>,
    #[serde(default, deserialize_with = "present")]
    limit: Option<String>,
    #[serde(default, deserialize_with = "present")]
    index: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OpName {
    #[default]
    Check,
    Peek,
    Reserve,
    Cancel,
    Refund,
    Reset,
    SetLimit,
    Enter,
    Leave,
}

impl OpName {
    /// Its name, and the fields that it takes beside `at_us` and `op`.
    const fn form(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Check => ("check", &["key", "cost"]),
            Self::Peek => ("peek", &["key", "cost"]),
            Self::Reserve => ("reserve", &["key", "cost", "up_to_us", "id"]),
            Self::Cancel => ("cancel", &["id"]),
            Self::Refund => ("refund", &["key", "cost"]),
            Self::Reset => ("reset", &["key"]),
            Self::SetLimit => ("set_limit", &["limit", "index"]),
            Self::Enter => ("enter", &["key", "cost", "id"]),
            Self::Leave => ("leave", &["id"]),
        }
    }
}

/// When, in microseconds since 1970, up to the last that a store can tell, in the year 2116.
pub(crate) fn at_us<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    json::whole(from, "a whole number", 0..=Time::END.as_nanos() / 1_000)
}

impl Line {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let line: LineText =
            json::read(text.as_bytes()).map_err(|error| anyhow!(error.describe("the line")))?;
        let LineText { at_us, op, key, cost, id, up_to_us, limit, index } = line;
        let given = [
            ("key", key.is_some()),
            ("cost", cost.is_some()),
            ("id", id.is_some()),
            ("up_to_us", up_to_us.is_some()),
            ("limit", limit.is_some()),
            ("index", index.is_some()),
        ];
        let (name, takes) = op.form();
        if let Some((stray, _)) = given.iter().find(|(field, is_given)| *is_given && !takes.contains(field)) {
            bail!("{stray}: has no meaning for op {name:?}, which takes {}", takes.join(", "));
        }
        let key = key.unwrap_or_else(|| KeyText::from(""));
        let named = || {
            id.clone().ok_or_else(|| anyhow!("id: is missing; op {name:?} needs one, such as \"id\":\"a\""))
        };
        let usage = |key| Usage { key, cost: cost.unwrap_or(1) };
        let op = match op {
            OpName::Check => Op::Check(usage(key)),
            OpName::Peek => Op::Peek(usage(key)),
            OpName::Reserve => {
                Op::Reserve { usage: usage(key), up_to: up_to_us.map(Duration::from_micros), id }
            }
            OpName::Cancel => Op::Cancel { id: named()? },
            OpName::Refund => Op::Refund(usage(key)),
            OpName::Reset => Op::Reset { key },
            OpName::SetLimit => {
                Op::SetLimit { limit: parse(limit)?, index: index.map(usize::try_from).transpose()? }
            }
            OpName::Enter => Op::Enter { usage: usage(key), id: named()? },
            OpName::Leave => Op::Leave { id: named()? },
        };
        Ok(Self { at_us, op })
    }

    pub(super) fn at(&self) -> Time {
        Time::from_micros(self.at_us)
    }
}

fn parse(limit: Option<String>) -> Result<Limit> {
    let Some(text) = limit else {
        bail!("limit: is missing; expected one such as \"token_bucket: {{ rate: 10/s, burst: 5 }}\"");
    };
    parse_charge(&text).map_err(|mistakes| anyhow!("limit: is wrong:\n  {}", mistakes.replace('\n', "\n  ")))
}
