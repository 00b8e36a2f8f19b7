//! Defects of our own that a review or a property found, each kept out by the scenario that showed it.

use crate::booking::{book, book_key};
use crate::limits::per;
use std::{thread, time::Duration};
use tollgate::{
    Align, Bounds, Charge, Concurrency, Decision, Delay, FixedWindow, KeyedLimiter, LeakyBucket, Limiter,
    ManualClock, MemoryStore, Rate, Refill, Retry, SlidingCounter, SlidingLog, SmoothBursty, Time,
    TokenBucket,
};

const SECOND: Duration = Duration::from_secs(1);

fn bucket(per_second: u32, burst: u32) -> TokenBucket {
    TokenBucket::new(Rate::per_second(per_second).unwrap(), burst).unwrap()
}

fn room(max_keys: usize) -> Bounds {
    Bounds { max_keys, ..Bounds::default() }
}

/// Bookings ran past the end of the word, where the sum wrapped and the bucket was full again.
#[test]
fn a_bucket_booked_out_for_years_refuses() {
    let slow = TokenBucket::new(per(1, 30 * 86_400 * SECOND), 100).unwrap();
    for (limit, cost) in [(bucket(999, 1_000_000_000), 1_000_000_000), (slow, 100)] {
        let one = Limiter::with_clock(limit, ManualClock::new());
        let keyed = KeyedLimiter::with_clock(limit, room(10), ManualClock::new());
        let mut turns = Vec::new();
        for _ in 0..1_000 {
            let booked = book(&one, cost, Duration::MAX);
            assert_eq!(book_key(&keyed, "k", cost, Duration::MAX), booked);
            turns.extend(match booked {
                Decision::Wait(wait) => Some(wait),
                _ => None,
            });
        }
        assert!(turns.is_sorted_by(|a, b| a < b), "two bookings have one turn");
        assert!(turns.len() < 900, "what cannot be kept is refused");
        assert!(one.check().is_deny() && keyed.check("k").is_deny());
    }
}

/// A change moved the word's base to now; a time before it was then charged nothing at all.
#[test]
fn a_time_before_a_change_counts_as_the_change() {
    let clock = ManualClock::new();
    let one = Limiter::with_clock(bucket(10, 10), clock.clone());
    let store = MemoryStore::with_clock(room(10), clock.clone());
    let limit = store.add("limit", bucket(10, 10)).unwrap();
    clock.advance(100 * SECOND);
    one.change(bucket(10, 10));
    store.change(&limit, bucket(10, 10)).unwrap();
    clock.set(Time::ZERO + 90 * SECOND);
    assert_eq!((0..1_000).filter(|_| one.check().is_allow()).count(), 10);
    let set = [Charge::new(&limit, "k")];
    assert_eq!((0..1_000).filter(|_| store.check(&set).unwrap().is_allow()).count(), 10);
}

/// A peek long after birth let an earlier time see a bucket that had filled.
#[test]
fn a_peek_does_not_fill_a_short_bucket_for_earlier_times() {
    let clock = ManualClock::new();
    let limiter = Limiter::with_clock(bucket(1, 10).with_initial(0).unwrap(), clock.clone());
    clock.advance(100 * SECOND);
    let _ = limiter.peek(1);
    clock.set(Time::ZERO);
    assert!(limiter.check().is_deny());
}

/// The hint said when a charge would fit the queue, not when its turn would be near enough.
#[test]
fn a_hasty_charge_on_a_queue_is_told_when_it_would_pass() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(room(10), clock.clone());
    let queue =
        LeakyBucket::new(Rate::per_second(1).unwrap(), 3).unwrap().with_delay(Delay::After(1)).unwrap();
    let queue = store.add("queue", queue).unwrap();
    for _ in 0..3 {
        assert!(!store.check_one(&Charge::new(&queue, "k")).unwrap().is_deny());
    }
    let hasty = Charge::new(&queue, "k").up_to(Duration::ZERO);
    clock.advance(store.check_one(&hasty).unwrap().retry_after().unwrap());
    assert!(store.check_one(&hasty).unwrap().is_allow());
}

