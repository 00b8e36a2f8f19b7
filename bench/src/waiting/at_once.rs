//! Waiting where there is room: one task, which never sleeps.

use super::turns::{Outcome, Turns};
use crate::{
    effort::Effort,
    measure::{alternate, count, kept, nanos_a_call},
    report::Report,
    subject::{Load, governors_bucket, our_bucket},
};
use std::{hint::black_box, time::Duration};
use tokio::runtime::{Builder, Runtime};

const LEAKY_BUCKET: &str = "turn at once, wait(), 1 task, leaky-bucket's acquire_one()";
const GOVERNOR: &str = "turn at once, wait(), 1 task, governor's until_ready()";
const CHECK: &str = "turn at once, wait(), 1 task, our check()";
const BLOCKING: &str = "turn at once, wait().blocking(), 1 thr, our check()";

pub(super) fn run(report: &mut Report, effort: &Effort) {
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    let (ours, calls) = (our_bucket(Load::Allow), effort.direct_calls);
    let nanos = |work: &(dyn Fn() -> usize + Sync)| nanos_a_call(1, calls, Load::Allow, |_| work());
    let mut versus = |name: &str, ours: &(dyn Fn() -> usize + Sync), peer: &(dyn Fn() -> usize + Sync)| {
        if report.wants(name) {
            let pair = alternate(effort.rounds, |_| nanos(ours), |_| nanos(peer));
            report.compare(name, "ns/call", pair, None);
        }
    };
    let leaky_bucket = leaky_bucket::RateLimiter::builder()
        .max(1_000_000_000)
        .initial(1_000_000_000)
        .refill(1)
        .interval(Duration::from_millis(100))
        .build();
    let governor = governors_bucket(Load::Allow);
    let wait = || one_task(&runtime, calls, &ours);
    let check = || count(calls, |_| kept(ours.check()).is_allow());
    versus(LEAKY_BUCKET, &wait, &|| one_task(&runtime, calls, &leaky_bucket));
    versus(GOVERNOR, &wait, &|| one_task(&runtime, calls, &governor));
    versus(CHECK, &wait, &check);
    versus(BLOCKING, &|| count(calls, |_| kept(ours.wait().blocking()).is_ok()), &check);
}

fn one_task(runtime: &Runtime, calls: usize, limiter: &impl Turns) -> usize {
    runtime.block_on(async {
        let mut granted = 0;
        for _ in 0..calls {
            granted += usize::from(kept(limiter.turn().await).is_granted());
        }
        black_box(granted)
    })
}
