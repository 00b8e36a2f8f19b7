//! Waiting, on a clock moved by hand: who goes when, who is told no at once, and what is left when somebody gives up.

use crate::{limits::per, tasks::Tasks};
use std::{future::Future, time::Duration};
use tollgate::{
    Bounds, Charge, Clock, Concurrency, Decision, Delay, FixedWindow, KeyedLimiter, LeakyBucket, Limit,
    Limiter, ManualClock, MemoryStore, Passed, Rate, Reason, Refill, Refused, SlidingCounter, SlidingLog,
    SlidingWindow, SmoothBursty, SmoothWarmingUp, Status, TokenBucket, WaitError,
};

const SECOND: Duration = Duration::from_secs(1);

fn bucket(per_second: u32, burst: u32) -> TokenBucket {
    TokenBucket::new(Rate::per_second(per_second).unwrap(), burst).unwrap()
}

fn limiter(limit: impl Into<Limit>) -> (Limiter<ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    (Limiter::with_clock(limit, clock.clone()), clock)
}

fn store() -> (MemoryStore<ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    (MemoryStore::with_clock(Bounds { max_keys: 100, ..Bounds::default() }, clock.clone()), clock)
}

/// Everything that can be waited for but slots in flight, each with room for three at once and then one or three a second.
fn rates() -> Vec<Limit> {
    let rate = Rate::per_second(3).unwrap();
    vec![
        bucket(3, 3).into(),
        bucket(3, 3).with_refill(Refill::Interval).into(),
        // Two words of state.
        TokenBucket::new(per(1_000_000_007, Duration::from_nanos(333_333_335_666_666_669)), 3)
            .unwrap()
            .into(),
        LeakyBucket::new(rate, 3).unwrap().into(),
        LeakyBucket::new(rate, 3).unwrap().with_delay(Delay::After(1)).unwrap().into(),
        // A rate whose interval is whole microseconds: nothing is lost to truncation.
        SmoothBursty::new(Rate::per_second(4).unwrap()).into(),
        SmoothWarmingUp::new(Rate::per_second(4).unwrap(), SECOND).unwrap().into(),
        FixedWindow::new(3, SECOND).unwrap().into(),
        FixedWindow::new(3, SECOND).unwrap().with_align(tollgate::Align::FirstHit).into(),
        SlidingLog::new(3, SECOND).unwrap().into(),
        SlidingWindow::new(3, SECOND, SECOND / 10).unwrap().into(),
        SlidingCounter::new(3, SECOND).unwrap().into(),
    ]
}

#[test]
fn each_sleeps_until_its_own_turn_and_is_woken_once() {
    let (limiter, clock) = limiter(bucket(10, 1));
    let mut tasks = Tasks::on(&clock);
    for _ in 0..5 {
        tasks.start(limiter.wait());
    }
    tasks.finish();
    assert_eq!(tasks.order(), [0, 1, 2, 3, 4]);
    assert_eq!(tasks.millis(), [0, 100, 200, 300, 400]);
    assert_eq!(tasks.polls, 1 + 4 * 2, "the first did not sleep, the others slept once");
}

#[test]
fn turns_come_in_the_order_of_arrival_at_every_limit() {
    for limit in rates() {
        let (limiter, clock) = limiter(limit.clone());
        let mut tasks = Tasks::on(&clock);
        for _ in 0..50 {
            tasks.start(limiter.wait());
        }
        tasks.finish();
        assert_eq!(tasks.order(), (0..50).collect::<Vec<_>>(), "{limit:?}");
        assert!(tasks.done.iter().all(|(_, _, result)| result.is_ok()), "{limit:?}");
        assert!(tasks.polls <= 50 * 5, "{} polls for 50 waiters of {limit:?}", tasks.polls);
        assert!(limiter.clock().next_sleeper().is_none());
    }
}

#[test]
fn waiters_of_different_keys_do_not_wait_for_each_other() {
    for limit in rates() {
        let clock = ManualClock::new();
        let keyed = KeyedLimiter::with_clock(
            limit.clone(),
            Bounds { max_keys: 9, ..Bounds::default() },
            clock.clone(),
        );
        let (alone, other) = limiter(limit.clone());
        let (mut together, mut by_itself) = (Tasks::on(&clock), Tasks::on(&other));
        for round in 0..20 {
            together.start(keyed.wait("alice"));
            together.start(keyed.wait("bob").cost(1 + round % 2));
            by_itself.start(alone.wait());
        }
        together.finish();
        by_itself.finish();
        let alice: Vec<_> =
            together.done.iter().filter(|(task, ..)| task % 2 == 0).map(|(_, at, _)| *at).collect();
        let expected: Vec<_> = by_itself.done.iter().map(|(_, at, _)| *at).collect();
        assert_eq!(alice, expected, "{limit:?}");
    }
}

