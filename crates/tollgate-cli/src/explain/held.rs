//! What buckets hold, on a terminal.

use serde_json::{Map, Value};
use std::{
    io::{self, Write},
    time::Duration,
};

/// A line for every bucket that a request would be charged on.
pub(super) fn write(output: &mut impl Write, told: &Map<String, Value>) -> io::Result<()> {
    let generation = told.get("generation").and_then(Value::as_u64).unwrap_or_default();
    let holds = told.get("holds").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    writeln!(output, "buckets, by generation {generation} of the rules")?;
    if holds.is_empty() {
        writeln!(output, "  none: nothing is charged")?;
    }
    for hold in holds {
        let text = |name: &str| hold[name].as_str().unwrap_or("?");
        let number = |name: &str| hold[name].as_u64().unwrap_or_default();
        let rule = text("rule");
        write!(output, "  {rule}: {} for {}: ", text("limit"), key(&hold["key"]))?;
        // What is told of a request that passes is how it leaves the bucket.
        let left = format!("{} of {}", number("remaining"), number("limit_most"));
        match text("decision") {
            "allow" => write!(output, "allowed, leaving {left}")?,
            "wait" => {
                let wait = Duration::from_millis(number("wait_ms"));
                write!(output, "delayed by {wait:?}, leaving {left}")?;
            }
            "never" => write!(output, "denied for good, {left} left")?,
            _ => match time(&hold["retry_after_ms"]) {
                Some(after) => write!(output, "denied for {after:?}, {left} left")?,
                None => write!(output, "denied until a slot is released, {left} left")?,
            },
        }
        match time(&hold["reset_after_ms"]) {
            Some(Duration::ZERO) | None => {}
            Some(after) => write!(output, "; as if unused in {after:?}")?,
        }
        match text("decided_by") {
            "store" => writeln!(output)?,
            other => writeln!(output, " (decided by {other})")?,
        }
    }
    Ok(())
}

fn time(millis: &Value) -> Option<Duration> {
    millis.as_u64().map(Duration::from_millis)
}

fn key(values: &Value) -> String {
    let values = values.as_array().map_or(&[][..], Vec::as_slice);
    if values.is_empty() {
        return "all".to_owned();
    }
    let shown = |value: &Value| value.as_str().map_or_else(|| "nothing".to_owned(), |it| format!("{it:?}"));
    values.iter().map(shown).collect::<Vec<_>>().join(", ")
}
