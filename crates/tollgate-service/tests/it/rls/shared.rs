//! Counters that several nodes share through Redis, and what they say while it is away.

use super::stage::{Open, descriptor, hits, request, rules_on};
use std::{num::NonZeroUsize, sync::Arc, time::Duration};
use testkit::RedisServer;
use tollgate::OnFailure;
use tollgate_redis::RedisStore;
use tollgate_rules::RuleFile;
use tollgate_service::rls::messages::Code;

const DOMAIN: &str = "
domain: d
descriptors:
- { key: k, rate_limit: { unit: year, requests_per_unit: 100 } }
- { key: none, rate_limit: { unit: year, requests_per_unit: 0 } }
- { key: log, algorithm: { sliding_log: { limit: 3, window: 1h } } }
";

fn file(settings: &str) -> RuleFile {
    rules_on("store: { nodes: 2 }", settings, DOMAIN)
}

fn store(server: &RedisServer, policy: OnFailure) -> Arc<RedisStore> {
    let builder = RedisStore::builder(&server.url()).timeout(Duration::from_secs(2)).nodes(2);
    Arc::new(builder.on_failure(policy).open().expect("an address"))
}

/// Asks so many times at each of two nodes, in turn: how many passed.
async fn passed(nodes: [&Open; 2], key: &str, times: usize) -> usize {
    let clients = [nodes[0].client().await, nodes[1].client().await];
    let mut passed = 0;
    for time in 0..times {
        let asked = request([descriptor(&[(key, "v")])]);
        let told = clients[time % 2].ask(&asked).await.expect("an answer");
        passed += usize::from(told.overall_code() == Code::Ok);
    }
    passed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_count_together() {
    let server = RedisServer::start();
    let nodes = [(); 2].map(|()| Open::on(store(&server, OnFailure::Local), file(""), |_| ()));
    assert_eq!(passed([&nodes[0], &nodes[1]], "k", 130).await, 100);
    assert_eq!(passed([&nodes[0], &nodes[1]], "log", 10).await, 3);
    assert_eq!(passed([&nodes[0], &nodes[1]], "none", 4).await, 0);
    assert_eq!(server.keys_without_ttl(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_stay_exact_where_units_are_taken_ahead() {
    let server = RedisServer::start();
    let leased = || {
        let builder = RedisStore::builder(&server.url()).timeout(Duration::from_secs(2)).nodes(2);
        Arc::new(builder.lease(Duration::from_millis(100)).open().expect("an address"))
    };
    let nodes = [(); 2].map(|()| Open::on(leased(), file(""), |_| ()));
    let clients = [nodes[0].client().await, nodes[1].client().await];
    for time in 0..120_u32 {
        let told =
            clients[time as usize % 2].ask(&request([descriptor(&[("k", "v")])])).await.expect("an answer");
        let left = told.statuses[0].limit_remaining;
        assert_eq!(left, 99_u32.saturating_sub(time), "every hit is seen by the next");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_redis_is_away_the_policy_decides() {
    for (policy, passing) in [(OnFailure::Open, 130), (OnFailure::Closed, 0), (OnFailure::Local, 100)] {
        let server = RedisServer::start();
        let nodes = [(); 2].map(|()| Open::on(store(&server, policy), file(""), |_| ()));
        server.kill();
        assert_eq!(passed([&nodes[0], &nodes[1]], "k", 130).await, passing, "{policy:?}");
        let blocked = if policy == OnFailure::Open { 4 } else { 0 };
        assert_eq!(passed([&nodes[0], &nodes[1]], "none", 4).await, blocked, "{policy:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_descriptors_are_one_call() {
    let server = RedisServer::start();
    let node = Open::on(store(&server, OnFailure::Local), file(""), |_| ());
    let client = node.client().await;
    let asked = request((0..20).map(|n| hits(&[("k", &n.to_string())], 1)).collect::<Vec<_>>());
    client.ask(&asked).await.expect("an answer");
    let calls = || -> u64 {
        let told = server.info("commandstats", "cmdstat_evalsha");
        let calls = told.split(',').find_map(|part| part.strip_prefix("calls="));
        calls.and_then(|calls| calls.parse().ok()).unwrap_or_default()
    };
    let before = calls();
    let told = client.ask(&asked).await.expect("an answer");
    assert!(told.statuses.iter().all(|status| status.limit_remaining == 98));
    let made = calls() - before;
    assert!(made <= 4, "{made} calls for 20 descriptors");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_may_be_decided_at_once_are_told_to_come_again() {
    let server = RedisServer::start();
    let slow = RedisStore::builder(&server.url()).timeout(Duration::from_secs(20)).nodes(2);
    let slow = Arc::new(slow.on_failure(OnFailure::Open).open().expect("an address"));
    let node = Open::on(slow, file(""), |settings| settings.max_in_flight = NonZeroUsize::MIN);
    let asked = request([descriptor(&[("k", "v")])]);
    let [first, second] = [node.client().await, node.client().await];
    first.ask(&asked).await.expect("an answer");
    server.pause();
    let waiting = tokio::spawn({
        let asked = asked.clone();
        async move { first.ask(&asked).await }
    });
    let refused = loop {
        // Until the other one is inside, this one is, and is not answered either: it is given up and leaves.
        let asking = tokio::time::timeout(Duration::from_millis(300), second.ask(&asked));
        if let Ok(told) = asking.await {
            break told.expect_err("Redis is frozen");
        }
    };
    assert_eq!((refused.code.as_str(), waiting.is_finished()), ("14", false));
    assert!(refused.message.starts_with("too many requests are being decided"), "{refused:?}");
    server.resume();
    waiting.await.expect("it ran").expect("an answer");
    second.ask(&asked).await.expect("room again");
}
