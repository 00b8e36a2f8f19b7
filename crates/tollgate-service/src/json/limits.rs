//! What can be asked for by name.

use super::{
    answer::millis,
    reply::{Members, Reply},
};
use http::StatusCode;
use serde_json::json;
use tollgate::{Limit, Numbers, Store, WindowNumbers};
use tollgate_rules::{decision::RuleSnapshot, model::NamedLimit};

/// The limits of the rule file, with their numbers.
pub(super) fn list<S: Store>(rules: &RuleSnapshot<S>) -> Reply {
    let limits = &rules.program().file().limits;
    let limits: Vec<String> = limits.iter().map(|named| told(named).to_json()).collect();
    Reply::json(StatusCode::OK, format!(r#"{{"limits":[{}]}}"#, limits.join(",")))
}

fn told(named: &NamedLimit) -> Members {
    let limit = &named.limit;
    let mut told = Members::default();
    told.push("name", json!(named.name));
    told.push("algorithm", json!(limit.name()));
    told.push("limit", json!(limit.most()));
    match limit.numbers() {
        Numbers::Bucket(bucket) => {
            told.push("per_second", json!(bucket.earn as f64 * 1e9 / bucket.price as f64));
        }
        Numbers::Interval { amount, period, .. } => {
            told.push("per_second", json!(amount as f64 / period.as_secs_f64()));
        }
        Numbers::Smooth(_, smooth) => told.push("per_second", json!(1e6 / smooth.stable)),
        Numbers::FixedWindow {
            windows: WindowNumbers::Epoch(window) | WindowNumbers::FirstHit(window),
            ..
        }
        | Numbers::SlidingCounter { window, .. }
        | Numbers::Log { window, .. } => told.push("window_ms", json!(millis(window))),
        Numbers::Concurrency { max_hold, .. } => {
            told.push("max_hold_ms", json!(millis(max_hold)));
            if let Limit::Concurrency(slots) = limit {
                told.push("queue", json!(slots.queue()));
            }
        }
        // For ever, or as the calendar has it.
        _ => {}
    }
    told.push("overrides", json!(named.overrides.len()));
    told
}
