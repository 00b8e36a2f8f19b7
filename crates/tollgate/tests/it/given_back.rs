//! What a turn gives back when it is given up: what is still there of it, and never what others have used since.

use crate::{
    by_hand::{SECOND, bucket, keyed, limiter, store},
    tasks::Tasks,
};
use std::time::Duration;
use tollgate::{
    Charge, Concurrency, FixedWindow, Limit, LimitHandle, ManualClock, MemoryStore, Rate, Reservation,
    SlidingCounter, SlidingLog, SmoothBursty, TokenBucket,
};

/// A turn in two seconds, of so many units of one limit and one of a slow bucket.
fn booked_ahead<'s>(
    store: &'s MemoryStore<ManualClock>,
    limit: &LimitHandle,
    cost: u32,
) -> Reservation<'s, MemoryStore<ManualClock>> {
    let rate = store.add("rate", bucket(1, 1)).unwrap();
    assert!(store.check_one(&Charge::new(&rate, ())).unwrap().is_allow());
    store.reserve(&[Charge::new(&rate, ())], 10 * SECOND).unwrap().keep();
    let set = [Charge::new(limit, ()).cost(cost), Charge::new(&rate, ())];
    let turn = store.reserve(&set, 10 * SECOND).unwrap();
    assert_eq!(turn.due_in(), 2 * SECOND);
    turn
}

#[test]
fn a_turn_given_up_after_its_window_takes_nothing_from_the_next() {
    let (store, clock) = store();
    let window = store.add("window", FixedWindow::new(5, SECOND).unwrap()).unwrap();
    let turn = booked_ahead(&store, &window, 3);
    clock.advance(3 * SECOND / 2);
    assert!(store.check_one(&Charge::new(&window, ()).cost(5)).unwrap().is_allow());
    assert_eq!(turn.cancel(), [0, 1], "the window has passed, and the slow turn has not come");
    assert!(
        store.check_one(&Charge::new(&window, ())).unwrap().is_deny(),
        "more than five in a window of five"
    );
}

#[test]
fn a_turn_given_up_within_its_window_comes_back() {
    for limit in [
        Limit::from(FixedWindow::new(5, 10 * SECOND).unwrap()),
        SlidingLog::new(5, 10 * SECOND).unwrap().into(),
        SlidingCounter::new(5, 10 * SECOND).unwrap().into(),
    ] {
        let (store, clock) = store();
        let handle = store.add("handle", limit.clone()).unwrap();
        let turn = booked_ahead(&store, &handle, 3);
        clock.advance(SECOND);
        assert!(store.check_one(&Charge::new(&handle, ()).cost(2)).unwrap().is_allow(), "{limit:?}");
        assert_eq!(turn.cancel(), [3, 1]);
        assert!(store.check_one(&Charge::new(&handle, ()).cost(4)).unwrap().is_deny(), "{limit:?}");
        assert!(store.check_one(&Charge::new(&handle, ()).cost(3)).unwrap().is_allow(), "{limit:?}");
    }
}

#[test]
fn settling_for_less_after_the_window_takes_nothing_from_others() {
    for limit in [
        Limit::from(FixedWindow::new(10, SECOND).unwrap()),
        SlidingLog::new(10, SECOND).unwrap().into(),
        SlidingCounter::new(10, SECOND).unwrap().into(),
    ] {
        let (limiter, clock) = limiter(limit.clone());
        let turn = limiter.reserve(10, SECOND).unwrap();
        clock.advance(5 * SECOND / 2);
        assert!(limiter.check_n(10).is_allow(), "{limit:?}");
        turn.settle(2);
        assert!(limiter.check().is_deny(), "{limit:?}: more than ten in a second");
    }
}

/// In a bucket later charges stand on it: so much less comes back.
#[test]
fn a_turn_given_up_in_a_bucket_leaves_later_ones_what_they_stand_on() {
    let (store, clock) = store();
    let handle = store.add("handle", TokenBucket::new(Rate::per_hour(1).unwrap(), 5).unwrap()).unwrap();
    let turn = booked_ahead(&store, &handle, 3);
    clock.advance(SECOND);
    assert!(store.check_one(&Charge::new(&handle, ()).cost(2)).unwrap().is_allow());
    assert_eq!(turn.cancel(), [1, 1], "of three, less the two that were charged later");
}

