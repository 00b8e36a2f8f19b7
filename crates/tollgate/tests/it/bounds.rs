//! What each algorithm promises to admit at most, over every window of thousands of random schedules.

use crate::limits::{self, Arrival, per};
use proptest::prelude::*;
use std::time::Duration;
use tollgate::{
    Align, Clock, Concurrency, Decision, Delay, FixedWindow, LeakyBucket, Limit, Limiter, ManualClock, Rate,
    Refill, SlidingCounter, SlidingLog, SlidingWindow, SmoothBursty, SmoothWarmingUp, TokenBucket,
};

/// When units started, in nanoseconds.
fn started(limit: impl Into<Limit>, arrivals: &[Arrival]) -> Vec<(u64, u64)> {
    let clock = ManualClock::new();
    let limiter = Limiter::with_clock(limit, clock.clone());
    let mut started = Vec::new();
    for (pause, cost) in arrivals {
        clock.advance(Duration::from_nanos(*pause));
        let now = clock.now().as_nanos();
        match limiter.check_n(*cost).decision() {
            Decision::Allow => started.push((now, u64::from(*cost))),
            Decision::Wait(wait) => {
                started.push((now + u64::try_from(wait.as_nanos()).unwrap(), u64::from(*cost)));
            }
            Decision::Deny(_) => {}
        }
    }
    started
}

/// For every pair of starts: the units from one to the other, both counted, and the nanoseconds between.
fn every_span(
    started: &[(u64, u64)],
    mut holds: impl FnMut(u64, u64) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    for from in 0..started.len() {
        let mut units = 0;
        for (at, cost) in &started[from..] {
            units += cost;
            holds(units, at.saturating_sub(started[from].0))?;
        }
    }
    Ok(())
}

/// Units that come at `rate` in `nanos`, rounded down.
fn earned(rate: Rate, nanos: u64) -> u64 {
    let earned = u128::from(nanos) * u128::from(rate.amount().get()) / rate.period().as_nanos();
    u64::try_from(earned).unwrap()
}

