//! Sets that wait: all of it is charged or nothing, in one line at a time, at the place of its arrival.

use crate::{
    by_hand::{SECOND, bucket, log, store},
    tasks::Tasks,
};
use std::{sync::Arc, time::Duration};
use tollgate::{
    Align, Charge, Decision, Delay, Enter, Entered, FixedWindow, LeakyBucket, Rate, SlidingLog, Status, Time,
    WaitError,
};

#[test]
fn a_set_is_charged_when_all_of_it_can_be() {
    let (store, clock) = store();
    let user = store.add("user", log(1)).unwrap();
    let all = store.add("all", bucket(1, 2)).unwrap();
    let charges = [Charge::new(&user, "alice"), Charge::new(&all, ())];
    let mut tasks = Tasks::on(&clock);
    for _ in 0..4 {
        tasks.start(store.wait(&charges));
    }
    tasks.finish();
    assert_eq!(tasks.order(), [0, 1, 2, 3]);
    // The log alone would let them go at 0, 1, 2, 3; so would the bucket, which had one to spare.
    assert_eq!(tasks.millis(), [0, 1_000, 2_000, 3_000]);
    let status = tasks.done.pop().unwrap().2.unwrap();
    assert!(status.statuses().len() == 2 && status.statuses().iter().all(Status::is_allow));
    assert_eq!(status.waited(), 3 * SECOND);
}

/// A set that waits for one user's limit keeps nobody from the limit they share.
#[test]
fn a_set_that_waits_holds_up_nobody_at_its_other_limits() {
    let (store, clock) = store();
    let user = store.add("user", SlidingLog::new(1, 60 * SECOND).unwrap()).unwrap();
    let all = store.add("all", log(10)).unwrap();
    let mut tasks = Tasks::on(&clock);
    let set = |who| [Charge::new(&user, who), Charge::new(&all, ())];
    assert!(store.check(&set("alice")).unwrap().is_allow());
    let alice = tasks.start(store.wait(&set("alice")));
    let others: Vec<usize> =
        ["bob", "carol", "dave"].into_iter().map(|who| tasks.start(store.wait(&set(who)))).collect();
    assert_eq!(tasks.order(), others, "they went at once");
    tasks.finish();
    assert_eq!(tasks.order()[3..], [alice]);
    assert_eq!(tasks.millis()[3], 60_000);
}

/// Whoever comes back to a line from another finds the place its arrival gives it.
#[test]
fn a_set_keeps_its_place_by_arrival_in_every_line() {
    let (store, clock) = store();
    let a = store.add("a", FixedWindow::new(1, SECOND).unwrap()).unwrap();
    let b = store.add("b", FixedWindow::new(1, 2 * SECOND).unwrap()).unwrap();
    let (on_a, on_b) = (Charge::new(&a, ()), Charge::new(&b, ()));
    assert!(store.check(&[on_a, on_b]).unwrap().is_allow());
    let mut tasks = Tasks::on(&clock);
    let both = tasks.start(store.wait(&[on_a, on_b]));
    let only_b = tasks.start(store.wait(&[on_b]));
    tasks.finish();
    assert_eq!(tasks.order(), [both, only_b], "it came first at b as well");
    assert_eq!(tasks.millis(), [2_000, 4_000]);
}

#[test]
fn every_charge_of_a_set_may_say_how_long_it_waits() {
    let (store, clock) = store();
    let quick = store.add("quick", bucket(1, 1)).unwrap();
    let slow = store.add("slow", bucket(1, 1)).unwrap();
    let set = [Charge::new(&quick, ()).up_to(SECOND / 2), Charge::new(&slow, ())];
    let mut tasks = Tasks::on(&clock);
    tasks.start(store.wait(&set));
    tasks.start(store.wait(&set));
    let Some((_, _, Err(WaitError::Refused(refused)))) = tasks.done.pop() else { panic!("refused at once") };
    assert_eq!((refused.denied_by(), refused.retry_after()), (0, Some(SECOND / 2)));
    assert_eq!(refused.statuses().len(), 2);
    assert_eq!(
        refused.to_string(),
        "the turn would come later than the wait allows; try again in 500.000ms (charge 0 of the set)"
    );
    assert_eq!(
        store.peek(&[Charge::new(&slow, ())]).unwrap().retry_after(),
        Some(SECOND),
        "it did not pay twice"
    );
}

