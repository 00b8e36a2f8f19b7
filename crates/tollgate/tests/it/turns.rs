//! Random histories of waits, drops, cancels and settlements, against plain models: nothing leaks, nothing is gained.

use crate::tasks::Tasks;
use proptest::prelude::*;
use std::{collections::BTreeMap, time::Duration};
use tollgate::{
    Bounds, Charge, Clock, Concurrency, Decision, FixedWindow, Limit, Limiter, ManualClock, MemoryStore,
    Passed, Permit, Rate, Refused, Reservation, SlidingCounter, SlidingLog, SlidingWindow, Time, TokenBucket,
};

const SECOND: Duration = Duration::from_secs(1);

/// A bucket as one would write it on paper: everything used so far is paid for at `due`; a unit takes `price` to earn.
struct Paper {
    due: u64,
    price: u64,
    burst: u64,
    /// How much came back.
    returned: u64,
}

impl Paper {
    /// When a charge made now would start.
    fn start(&self, now: u64, cost: u64) -> u64 {
        (self.due.max(now) + cost * self.price).saturating_sub(self.burst * self.price).max(now)
    }

    fn charge(&mut self, now: u64, cost: u64) {
        self.due = self.due.max(now) + cost * self.price;
    }

    /// When it would start behind others.
    fn start_behind(&self, now: u64, waiting: &BTreeMap<usize, u64>, cost: u64) -> u64 {
        let mut paper = Self { ..*self };
        let mut start = now;
        for cost in waiting.values() {
            start = paper.start(start, *cost);
            paper.charge(start, *cost);
        }
        paper.start(start, cost)
    }

    /// What time has paid for since is not given back. How many whole units come back.
    fn give_back(&mut self, now: u64, cost: u64, turn: Ahead) -> u64 {
        self.take_off(now, cost * self.price, turn)
    }

    /// As much less as was charged later, be it still there or not.
    fn cancel(&mut self, now: u64, cost: u64, turn: Ahead) -> u64 {
        let later = self.charged_later(now, turn);
        self.take_off(now, (cost * self.price).saturating_sub(later), turn)
    }

    fn charged_later(&self, now: u64, turn: Ahead) -> u64 {
        (self.due.max(now) + self.returned - turn.returned).saturating_sub(turn.after)
    }

    /// Where nobody charged later it is as if the turn had cost less.
    fn take_off(&mut self, now: u64, credits: u64, turn: Ahead) -> u64 {
        let (due, later) = (self.due.max(now), self.charged_later(now, turn));
        self.due = (due - credits.min(turn.after.saturating_sub(now)).min(due)).max(now);
        self.returned += if later > 0 { due - self.due } else { 0 };
        (due - self.due) / self.price
    }
}

#[derive(Clone, Debug)]
enum Call {
    Pass(u64),
    Check(u32),
    Wait {
        cost: u32,
        up_to: Option<u64>,
    },
    /// The task is dropped wherever it is.
    Abort(prop::sample::Index),
    Reserve {
        cost: u32,
        up_to: u64,
    },
    Drop(prop::sample::Index),
    Keep(prop::sample::Index),
    Settle(prop::sample::Index, u32),
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let millis = || 0_u64..3_000;
    let call = prop_oneof![
        3 => millis().prop_map(Call::Pass),
        2 => (1_u32..6).prop_map(Call::Check),
        5 => (1_u32..6, prop::option::of(millis())).prop_map(|(cost, up_to)| Call::Wait { cost, up_to }),
        3 => any::<prop::sample::Index>().prop_map(Call::Abort),
        3 => (1_u32..6, millis()).prop_map(|(cost, up_to)| Call::Reserve { cost, up_to }),
        2 => any::<prop::sample::Index>().prop_map(Call::Drop),
        1 => any::<prop::sample::Index>().prop_map(Call::Keep),
        2 => (any::<prop::sample::Index>(), 0_u32..12).prop_map(|(which, actual)| Call::Settle(which, actual)),
    ];
    prop::collection::vec(call, 1..80)
}

/// A turn that lies ahead: what it cost, when it starts, and where it left the bucket.
#[derive(Clone, Copy)]
struct Ahead {
    cost: u64,
    start: u64,
    after: u64,
    /// How much had come back by then.
    returned: u64,
}

