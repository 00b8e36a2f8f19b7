//! The bounded table: floods, full tables, bounds of a limit's own, cleaning as it goes.

use std::time::Duration;
use tollgate::{
    Bounds, Charge, Concurrency, DecidedBy, Key, KeyedLimiter, Limit, ManualClock, MemoryStore, Rate,
    SlidingLog, TokenBucket, WhenFull,
};

fn bucket(per_second: u32, burst: u32) -> Limit {
    TokenBucket::new(Rate::per_second(per_second).unwrap(), burst).unwrap().into()
}

fn evicting(max_keys: usize) -> Bounds {
    Bounds { max_keys, when_full: WhenFull::Evict }
}

fn denying(max_keys: usize) -> Bounds {
    Bounds { max_keys, when_full: WhenFull::Deny }
}

#[test]
fn max_keys_live_keys_fit() {
    for (limit, name) in [(bucket(1, 2), "one word"), (bucket(999_999_937, 2), "two words")] {
        let clock = ManualClock::new();
        let limiter = KeyedLimiter::with_clock(limit, evicting(100_000), clock);
        for key in 0..100_000_u64 {
            assert!(limiter.check_n(key, 2).is_allow());
        }
        let forgotten = (0..100_000_u64).filter(|key| limiter.check_n(*key, 2).is_allow()).count();
        assert!(
            forgotten <= 150,
            "{name}: {forgotten} of 100,000 keys found no room in a table made for them"
        );
    }
}

#[test]
fn a_flood_stays_within_its_memory_and_evicts_what_is_nearest_to_idle() {
    let clock = ManualClock::new();
    let limiter = KeyedLimiter::with_clock(bucket(10, 10), evicting(1_000), clock.clone());
    assert!(limiter.check_n("attacker", 10).is_allow());
    let bytes = limiter.table_bytes();
    for key in 0..200_000_u64 {
        assert!(limiter.check(key).is_allow(), "a new key is served while the table is full");
    }
    assert_eq!(limiter.table_bytes(), bytes, "memory grew with the keys");
    assert!(bytes < 1_000 * 26, "{bytes} bytes for a thousand keys");
    assert!(limiter.evictions() > 100_000, "all keys are live, so each new one evicted another");
    assert!(
        limiter.check("attacker").is_deny(),
        "the one furthest from idle kept its debt: no fresh bucket for it"
    );
}

#[test]
fn idle_keys_make_room_without_an_eviction() {
    let clock = ManualClock::new();
    let limiter = KeyedLimiter::with_clock(bucket(10, 10), denying(1_000), clock.clone());
    for key in 0..100_000_u64 {
        assert!(limiter.check(key).is_allow(), "key {key}: nobody swept, and yet there is room");
        clock.advance(Duration::from_millis(1));
    }
    assert_eq!(limiter.evictions(), 0);
    assert_eq!(limiter.refusals_when_full(), 0);
}

#[test]
fn a_full_table_told_to_deny_denies_new_keys_only() {
    let clock = ManualClock::new();
    let limiter = KeyedLimiter::with_clock(bucket(1, 10), denying(64), clock.clone());
    let refused: Vec<_> =
        (0..1_000_u64).map(|key| limiter.check(key)).filter(|status| status.is_deny()).collect();
    assert!(refused.len() > 850, "{} refused", refused.len());
    let status = refused[0];
    assert_eq!(status.decided_by(), DecidedBy::FullTable);
    assert_eq!(status.retry_after(), Some(Duration::from_secs(1)), "until the first place is idle");
    assert_eq!(limiter.refusals_when_full(), refused.len() as u64);
    assert_eq!(limiter.evictions(), 0);
    assert!(limiter.check(0).is_allow(), "who is in stays in");
    clock.advance(Duration::from_secs(2));
    assert!(limiter.check(999).is_allow());
}

