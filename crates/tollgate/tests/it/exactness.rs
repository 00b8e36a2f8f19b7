//! Exact over any history: hints that hold to the microsecond, refusals that leave no trace, one answer by every way in.

use crate::booking::book;
use crate::limits::{self, per};
use proptest::prelude::*;
use std::time::Duration;
use tollgate::{
    Bounds, Charge, Clock, Decision, KeyedLimiter, Limiter, ManualClock, MemoryStore, Rate, Retry,
    SmoothBursty, SmoothWarmingUp, TokenBucket,
};

const MICROSECOND: Duration = Duration::from_micros(1);

proptest! {
    #![proptest_config(crate::limits::cases(4096))]

    /// A retry at exactly the hint passes; one clock step earlier does not.
    #[test]
    fn a_retry_at_the_hint_passes_and_not_before(limit in limits::limits(), arrivals in limits::arrivals(40)) {
        let clock = ManualClock::new();
        let limiter = Limiter::with_clock(limit.clone(), clock.clone());
        for (pause, cost) in arrivals {
            clock.advance(Duration::from_nanos(pause));
            let Decision::Deny(Retry::After(after)) = limiter.check_n(cost).decision() else { continue };
            prop_assert!(after > Duration::ZERO, "{limit:?} says come at once");
            let refused_at = clock.now();
            clock.set(refused_at + (after - MICROSECOND));
            prop_assert!(limiter.peek(cost).is_deny(), "{limit:?}: {cost} passes a step before {after:?}");
            clock.set(refused_at + after);
            prop_assert!(!limiter.peek(cost).is_deny(), "{limit:?}: {cost} refused at {after:?}");
            clock.set(refused_at);
        }
    }

    /// Refused calls and peeks change nothing that any later call can see.
    #[test]
    fn refusals_and_peeks_leave_no_trace(limit in limits::limits(), arrivals in limits::arrivals(40)) {
        let clock = ManualClock::new();
        let pestered = Limiter::with_clock(limit.clone(), clock.clone());
        let calm = Limiter::with_clock(limit, clock.clone());
        for (pause, cost) in arrivals {
            clock.advance(Duration::from_nanos(pause));
            let foretold = pestered.peek(cost);
            prop_assert_eq!(pestered.peek(cost), foretold);
            let status = pestered.check_n(cost);
            prop_assert_eq!(status, foretold, "peek answers what check would");
            if status.is_deny() {
                prop_assert_eq!(pestered.check_n(cost), status, "a refusal repeats itself");
            } else {
                prop_assert_eq!(calm.check_n(cost), status);
            }
            prop_assert!(pestered.check_n(0).is_allow(), "cost 0 always passes");
        }
    }

    /// One bucket, a keyed bucket and a set of one charge are the same bucket.
    #[test]
    fn every_way_in_gives_the_same_answer(limit in limits::limits(), arrivals in limits::arrivals(40)) {
        let clock = ManualClock::new();
        clock.advance(Duration::from_secs(77));
        let one = Limiter::with_clock(limit.clone(), clock.clone());
        let keyed = KeyedLimiter::with_clock(limit.clone(), Bounds { max_keys: 64, ..Bounds::default() }, clock.clone());
        let store = MemoryStore::with_clock(Bounds { max_keys: 64, ..Bounds::default() }, clock.clone());
        let handle = store.add("handle", limit.clone()).unwrap();
        for (pause, cost) in arrivals {
            clock.advance(Duration::from_nanos(pause));
            let status = one.check_n(cost);
            prop_assert_eq!(keyed.check_n("k", cost), status);
            let charge = Charge::new(&handle, "k").cost(cost);
            let set = store.check(&[charge]).unwrap();
            prop_assert_eq!(set.statuses(), &[status]);
            prop_assert_eq!(set.decision(), status.decision());
        }
    }

    /// A bucket that is as if never used when it says so.
    #[test]
    fn after_reset_after_a_key_is_as_if_never_used(limit in limits::limits(), arrivals in limits::arrivals(20)) {
        let clock = ManualClock::new();
        let used = Limiter::with_clock(limit.clone(), clock.clone());
        let fresh = Limiter::with_clock(limit.clone(), clock.clone());
        let mut reset_after = Some(Duration::ZERO);
        for (pause, cost) in arrivals {
            clock.advance(Duration::from_nanos(pause));
            reset_after = used.check_n(cost).reset_after();
        }
        let Some(reset_after) = reset_after else { return Ok(()) };
        clock.advance(reset_after);
        for cost in [0, 1, 3] {
            prop_assert_eq!(used.peek(cost).decision(), fresh.peek(cost).decision(), "{:?}", limit);
            prop_assert_eq!(used.peek(cost).remaining(), fresh.peek(cost).remaining(), "{:?}", limit);
        }
    }

    /// Refunds give back at most what was used, and exactly what was used last.
    #[test]
    fn refund_undoes_the_last_charge(limit in prop_oneof![limits::token_buckets(), limits::leaky_buckets(), limits::logs()],
        arrivals in limits::arrivals(20), cost in 1_u32..6) {
        let clock = ManualClock::new();
        let limiter = Limiter::with_clock(limit.clone(), clock.clone());
        for (pause, cost) in arrivals {
            clock.advance(Duration::from_nanos(pause));
            let _ = limiter.check_n(cost);
        }
        let before = limiter.peek(0).remaining();
        if !limiter.check_n(cost).is_deny() {
            limiter.refund(cost);
        }
        prop_assert_eq!(limiter.peek(0).remaining(), before, "{:?}", limit);
        limiter.refund(u32::MAX);
        limiter.refund(u32::MAX);
        let full = Limiter::with_clock(limit.clone(), ManualClock::new());
        prop_assert!(limiter.peek(0).remaining() <= limiter.peek(0).limit());
        prop_assert!(limiter.peek(0).remaining() >= full.peek(0).remaining(), "{:?}", limit);
    }
}