proptest! {
    #![proptest_config(crate::limits::cases(512))]

    /// A bucket that books turns is the bucket on paper after any history, and every turn comes when paper says.
    #[test]
    fn a_bucket_is_the_bucket_on_paper(
        per_second in prop::sample::select(vec![1_u32, 2, 5, 10, 100]),
        burst in 5_u32..12,
        calls in calls(),
    ) {
        let clock = ManualClock::new();
        let limit = TokenBucket::new(Rate::per_second(per_second).unwrap(), burst).unwrap();
        let limiter = Limiter::with_clock(limit, clock.clone());
        let price = 1_000_000_000 / u64::from(per_second);
        let mut paper = Paper { due: 0, price, burst: burst.into(), returned: 0 };
        let mut tasks: Tasks<'_, Result<Passed, Refused>> = Tasks::on(&clock);
        let mut waiting: BTreeMap<usize, u64> = BTreeMap::new();
        let mut turns: Vec<(Reservation<'_, Limiter<ManualClock>>, Ahead)> = Vec::new();

        for call in calls {
            let now = clock.now().as_nanos();
            match call {
                Call::Pass(millis) => {
                    let end = now + millis * 1_000_000;
                    let mut released = Vec::new();
                    while let Some((task, cost)) = waiting.first_key_value().map(|(task, cost)| (*task, *cost)) {
                        let start = paper.start(now, cost);
                        if start > end {
                            break;
                        }
                        paper.charge(start, cost);
                        waiting.remove(&task);
                        released.push((task, start));
                    }
                    tasks.pass(Duration::from_millis(millis));
                    prop_assert!(tasks.done.iter().all(|(_, _, result)| result.is_ok()));
                    let done: Vec<_> = tasks.done.drain(..).map(|(task, at, _)| (task, at.as_nanos())).collect();
                    prop_assert_eq!(done, released, "a turn came when it was not its time");
                }
                Call::Check(cost) => {
                    let allowed = limiter.check_n(cost).is_allow();
                    let has_room = waiting.is_empty() && paper.start(now, cost.into()) == now;
                    prop_assert_eq!(allowed, has_room);
                    if allowed {
                        paper.charge(now, cost.into());
                    }
                }
                Call::Wait { cost, up_to } => {
                    let wait = limiter.wait().cost(cost);
                    let wait = match up_to {
                        Some(millis) => wait.up_to(Duration::from_millis(millis)),
                        None => wait,
                    };
                    let start = paper.start_behind(now, &waiting, cost.into());
                    let in_time = up_to.is_none_or(|millis| start - now <= millis * 1_000_000);
                    let task = tasks.start(wait);
                    let at_once = tasks.done.pop();
                    prop_assert_eq!(at_once.is_some(), !in_time || start == now);
                    match at_once {
                        None => {
                            waiting.insert(task, cost.into());
                        }
                        Some((_, _, result)) if in_time => {
                            prop_assert!(result.is_ok());
                            paper.charge(now, cost.into());
                        }
                        Some((_, _, result)) => {
                            let late = Duration::from_nanos(start - now) - Duration::from_millis(up_to.unwrap());
                            prop_assert_eq!(result.unwrap_err().retry_after(), Some(late));
                        }
                    }
                }
                Call::Abort(which) if !waiting.is_empty() => {
                    let task = *which.get(&waiting.keys().copied().collect::<Vec<_>>());
                    waiting.remove(&task);
                    tasks.abort(task);
                    let mut released = Vec::new();
                    while let Some((task, cost)) = waiting.first_key_value().map(|(task, cost)| (*task, *cost))
                        && paper.start(now, cost) == now
                    {
                        paper.charge(now, cost);
                        waiting.remove(&task);
                        released.push(task);
                    }
                    prop_assert_eq!(tasks.done.drain(..).map(|(task, ..)| task).collect::<Vec<_>>(), released);
                }
                Call::Reserve { cost, up_to } => {
                    let start = paper.start(now, cost.into());
                    let booked = limiter.reserve(cost, Duration::from_millis(up_to));
                    let in_time = waiting.is_empty() && start - now <= up_to * 1_000_000;
                    prop_assert_eq!(booked.is_ok(), in_time);
                    if let Ok(turn) = booked {
                        prop_assert_eq!(turn.due().as_nanos(), start);
                        paper.charge(now, cost.into());
                        let (after, returned) = (paper.due, paper.returned);
                        turns.push((turn, Ahead { cost: cost.into(), start, after, returned }));
                    }
                }
                Call::Drop(which) if !turns.is_empty() && waiting.is_empty() => {
                    let (turn, ahead) = turns.swap_remove(which.index(turns.len()));
                    let back = if ahead.start > now { paper.cancel(now, ahead.cost, ahead) } else { 0 };
                    prop_assert_eq!(u64::from(turn.cancel()), back);
                }
                Call::Keep(which) if !turns.is_empty() => {
                    let (turn, _) = turns.swap_remove(which.index(turns.len()));
                    turn.keep();
                }
                Call::Settle(which, actual) if !turns.is_empty() && waiting.is_empty() => {
                    let (turn, ahead) = turns.swap_remove(which.index(turns.len()));
                    let returned = turn.settle(actual);
                    let actual = u64::from(actual);
                    let less = ahead.cost.saturating_sub(actual);
                    let back = match ahead.start > now {
                        true => paper.cancel(now, less, ahead),
                        false => paper.give_back(now, less, ahead),
                    };
                    prop_assert_eq!(u64::from(returned), back);
                    if actual > ahead.cost {
                        paper.charge(now, actual - ahead.cost);
                    }
                }
                _ => {}
            }
            let now = clock.now().as_nanos();
            for cost in [1, burst] {
                let expected = paper.start_behind(now, &waiting, cost.into()) - now;
                let told = limiter.peek(cost).decision();
                let paper_says = match expected {
                    0 if waiting.is_empty() => Decision::Allow,
                    nanos => Decision::Deny(tollgate::Retry::After(Duration::from_micros(nanos.div_ceil(1_000)))),
                };
                prop_assert_eq!(told, paper_says);
            }
        }
        // When everybody has given up and all debt is paid, it is as if nobody had ever come.
        for task in waiting.into_keys().rev() {
            tasks.abort(task);
        }
        drop(turns);
        clock.advance(Duration::from_secs(10_000));
        prop_assert_eq!(limiter.peek(0).remaining(), burst);
        prop_assert_eq!(clock.next_sleeper(), None);
    }

    /// At a limit with a line, whoever went was charged and nobody else was: a twin that was asked at the same times by
    /// those alone is in the same state.
    #[test]
    fn a_line_charges_those_who_went_and_nobody_else(
        limit in prop::sample::select(lined()),
        calls in calls(),
    ) {
        let clock = ManualClock::new();
        let limiter = Limiter::with_clock(limit.clone(), clock.clone());
        let twin_clock = ManualClock::new();
        let twin = Limiter::with_clock(limit, twin_clock.clone());
        let mut tasks: Tasks<'_, Result<Passed, Refused>> = Tasks::on(&clock);
        let mut costs = BTreeMap::new();
        let mut last = 0;
        for call in calls {
            match call {
                Call::Pass(millis) => tasks.pass(Duration::from_millis(millis)),
                Call::Wait { cost, up_to } => {
                    let wait = limiter.wait().cost(cost);
                    let task = tasks.start(async move {
                        match up_to {
                            Some(millis) => wait.up_to(Duration::from_millis(millis)).await,
                            None => wait.await,
                        }
                    });
                    costs.insert(task, cost);
                }
                Call::Abort(which) => {
                    let running = tasks.running();
                    if !running.is_empty() {
                        tasks.abort(*which.get(&running));
                    }
                }
                Call::Check(cost) => {
                    let waiting = !tasks.running().is_empty();
                    let allowed = limiter.check_n(cost).is_allow();
                    prop_assert!(!(allowed && waiting), "a check overtook the line");
                    if allowed {
                        twin_clock.set(clock.now());
                        prop_assert!(twin.check_n(cost).is_allow());
                    }
                }
                _ => {}
            }
            let mut went: Vec<usize> = Vec::new();
            for (task, at, result) in tasks.done.drain(..) {
                if result.is_ok() {
                    twin_clock.set(at);
                    prop_assert!(twin.check_n(costs[&task]).is_allow(), "went when there was no room");
                    went.push(task);
                }
            }
            prop_assert!(went.is_sorted(), "out of order: {went:?}");
            if let (Some(first), Some(newest)) = (went.first(), went.last()) {
                prop_assert!(*first >= last || last == 0, "{first} went after {last}");
                last = *newest;
            }
        }
        // The last first: nobody comes to stand in front.
        for task in tasks.running().into_iter().rev() {
            tasks.abort(task);
        }
        prop_assert_eq!(clock.next_sleeper(), None, "somebody who left still sleeps");
        twin_clock.set(clock.now());
        for cost in 0..6 {
            prop_assert_eq!(limiter.peek(cost), twin.peek(cost));
        }
    }

    /// Sets over two limits with lines: all or nothing for whoever went, nothing for whoever did not.
    #[test]
    fn sets_in_lines_charge_all_or_nothing(calls in calls(), which in prop::collection::vec(0_u8..3, 80)) {
        let bounds = Bounds { max_keys: 10, ..Bounds::default() };
        let (clock, twin_clock) = (ManualClock::new(), ManualClock::new());
        let store = MemoryStore::with_clock(bounds, clock.clone());
        let twin = MemoryStore::with_clock(bounds, twin_clock.clone());
        let log = SlidingLog::new(6, SECOND).unwrap();
        let window = FixedWindow::new(9, 2 * SECOND).unwrap();
        let (a, b) = (store.add("limit", log).unwrap(), store.add("limit", window.clone()).unwrap());
        let (twin_a, twin_b) = (twin.add("limit", log).unwrap(), twin.add("limit", window).unwrap());
        let mut tasks = Tasks::on(&clock);
        let mut asked = BTreeMap::new();
        for (call, which) in calls.into_iter().zip(which) {
            let charges = |a, b, cost| -> Vec<Charge<'_>> {
                let both = [Charge::new(a, "k").cost(cost), Charge::new(b, "k").cost(cost)];
                match which {
                    0 => both.to_vec(),
                    1 => both[..1].to_vec(),
                    _ => both[1..].to_vec(),
                }
            };
            match call {
                Call::Pass(millis) => tasks.pass(Duration::from_millis(millis)),
                Call::Wait { cost, up_to } => {
                    let up_to = up_to.map_or(Duration::MAX, Duration::from_millis);
                    let task = tasks.start(store.wait(&charges(&a, &b, cost)).up_to(up_to));
                    asked.insert(task, charges(&twin_a, &twin_b, cost));
                }
                Call::Abort(which) if !tasks.running().is_empty() => {
                    let task = *which.get(&tasks.running());
                    tasks.abort(task);
                }
                _ => {}
            }
            for (task, at, result) in tasks.done.drain(..) {
                if result.is_ok() {
                    twin_clock.set(at);
                    prop_assert!(twin.check(&asked[&task]).unwrap().is_allow(), "went when there was no room");
                }
            }
        }
        // The last first: nobody comes to stand in front.
        for task in tasks.running().into_iter().rev() {
            tasks.abort(task);
        }
        prop_assert_eq!(clock.next_sleeper(), None);
        twin_clock.set(clock.now());
        for cost in 0..7 {
            let ours = store.peek(&[Charge::new(&a, "k").cost(cost), Charge::new(&b, "k").cost(cost)]).unwrap();
            let theirs =
                twin.peek(&[Charge::new(&twin_a, "k").cost(cost), Charge::new(&twin_b, "k").cost(cost)]).unwrap();
            prop_assert_eq!(ours, theirs);
        }
    }

    /// Slots: never more held than there are, none lost, whoever enters, leaves, gives up or is forgotten.
    #[test]
    fn slots_are_neither_lost_nor_shared(limit in 5_u32..8, calls in calls()) {
        let clock = ManualClock::new();
        let numbers = Concurrency::new(limit, 2 * SECOND).unwrap().with_queue(4);
        let limiter = Limiter::with_clock(numbers, clock.clone());
        let mut tasks: Tasks<'_, Result<Permit<'_>, Refused>> = Tasks::on(&clock);
        let mut costs = BTreeMap::new();
        // Who holds how many, and until when.
        let mut held: Vec<(Permit<'_>, u32, Time)> = Vec::new();
        for call in calls {
            match call {
                Call::Pass(millis) => tasks.pass(Duration::from_millis(millis)),
                Call::Wait { cost, up_to } => {
                    let up_to = up_to.map_or(Duration::MAX, Duration::from_millis);
                    let task = tasks.start(limiter.enter().cost(cost).up_to(up_to));
                    costs.insert(task, cost);
                }
                Call::Abort(which) if !tasks.running().is_empty() => {
                    let task = *which.get(&tasks.running());
                    tasks.abort(task);
                }
                Call::Drop(which) if !held.is_empty() => {
                    drop(held.swap_remove(which.index(held.len())));
                    tasks.run();
                }
                Call::Keep(which) if !held.is_empty() => {
                    let index = which.index(held.len());
                    let live = held[index].2 > clock.now();
                    prop_assert_eq!(held[index].0.renew(), live);
                    if live {
                        held[index].2 = clock.now() + 2 * SECOND;
                    }
                }
                _ => {}
            }
            for (task, at, result) in tasks.done.drain(..) {
                if let Ok(permit) = result {
                    held.push((permit, costs[&task], at + 2 * SECOND));
                }
            }
            let in_use: u32 = held.iter().filter(|(.., until)| *until > clock.now()).map(|(_, units, _)| units).sum();
            prop_assert!(in_use <= limit);
            prop_assert_eq!(limiter.peek(0).remaining(), limit - in_use);
            prop_assert!(tasks.running().len() <= 4);
            let first = tasks.running().first().map(|task| costs[task]);
            prop_assert!(first.is_none_or(|units| in_use + units > limit), "there was room for the first in line");
        }
        // The last first: nobody comes to stand in front.
        for task in tasks.running().into_iter().rev() {
            tasks.abort(task);
        }
        drop(held);
        prop_assert_eq!(limiter.peek(0).remaining(), limit);
        prop_assert_eq!(clock.next_sleeper(), None);
    }
}

fn lined() -> Vec<Limit> {
    vec![
        FixedWindow::new(6, SECOND).unwrap().into(),
        FixedWindow::new(6, SECOND).unwrap().with_align(tollgate::Align::FirstHit).into(),
        SlidingLog::new(6, SECOND).unwrap().into(),
        SlidingWindow::new(6, SECOND, SECOND / 7).unwrap().into(),
        SlidingCounter::new(6, SECOND).unwrap().into(),
    ]
}
