//! Servers that die, freeze and come back, and connections that break in the middle.

use super::*;
use std::sync::Arc;
use testkit::{Proxy, RedisServer, eventually_async};
use tokio::{task::JoinSet, time::timeout};

/// Killed under load: every call is answered or told that it may have run, none is made twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_and_restarted_under_load() {
    let server = RedisServer::start();
    let link = Arc::new(link(&server.url()));
    let mut callers = JoinSet::new();
    for caller in 0..16 {
        let link = Arc::clone(&link);
        callers.spawn(async move {
            let begun = Instant::now();
            let mut unsure = Vec::new();
            while begun.elapsed() < Duration::from_millis(1_500) {
                match link.count("k", &caller.to_string()).await {
                    Ok(_) => {}
                    Err(error) if error.may_have_run() => unsure.push((begun.elapsed(), error)),
                    Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            }
            unsure
        });
    }
    // Under load for a while, then away for a while.
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.kill();
    tokio::time::sleep(Duration::from_millis(200)).await;
    server.restart();
    let up = Instant::now();
    link.count_within(Duration::from_secs(2), "k").await;
    println!("killed and restarted: {:?} after it answers again", up.elapsed());
    while let Some(unsure) = callers.join_next().await {
        // One call is under way for each caller when the server dies, and one when it comes back and is not yet itself.
        assert!(matches!(&unsure, Ok(unsure) if unsure.len() <= 2), "{unsure:?}");
    }
}

/// Cut over and over under load. What ran is what was answered, and of what was not answered, no call more than once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_under_load_charges_nothing_twice() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let link = Arc::new(link(&proxy.url()));
    let mut callers = JoinSet::new();
    for caller in 0..16 {
        let link = Arc::clone(&link);
        callers.spawn(async move {
            let begun = Instant::now();
            let (mut answered, mut unsure) = (0, 0);
            for i in 0.. {
                if begun.elapsed() > Duration::from_millis(1_500) {
                    break;
                }
                match link.count("k", &format!("{caller}-{i}")).await {
                    Ok(_) => answered += 1,
                    Err(error) if error.may_have_run() => unsure += 1,
                    Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            }
            (answered, unsure)
        });
    }
    for round in 0..40 {
        // Calls are made between two cuts.
        tokio::time::sleep(Duration::from_millis(30)).await;
        match round % 4 {
            0 => proxy.cut_after_request(),
            _ => proxy.cut_once(),
        }
    }
    let (mut answered, mut unsure) = (0_u64, 0_u64);
    for (a, u) in callers.join_all().await {
        (answered, unsure) = (answered + a, unsure + u);
    }
    let ran: u64 = server.command(&["GET", "k"]).text().parse().unwrap_or_default();
    assert!((answered..=answered + unsure).contains(&ran), "{ran} ran, {answered} answered, {unsure} not");
    assert!(answered > 100 && unsure > 0, "{answered} answered, {unsure} not");
}

#[tokio::test]
async fn a_connection_lost_while_idle_costs_nobody_anything() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let link = link(&proxy.url());
    assert_eq!(link.count("k", "a").await, Ok(1));
    // Idle for longer than the time after which the link looks whether the server is there.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    for expected in 2..5 {
        let before = proxy.connections();
        proxy.cut_once();
        let again = || async { (proxy.connections() > before).then_some(()) };
        eventually_async("it to connect again by itself", again).await;
        assert_eq!(link.count("k", "a").await, Ok(expected));
    }
}

#[tokio::test]
async fn cut_after_the_request_is_unanswered_and_not_repeated() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let link = link(&proxy.url());
    assert_eq!(link.count("k", "a").await, Ok(1));
    proxy.cut_after_request();
    let error = link.count("k", "b").await;
    assert!(matches!(&error, Err(LinkError::Unanswered { .. })), "{error:?}");
    proxy.pass();
    let took = link.count_within(Duration::from_secs(1), "other").await;
    println!("cut after the request: {took:?}");
    // The lost one has run, once.
    assert_eq!(server.command(&["GET", "k"]).text(), "2");
}

/// Taken and never answered, by a peer that is gone without a word.
#[tokio::test]
async fn a_half_open_connection_is_given_up_and_remade() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let link = link(&proxy.url());
    assert_eq!(link.count("k", "a").await, Ok(1));
    proxy.black_hole();
    let begun = Instant::now();
    let error = link.count("k", "b").await;
    let took = begun.elapsed();
    assert_eq!(error, Err(LinkError::Unanswered { why: "the server stopped answering".into() }));
    // Silence is counted in looks, and each that a busy machine makes late moves those after it.
    assert!((Duration::from_millis(1_000)..Duration::from_secs(4)).contains(&took), "{took:?}");
    proxy.pass();
    let took = link.count_within(Duration::from_millis(2_500), "k").await;
    println!("half-open: given up after 1 s, then {took:?}");
}

/// A peer that vanished while nobody called is found out before anybody does.
#[tokio::test]
async fn a_half_open_connection_is_found_out_although_nobody_calls() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let (idle_for, silent_for) = (Duration::from_millis(200), Duration::from_millis(400));
    let link = link_with(&proxy.url(), Settings { idle_for, silent_for, ..Settings::default() });
    assert_eq!(link.count("k", "a").await, Ok(1));
    proxy.black_hole();
    eventually_async("another attempt", || async { (proxy.connections() >= 2).then_some(()) }).await;
    proxy.pass();
    proxy.cut_once();
    link.count_within(Duration::from_secs(3), "k").await;
}

