//! The types' edges, the longest times, and input that makes no sense: a typed error or `never`, and no panic.

use crate::booking::book;
use crate::limits::{self, per};
use proptest::prelude::*;
use std::time::Duration;
use tollgate::{
    Align, Concurrency, Decision, Delay, FixedWindow, LeakyBucket, Limit, LimitError, Limiter, ManualClock,
    Rate, Refill, Retry, SlidingCounter, SlidingLog, SlidingWindow, SmoothBursty, SmoothWarmingUp, Time,
    TokenBucket,
};

const YEAR: Duration = Duration::from_secs(365 * 86_400);
const NEVER: Decision = Decision::Deny(Retry::Never);

/// Limits at the edges of their types.
fn extreme_limits() -> Vec<Limit> {
    let slow = per(1, 30 * 86_400 * Duration::from_secs(1));
    let fast = Rate::per_second(1_000_000_000).unwrap();
    let odd = Rate::per_second(999_999_937).unwrap();
    let slowest = per(1, 100 * YEAR);
    let fastest = per(u64::MAX, Duration::from_nanos(1));
    let mut limits: Vec<Limit> = Vec::new();
    for rate in [slow, fast, odd, slowest, fastest] {
        for burst in [1, 7, u32::MAX] {
            let bucket = TokenBucket::new(rate, burst).unwrap();
            limits.push(bucket.into());
            limits.push(bucket.with_initial(0).unwrap().into());
            limits.push(bucket.with_refill(Refill::Interval).into());
            limits.push(LeakyBucket::new(rate, burst).unwrap().into());
            limits.push(LeakyBucket::new(rate, burst).unwrap().with_delay(Delay::After(1)).unwrap().into());
        }
        limits.push(SmoothBursty::new(rate).into());
        limits.push(SmoothBursty::new(rate).with_max_burst(100 * YEAR).unwrap().into());
        limits.push(SmoothWarmingUp::new(rate, YEAR).unwrap().with_cold_factor(1e9).unwrap().into());
    }
    for limit in [1, u32::MAX] {
        for window in [Duration::from_nanos(1), Duration::from_secs(1), 100 * YEAR] {
            limits.push(FixedWindow::new(limit, window).unwrap().into());
            limits.push(FixedWindow::new(limit, window).unwrap().with_align(Align::FirstHit).into());
            limits.push(SlidingLog::new(limit, window).unwrap().into());
            limits.push(SlidingWindow::new(limit, window, window).unwrap().into());
            limits.push(SlidingCounter::new(limit, window).unwrap().into());
            limits.push(Concurrency::new(limit, window).unwrap().into());
        }
        limits.push(FixedWindow::forever(limit).unwrap().into());
    }
    limits
}

#[test]
fn nothing_panics_at_the_edges_and_answers_stay_in_range() {
    let times = [0, 1, 999, 1 << 32, 1 << 53, 1 << 61, (1 << 62) + 12_345, 1 << 63, u64::MAX - 1, u64::MAX];
    let costs = [0, 1, 2, 7, 1 << 31, u32::MAX - 1, u32::MAX];
    for limit in extreme_limits() {
        let clock = ManualClock::new();
        let limiter = Limiter::with_clock(limit.clone(), clock.clone());
        for nanos in times.into_iter().chain(times.into_iter().rev()) {
            clock.set(Time::from_nanos(nanos));
            for cost in costs {
                let status = limiter.check_n(cost);
                assert!(status.remaining() <= status.limit(), "{limit:?}: {status:?}");
                let _ = (book(&limiter, cost, Duration::MAX), limiter.peek(cost), limiter.check_n(cost));
                limiter.refund(cost);
            }
            limiter.change(limit.clone());
            limiter.reset();
        }
    }
}

proptest! {
    #![proptest_config(crate::limits::cases(512))]

    #[test]
    fn any_history_in_any_order_of_times_is_survived(
        limit in limits::limits(),
        calls in prop::collection::vec((any::<u64>(), any::<u32>(), 0_u8..7), 1..40),
    ) {
        let clock = ManualClock::new();
        let limiter = Limiter::with_clock(limit, clock.clone());
        for (nanos, number, call) in calls {
            clock.set(Time::from_nanos(nanos));
            match call {
                0 => drop(limiter.check_n(number)),
                1 => {
                    let _ = book(&limiter, number, Duration::from_nanos(u64::from(number)));
                }
                5 => drop(limiter.reserve(number, Duration::MAX)),
                6 => drop(limiter.reserve(1, Duration::MAX).map(|turn| turn.settle(number))),
                2 => limiter.refund(number),
                3 => drop(limiter.peek(number)),
                _ => limiter.grant(number),
            }
        }
    }
}

