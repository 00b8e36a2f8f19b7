//! The contest: each algorithm decides every request, and what became of it is kept.

use super::traffic::GROUPS;
use anyhow::{Result, bail};
use std::time::Duration;
use tollgate::{Bounds, Charge, Clock, Decision, Limit, ManualClock, MemoryStore, PermitId, SetStatus, Time};
use tollgate_rules::{ParsedLimit, parse_limit};

/// One of each, all at 10 a second in the long run; two slots held for [`HELD`] come to that as well.
const LIMITS: [&str; 9] = [
    "token_bucket: { rate: 10/s, burst: 5 }",
    "leaky_bucket: { rate: 10/s, capacity: 5, delay: 2 }",
    "smooth_bursty: { rate: 10/s }",
    "smooth_warming_up: { rate: 10/s, warmup: 1s }",
    "fixed_window: { limit: 10, window: 1s }",
    "sliding_log: { limit: 10, window: 1s }",
    "sliding_window: { limit: 10, window: 1s, precision: 100ms }",
    "sliding_counter: { limit: 10, window: 1s }",
    "concurrency: { limit: 2 }",
];

/// How long a request waits for its turn, where the limit can book one.
const PATIENCE: Duration = Duration::from_millis(300);

/// How long a request keeps its slot.
const HELD: Duration = Duration::from_millis(200);

/// How one algorithm decided.
pub(super) struct Entrant {
    pub(super) name: &'static str,
    /// One for each request, in order.
    pub(super) fates: Vec<Fate>,
}

/// What became of a request, and when it started.
#[derive(Clone, Copy)]
pub(super) enum Fate {
    Passed(Time),
    Waited(Time),
    Refused,
}

impl Fate {
    pub(super) const fn started(self) -> Option<Time> {
        match self {
            Self::Passed(at) | Self::Waited(at) => Some(at),
            Self::Refused => None,
        }
    }
}

/// Lets every algorithm decide every request.
pub(super) fn hold() -> Result<Vec<Entrant>> {
    LIMITS.iter().map(|text| enter(text)).collect()
}

fn enter(text: &str) -> Result<Entrant> {
    let ParsedLimit::Limit(limit) = parse_limit(text)? else { bail!("{text} is not a charge") };
    let name = limit.name();
    let store = MemoryStore::with_clock(Bounds { max_keys: 1, ..Bounds::default() }, ManualClock::new());
    let handle = store.add("limit", limit.clone())?;
    let charge = match limit {
        // The bucket's own delay says how long.
        Limit::LeakyBucket(_) => Charge::new(&handle, ()),
        _ => Charge::new(&handle, ()).up_to(PATIENCE),
    };

    let mut inside: Vec<(Time, PermitId)> = Vec::new();
    let mut fates = Vec::new();
    for at in GROUPS.iter().flat_map(super::traffic::Group::times) {
        for (leaves, permit) in inside.extract_if(.., |(leaves, _)| *leaves <= at) {
            store.clock().set(leaves);
            store.leave(&[charge], permit)?;
        }
        store.clock().set(at);
        let set = store.check(&[charge])?;
        inside.extend(set.permit().map(|permit| (store.clock().now() + HELD, permit)));
        fates.push(fate(&set, at));
    }
    Ok(Entrant { name, fates })
}

fn fate(set: &SetStatus, at: Time) -> Fate {
    match set.decision() {
        Decision::Allow => Fate::Passed(at),
        Decision::Wait(wait) => Fate::Waited(at + wait),
        Decision::Deny(_) => Fate::Refused,
    }
}
