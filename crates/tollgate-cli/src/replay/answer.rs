//! A line of output.

use crate::words;
use serde::Serialize;
use std::time::Duration;
use tollgate::{Decision, SetStatus, Status};

#[derive(Serialize)]
pub(super) struct Answer {
    at_us: u64,
    #[serde(flatten)]
    body: Body,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Body {
    Decided(Standing),
    DecidedSet {
        #[serde(flatten)]
        whole: Standing,
        denied_by: Option<usize>,
        statuses: Vec<Standing>,
    },
    Done {
        decision: &'static str,
    },
}

/// How a charge, or a whole set of them, stands.
#[derive(Serialize)]
pub(super) struct Standing {
    decision: &'static str,
    wait_us: u128,
    remaining: u32,
    retry_after_us: Option<u128>,
    reset_after_us: Option<u128>,
}

impl Answer {
    /// There was nothing to decide.
    pub(super) const fn ok(at_us: u64) -> Self {
        Self { at_us, body: Body::Done { decision: "ok" } }
    }

    /// One status stands for itself; several are shown under what they come to.
    pub(super) fn decided(at_us: u64, set: &SetStatus) -> Self {
        let body = match set.statuses() {
            [only] => Body::Decided(Standing::of(only)),
            statuses => Body::DecidedSet {
                whole: Standing::of_set(set),
                denied_by: set.denied_by(),
                statuses: statuses.iter().map(Standing::of).collect(),
            },
        };
        Self { at_us, body }
    }
}

impl Standing {
    pub(super) fn of(status: &Status) -> Self {
        Self::new(status.decision(), status.remaining(), status.reset_after())
    }

    /// The least that remains, and the longest until all is reset; never, if one never is.
    fn of_set(set: &SetStatus) -> Self {
        let statuses = set.statuses();
        let remaining = statuses.iter().map(Status::remaining).min().unwrap_or(0);
        let resets: Option<Vec<Duration>> = statuses.iter().map(Status::reset_after).collect();
        Self::new(
            set.decision(),
            remaining,
            resets.map(|resets| resets.into_iter().max().unwrap_or_default()),
        )
    }

    fn new(decision: Decision, remaining: u32, reset_after: Option<Duration>) -> Self {
        let (word, wait, retry_after) = words::decision(decision);
        Self {
            decision: word,
            wait_us: wait.as_micros(),
            remaining,
            retry_after_us: retry_after.map(|after| after.as_micros()),
            reset_after_us: reset_after.map(|after| after.as_micros()),
        }
    }
}
