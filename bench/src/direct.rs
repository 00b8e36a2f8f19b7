//! One bucket: `check()` and `check_at()`, on one thread and on two.
//!
//! Our `check_at` takes the caller's time, which a server reads once a request; governor has no such call, so it stands
//! next to governor's `check()`.

use crate::{
    effort::Effort,
    measure::{alternate, count, kept, nanos_a_call},
    report::{Report, Target},
    subject::{Load, governors_bucket, our_bucket},
};
use governor::{RateLimiter, middleware::StateInformationMiddleware};
use std::{hint::black_box, time::Duration};
use tollgate::{Clock, Time};

pub(crate) fn run(report: &mut Report, effort: &Effort) {
    for load in Load::BOTH {
        check(report, effort, load);
        check_at(report, effort, load);
        yes_or_no(report, effort, load);
        remaining(report, effort, load);
        leaky_bucket(report, effort, load);
        ratelimit(report, effort, load);
    }
}

/// A comparison of two loops over so many calls, each returning how many were allowed.
struct Versus<'a> {
    name: &'a str,
    threads: usize,
    load: Load,
    target: Option<Target>,
}

impl Versus<'_> {
    fn run(
        self,
        report: &mut Report,
        effort: &Effort,
        ours: impl Fn(usize) -> usize + Sync,
        peer: impl Fn(usize) -> usize + Sync,
    ) {
        if !report.wants(self.name) {
            return;
        }
        let calls = effort.direct_calls / self.threads;
        let pair = alternate(
            effort.rounds,
            |_| nanos_a_call(self.threads, calls, self.load, |_| ours(calls)),
            |_| nanos_a_call(self.threads, calls, self.load, |_| peer(calls)),
        );
        report.compare(self.name, "ns/call", pair, self.target);
    }
}

fn check(report: &mut Report, effort: &Effort, load: Load) {
    let (ours, governor) = (our_bucket(load), governors_bucket(load));
    for threads in [1, 2] {
        let name = format!("one bucket, check(), {}, {threads} thr, governor", load.name());
        let target = match (threads, load) {
            (1, Load::Allow) => Some(Target::Ratio(1.0)),
            (1, Load::Deny) => None,
            _ => Some(Target::Ratio(0.5)),
        };
        Versus { name: &name, threads, load, target }.run(
            report,
            effort,
            |calls| count(calls, |_| kept(ours.check()).is_allow()),
            |calls| count(calls, |_| kept(governor.check()).is_ok()),
        );
    }
}

fn check_at(report: &mut Report, effort: &Effort, load: Load) {
    let (ours, governor) = (our_bucket(load), governors_bucket(load));
    let name = format!("one bucket, check_at(), {}, 1 thr, governor's check()", load.name());
    Versus { name: &name, threads: 1, load, target: Some(Target::Ratio(0.35)) }.run(
        report,
        effort,
        |calls| {
            let begun = ours.clock().now();
            count(calls, |call| kept(ours.check_at(1, after(begun, call))).is_allow())
        },
        |calls| count(calls, |_| kept(governor.check()).is_ok()),
    );
}

/// A caller's time, a hundred nanoseconds a call.
#[inline]
fn after(begun: Time, call: usize) -> Time {
    Time::from_nanos(begun.as_nanos() + 100 * call as u64)
}

/// As most callers ask, of whom the optimiser knows that they do not look at the rest of the answer.
fn yes_or_no(report: &mut Report, effort: &Effort, load: Load) {
    let (ours, governor) = (our_bucket(load), governors_bucket(load));
    let name = format!("one bucket, only whether check() allows, {}, 1 thr, governor", load.name());
    Versus { name: &name, threads: 1, load, target: None }.run(
        report,
        effort,
        |calls| count(calls, |_| black_box(ours.check().is_allow())),
        |calls| count(calls, |_| black_box(governor.check().is_ok())),
    );
}

/// Asks for what remains too, which governor tells only with a middleware for it.
fn remaining(report: &mut Report, effort: &Effort, load: Load) {
    let ours = our_bucket(load);
    let governor = RateLimiter::direct(load.quota()).with_middleware::<StateInformationMiddleware>();
    assert!(governor.check().is_ok());
    let name = format!("one bucket, check() and what remains, {}, 1 thr, governor", load.name());
    Versus { name: &name, threads: 1, load, target: None }.run(
        report,
        effort,
        |calls| {
            count(calls, |_| {
                let status = ours.check();
                black_box(status.remaining());
                status.is_allow()
            })
        },
        |calls| {
            count(calls, |_| match governor.check() {
                Ok(snapshot) => black_box(snapshot.remaining_burst_capacity()) > 0,
                Err(until) => black_box(until.quota().burst_size().get()) == 0,
            })
        },
    );
}

fn leaky_bucket(report: &mut Report, effort: &Effort, load: Load) {
    let ours = our_bucket(load);
    let peer = match load {
        Load::Allow => leaky_bucket::RateLimiter::builder()
            .max(1_000_000_000)
            .initial(1_000_000_000)
            .refill(1)
            .interval(Duration::from_millis(100))
            .build(),
        Load::Deny => leaky_bucket::RateLimiter::builder()
            .max(1)
            .initial(0)
            .interval(Duration::from_secs(3_600))
            .build(),
    };
    for threads in [1, 2] {
        let name = format!("one bucket, check(), {}, {threads} thr, leaky-bucket", load.name());
        Versus { name: &name, threads, load, target: None }.run(
            report,
            effort,
            |calls| count(calls, |_| kept(ours.check()).is_allow()),
            |calls| count(calls, |_| black_box(peer.try_acquire(1))),
        );
    }
}

fn ratelimit(report: &mut Report, effort: &Effort, load: Load) {
    let ours = our_bucket(load);
    let builder = match load {
        Load::Allow => {
            ratelimit::Ratelimiter::builder(10).max_tokens(1_000_000_000).initial_available(1_000_000_000)
        }
        Load::Deny => ratelimit::Ratelimiter::builder(1).period(Duration::from_secs(3_600)),
    };
    let peer = builder.build().expect("a rate limiter");
    for threads in [1, 2] {
        let name = format!("one bucket, check(), {}, {threads} thr, ratelimit", load.name());
        Versus { name: &name, threads, load, target: None }.run(
            report,
            effort,
            |calls| count(calls, |_| kept(ours.check()).is_allow()),
            |calls| count(calls, |_| kept(peer.try_wait()).is_ok()),
        );
    }
}
