//! The limiter in Guava's shape: its traces, its refusals, what it does better; and, in `beside`, the real class.

mod beside;

use proptest::prelude::*;
use serde_json::Value;
use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};
use tollgate::{
    Clock, ManualClock, Rate, RateLimiter, RateLimiterError, SmoothBursty, SmoothWarmingUp, Time,
};

const SECOND: Duration = Duration::from_secs(1);

type Manual = RateLimiter<ManualClock>;

fn bursty(rate: f64) -> Manual {
    RateLimiter::create(rate).unwrap().with_clock(ManualClock::new())
}

fn warming(rate: f64, warmup: Duration) -> Manual {
    RateLimiter::create_warming_up(rate, warmup).unwrap().with_clock(ManualClock::new())
}

/// Polls once.
fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Runs the future, moving the clock to where it sleeps until. A clock between two microseconds stays between two, as a
/// real one would.
fn run<T>(clock: &ManualClock, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let between = Duration::from_nanos(clock.now().as_nanos() % 1_000);
    loop {
        if let Poll::Ready(answer) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return answer;
        }
        clock.set(clock.next_sleeper().unwrap() + between);
    }
}

/// Microseconds that an acquire in a task sleeps.
fn acquire(limiter: &Manual, permits: u32) -> u64 {
    let before = limiter.clock().now();
    let slept = run(limiter.clock(), limiter.acquire_async(permits)).unwrap();
    assert_eq!(limiter.clock().now() - before, slept, "it sleeps as long as it says");
    micros(slept)
}

/// Microseconds that an acquire on a thread sleeps.
fn acquire_on_thread(limiter: &Manual, permits: u32) -> u64 {
    let clock = limiter.clock();
    let before = clock.now();
    let slept = thread::scope(|scope| {
        let sleeper = scope.spawn(|| limiter.acquire_n(permits).unwrap());
        while !sleeper.is_finished() {
            if let Some(until) = clock.next_sleeper() {
                clock.set(until);
            }
            thread::yield_now();
        }
        sleeper.join().unwrap()
    });
    assert_eq!(clock.now() - before, slept, "it sleeps as long as it says");
    micros(slept)
}

fn micros(duration: Duration) -> u64 {
    assert_eq!(duration.subsec_nanos() % 1_000, 0, "waits are whole microseconds");
    u64::try_from(duration.as_micros()).unwrap()
}

/// What the recorded traces of limiters say, by the trace's kind.
fn traces(kind: &str) -> Vec<Value> {
    let text = include_str!("../../../tollgate-cli/tests/vectors/seed_traces.json");
    let all: Value = serde_json::from_str(text).unwrap();
    all[kind].as_array().unwrap().clone()
}

/// The limiter that a trace is of.
fn traced(trace: &Value) -> Manual {
    let rate = trace["rate_per_s"].as_f64().unwrap();
    let Some(warmup) = trace["warmup_ms"].as_u64() else { return bursty(rate) };
    assert_eq!(trace["cold_factor"], 3.0, "the only one that Guava has");
    warming(rate, Duration::from_millis(warmup))
}

