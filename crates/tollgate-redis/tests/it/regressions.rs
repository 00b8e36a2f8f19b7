//! What broke once: each test tells the story of its bug.

use crate::server::server;
use std::{future::poll_fn, pin::pin, sync::mpsc, task::Poll, time::Duration};
use testkit::{RedisServer, eventually_async};
use tokio::runtime::{Builder, Runtime};
use tollgate::{
    Calendar, Charge, DecidedBy, FixedWindow, ManualClock, Rate, Refill, StoreError, TokenBucket, Unit,
};
use tollgate_redis::{HealthState, RedisStore};

fn bucket(rate: u32, burst: u32) -> TokenBucket {
    TokenBucket::new(Rate::per_second(rate).expect("a rate"), burst).expect("a limit")
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// A thread had leased units in hand when their lease was settled: the server drained them as used, and then they were used.
#[test]
fn what_a_thread_has_in_hand_ends_with_its_lease() {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(1_000));
    let builder = server().builder().clock(clock.clone());
    let exact = builder.clone().open().expect("a store");
    let leased = builder.lease(Duration::from_secs(5)).open().expect("a store");
    let of_all = exact.add("l", bucket(100_000, 100_000)).expect("a limit");
    let here = leased.add("l", bucket(100_000, 100_000)).expect("a limit");
    server().block_on(async {
        for place in 0..40_000 {
            let told = leased.check(&[Charge::new(&here, "k")]).await.expect("an answer");
            assert!(told.is_allow());
            if place % 10 == 0 {
                clock.advance(Duration::from_micros(100));
                tokio::task::yield_now().await;
            }
        }
    });
    let (ask, asked) = mpsc::channel::<u32>();
    let (tell, told) = mpsc::channel::<u32>();
    let other = std::thread::spawn({
        let (store, limit) = (leased.clone(), here.clone());
        move || {
            for count in asked {
                tell.send(by_lease(&store, &limit, count)).expect("somebody listens");
            }
        }
    });
    ask.send(1).expect("a thread");
    told.recv().expect("an answer");
    for _ in 0..43 {
        clock.advance(Duration::from_millis(100));
        // At its pace, as time that passes: what is asked in the background has its share of it.
        std::thread::sleep(Duration::from_millis(5));
    }
    // At one instant all nodes together have no more than the burst.
    let left = server().block_on(exact.peek(&[Charge::new(&of_all, "k").cost(0)])).expect("an answer");
    let left = left.statuses()[0].remaining();
    let taken = server().block_on(exact.check(&[Charge::new(&of_all, "k").cost(left)])).expect("an answer");
    assert!(taken.is_allow());
    ask.send(200_000).expect("a thread");
    let in_all = left + told.recv().expect("an answer") + by_lease(&leased, &here, 200_000);
    drop(ask);
    other.join().expect("a thread");
    assert!(in_all <= 100_000, "{in_all} of 100000");
}

/// How many units pass by lease, one after the other.
fn by_lease(store: &RedisStore, limit: &tollgate_redis::RedisLimit, most: u32) -> u32 {
    let passes = || {
        let told = server().block_on(store.check(&[Charge::new(limit, "k")])).expect("an answer");
        told.is_allow() && told.statuses()[0].decided_by() == DecidedBy::Lease
    };
    (0..most).take_while(|_| passes()).count() as u32
}

/// A call that ended with its runtime left its lane taken, and everybody after it waited in vain.
#[test]
fn a_runtime_that_ends_takes_no_lane_with_it() {
    let redis = RedisServer::start();
    let store = RedisStore::builder(&redis.url()).errors_on_failure().timeout(Duration::from_secs(1)).open();
    let store = store.expect("a store");
    let limit = store.add("l", bucket(1, 10)).expect("a limit");
    let first = runtime();
    let charge = [Charge::new(&limit, "k")];
    assert!(first.block_on(store.check(&charge)).is_ok());
    redis.pause();
    first.block_on(async {
        let _ = tokio::time::timeout(Duration::from_millis(20), store.check(&charge)).await;
    });
    drop(first);
    redis.resume();
    let second = runtime();
    second.block_on(async {
        // The first may still meet the connection that ended with the runtime.
        let _ = eventually_async("an answer", || async { store.check(&charge).await.ok() }).await;
    });
}