#[test]
fn a_wait_that_cannot_be_in_time_is_refused_at_once_and_costs_nothing() {
    for limit in rates() {
        let (limiter, clock) = limiter(limit.clone());
        let mut tasks = Tasks::on(&clock);
        for _ in 0..10 {
            tasks.start(limiter.wait());
        }
        // When the eleventh would go, from a twin.
        let started = clock.now();
        let mut twins = Tasks::on(&clock);
        let before = limiter.peek(1);
        let refused = {
            twins.start(limiter.wait().up_to(Duration::from_millis(1)));
            twins.done.pop().expect("answered at once").2.expect_err("not in a millisecond")
        };
        let Reason::Late { retry_after } = refused.reason() else { panic!("{limit:?}: {refused}") };
        assert_eq!(limiter.peek(1), before, "{limit:?}: a refused wait left something");
        assert_eq!(clock.now(), started);

        // Exactly in time is in time; a microsecond less is not.
        let enough = retry_after + Duration::from_millis(1);
        twins.start(limiter.wait().up_to(enough - Duration::from_micros(1)));
        assert_eq!(twins.done.len(), 1, "{limit:?}: refused at once");
        assert!(twins.done.pop().unwrap().2.is_err());
        let last = twins.start(limiter.wait().up_to(enough));
        assert!(twins.is_running(last), "{limit:?}: in time, so it waits");
        while let Some(next) = clock.next_sleeper() {
            clock.set(next);
            tasks.run();
            twins.run();
        }
        let (_, at, result) = twins.done.pop().expect("it had its turn");
        assert!(result.is_ok(), "{limit:?}: was told it would be in time, and was not");
        assert!(at <= started + enough, "{limit:?}: {at} is after {}", started + enough);
    }
}

#[test]
fn a_dropped_wait_leaves_the_limit_as_if_it_had_never_come() {
    for limit in rates() {
        let (limiter, clock) = limiter(limit.clone());
        let (twin, twin_clock) = self::limiter(limit.clone());
        for (limiter, clock) in [(&limiter, &clock), (&twin, &twin_clock)] {
            for _ in 0..3 {
                clock.advance(Duration::from_millis(10));
                let _ = limiter.check();
            }
        }
        let mut tasks = Tasks::on(&clock);
        let all: Vec<usize> = (0..1_000).map(|task| tasks.start(limiter.wait().cost(1 + task % 3))).collect();
        let waiting: Vec<usize> = all.into_iter().filter(|task| tasks.is_running(*task)).collect();
        // Those who could go at once did.
        for (task, ..) in &tasks.done {
            let _ = twin.check_n(1 + u32::try_from(*task).unwrap() % 3);
        }
        assert!(waiting.len() > 990, "{limit:?}");
        for task in waiting.into_iter().rev() {
            tasks.abort(task);
        }
        assert_eq!(clock.next_sleeper(), None, "{limit:?}: somebody still sleeps");
        for millis in [0, 1, 400, 5_000] {
            clock.advance(Duration::from_millis(millis));
            twin_clock.advance(Duration::from_millis(millis));
            for cost in 0..4 {
                assert_eq!(limiter.peek(cost), twin.peek(cost), "{limit:?}, {cost} after {millis} ms");
            }
        }
    }
}

#[test]
fn who_gives_up_in_the_middle_of_a_line_holds_nobody_up() {
    let (limiter, clock) = limiter(SlidingLog::new(1, SECOND).unwrap());
    let mut tasks = Tasks::on(&clock);
    for _ in 0..5 {
        tasks.start(limiter.wait());
    }
    tasks.abort(1);
    tasks.abort(3);
    tasks.finish();
    assert_eq!(tasks.order(), [0, 2, 4]);
    assert_eq!(tasks.millis(), [0, 1_000, 2_000]);
}

/// A large request in front of small ones goes first, and they wait for it; whoever cannot wait that long is told so.
#[test]
fn a_large_request_goes_before_small_ones_that_came_later() {
    for (limit, large_at, small_at) in [
        (Limit::from(bucket(10, 10)), 1_000, 1_100),
        (SlidingLog::new(10, SECOND).unwrap().into(), 1_000, 2_000),
        (FixedWindow::new(10, SECOND).unwrap().into(), 1_000, 2_000),
    ] {
        let (limiter, clock) = limiter(limit.clone());
        assert!(limiter.check_n(10).is_allow());
        let mut tasks = Tasks::on(&clock);
        let large = tasks.start(limiter.wait().cost(10));
        let small = tasks.start(limiter.wait());
        let hasty = tasks.start(limiter.wait().up_to(Duration::from_millis(small_at - 1)));
        assert_eq!(tasks.order(), [hasty], "{limit:?}: told at once that the large one goes first");
        tasks.finish();
        assert_eq!(tasks.order(), [hasty, large, small], "{limit:?}");
        assert_eq!(tasks.millis()[1..], [large_at, small_at], "{limit:?}");
    }
}