proptest! {
    #![proptest_config(crate::limits::cases(2048))]

    #[test]
    fn token_bucket_admits_burst_and_rate(
        rate in limits::rates(), burst in 1_u32..60, initial in 0_u32..60, arrivals in limits::arrivals(60),
    ) {
        let bucket = TokenBucket::new(rate, burst).unwrap().with_initial(initial.min(burst)).unwrap();
        every_span(&started(bucket, &arrivals), |units, nanos| {
            prop_assert!(units <= u64::from(burst) + earned(rate, nanos), "{units} in {nanos} ns");
            Ok(())
        })?;
    }

    #[test]
    fn interval_bucket_admits_burst_and_whole_refills(
        rate in limits::rates(), burst in 1_u32..60, arrivals in limits::arrivals(60),
    ) {
        let bucket = TokenBucket::new(rate, burst).unwrap().with_refill(Refill::Interval);
        let period = u64::try_from(rate.period().as_nanos()).unwrap();
        every_span(&started(bucket, &arrivals), |units, nanos| {
            prop_assert!(units <= u64::from(burst) + rate.amount().get() * nanos.div_ceil(period));
            Ok(())
        })?;
    }

    #[test]
    fn leaky_bucket_starts_at_the_pace(
        rate in limits::rates(), capacity in 1_u32..60, delay in prop::option::of(1_u32..60), arrivals in limits::arrivals(60),
    ) {
        let (free, delay) = match delay {
            None => (capacity, Delay::None),
            Some(units) => (units.min(capacity), Delay::After(units.min(capacity))),
        };
        // A single charge above the delay starts as a whole, so the bound on starts is for charges that are not.
        let arrivals: Vec<Arrival> = arrivals.iter().map(|(pause, cost)| (*pause, (*cost).min(free))).collect();
        let mut starts = started(LeakyBucket::new(rate, capacity).unwrap().with_delay(delay).unwrap(), &arrivals);
        starts.sort_unstable();
        every_span(&starts, |units, nanos| {
            // A wait is rounded up to the microsecond, so two starts may be one closer than the pace.
            let rounding = if delay == Delay::None { 0 } else { 1_000 };
            prop_assert!(units <= u64::from(free) + earned(rate, nanos + rounding) + rounding / 1_000, "{units} in {nanos} ns");
            Ok(())
        })?;
    }

    #[test]
    fn smooth_bursty_admits_what_it_banked_and_one(
        rate in limits::rates(), span in 1_u64..3_000, arrivals in limits::arrivals(60),
    ) {
        let span = Duration::from_millis(span);
        let limit = SmoothBursty::new(rate).with_max_burst(span).unwrap();
        let singles: Vec<Arrival> = arrivals.iter().map(|(pause, _)| (*pause, 1)).collect();
        let banked = earned(rate, u64::try_from(span.as_nanos()).unwrap()) + 1;
        every_span(&started(limit, &singles), |units, nanos| {
            // Guava drops fractions of a microsecond, at up to 1000 permits a second: a thousandth at most.
            let paid = earned(rate, nanos + 1_000);
            prop_assert!(units <= banked + 1 + paid + paid / 999, "{units} in {nanos} ns, banked {banked}");
            Ok(())
        })?;
    }

    #[test]
    fn warming_up_never_exceeds_the_stable_rate(
        rate in limits::rates(), warmup in 1_u64..3_000, arrivals in limits::arrivals(60),
    ) {
        let limit = SmoothWarmingUp::new(rate, Duration::from_millis(warmup)).unwrap();
        let singles: Vec<Arrival> = arrivals.iter().map(|(pause, _)| (*pause, 1)).collect();
        every_span(&started(limit, &singles), |units, nanos| {
            // Two truncated terms a permit: a microsecond each.
            let paid = earned(rate, nanos + 2_000);
            prop_assert!(units <= 2 + paid + paid / 400, "{units} in {nanos} ns");
            Ok(())
        })?;
    }

    #[test]
    fn fixed_window_admits_limit_a_window(
        limit in 1_u32..40, window in 1_u64..3_000_000_000, first_hit: bool, arrivals in limits::arrivals(60),
    ) {
        let align = if first_hit { Align::FirstHit } else { Align::Epoch };
        let numbers = FixedWindow::new(limit, Duration::from_nanos(window)).unwrap().with_align(align);
        let mut counted: Option<(u64, u64)> = None;
        for (at, cost) in started(numbers, &arrivals).into_iter().filter(|(_, cost)| *cost > 0) {
            let open = counted.filter(|(start, _)| if first_hit { at < start + window } else { at / window == *start });
            let (start, used) = open.unwrap_or((if first_hit { at } else { at / window }, 0));
            prop_assert!(used + cost <= u64::from(limit));
            counted = Some((start, used + cost));
        }
    }

    #[test]
    fn sliding_log_and_window_admit_limit_in_any_window(
        limit in 1_u32..40, window in 1_u64..3_000_000_000, parts in 1_u64..30, exact: bool, arrivals in limits::arrivals(60),
    ) {
        let span = Duration::from_nanos(window);
        let numbers: Limit = if exact {
            SlidingLog::new(limit, span).unwrap().into()
        } else {
            SlidingWindow::new(limit, span, Duration::from_nanos((window / parts).max(1))).unwrap().into()
        };
        every_span(&started(numbers, &arrivals), |units, nanos| {
            prop_assert!(nanos >= window || units <= u64::from(limit), "{units} in {nanos} ns");
            Ok(())
        })?;
    }

    #[test]
    fn sliding_window_refuses_at_most_its_precision_longer(
        window in 1_000_u64..3_000_000_000, parts in 1_u64..30, offset in 0_u64..3_000_000_000,
    ) {
        let precision = (window / parts).max(1);
        let clock = ManualClock::new();
        let numbers = SlidingWindow::new(1, Duration::from_nanos(window), Duration::from_nanos(precision)).unwrap();
        let limiter = Limiter::with_clock(numbers, clock.clone());
        clock.advance(Duration::from_nanos(offset));
        prop_assert!(limiter.check().is_allow());
        let retry = limiter.check().retry_after().unwrap();
        prop_assert!(retry >= Duration::from_nanos(window));
        prop_assert!(retry <= Duration::from_nanos(window + precision) + Duration::from_micros(1));
    }

    #[test]
    fn sliding_counter_admits_less_than_twice_the_limit(
        limit in 1_u32..40, window in 1_u64..3_000_000_000, arrivals in limits::arrivals(60),
    ) {
        let numbers = SlidingCounter::new(limit, Duration::from_nanos(window)).unwrap();
        every_span(&started(numbers, &arrivals), |units, nanos| {
            prop_assert!(nanos >= window || units < 2 * u64::from(limit), "{units} in {nanos} ns");
            Ok(())
        })?;
    }

    #[test]
    fn concurrency_holds_limit_at_any_instant(
        limit in 1_u32..6, moves in prop::collection::vec((0_u64..400, any::<bool>(), 1_u32..3), 1..80),
    ) {
        let hold = Duration::from_millis(1_000);
        let clock = ManualClock::new();
        let limiter = Limiter::with_clock(Concurrency::new(limit, hold).unwrap(), clock.clone());
        let mut held = Vec::new();
        for (pause, enters, units) in moves {
            clock.advance(Duration::from_millis(pause));
            held.retain(|(_, _, until)| *until > clock.now());
            let in_flight: u32 = held.iter().map(|(_, units, _)| *units).sum();
            if enters {
                let status = limiter.check_n(units);
                let permit = status.permit();
                prop_assert_eq!(status.is_allow(), in_flight + units <= limit);
                prop_assert_eq!(permit.is_some(), status.is_allow());
                held.extend(permit.map(|permit| (permit, units, clock.now() + hold)));
            } else if let Some((permit, units, _)) = held.pop() {
                prop_assert_eq!(limiter.leave(permit), units);
                prop_assert_eq!(limiter.leave(permit), 0, "a permit comes back once");
            }
        }
    }
}

