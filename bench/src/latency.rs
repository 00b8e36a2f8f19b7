//! Single calls, the slowest of them too: while a table fills, and while it gives the places of idle keys to new ones.
//!
//! Every call is timed by itself with the processor's counter, which adds some ten nanoseconds to each. Governor does not
//! clean by itself: its users call `retain_recent` now and then, here every hundred thousandth new key, and the request
//! that does so pays.

use crate::{
    effort::{Effort, short},
    measure::{Pair, kept},
    report::Report,
    subject::{Identity, Load, our_table, units},
};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::{hint::black_box, thread, time::Duration};
use tollgate::{KeyedLimiter, Rate, TokenBucket};

const REFILL: Duration = Duration::from_secs(1);
const SHARES: [(&str, f64); 5] =
    [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999), ("max", 1.0)];
/// A refilled bucket is idle for us; governor's `retain_recent` keeps it for as long again.
const IDLE_AFTER: Duration = Duration::from_millis(2_100);
/// How many times a key count `retain_recent` is called.
const CLEANINGS: usize = 10;

pub(crate) fn run(report: &mut Report, effort: &Effort) {
    let keys = effort.usual();
    let fills = effort.fills;
    let names = |what: &str| {
        SHARES.map(|(share, _)| format!("{what} {} String keys, {share}, governor", short(keys)))
    };

    let filling = names("one call while filling with");
    if report.wants_any(&filling) {
        let new: Vec<String> = (0..keys as u64).map(String::of).collect();
        let fill = |_| (fill_ours(&new), fill_governors(&new));
        add(report, &filling, (0..fills).map(fill).collect());
    }
    let cleaning = names("one call while cleaning");
    if report.wants_any(&cleaning) {
        let old: Vec<String> = (0..keys as u64).map(String::of).collect();
        let new: Vec<String> = (keys as u64..2 * keys as u64).map(String::of).collect();
        let clean = |_| (clean_ours(&old, &new), clean_governors(&old, &new));
        add(report, &cleaning, (0..fills).map(clean).collect());
    }
}

/// A row for each share: the median of the rounds.
fn add(report: &mut Report, names: &[String], rounds: Vec<(Calls, Calls)>) {
    for (name, (_, share)) in names.iter().zip(SHARES) {
        let pairs: Vec<(f64, f64)> =
            rounds.iter().map(|(ours, peer)| (ours.share(share), peer.share(share))).collect();
        if report.wants(name) {
            report.compare(name, "ns", Pair::of(&pairs), None);
        }
    }
}

fn fill_ours(new: &[String]) -> Calls {
    let limiter = our_table(Load::Allow.limit(), new.len());
    Calls::time(new, |_, key| kept(limiter.check_n(key, 1_000)).is_allow())
}

fn fill_governors(new: &[String]) -> Calls {
    let limiter = RateLimiter::keyed(Load::Allow.quota());
    let use_up = units(1_000);
    let calls = Calls::time(new, |_, key| kept(limiter.check_key_n(key, use_up)).is_ok());
    assert_eq!(limiter.len(), new.len());
    calls
}

fn clean_ours(old: &[String], new: &[String]) -> Calls {
    let limit = TokenBucket::new(Rate::new(1, REFILL).expect("a rate"), 1).expect("a limit");
    let limiter: KeyedLimiter = our_table(limit, old.len());
    assert!(old.iter().all(|key| limiter.check(key).is_allow()));
    let evicted = limiter.evictions();
    thread::sleep(IDLE_AFTER);
    let calls = Calls::time(new, |_, key| kept(limiter.check(key)).is_allow());
    let evicted = limiter.evictions() - evicted;
    assert!(
        evicted < new.len() as u64 / 100,
        "{evicted} live keys were evicted where idle ones were at hand"
    );
    calls
}

fn clean_governors(old: &[String], new: &[String]) -> Calls {
    let quota = Quota::with_period(REFILL).expect("a period").allow_burst(units(1));
    let limiter: DefaultKeyedRateLimiter<String> = RateLimiter::keyed(quota);
    assert!(old.iter().all(|key| limiter.check_key(key).is_ok()));
    assert_eq!(limiter.len(), old.len());
    thread::sleep(IDLE_AFTER);
    let every = new.len() / CLEANINGS;
    let calls = Calls::time(new, |index, key| {
        if index % every == every - 1 {
            limiter.retain_recent();
        }
        kept(limiter.check_key(key)).is_ok()
    });
    assert!(limiter.len() <= new.len(), "the old keys are still there");
    calls
}

/// How long each call took, shortest first, in nanoseconds.
struct Calls(Vec<u64>);

impl Calls {
    fn time(keys: &[String], mut call: impl FnMut(usize, &String) -> bool) -> Self {
        let clock = quanta::Clock::new();
        // Written to beforehand, so that no call pays for the record's pages.
        let mut ticks = black_box(vec![u64::MAX; keys.len()]);
        let mut allowed = 0;
        for (index, key) in keys.iter().enumerate() {
            let begun = clock.raw();
            allowed += usize::from(call(index, key));
            ticks[index] = clock.raw() - begun;
        }
        Load::Allow.must_fit(allowed, keys.len());
        for tick in &mut ticks {
            *tick = clock.delta_as_nanos(0, *tick);
        }
        ticks.sort_unstable();
        Self(ticks)
    }

    fn share(&self, share: f64) -> f64 {
        let index = (self.0.len() as f64 * share).ceil() as usize;
        self.0[index.clamp(1, self.0.len()) - 1].max(1) as f64
    }
}
