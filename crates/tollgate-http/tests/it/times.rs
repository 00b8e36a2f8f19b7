//! What is told of times is true: at that time, and not before, there is what was told.

use proptest::prelude::*;
use std::time::Duration;
use tollgate::{
    Bounds, Delay, FixedWindow, KeyedLimiter, LeakyBucket, Limit, ManualClock, Rate, Refill, SlidingCounter,
    SlidingLog, SlidingWindow, SmoothBursty, SmoothWarmingUp, TokenBucket,
};
use tollgate_http::{Policy, whole_seconds};

fn buckets() -> impl Strategy<Value = Limit> {
    let rate = || {
        (1..5_000_u32, 1..100_000_u64)
            .prop_map(|(units, millis)| Rate::new(units.into(), Duration::from_millis(millis)).unwrap())
    };
    prop_oneof![
        (rate(), 1..50_u32, any::<prop::sample::Index>()).prop_map(|(rate, burst, initial)| {
            let initial = initial.index(burst as usize + 1) as u32;
            TokenBucket::new(rate, burst).unwrap().with_initial(initial).unwrap().into()
        }),
        (rate(), 1..50_u32).prop_map(|(rate, burst)| TokenBucket::new(rate, burst).unwrap().into()),
        (rate(), 1..50_u32).prop_map(|(rate, capacity)| LeakyBucket::new(rate, capacity).unwrap().into()),
        (rate(), 2..50_u32).prop_map(|(rate, capacity)| {
            LeakyBucket::new(rate, capacity).unwrap().with_delay(Delay::After(1)).unwrap().into()
        }),
    ]
}

fn others() -> impl Strategy<Value = Limit> {
    let window = || (1..100_000_u64).prop_map(Duration::from_millis);
    let rate = || {
        (1..20_u32, 1..100_000_u64)
            .prop_map(|(units, millis)| Rate::new(units.into(), Duration::from_millis(millis)).unwrap())
    };
    prop_oneof![
        (rate(), 1..50_u32, any::<prop::sample::Index>()).prop_map(|(rate, burst, initial)| {
            let initial = initial.index(burst as usize + 1) as u32;
            let bucket = TokenBucket::new(rate, burst).unwrap().with_initial(initial).unwrap();
            bucket.with_refill(Refill::Interval).into()
        }),
        (1..20_u32, window()).prop_map(|(limit, window)| FixedWindow::new(limit, window).unwrap().into()),
        (1..20_u32, window()).prop_map(|(limit, window)| SlidingLog::new(limit, window).unwrap().into()),
        (1..20_u32, window()).prop_map(|(limit, window)| SlidingCounter::new(limit, window).unwrap().into()),
        (1..20_u32, window(), 1..10_u32).prop_map(|(limit, window, parts)| SlidingWindow::new(
            limit,
            window,
            window / parts
        )
        .unwrap()
        .into()),
        (1..200_u64, 1..5_u64).prop_map(|(tenths, burst)| {
            let bursty = SmoothBursty::new(Rate::new(tenths, Duration::from_secs(10)).unwrap());
            bursty.with_max_burst(Duration::from_secs(burst)).unwrap().into()
        }),
        (1..200_u64, 1..10_u64).prop_map(|(tenths, warmup)| {
            let rate = Rate::new(tenths, Duration::from_secs(10)).unwrap();
            SmoothWarmingUp::new(rate, Duration::from_secs(warmup)).unwrap().into()
        }),
    ]
}

/// Charges, each after some milliseconds.
fn schedule() -> impl Strategy<Value = Vec<(u64, u32)>> {
    prop::collection::vec((prop_oneof![Just(0), 0..2_000_u64, 0..200_000_u64], 1..4_u32), 1..30)
}

struct Told {
    limiter: KeyedLimiter<ManualClock>,
    clock: ManualClock,
    policy: Policy,
}

impl Told {
    fn of(limit: &Limit) -> Self {
        let clock = ManualClock::new();
        let limiter = KeyedLimiter::with_clock(
            limit.clone(),
            Bounds { max_keys: 100, ..Bounds::default() },
            clock.clone(),
        );
        Self { limiter, clock, policy: Policy::of("it", limit) }
    }

    /// What remains now, and when there is one more.
    fn now(&self) -> (u32, Option<Duration>) {
        let status = self.limiter.peek("k", 0);
        (status.remaining(), self.policy.next_after(&status))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_bucket_has_one_more_at_that_time_and_not_before(limit in buckets(), schedule in schedule()) {
        let it = Told::of(&limit);
        for (millis, cost) in schedule {
            it.clock.advance(Duration::from_millis(millis));
            let _ = it.limiter.check_n("k", cost.min(limit.most()));
            let (remaining, next) = it.now();
            let Some(next) = next else {
                prop_assert_eq!(remaining, limit.most(), "only a full bucket has nothing to come");
                continue;
            };
            // A young bucket fills for the first time, and nothing tells when it began: that is told late by up to a unit.
            let exact = it.limiter.peek("k", 0).reset_after() != Some(Duration::ZERO);
            let early = next.saturating_sub(Duration::from_micros(2));
            if exact {
                it.clock.advance(early);
                prop_assert_eq!(it.now().0, remaining, "{:?} before {:?}", limit, next);
                it.clock.advance(next - early);
            } else {
                it.clock.advance(next);
            }
            prop_assert!(it.now().0 > remaining, "{:?} after {:?}", limit, next);
        }
    }

    #[test]
    fn any_other_limit_has_one_more_by_then(limit in others(), schedule in schedule()) {
        let it = Told::of(&limit);
        for (millis, cost) in schedule {
            it.clock.advance(Duration::from_millis(millis));
            let _ = it.limiter.check_n("k", cost.min(limit.most()));
            let (remaining, next) = it.now();
            if let Some(next) = next {
                it.clock.advance(next);
                prop_assert!(it.now().0 > remaining, "{:?} after {:?}", limit, next);
            }
        }
    }

    #[test]
    fn a_retry_at_the_whole_second_passes(limit in prop_oneof![buckets(), others()], schedule in schedule()) {
        let it = Told::of(&limit);
        for (millis, cost) in schedule {
            it.clock.advance(Duration::from_millis(millis));
            let cost = cost.min(limit.most());
            let status = it.limiter.check_n("k", cost);
            let Some(after) = status.retry_after() else { continue };
            let next = it.policy.next_after(&status);
            prop_assert!(next.is_some_and(|next| next <= after), "a refused charge: {:?}, {:?}", status, next);
            it.clock.advance(Duration::from_secs(whole_seconds(after).max(1)));
            prop_assert!(!it.limiter.check_n("k", cost).is_deny());
        }
    }
}
