//! Lines in front of limits that cannot book: nobody overtakes, and nobody who sleeps for good holds up the others.

use crate::{
    by_hand::{SECOND, bucket, by_nobody, keyed, limiter, log, queue_of_ten, store},
    tasks::Tasks,
};
use std::{future::Future, task::Poll, time::Duration};
use tollgate::{
    Bounds, Charge, Clock, Concurrency, FixedWindow, KeyedLimiter, Limit, ManualClock, Reason, Retry,
    SlidingLog, Time, WhenFull,
};

/// Limits of two words and of one, with room for two more once eight are used, and no booking.
fn with_room_for_two() -> [Limit; 2] {
    [FixedWindow::new(10, 10 * SECOND).unwrap().into(), queue_of_ten().into()]
}

/// Somebody keeps a future and no longer polls it: it has its turn like the others, and those behind it have theirs.
#[test]
fn a_forgotten_future_does_not_block_everyone() {
    for limit in [Limit::from(log(1)), bucket(1, 1).into(), FixedWindow::new(1, SECOND).unwrap().into()] {
        let (limiter, clock) = limiter(limit.clone());
        assert!(limiter.check().is_allow());
        let mut forgotten = std::pin::pin!(limiter.wait());
        assert!(forgotten.as_mut().poll(&mut by_nobody()).is_pending());
        let mut tasks = Tasks::on(&clock);
        for _ in 0..3 {
            tasks.start(limiter.wait());
        }
        tasks.finish();
        assert_eq!(tasks.millis(), [2_000, 3_000, 4_000], "{limit:?}");
        let Poll::Ready(Ok(passed)) = forgotten.as_mut().poll(&mut by_nobody()) else { panic!("{limit:?}") };
        assert_eq!(passed.waited(), SECOND, "{limit:?}");
    }
}

/// An hour later the window is long empty, and nobody has asked for it.
#[test]
fn a_forgotten_future_alone_in_its_line_holds_up_nobody() {
    let (limiter, clock) = limiter(log(1));
    assert!(limiter.check().is_allow());
    let mut forgotten = std::pin::pin!(limiter.wait());
    assert!(forgotten.as_mut().poll(&mut by_nobody()).is_pending());
    clock.advance(3_600 * SECOND);
    assert!(limiter.check().is_allow());
}

#[test]
fn a_leaked_future_alone_in_its_line_holds_up_no_reservation() {
    let (limiter, clock) = limiter(log(1));
    assert!(limiter.check().is_allow());
    let mut leaked = Box::pin(limiter.wait());
    assert!(leaked.as_mut().poll(&mut by_nobody()).is_pending());
    std::mem::forget(leaked);
    clock.advance(3_600 * SECOND);
    assert!(limiter.reserve(1, SECOND).is_ok());
}

#[test]
fn two_forgotten_futures_hold_up_nobody_behind_them() {
    let (limiter, clock) = limiter(log(1));
    assert!(limiter.check().is_allow());
    let mut forgotten = [Box::pin(limiter.wait()), Box::pin(limiter.wait())];
    for wait in &mut forgotten {
        assert!(wait.as_mut().poll(&mut by_nobody()).is_pending());
    }
    let mut tasks = Tasks::on(&clock);
    let third = tasks.start(limiter.wait());
    tasks.pass(60 * SECOND);
    assert_eq!(tasks.order(), [third]);
}

/// The process was stopped for a while: both could go, and the younger is polled first.
#[test]
fn a_stall_does_not_change_the_order() {
    let (limiter, clock) = limiter(log(1));
    assert!(limiter.check().is_allow());
    let mut one = std::pin::pin!(limiter.wait());
    let mut two = std::pin::pin!(limiter.wait());
    assert!(one.as_mut().poll(&mut by_nobody()).is_pending());
    assert!(two.as_mut().poll(&mut by_nobody()).is_pending());
    clock.advance(SECOND + SECOND / 5);
    assert!(two.as_mut().poll(&mut by_nobody()).is_pending(), "the first is warned, and not yet put out");
    assert!(one.as_mut().poll(&mut by_nobody()).is_ready());
}

/// Turns come at their own times, however late somebody looks.
#[test]
fn whoever_looks_late_was_in_time() {
    for late in [3, 6, 10_000] {
        let (limiter, clock) = limiter(log(2));
        assert!(limiter.check_n(2).is_allow());
        let mut one = std::pin::pin!(limiter.wait());
        let mut two = std::pin::pin!(limiter.wait().up_to(SECOND));
        assert!(one.as_mut().poll(&mut by_nobody()).is_pending());
        assert!(two.as_mut().poll(&mut by_nobody()).is_pending());
        clock.advance(SECOND + Duration::from_millis(late));
        assert!(two.as_mut().poll(&mut by_nobody()).is_ready(), "{late} ms late");
        assert!(one.as_mut().poll(&mut by_nobody()).is_ready(), "{late} ms late");
    }
}

