//! Changed numbers keep what was consumed, in both directions; by hand: grants, bans, resets.

use crate::limits::per;
use std::time::Duration;
use tollgate::{
    Align, Bounds, Charge, Clock, DecidedBy, Decision, FixedWindow, KeyedLimiter, LeakyBucket, Limit,
    Limiter, ManualClock, MemoryStore, Rate, SlidingCounter, SlidingLog, SlidingWindow, SmoothBursty,
    TokenBucket,
};

const SECOND: Duration = Duration::from_secs(1);

fn bucket(per_second: u32, burst: u32) -> Limit {
    TokenBucket::new(Rate::per_second(per_second).unwrap(), burst).unwrap().into()
}

fn bounds() -> Bounds {
    Bounds { max_keys: 1_000, ..Bounds::default() }
}

/// Uses `used` of `before`, changes to `after`, and tells what remains, by every way in.
fn remaining_after(before: &Limit, used: u32, after: &Limit) -> u32 {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(1_000));
    let one = Limiter::with_clock(before.clone(), clock.clone());
    let keyed = KeyedLimiter::with_clock(before.clone(), bounds(), clock.clone());
    assert!(one.check_n(used).is_allow());
    assert!(keyed.check_n("k", used).is_allow());
    one.change(after.clone());
    keyed.change(after.clone());
    let left = one.peek(0);
    assert_eq!(keyed.peek("k", 0), left, "{before:?} to {after:?}");
    assert_eq!(keyed.check_n("k", left.remaining()), one.check_n(left.remaining()));
    left.remaining()
}

#[test]
fn a_bucket_keeps_its_consumed_fraction() {
    assert_eq!(remaining_after(&bucket(10, 100), 30, &bucket(10, 1000)), 700);
    assert_eq!(remaining_after(&bucket(10, 1000), 300, &bucket(10, 100)), 70);
    assert_eq!(remaining_after(&bucket(10, 100), 30, &bucket(77, 100)), 70);
    assert_eq!(remaining_after(&bucket(10, 3), 1, &bucket(10, 10)), 6, "rounded against the caller");
    let leaky = |capacity| LeakyBucket::new(Rate::per_second(10).unwrap(), capacity).unwrap().into();
    assert_eq!(remaining_after(&leaky(100), 30, &leaky(1000)), 700);
    assert_eq!(remaining_after(&bucket(10, 100), 30, &leaky(100)), 100, "another kind starts anew");
}

#[test]
fn a_bucket_keeps_its_fraction_when_its_state_takes_another_form() {
    // 999,999,937 a second needs two words, 10 a second one.
    let (odd, even) = (bucket(999_999_937, 1_000), bucket(10, 1_000));
    assert_eq!(remaining_after(&even, 300, &odd), 700);
    assert_eq!(remaining_after(&odd, 300, &even), 700);
    let clock = ManualClock::new();
    let keyed = KeyedLimiter::with_clock(even.clone(), bounds(), clock.clone());
    for key in 0..200_u64 {
        assert!(keyed.check_n(key, 1_000).is_allow());
    }
    keyed.change(odd.clone());
    keyed.change(even);
    keyed.change(odd);
    for key in 0..200_u64 {
        assert!(keyed.check_n(key, 1_000).is_deny(), "key {key} was forgotten by a change of form");
    }
    keyed.reset(7_u64);
    assert!(keyed.check_n(7_u64, 1_000).is_allow());
}

#[test]
fn windows_keep_their_count_and_logs_their_events() {
    let fixed = |limit, window| Limit::from(FixedWindow::new(limit, window).unwrap());
    assert_eq!(remaining_after(&fixed(10, SECOND), 7, &fixed(20, SECOND)), 13);
    assert_eq!(remaining_after(&fixed(20, SECOND), 7, &fixed(5, SECOND)), 0);
    assert_eq!(
        remaining_after(&fixed(10, SECOND), 7, &fixed(10, 2 * SECOND)),
        10,
        "another window starts anew"
    );
    let first = Limit::from(FixedWindow::new(10, SECOND).unwrap().with_align(Align::FirstHit));
    assert_eq!(remaining_after(&fixed(10, SECOND), 7, &first), 10, "another align starts anew");
    let log = |limit, window| Limit::from(SlidingLog::new(limit, window).unwrap());
    assert_eq!(remaining_after(&log(10, SECOND), 7, &log(20, SECOND)), 13);
    assert_eq!(remaining_after(&log(10, SECOND), 7, &log(10, 2 * SECOND)), 10);
    let sliding = |limit, parts| Limit::from(SlidingWindow::new(limit, SECOND, SECOND / parts).unwrap());
    assert_eq!(remaining_after(&sliding(10, 10), 7, &sliding(8, 10)), 1);
    assert_eq!(remaining_after(&sliding(10, 10), 7, &sliding(10, 20)), 10, "another precision starts anew");
    let counter = |limit| Limit::from(SlidingCounter::new(limit, SECOND).unwrap());
    assert_eq!(remaining_after(&counter(10), 7, &counter(20)), 13);
}

#[test]
fn smooth_limits_scale_as_guava_does() {
    let clock = ManualClock::new();
    let smooth = |per_second| SmoothBursty::new(Rate::per_second(per_second).unwrap());
    let limiter = Limiter::with_clock(smooth(10), clock.clone());
    clock.advance(Duration::from_millis(500));
    assert_eq!(limiter.peek(0).remaining(), 5);
    limiter.change(smooth(100));
    assert_eq!(limiter.peek(0).remaining(), 50, "half full before, half full after");
    assert!(limiter.check().is_allow());
    assert_eq!(limiter.check_n(49).decision(), Decision::Allow);
    assert_eq!(limiter.check().decision(), Decision::Allow, "the next one pays");
    let booked = limiter.check().decision();
    limiter.change(smooth(1));
    assert_eq!(limiter.check().decision(), booked, "what is booked stands");
}

