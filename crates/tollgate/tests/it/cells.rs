//! Cells in memory: buckets whose numbers come with every question.

use std::{thread, time::Duration};
use tollgate::{Bounds, DecidedBy, Key, ManualClock, MemoryStore, Throttle, WhenFull};

const SECOND: Duration = Duration::from_secs(1);

fn throttle(burst: i64, count: u64, period: Duration) -> Throttle {
    Throttle::per(count, period).expect("a rate").burst(burst)
}

fn store(max_keys: usize, when_full: WhenFull) -> (MemoryStore<ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    (MemoryStore::with_clock(Bounds { max_keys, when_full }, clock.clone()), clock)
}

#[test]
fn threads_that_ask_at_once_get_exactly_the_limit() {
    let (store, _) = store(1_000, WhenFull::Evict);
    let asked = throttle(99, 1, SECOND * 3_600);
    let passed: usize = thread::scope(|scope| {
        let asking = || (0..200).filter(|_| store.throttle("k", &asked).is_allow()).count();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(asking)).collect();
        threads.into_iter().map(|it| it.join().expect("a thread")).sum()
    });
    assert_eq!(passed, 100);
}

#[test]
fn asking_and_giving_back_write_nothing_where_nothing_is_owed() {
    let (store, _) = store(1_000, WhenFull::Evict);
    let asked = throttle(9, 1, SECOND);
    for quantity in [0, -1, i64::MIN, 11] {
        let told = store.throttle("k", &asked.quantity(quantity));
        assert_eq!((told.is_allow(), told.remaining()), (quantity <= 0, 10));
    }
    assert_eq!(store.owing("k"), None);
    let unused = store.table_bytes();
    assert!(store.throttle("k", &asked).is_allow());
    assert!(store.table_bytes() > unused, "room for cells is asked for when one is written");
}

#[test]
fn what_is_given_back_can_be_used_again_and_no_more() {
    let (store, clock) = store(1_000, WhenFull::Evict);
    let asked = throttle(9, 1, SECOND);
    assert_eq!(store.throttle("k", &asked.quantity(10)).remaining(), 0);
    assert_eq!(store.throttle("k", &asked.quantity(-3)).remaining(), 3);
    assert_eq!(store.throttle("k", &asked.quantity(-300)).remaining(), 10);
    assert_eq!(store.owing("k"), None);
    assert!(!store.throttle("k", &asked.quantity(11)).is_allow());
    assert!(store.throttle("k", &asked.quantity(10)).is_allow());
    clock.advance(SECOND * 4);
    let owing = store.owing("k").expect("a debt");
    assert_eq!(owing.lasting, SECOND * 6);
    assert!(store.forget("k") && !store.forget("k"));
    assert_eq!(store.throttle("k", &asked.quantity(0)).remaining(), 10);
}

#[test]
fn numbers_may_change_from_one_question_to_the_next() {
    let (store, _) = store(1_000, WhenFull::Evict);
    assert!(store.throttle("k", &throttle(9, 1, SECOND).quantity(10)).is_allow());
    // Ten seconds are owed, whatever a unit costs now.
    let told = store.throttle("k", &throttle(9, 1, SECOND * 2).quantity(0));
    assert_eq!((told.remaining(), told.reset_after()), (5, SECOND * 10));
    let told = store.throttle("k", &throttle(4, 1, SECOND));
    assert_eq!(told.retry_after(), Some(SECOND * 6));
    let told = store.throttle("k", &throttle(4, 1, SECOND).quantity(0));
    assert!(told.is_allow() && told.remaining() == 0);
}

#[test]
fn any_bytes_are_a_key_and_no_two_are_one() {
    let (store, _) = store(1_000, WhenFull::Evict);
    let asked = throttle(0, 1, SECOND * 3_600);
    let long = vec![b'x'; 100_000];
    for key in [&b""[..], b"a", b"\xff\xfe", b"a\0b", b"\r\n", &long] {
        assert!(store.throttle(Key::Bytes(key), &asked).is_allow());
        assert!(!store.throttle(Key::Bytes(key), &asked).is_allow());
    }
}

#[test]
fn a_full_table_evicts_who_owes_least_or_refuses() {
    let asked = throttle(9, 1, SECOND);
    let (evicting, _) = store(100, WhenFull::Evict);
    for key in 0..1_000_u64 {
        assert!(evicting.throttle(key, &asked).is_allow());
    }
    assert!(evicting.evictions() > 800);
    assert!(evicting.table_bytes() < 100 * 100, "{} bytes", evicting.table_bytes());

    let (denying, clock) = store(100, WhenFull::Deny);
    let refused = (0..1_000_u64).filter(|key| !denying.throttle(*key, &asked).is_allow()).count();
    assert_eq!(denying.refusals_when_full(), refused as u64);
    assert!(refused > 800 && refused <= 900, "{refused} refused");
    let told = (1_000..2_000_u64).map(|key| denying.throttle(key, &asked)).find(|told| !told.is_allow());
    let told = told.expect("a full table");
    assert_eq!(told.decided_by(), DecidedBy::FullTable);
    // What is paid makes room again, without anybody sweeping.
    clock.advance(told.retry_after().expect("a time"));
    assert!((2_000..2_100_u64).all(|key| denying.throttle(key, &asked).is_allow()));
}

#[test]
fn a_table_with_room_keeps_every_key() {
    let (store, _) = store(20_000, WhenFull::Deny);
    let asked = throttle(0, 1, SECOND * 60);
    let told: Vec<_> = (0..20_000_u64).map(|key| store.throttle(key, &asked)).collect();
    // One key in a hundred million finds its two buckets full in a table that is not.
    let refused = told.iter().filter(|told| !told.is_allow()).count();
    assert!(refused <= 2, "{refused} keys found no place");
    assert!(told.iter().all(|told| told.is_allow() || told.decided_by() == DecidedBy::FullTable));
    assert!((0..20_000_u64).all(|key| !store.throttle(key, &asked).is_allow()), "a key was forgotten");
}
