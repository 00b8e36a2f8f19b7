//! Waiting, on a clock moved by hand: who goes when, who is told no at once, and what is left when somebody gives up.

use crate::{
    by_hand::{self, SECOND, bucket, limiter, log, rates},
    tasks::Tasks,
};
use std::time::Duration;
use tollgate::{
    Bounds, Clock, Concurrency, Delay, FixedWindow, KeyedLimiter, LeakyBucket, Limit, Limiter, ManualClock,
    Passed, Rate, Reason, Refused, SlidingLog, TokenBucket,
};

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
        let (twin, twin_clock) = by_hand::limiter(limit.clone());
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
    let (limiter, clock) = limiter(log(1));
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
        (log(10).into(), 1_000, 2_000),
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
    let (limiter, clock) = limiter(log(10));
    assert!(limiter.check_n(8).is_allow());
    let mut tasks = Tasks::on(&clock);
    let large = tasks.start(limiter.wait().cost(10));
    let small = tasks.start(limiter.wait());
    assert!(tasks.is_running(small), "there is room for it, but it came second");
    tasks.abort(large);
    assert_eq!(tasks.order(), [small]);
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
fn threads_wait_by_the_same_clock() {
    let (limiter, clock) = limiter(log(1));
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

/// Ten thousand wait; each is polled when it comes, when it is first in line and when it goes, and no oftener.
#[test]
fn ten_thousand_waiters_go_in_order_and_sleep_meanwhile() {
    for (limit, polls) in [
        (Limit::from(TokenBucket::new(Rate::per_second(1_000).unwrap(), 1).unwrap()), 2.0),
        (SlidingLog::new(100, SECOND / 10).unwrap().into(), 2.1),
        (FixedWindow::new(100, SECOND / 10).unwrap().into(), 2.1),
    ] {
        let clock = ManualClock::new();
        let limiter = Limiter::with_clock(limit.clone(), clock.clone());
        let mut tasks: Tasks<'_, Result<Passed, Refused>> = Tasks::on(&clock);
        let patience = Duration::from_secs(10);
        tasks.start_all((0..10_000).map(|_| limiter.wait().up_to(patience)));
        let before = tasks.polls;
        tasks.pass(Duration::from_nanos(1));
        assert_eq!(tasks.polls, before, "{limit:?}: nobody stirs while nothing happens");
        tasks.finish();
        assert!(tasks.done.iter().all(|(_, _, result)| result.is_ok()), "{limit:?}");
        assert_eq!(tasks.order(), (0..10_000).collect::<Vec<_>>(), "{limit:?}");
        assert!(tasks.polls as f64 <= 10_000.0 * polls, "{limit:?}: {} polls", tasks.polls);
    }
}