#[test]
fn charges_on_one_bucket_wait_as_one() {
    let (store, clock) = store();
    let limit = store.add("limit", bucket(1, 3)).unwrap();
    let set = [Charge::new(&limit, "k"), Charge::new(&limit, "k").cost(2)];
    let mut tasks = Tasks::on(&clock);
    tasks.start(store.wait(&set));
    tasks.start(store.wait(&set));
    tasks.finish();
    assert_eq!(tasks.millis(), [0, 3_000]);
    assert_eq!(tasks.done[1].2.as_ref().unwrap().statuses().len(), 2);
}

#[test]
fn a_limit_that_is_removed_ends_the_wait_for_it() {
    let (store, clock) = store();
    let limit = store.add("limit", log(1)).unwrap();
    let charge = [Charge::new(&limit, "k")];
    assert!(store.check(&charge).unwrap().is_allow());
    let mut tasks = Tasks::on(&clock);
    tasks.start(store.wait(&charge));
    store.remove(&limit).unwrap();
    tasks.run();
    assert!(matches!(tasks.done.pop(), Some((_, _, Err(WaitError::Store(_))))));
    tasks.start(store.wait(&charge));
    assert!(matches!(tasks.done.pop(), Some((_, _, Err(WaitError::Store(_))))));
}

/// Limits with room at different times could send it to and fro for ever: after a few moves it stands in both lines.
#[test]
fn a_set_is_not_starved_by_those_who_want_less() {
    let (store, clock) = store();
    let once_a_second = || FixedWindow::new(1, SECOND).unwrap().with_align(Align::FirstHit);
    let (a, b) = (store.add("limit", once_a_second()).unwrap(), store.add("limit", once_a_second()).unwrap());
    let (on_a, on_b) = (Charge::new(&a, ()), Charge::new(&b, ()));
    assert!(store.check_one(&on_a).unwrap().is_allow());
    clock.advance(SECOND / 2);
    assert!(store.check_one(&on_b).unwrap().is_allow());
    let mut tasks = Tasks::on(&clock);
    let both = tasks.start(store.wait(&[on_a, on_b]));
    for _ in 0..50 {
        tasks.start(store.wait(&[on_a]));
        tasks.start(store.wait(&[on_b]));
    }
    tasks.pass(20 * SECOND);
    assert!(!tasks.is_running(both), "it came first of all and has waited for 20 s");
}

/// First in one line, a set still waits for those before it in another, even where there would be room for it.
#[test]
fn a_set_in_front_of_one_line_overtakes_nobody_in_another() {
    let (store, clock) = store();
    let a = store.add("a", FixedWindow::new(2, SECOND).unwrap()).unwrap();
    let b = store.add("b", FixedWindow::new(10, 10 * SECOND).unwrap()).unwrap();
    let (on_a, on_b) = (Charge::new(&a, ()), Charge::new(&b, ()));
    assert!(store.check(&[on_a.cost(2), on_b.cost(8)]).unwrap().is_allow());
    let mut tasks = Tasks::on(&clock);
    let at_a = tasks.start(store.wait(&[on_a]));
    let large_at_b = tasks.start(store.wait(&[on_b.cost(5)]));
    let both = tasks.start(store.wait(&[on_a, on_b]));
    tasks.pass(SECOND);
    assert_eq!(tasks.order(), [at_a], "there is room for both at b, which the large one came first to");
    tasks.finish();
    assert_eq!(tasks.order(), [at_a, large_at_b, both]);
    assert_eq!(tasks.millis(), [1_000, 10_000, 10_000]);
}