/// When the large one gives up, those behind it in a line go as soon as they can. Booked turns keep their times.
#[test]
fn a_large_request_that_gives_up_lets_the_line_behind_it_go() {
    let (limiter, clock) = limiter(SlidingLog::new(10, SECOND).unwrap());
    assert!(limiter.check_n(8).is_allow());
    let mut tasks = Tasks::on(&clock);
    let large = tasks.start(limiter.wait().cost(10));
    let small = tasks.start(limiter.wait());
    assert!(tasks.is_running(small), "there is room for it, but it came second");
    tasks.abort(large);
    assert_eq!(tasks.order(), [small]);
}

/// Somebody keeps a future and no longer polls it: those behind it go on after a moment, and it keeps its place should it
/// come back.
#[test]
fn a_forgotten_future_does_not_block_everyone() {
    let (limiter, clock) = limiter(SlidingLog::new(1, SECOND).unwrap());
    assert!(limiter.check().is_allow());
    let mut forgotten = std::pin::pin!(limiter.wait());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(forgotten.as_mut().poll(&mut context).is_pending());
    let mut tasks = Tasks::on(&clock);
    for _ in 0..3 {
        tasks.start(limiter.wait());
    }
    tasks.pass(2_500 * SECOND / 1_000);
    assert_eq!(tasks.order(), [0, 1]);
    assert_eq!(tasks.millis(), [1_200, 2_200], "a fifth of a second late, once");
    assert!(forgotten.as_mut().poll(&mut context).is_pending(), "it has missed its turn");
    tasks.pass(Duration::from_millis(700));
    assert!(forgotten.as_mut().poll(&mut context).is_ready(), "and comes before those who came later");
    tasks.finish();
    assert_eq!(tasks.millis()[2], 4_200);
}

#[test]
fn more_than_the_limit_ever_gives_is_refused_at_once() {
    for limit in rates() {
        if matches!(limit, Limit::SmoothBursty(_) | Limit::SmoothWarmingUp(_)) {
            continue; // They lend any amount, and the next one pays.
        }
        let (limiter, clock) = limiter(limit.clone());
        let mut tasks = Tasks::on(&clock);
        tasks.start(limiter.wait().cost(4));
        let (_, _, result) = tasks.done.pop().expect("at once");
        assert_eq!(result.unwrap_err().reason(), Reason::Never { cost: 4, most: 3 }, "{limit:?}");
    }
}

#[test]
fn a_check_does_not_overtake_those_who_wait() {
    for limit in rates() {
        let (limiter, clock) = limiter(limit.clone());
        let mut tasks = Tasks::on(&clock);
        for _ in 0..8 {
            tasks.start(limiter.wait());
        }
        let passed = tasks.done.len();
        let status = limiter.check();
        let Some(retry_after) = status.retry_after() else { continue };
        assert!(status.is_deny());
        assert_eq!(limiter.peek(1), status, "{limit:?}: a peek says the same");
        tasks.pass(retry_after - Duration::from_micros(1));
        assert!(limiter.check().is_deny(), "{limit:?}: a microsecond early is early");
        tasks.pass(Duration::from_micros(1));
        // A queue's own wait is still being slept; its turn is booked.
        let asleep = usize::from(
            matches!(limit, Limit::LeakyBucket(it) if it != LeakyBucket::new(Rate::per_second(3).unwrap(), 3).unwrap()),
        );
        assert_eq!(
            tasks.done.len() + asleep,
            8,
            "{limit:?}: {passed} went at once, the rest before the check"
        );
        assert!(!limiter.check().is_deny(), "{limit:?}: at the time it was told");
    }
}

#[test]
fn a_line_goes_on_when_the_bucket_is_helped_by_hand() {
    let log = || SlidingLog::new(1, SECOND).unwrap();
    for help in ["refund", "reset", "grant", "change", "lift the ban"] {
        let (limiter, clock) = limiter(log());
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
            "change" => limiter.change(SlidingLog::new(2, SECOND).unwrap()),
            _ => limiter.ban(Duration::ZERO),
        }
        tasks.run();
        assert_eq!(tasks.order(), [waits], "after {help}");
        assert_eq!(clock.now(), tollgate::Time::ZERO);
    }
}

