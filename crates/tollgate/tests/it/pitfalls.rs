//! How other limiters broke, each as a test of ours, named after the failure.

use crate::limits::per;
use std::time::Duration;
use tollgate::{
    Align, Bounds, Charge, Clock, Decision, FixedWindow, Key, KeyedLimiter, Limit, Limiter, ManualClock,
    MemoryStore, Rate, Retry, SlidingCounter, SlidingLog, SlidingWindow, SmoothBursty, Time, TokenBucket,
};

const SECOND: Duration = Duration::from_secs(1);

fn bucket(per_second: u32, burst: u32) -> Limit {
    TokenBucket::new(Rate::per_second(per_second).unwrap(), burst).unwrap().into()
}

fn bounds() -> Bounds {
    Bounds { max_keys: 1_000, ..Bounds::default() }
}

/// Now and a second before in turn granted the same second again and again: 10,000 of 10,000 at 10/s.
#[test]
fn a_clock_that_steps_back_grants_nothing_twice() {
    let limits: [Limit; 7] = [
        bucket(10, 10),
        TokenBucket::new(per(999_999_937, Duration::from_secs(100_000_000)), 10).unwrap().into(),
        FixedWindow::new(10, SECOND).unwrap().into(),
        FixedWindow::new(10, SECOND).unwrap().with_align(Align::FirstHit).into(),
        SlidingLog::new(10, SECOND).unwrap().into(),
        SlidingWindow::new(10, SECOND, SECOND / 10).unwrap().into(),
        SlidingCounter::new(10, SECOND).unwrap().into(),
    ];
    for limit in limits {
        let clock = ManualClock::new();
        let limiter = Limiter::with_clock(limit.clone(), clock.clone());
        let (now, before) = (Time::ZERO + 100 * SECOND, Time::ZERO + 99 * SECOND);
        let mut admitted = 0;
        for turn in 0..10_000 {
            clock.set(if turn % 2 == 0 { now } else { before });
            admitted += u32::from(limiter.check().is_allow());
        }
        assert!(admitted <= 11, "{limit:?} admitted {admitted}");
    }
}

/// A clock read on another core was behind: calls were refused that should pass.
#[test]
fn a_clock_behind_does_not_refuse_falsely() {
    let clock = ManualClock::new();
    clock.advance(10 * SECOND);
    let limiter = Limiter::with_clock(bucket(10, 10), clock.clone());
    clock.advance(SECOND);
    assert!(limiter.check_n(5).is_allow());
    clock.set(Time::ZERO + 10 * SECOND + Duration::from_nanos(999_999_000));
    assert!(limiter.check_n(5).is_allow(), "five are left, whatever the other core's clock says");
}

/// Whole seconds let a burst through at every second's edge.
#[test]
fn no_burst_at_a_seconds_edge() {
    let clock = ManualClock::new();
    clock.advance(Duration::from_nanos(999_999_999));
    let limiter = Limiter::with_clock(bucket(10, 10), clock.clone());
    assert!(limiter.check_n(10).is_allow());
    clock.advance(Duration::from_nanos(2));
    assert!(limiter.check().is_deny(), "two nanoseconds earn nothing");
}

/// A wall clock stepped back made callers sleep that long.
#[test]
fn a_stepped_wall_clock_moves_no_bucket_and_no_window_back() {
    let clock = ManualClock::new();
    clock.set_wall(Duration::from_secs(1_000_000));
    let limiter = Limiter::with_clock(bucket(10, 1), clock.clone());
    let window = Limiter::with_clock(FixedWindow::new(1, 60 * SECOND).unwrap(), clock.clone());
    assert!(limiter.check().is_allow() && window.check().is_allow());
    clock.set_wall(Duration::from_secs(999_000));
    assert_eq!(limiter.check().retry_after(), Some(SECOND / 10), "a bucket does not look at the wall");
    assert!(window.check().is_deny(), "the window did not go back to an earlier one");
    clock.set_wall(Duration::from_secs(1_000_100));
    assert!(window.check().is_allow());
}

/// `Retry-After: 0`: the client was told to come early.
#[test]
fn hints_round_up() {
    let clock = ManualClock::new();
    let limiter = Limiter::with_clock(bucket(999_999, 1), clock.clone());
    assert!(limiter.check().is_allow());
    let hint = limiter.check().retry_after().unwrap();
    assert_eq!(hint, Duration::from_micros(2), "1.000001 microseconds are two");
    clock.advance(hint);
    assert!(limiter.check().is_allow());
}

