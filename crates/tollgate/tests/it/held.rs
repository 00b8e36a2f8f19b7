//! Slots in sets with other limits, and who gets them back.

use crate::{
    by_hand::{SECOND, bucket, by_nobody, limiter, log, store},
    tasks::Tasks,
};
use std::{future::Future, task::Poll, time::Duration};
use tollgate::{Charge, Concurrency, KeyedLimiter, LimitHandle, ManualClock, MemoryStore, Rate, TokenBucket};

/// One slot, lost after half a minute, and one turn a minute of which the first is gone.
fn slot_and_rate(store: &MemoryStore<ManualClock>) -> (LimitHandle, LimitHandle) {
    let slots = store.add("slots", Concurrency::new(1, 30 * SECOND).unwrap().with_queue(10)).unwrap();
    let rate = store.add("rate", TokenBucket::new(Rate::per_minute(1).unwrap(), 1).unwrap()).unwrap();
    assert!(store.check_one(&Charge::new(&rate, ())).unwrap().is_allow());
    (slots, rate)
}

fn free(store: &MemoryStore<ManualClock>, slots: &LimitHandle) -> u32 {
    store.peek(&[Charge::new(slots, ()).cost(0)]).unwrap().statuses()[0].remaining()
}

/// It enters when it is released, for all of `max_hold`.
#[test]
fn a_set_that_waits_for_another_limit_holds_no_slot() {
    let (store, clock) = store();
    let (slots, rate) = slot_and_rate(&store);
    let mut tasks = Tasks::on(&clock);
    let both = tasks.start(store.enter(&[Charge::new(&rate, ()), Charge::new(&slots, ())]));
    let slot_only = tasks.start(store.enter(&[Charge::new(&slots, ())]));
    assert_eq!(tasks.order(), [slot_only], "the other one waits for the rate");
    tasks.pass(60 * SECOND);
    assert_eq!(tasks.order(), [slot_only, both], "nobody renewed the first one's slot");
    let (_, _, permit) = tasks.done.pop().unwrap();
    let next = tasks.start(store.enter(&[Charge::new(&slots, ())]));
    tasks.pass(29 * SECOND);
    assert!(tasks.is_running(next));
    assert!(permit.as_ref().unwrap().renew());
    tasks.pass(29 * SECOND);
    assert!(tasks.is_running(next));
    drop(permit);
    tasks.run();
    assert!(!tasks.is_running(next));
}

#[test]
fn slots_of_a_reservation_outlast_the_sleep_until_it_is_due() {
    let (store, clock) = store();
    let (slots, rate) = slot_and_rate(&store);
    let turn = store.reserve(&[Charge::new(&rate, ()), Charge::new(&slots, ())], 100 * SECOND).unwrap();
    let mut tasks = Tasks::on(&clock);
    let ready = tasks.start(turn.ready());
    tasks.pass(59 * SECOND);
    assert!(tasks.is_running(ready));
    assert_eq!(free(&store, &slots), 0);
    tasks.pass(SECOND);
    assert_eq!(tasks.order(), [ready]);
    assert_eq!(free(&store, &slots), 0, "and it is still held");
}

/// Its other limit has room, and somebody else is in the slot.
#[test]
fn a_set_whose_turn_comes_at_one_limit_waits_for_the_other() {
    let (store, clock) = store();
    let (slots, rate) = slot_and_rate(&store);
    let mut wait = std::pin::pin!(store.enter(&[Charge::new(&rate, ()), Charge::new(&slots, ())]));
    assert!(wait.as_mut().poll(&mut by_nobody()).is_pending());
    clock.advance(40 * SECOND);
    let other = store.enter(&[Charge::new(&slots, ())]).blocking().unwrap();
    clock.advance(20 * SECOND);
    assert!(wait.as_mut().poll(&mut by_nobody()).is_pending(), "the slot is held");
    drop(other);
    assert!(matches!(wait.as_mut().poll(&mut by_nobody()), Poll::Ready(Ok(_))));
}