#[test]
fn a_check_does_not_overtake_a_large_wait_that_it_could_pass() {
    for limit in with_room_for_two() {
        let (limiter, clock) = limiter(limit.clone());
        // From now on a state of one word is decided by the word.
        clock.advance(100 * SECOND);
        assert!(!limiter.check_n(8).is_deny());
        let mut tasks = Tasks::on(&clock);
        let large = tasks.start(limiter.wait().cost(5));
        assert!(limiter.check().is_deny(), "{limit:?}: there is room for one, but five came first");
        assert!(limiter.peek(1).is_deny(), "{limit:?}");
        tasks.abort(large);
        assert!(!limiter.check().is_deny(), "{limit:?}: nobody waits any more");
    }
}

#[test]
fn a_check_of_a_key_does_not_overtake_those_who_wait_for_it() {
    for limit in with_room_for_two() {
        let (keyed, clock) = keyed(limit.clone(), 10);
        assert!(!keyed.check_n("k", 8).is_deny());
        let mut tasks = Tasks::on(&clock);
        let large = tasks.start(keyed.wait("k").cost(5));
        assert!(keyed.check("k").is_deny(), "{limit:?}: there is room for one, but five came first");
        assert!(keyed.peek("k", 1).is_deny(), "{limit:?}");
        assert!(!keyed.check("other").is_deny(), "{limit:?}: nobody waits for that one");
        tasks.abort(large);
        assert!(!keyed.check("k").is_deny(), "{limit:?}: nobody waits any more");
    }
}

#[test]
fn a_set_that_does_not_wait_overtakes_nobody() {
    for limit in with_room_for_two() {
        let (store, clock) = store();
        let (limit, free) = (store.add("limit", limit).unwrap(), store.add("limit", bucket(1, 10)).unwrap());
        let charge = Charge::new(&limit, "k");
        assert!(!store.check(&[Charge::new(&free, "k"), charge.cost(8)]).unwrap().is_deny());
        let mut tasks = Tasks::on(&clock);
        tasks.start(store.wait(&[charge.cost(5)]));
        assert!(store.check_one(&charge).unwrap().is_deny());
        let refused = store.check(&[Charge::new(&free, "k"), charge]).unwrap();
        assert!(refused.statuses()[0].is_allow() && refused.statuses()[1].is_deny());
        let left = store.peek(&[Charge::new(&free, "k").cost(0)]).unwrap();
        assert_eq!(left.statuses()[0].remaining(), 9, "a refused set charges nothing");
    }
}

/// Lines are counted with bans: as many must end as began, whoever ends them.
#[test]
fn a_ban_counts_after_a_line_has_come_and_gone() {
    for limit in with_room_for_two() {
        for is_forgotten in [false, true] {
            let (keyed, clock) = keyed(limit.clone(), 10);
            assert!(!keyed.check_n("k", 8).is_deny());
            let mut wait = Box::pin(keyed.wait("k").cost(5));
            assert!(wait.as_mut().poll(&mut by_nobody()).is_pending());
            if is_forgotten {
                clock.advance(3_600 * SECOND);
                assert!(!keyed.check("k").is_deny(), "{limit:?}: the forgotten one is put out");
            }
            drop(wait);
            clock.advance(3_600 * SECOND);
            keyed.ban("k", SECOND);
            assert!(keyed.check("k").is_deny(), "{limit:?}");
            clock.advance(SECOND);
            assert!(!keyed.check("k").is_deny(), "{limit:?}");
        }
    }
}

/// Cost 0 is a peek: it waits for nobody.
#[test]
fn who_asks_for_nothing_does_not_stand_in_line() {
    let (limiter, clock) = limiter(log(1));
    assert!(limiter.check().is_allow());
    let mut tasks = Tasks::on(&clock);
    tasks.start(limiter.wait());
    assert!(limiter.check_n(0).is_allow());
    assert!(limiter.reserve(0, Duration::ZERO).is_ok());
    assert!(limiter.wait().cost(0).up_to(Duration::ZERO).blocking().is_ok());
    let nothing = tasks.start(limiter.wait().cost(0));
    assert_eq!(tasks.order(), [nothing]);
}

