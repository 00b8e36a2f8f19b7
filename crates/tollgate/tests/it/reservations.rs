//! Turns that are booked: cancelled, kept, and settled for what they really cost.

use crate::{
    by_hand::{self, SECOND, bucket, limiter, log, queue_of_ten, rates, store},
    tasks::Tasks,
};
use std::time::Duration;
use tollgate::{
    Bounds, Charge, Concurrency, Decision, Delay, FixedWindow, KeyedLimiter, LeakyBucket, Limit, ManualClock,
    Passed, Rate, Reason, Refused, Status,
};

#[test]
fn a_reservation_comes_back_until_it_is_due() {
    let (limiter, clock) = limiter(bucket(10, 10));
    assert!(limiter.check_n(10).is_allow());
    let turn = limiter.reserve(5, SECOND).unwrap();
    assert_eq!((turn.due_in(), turn.is_due()), (SECOND / 2, false));
    assert_eq!(turn.cancel(), 5);
    assert_eq!(limiter.reserve(5, SECOND).unwrap().due_in(), SECOND / 2, "as if it had never come");

    let turn = limiter.reserve(5, SECOND).unwrap();
    clock.advance(SECOND / 2);
    assert!(turn.is_due());
    assert_eq!(turn.cancel(), 0, "spent");
    assert_eq!(limiter.peek(1).retry_after(), Some(SECOND / 10));
}

#[test]
fn a_limit_that_cannot_book_says_so() {
    let (window, _clock) = limiter(FixedWindow::new(3, 60 * SECOND).unwrap());
    let _booked = window.reserve(3, 100 * SECOND).unwrap();
    let refused = window.reserve(1, 100 * SECOND).unwrap_err();
    assert_eq!(refused.retry_after(), Some(60 * SECOND));
    assert_eq!(
        refused.to_string(),
        "there is no room now, and this limit is not booked ahead; try again in 60.000s"
    );

    let (slots, _clock) = limiter(Concurrency::new(1, SECOND).unwrap());
    let held = slots.reserve(1, SECOND).unwrap();
    let refused = slots.reserve(1, SECOND).unwrap_err();
    assert_eq!(refused.reason(), Reason::NoRoom { retry_after: None });
    assert_eq!(refused.to_string(), "every slot is held, and slots are not booked ahead");
    assert_eq!(held.cancel(), 1, "the slot came back");
    assert_eq!(slots.peek(0).remaining(), 1);
}

/// Work that failed after its turn had come did not cost anything.
#[test]
fn settling_for_nothing_gives_everything_back() {
    let (limiter, _clock) = limiter(bucket(10, 10));
    let turn = limiter.reserve(10, SECOND).unwrap();
    assert!(turn.is_due());
    turn.settle(0);
    assert_eq!(limiter.peek(0).remaining(), 10);
}

#[test]
fn a_reservation_that_is_kept_stays() {
    let (limiter, _clock) = limiter(bucket(10, 10));
    assert!(limiter.check_n(10).is_allow());
    let kept = limiter.reserve(5, SECOND).unwrap();
    assert_eq!(kept.statuses()[0].decision(), Decision::Wait(SECOND / 2));
    assert_eq!(kept.keep(), None, "there are no slots to be held");
    assert_eq!(limiter.reserve(1, SECOND).unwrap().due_in(), Duration::from_millis(600));
}

#[test]
fn a_reservation_pays_what_it_really_cost() {
    for limit in rates() {
        let (limiter, clock) = limiter(limit.clone());
        let (twin, twin_clock) = by_hand::limiter(limit.clone());
        limiter.reserve(1, Duration::ZERO).unwrap().settle(3);
        twin.reserve(3, Duration::MAX).unwrap().keep();
        assert_eq!(limiter.peek(1), twin.peek(1), "{limit:?}: more is charged");
        for clock in [&clock, &twin_clock] {
            clock.advance(10 * SECOND);
        }
        limiter.reserve(3, Duration::MAX).unwrap().settle(1);
        twin.reserve(1, Duration::MAX).unwrap().keep();
        assert_eq!(limiter.peek(2), twin.peek(2), "{limit:?}: less comes back");
    }
}

/// What is missing is debt, above the limit too: later turns wait for it.
#[test]
fn settling_for_more_than_there_is_becomes_debt() {
    let (limiter, clock) = limiter(bucket(10, 10));
    limiter.reserve(10, SECOND).unwrap().settle(35);
    assert_eq!(limiter.peek(1).retry_after(), Some(Duration::from_millis(2_600)));
    clock.advance(Duration::from_millis(2_600));
    assert!(limiter.check().is_allow());

    let (limiter, clock) = by_hand::limiter(log(10));
    limiter.reserve(10, SECOND).unwrap().settle(35);
    assert!(limiter.check().is_deny());
    clock.advance(SECOND);
    assert!(limiter.check().is_allow());
}

#[test]
fn a_set_is_settled_charge_by_charge() {
    let (store, _clock) = store();
    let tokens = store.add("tokens", bucket(1, 1_000)).unwrap();
    let calls = store.add("calls", bucket(1, 10)).unwrap();
    let set = [Charge::new(&tokens, "k").cost(500), Charge::new(&calls, "k")];
    let turn = store.reserve(&set, SECOND).unwrap();
    turn.settle_each(&[120]);
    let left = store.peek(&[Charge::new(&tokens, "k").cost(0), Charge::new(&calls, "k").cost(0)]).unwrap();
    assert_eq!(left.statuses().iter().map(Status::remaining).collect::<Vec<_>>(), [880, 9]);
}

