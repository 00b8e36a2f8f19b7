//! How a queue affects checks, reservations and changes, and how late polls and drops are dated.

use crate::{
    by_hand::{SECOND, bucket, by_nobody, keyed, limiter, log, store},
    tasks::Tasks,
};
use std::{future::Future, time::Duration};
use tollgate::{
    Charge, Clock, Concurrency, Decision, Delay, FixedWindow, LeakyBucket, Limit, Permit, Rate, Reason,
    Refused, Retry, Time,
};

/// Limits of one unit a second.
fn one_a_second() -> [Limit; 3] {
    [bucket(1, 1).into(), log(1).into(), FixedWindow::new(1, SECOND).unwrap().into()]
}

#[test]
fn checks_and_reservations_are_refused_with_the_time_behind_the_queue() {
    for limit in one_a_second() {
        let (limiter, clock) = limiter(limit.clone());
        let mut tasks = Tasks::on(&clock);
        tasks.start_all((0..4).map(|_| limiter.wait()));
        assert_eq!(limiter.check().decision(), Decision::Deny(Retry::After(4 * SECOND)), "{limit:?}");
        let refused = limiter.reserve(1, Duration::ZERO).unwrap_err();
        assert_eq!(refused.retry_after(), Some(4 * SECOND), "{limit:?}");
        assert!(limiter.reserve(1, 100 * SECOND).is_err(), "{limit:?}: booked in front of the queue");
        tasks.abort(1);
        assert_eq!(limiter.check().decision(), Decision::Deny(Retry::After(3 * SECOND)), "{limit:?}");
        tasks.pass(SECOND / 2);
        let after = Retry::After(5 * SECOND / 2);
        assert_eq!(limiter.check().decision(), Decision::Deny(after), "{limit:?}");
        tasks.finish();
        assert_eq!((tasks.order(), tasks.millis()), (vec![0, 2, 3], vec![0, 1_000, 2_000]), "{limit:?}");
        clock.advance(SECOND);
        assert!(limiter.check().is_allow(), "{limit:?}");
    }
}

#[test]
fn a_cancelled_crowd_does_not_delay_the_next_waiter() {
    for limit in one_a_second() {
        let (limiter, clock) = limiter(limit.clone());
        let mut tasks = Tasks::on(&clock);
        tasks.start_all((0..100).map(|_| limiter.wait()));
        clock.advance(SECOND / 2);
        (1..100).for_each(|task| tasks.abort(task));
        let last = tasks.start(limiter.wait().up_to(SECOND / 2));
        assert!(tasks.is_running(last), "{limit:?}: refused although it is in time");
        tasks.finish();
        assert_eq!(tasks.millis(), [0, 1_000], "{limit:?}");
    }
}

/// Otherwise such a waiter would block the queue for good.
#[test]
fn a_lowered_burst_refuses_impossible_costs_at_once() {
    let (limiter, clock) = limiter(bucket(1, 5));
    let mut tasks = Tasks::on(&clock);
    tasks.start(limiter.wait().cost(5));
    let large = tasks.start(limiter.wait().cost(4));
    let small = tasks.start(limiter.wait());
    limiter.change(bucket(1, 3));
    tasks.run();
    assert_eq!(tasks.order(), [0, large]);
    let refused: Refused = tasks.done.pop().unwrap().2.unwrap_err();
    assert_eq!(refused.reason(), Reason::Never { cost: 4, most: 3 });
    tasks.finish();
    assert_eq!((tasks.order(), tasks.millis()), (vec![0, small], vec![0, 1_000]));
}

#[test]
fn waiters_move_up_when_a_reservation_is_cancelled() {
    let (limiter, clock) = limiter(bucket(1, 1));
    assert!(limiter.check().is_allow());
    let turn = limiter.reserve(1, 10 * SECOND).unwrap();
    assert_eq!(turn.due_in(), SECOND);
    let mut tasks = Tasks::on(&clock);
    tasks.start_all((0..2).map(|_| limiter.wait()));
    tasks.pass(SECOND / 2);
    turn.cancel();
    tasks.run();
    tasks.finish();
    assert_eq!(tasks.millis(), [1_000, 2_000]);
}

/// As in nginx: a request is admitted on arrival and then delayed.
#[test]
fn a_delaying_leaky_bucket_charges_on_arrival_and_returns_nothing() {
    let limit = LeakyBucket::new(Rate::per_second(1).unwrap(), 3).unwrap();
    let (limiter, clock) = limiter(limit.with_delay(Delay::After(1)).unwrap());
    let mut tasks = Tasks::on(&clock);
    tasks.start_all((0..3).map(|_| limiter.wait()));
    assert_eq!((tasks.order(), limiter.peek(0).remaining()), (vec![0], 0));
    tasks.abort(1);
    tasks.abort(2);
    assert_eq!(limiter.peek(0).remaining(), 0, "nothing is given back");
    clock.advance(SECOND);
    assert_eq!(limiter.peek(0).remaining(), 1);
    tasks.start(limiter.wait());
    tasks.finish();
    assert_eq!(tasks.millis(), [0, 3_000], "behind the two dropped ones");
}

