//! Limits of every kind, against themselves: whoever was released is charged at that time to a twin that nobody waits at. It must
//! have room then, and must not have had room a nanosecond earlier for whoever was first in the queue already.

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
    /// Past everything that wakes meanwhile.
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

/// Those at which nothing is charged before the release: all but nginx's queue, which charges on arrival. Their units come on
/// whole microseconds, so that charging them anew loses nothing.
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
    /// Since when the first in the queue may have been the first.
    settled: u64,
    charged: Vec<(u64, u32)>,
}

impl Twin {
    /// Somebody who came at `arrived` was released at `at`.
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
        // Whoever gives up makes room for those behind, from then on.
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
    fn whoever_waits_goes_when_there_is_room_and_not_before(
        limit in prop::sample::select(kinds()),
        ops in ops(),
    ) {
        agree(&limit, ops)?;
    }
}