/// A turn that is cancelled before it is due leaves a smooth limiter as it was, warm or cold.
#[test]
fn a_cancelled_turn_on_a_smooth_limiter_leaves_no_trace() {
    let second = Duration::from_secs(1);
    let rate = Rate::per_second(5).unwrap();
    let limits: [tollgate::Limit; 2] =
        [SmoothWarmingUp::new(rate, second).unwrap().into(), SmoothBursty::new(rate).into()];
    for limit in limits {
        let limiter = Limiter::with_clock(limit.clone(), ManualClock::new());
        limiter.clock().advance(2 * second);
        assert!(limiter.check().is_allow());
        let _ = book(&limiter, 4, Duration::MAX);
        for cost in [1, 3] {
            let before = limiter.peek(1);
            assert!(!matches!(book(&limiter, cost, Duration::MAX), Decision::Deny(_)));
            limiter.refund(cost);
            assert_eq!(limiter.peek(1), before, "{limit:?} after a cancelled {cost}");
        }
    }
}

/// Debt a hundred thousand years deep is still debt.
#[test]
fn debt_is_kept_however_slow_the_rate() {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(56 * 365 * 86_400));
    for (rate, burst) in
        [(per(1, Duration::from_secs(86_400)), 100_000), (per(1, Duration::from_secs(30 * 86_400)), u32::MAX)]
    {
        let limiter = Limiter::with_clock(TokenBucket::new(rate, burst).unwrap(), clock.clone());
        assert!(limiter.check_n(burst).is_allow());
        assert_eq!(limiter.peek(0).remaining(), 0, "{rate}");
        assert!(limiter.check().is_deny());
    }
}

/// Takes all there is whenever there is any, at awkward times, and counts.
fn greedy(rate: Rate, burst: u32, elapsed: Duration, polls: u64) -> (u128, u128) {
    let clock = ManualClock::new();
    let limiter = Limiter::with_clock(TokenBucket::new(rate, burst).unwrap(), clock.clone());
    let mut admitted = u128::from(burst);
    assert!(limiter.check_n(burst).is_allow());
    let total = elapsed.as_nanos();
    let start = clock.now();
    for poll in 1..=polls {
        let at = total * u128::from(poll) / u128::from(polls);
        clock.set(start + Duration::from_nanos(u64::try_from(at).unwrap()));
        let there = limiter.peek(0).remaining();
        assert!(limiter.check_n(there).is_allow());
        admitted += u128::from(there);
    }
    let owed = u128::from(burst) + total * u128::from(rate.amount().get()) / rate.period().as_nanos();
    (admitted, owed)
}

#[test]
fn long_runs_admit_burst_and_rate_times_elapsed() {
    let day = Duration::from_secs(86_400);
    let second = Duration::from_secs(1);
    for (rate, burst, elapsed, polls) in [
        (per(7, second), 1_000, 365 * day, 1_000_003),
        (per(300_000, second), 1_000_000, 3_600 * second, 1_000_003),
        (per(600_000, second), 1_000_000, 3_600 * second, 1_000_003),
        (per(999_999_937, second), u32::MAX, 4_000 * second, 1_000_003),
        (per(3, 7 * day), 2, 20 * 365 * day, 500_009),
        (per(1, 30 * day), 1, 100 * 365 * day, 500_009),
        (per(700_000_000, second), u32::MAX, 4_000 * second, 500_009),
    ] {
        let (admitted, owed) = greedy(rate, burst, elapsed, polls);
        assert_eq!(admitted, owed, "{rate}");
    }
}

/// Guava's arithmetic drops fractions; ours owes them.
#[test]
fn fast_smooth_limits_run_at_their_rate() {
    for per_second in [300_000, 600_000, 1_500_000, 999_999_937] {
        let clock = ManualClock::new();
        let rate = Rate::per_second(per_second).unwrap();
        let limiter = Limiter::with_clock(SmoothBursty::new(rate), clock.clone());
        let (mut admitted, chunk) = (0_u64, (per_second / 250_000).max(1));
        let mut now = Duration::ZERO;
        // Ten seconds, a reservation after another.
        while now < Duration::from_secs(10) {
            clock.set(tollgate::Time::ZERO + now);
            match book(&limiter, chunk, Duration::MAX) {
                Decision::Wait(wait) => now += wait,
                Decision::Allow => {}
                Decision::Deny(why) => panic!("{why:?}"),
            }
            admitted += u64::from(chunk);
        }
        let owed = u64::from(per_second) * 10;
        assert!(
            admitted.abs_diff(owed) <= 2 * u64::from(chunk) + 2,
            "{per_second}/s admitted {admitted} in 10 s"
        );
    }
}
