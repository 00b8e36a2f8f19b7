//! Waiters who give up leave no hole in the queue: the limit's bound holds over the times at which the others are released, and
//! its rate is used.
//!
//! 200 waiters a second for 100 units a second and a burst of one, all of whom give up after half a second: most of them do.

use crate::{
    by_hand::{SECOND, bucket, keyed, limiter, log, store},
    tasks::Tasks,
};
use std::{future::Future, time::Duration};
use tollgate::{Charge, Clock, LimitHandle, ManualClock, MemoryStore, Passed, Reason, Time, TokenBucket};

const MILLISECOND: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_millis(500);
const BETWEEN_ARRIVALS: Duration = Duration::from_millis(5);
const LASTING: Duration = Duration::from_secs(20);

/// 100 a second: a unit is there every 10 ms, and the burst is one.
const UNIT: u64 = 10_000_000;

fn hundred() -> TokenBucket {
    bucket(100, 1)
}

/// How the waiters' timers go.
#[derive(Clone, Copy)]
enum Timers {
    OnTime,
    /// They go off together, as late as that.
    Every(Duration),
}

impl Timers {
    /// When a timer goes off that was set to that time.
    fn late(self, at: Duration) -> Duration {
        match self {
            Self::OnTime => at,
            Self::Every(grain) => {
                let ticks = at.as_nanos().div_ceil(grain.as_nanos());
                grain * u32::try_from(ticks).unwrap()
            }
        }
    }
}

/// When somebody who comes at a time is to give up, if it still waits.
type GivesUp = fn(arrival: usize) -> Duration;

fn after_half_a_second(_: usize) -> Duration {
    PATIENCE
}

/// From at once to a second, in an order that looks like none.
fn at_random(arrival: usize) -> Duration {
    MILLISECOND * u32::try_from(arrival * 7919 % 1_000).unwrap()
}

/// Lets waiters come and give up; when the others were released, in the order in which they came, by how long each says that it
/// waited.
fn releases<'a, F, E>(
    clock: &ManualClock,
    timers: Timers,
    gives_up: GivesUp,
    wait: impl Fn() -> F,
) -> Vec<u64>
where
    F: Future<Output = Result<Passed, E>> + 'a,
    E: std::fmt::Debug,
{
    let mut tasks = Tasks::on(clock);
    let arrivals = usize::try_from(LASTING.as_nanos() / BETWEEN_ARRIVALS.as_nanos()).unwrap();
    let came_at = |arrival: usize| BETWEEN_ARRIVALS * u32::try_from(arrival).unwrap();
    let leaves_at = |arrival| timers.late(came_at(arrival) + gives_up(arrival));
    let mut departures: Vec<(Duration, usize)> =
        (0..arrivals).map(|arrival| (leaves_at(arrival), arrival)).collect();
    departures.sort_unstable();
    let mut departures = departures.into_iter().peekable();
    for arrival in 0..arrivals {
        let now = came_at(arrival);
        while let Some((at, who)) = departures.next_if(|(at, who)| *at <= now && *who < arrival) {
            go_to(&mut tasks, clock, timers, at);
            tasks.abort_alone(who);
        }
        go_to(&mut tasks, clock, timers, now);
        assert_eq!(tasks.start_alone(wait()), arrival);
    }
    let done = std::mem::take(&mut tasks.done).into_iter();
    let mut released: Vec<(usize, u64)> = done
        .map(|(who, _, passed)| {
            let at = came_at(who) + passed.unwrap().waited();
            (who, u64::try_from(at.as_nanos()).unwrap())
        })
        .collect();
    released.sort_unstable();
    released.into_iter().map(|(_, at)| at).collect()
}

/// Moves the clock on, polling whoever wakes: on time, or when all of them do.
fn go_to<T>(tasks: &mut Tasks<'_, T>, clock: &ManualClock, timers: Timers, at: Duration) {
    let at = Time::ZERO + at;
    match timers {
        Timers::OnTime => {
            tasks.run();
            tasks.pass(at - clock.now());
        }
        Timers::Every(grain) => {
            // Nobody is polled before the next tick.
            let tick = |time: Time| u128::from(time.as_nanos()) / grain.as_nanos();
            let ticks = tick(clock.now()) < tick(at);
            clock.set(at);
            if ticks {
                tasks.run();
            }
        }
    }
}