#[test]
fn traces_of_calls_that_sleep() {
    let mut compared = 0;
    for trace in [traces("smooth_bursty"), traces("smooth_warming_up")].concat() {
        for acquire in [acquire, acquire_on_thread] {
            let limiter = traced(&trace);
            for (index, step) in trace["steps"].as_array().unwrap().iter().enumerate() {
                if let Some(rest) = step["sleep_ms"].as_u64() {
                    limiter.clock().advance(Duration::from_millis(rest));
                    continue;
                }
                let permits = u32::try_from(step["acquire"].as_u64().unwrap()).unwrap();
                assert_eq!(
                    acquire(&limiter, permits),
                    step["waits_us"].as_u64().unwrap(),
                    "{}, step {index}",
                    trace["name"]
                );
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 2 * 31);
}

#[test]
fn traces_of_arrivals() {
    let mut compared = 0;
    for trace in [traces("smooth_bursty_arrivals"), traces("smooth_warming_up_arrivals")].concat() {
        let limiter = traced(&trace);
        let start = Time::ZERO + Duration::from_millis(trace["idle_before_ms"].as_u64().unwrap());
        // Everybody waits in a task of their own while the clock goes on.
        let mut waiting: Vec<_> = Vec::new();
        for step in trace["steps"].as_array().unwrap() {
            let at = start + Duration::from_millis(step["at_ms"].as_u64().unwrap());
            limiter.clock().set(at);
            let permits = u32::try_from(step["permits"].as_u64().unwrap()).unwrap();
            let mut turn = Box::pin(limiter.acquire_async(permits));
            let passes = start + Duration::from_micros(step["passes_at_us"].as_u64().unwrap());
            match turn.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(slept) => assert_eq!((slept, at), (Ok(Duration::ZERO), passes), "{trace}"),
                Poll::Pending => waiting.push((turn, passes, at)),
            }
            compared += 1;
        }
        for (turn, passes, at) in waiting {
            assert_eq!(run(limiter.clock(), turn), Ok(passes - at), "{}", trace["name"]);
        }
    }
    assert_eq!(compared, 12);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for rate in [0.0, -0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
        assert!(matches!(RateLimiter::create(rate), Err(RateLimiterError::Rate { .. })), "{rate}");
        assert!(matches!(RateLimiter::create_warming_up(rate, SECOND), Err(RateLimiterError::Rate { .. })));
        let limiter = bursty(5.0);
        assert!(matches!(limiter.set_rate(rate), Err(RateLimiterError::Rate { .. })));
        assert_eq!(limiter.rate(), 5.0, "and nothing has changed");
    }
    let limiter = bursty(5.0);
    assert_eq!(limiter.acquire_n(0), Err(RateLimiterError::NoPermits));
    assert_eq!(limiter.try_acquire_n(0), Err(RateLimiterError::NoPermits));
    assert_eq!(limiter.try_acquire_n_for(0, SECOND), Err(RateLimiterError::NoPermits));
    assert_eq!(poll(limiter.acquire_async(0)), Poll::Ready(Err(RateLimiterError::NoPermits)));
    assert_eq!(poll(limiter.try_acquire_async(0, SECOND)), Poll::Ready(Err(RateLimiterError::NoPermits)));
    assert_eq!(
        RateLimiter::create(-2.5).unwrap_err().to_string(),
        "a rate must be a number greater than zero, not -2.5"
    );
    assert_eq!(RateLimiterError::NoPermits.to_string(), "permits must be greater than zero");
    assert_eq!(format!("{limiter:?}"), "RateLimiter { rate: 5.0, .. }");
}

#[test]
fn a_timeout_is_cut_to_microseconds_and_a_refusal_costs_nothing() {
    let limiter = bursty(5.0);
    assert!(limiter.try_acquire());
    for _ in 0..3 {
        assert!(!limiter.try_acquire());
        assert_eq!(limiter.try_acquire_n(7), Ok(false));
        assert!(!limiter.try_acquire_for(Duration::from_nanos(199_999_999)));
        assert_eq!(
            poll(limiter.try_acquire_async(1, Duration::from_nanos(199_999_999))),
            Poll::Ready(Ok(false))
        );
    }
    let in_time = limiter.try_acquire_async(1, Duration::from_millis(200));
    assert_eq!(run(limiter.clock(), in_time), Ok(true));
    assert_eq!(limiter.clock().now(), Time::from_nanos(200_000_000));
}

#[test]
fn a_change_of_rate_leaves_booked_turns_at_the_old_one() {
    let limiter = bursty(5.0);
    assert_eq!(acquire(&limiter, 5), 0);
    limiter.set_rate(50.0).unwrap();
    assert_eq!(acquire(&limiter, 1), 1_000_000, "five at five a second");
    assert_eq!(acquire(&limiter, 1), 20_000, "one at fifty");

    limiter.clock().advance(SECOND / 2);
    limiter.set_rate(5.0).unwrap();
    let waits = [1, 1, 1, 1].map(|permits| acquire(&limiter, permits));
    assert_eq!(waits, [0, 0, 0, 120_000], "24 of 50 stored are 2.4 of 5");
}

#[test]
fn a_change_before_the_first_use_counts() {
    let cold = warming(10.0, SECOND);
    cold.set_rate(5.0).unwrap();
    let fresh = warming(5.0, SECOND);
    for _ in 0..6 {
        assert_eq!(acquire(&cold, 1), acquire(&fresh, 1));
    }
}

#[test]
fn an_infinite_rate_never_waits_and_can_be_left_again() {
    let limiter = bursty(f64::INFINITY);
    assert_eq!(limiter.rate(), f64::INFINITY);
    for _ in 0..10 {
        assert_eq!(limiter.acquire_n(u32::MAX), Ok(Duration::ZERO));
    }
    limiter.clock().advance(SECOND);
    limiter.set_rate(2.0).unwrap();
    let waits = [1, 1, 1, 1].map(|permits| acquire(&limiter, permits));
    assert_eq!(waits, [0, 0, 0, 500_000], "a full burst at once, as in Guava");
}

#[test]
fn no_warm_up_is_a_steady_pace() {
    let limiter = warming(5.0, Duration::ZERO);
    let waits = [1, 1, 1].map(|permits| acquire(&limiter, permits));
    assert_eq!(waits, [0, 200_000, 200_000]);
    limiter.clock().advance(60 * SECOND);
    let waits = [1, 1, 1].map(|permits| acquire(&limiter, permits));
    assert_eq!(waits, [0, 200_000, 200_000], "rest buys nothing");
}

#[test]
fn a_rate_too_slow_to_tell_lets_one_through() {
    for limiter in [bursty(5e-324), warming(5e-324, SECOND), bursty(1e-18), warming(1e-18, SECOND)] {
        assert!(limiter.try_acquire());
        limiter.clock().set(Time::END);
        assert!(!limiter.try_acquire());
    }
}

#[test]
fn burst_start_and_cold_factor_can_be_chosen() {
    let rate = Rate::per_second(5).unwrap();
    let full = SmoothBursty::new(rate).with_max_burst(2 * SECOND).unwrap().with_initial(10).unwrap();
    let limiter = RateLimiter::from(full).with_clock(ManualClock::new());
    assert_eq!([10, 1, 1].map(|permits| acquire(&limiter, permits)), [0, 0, 200_000]);

    let steep = SmoothWarmingUp::new(rate, SECOND).unwrap().with_cold_factor(9.0).unwrap();
    let steep = RateLimiter::from(steep).with_clock(ManualClock::new());
    assert_eq!(acquire(&steep, 1), 0);
    assert!(acquire(&steep, 1) > 600_000, "colder than three intervals");
}

#[test]
fn a_clock_that_steps_back_stretches_no_wait() {
    let limiter = bursty(5.0);
    limiter.clock().advance(60 * SECOND);
    assert_eq!(acquire(&limiter, 6), 0);
    limiter.clock().set(Time::ZERO + SECOND);
    assert_eq!(acquire(&limiter, 1), 200_000);
}

/// What the next callers wait, and so everything that can be told about its state.
fn future_of(limiter: &Manual) -> Vec<u64> {
    [1, 3, 1, 7, 1, 20, 1].map(|permits| acquire(limiter, permits)).to_vec()
}

fn any_limiter() -> impl Strategy<Value = (f64, Option<u64>)> {
    let rate = prop_oneof![0.05..1_000.0, Just(5.0), Just(333.3)];
    (rate, prop::option::of(1_u64..10_000_000))
}

fn make((rate, warmup): (f64, Option<u64>)) -> Manual {
    warmup.map_or_else(|| bursty(rate), |warmup| warming(rate, Duration::from_micros(warmup)))
}

proptest! {
    #[test]
    fn an_acquire_dropped_half_way_leaves_no_trace(
        numbers in any_limiter(), rest in 0_u64..20_000_000, costs in prop::collection::vec(1_u32..40, 1..5),
        dropped in prop::collection::vec((1_u32..100, 0_u64..100), 1..4),
    ) {
        let (touched, untouched) = (make(numbers), make(numbers));
        for limiter in [&touched, &untouched] {
            limiter.clock().advance(Duration::from_micros(rest));
            for cost in &costs {
                acquire(limiter, *cost);
            }
        }
        let mut turns: Vec<_> = Vec::new();
        for (cost, _) in &dropped {
            let mut turn = Box::pin(touched.acquire_async(*cost));
            if turn.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
                turns.push(turn);
            } else {
                // It had its turn: so has the other one.
                acquire(&untouched, *cost);
            }
        }
        // Time goes on, though not to the first turn.
        if let Some(until) = touched.clock().next_sleeper() {
            let on = (until - touched.clock().now()) * u32::try_from(dropped[0].1).unwrap() / 100;
            touched.clock().advance(on);
            untouched.clock().advance(on);
        }
        // The last one first: one that others were taken after gives nothing back.
        while turns.pop().is_some() {}
        prop_assert_eq!(touched.clock().next_sleeper(), None);
        prop_assert_eq!(future_of(&touched), future_of(&untouched));
    }
}