/// It takes its own entry out of the log, not the newest.
#[test]
fn a_turn_given_up_in_a_log_leaves_others_their_times() {
    let (store, clock) = store();
    let log = store.add("log", SlidingLog::new(6, SECOND).unwrap()).unwrap();
    let turn = booked_ahead(&store, &log, 3);
    clock.advance(9 * SECOND / 10);
    assert!(store.check_one(&Charge::new(&log, ()).cost(3)).unwrap().is_allow());
    assert_eq!(turn.cancel(), [3, 1]);
    clock.advance(SECOND / 10);
    let left = store.peek(&[Charge::new(&log, ()).cost(0)]).unwrap().statuses()[0].remaining();
    assert_eq!(left, 3, "three were used a tenth of a second ago, of six a second");
}

/// Time has earned it back already.
#[test]
fn a_bucket_is_not_filled_twice_by_time_and_by_a_turn() {
    let (limiter, clock) = limiter(bucket(1_000, 60_000));
    let turn = limiter.reserve(50_000, SECOND).unwrap();
    clock.advance(100 * SECOND);
    assert!(limiter.check_n(60_000).is_allow());
    turn.settle(10_000);
    assert!(limiter.check().is_deny(), "more than the burst at one instant");
}

/// A set that waits for one limit has long been paid for at another.
#[test]
fn a_waiting_set_that_gives_up_does_not_overfill_its_other_buckets() {
    let (store, clock) = store();
    let slow = store.add("slow", TokenBucket::new(Rate::per_minute(6).unwrap(), 1).unwrap()).unwrap();
    let quick = store.add("quick", bucket(10, 10)).unwrap();
    assert!(store.check_one(&Charge::new(&slow, ())).unwrap().is_allow());
    let mut tasks = Tasks::on(&clock);
    let set = tasks.start(store.wait(&[Charge::new(&slow, ()), Charge::new(&quick, ()).cost(10)]));
    assert!(tasks.is_running(set));
    tasks.pass(9 * SECOND);
    assert!(store.check_one(&Charge::new(&quick, ()).cost(10)).unwrap().is_allow(), "it has filled up again");
    tasks.abort(set);
    assert!(store.check_one(&Charge::new(&quick, ())).unwrap().is_deny(), "eleven at one instant, burst ten");
}

#[test]
fn a_turn_from_before_a_reset_gives_nothing_back() {
    let (limiter, _clock) = limiter(bucket(1, 5));
    assert!(limiter.check_n(5).is_allow());
    let turn = limiter.reserve(5, 10 * SECOND).unwrap();
    limiter.reset();
    assert!(limiter.check_n(5).is_allow());
    assert_eq!(turn.cancel(), 0);
    assert!(limiter.check().is_deny(), "six of burst five");

    let (keyed, _clock) = keyed(bucket(1, 5), 10);
    assert!(keyed.check_n("k", 5).is_allow());
    let turn = keyed.reserve("k", 5, 10 * SECOND).unwrap();
    keyed.reset("k");
    assert!(keyed.check_n("k", 5).is_allow());
    assert_eq!(turn.cancel(), 0);
    assert!(keyed.check("k").is_deny(), "six of burst five");
}

/// A bucket's use is not a window's.
#[test]
fn a_turn_from_before_a_change_of_kind_gives_nothing_back() {
    let (limiter, _clock) = limiter(bucket(1, 5));
    assert!(limiter.check_n(5).is_allow());
    let turn = limiter.reserve(5, 10 * SECOND).unwrap();
    limiter.change(FixedWindow::new(5, 60 * SECOND).unwrap());
    assert!(limiter.check_n(5).is_allow());
    assert_eq!(turn.cancel(), 0);
    assert!(limiter.check().is_deny(), "six in a window of five");
}

/// The turn's units are a tenth of what they were.
#[test]
fn a_turn_from_before_other_numbers_gives_nothing_back() {
    let (limiter, _clock) = limiter(bucket(1, 100));
    assert!(limiter.check_n(100).is_allow());
    let turn = limiter.reserve(100, 1_000 * SECOND).unwrap();
    limiter.change(bucket(1, 10));
    let before = limiter.peek(10).retry_after();
    assert_eq!(turn.cancel(), 0);
    assert_eq!(limiter.peek(10).retry_after(), before);

    let (store, _clock) = store();
    let limit = store.add("limit", bucket(1, 100)).unwrap();
    let charge = Charge::new(&limit, ());
    assert!(store.check_one(&charge.cost(100)).unwrap().is_allow());
    let turn = store.reserve(&[charge.cost(100)], 1_000 * SECOND).unwrap();
    store.change(&limit, bucket(1, 10)).unwrap();
    let before = store.peek(&[charge.cost(10)]).unwrap().retry_after();
    assert_eq!(turn.cancel(), [0]);
    assert_eq!(store.peek(&[charge.cost(10)]).unwrap().retry_after(), before);
}

