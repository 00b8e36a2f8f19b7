//! Logins, TLS, servers that are not there yet, and how many attempts are made.

use super::*;
use std::sync::Arc;
use testkit::{Proxy, RedisServer, eventually_async};
use tokio::task::JoinSet;

#[tokio::test]
async fn opening_does_nothing_and_the_first_call_connects() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let link = link(&proxy.url());
    // Time for what nobody asked for.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(proxy.connections(), 0);
    assert_eq!(link.count("k", "a").await, Ok(1));
    assert_eq!(proxy.connections(), 1);
}

#[tokio::test]
async fn many_first_callers_make_one_attempt() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let link = Arc::new(link(&proxy.url()));
    let mut callers = JoinSet::new();
    for i in 0..200 {
        let link = Arc::clone(&link);
        callers.spawn(async move { link.count("k", &i.to_string()).await });
    }
    while let Some(done) = callers.join_next().await {
        assert!(matches!(done, Ok(Ok(_))), "{done:?}");
    }
    assert_eq!(proxy.connections(), 1);
}

#[tokio::test]
async fn a_database_other_than_the_first() {
    let server = RedisServer::start();
    let link = link(&format!("{}/3", server.url()));
    assert_eq!(link.count("k", "a").await, Ok(1));
    assert_eq!(server.command(&["EXISTS", "k"]).integer(), 0);
    let mut get = redis::cmd("GET");
    get.arg("k");
    assert_eq!(link.plain(link.group(), get).await, Ok(Value::BulkString(b"1".to_vec())));
}

#[tokio::test]
async fn a_database_there_is_not() {
    let server = RedisServer::start();
    let error = refused(&format!("{}/999", server.url())).await;
    assert!(error.contains("the server refused database 999: ERR"), "{error}");
}

#[tokio::test]
async fn an_acl_user_gets_in_and_a_wrong_password_is_told_apart() {
    let server = RedisServer::start_with_user("gate", "p@ss/w?rd%");
    let at = |login: &str| format!("redis://{login}127.0.0.1:{}", server.port());
    assert_eq!(link(&at("gate:p%40ss%2Fw%3Frd%25@")).count("k", "a").await, Ok(1));

    let error = refused(&at("gate:hunter2@")).await;
    assert!(error.contains("refused the login of user `gate`: WRONGPASS"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
    let error = refused(&at(":hunter2@")).await;
    assert!(error.contains("refused the login of user `default`: WRONGPASS"), "{error}");
    let error = refused(&at("")).await;
    assert!(error.contains("NOAUTH"), "{error}");
}

async fn refused(url: &str) -> String {
    match link(url).count("k", "a").await {
        Err(error @ LinkError::NotSent { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn tls_with_a_private_authority() {
    let server = RedisServer::start_tls();
    let ca = server.tls().authority.display().to_string();
    let trusting = link(&format!("{}?ca={ca}", server.url()));
    assert_eq!(trusting.count("k", "a").await, Ok(1));
    let by_name = link(&format!("rediss://localhost:{}?ca={ca}", server.port()));
    assert_eq!(by_name.count("k", "b").await, Ok(2));

    // By the system's authorities it is a stranger.
    let error = refused(&server.url()).await;
    assert!(error.contains("no TLS: invalid peer certificate"), "{error}");
    let error = refused(&format!("{}?ca=/nowhere/ca.pem", server.url())).await;
    assert!(error.contains("no certificate authority in /nowhere/ca.pem"), "{error}");
    // And in the clear it does not speak at all.
    let error = refused(&format!("redis://127.0.0.1:{}", server.port())).await;
    assert!(error.starts_with("not sent: 127.0.0.1"), "{error}");
}

#[tokio::test]
async fn tls_with_an_acl_user() {
    let server = RedisServer::start_tls();
    let ca = server.tls().authority.display().to_string();
    server.command(&["ACL", "SETUSER", "gate", "on", ">secret", "~*", "+@all"]);
    let url = format!("rediss://gate:secret@127.0.0.1:{}?ca={ca}", server.port());
    assert_eq!(link(&url).count("k", "a").await, Ok(1));
}

#[tokio::test]
async fn a_user_that_may_do_the_least() {
    let server = RedisServer::start();
    server.command(&["ACL", "SETUSER", "gate", "on", ">secret", "~*", "+eval", "+evalsha", "+incr"]);
    let url = format!("redis://gate:secret@127.0.0.1:{}", server.port());
    assert_eq!(link(&url).count("k", "a").await, Ok(1));
}

#[tokio::test]
async fn down_at_start_then_up() {
    let server = RedisServer::start();
    server.kill();
    let link = link(&server.url());
    for _ in 0..20 {
        let begun = Instant::now();
        assert!(matches!(link.count("k", "a").await, Err(LinkError::NotSent { .. })));
        assert!(begun.elapsed() < Duration::from_millis(100), "{:?}", begun.elapsed());
    }
    // It stays away while attempts grow rare.
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.restart();
    let took = link.count_within(Duration::from_secs(3), "k").await;
    println!("down at start, then up: {took:?}");
}

/// Nobody says no, and nobody says anything else: a caller waits for one attempt, not for the next as well.
#[tokio::test]
async fn a_server_that_takes_connections_and_says_nothing() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    proxy.black_hole();
    let connect_within = Duration::from_millis(300);
    let link = link_with(&proxy.url(), Settings { connect_within, ..Settings::default() });
    let begun = Instant::now();
    match link.count("k", "a").await {
        Err(LinkError::NotSent { why }) => assert!(why.ends_with("no connection in time"), "{why}"),
        other => panic!("{other:?}"),
    }
    let took = begun.elapsed();
    assert!((Duration::from_millis(300)..Duration::from_millis(550)).contains(&took), "{took:?}");
}

/// However many callers there are and however often they ask, attempts keep to their pace.
#[tokio::test]
async fn a_server_that_is_down_is_not_stormed() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    proxy.cut();
    let link = Arc::new(link(&proxy.url()));
    let mut callers = JoinSet::new();
    for _ in 0..16 {
        let link = Arc::clone(&link);
        callers.spawn(async move {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(1) {
                assert!(link.count("k", "a").await.is_err());
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }
    while let Some(done) = callers.join_next().await {
        done.unwrap_or_else(|error| panic!("{error}"));
    }
    // At once, and then after 10, 20, 40, .. ms less what chance takes off: eleven fit into a second at most.
    assert!((5..=11).contains(&proxy.connections()), "{} attempts", proxy.connections());
}

/// The runtime that happened to call first may end. The link does not end with it.
#[test]
fn a_runtime_that_ends_takes_the_connection_but_not_the_link() {
    let server = RedisServer::start();
    let link = link(&server.url());
    for expected in 1..=3 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(runtime.block_on(link.count("k", "a")), Ok(expected));
    }
}

#[tokio::test]
async fn a_dropped_link_closes_its_connection() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let link = link(&proxy.url());
    assert_eq!(link.count("k", "a").await, Ok(1));
    drop(link);
    eventually_async("its end", || async { (proxy.open_connections() == 0).then_some(()) }).await;
}
