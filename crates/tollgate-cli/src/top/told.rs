//! What a server tells about itself, as far as it is shown: the pages `/v1/overview`, `/v1/usage` and `/v1/top`.
//!
//! Read leniently: a field that is not there is nothing, and one that is not known is left alone, so that a view and a server
//! of neighbouring versions understand each other.

use crate::admin_client::AdminClient;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything that is asked for, at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    pub(super) overview: Overview,
    pub(super) usage: Usage,
    pub(super) top: Top,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Overview {
    pub(super) node: String,
    pub(super) version: String,
    pub(super) started_ms: u64,
    pub(super) now_ms: u64,
    pub(super) enabled: bool,
    pub(super) ready: bool,
    pub(super) rules: Rules,
    pub(super) store: Store,
    pub(super) listeners: Vec<Listener>,
    pub(super) problems: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Rules {
    pub(super) generation: u64,
    pub(super) failure: Option<Failure>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Failure {
    pub(super) why: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Store {
    pub(super) mode: String,
    pub(super) last_error: Option<String>,
    pub(super) keys: u64,
    pub(super) evictions: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Listener {
    pub(super) connections: Option<u64>,
    pub(super) in_flight: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    pub(super) rules: Vec<Series>,
    pub(super) total: Series,
}

/// One number a second, oldest first.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Series {
    pub(super) route: Option<String>,
    pub(super) rule: Option<String>,
    pub(super) door: Option<String>,
    pub(super) limit: Option<String>,
    pub(super) passed: Vec<u64>,
    pub(super) delayed: Vec<u64>,
    pub(super) refused: Vec<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Top {
    pub(super) limited: Vec<Key>,
    pub(super) used: Vec<Key>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Key {
    pub(super) limit: String,
    pub(super) key: Value,
    pub(super) refused_per_second: f64,
    pub(super) used_per_second: f64,
}

/// How many a second, of late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Pace {
    pub(super) passed: f64,
    pub(super) delayed: f64,
    pub(super) refused: f64,
}

/// The seconds that a pace is taken over.
const LATELY: usize = 5;

impl Series {
    /// Whose it is, in letters that do nothing to a terminal.
    pub(super) fn name(&self) -> String {
        let part = |part: &Option<String>, none: &str| plain(part.as_deref().unwrap_or(none));
        match &self.door {
            Some(door) => format!("{} {}", plain(door), part(&self.limit, "?")),
            None => format!("{} / {}", part(&self.route, "*"), part(&self.rule, "?")),
        }
    }

    /// How many a second, of late.
    pub(super) fn pace(&self) -> Pace {
        let mean = |numbers: &[u64]| {
            let last = &numbers[numbers.len().saturating_sub(LATELY)..];
            last.iter().sum::<u64>() as f64 / last.len().max(1) as f64
        };
        Pace { passed: mean(&self.passed), delayed: mean(&self.delayed), refused: mean(&self.refused) }
    }
}

impl Key {
    /// The key, in letters that do nothing to a terminal.
    pub(super) fn name(&self) -> String {
        let one = |value: &Value| value.as_str().map_or_else(|| "(none)".to_owned(), plain);
        match &self.key {
            Value::Array(values) if values.is_empty() => "(all)".to_owned(),
            Value::Array(values) => values.iter().map(one).collect::<Vec<_>>().join(" "),
            value => one(value),
        }
    }
}

impl Told {
    /// Everything that is shown.
    pub(super) async fn of(server: &AdminClient) -> Result<Self> {
        // So many seconds of the past, and keys of each sort.
        Ok(Self {
            overview: server.get("/v1/overview").await?,
            usage: server.get("/v1/usage?last=300").await?,
            top: server.get("/v1/top?n=50").await?,
        })
    }
}

/// Whatever somebody sends as a key, or calls a rule, a terminal is only written on by it. Marks that turn the direction of text
/// are left out too.
pub(crate) fn plain(text: &str) -> String {
    let is_mark = |letter: char| matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    text.chars().map(|letter| if letter.is_control() || is_mark(letter) { '?' } else { letter }).collect()
}
