//! Turns booked in Redis: reserved, waited for, given back.

use crate::{crowd::join_all, server::server};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use testkit::eventually_async;
use tollgate::{
    Charge, Concurrency, DecidedBy, Decision, Enter, Entered, FixedWindow, Held, Limit, ManualClock,
    OnFailure, Rate, SmoothWarmingUp, Store, TokenBucket, WaitError,
};
use tollgate_redis::RedisStore;

const SECOND: Duration = Duration::from_secs(1);

fn five_a_second() -> TokenBucket {
    TokenBucket::new(Rate::per_second(5).expect("a rate"), 5).expect("a limit")
}

async fn remaining<S: Store>(store: &S, limit: &S::Limit) -> u32 {
    let peeked = store.peek(&[Charge::new(limit, "k").cost(0)]).await.expect("an answer");
    peeked.statuses()[0].remaining()
}

/// The vector of the distributed bucket: a full bucket of five, half a second of patience, ten at once.
#[test]
fn turns_queue_behind_one_another_each_within_its_own_patience() {
    server().block_on(async {
        let store = server().store_at(ManualClock::new());
        let limit = store.add("bucket", five_a_second()).expect("a limit");
        let mut waits = Vec::new();
        let mut refused = 0;
        let mut turns = Vec::new();
        for _ in 0..10 {
            match store.reserve(&[Charge::new(&limit, "k")], Duration::from_millis(500)).await {
                Ok(turn) => {
                    waits.push(turn.due_in().as_micros());
                    turns.push(turn);
                }
                Err(WaitError::Refused(_)) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(waits, [0, 0, 0, 0, 0, 200_000, 400_000]);
        assert_eq!(refused, 3);
    });
}

#[test]
fn a_turn_given_up_leaves_the_bucket_as_if_it_had_not_come() {
    server().block_on(async {
        let clock = ManualClock::new();
        let store = server().store_at(clock.clone());
        let limit = store.add("bucket", five_a_second()).expect("a limit");
        let charge = |cost| [Charge::new(&limit, "k").cost(cost)];
        let turn = store.reserve(&charge(5), SECOND).await.expect("a turn");
        turn.keep();
        let turn = store.reserve(&charge(3), SECOND).await.expect("a turn");
        assert_eq!(turn.due_in(), Duration::from_millis(600));
        clock.advance(Duration::from_millis(200));
        turn.cancel().await.expect("an answer");
        assert_eq!(remaining(&store, &limit).await, 1);

        // Dropped is given back too, only nobody waits for it.
        let turn = store.reserve(&charge(4), SECOND).await.expect("a turn");
        assert_eq!(remaining(&store, &limit).await, 0);
        drop(turn);
        eventually_remains(&store, &limit, 1).await;

        // Once it is due it is spent.
        let turn = store.reserve(&charge(2), SECOND).await.expect("a turn");
        clock.advance(SECOND);
        assert!(turn.is_due());
        turn.cancel().await.expect("an answer");
        assert_eq!(remaining(&store, &limit).await, 4);
    });
}

async fn eventually_remains(store: &RedisStore, limit: &tollgate_redis::RedisLimit, units: u32) {
    let began = Instant::now();
    while remaining(store, limit).await != units {
        assert!(began.elapsed() < Duration::from_secs(10), "it was never given back");
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_turn_is_settled_at_its_real_cost() {
    server().block_on(async {
        let store = server().store_at(ManualClock::new());
        let limit = store.add("bucket", five_a_second()).expect("a limit");
        let charge = [Charge::new(&limit, "k").cost(3)];
        let turn = store.reserve(&charge, SECOND).await.expect("a turn");
        turn.settle_each(&[1]).await.expect("an answer");
        assert_eq!(remaining(&store, &limit).await, 4);
        let turn = store.reserve(&charge, SECOND).await.expect("a turn");
        turn.settle_each(&[9]).await.expect("an answer");
        let told = store.peek(&[Charge::new(&limit, "k")]).await.expect("an answer");
        // Ten are used of five: six must come before the next can pass.
        assert_eq!(told.retry_after(), Some(Duration::from_millis(1_200)));
    });
}

#[test]
fn nothing_taken_before_a_reset_comes_back_after_it() {
    server().block_on(async {
        let clock = ManualClock::new();
        let store = server().store_at(clock.clone());
        let limit = store.add("bucket", five_a_second()).expect("a limit");
        let charge = |cost| [Charge::new(&limit, "k").cost(cost)];
        let turn = store.reserve(&charge(5), SECOND).await.expect("a turn");
        let later = store.reserve(&charge(2), SECOND).await.expect("a turn");
        clock.advance(Duration::from_micros(1));
        store.reset(&limit, "k").await.expect("an answer");
        assert!(store.check(&charge(4)).await.expect("an answer").is_allow());
        later.cancel().await.expect("an answer");
        drop(turn);
        assert_eq!(remaining(&store, &limit).await, 1);
    });
}

#[test]
fn a_cold_fleet_warms_up_together() {
    server().block_on(async {
        let store = server().store_at(ManualClock::new());
        let numbers = SmoothWarmingUp::new(Rate::per_second(5).expect("a rate"), SECOND).expect("a limit");
        let limit = store.add("warming", numbers).expect("a limit");
        let mut dues = Vec::new();
        for _ in 0..4 {
            let turn = store.reserve(&[Charge::new(&limit, "k")], Duration::MAX).await.expect("a turn");
            dues.push(turn.due_in().as_micros());
            turn.keep();
        }
        assert_eq!(dues, [0, 520_000, 880_000, 1_100_000]);
    });
}

#[test]
fn whoever_waits_goes_when_its_turn_comes() {
    server().block_on(async {
        let store = server().store();
        let limits: [Limit; 2] = [
            TokenBucket::new(Rate::per_second(20).expect("a rate"), 1).expect("a limit").into(),
            FixedWindow::new(1, Duration::from_millis(50)).expect("a limit").into(),
        ];
        for (name, numbers) in ["books", "does not"].into_iter().zip(limits) {
            let limit = store.add(name, numbers).expect("a limit");
            let charge = [Charge::new(&limit, "k")];
            let began = Instant::now();
            let waiters = (0..5).map(|_| store.wait(&charge).up_to(Duration::from_secs(20)));
            let all: Vec<_> = join_all(waiters.collect()).await;
            assert!(all.iter().all(Result::is_ok), "{name}: {all:?}");
            assert!(began.elapsed() >= Duration::from_millis(150), "{name}: {:?}", began.elapsed());
            let late = store.wait(&charge).up_to(Duration::from_micros(10)).await;
            assert!(matches!(late, Err(WaitError::Refused(_))), "{name}: {late:?}");
        }
    });
}

#[test]
fn slots_of_a_fleet_come_back_and_are_renewed_while_held() {
    server().block_on(async {
        let store = server().store();
        let hold = Duration::from_millis(300);
        let limit = store.add("slots", Concurrency::new(1, hold).expect("a limit")).expect("a limit");
        let charge = [Charge::new(&limit, "k")];
        let permit = store.enter(&charge).up_to(Duration::ZERO).await.expect("a slot");
        // Held for three times as long as it would last by itself.
        tokio::time::sleep(hold * 3).await;
        assert!(permit.is_held());
        assert!(store.check(&charge).await.expect("an answer").is_deny());
        let other = {
            let (store, limit) = (store.clone(), limit.clone());
            tokio::spawn(async move {
                store.enter(&[Charge::new(&limit, "k")]).up_to(Duration::from_secs(20)).await
            })
        };
        let is_standing = || async { (store.health().waiting == 1).then_some(()) };
        eventually_async("the other to stand in the queue", is_standing).await;
        drop(permit);
        let permit = other.await.expect("a task").expect("the slot");
        assert_eq!(permit.leave().await.expect("an answer"), 1);

        // What nobody renews comes back by time.
        let told = store.check(&charge).await.expect("an answer");
        assert_eq!(told.decision(), Decision::Allow);
        let lost = store.enter(&charge).up_to(Duration::from_secs(20)).await.expect("the slot, by time");
        drop(lost);
    });
}

#[test]
fn a_permit_that_is_kept_is_in_other_hands() {
    server().block_on(kept_permits());
}

async fn kept_permits() {
    let store = Arc::new(server().store());
    let hold = Duration::from_millis(600);
    let slots = store.add("kept", Concurrency::new(1, hold).expect("a limit")).expect("a limit");
    let set = [Charge::new(&slots, "k")];
    let Entered::In(permit) = Enter::enter(&store, &set).await.expect("an answer") else { panic!("free") };
    let kept = permit.keep().expect("a name");
    assert!(Store::renew(&*store, &set, kept).await.expect("an answer"), "held on, by name");
    assert_eq!(Store::leave(&*store, &set, kept).await.expect("an answer"), 1);

    // Nothing renews it in the background any more.
    let Entered::In(permit) = Enter::enter(&store, &set).await.expect("an answer") else { panic!("free") };
    let lost = permit.keep().expect("a name");
    tokio::time::sleep(2 * hold).await;
    assert!(!Store::renew(&*store, &set, lost).await.expect("an answer"));
    assert_eq!(remaining(&*store, &slots).await, 1);
}

/// A port nobody listens on.
fn nowhere() -> String {
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its number").port();
    format!("redis://127.0.0.1:{port}")
}

#[test]
fn who_enters_without_redis_is_decided_by_each_limits_policy() {
    server().block_on(enter_without_redis());
}

async fn enter_without_redis() {
    let store = Arc::new(RedisStore::builder(&nowhere()).nodes(2).open().expect("an address"));
    let slots = Concurrency::new(2, Duration::from_secs(5)).expect("a limit").with_queue(10);
    let slots = store.add("slots", slots).expect("a limit");
    // Half of two slots is one.
    let Entered::In(held) = Enter::enter(&store, &[Charge::new(&slots, "k")]).await.expect("an answer")
    else {
        panic!("the node's own slot is free")
    };
    assert_eq!(held.statuses()[0].decided_by(), DecidedBy::Failure(OnFailure::Local));
    let refused = Enter::enter(&store, &[Charge::new(&slots, "k")]).await.expect("an answer");
    assert!(matches!(refused, Entered::Refused(refused) if refused.status().is_deny()));
    let waiting = tokio::spawn({
        let (store, slots) = (Arc::clone(&store), slots.clone());
        async move { Enter::enter(&store, &[Charge::new(&slots, "k").up_to(Duration::from_secs(5))]).await }
    });
    // Should it not wait by then, it has not waited below.
    tokio::time::sleep(Duration::from_millis(20)).await;
    drop(held);
    let Entered::In(second) = waiting.await.expect("no panic").expect("an answer") else {
        panic!("the slot came back")
    };
    assert!(second.waited() > Duration::ZERO);

    let open = store.when_failing(&slots, OnFailure::Open);
    let passed = Enter::enter(&store, &[Charge::new(&open, "k")]).await.expect("an answer");
    assert!(matches!(passed, Entered::In(_)), "open: no slot is needed");
    let closed = store.when_failing(&slots, OnFailure::Closed);
    let refused = Enter::enter(&store, &[Charge::new(&open, "k"), Charge::new(&closed, "k")]).await;
    let Entered::Refused(refused) = refused.expect("an answer") else { panic!("closed refuses") };
    assert_eq!(refused.denied_by(), 1);
}

#[test]
fn each_charge_of_an_entering_set_waits_as_long_as_it_may_and_no_longer() {
    server().block_on(enter_in_time());
}

async fn enter_in_time() {
    let store = Arc::new(server().store());
    let slots =
        store.add("slots", Concurrency::new(1, Duration::from_secs(5)).expect("a limit")).expect("a limit");
    let rate = TokenBucket::new(Rate::per_second(10).expect("a rate"), 1).expect("a limit");
    let rate = store.add("rate", rate).expect("a limit");
    let set = [Charge::new(&rate, "k").up_to(Duration::from_secs(5)), Charge::new(&slots, "k")];
    let Entered::In(held) = Enter::enter(&store, &set).await.expect("an answer") else {
        panic!("all is free")
    };
    // The rate may be waited for, the slot may not.
    let begun = Instant::now();
    let Entered::Refused(refused) = Enter::enter(&store, &set).await.expect("an answer") else {
        panic!("taken")
    };
    assert_eq!(refused.denied_by(), 1);
    assert!(begun.elapsed() < Duration::from_secs(1), "refused at once");
    drop(held);
    let patient = [set[0], set[1].up_to(Duration::from_secs(5))];
    let Entered::In(held) = Enter::enter(&store, &patient).await.expect("an answer") else {
        panic!("free again")
    };
    assert!(held.waited() > Duration::ZERO, "a token was to come first");
}

/// A set is charged when it is released: while it waits for one of its limits it holds no slot of another.
#[test]
fn a_set_that_waits_for_its_pace_holds_no_slot() {
    server().block_on(async {
        let store = server().builder().prefix("tg-line").open().expect("a store");
        let slots = store.add("slots", Concurrency::new(1, 600 * SECOND).expect("a limit")).expect("a limit");
        let pace = TokenBucket::new(Rate::per_minute(1).expect("a rate"), 1).expect("a limit");
        let pace = store.add("pace", pace).expect("a limit");
        assert!(store.check(&[Charge::new(&pace, "k")]).await.expect("an answer").is_allow());
        let both = [Charge::new(&slots, "k"), Charge::new(&pace, "k")];
        let mut first = std::pin::pin!(store.enter(&both).up_to(120 * SECOND));
        assert!(tokio::time::timeout(SECOND / 5, first.as_mut()).await.is_err(), "a turn before its time");
        let alone = store.enter(&[Charge::new(&slots, "k")]).up_to(Duration::ZERO).await;
        alone.expect("the slot that nobody holds").leave().await.expect("an answer");
    });
}
