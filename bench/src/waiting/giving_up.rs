//! Waits that are dropped before their turn, in no order, of a thousand that were begun.
//!
//! The turns are an hour apart. The waits are polled by hand, with a waker that does nothing, in a runtime that does not
//! run: what is timed is the drop, with its allocation. Where one comes for each that gives up, both are.

use super::turns::{Numbers, Patient, Turns, full_log};
use crate::{
    effort::{Effort, short},
    measure::alternate,
    report::Report,
    subject::Random,
};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Waker},
    time::{Duration, Instant},
};
use tokio::runtime::Builder;

const WAITS: usize = 1_000;
const HOUR: Duration = Duration::from_secs(3_600);
const NUMBERS: Numbers = Numbers { rate: 1, per: HOUR, burst: 1 };
/// Further than anybody's turn.
const PATIENCE: Duration = Duration::from_secs(365 * 86_400);

pub(super) fn run(report: &mut Report, effort: &Effort) {
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    // Where sleeping tasks find their timer.
    let _runtime = runtime.enter();
    let mut bench = Bench { report, rounds: effort.rounds };
    let at_log_by = Patient { limiter: full_log(NUMBERS), up_to: PATIENCE };
    bench.versus("at a bucket", &NUMBERS.ours());
    bench.versus("at a log", &full_log(NUMBERS));
    bench.versus("at a log by a deadline", &at_log_by);
}

struct Bench<'a> {
    report: &'a mut Report,
    rounds: usize,
}

impl Bench<'_> {
    fn versus(&mut self, what: &str, ours: &impl Turns) {
        let leaky_bucket = NUMBERS.leaky_buckets(NUMBERS.per);
        let drops = format!("turns given up, {} {what}, leaky-bucket", short(WAITS));
        if self.report.wants(&drops) {
            let pair = alternate(self.rounds, |_| give_up(ours), |_| give_up(&leaky_bucket));
            self.report.compare(&drops, "ns/drop", pair, None);
        }
        let churn = format!("turns given up and taken, {} {what}, leaky-bucket", short(WAITS));
        if self.report.wants(&churn) {
            let pair = alternate(self.rounds, |_| come_and_go(ours), |_| come_and_go(&leaky_bucket));
            self.report.compare(&churn, "ns/both", pair, None);
        }
    }
}

/// Nanoseconds a drop.
fn give_up(limiter: &impl Turns) -> f64 {
    let mut waits: Vec<_> = (0..WAITS).map(|_| begun(limiter)).collect();
    let mut random = Random(0x7011_6a7e);
    for last in (1..WAITS).rev() {
        waits.swap(last, random.below(last + 1));
    }
    let begun = Instant::now();
    drop(waits);
    begun.elapsed().as_nanos() as f64 / WAITS as f64
}

/// Nanoseconds for one that is dropped and one that comes instead.
fn come_and_go(limiter: &impl Turns) -> f64 {
    let mut waits: Vec<_> = (0..WAITS).map(|_| begun(limiter)).collect();
    let mut random = Random(0x7011_6a7e);
    let times = WAITS / 10;
    let clock = Instant::now();
    for _ in 0..times {
        drop(waits.swap_remove(random.below(waits.len())));
        waits.push(begun(limiter));
    }
    clock.elapsed().as_nanos() as f64 / times as f64
}

/// A wait that has taken its place.
fn begun<T: Turns>(limiter: &T) -> Pin<Box<impl Future + use<'_, T>>> {
    let mut wait = Box::pin(limiter.turn());
    let is_pending = wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
    assert!(is_pending, "a turn that is hours away has come");
    wait
}