#[test]
fn a_cost_above_what_the_limit_can_give_is_never() {
    let second = Duration::from_secs(1);
    let limits: [Limit; 8] = [
        TokenBucket::new(Rate::per_second(9).unwrap(), 5).unwrap().into(),
        TokenBucket::new(Rate::per_second(9).unwrap(), 5).unwrap().with_refill(Refill::Interval).into(),
        LeakyBucket::new(Rate::per_second(9).unwrap(), 5).unwrap().into(),
        FixedWindow::new(5, second).unwrap().into(),
        SlidingLog::new(5, second).unwrap().into(),
        SlidingWindow::new(5, second, second / 4).unwrap().into(),
        SlidingCounter::new(5, second).unwrap().into(),
        Concurrency::new(5, second).unwrap().into(),
    ];
    for limit in limits {
        let limiter = Limiter::with_clock(limit.clone(), ManualClock::new());
        assert_eq!(limiter.check_n(6).decision(), NEVER, "{limit:?}");
        assert_eq!(limiter.check_n(u32::MAX).decision(), NEVER, "{limit:?}");
        assert_eq!(limiter.check_n(6).retry_after(), None);
        assert!(limiter.check_n(5).is_allow(), "{limit:?} gives all it has after a never");
    }
}

#[test]
fn a_quota_for_good_that_is_used_up_says_never() {
    let limiter = Limiter::with_clock(FixedWindow::forever(2).unwrap(), ManualClock::new());
    assert!(limiter.check_n(2).is_allow());
    assert_eq!(limiter.check().decision(), NEVER);
    assert_eq!(limiter.check().reset_after(), None);
    limiter.refund(1);
    assert!(limiter.check().is_allow());
}

#[test]
fn ten_years_idle_is_one_burst_and_no_more() {
    for (rate, burst) in [
        (Rate::per_second(7).unwrap(), 10),
        (Rate::per_second(999_999_937).unwrap(), u32::MAX),
        (per(1, 30 * 86_400 * Duration::from_secs(1)), 3),
    ] {
        let clock = ManualClock::new();
        let limiter = Limiter::with_clock(TokenBucket::new(rate, burst).unwrap(), clock.clone());
        assert!(limiter.check_n(burst).is_allow());
        for _ in 0..3 {
            clock.advance(10 * YEAR);
            assert_eq!(limiter.peek(0).remaining(), burst, "{rate}");
            assert!(limiter.check_n(burst).is_allow());
            assert!(limiter.check().is_deny(), "{rate}: one more than the burst after ten idle years");
        }
    }
}

#[test]
fn numbers_that_make_no_sense_are_errors() {
    let rate = Rate::per_second(1).unwrap();
    let second = Duration::from_secs(1);
    let is_zero = |result: Result<Limit, LimitError>| matches!(result, Err(LimitError::Zero { .. }));
    assert!(matches!(Rate::per_second(0), Err(LimitError::Zero { .. })));
    assert!(matches!(Rate::new(1, Duration::ZERO), Err(LimitError::Zero { .. })));
    assert!(matches!(Rate::new(1, Duration::MAX), Err(LimitError::TooLong { .. })));
    assert!(is_zero(TokenBucket::new(rate, 0).map(Limit::from)));
    assert!(is_zero(LeakyBucket::new(rate, 0).map(Limit::from)));
    assert!(is_zero(FixedWindow::new(0, second).map(Limit::from)));
    assert!(is_zero(FixedWindow::new(1, Duration::ZERO).map(Limit::from)));
    assert!(is_zero(FixedWindow::forever(0).map(Limit::from)));
    assert!(is_zero(SlidingLog::new(0, second).map(Limit::from)));
    assert!(is_zero(SlidingLog::new(1, Duration::ZERO).map(Limit::from)));
    assert!(is_zero(SlidingWindow::new(1, second, Duration::ZERO).map(Limit::from)));
    assert!(is_zero(SlidingCounter::new(1, Duration::ZERO).map(Limit::from)));
    assert!(is_zero(Concurrency::new(0, second).map(Limit::from)));
    assert!(is_zero(Concurrency::new(1, Duration::ZERO).map(Limit::from)));
    assert!(is_zero(SmoothWarmingUp::new(rate, Duration::ZERO).map(Limit::from)));
    assert!(is_zero(SmoothBursty::new(rate).with_max_burst(Duration::ZERO).map(Limit::from)));
    let factor = |factor| SmoothWarmingUp::new(rate, second).unwrap().with_cold_factor(factor);
    for wrong in [f64::NAN, f64::INFINITY, -1.0, 0.0, 0.5] {
        assert!(matches!(factor(wrong), Err(LimitError::NotFinite { .. })), "{wrong}");
    }
    assert!(matches!(TokenBucket::new(rate, 3).unwrap().with_initial(4), Err(LimitError::Above { .. })));
    assert!(matches!(SlidingWindow::new(1, second, 2 * second), Err(LimitError::Above { .. })));
    assert!(matches!(
        LeakyBucket::new(rate, 3).unwrap().with_delay(Delay::After(4)),
        Err(LimitError::Above { .. })
    ));
    assert_eq!(Rate::per_second(0).unwrap_err().to_string(), "rate must be greater than zero");
    assert_eq!(
        TokenBucket::new(rate, 3).unwrap().with_initial(4).unwrap_err().to_string(),
        "initial must not be above burst"
    );
}
