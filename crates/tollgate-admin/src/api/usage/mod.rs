//! Usage by rule over time: `/v1/usage`.
//!
//! Once a second the counters are read, and what was added since goes into three rings: seconds for five minutes, tens of
//! seconds for an hour, five minutes for a day. A request pays nothing for it. A step holds the rows that had traffic and
//! nothing for the others.
//!
//! **Memory.** A step holds at most the [`ROWS`] busiest rows and its total, whatever there is; the rest counts in the total
//! alone. 948 steps of 256 rows of 20 bytes are 4.9 MB at most, and names of 10,000 rows some 1 MB more.

mod names;
mod ring;

use crate::Meters;
use names::{Name, Names};
use ring::{Ring, Row};
use serde_json::{Map, Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Rows that one step holds.
const ROWS: usize = 256;
/// Rows that one answer holds.
const TOLD: usize = 200;
/// Rules that one event of a second names.
const IN_EVENT: usize = 50;

/// What was counted, over time. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Usage(Arc<Mutex<History>>);

struct History {
    names: Names,
    rings: [Ring; 3],
}

/// What became of requests: passed, delayed, refused; and of those that passed, how many a shadow rule would have refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u32,
    pub(crate) delayed: u32,
    pub(crate) refused: u32,
    pub(crate) shadow: u32,
}

impl Default for History {
    fn default() -> Self {
        Self { names: Names::default(), rings: [Ring::new(1, 300), Ring::new(10, 360), Ring::new(300, 288)] }
    }
}

impl Usage {
    /// The longest time that is kept, in seconds.
    pub(crate) const LONGEST: u64 = 86_400;

    /// Reads the counters; what was added belongs to the second before `now_ms`. Gives that second, as it is told live.
    pub(crate) fn sample(&self, meters: &Meters, now_ms: u64) -> Value {
        let mut history = self.hold();
        let (rows, total) = history.names.added(meters);
        let second = (now_ms / 1000).saturating_sub(1);
        for ring in &mut history.rings {
            ring.add(second, &rows, total);
        }
        let mut busiest: Vec<&Row> = rows.iter().collect();
        busiest.sort_unstable_by_key(|row| std::cmp::Reverse(row.counts.sum()));
        busiest.truncate(IN_EVENT);
        let rules = busiest.into_iter().filter_map(|row| {
            let mut told = history.names.get(row.name)?.told();
            told.extend(row.counts.told());
            Some(told)
        });
        let mut told = total.told();
        told.insert("at_ms".to_owned(), json!(second * 1000));
        told.insert("rules".to_owned(), rules.collect());
        let told = Value::Object(told);
        let History { names, rings } = &mut *history;
        names.forget(|name| rings.iter().any(|ring| ring.has(name)));
        told
    }

    /// The last so many seconds.
    pub(crate) fn told(&self, last: u64, now_ms: u64) -> Value {
        let history = self.hold();
        let [seconds, tens, fives] = &history.rings;
        let ring = match last {
            0..=300 => seconds,
            301..=3600 => tens,
            _ => fives,
        };
        let (first, steps) = ring.span(last, now_ms / 1000);
        let mut rows: HashMap<u32, Vec<Counts>> = HashMap::new();
        let mut total = vec![Counts::default(); steps];
        for (place, step) in ring.between(first, steps) {
            total[place] = step.total;
            for row in &step.rows {
                rows.entry(row.name).or_insert_with(|| vec![Counts::default(); steps])[place] = row.counts;
            }
        }
        let mut rows: Vec<_> =
            rows.into_iter().map(|(name, counts)| (weight(&counts), name, counts)).collect();
        rows.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let left_out = rows.len().saturating_sub(TOLD);
        rows.truncate(TOLD);
        let rows = rows.into_iter().filter_map(|(_, name, counts)| {
            let mut told = history.names.get(name)?.told();
            told.extend(series(&counts));
            Some(told)
        });
        let mut total = series(&total);
        total.remove("shadow");
        json!({
            "step_ms": ring.step * 1000,
            "from_ms": first * ring.step * 1000,
            "rules": rows.collect::<Vec<_>>(),
            "left_out": left_out,
            "total": total,
        })
    }

    fn hold(&self) -> MutexGuard<'_, History> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn weight(counts: &[Counts]) -> u64 {
    counts.iter().map(Counts::sum).sum()
}

/// One list a kind, oldest first; what shadow rules said only where they said something.
fn series(counts: &[Counts]) -> Map<String, Value> {
    let of = |get: fn(&Counts) -> u32| counts.iter().map(get).collect::<Vec<_>>();
    let mut told = Map::new();
    told.insert("passed".to_owned(), json!(of(|it| it.passed)));
    told.insert("delayed".to_owned(), json!(of(|it| it.delayed)));
    told.insert("refused".to_owned(), json!(of(|it| it.refused)));
    if counts.iter().any(|it| it.shadow > 0) {
        told.insert("shadow".to_owned(), json!(of(|it| it.shadow)));
    }
    told
}

impl Counts {
    fn sum(&self) -> u64 {
        u64::from(self.passed) + u64::from(self.delayed) + u64::from(self.refused)
    }

