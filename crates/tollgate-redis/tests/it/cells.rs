//! Cells in Redis answer as those in memory do, expire after what they owe, and obey what is done when Redis does not answer.

use crate::server::server;
use proptest::prelude::*;
use std::time::Duration;
use testkit::RedisServer;
use tollgate::{
    Bounds, Cells, DecidedBy, Key, ManualClock, MemoryStore, OnFailure, StoreError, Throttle, Throttled,
};
use tollgate_redis::RedisStore;

const SECOND: Duration = Duration::from_secs(1);

fn throttle(burst: i64, count: u64, period: Duration) -> Throttle {
    Throttle::per(count, period).expect("a rate").burst(burst)
}

fn counts() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 1_u64..100, 1 => 1_u64..5_000_000, 1 => 1_u64..1 << 52]
}

fn quantities() -> impl Strategy<Value = i64> {
    prop_oneof![8 => -3_i64..12, 1 => any::<i64>()]
}

fn bursts() -> impl Strategy<Value = i64> {
    prop_oneof![8 => -2_i64..40, 1 => any::<i64>()]
}

fn periods() -> impl Strategy<Value = Duration> {
    prop_oneof![
        4 => (1_u64..120).prop_map(Duration::from_secs),
        2 => (1_u64..10_000_000).prop_map(Duration::from_micros),
        1 => any::<u64>().prop_map(Duration::from_secs),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn redis_answers_as_memory_does(
        numbers in prop::collection::vec((bursts(), counts(), periods()), 1..4),
        questions in prop::collection::vec((0_u64..5_000_000, 0_usize..4, quantities(), 0_usize..2), 1..30),
    ) {
        let clock = ManualClock::new();
        let memory = MemoryStore::with_clock(Bounds::default(), clock.clone());
        let redis = server().store_at(clock.clone());
        for (pass, number, quantity, key) in questions {
            clock.advance(Duration::from_micros(pass));
            let (burst, count, period) = numbers[number % numbers.len()];
            let asked = throttle(burst, count, period).quantity(quantity);
            let key = Key::Bytes([&b"a\xff{}"[..], b""][key]);
            let told: Throttled = server().block_on(Cells::throttle(&redis, key, &asked)).expect("an answer");
            prop_assert_eq!(told, memory.throttle(key, &asked), "{:?}", asked);
            let owing = server().block_on(redis.owing(key)).expect("an answer").map(|it| it.lasting);
            prop_assert_eq!(owing, memory.owing(key).map(|it| it.lasting));
        }
    }
}

/// More units in a period than parts of a microsecond can be told apart: close, and no panic.
#[test]
fn counts_beyond_what_a_script_can_count_to_still_answer() {
    let redis = server().store();
    for count in [1 << 53, i64::MAX as u64, u64::MAX] {
        for period in [SECOND, Duration::MAX] {
            let asked = throttle(i64::MAX, count, period).quantity(5);
            let told = server().block_on(Cells::throttle(&redis, "k".into(), &asked)).expect("an answer");
            assert!(told.is_allow(), "{asked:?}: {told:?}");
            server().block_on(redis.forget("k".into())).expect("an answer");
        }
    }
}

#[test]
fn a_cell_outlives_what_it_owes_by_a_second_and_is_gone_when_given_back() {
    let redis = server().builder().prefix("cells").open().expect("a store");
    let lives = || server().redis.command(&["PTTL", "cells:{k}:*cell"]).integer();
    server().block_on(async {
        let asked = throttle(99, 10_000, SECOND);
        assert!(Cells::throttle(&redis, "k".into(), &asked).await.expect("an answer").is_allow());
        assert!((900..=1_002).contains(&lives()), "{}", lives());
        let asked = throttle(9, 1, SECOND);
        assert!(Cells::throttle(&redis, "k".into(), &asked.quantity(9)).await.expect("an answer").is_allow());
        assert!((9_000..=10_002).contains(&lives()), "{}", lives());
        let back = Cells::throttle(&redis, "k".into(), &asked.quantity(-10)).await.expect("an answer");
        assert_eq!(back.remaining(), 10);
        assert_eq!(lives(), -2);
        assert!(!redis.forget("k".into()).await.expect("an answer"));
    });
}

#[test]
fn what_is_not_ours_is_removed_and_said() {
    let redis = server().builder().prefix("foreign").open().expect("a store");
    let asked = throttle(9, 1, SECOND);
    for write in [&["SET", "foreign:{k}:*cell", "hello"][..], &["RPUSH", "foreign:{k}:*cell", "1"]] {
        server().redis.command(write);
        let told = server().block_on(Cells::throttle(&redis, "k".into(), &asked));
        assert!(matches!(told, Err(StoreError::Damaged { .. })), "{told:?}");
        assert!(server().block_on(Cells::throttle(&redis, "k".into(), &asked)).expect("anew").is_allow());
        server().block_on(redis.forget("k".into())).expect("an answer");
    }
    server().redis.command(&["SET", "foreign:{k}:*cell", "c2 1"]);
    let told = server().block_on(Cells::throttle(&redis, "k".into(), &asked));
    assert!(matches!(told, Err(StoreError::TooNew { .. })), "{told:?}");
}

#[test]
fn without_redis_each_policy_answers_its_own_way() {
    let gone = RedisServer::start();
    let url = gone.url();
    drop(gone);
    let asked = throttle(9, 1, SECOND * 60);
    let ask = |policy: Option<OnFailure>| {
        let builder = RedisStore::builder(&url).nodes(2);
        let builder = match policy {
            Some(policy) => builder.on_failure(policy),
            None => builder.errors_on_failure(),
        };
        server().block_on(async {
            let store = builder.open().expect("a store");
            let mut told = Vec::new();
            for _ in 0..6 {
                told.push(Cells::throttle(&store, "k".into(), &asked).await);
            }
            told
        })
    };
    let passed = |told: &[Result<Throttled, StoreError>]| {
        told.iter().filter(|it| it.as_ref().is_ok_and(Throttled::is_allow)).count()
    };
    assert_eq!(passed(&ask(Some(OnFailure::Open))), 6);
    let closed = ask(Some(OnFailure::Closed));
    assert_eq!(passed(&closed), 0);
    let told = closed[0].as_ref().expect("an answer");
    assert_eq!(told.decided_by(), DecidedBy::Failure(OnFailure::Closed));
    assert_eq!(told.retry_after(), Some(SECOND));
    // Half of ten.
    assert_eq!(passed(&ask(Some(OnFailure::Local))), 5);
    assert!(ask(None).iter().all(|told| matches!(told, Err(StoreError::Unavailable { .. }))));
}
