//! Who is told no at once by a line, and who is not: a newcomer is judged by what everybody in front will have used.

use crate::{
    by_hand::{SECOND, bucket, by_nobody, keyed, limiter, log, store},
    tasks::Tasks,
};
use std::{future::Future, time::Duration};
use tollgate::{Charge, Clock, FixedWindow, Limiter, ManualClock, Passed, Reason, Refused};

/// Whether a wait for so long is let in line, by one who does not stay.
fn would_be_in_time(limiter: &Limiter<ManualClock>, cost: u32, up_to: Duration) -> bool {
    let mut wait = std::pin::pin!(limiter.wait().cost(cost).up_to(up_to));
    wait.as_mut().poll(&mut by_nobody()).is_pending()
}

/// One a second, and the first is gone.
fn one_a_second() -> (Limiter<ManualClock>, ManualClock) {
    let (limiter, clock) = limiter(log(1));
    assert!(limiter.check().is_allow());
    (limiter, clock)
}

#[test]
fn everybody_in_front_counts() {
    let (limiter, clock) = one_a_second();
    let mut tasks: Tasks<'_, Result<Passed, Refused>> = Tasks::on(&clock);
    for waiting in 1..5 {
        assert!(!would_be_in_time(&limiter, 1, waiting * SECOND - Duration::from_nanos(1)));
        assert!(would_be_in_time(&limiter, 1, waiting * SECOND));
        tasks.start(limiter.wait());
    }
}

#[test]
fn a_place_that_was_given_up_no_longer_counts() {
    let (limiter, clock) = one_a_second();
    let mut tasks = Tasks::on(&clock);
    for _ in 0..4 {
        tasks.start(limiter.wait());
    }
    assert!(!would_be_in_time(&limiter, 1, 4 * SECOND));
    tasks.abort(3);
    assert!(would_be_in_time(&limiter, 1, 4 * SECOND));
}

/// The large one had a window to itself; without it the next one goes in that window, and a newcomer with it.
#[test]
fn those_behind_a_place_that_was_given_up_move_up() {
    let (limiter, clock) = limiter(FixedWindow::new(10, SECOND).unwrap());
    assert!(limiter.check_n(10).is_allow());
    let mut tasks = Tasks::on(&clock);
    let large = tasks.start(limiter.wait().cost(10));
    tasks.start(limiter.wait());
    assert!(!would_be_in_time(&limiter, 1, SECOND));
    tasks.abort(large);
    tasks.pass(Duration::from_millis(1));
    assert!(would_be_in_time(&limiter, 1, SECOND));
}

/// One of those who wait goes at once, and everybody behind it a second earlier.
#[test]
fn help_by_hand_counts_at_once() {
    for help in ["refund", "reset", "grant", "change"] {
        let (limiter, clock) = one_a_second();
        let mut tasks = Tasks::on(&clock);
        for _ in 0..2 {
            tasks.start(limiter.wait());
        }
        assert!(!would_be_in_time(&limiter, 1, 2 * SECOND), "before {help}");
        match help {
            "refund" => limiter.refund(1),
            "reset" => limiter.reset(),
            "grant" => limiter.grant(1),
            _ => limiter.change(log(2)),
        }
        tasks.run();
        assert_eq!(tasks.order(), [0], "after {help}");
        assert!(would_be_in_time(&limiter, 1, 2 * SECOND), "after {help}");
    }
}

/// Nobody polls it, so it is released by whoever comes by.
#[test]
fn a_forgotten_future_counts_until_its_turn_has_come() {
    let (limiter, clock) = one_a_second();
    let mut forgotten = std::pin::pin!(limiter.wait());
    assert!(forgotten.as_mut().poll(&mut by_nobody()).is_pending());
    let mut tasks = Tasks::on(&clock);
    for _ in 0..2 {
        tasks.start(limiter.wait());
    }
    tasks.pass(SECOND - Duration::from_nanos(1));
    assert!(!would_be_in_time(&limiter, 1, 3 * SECOND));
    tasks.pass(Duration::from_nanos(1));
    assert!(would_be_in_time(&limiter, 1, 3 * SECOND), "behind two, of whom the first goes in a second");
    assert!(forgotten.as_mut().poll(&mut by_nobody()).is_ready());
}