    fn add(&mut self, other: Self) {
        let Self { passed, delayed, refused, shadow } = other;
        self.passed = self.passed.saturating_add(passed);
        self.delayed = self.delayed.saturating_add(delayed);
        self.refused = self.refused.saturating_add(refused);
        self.shadow = self.shadow.saturating_add(shadow);
    }

    fn told(&self) -> Map<String, Value> {
        let counts = [("passed", self.passed), ("delayed", self.delayed), ("refused", self.refused)];
        counts.into_iter().map(|(name, count)| (name.to_owned(), json!(count))).collect()
    }
}

impl Name {
    /// Whose counts these are; a rule of every route has no route.
    fn told(&self) -> Map<String, Value> {
        let pairs = match self {
            Self::Rule { route, rule } => {
                let route = if &**route == "*" { Value::Null } else { json!(route) };
                [("route", route), ("rule", json!(rule))].to_vec()
            }
            Self::Answer { door, limit } => {
                let nothing = [("route", Value::Null), ("rule", Value::Null)];
                [&nothing[..], &[("door", json!(door)), ("limit", json!(limit))]].concat()
            }
        };
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;

    const NOON: u64 = 1_700_000_000_000;

    #[test]
    fn what_was_counted_is_told_second_by_second_and_shadows_count_as_passed() {
        let (usage, meters) = (Usage::default(), Meters::new());
        let create = meters.rule("orders", "create");
        let (ruled, everywhere) = (meters.ruled(), meters.rule("*", "per-ip"));
        let asked = meters.answers("resp", "per-client");
        usage.sample(&meters, NOON + 1000);
        for outcome in [Outcome::Allow, Outcome::Reject, Outcome::Divert, Outcome::Shadow, Outcome::Wait] {
            create.count(outcome);
            ruled.count(outcome);
        }
        asked.count(Outcome::Reject);
        let second = usage.sample(&meters, NOON + 2000);
        assert_eq!(second["at_ms"], NOON + 1000);
        assert_eq!(
            (&second["passed"], &second["delayed"], &second["refused"]),
            (&json!(2), &json!(1), &json!(3))
        );
        everywhere.count(Outcome::Skip);
        ruled.count(Outcome::Skip);
        usage.sample(&meters, NOON + 4000);

        let told = usage.told(4, NOON + 4000);
        assert_eq!(
            told,
            json!({
                "step_ms": 1000, "from_ms": NOON, "left_out": 0,
                "total": { "passed": [0, 2, 0, 1], "delayed": [0, 1, 0, 0], "refused": [0, 3, 0, 0] },
                "rules": [
                    { "route": "orders", "rule": "create", "passed": [0, 2, 0, 0], "delayed": [0, 1, 0, 0],
                      "refused": [0, 2, 0, 0], "shadow": [0, 1, 0, 0] },
                    { "route": null, "rule": "per-ip", "passed": [0, 0, 0, 1], "delayed": [0, 0, 0, 0],
                      "refused": [0, 0, 0, 0] },
                    { "route": null, "rule": null, "door": "resp", "limit": "per-client",
                      "passed": [0, 0, 0, 0], "delayed": [0, 0, 0, 0], "refused": [0, 1, 0, 0] },
                ],
            })
        );
        let hour = usage.told(3600, NOON + 4000);
        assert_eq!(
            (&hour["step_ms"], hour["total"]["refused"].as_array().map(Vec::len)),
            (&json!(10_000), Some(360))
        );
        assert_eq!(hour["total"]["refused"][359], 3);
        let day = usage.told(86_400, NOON + 4000);
        assert_eq!((&day["step_ms"], &day["total"]["passed"][287]), (&json!(300_000), &json!(3)));
    }

    /// As many rules as somebody cares to write, busy all day, take the memory that is stated and no more.
    #[test]
    fn memory_is_bounded_whatever_is_counted() {
        let (usage, meters) = (Usage::default(), Meters::new());
        let rules: Vec<_> = (0..2 * ROWS).map(|rule| meters.rule("r", &rule.to_string())).collect();
        for second in 0..400 {
            rules.iter().for_each(|rule| rule.count(Outcome::Allow));
            usage.sample(&meters, NOON + second * 1000);
        }
        let history = usage.hold();
        let bytes: usize = history.rings.iter().map(Ring::bytes).sum();
        assert!(bytes < 5_000_000, "{bytes}");
        let [seconds, ..] = &history.rings;
        assert_eq!(seconds.rows(), 300 * ROWS, "full, and no fuller");
        assert_eq!(size_of::<Row>(), 20);
        drop(history);
        // A second tells every rule's share in its total all the same.
        let told = usage.told(1, NOON + 399_000);
        assert_eq!(told["rules"].as_array().map(Vec::len), Some(TOLD));
    }

    #[test]
    fn rules_that_are_gone_are_forgotten_with_their_last_step() {
        let (usage, meters) = (Usage::default(), Meters::new());
        let old = meters.rule("r", "old");
        usage.sample(&meters, NOON);
        old.count(Outcome::Allow);
        usage.sample(&meters, NOON + 1000);
        assert_eq!(usage.told(10, NOON + 1000)["rules"][0]["rule"], "old");
        drop(old);
        for second in 0..90_000 / 10 {
            usage.sample(&meters, NOON + 2000 + second * 10_000);
        }
        assert_eq!(usage.told(86_400, NOON + 90_000_000)["rules"], json!([]));
    }
}
