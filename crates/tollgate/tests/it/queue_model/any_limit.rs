//! Limits of every kind, compared with a second limiter without waiters: every release is charged to it at the release time. It
//! must have room then, and must have had none a nanosecond earlier if the waiter was at the head of the queue by then.

use crate::{by_hand::SECOND, limits::cases, tasks::Tasks};
use proptest::{prelude::*, sample::Index};
use std::{collections::BTreeMap, time::Duration};
use tollgate::{
    Align, Clock, FixedWindow, LeakyBucket, Limit, Limiter, ManualClock, Passed, Rate, Refill, Refused,
    SlidingCounter, SlidingLog, SlidingWindow, SmoothBursty, SmoothWarmingUp, Time, TokenBucket,
};

#[derive(Clone, Debug)]
enum Op {
    Pass(u64),
    /// Moves the clock past all timers at once.
    Leap(u64),
    Wait(u32),
    Drop(Index),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        3 => (0_u64..1_500_000_000).prop_map(Op::Pass),
        1 => (0_u64..5_000_000_000).prop_map(Op::Leap),
        6 => prop_oneof![3 => Just(1_u32), 1 => 1_u32..=3].prop_map(Op::Wait),
        3 => any::<Index>().prop_map(Op::Drop),
    ];
    prop::collection::vec(op, 1..60)
}

/// All kinds that charge at the release: not a leaky bucket with a delay, which charges on arrival. The rates earn units on
/// whole microseconds, so that charging them again loses no remainder.
fn kinds() -> Vec<Limit> {
    let rate = Rate::per_second(4).unwrap();
    vec![
        TokenBucket::new(rate, 3).unwrap().into(),
        TokenBucket::new(rate, 3).unwrap().with_initial(1).unwrap().into(),
        TokenBucket::new(rate, 3).unwrap().with_refill(Refill::Interval).into(),
        LeakyBucket::new(rate, 3).unwrap().into(),
        SmoothBursty::new(rate).into(),
        SmoothWarmingUp::new(rate, SECOND).unwrap().into(),
        FixedWindow::new(3, SECOND).unwrap().into(),
        FixedWindow::new(3, SECOND).unwrap().with_align(Align::FirstHit).into(),
        SlidingLog::new(3, SECOND).unwrap().into(),
        SlidingWindow::new(3, SECOND, SECOND / 10).unwrap().into(),
        SlidingCounter::new(3, SECOND).unwrap().into(),
    ]
}

struct Twin {
    limiter: Limiter<ManualClock>,
    clock: ManualClock,
    /// The latest time at which the head of the queue may have changed.
    settled: u64,
    charged: Vec<(u64, u32)>,
}

impl Twin {
    /// Charges a release at `at` of a waiter that arrived at `arrived`.
    fn release(&mut self, arrived: u64, at: u64, cost: u32) -> Result<(), TestCaseError> {
        if at > self.settled.max(arrived) {
            self.clock.set(Time::from_nanos(at - 1));
            let early = self.limiter.peek(cost);
            prop_assert!(early.is_deny(), "there was room for {} before {}: {:?}", cost, at, self.charged);
        }
        self.clock.set(Time::from_nanos(at));
        let status = self.limiter.check_n(cost);
        prop_assert!(status.is_allow(), "no room for {} at {}: {:?}, {:?}", cost, at, status, self.charged);
        self.settled = self.settled.max(at);
        self.charged.push((at, cost));
        Ok(())
    }
}

fn agree(limit: &Limit, ops: Vec<Op>) -> Result<(), TestCaseError> {
    let (clock, twin_clock) = (ManualClock::new(), ManualClock::new());
    let limiter = Limiter::with_clock(limit.clone(), clock.clone());
    let twin = Limiter::with_clock(limit.clone(), twin_clock.clone());
    let mut twin = Twin { limiter: twin, clock: twin_clock, settled: 0, charged: Vec::new() };
    let mut tasks: Tasks<'_, Result<Passed, Refused>> = Tasks::on(&clock);
    let mut came: BTreeMap<usize, (u64, u32)> = BTreeMap::new();
    let mut last = 0;
    for op in ops {
        let mut dropped_at = None;
        match op {
            Op::Pass(nanos) => tasks.pass(Duration::from_nanos(nanos)),
            Op::Leap(nanos) => {
                clock.advance(Duration::from_nanos(nanos));
                tasks.run();
            }
            Op::Wait(cost) => {
                let task = tasks.start(limiter.wait().cost(cost));
                came.insert(task, (clock.now().as_nanos(), cost));
            }
            Op::Drop(which) if !tasks.running().is_empty() => {
                tasks.abort(*which.get(&tasks.running()));
                dropped_at = Some(clock.now().as_nanos());
            }
            Op::Drop(_) => {}
        }
        // A dropped waiter may change the head of the queue.
        twin.settled = twin.settled.max(dropped_at.unwrap_or(0));
        let mut done = std::mem::take(&mut tasks.done);
        done.sort_unstable_by_key(|(task, ..)| *task);
        for (task, _, passed) in done {
            let (arrived, cost) = came[&task];
            let at = arrived + u64::try_from(passed.unwrap().waited().as_nanos()).unwrap();
            prop_assert!(at >= last, "waiter {} went before somebody who came earlier", task);
            last = at;
            twin.release(arrived, at, cost)?;
        }
    }
    let waiting = tasks.running();
    tasks.finish();
    prop_assert_eq!(tasks.running(), Vec::<usize>::new(), "of those who waited: {:?}", waiting);
    for (task, _, passed) in std::mem::take(&mut tasks.done) {
        let (arrived, cost) = came[&task];
        let at = arrived + u64::try_from(passed.unwrap().waited().as_nanos()).unwrap();
        twin.release(arrived, at, cost)?;
    }
    twin.clock.set(clock.now());
    for cost in 0..=3 {
        prop_assert_eq!(limiter.peek(cost), twin.limiter.peek(cost), "what is left");
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn every_limit_releases_a_waiter_at_the_earliest_possible_time(
        limit in prop::sample::select(kinds()),
        ops in ops(),
    ) {
        agree(&limit, ops)?;
    }
}