#[test]
fn an_acquire_dropped_in_front_of_others_gives_nothing_back() {
    // One a second. Three acquire, in tasks of their own; the first of them gives up.
    let limiter = bursty(1.0);
    assert_eq!(acquire(&limiter, 1), 0);
    let mut turns: Vec<_> = (0..3).map(|_| Box::pin(limiter.acquire_async(1))).collect();
    for turn in &mut turns {
        assert!(turn.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    drop(turns.remove(0));
    assert_eq!(acquire(&limiter, 1), 4_000_000, "the second and the third keep 2 s and 3 s");
    // The last of those that are left gives back what it took, and the next one goes in its stead.
    let limiter = bursty(1.0);
    assert_eq!(acquire(&limiter, 1), 0);
    let mut turns: Vec<_> = (0..3).map(|_| Box::pin(limiter.acquire_async(1))).collect();
    for turn in &mut turns {
        assert!(turn.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    drop(turns.pop());
    assert_eq!(acquire(&limiter, 1), 3_000_000);
}

#[test]
fn a_drop_after_a_change_of_rate_gives_back_the_same_fraction() {
    // A warming one: it has permits stored while somebody waits.
    let cold = warming(10.0, SECOND);
    assert_eq!(acquire(&cold, 1), 0);
    let mut turn = Box::pin(cold.acquire_async(2));
    assert!(turn.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    cold.set_rate(20.0).unwrap();
    drop(turn);

    let other = warming(10.0, SECOND);
    assert_eq!(acquire(&other, 1), 0);
    other.set_rate(20.0).unwrap();
    assert_eq!(future_of(&cold), future_of(&other));
}

#[test]
fn above_a_thousand_a_second_the_rate_is_exact() {
    let take_one = |limiter: &Manual| assert!(acquire(limiter, 1) <= 10);
    for rate in [300_000_u32, 600_000, 1_500_000] {
        for limiter in [bursty(rate.into()), warming(rate.into(), Duration::from_millis(1))] {
            // Two milliseconds' worth, and the warm-up is over.
            (0..rate / 500).for_each(|_| take_one(&limiter));
            let start = limiter.clock().now();
            (0..rate).for_each(|_| take_one(&limiter));
            let took = limiter.clock().now() - start;
            assert!(took.abs_diff(SECOND) <= Duration::from_micros(2), "{rate}/s: {took:?}");
        }
    }
}

#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn a_timeout_around_it_gives_the_permits_back() {
    let limiter = RateLimiter::create(5.0).unwrap().with_clock(tollgate::TokioClock::new());
    assert_eq!(limiter.acquire_async(5).await, Ok(Duration::ZERO));
    let impatient = tokio::time::timeout(SECOND / 2, limiter.acquire_async(100)).await;
    assert!(impatient.is_err());
    assert_eq!(limiter.acquire_async(1).await, Ok(SECOND / 2), "the hundred are nobody's debt");
}

#[test]
fn a_turn_can_be_awaited_on_another_thread() {
    fn sendable<T: Send>(value: T) -> T {
        value
    }
    let limiter = bursty(5.0);
    assert_eq!(run(limiter.clock(), sendable(limiter.acquire_async(1))), Ok(Duration::ZERO));
    assert_eq!(run(limiter.clock(), sendable(limiter.try_acquire_async(1, SECOND))), Ok(true));
}
