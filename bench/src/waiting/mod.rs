//! Waiting for a turn, next to leaky-bucket's `acquire_one` and governor's `until_ready`.
//!
//! - [`at_once`]: what it costs to wait where there is room and nobody waits.
//! - [`crowd`]: many tasks that want more than the rate, without and with half of their waits given up: how much of it they
//!   get, at what cost, how evenly, and whether the bound holds.
//! - [`ahead`]: many tasks whose turns lie far ahead: what they cost while nothing happens.
//! - [`giving_up`]: waits that are dropped before their turn.
//!
//! All sides wait on the same tokio runtime. leaky-bucket sleeps by tokio's timer, as ours does; governor by a thread of
//! the crate futures-timer, whose processor time is counted too. leaky-bucket is fair, which is its default.

pub(crate) mod ahead;
mod at_once;
pub(crate) mod crowd;
mod giving_up;
mod turns;

use crate::{effort::Effort, report::Report};

pub(crate) fn run(report: &mut Report, effort: &Effort) {
    at_once::run(report, effort);
    crowd::run(report, effort);
    ahead::run(report, effort);
    giving_up::run(report, effort);
}