#[test]
fn a_late_poll_reports_the_release_time() {
    let (limiter, clock) = limiter(bucket(1, 1));
    let mut tasks = Tasks::on(&clock);
    tasks.start_all((0..4).map(|_| limiter.wait()));
    clock.set(Time::ZERO + 7 * SECOND / 2);
    tasks.run();
    let waited: Vec<Duration> =
        tasks.done.iter().map(|(_, _, passed)| passed.as_ref().unwrap().waited()).collect();
    assert_eq!(waited, [0, 1, 2, 3].map(Duration::from_secs));
    assert!(limiter.check().is_deny(), "the last release was half a second ago");
    clock.advance(SECOND / 2);
    assert!(limiter.check().is_allow());
}

#[test]
fn a_permit_reports_the_release_time() {
    let (limiter, clock) = limiter(Concurrency::new(1, 100 * SECOND).unwrap().with_queue(10));
    let mut tasks: Tasks<'_, Result<Permit<'_>, Refused>> = Tasks::on(&clock);
    tasks.start(limiter.enter());
    let (_, _, first) = tasks.done.pop().unwrap();
    let second = tasks.start_alone(limiter.enter());
    clock.advance(SECOND);
    drop(first);
    clock.advance(SECOND);
    assert!(
        limiter.check().is_deny(),
        "the slot belongs to the second waiter, which has not been polled since"
    );
    tasks.run();
    assert_eq!(tasks.order(), [second]);
    assert_eq!(tasks.done.pop().unwrap().2.unwrap().waited(), SECOND);
    assert_eq!(limiter.peek(0).remaining(), 1);
}

/// A rate is spent at the release; a slot is returned by the drop.
#[test]
fn a_waiter_dropped_after_its_release_has_spent_its_turn() {
    for limit in one_a_second() {
        let (by_key, clock) = keyed(limit.clone(), 10);
        let mut tasks = Tasks::on(&clock);
        tasks.start_all((0..3).map(|_| by_key.wait("k")));
        clock.advance(SECOND);
        tasks.abort_alone(1);
        tasks.run();
        assert_eq!(by_key.peek("k", 0).remaining(), 0, "{limit:?}: it was released");
        tasks.finish();
        assert_eq!((tasks.order(), tasks.millis()), (vec![0, 2], vec![0, 2_000]), "{limit:?}");
    }
    let (limiter, clock) = limiter(Concurrency::new(1, SECOND).unwrap().with_queue(10));
    let mut tasks: Tasks<'_, Result<Permit<'_>, Refused>> = Tasks::on(&clock);
    tasks.start_all((0..3).map(|_| limiter.enter()));
    tasks.done.clear();
    tasks.abort(1);
    tasks.run();
    assert_eq!(tasks.order(), [2], "the slot goes to the next");
}

/// Meanwhile it blocks nobody at a limit that has room.
#[test]
fn a_set_is_released_when_all_its_limits_have_room() {
    let (store, clock) = store();
    let [slow, window, uses] =
        [bucket(1, 1).into(), FixedWindow::new(1, 3 * SECOND).unwrap().into(), log(2).into()]
            .map(|limit: Limit| store.add("limit", limit).unwrap());
    let all = [&slow, &window, &uses].map(|limit| Charge::new(limit, "k"));
    let mut tasks = Tasks::on(&clock);
    tasks.start_all((0..4).map(|_| store.wait(&all)));
    let other = tasks.start(store.wait(&[Charge::new(&uses, "k")]));
    assert_eq!(tasks.order(), [0, other], "the sets wait at other limits");
    assert_eq!(store.peek(&[Charge::new(&uses, "k").cost(0)]).unwrap().statuses()[0].remaining(), 0);
    tasks.abort(1);
    tasks.finish();
    assert_eq!(tasks.millis(), [0, 0, 3_000, 6_000]);
    assert_eq!(clock.now(), Time::ZERO + 6 * SECOND);
}

/// Whoever comes for its slot gets it, however late, unless somebody else has come for it before.
#[test]
fn a_waiter_that_looks_late_still_gets_its_slot() {
    let (limiter, clock) = limiter(Concurrency::new(1, 3_600 * SECOND).unwrap().with_queue(2));
    let held = limiter.enter().blocking().unwrap();
    let mut waits: Vec<_> = (0..2).map(|_| Box::pin(limiter.enter())).collect();
    for wait in &mut waits {
        assert!(wait.as_mut().poll(&mut by_nobody()).is_pending());
    }
    drop(held);
    clock.advance(SECOND);
    let first = waits[0].as_mut().poll(&mut by_nobody());
    assert!(first.is_ready(), "it was released a second ago");
    drop(first);
    clock.advance(SECOND);
    assert!(waits[1].as_mut().poll(&mut by_nobody()).is_ready());
}