/// 600k/s ran at 1M/s, 1r/m at one in 62.5 s, 1/s polled every 1.9 us at 0.5/s.
#[test]
fn rates_are_not_truncated() {
    for (rate, poll, polls, expected) in [
        (per(1, SECOND), Duration::from_nanos(1_900), 5_000_000_u64, 2 + 9),
        (per(1, 60 * SECOND), SECOND, 600, 2 + 10),
        (Rate::per_second(600_000).unwrap(), Duration::from_nanos(700), 1_000_000, 2 + 420_000),
        (Rate::per_second(1_500).unwrap(), Duration::from_micros(3), 1_000_000, 2 + 4_500),
    ] {
        let clock = ManualClock::new();
        let limiter = Limiter::with_clock(TokenBucket::new(rate, 2).unwrap(), clock.clone());
        let mut admitted = u64::from(limiter.check().is_allow()) + u64::from(limiter.check().is_allow());
        for _ in 0..polls {
            clock.advance(poll);
            admitted += u64::from(limiter.check().is_allow());
        }
        assert_eq!(admitted, expected, "{rate} polled every {poll:?}");
    }
}

/// One request too many after idle; 17 of a burst of 10 after idling just under a TTL.
#[test]
fn after_idle_a_burst_and_no_more() {
    for idle in [Duration::from_millis(999), SECOND, Duration::from_nanos(1_000_000_001), 3_600 * SECOND] {
        let clock = ManualClock::new();
        let limiter = KeyedLimiter::with_clock(bucket(10, 10), bounds(), clock.clone());
        assert!(limiter.check_n("k", 10).is_allow());
        clock.advance(idle);
        let admitted = (0..40).filter(|_| limiter.check("k").is_allow()).count();
        assert!(admitted <= 10, "{admitted} after {idle:?}");
        assert!(admitted >= 9);
    }
}

/// A window that did not reset.
#[test]
fn a_window_resets_at_its_end_and_not_before() {
    for align in [Align::Epoch, Align::FirstHit] {
        let clock = ManualClock::new();
        let limiter =
            Limiter::with_clock(FixedWindow::new(1, SECOND).unwrap().with_align(align), clock.clone());
        for _ in 0..5 {
            assert!(limiter.check().is_allow());
            clock.advance(SECOND - Duration::from_nanos(1));
            assert!(limiter.check().is_deny());
            clock.advance(Duration::from_nanos(1));
        }
    }
}

/// Steady traffic renewed a window on every hit, so that it never reset.
#[test]
fn admitted_hits_do_not_renew_a_window() {
    let clock = ManualClock::new();
    let limiter =
        Limiter::with_clock(FixedWindow::new(3, SECOND).unwrap().with_align(Align::FirstHit), clock.clone());
    let mut admitted = 0;
    for _ in 0..100 {
        admitted += u32::from(limiter.check().is_allow());
        clock.advance(SECOND / 10);
    }
    assert_eq!(admitted, 30);
}

/// Refused requests deepened the debt: 3, -4, -11.
#[test]
fn a_refused_request_charges_nothing() {
    let clock = ManualClock::new();
    let limiter = Limiter::with_clock(bucket(10, 10), clock.clone());
    assert!(limiter.check_n(7).is_allow());
    for _ in 0..100 {
        let status = limiter.check_n(7);
        assert!(status.is_deny());
        assert_eq!(status.remaining(), 3);
    }
    clock.advance(4 * SECOND / 10);
    assert!(limiter.check_n(7).is_allow());
}

/// One of several limits denied and the others stayed consumed.
#[test]
fn a_set_is_all_or_nothing() {
    let store = MemoryStore::with_clock(bounds(), ManualClock::new());
    let user = store.add("user", bucket(1, 5)).unwrap();
    let tenant = store.add("tenant", bucket(1, 2)).unwrap();
    let set = [Charge::new(&user, "alice"), Charge::new(&tenant, "acme")];
    let admitted = (0..50).filter(|_| store.check(&set).unwrap().is_allow()).count();
    assert_eq!(admitted, 2);
    assert_eq!(store.peek(&[set[0].cost(3)]).unwrap().decision(), Decision::Allow, "three of five are left");
    assert!(store.peek(&[set[0].cost(4)]).unwrap().is_deny());
}

/// A refund added more than was taken, or went above the capacity.
#[test]
fn a_refund_gives_back_no_more_than_was_taken() {
    let limits: [Limit; 5] = [
        bucket(1, 10),
        FixedWindow::new(10, SECOND).unwrap().into(),
        SlidingLog::new(10, SECOND).unwrap().into(),
        SlidingCounter::new(10, SECOND).unwrap().into(),
        SmoothBursty::new(Rate::per_second(10).unwrap()).into(),
    ];
    for limit in limits {
        let clock = ManualClock::new();
        clock.advance(SECOND / 2);
        let limiter = Limiter::with_clock(limit.clone(), clock.clone());
        clock.advance(2 * SECOND);
        assert_eq!(limiter.peek(0).remaining(), 10, "{limit:?}");
        assert!(limiter.check_n(2).is_allow());
        limiter.refund(1_000);
        assert_eq!(limiter.peek(0).remaining(), 10, "{limit:?}");
        limiter.refund(1_000);
        assert_eq!(limiter.peek(0).remaining(), 10, "{limit:?}");
    }
}