#[test]
fn a_held_permit_is_never_evicted() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(evicting(64), clock);
    let slots = store.add("slots", Concurrency::new(1, Duration::from_secs(60)).unwrap()).unwrap();
    let log = store.add("log", SlidingLog::new(5, Duration::from_secs(60)).unwrap()).unwrap();
    let held = store.check(&[Charge::new(&slots, "held")]).unwrap().permit().unwrap();
    for key in 0..10_000_u64 {
        let _ = store.check(&[Charge::new(&log, key)]).unwrap();
    }
    assert!(
        store.check(&[Charge::new(&slots, "held")]).unwrap().is_deny(),
        "the flood evicted a held permit"
    );
    assert_eq!(store.leave(&[Charge::new(&slots, "held")], held).unwrap(), 1);
}

#[test]
fn a_table_full_of_permits_denies_even_where_it_may_evict() {
    let store = MemoryStore::with_clock(evicting(8), ManualClock::new());
    let slots = store.add("slots", Concurrency::new(1, Duration::from_secs(60)).unwrap()).unwrap();
    let statuses: Vec<_> =
        (0..100_u64).map(|key| store.check(&[Charge::new(&slots, key)]).unwrap().statuses()[0]).collect();
    let refused = statuses.iter().filter(|status| status.is_deny()).count();
    assert!(refused >= 80, "{refused}");
    assert!(
        statuses
            .iter()
            .filter(|status| status.is_deny())
            .all(|status| status.decided_by() == DecidedBy::FullTable)
    );
}

#[test]
fn a_limit_with_room_of_its_own_is_safe_from_others_floods() {
    let store = MemoryStore::with_clock(evicting(64), ManualClock::new());
    let flooded = store.add("flooded", bucket(1, 10)).unwrap();
    let own = store.add_bounded("own", bucket(1_000_000, 2), 64).unwrap();
    for key in 0..40_u64 {
        assert!(store.check_one(&Charge::new(&own, key).cost(2)).unwrap().is_allow());
    }
    for key in 0..10_000_u64 {
        let _ = store.check_one(&Charge::new(&flooded, key)).unwrap();
    }
    for key in 0..40_u64 {
        assert!(store.check_one(&Charge::new(&own, key).cost(2)).unwrap().is_deny(), "key {key} was evicted");
    }
}

#[test]
fn logs_of_evicted_keys_are_freed_and_their_places_used_again() {
    let clock = ManualClock::new();
    let limiter = KeyedLimiter::with_clock(
        SlidingLog::new(5, Duration::from_secs(1)).unwrap(),
        evicting(64),
        clock.clone(),
    );
    for round in 0..50_u64 {
        for key in 0..100 {
            assert!(limiter.check(round * 100 + key).is_allow());
        }
        clock.advance(Duration::from_millis(100));
    }
    // A key's own log is not another's: five fit, a sixth does not.
    for _ in 0..5 {
        assert!(limiter.check("fresh").is_allow());
    }
    assert!(limiter.check("fresh").is_deny());
}

#[test]
fn batches_answer_as_one_by_one() {
    let clock = ManualClock::new();
    let (batch, single) = (
        KeyedLimiter::with_clock(bucket(1, 3), evicting(1_000), clock.clone()),
        KeyedLimiter::with_clock(bucket(1, 3), evicting(1_000), clock),
    );
    let names: Vec<String> = (0..100).map(|n| format!("user-{}", n % 30)).collect();
    let keys: Vec<Key<'_>> = names.iter().map(Key::from).collect();
    let mut statuses = Vec::new();
    batch.check_batch(&keys, &mut statuses);
    let expected: Vec<_> = keys.iter().map(|key| single.check(*key)).collect();
    assert_eq!(statuses, expected);
    assert_eq!(statuses.iter().filter(|status| status.is_deny()).count(), 10);
}

#[test]
fn a_removed_limit_leaves_room_for_another() {
    let store = MemoryStore::with_clock(denying(1_000), ManualClock::new());
    for _ in 0..100 {
        let limit = store.add("limit", SlidingLog::new(1, Duration::from_secs(3600)).unwrap()).unwrap();
        for key in 0..40_u64 {
            assert!(
                store.check_one(&Charge::new(&limit, key)).unwrap().is_allow(),
                "found another limit's state"
            );
        }
        store.remove(&limit).unwrap();
    }
}