/// A refund after the window opened a new one at its own time.
#[test]
fn a_late_refund_opens_no_window() {
    let clock = ManualClock::new();
    let limit = FixedWindow::new(2, 10 * SECOND).unwrap().with_align(Align::FirstHit);
    let limiter = Limiter::with_clock(limit, clock.clone());
    assert!(limiter.check().is_allow());
    clock.advance(15 * SECOND);
    limiter.refund(1);
    clock.advance(5 * SECOND);
    assert!(limiter.check_n(2).is_allow());
    assert_eq!(limiter.check().retry_after(), Some(10 * SECOND));
}

/// Sets that were refused had entered their keys first, in the places of live ones.
#[test]
fn refused_sets_evict_nobody() {
    let store = MemoryStore::with_clock(room(64), ManualClock::new());
    let user = store.add("user", bucket(1, 10)).unwrap();
    let all = store.add_bounded("all", bucket(1, 1), 8).unwrap();
    let everyone = Charge::new(&all, ());
    assert!(store.check_one(&everyone).unwrap().is_allow());
    for key in 0..90_u64 {
        let _ = store.check_one(&Charge::new(&user, key).cost(10)).unwrap();
    }
    let before = store.evictions();
    for key in 1_000..5_000_u64 {
        assert!(store.check(&[Charge::new(&user, key), everyone]).unwrap().is_deny());
    }
    assert_eq!(store.evictions(), before);
    let wide =
        KeyedLimiter::with_clock(FixedWindow::new(10, 3_600 * SECOND).unwrap(), room(64), ManualClock::new());
    for key in 0..2_000_u64 {
        let _ = wide.check_n(key, 10);
    }
    let before = wide.evictions();
    for key in 5_000..9_000_u64 {
        assert_eq!(wide.check_n(key, 11).decision(), Decision::Deny(Retry::Never));
    }
    assert_eq!(wide.evictions(), before);
}

/// A ban hid a longer refusal, and a never.
#[test]
fn the_longer_of_ban_and_limit_counts() {
    let clock = ManualClock::new();
    let one = Limiter::with_clock(bucket(1, 10), clock.clone());
    let keyed = KeyedLimiter::with_clock(bucket(1, 10), room(10), clock.clone());
    assert!(one.check_n(10).is_allow() && keyed.check_n("k", 10).is_allow());
    one.ban(SECOND);
    keyed.ban("k", SECOND);
    one.grant(5);
    keyed.grant("k", 5);
    for cost in [1, 10, 16] {
        assert_eq!(one.check_n(cost), keyed.check_n("k", cost), "{cost}");
    }
    assert_eq!(one.check_n(10).retry_after(), Some(5 * SECOND));
    assert_eq!(one.check_n(16).decision(), Decision::Deny(Retry::Never));
    assert_eq!(one.check_n(1).remaining(), 5);
}

/// A refused set showed a granted key without all of its grant.
#[test]
fn a_refused_set_shows_the_whole_grant() {
    let store = MemoryStore::with_clock(room(10), ManualClock::new());
    let (user, all) = (store.add("limit", bucket(1, 5)).unwrap(), store.add("limit", bucket(1, 1)).unwrap());
    store.grant(&user, "k", 10).unwrap();
    assert!(store.check_one(&Charge::new(&all, "k")).unwrap().is_allow());
    let refused = store.check(&[Charge::new(&user, "k"), Charge::new(&all, "k")]).unwrap();
    assert_eq!(refused.denied_by(), Some(1));
    assert_eq!(refused.statuses()[0].remaining(), 15);
}

/// Asking for nothing moved time on.
#[test]
fn cost_zero_moves_no_time() {
    let clock = ManualClock::new();
    let keyed = KeyedLimiter::with_clock(bucket(1, 10), room(10), clock.clone());
    assert!(keyed.check_n("k", 10).is_allow());
    let _ = keyed.check_at("k", 0, Time::ZERO + 100 * SECOND);
    assert!(keyed.check_at("k", 1, Time::ZERO).is_deny());
    let log = Limiter::with_clock(SlidingLog::new(1, SECOND).unwrap(), clock.clone());
    assert!(log.check().is_allow());
    clock.advance(100 * SECOND);
    let _ = log.check_n(0);
    clock.set(Time::ZERO);
    assert!(log.check().is_deny());
}