#[test]
fn consumed_fraction_is_kept_while_time_goes_on() {
    let clock = ManualClock::new();
    let limiter = Limiter::with_clock(bucket(10, 10), clock.clone());
    assert!(limiter.check_n(10).is_allow());
    clock.advance(Duration::from_millis(250));
    limiter.change(bucket(1, 10));
    assert_eq!(limiter.peek(0).remaining(), 2, "2.5 of 10 had come back");
    clock.advance(Duration::from_millis(499));
    assert_eq!(limiter.peek(0).remaining(), 2);
    clock.advance(Duration::from_millis(1));
    assert_eq!(
        limiter.peek(0).remaining(),
        3,
        "half a unit was under way, the other half comes at the new rate"
    );
}

#[test]
fn grants_are_spent_first_and_only_once() {
    let clock = ManualClock::new();
    let one = Limiter::with_clock(bucket(1, 5), clock.clone());
    let keyed = KeyedLimiter::with_clock(bucket(1, 5), bounds(), clock.clone());
    one.grant(3);
    keyed.grant("k", 3);
    assert_eq!(one.peek(0).remaining(), 8);
    assert_eq!(keyed.peek("k", 0).remaining(), 8);
    assert_eq!(keyed.peek("other", 0).remaining(), 5);
    assert!(one.check_n(9).is_deny(), "capacity and grant together");
    assert_eq!(keyed.check_n("k", 9).decision(), one.check_n(9).decision());
    assert!(
        one.check_n(8).is_allow() && keyed.check_n("k", 8).is_allow(),
        "above the capacity, thanks to the grant"
    );
    assert!(one.check().is_deny() && keyed.check("k").is_deny());
    clock.advance(5 * SECOND);
    assert_eq!(one.peek(0).remaining(), 5, "a grant does not refill");
    assert_eq!(keyed.peek("k", 0).remaining(), 5);
}

#[test]
fn a_ban_refuses_until_its_time_or_until_lifted() {
    let clock = ManualClock::new();
    let one = Limiter::with_clock(bucket(1, 5), clock.clone());
    let keyed = KeyedLimiter::with_clock(bucket(1, 5), bounds(), clock.clone());
    one.ban(10 * SECOND);
    keyed.ban("k", 10 * SECOND);
    for status in [one.check(), keyed.check("k")] {
        assert_eq!(status.decided_by(), DecidedBy::Ban);
        assert_eq!(status.retry_after(), Some(10 * SECOND));
        assert_eq!(status.remaining(), 5, "nothing was charged");
    }
    assert!(keyed.check("other").is_allow());
    clock.advance(10 * SECOND);
    assert!(one.check().is_allow() && keyed.check("k").is_allow());
    one.ban(10 * SECOND);
    keyed.ban("k", 10 * SECOND);
    one.ban(Duration::ZERO);
    keyed.ban("k", Duration::ZERO);
    assert!(one.check().is_allow() && keyed.check("k").is_allow());
}

#[test]
fn reset_forgets_what_was_used() {
    let clock = ManualClock::new();
    let one = Limiter::with_clock(SlidingLog::new(2, SECOND).unwrap(), clock.clone());
    let keyed = KeyedLimiter::with_clock(SlidingLog::new(2, SECOND).unwrap(), bounds(), clock);
    assert!(one.check_n(2).is_allow() && keyed.check_n("k", 2).is_allow());
    assert!(one.check().is_deny() && keyed.check("k").is_deny());
    one.reset();
    keyed.reset("k");
    keyed.reset("never seen");
    assert!(one.check().is_allow() && keyed.check("k").is_allow());
}

#[test]
fn a_short_bucket_fills_from_the_limits_birth() {
    let clock = ManualClock::new();
    let limit = TokenBucket::new(per(1, SECOND), 10).unwrap().with_initial(2).unwrap();
    let keyed = KeyedLimiter::with_clock(limit, bounds(), clock.clone());
    assert_eq!(keyed.peek("a", 0).remaining(), 2);
    clock.advance(3 * SECOND);
    assert_eq!(keyed.peek("unseen", 0).remaining(), 5, "as if it had been there from the start");
    assert!(keyed.check_n("a", 5).is_allow());
    clock.advance(100 * SECOND);
    assert_eq!(keyed.peek("a", 0).remaining(), 10);
    assert_eq!(keyed.peek("unseen", 0), keyed.peek("a", 0), "{}", clock.now());
}

#[test]
fn a_key_as_if_never_used_under_new_numbers_is_told_so() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(bounds(), clock.clone());
    let fast = |burst, initial| {
        let rate = per(1, Duration::from_micros(1));
        TokenBucket::new(rate, burst).unwrap().with_initial(initial).unwrap()
    };
    let limit = store.add("limit", fast(4, 4)).unwrap();
    assert!(store.check(&[Charge::new(&limit, "alice")]).unwrap().is_allow());
    store.change(&limit, fast(3, 0)).unwrap();
    for key in ["alice", "bob"] {
        let told = store.check(&[Charge::new(&limit, key).cost(0)]).unwrap();
        let status = told.statuses()[0];
        assert_eq!((status.remaining(), status.reset_after()), (0, Some(Duration::ZERO)), "{key}");
    }
}
