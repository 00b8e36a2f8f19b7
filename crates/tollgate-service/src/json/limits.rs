//! What can be asked for by name.

use super::{answer::millis, reply::Reply};
use http::StatusCode;
use serde::Serialize;
use tollgate::{Limit, Numbers, Store, WindowNumbers};
use tollgate_rules::{decision::RuleSnapshot, model::NamedLimit};

#[derive(Serialize)]
struct Limits<'a> {
    limits: Vec<LimitReport<'a>>,
}

/// A limit, with the numbers that its algorithm has.
#[derive(Serialize)]
struct LimitReport<'a> {
    name: &'a str,
    algorithm: &'static str,
    limit: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_hold_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<u32>,
    overrides: usize,
}

/// The limits of the rule file, with their numbers.
pub(super) fn list<S: Store>(rules: &RuleSnapshot<S>) -> Reply {
    let limits = rules.program().file().limits.iter().map(LimitReport::of).collect();
    // Every name is text.
    Reply::json(StatusCode::OK, serde_json::to_string(&Limits { limits }).unwrap_or_default())
}

impl<'a> LimitReport<'a> {
    fn of(named: &'a NamedLimit) -> Self {
        let limit = &named.limit;
        let mut report = Self {
            name: &named.name,
            algorithm: limit.name(),
            limit: limit.most(),
            per_second: None,
            window_ms: None,
            max_hold_ms: None,
            queue: None,
            overrides: named.overrides.len(),
        };
        match limit.numbers() {
            Numbers::Bucket(bucket) => {
                report.per_second = Some(bucket.earn as f64 * 1e9 / bucket.price as f64);
            }
            Numbers::Interval { amount, period, .. } => {
                report.per_second = Some(amount as f64 / period.as_secs_f64());
            }
            Numbers::Smooth(_, smooth) => report.per_second = Some(1e6 / smooth.stable),
            Numbers::FixedWindow {
                windows: WindowNumbers::Epoch(window) | WindowNumbers::FirstHit(window),
                ..
            }
            | Numbers::SlidingCounter { window, .. }
            | Numbers::Log { window, .. } => report.window_ms = Some(millis(window)),
            Numbers::Concurrency { max_hold, .. } => {
                report.max_hold_ms = Some(millis(max_hold));
                if let Limit::Concurrency(slots) = limit {
                    report.queue = Some(slots.queue());
                }
            }
            // For ever, or as the calendar has it.
            _ => {}
        }
        report
    }
}