/// No stretch of time has more than the burst and what the rate gives meanwhile, and the rate is used.
fn kept_and_used(in_order: &[u64], what: &str) {
    let mut released = in_order.to_vec();
    released.sort_unstable();
    let (mut worst, mut within) = (0, (0, 0));
    for (first, from) in released.iter().enumerate() {
        for (more, to) in released[first..].iter().enumerate() {
            // One for the burst; what the rate gives by then.
            let excess = (more as u64 * UNIT).saturating_sub(to - from);
            if excess > worst {
                (worst, within) = (excess, (*from, *to));
            }
        }
    }
    let full = released.iter().filter(|at| **at >= 1_000_000_000).count();
    let share = full as f64 / ((LASTING - SECOND).as_secs_f64() * 100.0);
    assert_eq!(
        worst,
        0,
        "{what}: {:.2} units over the bound between {} and {} ns, with {:.1} % of the rate used",
        worst as f64 / UNIT as f64,
        within.0,
        within.1,
        share * 100.0
    );
    assert!(share >= 0.95, "{what}: {:.1} % of the rate used", share * 100.0);
    assert!(in_order.is_sorted(), "{what}: not in the order of arrival");
}

/// The same, at every way to wait.
fn everywhere(what: &str, timers: Timers, gives_up: GivesUp) {
    let (one, clock) = limiter(hundred());
    kept_and_used(&releases(&clock, timers, gives_up, || one.wait()), &format!("limiter, {what}"));
    let (by_key, clock) = keyed(hundred(), 10);
    let released = releases(&clock, timers, gives_up, || by_key.wait("k"));
    kept_and_used(&released, &format!("keyed limiter, {what}"));
    let (store, clock) = store();
    let limits = [hundred(), bucket(1_000, 10)].map(|limit| store.add(limit).unwrap());
    let set = limits.each_ref().map(|limit| Charge::new(limit, "k"));
    kept_and_used(&releases(&clock, timers, gives_up, || store.wait(&set)), &format!("set, {what}"));
}

#[test]
fn who_gives_up_after_half_a_second_leaves_no_hole() {
    everywhere("after 0.5 s", Timers::OnTime, after_half_a_second);
}

#[test]
fn who_gives_up_at_random_leaves_no_hole() {
    everywhere("at random", Timers::OnTime, at_random);
}

#[test]
fn late_timers_neither_exceed_the_bound_nor_lose_any_of_the_rate() {
    everywhere("timers late by 30 ms", Timers::Every(30 * MILLISECOND), after_half_a_second);
    everywhere("timers late by 7 ms", Timers::Every(7 * MILLISECOND), at_random);
}

/// A store with a bucket that is booked for 910 ms ahead, and a log of five a second.
fn bucket_and_log() -> (MemoryStore<ManualClock>, ManualClock, [LimitHandle; 2]) {
    let (store, clock) = store();
    let limits = [store.add(hundred()).unwrap(), store.add(log(5)).unwrap()];
    for _ in 0..91 {
        store.reserve(&[Charge::new(&limits[0], "k")], SECOND).unwrap().keep();
    }
    (store, clock, limits)
}

fn at_most_five_in_any_second(released: &[u64]) {
    for window in released.windows(6) {
        assert!(window[5] - window[0] >= 1_000_000_000, "six within a second: {released:?}");
    }
}

/// The log is charged when they go, not when they come.
#[test]
fn a_log_in_a_set_counts_the_times_of_release() {
    let (store, clock, limits) = bucket_and_log();
    let set = limits.each_ref().map(|limit| Charge::new(limit, "k"));
    let mut tasks = Tasks::on(&clock);
    tasks.start_all((0..20).map(|_| store.wait(&set)));
    tasks.finish();
    let released: Vec<u64> = tasks.done.iter().map(|(_, at, _)| at.as_nanos()).collect();
    at_most_five_in_any_second(&released);
    let five_a_second = |number: u64| 910 + number / 5 * 1_000 + number % 5 * 10;
    assert_eq!(tasks.millis(), (0..20).map(five_a_second).collect::<Vec<_>>());
}