/// A check that was answered and dropped before anybody looked stayed charged.
#[test]
fn an_answer_that_nobody_heard_is_taken_back() {
    server().block_on(async {
        let store = server().store_at(ManualClock::new());
        let limit = store.add("l", bucket(1, 10)).expect("a limit");
        let charge = [Charge::new(&limit, "k").cost(5)];
        let remains = async |units: u32| {
            let peeked = store.peek(&[Charge::new(&limit, "k").cost(0)]).await.expect("an answer");
            (peeked.statuses()[0].remaining() == units).then_some(())
        };
        // Connected by then, so that one poll sends the check.
        eventually_async("a full bucket", || async { remains(10).await }).await;
        {
            let mut check = pin!(store.check(&charge));
            poll_fn(|context| {
                assert!(check.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            // Answers on one connection come in order: this check is answered before the look that sees it.
            eventually_async("the charge", || async { remains(5).await }).await;
        }
        eventually_async("the charge to be taken back", || async { remains(10).await }).await;
    });
}

/// Leases were carried over to a kind that knows none, and the script failed for everybody in the call.
#[test]
fn a_leased_bucket_may_begin_to_refill_by_interval() {
    server().block_on(async {
        let store = server().builder().errors_on_failure().lease(Duration::from_millis(500)).open();
        let store = store.expect("a store");
        let limit = store.add("l", bucket(10_000, 10_000)).expect("a limit");
        for _ in 0..2_000 {
            let told = store.check(&[Charge::new(&limit, "k")]).await.expect("an answer");
            assert!(told.is_allow());
        }
        store.change(&limit, bucket(10_000, 10_000).with_refill(Refill::Interval)).expect("a change");
        for _ in 0..10 {
            let told = store.check(&[Charge::new(&limit, "k")]).await;
            assert!(told.is_ok(), "{told:?}");
        }
    });
}

/// An older node that knew no calendar wiped what a newer one had counted by it, and the other way round: nothing was limited.
#[test]
fn numbers_that_an_older_node_cannot_follow_are_not_its_to_undo() {
    server().block_on(async {
        let builder = server().builder();
        let (old, new) = (builder.clone().open().expect("a store"), builder.open().expect("a store"));
        let day = Calendar::new(Unit::Day, "UTC").expect("a zone");
        let by_hour = FixedWindow::new(5, Duration::from_secs(3_600)).expect("a limit");
        let older = old.add_generation("l", by_hour, 1).expect("a limit");
        let by_day = FixedWindow::calendar(5, day).expect("a limit");
        let newer = new.add_generation("l", by_day, 2).expect("a limit");
        let mut passed = 0;
        for _ in 0..20 {
            let told = new.check(&[Charge::new(&newer, "k")]).await.expect("an answer");
            passed += u32::from(told.is_allow());
            let told = old.check(&[Charge::new(&older, "k")]).await;
            assert!(matches!(told, Err(StoreError::TooNew { .. })), "{told:?}");
        }
        assert_eq!(passed, 5);
    });
}

/// Callers with less patience than the store never reported a failure, so that a dead server was asked for good.
#[test]
fn impatient_callers_are_heard_too() {
    let redis = RedisServer::start();
    server().block_on(async {
        let store =
            RedisStore::builder(&redis.url()).timeout(Duration::from_millis(50)).open().expect("a store");
        let limit = store.add("l", bucket(1, 10)).expect("a limit");
        let _ = store.check(&[Charge::new(&limit, "k")]).await;
        redis.pause();
        let mut in_vain = 0;
        for _ in 0..40 {
            let charge = [Charge::new(&limit, "k")];
            let check = store.check(&charge);
            in_vain += u32::from(tokio::time::timeout(Duration::from_millis(40), check).await.is_err());
        }
        assert!(in_vain < 20, "{in_vain} of 40");
        assert_eq!(store.health().state, HealthState::Degraded);
        redis.resume();
    });
}

#[test]
fn what_cannot_be_is_refused_when_it_is_said() {
    server().block_on(async {
        let store = server().store();
        let window = FixedWindow::new(2, Duration::from_secs(3_600)).expect("a limit");
        // A time in nanoseconds is no generation: a script counts to 2^53.
        let late = store.add_generation("l", window.clone(), 1_750_000_000_000_000_000);
        assert!(matches!(late, Err(StoreError::Unsupported { setting: "generation", .. })), "{late:?}");
        // One name is one limit.
        let limit = store.add("same", window.clone()).expect("a limit");
        assert!(store.add("same", window).is_ok());
        let other = store.add("same", bucket(1, 10));
        assert!(matches!(other, Err(StoreError::Unsupported { setting: "name", .. })), "{other:?}");
        // A set that would hold Redis up.
        let many: Vec<_> = (0..2_000_u64).map(|key| Charge::new(&limit, key)).collect();
        let told = store.check(&many).await;
        assert!(matches!(told, Err(StoreError::Unsupported { setting: "a set", .. })), "{told:?}");
        for builder in [
            server().builder().timeout(Duration::MAX),
            server().builder().lease(Duration::from_secs(60)),
            server().builder().prefix("{"),
        ] {
            assert!(builder.open().is_err());
        }
    });
}