/// Those who came after it do not count when a set that comes from another line is judged.
#[test]
fn a_set_that_changes_lines_is_judged_by_its_own_place() {
    let (store, clock) = store();
    let a = store.add("a", FixedWindow::new(1, SECOND).unwrap()).unwrap();
    let b = store.add("b", FixedWindow::new(1, 10 * SECOND).unwrap()).unwrap();
    let (on_a, on_b) = (Charge::new(&a, ()), Charge::new(&b, ()));
    assert!(store.check(&[on_a]).unwrap().is_allow());
    let mut tasks = Tasks::on(&clock);
    let both = tasks.start(store.wait(&[on_a, on_b]).up_to(10 * SECOND));
    let others: Vec<usize> = (0..3).map(|_| tasks.start(store.wait(&[on_b]))).collect();
    assert_eq!(tasks.order(), others[..1], "it waits for a, and holds up nobody at b");
    tasks.pass(SECOND);
    assert!(tasks.is_running(both), "it stands at b now, in front of the others");
    tasks.finish();
    assert_eq!(tasks.order(), [others[0], both, others[1], others[2]]);
    assert_eq!(tasks.millis(), [0, 10_000, 20_000, 30_000]);
    assert!(tasks.done.iter().all(|(_, _, result)| result.is_ok()));
}

/// Asking for nothing at a limit waits for nobody there.
#[test]
fn a_set_that_asks_for_nothing_at_a_limit_is_not_held_up_there() {
    let (store, clock) = store();
    let (a, b) = (store.add("limit", log(1)).unwrap(), store.add("limit", log(1)).unwrap());
    assert!(store.check_one(&Charge::new(&a, ())).unwrap().is_allow());
    let mut tasks = Tasks::on(&clock);
    let waits = tasks.start(store.wait(&[Charge::new(&a, ())]));
    let goes = tasks.start(store.wait(&[Charge::new(&a, ()).cost(0), Charge::new(&b, ())]));
    assert_eq!(tasks.order(), [goes]);
    assert_eq!(tasks.running(), [waits]);
}

/// What it was told when it was booked was to wait; it has.
#[test]
fn whoever_passed_is_told_that_it_passed() {
    let (store, clock) = store();
    let limit = store.add("limit", bucket(1, 1)).unwrap();
    let set = [Charge::new(&limit, ())];
    let mut tasks = Tasks::on(&clock);
    for _ in 0..2 {
        tasks.start(store.wait(&set));
    }
    tasks.finish();
    let passed = tasks.done.pop().unwrap().2.unwrap();
    assert_eq!(passed.waited(), SECOND);
    assert_eq!(passed.statuses()[0].decision(), Decision::Allow);
}

/// Whoever enters without saying how long fares as in a check: a leaky bucket's pace is waited for, room is not.
#[test]
fn who_enters_waits_for_a_pace_and_not_for_room() {
    for (rate, capacity, delay) in [(1, 3, 1), (7, 5, 2), (999_983, 4, 1), (3, 4, 4)] {
        let limit = LeakyBucket::new(Rate::per_second(rate).unwrap(), capacity).unwrap();
        let limit = limit.with_delay(Delay::After(delay)).unwrap();
        let ((checked, _), (entered, clock)) = (store(), store());
        let (one, other) = (checked.add("limit", limit).unwrap(), entered.add("limit", limit).unwrap());
        let entered = Arc::new(entered);
        let mut tasks = Tasks::on(&clock);
        let mut told = Vec::new();
        for _ in 0..capacity + 2 {
            told.push(checked.check_one(&Charge::new(&one, ())).unwrap().decision());
            tasks.start(async { Enter::enter(&entered, &[Charge::new(&other, ())]).await.unwrap() });
        }
        tasks.finish();
        tasks.done.sort_by_key(|(task, ..)| *task);
        for ((_, at, entered), told) in tasks.done.iter().zip(told) {
            let (is_in, in_so_long) = (matches!(entered, Entered::In(_)), *at - Time::ZERO);
            match told {
                Decision::Allow => assert!(is_in && in_so_long.is_zero()),
                // A hint is rounded up to a microsecond, sleep is not.
                Decision::Wait(wait) => assert!(is_in && wait - in_so_long < Duration::from_micros(1)),
                _ => assert!(!is_in && in_so_long.is_zero(), "refused after {in_so_long:?}"),
            }
        }
        assert_eq!(
            tasks.done.iter().filter(|(.., it)| matches!(it, Entered::In(_))).count(),
            capacity as usize
        );
    }
}
