//! Resident bytes a key, each subject in a fresh process.
//!
//! Keys are made as they are entered and dropped at once, so that only what the limiter keeps is counted: a fingerprint
//! and the state on our side, the text and the state in a hash map on governor's.

use crate::{
    child::{self, resident_bytes},
    effort::{Effort, short},
    measure::Pair,
    report::{Report, Target},
    subject::{Identity, our_table, units},
};
use governor::{Quota, RateLimiter};
use std::time::Duration;
use tollgate::{FixedWindow, Limit, Rate, SlidingCounter, SmoothBursty, TokenBucket};

pub(crate) const CHILD: &str = "memory";

const GOVERNOR: &str = "governor";
const BURST: u32 = 1_000;
const HOUR: Duration = Duration::from_secs(3_600);

/// Our subjects, and the most bytes a key each may take.
const OURS: [(&str, f64); 5] = [
    ("one-word token_bucket", 24.0),
    ("wide token_bucket", 40.0),
    ("sliding_counter", 40.0),
    ("fixed_window", 40.0),
    ("smooth_bursty", 40.0),
];

pub(crate) fn run(report: &mut Report, effort: &Effort) {
    let keys = effort.usual();
    let mut governor = None;
    for (subject, most) in OURS {
        let name = format!("memory at {} String keys, {subject}, governor", short(keys));
        if report.wants(&name) {
            let peer = *governor.get_or_insert_with(|| child::run(CHILD, GOVERNOR, keys)[0]);
            let ours = child::run(CHILD, subject, keys)[0];
            report.compare(
                &name,
                "bytes/key",
                Pair { ours, peer, ratio: ours / peer },
                Some(Target::Ours(most)),
            );
        }
    }
}

/// In the child: bytes a key.
pub(crate) fn child(subject: &str, keys: usize) -> Vec<f64> {
    // Once with a handful of keys first: code and the allocator's own pages come in then. In a table that small, keys
    // meet in all of their buckets now and then, so evictions there say nothing.
    fill(subject, 16);
    let before = resident_bytes();
    let filled = fill(subject, keys);
    let after = resident_bytes();
    assert!(filled.evictions <= keys as u64 / 100, "{} of {keys} keys were evicted", filled.evictions);
    drop(filled);
    vec![(after - before) / keys as f64]
}

/// A limiter of either side, kept alive while memory is read.
struct Filled {
    evictions: u64,
    _limiter: Box<dyn std::any::Any>,
}

fn fill(subject: &str, keys: usize) -> Filled {
    if subject == GOVERNOR {
        let quota = Quota::per_second(units(10)).allow_burst(units(BURST));
        let limiter = RateLimiter::<String, _, _>::keyed(quota);
        for id in 0..keys as u64 {
            assert!(matches!(limiter.check_key_n(&String::of(id), units(BURST)), Ok(Ok(()))));
        }
        assert_eq!(limiter.len(), keys);
        return Filled { evictions: 0, _limiter: Box::new(limiter) };
    }
    let limiter = our_table(limit(subject), keys);
    for id in 0..keys as u64 {
        assert!(!limiter.check(&String::of(id)).is_deny());
    }
    Filled { evictions: limiter.evictions(), _limiter: Box::new(limiter) }
}

fn limit(subject: &str) -> Limit {
    let rate = |amount| Rate::per_second(amount).expect("a rate");
    match subject {
        "one-word token_bucket" => TokenBucket::new(rate(10), BURST).expect("a limit").into(),
        // A prime rate near 10^9 has lowest terms too large for one word.
        "wide token_bucket" => TokenBucket::new(rate(999_999_937), BURST).expect("a limit").into(),
        "sliding_counter" => SlidingCounter::new(BURST, HOUR).expect("a limit").into(),
        "fixed_window" => FixedWindow::new(BURST, HOUR).expect("a limit").into(),
        "smooth_bursty" => SmoothBursty::new(rate(10)).into(),
        _ => panic!("no subject is called {subject}"),
    }
}