#[test]
fn a_set_whose_limit_was_removed_is_refused_and_holds_up_nobody() {
    let (store, clock) = store();
    let [rate, uses] =
        [bucket(1, 5).into(), log(1).into()].map(|limit: Limit| store.add("limit", limit).unwrap());
    let slots = store.add("slots", Concurrency::new(1, 3_600 * SECOND).unwrap().with_queue(1)).unwrap();
    let _held = store.enter(&[Charge::new(&slots, ())]).blocking().unwrap();
    let mut waits_for_slot = Box::pin(store.enter(&[Charge::new(&slots, ())]));
    assert!(waits_for_slot.as_mut().poll(&mut by_nobody()).is_pending());
    assert!(store.check_one(&Charge::new(&uses, ())).unwrap().is_allow());

    let set = [Charge::new(&rate, ()), Charge::new(&uses, ()), Charge::new(&slots, ())];
    let mut tasks = Tasks::on(&clock);
    tasks.start(async { store.enter(&set).await.map(drop) });
    tasks.start(async { store.wait(&[Charge::new(&uses, ())]).await.map(drop) });
    let late = store.enter(&[Charge::new(&rate, ()), Charge::new(&slots, ())]);
    store.remove(&rate).unwrap();
    tasks.start(async { late.await.map(drop) });
    tasks.pass(10 * SECOND);
    assert_eq!(tasks.running(), [] as [usize; 0]);
    let went: Vec<_> =
        tasks.done.iter().filter(|(_, _, ended)| ended.is_ok()).map(|(task, ..)| *task).collect();
    assert_eq!(went, [1], "two sets have lost a limit");
}

/// Others go first at a limit at which a set does not stand.
#[test]
fn a_set_is_not_judged_by_those_who_go_before_it() {
    let (store, clock) = store();
    let (rate, uses) = (store.add("limit", bucket(1, 1)).unwrap(), store.add("limit", log(1)).unwrap());
    let both = [Charge::new(&rate, ()), Charge::new(&uses, ())];
    let uses_ten = store.add("uses_ten", tollgate::SlidingLog::new(1, 10 * SECOND).unwrap()).unwrap();
    let slow = [Charge::new(&rate, ()), Charge::new(&uses_ten, ())];
    assert!(store.check(&both[1..]).unwrap().is_allow());
    assert!(store.check(&slow[1..]).unwrap().is_allow());
    let mut tasks = Tasks::on(&clock);
    tasks.start(store.wait(&slow));
    assert!(store.check(&both[..1]).unwrap().is_allow());
    tasks.start(store.wait(&both[..1]));
    tasks.start(store.wait(&slow).up_to(21 * SECOND));
    assert_eq!(tasks.running(), [0, 1, 2], "its turn is at 20 s");
    tasks.finish();
    assert_eq!((tasks.order(), tasks.millis()), (vec![1, 0, 2], vec![1_000, 10_000, 20_000]));
}

#[test]
fn a_clock_that_has_come_to_its_end_ends_no_thread() {
    let (limiter, clock) = limiter(Concurrency::new(1, 3_600 * SECOND).unwrap().with_queue(2));
    let _held = limiter.enter().blocking().unwrap();
    clock.set(tollgate::Time::END);
    let mut wait = Box::pin(limiter.enter());
    let _ = wait.as_mut().poll(&mut by_nobody());
    clock.advance(Duration::MAX);
    let _ = wait.as_mut().poll(&mut by_nobody());
    let _ = limiter.check();
}

/// After the pace is later than the deadline, waiting longer is of no use.
#[test]
fn a_set_that_is_late_for_a_pace_is_told_at_once() {
    let (store, clock) = store();
    let pace = LeakyBucket::new(Rate::per_second(10).unwrap(), 100).unwrap();
    let pace = store.add("pace", pace.with_delay(Delay::After(1)).unwrap()).unwrap();
    let window = store.add("window", FixedWindow::new(1, 5 * SECOND).unwrap()).unwrap();
    assert!(store.check(&[Charge::new(&window, ())]).unwrap().is_allow());
    let mut tasks = Tasks::on(&clock);
    let set = [Charge::new(&pace, ()), Charge::new(&window, ())];
    tasks.start(store.wait(&set).up_to(10 * SECOND));
    tasks.pass(49 * SECOND / 10);
    assert!(!store.check(&[Charge::new(&pace, ()).cost(60)]).unwrap().is_deny());
    tasks.pass(SECOND / 10);
    assert_eq!(tasks.millis(), [5_000]);
    assert!(tasks.done[0].2.is_err());
}