#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn work_that_begins_late_keeps_its_permit() {
    let limit = Concurrency::new(1, 30 * SECOND).unwrap();
    let limiter = tollgate::Limiter::with_clock(limit, tollgate::TokioClock::new());
    let permit = limiter.enter().await.unwrap();
    tokio::time::sleep(25 * SECOND).await;
    permit.hold_while(tokio::time::sleep(20 * SECOND)).await;
    assert!(limiter.check().is_deny(), "it was held from beginning to end");
}

/// What was charged is spent by then; slots are held, not spent.
#[test]
fn slots_of_a_reservation_that_is_due_come_back() {
    let (store, clock) = store();
    let slots = store.add("slots", Concurrency::new(1, 30 * SECOND).unwrap()).unwrap();
    let rate = store.add("rate", bucket(1, 5)).unwrap();
    let book = || store.reserve(&[Charge::new(&rate, ()), Charge::new(&slots, ())], SECOND).unwrap();
    drop(book());
    assert_eq!(free(&store, &slots), 1, "dropped");
    assert_eq!(book().cancel(), [0, 1]);
    assert_eq!(free(&store, &slots), 1, "cancelled");
    book().settle_each(&[2]);
    assert_eq!(free(&store, &slots), 1, "settled");
    let left = store.peek(&[Charge::new(&rate, ()).cost(0)]).unwrap();
    assert_eq!(left.statuses()[0].remaining(), 1, "one, one and two were spent");
    clock.advance(SECOND);
    let permit = book().keep().unwrap();
    assert_eq!(free(&store, &slots), 0, "kept");
    assert_eq!(store.leave(&[Charge::new(&slots, ())], permit), Ok(1));
}

/// It did not come when it was called, and has lost its turn but not its place.
#[test]
fn whoever_was_put_out_finds_a_place_in_a_full_queue() {
    let (limiter, clock) = limiter(Concurrency::new(1, 30 * SECOND).unwrap().with_queue(2));
    let held = limiter.enter().blocking().unwrap();
    let mut forgotten = std::pin::pin!(limiter.enter());
    assert!(forgotten.as_mut().poll(&mut by_nobody()).is_pending());
    let mut tasks = Tasks::on(&clock);
    let next = tasks.start(limiter.enter());
    drop(held);
    tasks.run();
    tasks.pass(SECOND);
    assert_eq!(tasks.order(), [next], "in place of the forgotten one");
    tasks.start(limiter.enter());
    tasks.start(limiter.enter());
    assert!(limiter.enter().blocking().is_err(), "the queue is full");
    assert!(forgotten.as_mut().poll(&mut by_nobody()).is_pending(), "it came before those who fill it");
    tasks.done.clear();
    assert!(forgotten.as_mut().poll(&mut by_nobody()).is_ready(), "and goes before them");
}

/// The permit was for slots that are not there any more.
#[test]
fn a_permit_outlives_a_change_of_kind_and_back() {
    let (store, clock) = store();
    let slots = store.add("slots", Concurrency::new(1, 30 * SECOND).unwrap()).unwrap();
    let rate = store.add("rate", bucket(1, 1)).unwrap();
    assert!(store.check_one(&Charge::new(&rate, ())).unwrap().is_allow());
    let mut wait = std::pin::pin!(store.enter(&[Charge::new(&rate, ()), Charge::new(&slots, ())]));
    assert!(wait.as_mut().poll(&mut by_nobody()).is_pending());
    store.change(&slots, bucket(1, 1)).unwrap();
    clock.advance(SECOND);
    let Poll::Ready(Ok(permit)) = wait.as_mut().poll(&mut by_nobody()) else { panic!("its turn has come") };
    store.change(&slots, Concurrency::new(1, 30 * SECOND).unwrap()).unwrap();
    drop(permit);
    assert!(store.check_one(&Charge::new(&slots, ())).unwrap().is_allow());
}