/// A refund reached into a window that had passed, or moved a window's start.
#[test]
fn a_refund_stays_out_of_what_has_passed() {
    let clock = ManualClock::new();
    let limiter =
        Limiter::with_clock(FixedWindow::new(2, SECOND).unwrap().with_align(Align::FirstHit), clock.clone());
    clock.advance(SECOND / 4);
    assert!(limiter.check_n(2).is_allow());
    clock.advance(SECOND / 2);
    limiter.refund(2);
    assert!(limiter.check_n(2).is_allow());
    assert_eq!(limiter.check().retry_after(), Some(SECOND / 2), "the window still began with its first hit");

    let counter = Limiter::with_clock(SlidingCounter::new(10, SECOND).unwrap(), ManualClock::new());
    assert!(counter.check_n(10).is_allow());
    counter.clock().advance(SECOND);
    counter.refund(10);
    assert!(counter.check_n(1).is_deny(), "what was used in the window before stays used");
}

/// Two hits in one clock tick were one entry in the log.
#[test]
fn hits_in_one_tick_count_apart() {
    let limiter = Limiter::with_clock(SlidingLog::new(3, SECOND).unwrap(), ManualClock::new());
    let admitted = (0..10).filter(|_| limiter.check().is_allow()).count();
    assert_eq!(admitted, 3);
}

/// The counter tested before it counted, and admitted eleven of ten.
#[test]
fn the_limit_itself_is_the_last_admitted() {
    let second = SECOND;
    let limits: [Limit; 5] = [
        bucket(1, 10),
        FixedWindow::new(10, second).unwrap().into(),
        SlidingLog::new(10, second).unwrap().into(),
        SlidingWindow::new(10, second, second / 10).unwrap().into(),
        SlidingCounter::new(10, second).unwrap().into(),
    ];
    for limit in limits {
        let limiter = Limiter::with_clock(limit.clone(), ManualClock::new());
        let admitted = (0..50).filter(|_| limiter.check().is_allow()).count();
        assert_eq!(admitted, 10, "{limit:?}");
    }
}

/// Cost 0 charged, or a cost above the burst was given a retry time.
#[test]
fn cost_zero_is_a_peek_and_too_much_is_never() {
    let limiter = Limiter::with_clock(bucket(1, 3), ManualClock::new());
    for _ in 0..10 {
        assert!(limiter.check_n(0).is_allow());
    }
    assert_eq!(limiter.check_n(4).decision(), Decision::Deny(Retry::Never));
    assert!(limiter.check_n(3).is_allow());
    assert!(limiter.check_n(0).is_allow(), "asking is free even when empty");
}

/// `("a", "b_c")` and `("a_b", "c")` shared a counter.
#[test]
fn keys_do_not_collide_through_joining() {
    let limiter = KeyedLimiter::with_clock(bucket(1, 1), bounds(), ManualClock::new());
    let keys = [
        Key::List(&[Some("a"), Some("b_c")]),
        Key::List(&[Some("a_b"), Some("c")]),
        Key::List(&[Some("a_b_c"), None]),
        Key::List(&[None, Some("a_b_c")]),
        Key::Text("a_b_c"),
        Key::Text(""),
        Key::List(&[None]),
        Key::All,
        Key::Bytes(b"\xff\xfe\x00"),
    ];
    for key in keys {
        assert!(limiter.check(key).is_allow(), "{key:?} shares a bucket");
    }
    let huge = "x".repeat(1 << 20);
    assert!(limiter.check(huge.as_str()).is_allow());
    assert!(limiter.check(&huge).is_deny());
}

/// An eviction raced with a key coming back and lost its state: within one thread, the order of things.
#[test]
fn a_key_that_comes_back_before_it_is_idle_finds_its_debt() {
    let clock = ManualClock::new();
    let limiter =
        KeyedLimiter::with_clock(bucket(1, 100), Bounds { max_keys: 64, ..Bounds::default() }, clock.clone());
    assert!(limiter.check_n("debtor", 100).is_allow());
    for key in 0..5_000_u64 {
        let _ = limiter.check(key);
        clock.advance(Duration::from_millis(1));
    }
    let left = limiter.peek("debtor", 0).remaining();
    assert_eq!(left, 5, "five seconds have earned five");
    let _ = clock.now();
}
