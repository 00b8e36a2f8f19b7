//! Behind sentinels: who is the primary, and who is it now.

use super::*;
use testkit::{RedisServer, Sentinels};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_while_both_live_is_noticed_within_a_second() {
    let servers = Sentinels::start();
    let link = link(&servers.url());
    assert_eq!(link.count("k", "a").await, Ok(1));
    servers.failover();
    let begun = Instant::now();
    let now = servers.primary().port();
    loop {
        let counted = link.count("there", "a").await;
        if counted.is_ok() && servers.primary().command(&["EXISTS", "there"]).integer() == 1 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(3), "{counted:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    println!("sentinel failover, both live: {:?} after the sentinels agreed on {now}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_primary_is_replaced() {
    let servers = Sentinels::start();
    let link = link(&servers.url());
    assert_eq!(link.count("k", "a").await, Ok(1));
    let old = servers.kill_primary().port();
    let error = link.count("k", "a").await;
    assert!(error.is_err(), "{error:?}");
    servers.wait_for_primary_other_than(old);
    let took = link.count_within(Duration::from_secs(3), "k").await;
    println!("sentinel failover, primary dead: {took:?} after the sentinels agreed");
}

/// The old primary is cut off from its sentinels but not from us: nobody demotes it, it takes every write, and no error
/// ever tells. Here the sentinels are simply told of another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_does_not_know_of_its_demotion_is_left() {
    let (servers, new) = (Sentinels::start(), RedisServer::start());
    let link = link(&servers.url());
    assert_eq!(link.count("k", "a").await, Ok(1));
    let old = servers.primary();
    for sentinel in servers.sentinels() {
        sentinel.command(&["SENTINEL", "REMOVE", servers.name()]);
        let port = new.port().to_string();
        sentinel.command(&["SENTINEL", "MONITOR", servers.name(), "127.0.0.1", &port, "2"]);
    }
    let begun = Instant::now();
    while new.command(&["EXISTS", "there"]).integer() == 0 {
        // Not one call fails on the way.
        link.count("there", "a").await.unwrap_or_else(|error| panic!("{error}"));
        assert!(begun.elapsed() < Duration::from_secs(3));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    println!("sentinel failover, old primary unaware: {:?}", begun.elapsed());
    assert_eq!(old.info("replication", "role"), "master");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_that_are_gone_are_passed_over() {
    let servers = Sentinels::start();
    let first = &servers.sentinels()[0];
    first.kill();
    let second = &servers.sentinels()[1];
    second.pause();
    let link = link(&servers.url());
    let begun = Instant::now();
    assert_eq!(link.count("k", "a").await, Ok(1));
    println!("one sentinel dead, one frozen: connected after {:?}", begun.elapsed());
    second.resume();
}

#[tokio::test]
async fn a_name_that_no_sentinel_watches() {
    let server = RedisServer::start();
    // A server is no sentinel either, which is another mistake that people make.
    let url = format!("redis-sentinel://127.0.0.1:{}/limits", server.port());
    match link(&url).count("k", "a").await {
        Err(LinkError::NotSent { why }) => assert!(why.starts_with("sentinel 127.0.0.1:"), "{why}"),
        other => panic!("{other:?}"),
    }
    let servers = Sentinels::start();
    let sentinel = servers.sentinels()[0].port();
    match link(&format!("redis-sentinel://127.0.0.1:{sentinel}/limits")).count("k", "a").await {
        Err(LinkError::NotSent { why }) => assert!(why.ends_with("it watches no `limits`"), "{why}"),
        other => panic!("{other:?}"),
    }
}
