//! Cancelled waiters leave no gap in the queue: the limit's bound holds over the release times, and the rate is used.
//!
//! The load is 200 waiters a second for 100 units a second and a burst of one. All of them time out after half a second, so half
//! of them are cancelled.

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

/// Nanoseconds in which 100 a second give one unit.
const UNIT: u64 = 10_000_000;

fn hundred() -> TokenBucket {
    bucket(100, 1)
}

/// When timers fire.
#[derive(Clone, Copy)]
enum Timers {
    OnTime,
    /// At the next multiple of this time.
    Every(Duration),
}

impl Timers {
    /// When a timer set to `at` fires.
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

/// The timeout of a waiter, by its number.
type Timeout = fn(arrival: usize) -> Duration;

fn half_a_second(_: usize) -> Duration {
    PATIENCE
}

/// Between 0 and 1 s, pseudo-random.
fn random(arrival: usize) -> Duration {
    MILLISECOND * u32::try_from(arrival * 7919 % 1_000).unwrap()
}

/// Runs the load. The release times in order of arrival, each computed from `Passed::waited`.
fn releases<'a, F, E>(clock: &ManualClock, timers: Timers, timeout: Timeout, wait: impl Fn() -> F) -> Vec<u64>
where
    F: Future<Output = Result<Passed, E>> + 'a,
    E: std::fmt::Debug,
{
    let mut tasks = Tasks::on(clock);
    let arrivals = usize::try_from(LASTING.as_nanos() / BETWEEN_ARRIVALS.as_nanos()).unwrap();
    let came_at = |arrival: usize| BETWEEN_ARRIVALS * u32::try_from(arrival).unwrap();
    let leaves_at = |arrival| timers.late(came_at(arrival) + timeout(arrival));
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

/// Moves the clock on and polls woken tasks, as the timers say.
fn go_to<T>(tasks: &mut Tasks<'_, T>, clock: &ManualClock, timers: Timers, at: Duration) {
    let at = Time::ZERO + at;
    match timers {
        Timers::OnTime => {
            tasks.run();
            tasks.pass(at - clock.now());
        }
        Timers::Every(grain) => {
            // Nothing is polled before the next tick.
            let tick = |time: Time| u128::from(time.as_nanos()) / grain.as_nanos();
            let ticks = tick(clock.now()) < tick(at);
            clock.set(at);
            if ticks {
                tasks.run();
            }
        }
    }
}

/// Checks the bound of burst + rate * t over every window, that 95 % of the rate is used, and the order of arrival.
fn assert_bound_and_share(in_order: &[u64], what: &str) {
    let mut released = in_order.to_vec();
    released.sort_unstable();
    let (mut worst, mut within) = (0, (0, 0));
    for (first, from) in released.iter().enumerate() {
        for (more, to) in released[first..].iter().enumerate() {
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

/// Runs the load at every type that waits.
fn measure_everywhere(what: &str, timers: Timers, timeout: Timeout) {
    let (one, clock) = limiter(hundred());
    assert_bound_and_share(&releases(&clock, timers, timeout, || one.wait()), &format!("limiter, {what}"));
    let (by_key, clock) = keyed(hundred(), 10);
    let released = releases(&clock, timers, timeout, || by_key.wait("k"));
    assert_bound_and_share(&released, &format!("keyed limiter, {what}"));
    let (store, clock) = store();
    let limits = [hundred(), bucket(1_000, 10)].map(|limit| store.add("limits", limit).unwrap());
    let set = limits.each_ref().map(|limit| Charge::new(limit, "k"));
    assert_bound_and_share(&releases(&clock, timers, timeout, || store.wait(&set)), &format!("set, {what}"));
}

#[test]
fn timeouts_of_half_a_second_leave_no_gap() {
    measure_everywhere("after 0.5 s", Timers::OnTime, half_a_second);
}

#[test]
fn random_timeouts_leave_no_gap() {
    measure_everywhere("at random", Timers::OnTime, random);
}

#[test]
fn late_timers_keep_the_bound_and_the_rate() {
    measure_everywhere("timers late by 30 ms", Timers::Every(30 * MILLISECOND), half_a_second);
    measure_everywhere("timers late by 7 ms", Timers::Every(7 * MILLISECOND), random);
}

/// A store with a bucket that is reserved for 910 ms ahead, and a log of five a second.
fn bucket_and_log() -> (MemoryStore<ManualClock>, ManualClock, [LimitHandle; 2]) {
    let (store, clock) = store();
    let limits = [store.add("limits", hundred()).unwrap(), store.add("limits", log(5)).unwrap()];
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

/// The log is charged at the release, not on arrival.
#[test]
fn a_log_in_a_set_counts_release_times() {
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
fn a_log_in_a_set_keeps_its_bound_when_waiters_are_cancelled() {
    for timeout in [half_a_second as Timeout, random] {
        let (store, clock, limits) = bucket_and_log();
        let set = limits.each_ref().map(|limit| Charge::new(limit, "k"));
        let released = releases(&clock, Timers::OnTime, timeout, || store.wait(&set));
        at_most_five_in_any_second(&released);
        assert!(released.len() >= 5 * 19, "{} of a hundred", released.len());
    }
}

/// Changes ten a second to another rate after one second, while a hundred wait, and adds ten waiters then. The release times in
/// milliseconds, for every type.
fn released_when_changed(per_second: u32) -> [Vec<u64>; 3] {
    let (one, one_clock) = limiter(bucket(10, 1));
    let (by_key, keyed_clock) = keyed(bucket(10, 1), 10);
    let (store, store_clock) = store();
    let limit = store.add("limit", bucket(10, 1)).unwrap();
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

/// By the change at 1 s, waiters 0 to 10 have been released, one every 0.1 s.
#[test]
fn a_raised_rate_applies_to_the_whole_queue() {
    let expected: Vec<u64> = (0..110).map(|n| if n <= 10 { n * 100 } else { 1_000 + n - 10 }).collect();
    for released in released_when_changed(1_000) {
        assert_eq!(released, expected);
    }
}

#[test]
fn a_lowered_rate_applies_to_the_whole_queue() {
    let expected: Vec<u64> = (0..110).map(|n| if n <= 10 { n * 100 } else { (n - 9) * 1_000 }).collect();
    for released in released_when_changed(1) {
        assert_eq!(released, expected);
    }
}

/// Waiters 8 to 10 were accepted on arrival, and the lower rate makes their deadline unreachable.
#[test]
fn a_lowered_rate_refuses_unreachable_deadlines_at_once() {
    let (limiter, clock) = limiter(bucket(10, 1));
    let mut tasks = Tasks::on(&clock);
    tasks.start_all((0..11).map(|_| limiter.wait().up_to(SECOND)));
    assert_eq!(tasks.order(), [0]);
    tasks.pass(SECOND / 2);
    assert_eq!(tasks.order(), [0, 1, 2, 3, 4, 5]);
    tasks.done.clear();
    limiter.change(bucket(5, 1));
    tasks.run();
    // The next releases are at 0.7, 0.9 and 1.1 s.
    assert_eq!(tasks.order(), [8, 9, 10]);
    for (_, at, refused) in std::mem::take(&mut tasks.done) {
        assert_eq!(at, Time::ZERO + SECOND / 2);
        let reason = refused.unwrap_err().reason();
        assert_eq!(reason, Reason::Late { retry_after: SECOND / 10 }, "a refused waiter delays nobody");
    }
    tasks.finish();
    assert_eq!((tasks.order(), tasks.millis()), (vec![6, 7], vec![700, 900]));
}