#[test]
fn entering_a_rate_holds_nothing() {
    let (limiter, _clock) = limiter(bucket(1, 2));
    let permit = limiter.enter().blocking().unwrap();
    assert_eq!(permit.max_hold(), None);
    assert!(permit.renew());
    drop(permit);
    assert_eq!(limiter.peek(0).remaining(), 1);
}

#[test]
fn who_wants_no_slot_does_not_wait_for_one() {
    let (limiter, clock) = limiter(Concurrency::new(1, 30 * SECOND).unwrap().with_queue(1));
    let _held = limiter.enter().blocking().unwrap();
    let mut tasks = Tasks::on(&clock);
    tasks.start(limiter.enter());
    assert!(limiter.enter().cost(0).blocking().is_ok(), "all slots are held and the queue is full");
}

/// What a grant pays for holds no slot: there is nothing to be renewed, and nothing to be lost.
#[test]
fn a_slot_that_a_grant_paid_for_is_entered_at_once() {
    let keyed = KeyedLimiter::new(Concurrency::new(1, 30 * SECOND).unwrap());
    keyed.grant("alice", 1);
    let granted = keyed.enter("alice").up_to(SECOND).blocking().unwrap();
    assert!(granted.renew());
    let own = keyed.enter("alice").up_to(SECOND).blocking().unwrap();
    assert!(keyed.check("alice").is_deny());
    drop((granted, own));
    assert!(keyed.check("alice").is_allow());
}

#[test]
fn a_set_whose_slot_a_grant_paid_for_keeps_its_turn() {
    let (store, clock) = store();
    let slots = store.add("slots", Concurrency::new(1, SECOND / 3).unwrap().with_queue(10)).unwrap();
    let rate = store.add("rate", bucket(1, 1)).unwrap();
    assert!(store.check(&[Charge::new(&rate, ())]).unwrap().is_allow());
    store.grant(&slots, (), 1).unwrap();
    let set = [Charge::new(&slots, ()), Charge::new(&rate, ())];
    let mut tasks = Tasks::on(&clock);
    tasks.start(async { store.enter(&set).await.map(drop) });
    for _ in 0..3 {
        tasks.start(async { store.wait(&set[1..]).await.map(drop) });
    }
    tasks.finish();
    assert_eq!(tasks.order(), [0, 1, 2, 3]);
    assert_eq!(tasks.millis(), [1_000, 2_000, 3_000, 4_000]);
}

/// Slots that run out before any timer could renew them: the wait ends, one way or the other.
#[test]
fn slots_held_for_nanoseconds_do_not_keep_a_task_busy() {
    let (store, clock) = store();
    let slots =
        store.add("slots", Concurrency::new(1, Duration::from_nanos(2)).unwrap().with_queue(10)).unwrap();
    let rate = store.add("rate", bucket(1, 1)).unwrap();
    let set = [Charge::new(&slots, ()), Charge::new(&rate, ())];
    assert!(store.check(&set[1..]).unwrap().is_allow());
    let mut tasks = Tasks::on(&clock);
    let task = tasks.start(async { store.enter(&set).await.map(drop) });
    tasks.pass(60 * SECOND);
    assert!(!tasks.is_running(task));
    assert!(tasks.polls < 20, "{} polls", tasks.polls);
}

/// A queue of none lets nobody wait, wherever they come from.
#[test]
fn the_bound_of_a_queue_holds_for_sets_that_come_from_another_line() {
    let (store, clock) = store();
    let log = store.add("log", log(5)).unwrap();
    let slot = store.add("slot", Concurrency::new(1, 3_600 * SECOND).unwrap()).unwrap();
    assert!(store.check(&[Charge::new(&log, ()).cost(5)]).unwrap().is_allow());
    let mut tasks = Tasks::on(&clock);
    for _ in 0..10 {
        tasks.start(store.enter(&[Charge::new(&log, ()), Charge::new(&slot, ())]));
    }
    tasks.pass(10 * SECOND);
    assert_eq!(tasks.running(), [] as [usize; 0], "whoever finds the slot held is refused");
    assert_eq!(tasks.done.iter().filter(|(_, _, entered)| entered.is_ok()).count(), 1);
}