#[test]
fn a_line_goes_on_when_the_bucket_is_helped_by_hand() {
    for help in ["refund", "reset", "grant", "change", "lift the ban"] {
        let (limiter, clock) = limiter(log(1));
        if help == "lift the ban" {
            limiter.ban(100 * SECOND);
        } else {
            assert!(limiter.check().is_allow());
        }
        let mut tasks = Tasks::on(&clock);
        let waits = tasks.start(limiter.wait());
        assert!(tasks.is_running(waits));
        match help {
            "refund" => limiter.refund(1),
            "reset" => limiter.reset(),
            "grant" => limiter.grant(1),
            "change" => limiter.change(log(2)),
            _ => limiter.ban(Duration::ZERO),
        }
        tasks.run();
        assert_eq!(tasks.order(), [waits], "after {help}");
        assert_eq!(clock.now(), Time::ZERO);
    }
}

#[test]
fn a_line_goes_on_when_a_key_is_helped_by_hand() {
    for help in ["refund", "reset", "grant", "change", "lift the ban", "cancel"] {
        let (store, clock) = store();
        let limit = store.add("limit", log(1)).unwrap();
        let rate = store.add("rate", bucket(1, 1)).unwrap();
        let charge = Charge::new(&limit, "k");
        let mut turn = None;
        match help {
            "lift the ban" => store.ban(&limit, "k", 100 * SECOND).unwrap(),
            "cancel" => {
                assert!(store.check_one(&Charge::new(&rate, ())).unwrap().is_allow());
                turn = Some(store.reserve(&[charge, Charge::new(&rate, ())], 10 * SECOND).unwrap());
            }
            _ => assert!(store.check_one(&charge).unwrap().is_allow()),
        }
        let mut tasks = Tasks::on(&clock);
        let waits = tasks.start(store.wait(&[charge]));
        assert!(tasks.is_running(waits), "{help}");
        match help {
            "refund" => store.refund(&limit, "k", 1).unwrap(),
            "reset" => store.reset(&limit, "k").unwrap(),
            "grant" => store.grant(&limit, "k", 1).unwrap(),
            "change" => store.change(&limit, log(2)).unwrap(),
            "cancel" => assert_eq!(turn.take().unwrap().cancel(), [1, 1]),
            _ => store.ban(&limit, "k", Duration::ZERO).unwrap(),
        }
        tasks.run();
        assert_eq!(tasks.order(), [waits], "after {help}");
        assert_eq!(clock.now(), Time::ZERO);
    }
}

#[test]
fn a_queue_goes_on_when_a_permit_is_given_back_by_hand() {
    let (store, clock) = store();
    let slots = store.add("slots", Concurrency::new(1, 30 * SECOND).unwrap().with_queue(1)).unwrap();
    let charge = [Charge::new(&slots, "k")];
    let permit = store.reserve(&charge, SECOND).unwrap().keep().unwrap();
    let mut tasks = Tasks::on(&clock);
    let waits = tasks.start(store.wait(&charge));
    assert!(tasks.is_running(waits));
    assert_eq!(store.leave(&charge, permit), Ok(1));
    tasks.run();
    assert_eq!(tasks.order(), [waits]);
}

/// It waits for a place in the table as for anything else, and is told where that takes too long.
#[test]
fn a_key_for_which_there_is_no_place_in_time_is_refused_at_once() {
    let clock = ManualClock::new();
    let limit = SlidingLog::new(1, 100 * SECOND).unwrap();
    let bounds = Bounds { max_keys: 1, when_full: WhenFull::Deny };
    let keyed = KeyedLimiter::with_clock(limit, bounds, clock.clone());
    for key in 0..1_000_u64 {
        let _ = keyed.check(key);
    }
    let mut tasks = Tasks::on(&clock);
    tasks.start(keyed.wait("new").up_to(SECOND));
    let (_, _, refused) = tasks.done.pop().expect("a hundred seconds is more than one");
    assert!(matches!(refused.unwrap_err().reason(), Reason::Late { .. }));
}

/// A ban in between makes it late: it is told at once, and when to come again.
#[test]
fn a_wait_that_a_ban_makes_vain_is_told_at_once() {
    let (limiter, clock) = limiter(log(1));
    assert!(limiter.check().is_allow());
    let mut in_front = [Box::pin(limiter.wait()), Box::pin(limiter.wait())];
    for wait in &mut in_front {
        assert!(wait.as_mut().poll(&mut by_nobody()).is_pending());
    }
    let mut tasks = Tasks::on(&clock);
    tasks.start(limiter.wait().up_to(3 * SECOND));
    clock.advance(SECOND / 2);
    limiter.ban(10 * SECOND);
    tasks.run();
    let refused = tasks.done.pop().expect("at once").2.unwrap_err();
    assert_eq!(refused.reason(), Reason::Late { retry_after: 19 * SECOND / 2 }, "at 10.5, 11.5 and 12.5 s");
    assert_eq!(refused.retry(), Retry::After(19 * SECOND / 2));
}