#[test]
fn a_log_in_a_set_keeps_its_bound_when_waiters_give_up() {
    for gives_up in [after_half_a_second as GivesUp, at_random] {
        let (store, clock, limits) = bucket_and_log();
        let set = limits.each_ref().map(|limit| Charge::new(limit, "k"));
        let released = releases(&clock, Timers::OnTime, gives_up, || store.wait(&set));
        at_most_five_in_any_second(&released);
        assert!(released.len() >= 5 * 19, "{} of a hundred", released.len());
    }
}

/// Changes a limit of ten a second to one of another rate when a hundred wait, after a second; when each was released, newcomers
/// at that time included.
fn released_when_changed(per_second: u32) -> [Vec<u64>; 3] {
    let (one, one_clock) = limiter(bucket(10, 1));
    let (by_key, keyed_clock) = keyed(bucket(10, 1), 10);
    let (store, store_clock) = store();
    let limit = store.add(bucket(10, 1)).unwrap();
    let charge = [Charge::new(&limit, "k")];
    let to = || bucket(per_second, 1);
    [
        released(&one_clock, || one.wait(), || one.change(to())),
        released(&keyed_clock, || by_key.wait("k"), || by_key.change(to())),
        released(&store_clock, || store.wait(&charge), || store.change(&limit, to()).unwrap()),
    ]
}

fn released<'a, F, E>(clock: &ManualClock, wait: impl Fn() -> F, change: impl FnOnce()) -> Vec<u64>
where
    F: Future<Output = Result<Passed, E>> + 'a,
    E: std::fmt::Debug,
{
    let mut tasks = Tasks::on(clock);
    tasks.start_all((0..100).map(|_| wait()));
    tasks.pass(SECOND);
    change();
    tasks.run();
    tasks.start_all((0..10).map(|_| wait()));
    tasks.finish();
    assert_eq!(tasks.order(), (0..110).collect::<Vec<_>>(), "first come, first served");
    tasks.millis()
}

/// Ten went by then, at 0.1 s each, and the eleventh just as the numbers changed.
#[test]
fn numbers_that_were_raised_reach_everybody_who_waits() {
    let expected: Vec<u64> = (0..110).map(|n| if n <= 10 { n * 100 } else { 1_000 + n - 10 }).collect();
    for released in released_when_changed(1_000) {
        assert_eq!(released, expected);
    }
}

#[test]
fn numbers_that_were_lowered_reach_everybody_who_waits() {
    let expected: Vec<u64> = (0..110).map(|n| if n <= 10 { n * 100 } else { (n - 9) * 1_000 }).collect();
    for released in released_when_changed(1) {
        assert_eq!(released, expected);
    }
}

/// Of those who were told that they would be in time, some no longer can be, and are told so.
#[test]
fn who_can_no_longer_be_in_time_is_told_at_once() {
    let (limiter, clock) = limiter(bucket(10, 1));
    let mut tasks = Tasks::on(&clock);
    tasks.start_all((0..11).map(|_| limiter.wait().up_to(SECOND)));
    assert_eq!(tasks.order(), [0]);
    tasks.pass(SECOND / 2);
    assert_eq!(tasks.order(), [0, 1, 2, 3, 4, 5]);
    tasks.done.clear();
    limiter.change(bucket(5, 1));
    tasks.run();
    // The next ones go after 0.7 and 0.9 s, and then it is 1.1 s.
    assert_eq!(tasks.order(), [8, 9, 10]);
    for (_, at, refused) in std::mem::take(&mut tasks.done) {
        assert_eq!(at, Time::ZERO + SECOND / 2);
        let reason = refused.unwrap_err().reason();
        assert_eq!(
            reason,
            Reason::Late { retry_after: SECOND / 10 },
            "those who are told do not hold up others"
        );
    }
    tasks.finish();
    assert_eq!((tasks.order(), tasks.millis()), (vec![6, 7], vec![700, 900]));
}
