//! Many more distinct keys than the table has room for: memory must stand still, and so must the cost of a check.
//!
//! Once with keys that are idle again in a tenth of a second, as an address scan's are, and once with keys that stay live
//! for an hour, so that every new one has to evict. In a child, for its memory's sake.

use crate::{
    child::{self, resident_bytes},
    effort::{Effort, short},
    measure::{Pair, count, kept},
    report::Report,
    subject::our_table,
};
use std::{ops::Range, time::Instant};
use tollgate::{KeyedLimiter, Rate, TokenBucket};

pub(crate) const CHILD: &str = "flood";

const IDLE: &str = "soon idle";
const LIVE: &str = "live";
/// Floods are this many times the table.
const TIMES: usize = 100;

pub(crate) fn run(report: &mut Report, effort: &Effort) {
    let table = effort.flood / TIMES;
    for (subject, flood) in [(IDLE, effort.flood), (LIVE, effort.flood / 10)] {
        let name = |what: &str| {
            format!("flood of {} {subject} u64 keys, room for {}, {what}", short(flood), short(table))
        };
        let memory = name("bytes after next to bytes when full");
        let middle = name("middle next to first checks past full");
        let last = name("last next to first checks past full");
        if !report.wants_any([&memory, &middle, &last]) {
            continue;
        }
        let figures = child::run(CHILD, subject, flood);
        let [full, after, first, at_middle, at_last] = figures[..] else {
            panic!("a flood has five figures")
        };
        let pair = |ours: f64, peer: f64| Pair { ours, peer, ratio: ours / peer };
        report.compare(&memory, "bytes", pair(after, full), None);
        report.compare(&middle, "ns/call", pair(at_middle, first), None);
        report.compare(&last, "ns/call", pair(at_last, first), None);
    }
}

/// In the child: resident bytes when full and at the end; nanoseconds a check in the first, the middle and the last
/// stretch of the flood after the table was full.
pub(crate) fn child(subject: &str, flood: usize) -> Vec<f64> {
    let (rate, table) = match subject {
        IDLE => (Rate::per_second(10), flood / TIMES),
        _ => (Rate::per_hour(1), flood / (TIMES / 10)),
    };
    let limit = TokenBucket::new(rate.expect("a rate"), 1).expect("a limit");
    let limiter = our_table(limit, table);
    let mut at = 0;
    let mut stretch = |keys: usize| {
        let nanos = enter(&limiter, at..at + keys);
        at += keys;
        nanos
    };
    stretch(table);
    let full = resident_bytes();
    let between = (flood - 4 * table) / 2;
    let first = stretch(table);
    stretch(between);
    let middle = stretch(table);
    stretch(between);
    let last = stretch(table);
    vec![full, resident_bytes(), first, middle, last]
}

fn enter(limiter: &KeyedLimiter, ids: Range<usize>) -> f64 {
    let keys = ids.len();
    let begun = Instant::now();
    let allowed = count(keys, |index| kept(limiter.check((ids.start + index) as u64)).is_allow());
    let nanos = begun.elapsed().as_nanos() as f64 / keys as f64;
    assert_eq!(allowed, keys, "a key never seen before was refused");
    nanos
}