#[test]
fn a_ban_is_waited_out() {
    let (limiter, clock) = limiter(bucket(1, 1));
    limiter.ban(10 * SECOND);
    let mut tasks = Tasks::on(&clock);
    tasks.start(limiter.wait().up_to(9 * SECOND));
    assert!(tasks.done[0].2.is_err(), "refused at once");
    tasks.start(limiter.wait().up_to(10 * SECOND));
    tasks.finish();
    assert_eq!(tasks.millis()[1], 10_000);
}

#[test]
fn a_leaky_bucket_that_is_full_has_a_line() {
    let limit =
        LeakyBucket::new(Rate::per_second(10).unwrap(), 3).unwrap().with_delay(Delay::After(1)).unwrap();
    let (limiter, clock) = limiter(limit);
    let mut tasks = Tasks::on(&clock);
    for _ in 0..6 {
        tasks.start(limiter.wait());
    }
    assert!(limiter.check().is_deny());
    tasks.finish();
    assert_eq!(tasks.order(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(tasks.millis(), [0, 100, 200, 300, 400, 500]);
}

#[test]
fn a_set_is_charged_when_all_of_it_can_be() {
    let (store, clock) = store();
    let user = store.add(SlidingLog::new(1, SECOND).unwrap()).unwrap();
    let all = store.add(bucket(1, 2)).unwrap();
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
    let user = store.add(SlidingLog::new(1, 60 * SECOND).unwrap()).unwrap();
    let all = store.add(SlidingLog::new(10, SECOND).unwrap()).unwrap();
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
    let a = store.add(FixedWindow::new(1, SECOND).unwrap()).unwrap();
    let b = store.add(FixedWindow::new(1, 2 * SECOND).unwrap()).unwrap();
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
    let quick = store.add(bucket(1, 1)).unwrap();
    let slow = store.add(bucket(1, 1)).unwrap();
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
    let limit = store.add(bucket(1, 3)).unwrap();
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
    let limit = store.add(SlidingLog::new(1, SECOND).unwrap()).unwrap();
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

#[test]
fn a_reservation_comes_back_until_it_is_due() {
    let (limiter, clock) = limiter(bucket(10, 10));
    assert!(limiter.check_n(10).is_allow());
    let turn = limiter.reserve(5, SECOND).unwrap();
    assert_eq!((turn.due_in(), turn.is_due()), (SECOND / 2, false));
    assert!(turn.cancel());
    assert_eq!(limiter.reserve(5, SECOND).unwrap().due_in(), SECOND / 2, "as if it had never come");

    let turn = limiter.reserve(5, SECOND).unwrap();
    clock.advance(SECOND / 2);
    assert!(turn.is_due());
    assert!(!turn.cancel(), "spent");
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
    assert!(held.cancel(), "the slot came back");
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
        let (twin, twin_clock) = self::limiter(limit.clone());
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

    let (limiter, clock) = self::limiter(SlidingLog::new(10, SECOND).unwrap());
    limiter.reserve(10, SECOND).unwrap().settle(35);
    assert!(limiter.check().is_deny());
    clock.advance(SECOND);
    assert!(limiter.check().is_allow());
}

#[test]
fn a_set_is_settled_charge_by_charge() {
    let (store, _clock) = store();
    let tokens = store.add(bucket(1, 1_000)).unwrap();
    let calls = store.add(bucket(1, 10)).unwrap();
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

#[test]
fn threads_wait_by_the_same_clock() {
    let (limiter, clock) = limiter(SlidingLog::new(1, SECOND).unwrap());
    std::thread::scope(|scope| {
        let first = scope.spawn(|| limiter.wait().blocking().is_ok());
        assert!(first.join().unwrap());
        let waits = scope.spawn(|| limiter.wait().up_to(SECOND).blocking().is_ok());
        while clock.next_sleeper().is_none() {
            std::thread::yield_now();
        }
        assert!(!waits.is_finished());
        clock.advance(SECOND);
        assert!(waits.join().unwrap());
    });
}

#[test]
fn a_concurrency_limit_that_nobody_may_wait_for_says_so() {
    let (limiter, clock) = limiter(Concurrency::new(1, SECOND).unwrap());
    let _held = limiter.enter().blocking().unwrap();
    let mut tasks = Tasks::on(&clock);
    tasks.start(limiter.wait());
    let (_, _, refused) = tasks.done.pop().unwrap();
    let refused = refused.unwrap_err();
    assert_eq!(refused.reason(), Reason::QueueFull { queue: 0 });
    assert_eq!(
        refused.to_string(),
        "every slot is held, and the limit lets nobody wait (see Concurrency::with_queue)"
    );
}