/// The sliding counter's bound is reached: all of one window at its end, then as much as fades.
#[test]
fn sliding_counter_worst_case_measured() {
    let clock = ManualClock::new();
    let limiter =
        Limiter::with_clock(SlidingCounter::new(100, Duration::from_secs(1)).unwrap(), clock.clone());
    clock.advance(Duration::from_nanos(999_999_999));
    assert!(limiter.check_n(100).is_allow());
    let mut admitted = 100;
    for _ in 0..999 {
        clock.advance(Duration::from_millis(1));
        while limiter.check().is_allow() {
            admitted += 1;
        }
    }
    assert_eq!(admitted, 199, "99 % over the limit within 999 ms, and no more");
}

/// Evenly spread traffic is held to the limit by the estimate.
#[test]
fn sliding_counter_is_fair_to_even_traffic() {
    let clock = ManualClock::new();
    let limiter =
        Limiter::with_clock(SlidingCounter::new(100, Duration::from_secs(1)).unwrap(), clock.clone());
    let mut admitted = Vec::new();
    for tick in 0..4_000_u32 {
        if limiter.check().is_allow() {
            admitted.push(tick);
        }
        clock.advance(Duration::from_millis(5));
    }
    let most = (0..3_800)
        .map(|from| admitted.iter().filter(|tick| (from..from + 200).contains(*tick)).count())
        .max();
    assert!(most.unwrap() <= 110, "{most:?} in the fullest second");
}

#[test]
fn warm_up_is_slower_than_stable_at_first() {
    let clock = ManualClock::new();
    let rate = per(5, Duration::from_secs(1));
    let limiter =
        Limiter::with_clock(SmoothWarmingUp::new(rate, Duration::from_secs(1)).unwrap(), clock.clone());
    let mut admitted = 0;
    for _ in 0..1_000 {
        admitted += u32::from(limiter.check().is_allow());
        clock.advance(Duration::from_millis(1));
    }
    assert!(admitted < 5, "{admitted} in the first second");
}
