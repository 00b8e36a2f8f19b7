//! A cluster: slots that move while we call, and nodes that die.

use super::*;
use crate::link::slot::slot_of;
use std::sync::Arc;
use testkit::{Cluster, RedisServer, eventually_async};
use tokio::{task::JoinSet, time::timeout};

/// A key in the slot of `foo`.
const KEY: &str = "{foo}.k";

/// A primary that does not have the slot.
fn elsewhere(cluster: &Cluster, slot: u16) -> &testkit::RedisServer {
    let (here, other) = (cluster.primary_of(slot), cluster.primary_of((slot + 8192) % 16384));
    assert_ne!(here.port(), other.port());
    other
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_slot_finds_its_node_and_moves_are_followed() {
    let cluster = Cluster::start();
    let link = Arc::new(link(&cluster.url()));
    for i in 0..200 {
        assert_eq!(link.count(&format!("k{i}"), "a").await, Ok(1));
    }
    assert_eq!(link.group_of(b"{foo}.1"), link.group_of(b"{foo}.2"));
    assert_ne!(link.group_of(b"foo"), link.group_of(b"bar"));

    // MOVED, under load: each call counted once, none refused.
    let slot = slot_of(KEY.as_bytes());
    let mut callers = JoinSet::new();
    for caller in 0..8 {
        let link = Arc::clone(&link);
        callers.spawn(async move {
            for i in 0..500 {
                link.count(KEY, &format!("{caller}-{i}")).await.unwrap_or_else(|error| panic!("{error}"));
            }
        });
    }
    let (here, there) = (cluster.primary_of(slot), elsewhere(&cluster, slot));
    for to in [there, here, there] {
        cluster.migrate_slot(slot, to);
    }
    while let Some(done) = callers.join_next().await {
        done.unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(link.count(KEY, "last").await, Ok(4_001));
    // And from then on the map is right: no more redirections.
    let begun = Instant::now();
    loop {
        here.command(&["CONFIG", "RESETSTAT"]);
        link.count("{foo}.other", "a").await.unwrap_or_else(|error| panic!("{error}"));
        if here.info("errorstats", "errorstat_MOVED").is_empty() {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(3));
    }
    println!("a slot moved: map right {:?} after the move", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_in_the_middle_of_its_move() {
    let cluster = Cluster::start();
    let link = Arc::new(link(&cluster.url()));
    assert_eq!(link.count(KEY, "a").await, Ok(1));
    let slot = slot_of(KEY.as_bytes());
    let migration = cluster.begin_migration(slot, elsewhere(&cluster, slot));
    // Not moved yet: served where it was. A new key: served where it will be (ASK), where the script is unknown, too.
    assert_eq!(link.count(KEY, "b").await, Ok(2));
    assert_eq!(link.count("{foo}.new", "a").await, Ok(1));
    migration.to().command(&["SCRIPT", "FLUSH"]);
    assert_eq!(link.count("{foo}.new", "b").await, Ok(2));
    assert_eq!(migration.from().command(&["CLUSTER", "COUNTKEYSINSLOT", &slot.to_string()]).integer(), 1);
    // Many at once, ASKING each for itself.
    let mut callers = JoinSet::new();
    for i in 0..100 {
        let link = Arc::clone(&link);
        callers.spawn(async move { link.count("{foo}.new", &i.to_string()).await });
    }
    while let Some(done) = callers.join_next().await {
        assert!(matches!(done, Ok(Ok(_))), "{done:?}");
    }
    assert_eq!(link.count("{foo}.new", "c").await, Ok(103));

    // One key here and one there: nobody can say yet, and we do not ask for ever (TRYAGAIN).
    let keys = [KEY, "{foo}.new"];
    let begun = Instant::now();
    let error = timeout(Duration::from_secs(3), link.call(link.group_of(KEY.as_bytes()), &keys, b"d")).await;
    match error {
        Ok(Err(error @ LinkError::Refused { .. })) => assert!(!error.may_have_run(), "{error}"),
        other => panic!("{other:?}"),
    }
    println!("keys on both sides of a move: refused after {:?}", begun.elapsed());
    // Or until the other has come over.
    let told_to_try_again = || -> u64 {
        let count = |node: &RedisServer| {
            let told = node.command(&["INFO", "errorstats"]).text();
            let (_, rest) = told.split_once("errorstat_TRYAGAIN:count=")?;
            rest.lines().next()?.parse::<u64>().ok()
        };
        [migration.from(), migration.to()].into_iter().filter_map(count).sum()
    };
    let before = told_to_try_again();
    let waiting = tokio::spawn({
        let link = Arc::clone(&link);
        async move { link.call(link.group_of(KEY.as_bytes()), &keys, b"e").await }
    });
    eventually_async("it to be told to come again", || async {
        (told_to_try_again() > before).then_some(())
    })
    .await;
    migration.move_keys();
    let answer = waiting.await;
    assert!(matches!(answer, Ok(Ok(_))), "{answer:?}");
    migration.finish();
    assert_eq!(link.count(KEY, "f").await, Ok(4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_node_is_replaced() {
    let cluster = Cluster::start();
    let link = link(&cluster.url());
    let slot = slot_of(KEY.as_bytes());
    assert_eq!(link.count(KEY, "a").await, Ok(1));
    let old = cluster.primary_of(slot);
    let survivor = elsewhere(&cluster, slot);
    let replica = cluster.replica_of(slot);
    old.kill();
    let error = link.count(KEY, "b").await;
    assert!(error.is_err(), "{error:?}");
    // The others go on meanwhile.
    assert_eq!(link.count("bar", "a").await, Ok(1));
    testkit::eventually("the replica to take over", || {
        let ready = replica.info("replication", "role") == "master";
        (ready && survivor.command(&["CLUSTER", "INFO"]).field("cluster_state") == "ok").then_some(())
    });
    let took = link.count_within(Duration::from_secs(5), KEY).await;
    println!("cluster failover, primary dead: {took:?} after the cluster is whole");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_while_both_live_is_followed_at_once() {
    let cluster = Cluster::start();
    let link = link(&cluster.url());
    assert_eq!(link.count(KEY, "a").await, Ok(1));
    let slot = slot_of(KEY.as_bytes());
    let replica = cluster.replica_of(slot);
    replica.command(&["CLUSTER", "FAILOVER"]);
    testkit::eventually("the replica to take over", || {
        (replica.info("replication", "role") == "master").then_some(())
    });
    let took = link.count_within(Duration::from_secs(2), KEY).await;
    println!("cluster failover, both live: {took:?}");
}

#[tokio::test]
async fn a_server_that_is_no_cluster() {
    let server = testkit::RedisServer::start();
    match link(&format!("redis-cluster://127.0.0.1:{}", server.port())).count("k", "a").await {
        Err(LinkError::NotSent { why }) => assert!(why.contains("cluster support disabled"), "{why}"),
        other => panic!("{other:?}"),
    }
}