/// A set comes from another line, to a place in front of those who came later.
#[test]
fn whoever_comes_from_another_line_counts() {
    let (store, clock) = store();
    let a = store.add("a", FixedWindow::new(1, SECOND).unwrap()).unwrap();
    let b = store.add("b", FixedWindow::new(1, 10 * SECOND).unwrap()).unwrap();
    let (on_a, on_b) = (Charge::new(&a, ()), Charge::new(&b, ()));
    assert!(store.check_one(&on_a).unwrap().is_allow());
    let mut tasks = Tasks::on(&clock);
    let both = tasks.start(store.wait(&[on_a, on_b]));
    assert!(store.check_one(&on_b).unwrap().is_allow());
    let only_b = tasks.start(store.wait(&[on_b]));
    tasks.pass(Duration::from_millis(950));
    tasks.start(store.wait(&[on_b]).up_to(SECOND));
    assert!(tasks.done.pop().unwrap().2.is_err(), "judged by one in front");
    tasks.pass(Duration::from_millis(50));
    let newcomer = tasks.start(store.wait(&[on_b]).up_to(20 * SECOND));
    assert_eq!(tasks.running(), [both, only_b]);
    let refused = tasks.done.pop().unwrap();
    assert_eq!(refused.0, newcomer);
    let refused = refused.2.unwrap_err();
    assert_eq!(
        refused.refused().unwrap().retry_after(),
        Some(9 * SECOND),
        "two go before it, at 10 and 20 s"
    );
}

#[test]
fn a_debt_counts_at_once() {
    let (limiter, clock) = limiter(log(10));
    let turn = limiter.reserve(1, SECOND).unwrap();
    assert!(limiter.check_n(9).is_allow());
    let mut tasks = Tasks::on(&clock);
    tasks.start(limiter.wait().cost(10));
    tasks.pass(SECOND / 2);
    let refused = limiter.wait().up_to(SECOND).blocking().unwrap_err();
    assert_eq!(refused.retry_after(), Some(SECOND / 2), "the large one goes at 1 s, and this one at 2 s");
    turn.settle(11);
    assert!(
        !would_be_in_time(&limiter, 1, 2 * SECOND - Duration::from_nanos(1)),
        "the large one goes at 1.5 s"
    );
    assert!(would_be_in_time(&limiter, 1, 2 * SECOND));
}

/// Granted units are spent by those in front, once.
#[test]
fn grants_count_for_whoever_spends_them() {
    let (limiter, clock) = limiter(log(2));
    assert!(limiter.check_n(2).is_allow());
    limiter.grant(1);
    let mut tasks = Tasks::on(&clock);
    // It spends the granted one and one of the two of the next second.
    tasks.start(limiter.wait().cost(2));
    assert!(would_be_in_time(&limiter, 1, SECOND));
    assert!(!would_be_in_time(&limiter, 2, 2 * SECOND - Duration::from_nanos(1)));
    assert!(would_be_in_time(&limiter, 2, 2 * SECOND));

    let (keyed, clock) = keyed(log(2), 10);
    assert!(keyed.check_n("k", 2).is_allow());
    keyed.grant("k", 1);
    let mut tasks = Tasks::on(&clock);
    tasks.start(keyed.wait("k").cost(2));
    for (cost, up_to, in_time) in [(1, SECOND, true), (2, SECOND, false), (2, 2 * SECOND, true)] {
        let mut wait = std::pin::pin!(keyed.wait("k").cost(cost).up_to(up_to));
        assert_eq!(wait.as_mut().poll(&mut by_nobody()).is_pending(), in_time, "{cost} within {up_to:?}");
    }
}

/// It would have been in time; then there was a ban, and it does not sleep through that in vain.
#[test]
fn the_first_is_refused_as_soon_as_it_cannot_be_in_time() {
    let (limiter, clock) = one_a_second();
    let mut tasks = Tasks::on(&clock);
    let first = tasks.start(limiter.wait().up_to(2 * SECOND));
    assert!(tasks.is_running(first));
    limiter.ban(10 * SECOND);
    tasks.run();
    let (_, at, refused) = tasks.done.pop().expect("told at once");
    assert_eq!(at, clock.now());
    assert_eq!(refused.unwrap_err().reason(), Reason::Late { retry_after: 8 * SECOND });
}

#[test]
fn a_ban_of_a_key_counts() {
    for limit in
        [tollgate::Limit::from(log(1)), bucket(1, 1).into(), FixedWindow::new(1, SECOND).unwrap().into()]
    {
        let (keyed, clock) = keyed(limit.clone(), 10);
        keyed.ban("k", 10 * SECOND);
        let mut tasks = Tasks::on(&clock);
        tasks.start(keyed.wait("k").up_to(9 * SECOND));
        let (_, _, refused) = tasks.done.pop().expect("told at once");
        assert_eq!(refused.unwrap_err().reason(), Reason::Late { retry_after: SECOND }, "{limit:?}");
        tasks.start(keyed.wait("k").up_to(10 * SECOND));
        tasks.finish();
        assert!(tasks.done[0].2.is_ok(), "{limit:?}");
        assert_eq!(tasks.millis(), [10_000], "{limit:?}");
    }
}
