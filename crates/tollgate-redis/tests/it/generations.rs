//! Numbers that change while nodes with old and new ones run side by side.

use crate::{crowd::join_all, server::server};
use std::time::Duration;
use tollgate::{Charge, Decision, Delay, LeakyBucket, ManualClock, Rate, Store, TokenBucket};

fn bucket(rate: u32, burst: u32) -> TokenBucket {
    TokenBucket::new(Rate::per_second(rate).expect("a rate"), burst).expect("a limit")
}

/// The older node keeps the bucket so empty that the newer one is only refused: its numbers hold all the same.
#[test]
fn a_newer_generation_that_is_only_refused_still_takes_over() {
    server().block_on(async {
        let clock = ManualClock::new();
        let builder = server().builder().clock(clock.clone());
        let (old, new) = (builder.clone().open().expect("a store"), builder.open().expect("a store"));
        let greater = old.add_generation("l", bucket(1_000, 180), 1).expect("a limit");
        let lesser = new.add_generation("l", bucket(400, 60), 2).expect("a limit");
        assert!(old.check(&[Charge::new(&greater, "k").cost(180)]).await.expect("an answer").is_allow());
        let (mut by_old, mut by_new) = (0, 0);
        for _ in 0..3_000 {
            clock.advance(Duration::from_millis(1));
            let told = old.check(&[Charge::new(&greater, "k")]).await.expect("an answer");
            by_old += u32::from(told.is_allow());
            let told = new.check(&[Charge::new(&lesser, "k")]).await.expect("an answer");
            by_new += u32::from(told.is_allow());
        }
        // Three seconds at 400 a second.
        assert!(by_old + by_new <= 1_260, "old {by_old}, new {by_new}");
    });
}

/// An older node knows a bucket that refuses; by now it is one that has callers wait, and whoever does not wait is refused there
/// too, in whatever company.
#[test]
fn whoever_does_not_wait_is_refused_by_newer_numbers_that_delay() {
    server().block_on(async {
        let clock = ManualClock::new();
        let builder = server().builder().clock(clock.clone());
        let (old, new) = (builder.clone().open().expect("a store"), builder.open().expect("a store"));
        let rate = Rate::per_second(1).expect("a rate");
        let refuses = old.add_generation("l", bucket(1, 9), 1).expect("a limit");
        let delays = LeakyBucket::new(rate, 9).and_then(|leaky| leaky.with_delay(Delay::After(2)));
        let delays = new.add_generation("l", delays.expect("a limit"), 2).expect("a limit");
        for key in ["a", "b", "c"] {
            let told = new.check(&[Charge::new(&delays, key).cost(2)]).await.expect("an answer");
            assert!(told.is_allow(), "{told:?}");
        }
        // The first goes by itself, the others together.
        let charges = ["a", "b", "c"].map(|key| [Charge::new(&refuses, key).up_to(Duration::ZERO)]);
        let asked = charges.iter().map(|charge| old.check(charge)).collect();
        for told in join_all(asked).await {
            let told = told.expect("an answer");
            assert!(told.is_deny(), "{told:?}");
        }
        // Who says nothing is told to wait, as the limit prescribes.
        let patient = ["a", "b", "c"].map(|key| [Charge::new(&refuses, key)]);
        let asked = patient.iter().map(|charge| old.check(charge)).collect();
        for told in join_all(asked).await {
            assert!(matches!(told.expect("an answer").decision(), Decision::Wait(_)));
        }
    });
}

/// Rules have no generations of their own. A node that was restarted with other numbers counts from the beginning again, and its
/// keys, which remember every change of the run before, live on.
#[test]
fn numbers_that_come_later_hold_whatever_a_run_before_has_changed() {
    server().block_on(async {
        let store = |prefix: &str| server().builder().prefix(prefix).open().expect("a store");
        let (run, other) = (store("tg-runs"), store("tg-runs"));
        let limit = run.add_named("l", bucket(10, 10).into()).expect("a limit");
        let in_force = async |store: &tollgate_redis::RedisStore, limit| {
            let told = store.check(&[Charge::new(limit, "k")]).await.expect("an answer");
            told.statuses()[0].limit()
        };
        assert_eq!(in_force(&run, &limit).await, 10);
        for burst in [20, 30] {
            run.change_limit(&limit, bucket(burst, burst).into()).expect("numbers");
            assert_eq!(in_force(&run, &limit).await, burst);
        }
        let again = other.add_named("l", bucket(100, 100).into()).expect("a limit");
        assert_eq!(in_force(&other, &again).await, 100);
        // Whoever still runs with the earlier ones obeys.
        assert_eq!(in_force(&run, &limit).await, 100);
        other.change_limit(&again, bucket(50, 50).into()).expect("numbers");
        assert_eq!(in_force(&other, &again).await, 50);
        assert_eq!(in_force(&run, &limit).await, 50);
        // A name that somebody still holds takes the numbers of those who come now.
        let same = other.add_named("l", bucket(70, 70).into()).expect("a limit");
        assert_eq!(in_force(&other, &same).await, 70);
        assert_eq!(in_force(&other, &again).await, 70);
    });
}

/// Nodes that came to the same numbers at different times differ in nothing but the generation, which stays the later one.
#[test]
fn the_same_numbers_of_another_time_are_the_same_numbers() {
    server().block_on(async {
        let clock = ManualClock::new();
        clock.advance(Duration::from_secs(1_000));
        let builder = server().builder().clock(clock.clone());
        let nodes = [3, 1, 2].map(|generation| {
            let store = builder.clone().open().expect("a store");
            let limits = ["a", "b"]
                .map(|name| store.add_generation(name, bucket(10, 90), generation).expect("a limit"));
            (store, limits)
        });
        let mut left = 90;
        for round in 0..30 {
            let (store, limits) = &nodes[round % 3];
            // One key by itself, and two in one call.
            let told = if round % 2 == 0 {
                store.check(&[Charge::new(&limits[0], "k")]).await
            } else {
                store.check(&limits.each_ref().map(|limit| Charge::new(limit, "k"))).await
            };
            left -= 1;
            assert_eq!(told.expect("an answer").statuses()[0].remaining(), left, "round {round}");
            if round == 20 {
                clock.advance(Duration::from_secs(1));
                left += 10;
            }
        }
        let late = builder.open().expect("a store");
        let older = late.add_generation("a", bucket(5, 5), 2).expect("a limit");
        let told = late.check(&[Charge::new(&older, "k")]).await.expect("an answer");
        assert_eq!(told.statuses()[0].limit(), 90, "the second generation is older than what is there");
    });
}