#[test]
fn a_turn_of_a_key_that_was_forgotten_gives_nothing_back() {
    let (keyed, _clock) = keyed(bucket(1, 10), 8);
    assert!(keyed.check_n("k", 10).is_allow());
    let turn = keyed.reserve("k", 5, 100 * SECOND).unwrap();
    for other in 0..200_u64 {
        let _ = keyed.check_n(other, 10);
        let _ = keyed.reserve(other, 10, 1_000 * SECOND).map(Reservation::keep);
    }
    assert!(keyed.check_n("k", 10).is_allow(), "it was forgotten, so it has a bucket of its own again");
    assert_eq!(turn.cancel(), 0);
    assert_eq!(keyed.peek("k", 0).remaining(), 0);
}

#[test]
fn debt_of_a_forgotten_key_stands_although_it_is_banned() {
    let (keyed, clock) = keyed(bucket(10, 10), 8);
    let turn = keyed.reserve("k", 1, SECOND).unwrap();
    clock.advance(SECOND);
    for other in 0..100_u64 {
        let _ = keyed.check(other);
    }
    keyed.ban("k", SECOND);
    turn.settle(41);
    clock.advance(SECOND);
    assert!(keyed.peek("k", 1).is_deny(), "four seconds of debt less the one that went by");
}

#[test]
fn granted_units_of_a_set_come_back_as_granted() {
    let (store, clock) = store();
    let rate = store.add("rate", bucket(1, 1)).unwrap();
    let slots = store.add("slots", Concurrency::new(1, 30 * SECOND).unwrap()).unwrap();
    let calls = store.add("calls", bucket(1, 1)).unwrap();
    assert!(store.check_one(&Charge::new(&rate, ())).unwrap().is_allow());
    let left = || {
        let nothing = [Charge::new(&slots, ()).cost(0), Charge::new(&calls, ()).cost(0)];
        let left = store.peek(&nothing).unwrap();
        [left.statuses()[0].remaining(), left.statuses()[1].remaining()]
    };
    for limit in [&slots, &calls] {
        store.grant(limit, (), 1).unwrap();
    }
    assert_eq!(left(), [2, 2]);
    let set = [Charge::new(&rate, ()), Charge::new(&slots, ()), Charge::new(&calls, ()).cost(2)];
    let turn = store.reserve(&set, 10 * SECOND).unwrap();
    assert!(turn.due_in() > Duration::ZERO);
    assert_eq!(left(), [1, 0]);
    assert_eq!(turn.cancel(), [1, 1, 2]);
    assert_eq!(left(), [2, 2]);
    clock.advance(10 * SECOND);
    assert_eq!(left(), [2, 2]);
}

/// An end of what one key has used is not the end of what others have.
#[test]
fn a_reset_of_one_key_leaves_anothers_turn_its_units() {
    let (keyed, _clock) = keyed(bucket(1, 5), 10);
    assert!(keyed.check_n("alice", 5).is_allow());
    assert!(keyed.check_n("bob", 5).is_allow());
    let turn = keyed.reserve("bob", 5, 10 * SECOND).unwrap();
    keyed.reset("alice");
    assert_eq!(turn.cancel(), 5);
    assert_eq!(keyed.peek("bob", 1).retry_after(), Some(SECOND), "as if the turn had never been booked");
}

/// Counts of ends are shared by many keys: a flood of evictions may cost a turn now and then, not most of them.
#[test]
fn evictions_of_others_leave_a_turn_its_units() {
    let (keyed, _clock) = keyed(bucket(1, 10), 100);
    let mut lost = 0;
    for round in 0..50_u64 {
        let waiter = format!("waiter {round}");
        assert!(keyed.check_n(&*waiter, 10).is_allow());
        let turn = keyed.reserve(&*waiter, 10, 100 * SECOND).unwrap();
        for other in 0..20_u64 {
            let _ = keyed.check(round * 1_000 + other);
        }
        lost += u32::from(turn.cancel() == 0);
    }
    assert!(keyed.evictions() > 500, "{} evictions", keyed.evictions());
    assert!(lost <= 2, "{lost} of 50 turns were lost to evictions of other keys");
}

/// Time has made up for a smooth turn: settled an hour later it takes nothing from those who came since.
#[test]
fn a_smooth_turn_that_time_has_paid_for_gives_nothing_back() {
    for per_second in [1, 10] {
        let (limiter, clock) = limiter(SmoothBursty::new(Rate::per_second(per_second).unwrap()));
        clock.advance(10 * SECOND);
        let failed = limiter.reserve(10, SECOND).unwrap();
        clock.advance(3_600 * SECOND);
        assert!(limiter.check_n(10).is_allow());
        let before = limiter.peek(10);
        failed.settle(0);
        assert_eq!(limiter.peek(10), before, "{per_second} a second");
    }
}
