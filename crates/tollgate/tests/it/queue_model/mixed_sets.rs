//! Waiting sets that overlap in some of their limits: every limit keeps its bound over the release times, every waiter is
//! released in the end, and nothing stays charged.

use crate::{by_hand::SECOND, limits::cases, tasks::Tasks};
use proptest::{prelude::*, sample::Index};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tollgate::{
    Bounds, Charge, Clock, Concurrency, FixedWindow, LimitHandle, ManualClock, MemoryStore, Permit, Rate,
    SlidingLog, Time, TokenBucket, WaitError,
};

const PER_SECOND: u32 = 5;
const BURST: u32 = 5;
const LOG: u32 = 6;
const WINDOW: u32 = 9;
const SLOTS: u32 = 5;
const SECOND_NANOS: u64 = 1_000_000_000;

#[derive(Clone, Debug)]
enum Op {
    Pass(u64),
    /// Moves the clock past all timers at once.
    Leap(u64),
    /// A bit mask of limits, and the cost at each of them.
    Wait(u8, u32),
    Drop(Index),
    Leave(Index),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        3 => (0_u64..1_500).prop_map(Op::Pass),
        1 => (0_u64..4_000).prop_map(Op::Leap),
        7 => (1_u8..16, prop_oneof![3 => Just(1_u32), 1 => 1_u32..=5]).prop_map(|(of, cost)| Op::Wait(of, cost)),
        3 => any::<Index>().prop_map(Op::Drop),
        4 => any::<Index>().prop_map(Op::Leave),
    ];
    prop::collection::vec(op, 1..80)
}

struct Waiter {
    of: u8,
    cost: u32,
    came: u64,
}

/// Release times, each with its waiter.
type Releases = Vec<(u64, usize)>;

type Tasked<'a> = Tasks<'a, Result<Permit<'a>, WaitError>>;

/// Collects the releases since the last call.
fn collect<'a>(
    tasks: &mut Tasked<'a>,
    waiters: &BTreeMap<usize, Waiter>,
    releases: &mut Releases,
) -> Vec<(usize, Permit<'a>)> {
    let done = std::mem::take(&mut tasks.done).into_iter();
    done.map(|(task, _, permit)| {
        let permit = permit.unwrap();
        let waited = u64::try_from(permit.waited().as_nanos()).unwrap();
        releases.push((waiters[&task].came + waited, task));
        (task, permit)
    })
    .collect()
}

fn run(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(Bounds { max_keys: 10, ..Bounds::default() }, clock.clone());
    let rate = Rate::per_second(PER_SECOND).unwrap();
    let limits: [LimitHandle; 4] = [
        store.add("limit", TokenBucket::new(rate, BURST).unwrap()).unwrap(),
        store.add("limit", SlidingLog::new(LOG, SECOND).unwrap()).unwrap(),
        store.add("limit", FixedWindow::new(WINDOW, 2 * SECOND).unwrap()).unwrap(),
        store.add("limit", Concurrency::new(SLOTS, 1_000_000 * SECOND).unwrap().with_queue(1_000)).unwrap(),
    ];
    let mut tasks: Tasked<'_> = Tasks::on(&clock);
    let (mut waiters, mut releases) = (BTreeMap::new(), Vec::new());
    let mut held: Vec<(usize, Permit<'_>)> = Vec::new();
    let mut dropped = BTreeSet::new();
    for op in ops {
        match op {
            Op::Pass(millis) => tasks.pass(Duration::from_millis(millis)),
            Op::Leap(millis) => {
                clock.advance(Duration::from_millis(millis));
                tasks.run();
            }
            Op::Wait(of, cost) => {
                let asked = limits.iter().enumerate().filter(|(bit, _)| of >> bit & 1 == 1);
                let set: Vec<Charge<'_>> =
                    asked.map(|(_, limit)| Charge::new(limit, "k").cost(cost)).collect();
                let task = tasks.start(store.enter(&set));
                waiters.insert(task, Waiter { of, cost, came: clock.now().as_nanos() });
            }
            Op::Drop(which) if !tasks.running().is_empty() => {
                let task = *which.get(&tasks.running());
                dropped.insert(task);
                tasks.abort(task);
            }
            Op::Leave(which) if !held.is_empty() => {
                drop(held.swap_remove(which.index(held.len())));
                tasks.run();
            }
            Op::Drop(_) | Op::Leave(_) => {}
        }
        held.extend(collect(&mut tasks, &waiters, &mut releases));
        let in_use: u32 = held.iter().map(|(task, _)| waiters[task].slots()).sum();
        prop_assert!(in_use <= SLOTS, "{} slots of {} held", in_use, SLOTS);
    }
    // Every permit is dropped at once, so every waiter is released after a few refills of every limit at most.
    let latest = clock.now() + 10 * SECOND * u32::try_from(waiters.len() + 1).unwrap();
    while !tasks.running().is_empty() {
        held.clear();
        tasks.run();
        held.extend(collect(&mut tasks, &waiters, &mut releases));
        if !held.is_empty() || tasks.running().is_empty() {
            continue;
        }
        let next = clock.next_sleeper();
        prop_assert!(
            next.is_some_and(|next| next <= latest),
            "stuck: {:?}, next {:?}",
            tasks.running(),
            next
        );
        clock.set(next.unwrap_or(Time::ZERO).max(clock.now()));
        tasks.run();
        held.extend(collect(&mut tasks, &waiters, &mut releases));
    }
    drop(held);
    prop_assert_eq!(releases.len() + dropped.len(), waiters.len());
    within_bounds(&waiters, releases)?;
    clock.advance(1_000 * SECOND);
    for (limit, full) in limits.iter().zip([BURST, LOG, WINDOW, SLOTS]) {
        let left = store.peek(&[Charge::new(limit, "k").cost(0)]).unwrap().statuses()[0].remaining();
        prop_assert_eq!(left, full);
    }
    prop_assert_eq!(clock.next_sleeper(), None, "a timer is left behind");
    Ok(())
}

impl Waiter {
    fn slots(&self) -> u32 {
        self.at(3)
    }

    /// The cost at a limit.
    fn at(&self, limit: u8) -> u32 {
        if self.of >> limit & 1 == 1 { self.cost } else { 0 }
    }
}

fn within_bounds(waiters: &BTreeMap<usize, Waiter>, mut releases: Releases) -> Result<(), TestCaseError> {
    releases.sort_unstable();
    for (first, (from, _)) in releases.iter().enumerate() {
        let mut used = [0_u64; 3];
        for (to, task) in &releases[first..] {
            for (limit, used) in used.iter_mut().enumerate() {
                *used += u64::from(waiters[task].at(u8::try_from(limit).unwrap()));
            }
            let time = to - from;
            let most = [
                u64::from(BURST) + time * u64::from(PER_SECOND) / SECOND_NANOS,
                u64::from(LOG) * (time / SECOND_NANOS + 1),
                u64::from(WINDOW) * (to / (2 * SECOND_NANOS) - from / (2 * SECOND_NANOS) + 1),
            ];
            for (limit, (used, most)) in used.iter().zip(most).enumerate() {
                prop_assert!(
                    *used <= most,
                    "{} units of limit {} within {} ns, from {}",
                    used,
                    limit,
                    time,
                    from
                );
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn overlapping_sets_keep_every_bound_and_all_finish(ops in ops()) {
        run(ops)?;
    }
}
