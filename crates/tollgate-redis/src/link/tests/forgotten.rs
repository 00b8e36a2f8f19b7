//! A server that forgets the script.

use super::*;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};
use testkit::{Proxy, RedisServer};
use tokio::task::JoinSet;

#[tokio::test]
async fn noscript_on_the_first_call_is_not_seen() {
    let server = RedisServer::start();
    let link = link(&server.url());
    assert_eq!(link.count("k", "a").await, Ok(1));
    assert_eq!(link.count("k", "b").await, Ok(2));
    server.command(&["SCRIPT", "FLUSH"]);
    assert_eq!(link.count("k", "c").await, Ok(3));
    assert_eq!(server.info("commandstats", "cmdstat_eval").split(',').next(), Some("calls=2"));
}

/// Flushed over and over under pipelined load: every call executed exactly once, every answer its caller's own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn script_flush_during_pipelined_calls_loses_and_repeats_nothing() {
    let server = RedisServer::start();
    let link = Arc::new(link(&server.url()));
    let (is_over, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut callers = JoinSet::new();
    for caller in 0..64 {
        let (link, is_over, made) = (Arc::clone(&link), Arc::clone(&is_over), Arc::clone(&made));
        callers.spawn(async move {
            for i in 0.. {
                if is_over.load(Relaxed) {
                    return;
                }
                link.count("k", &format!("{caller}-{i}")).await.unwrap_or_else(|error| panic!("{error}"));
                made.fetch_add(1, Relaxed);
            }
        });
    }
    for _ in 0..100 {
        server.command(&["SCRIPT", "FLUSH"]);
        // Calls are made between two flushes.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    is_over.store(true, Relaxed);
    while let Some(done) = callers.join_next().await {
        done.unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(server.command(&["GET", "k"]).text(), made.load(Relaxed).to_string());
    assert!(made.load(Relaxed) > 1_000, "{made:?}");
}

/// A thousand calls on their way when the script is forgotten: one or a few texts, not a thousand.
#[tokio::test]
async fn a_forgotten_script_makes_no_herd_of_texts() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let link = Arc::new(link(&proxy.url()));
    assert_eq!(link.count("k", "").await, Ok(1));
    server.command(&["SCRIPT", "FLUSH"]);
    server.command(&["CONFIG", "RESETSTAT"]);
    let mut callers = JoinSet::new();
    for i in 0..1_000 {
        let link = Arc::clone(&link);
        callers.spawn(async move { link.count("k", &i.to_string()).await });
    }
    while let Some(done) = callers.join_next().await {
        assert!(matches!(done, Ok(Ok(_))), "{done:?}");
    }
    assert_eq!(server.command(&["GET", "k"]).text(), "1001");
    let calls = server.info("commandstats", "cmdstat_eval");
    let texts: u32 =
        calls.trim_start_matches("calls=").split(',').next().unwrap_or_default().parse().unwrap_or(0);
    assert!((1..=20).contains(&texts), "{texts} texts: {calls}");
}

/// Whoever claimed to send the text may be dropped before it did. Others do not wait for it.
#[tokio::test]
async fn a_text_that_was_given_up_holds_up_nobody() {
    let server = RedisServer::start();
    let link = Arc::new(link(&server.url()));
    for round in 0..50 {
        server.command(&["SCRIPT", "FLUSH"]);
        let mut callers = JoinSet::new();
        for i in 0..20_u64 {
            let link = Arc::clone(&link);
            callers.spawn(async move {
                let patience = Duration::from_micros(i * 37 % 400);
                let _ = tokio::time::timeout(patience, link.count("dropped", "x")).await;
            });
        }
        let answer = tokio::time::timeout(Duration::from_secs(5), link.count("kept", "y")).await;
        assert_eq!(answer, Ok(Ok(round + 1)));
        while callers.join_next().await.is_some() {}
    }
}