/// Debt is kept for a key that the store forgot meanwhile.
#[test]
fn settling_finds_a_key_that_was_forgotten() {
    let clock = ManualClock::new();
    let keyed =
        KeyedLimiter::with_clock(bucket(10, 10), Bounds { max_keys: 8, ..Bounds::default() }, clock.clone());
    let turn = keyed.reserve("k", 1, SECOND).unwrap();
    clock.advance(SECOND);
    for other in 0..100_u64 {
        let _ = keyed.check(other);
    }
    turn.settle(41);
    assert_eq!(keyed.peek("k", 1).retry_after(), Some(Duration::from_millis(3_100)));
}

#[test]
fn granted_units_come_back_as_granted() {
    let (limiter, clock) = limiter(bucket(1, 2));
    assert!(limiter.check_n(2).is_allow());
    limiter.grant(3);
    let mut tasks: Tasks<'_, Result<Passed, Refused>> = Tasks::on(&clock);
    // Three of the five are granted, two are booked.
    let turn = tasks.start(limiter.wait().cost(2).up_to(SECOND));
    assert!(!tasks.is_running(turn), "granted ones cover it");
    limiter.grant(2);
    let turn = limiter.reserve(2, 10 * SECOND).unwrap();
    drop(turn);
    assert_eq!(limiter.peek(0).remaining(), 1, "spent: it was due at once");
    let turn = limiter.reserve(2, 10 * SECOND).unwrap();
    assert_eq!(turn.due_in(), SECOND);
    drop(turn);
    assert_eq!(limiter.peek(0).remaining(), 1, "one granted unit came back");
    clock.advance(2 * SECOND);
    assert_eq!(limiter.peek(0).remaining(), 3);
}

/// Booking does not wait, so it does not overtake those who do; it is told when it could book.
#[test]
fn a_reservation_does_not_overtake_a_line() {
    for limit in [Limit::from(FixedWindow::new(10, 10 * SECOND).unwrap()), queue_of_ten().into()] {
        let (limiter, clock) = limiter(limit.clone());
        assert!(!limiter.check_n(8).is_deny());
        let mut tasks = Tasks::on(&clock);
        let large = tasks.start(limiter.wait().cost(5));
        let refused = limiter.reserve(1, 100 * SECOND).unwrap_err();
        assert!(matches!(refused.reason(), Reason::NoRoom { retry_after: Some(_) }), "{limit:?}: {refused}");
        tasks.abort(large);
        assert!(limiter.reserve(1, 100 * SECOND).is_ok(), "{limit:?}: there was room");
    }
    let (store, clock) = store();
    let limit = store.add("limit", FixedWindow::new(10, 10 * SECOND).unwrap()).unwrap();
    let charge = Charge::new(&limit, "k");
    assert!(store.check_one(&charge.cost(8)).unwrap().is_allow());
    let mut tasks = Tasks::on(&clock);
    tasks.start(store.wait(&[charge.cost(5)]));
    assert!(store.reserve(&[charge], SECOND).is_err());
    assert!(store.reserve(&[Charge::new(&limit, "other")], SECOND).is_ok());
}

#[test]
fn a_reservation_behind_a_line_is_told_when_it_would_pass() {
    let limit =
        LeakyBucket::new(Rate::per_second(1).unwrap(), 3).unwrap().with_delay(Delay::After(1)).unwrap();
    let (limiter, clock) = limiter(limit);
    let mut tasks = Tasks::on(&clock);
    for _ in 0..5 {
        tasks.start(limiter.wait());
    }
    let patient = limiter.reserve(1, 10 * SECOND).unwrap_err().retry_after().unwrap();
    let hasty = limiter.reserve(1, SECOND).unwrap_err().retry_after().unwrap();
    assert!(hasty > patient, "a shorter wait is long enough later: {hasty:?}, {patient:?}");
    tasks.pass(hasty - Duration::from_micros(1));
    assert!(limiter.reserve(1, SECOND).is_err(), "a microsecond early is early");
    tasks.pass(Duration::from_micros(1));
    assert!(limiter.reserve(1, SECOND).is_ok(), "at the time it was told");
}

/// Charges on one bucket are booked as one, and each is settled for itself.
#[test]
fn charges_on_one_bucket_are_settled_one_by_one() {
    let (store, _clock) = store();
    let limit = store.add("limit", bucket(1, 10)).unwrap();
    let set = [Charge::new(&limit, "k").cost(3), Charge::new(&limit, "k").cost(2)];
    store.reserve(&set, SECOND).unwrap().settle_each(&[0]);
    let left = store.peek(&[Charge::new(&limit, "k").cost(0)]).unwrap();
    assert_eq!(left.statuses()[0].remaining(), 8, "nothing for the first, two for the second");
}

/// The limit's own units were spent last, and come back first.
#[test]
fn settling_for_less_gives_granted_units_back_as_well() {
    let (limiter, clock) = limiter(bucket(1, 2));
    limiter.grant(3);
    limiter.reserve(4, SECOND).unwrap().settle(2);
    assert_eq!(limiter.peek(0).remaining(), 3, "the own one and one of three granted came back");
    clock.advance(10 * SECOND);
    assert_eq!(limiter.peek(0).remaining(), 3, "two of its own, and one granted");
    limiter.reserve(3, SECOND).unwrap().settle(0);
    assert_eq!(limiter.peek(0).remaining(), 3);
}