/// Another way to refill is not another kind, and handed out a fresh burst.
#[test]
fn a_change_of_refill_keeps_what_was_consumed() {
    let limiter = Limiter::with_clock(bucket(1, 10), ManualClock::new());
    assert!(limiter.check_n(7).is_allow());
    limiter.change(bucket(1, 10).with_refill(Refill::Interval));
    assert_eq!(limiter.peek(0).remaining(), 3);
    limiter.change(bucket(1, 20));
    assert_eq!(limiter.peek(0).remaining(), 6);
}

/// One removed limit kept the others' slots from coming back.
#[test]
fn leaving_goes_on_past_a_limit_that_was_removed() {
    let store = MemoryStore::with_clock(room(10), ManualClock::new());
    let slots = || store.add("slots", Concurrency::new(1, 60 * SECOND).unwrap()).unwrap();
    let (first, second) = (slots(), slots());
    let set = [Charge::new(&first, "k"), Charge::new(&second, "k")];
    let permit = store.check(&set).unwrap().permit().unwrap();
    store.remove(&first).unwrap();
    assert!(store.leave(&set, permit).is_err(), "and it says so");
    assert!(store.check(&set[1..]).unwrap().is_allow());
}

/// A lowered `max_hold` said that all would be over before the older holders were.
#[test]
fn reset_after_counts_those_who_entered_before() {
    let limiter = Limiter::with_clock(Concurrency::new(5, 60 * SECOND).unwrap(), ManualClock::new());
    assert!(limiter.check().is_allow());
    limiter.change(Concurrency::new(5, 10 * SECOND).unwrap());
    assert_eq!(limiter.check().reset_after(), Some(60 * SECOND));
}

/// A key never used said that it had something to reset.
#[test]
fn a_key_never_used_has_nothing_to_reset() {
    let clock = ManualClock::new();
    let smooth = Limiter::with_clock(SmoothBursty::new(Rate::per_second(10).unwrap()), clock.clone());
    let first_hit = FixedWindow::new(1, 10 * SECOND).unwrap().with_align(Align::FirstHit);
    let window = Limiter::with_clock(first_hit, clock);
    assert_eq!(smooth.peek(0).reset_after(), Some(Duration::ZERO));
    assert_eq!(window.peek(0).reset_after(), Some(Duration::ZERO));
}

/// A slot that changed from one limit to another while a third looked at it was read as the wrong kind of state.
#[test]
fn slots_that_change_kind_under_way_are_not_misread() {
    let store = MemoryStore::with_clock(room(8), ManualClock::new());
    let limits = [
        store.add("limit", SlidingCounter::new(5, SECOND).unwrap()).unwrap(),
        store.add("limit", SlidingLog::new(5, SECOND).unwrap()).unwrap(),
        store.add("limit", SmoothBursty::new(Rate::per_second(1_000_000).unwrap())).unwrap(),
    ];
    thread::scope(|scope| {
        for (worker, limit) in limits.iter().cycle().take(6).enumerate() {
            let store = &store;
            scope.spawn(move || {
                for key in 0..20_000_u64 {
                    let _ = store.check_one(&Charge::new(limit, key * 6 + worker as u64)).unwrap();
                    store.clock().advance(Duration::from_millis(300));
                }
            });
        }
    });
}

/// Limits that came and went under load left their logs behind.
#[test]
fn limits_come_and_go_under_load() {
    let store = MemoryStore::with_clock(room(64), ManualClock::new());
    let steady = store.add("steady", SlidingLog::new(1_000_000, 3_600 * SECOND).unwrap()).unwrap();
    let admitted = thread::scope(|scope| {
        let charging = scope.spawn(|| {
            (0..20_000).filter(|_| store.check_one(&Charge::new(&steady, "k")).unwrap().is_allow()).count()
        });
        for round in 0..200_u64 {
            let passing = store.add("passing", SlidingLog::new(3, 3_600 * SECOND).unwrap()).unwrap();
            for key in 0..20 {
                let charge = Charge::new(&passing, round * 20 + key);
                assert!(store.check_one(&charge).unwrap().is_allow(), "found another limit's log");
            }
            store.remove(&passing).unwrap();
        }
        charging.join().unwrap()
    });
    assert_eq!(admitted, 20_000);
}
