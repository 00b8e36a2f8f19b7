//! Many limits at once: added, changed and removed in one pass, each as it would be by itself.

use std::{borrow::Cow, time::Duration};
use tollgate::{
    Bounds, Charge, FixedWindow, Limit, LimitHandle, ManualClock, MemoryStore, NewLimit, Rate, SlidingLog,
    Store, StoreError, TokenBucket,
};

fn bucket(per_second: u32, burst: u32) -> Limit {
    TokenBucket::new(Rate::per_second(per_second).unwrap(), burst).unwrap().into()
}

fn store() -> MemoryStore<ManualClock> {
    MemoryStore::with_clock(Bounds { max_keys: 4_000, ..Bounds::default() }, ManualClock::new())
}

fn new(limit: &Limit, max_keys: Option<u32>) -> NewLimit<'_> {
    NewLimit { name: Cow::Borrowed(""), limit: Cow::Borrowed(limit), max_keys }
}

/// States of one word, of two, and in boxes; with room of their own and without.
fn mixed() -> Vec<(Limit, Option<u32>)> {
    let log = |limit| SlidingLog::new(limit, Duration::from_secs(60)).unwrap().into();
    let window = |limit| FixedWindow::new(limit, Duration::from_secs(60)).unwrap().into();
    let kinds = [bucket(10, 100), bucket(999_999_937, 100), log(100), window(100)];
    let rooms = [None, Some(8)];
    (0..64).map(|nth| (kinds[nth % 4].clone(), rooms[nth / 4 % 2])).collect()
}

fn remaining(store: &MemoryStore<ManualClock>, limit: &LimitHandle) -> u32 {
    store.peek(&[Charge::new(limit, "a").cost(0)]).unwrap().statuses()[0].remaining()
}

#[test]
fn limits_changed_together_keep_what_was_consumed_as_each_by_itself_does() {
    let mixed = mixed();
    let to: Vec<Limit> = (0..64_u32).map(|nth| mixed[(nth * 5 + 3) as usize % 64].0.clone()).collect();
    let (together, alone) = (store(), store());
    let add = |store: &MemoryStore<ManualClock>| {
        let limits: Vec<_> = mixed.iter().map(|(limit, room)| new(limit, *room)).collect();
        let added = store.add_all(&limits).unwrap();
        for (used, limit) in (1..).zip(&added) {
            assert!(store.check(&[Charge::new(limit, "a").cost(used)]).unwrap().is_allow());
        }
        added
    };
    let (batch, single) = (add(&together), add(&alone));
    let changes: Vec<_> = batch.iter().cloned().zip(to.iter().cloned()).collect();
    together.change_all(&changes).unwrap();
    for (limit, to) in single.iter().zip(&to) {
        alone.change(limit, to.clone()).unwrap();
    }
    for (nth, (one, other)) in batch.iter().zip(&single).enumerate() {
        assert_eq!(remaining(&together, one), remaining(&alone, other), "{:?} to {:?}", mixed[nth], to[nth]);
    }
    assert!(batch.iter().any(|limit| remaining(&together, limit) < 100), "something was kept");
}

#[test]
fn of_a_limit_that_is_changed_twice_at_once_the_last_numbers_hold() {
    let store = store();
    let limit = store.add("limit", bucket(10, 100)).unwrap();
    store.change_all(&[(limit.clone(), bucket(10, 200)), (limit.clone(), bucket(10, 300))]).unwrap();
    assert_eq!(remaining(&store, &limit), 300);
    store.remove_all(&[limit.clone(), limit.clone()]);
    assert_eq!(store.check(&[Charge::new(&limit, "a")]).unwrap_err(), StoreError::UnknownLimit);
}

#[test]
fn an_unknown_limit_changes_no_other_and_keeps_none_from_being_removed() {
    let (store, other) = (store(), store());
    let ours = store.add("ours", bucket(10, 100)).unwrap();
    let theirs = other.add("theirs", bucket(10, 100)).unwrap();
    let changes = [(ours.clone(), bucket(10, 200)), (theirs, bucket(10, 200))];
    assert_eq!(store.change_all(&changes), Err((1, StoreError::UnknownLimit)));
    assert_eq!(remaining(&store, &ours), 100);
    // What is unknown is gone already: the others go as well.
    let [(ours, _), (theirs, _)] = changes;
    store.remove_all(&[theirs.clone(), ours.clone()]);
    assert_eq!(store.check(&[Charge::new(&ours, "a")]).unwrap_err(), StoreError::UnknownLimit);
    assert_eq!(remaining(&other, &theirs), 100);
}

#[test]
fn limits_removed_together_leave_nothing_for_those_that_follow() {
    let (store, mixed) = (store(), mixed());
    let limits: Vec<_> = mixed.iter().map(|(limit, room)| new(limit, *room)).collect();
    for _ in 0..3 {
        let added = store.add_all(&limits).unwrap();
        for limit in &added {
            assert_eq!(remaining(&store, limit), 100, "found another limit's state");
            assert!(store.check(&[Charge::new(limit, "a").cost(100)]).unwrap().is_allow());
        }
        store.remove_all(&added);
        for limit in &added {
            assert_eq!(store.check(&[Charge::new(limit, "a")]).unwrap_err(), StoreError::UnknownLimit);
        }
    }
}

#[test]
fn a_hundred_thousand_limits_fit_beside_their_successors() {
    let store = store();
    let limits: Vec<Limit> = (1..=100_000).map(|burst| bucket(10, burst)).collect();
    let all: Vec<_> = limits.iter().map(|limit| new(limit, None)).collect();
    let before = store.add_all(&all).unwrap();
    let after = store.add_all(&all).unwrap();
    for nth in [0, 1, 65_533, 65_534, 65_535, 65_536, 99_999] {
        let burst = u32::try_from(nth + 1).unwrap();
        assert_eq!(remaining(&store, &before[nth]), burst);
        assert!(store.check(&[Charge::new(&before[nth], "a").cost(burst)]).unwrap().is_allow());
        assert_eq!((remaining(&store, &before[nth]), remaining(&store, &after[nth])), (0, burst));
    }
    store.remove_all(&before);
    assert_eq!(remaining(&store, &after[65_535]), 65_536);
}