/// Callers that wait for less than it takes to be sure leave no trace of themselves but the silence.
#[tokio::test]
async fn a_half_open_connection_is_found_out_although_nobody_waits_for_long() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let link = link(&proxy.url());
    assert_eq!(link.count("k", "a").await, Ok(1));
    proxy.black_hole();
    assert!(timeout(Duration::from_millis(20), link.count("k", "b")).await.is_err());
    proxy.pass();
    // The old connection stays dead: whoever comes is answered only over a new one.
    let begun = Instant::now();
    while !matches!(timeout(Duration::from_millis(20), link.count("k", "c")).await, Ok(Ok(_))) {
        assert!(begun.elapsed() < Duration::from_secs(3));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    println!("half-open, callers with 20 ms of patience: {:?}", begun.elapsed());
}

/// Requests land, answers do not. Every one of them ran once.
#[tokio::test]
async fn answers_that_are_lost_are_not_asked_for_again() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let link = Arc::new(link(&proxy.url()));
    assert_eq!(link.count("k", "a").await, Ok(1));
    proxy.drop_replies();
    let mut callers = JoinSet::new();
    for i in 0..50 {
        let link = Arc::clone(&link);
        callers.spawn(async move { link.count("k", &i.to_string()).await });
    }
    while let Some(done) = callers.join_next().await {
        assert!(matches!(&done, Ok(Err(LinkError::Unanswered { .. }))), "{done:?}");
    }
    assert_eq!(server.command(&["GET", "k"]).text(), "51");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_server() {
    let server = RedisServer::start();
    let link = link(&server.url());
    assert_eq!(link.count("k", "a").await, Ok(1));
    server.pause();
    let error = link.count("k", "b").await;
    assert!(matches!(&error, Err(LinkError::Unanswered { .. })), "{error:?}");
    // It takes connections even so, or rather its kernel does: they do not count until somebody answers.
    let error = timeout(Duration::from_millis(1_500), link.count("k", "c")).await;
    assert!(matches!(&error, Ok(Err(LinkError::NotSent { .. }))), "{error:?}");
    server.resume();
    let took = link.count_within(Duration::from_millis(2_500), "k").await;
    println!("frozen, then not: {took:?}");
}

/// Slow is not dead.
#[tokio::test]
async fn a_slow_server_is_waited_for() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let link = link(&proxy.url());
    assert_eq!(link.count("k", "a").await, Ok(1));
    proxy.delay(Duration::from_millis(300));
    for expected in 2..5 {
        assert_eq!(link.count("k", "b").await, Ok(expected));
    }
    assert_eq!(proxy.connections(), 1);
}

/// Calls given up at every stage of their way, among calls that are not: no answer goes astray.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_calls_mix_up_nothing() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let link = Arc::new(link(&proxy.url()));
    let mut callers = JoinSet::new();
    for caller in 0..32_u64 {
        let link = Arc::clone(&link);
        callers.spawn(async move {
            for i in 0..200_u64 {
                let argument = format!("{caller}-{i}");
                let call = link.count("k", &argument);
                if caller % 2 == 0 {
                    let _ = timeout(Duration::from_micros((i * 97 + caller * 31) % 700), call).await;
                } else {
                    call.await.unwrap_or_else(|error| panic!("{error}"));
                }
            }
        });
    }
    while let Some(done) = callers.join_next().await {
        done.unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(proxy.connections(), 1);
    let count: u64 = server.command(&["GET", "k"]).text().parse().unwrap_or_default();
    assert!((16 * 200..=32 * 200).contains(&count), "{count}");
}

/// An error of the script's own is the caller's to see, and the connection is none the worse.
#[tokio::test]
async fn a_refusal_is_passed_on_in_the_servers_words() {
    let server = RedisServer::start();
    let link = link(&server.url());
    server.command(&["SET", "text", "x"]);
    match link.count("text", "a").await {
        Err(error @ LinkError::Refused { .. }) => {
            assert!(error.may_have_run());
            assert!(error.to_string().contains("not an integer"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    match link.count("k", "a").await {
        Err(error @ LinkError::Refused { .. }) => {
            assert!(!error.may_have_run());
            assert!(error.to_string().starts_with("refused with OOM: "), "{error}");
        }
        other => panic!("{other:?}"),
    }
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(link.count("k", "a").await, Ok(1));
}

/// Demoted behind our back, with the connection still up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_server_is_dialled_anew_but_not_stormed() {
    let (server, other) = (RedisServer::start(), RedisServer::start());
    let proxy = Proxy::start(server.port());
    let link = link(&proxy.url());
    assert_eq!(link.count("k", "a").await, Ok(1));
    server.command(&["REPLICAOF", "127.0.0.1", &other.port().to_string()]);
    let begun = Instant::now();
    let mut slowest = Duration::ZERO;
    while begun.elapsed() < Duration::from_secs(1) {
        let asked = Instant::now();
        match link.count("k", "b").await {
            Err(error) => assert!(!error.may_have_run(), "{error}"),
            Ok(count) => panic!("counted {count} on a replica"),
        }
        slowest = slowest.max(asked.elapsed());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!((3..=13).contains(&proxy.connections()), "{} connections", proxy.connections());
    assert!(slowest < Duration::from_millis(500), "{slowest:?}");
    server.command(&["REPLICAOF", "NO", "ONE"]);
    let took = link.count_within(Duration::from_secs(2), "k").await;
    println!("read-only, then not: {took:?}");
}
