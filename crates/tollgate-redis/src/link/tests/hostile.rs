//! Servers that lie: bytes that are no answer, and answers that make no sense.

use super::*;
use std::sync::Arc;
use testkit::{Proxy, RedisServer};
use tokio::task::JoinSet;

#[tokio::test]
async fn garbage_closes_the_connection_and_the_next_is_fine() {
    for garbage in [
        &b"\0\0\0\0"[..],
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b":twelve\r\n",
        b"$-7x\r\n",
        b"+\xff\xfe\r\n",
        b"*9223372036854775807\r\n:1\r\nx",
        b"%9223372036854775807\r\n:1\r\n",
        b"%-1\r\n:1\r\n",
        b"|9223372036854775807\r\n:1\r\n",
        b"|0\r\nx",
        b"|-1\r\n:1\r\nx",
        b">-1\r\n",
        b">1\r\n:1\r\n",
        b"$9223372036854775807\r\nabc",
        b"=-1\r\n",
        b"!-1\r\n",
        b"!9223372036854775807\r\n",
    ] {
        let server = RedisServer::start();
        let proxy = Proxy::start(server.port());
        let link = link(&proxy.url());
        assert_eq!(link.count("k", "a").await, Ok(1));
        proxy.answer_with(garbage);
        let group = link.group();
        let error = link.call(group, &["k"], b"b").await;
        let shown = garbage.escape_ascii();
        assert!(matches!(&error, Err(LinkError::Unanswered { .. })), "{shown}: {error:?}");
        proxy.pass();
        let took = link.count_within(Duration::from_millis(2_500), "k").await;
        assert!(proxy.connections() >= 2, "{shown}");
        println!("garbage {shown}: {took:?}");
    }
}

#[tokio::test]
async fn garbage_under_load_answers_nobody() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let link = Arc::new(link(&proxy.url()));
    assert_eq!(link.count("k", "a").await, Ok(1));
    proxy.garble();
    let mut callers = JoinSet::new();
    for i in 0..50 {
        let link = Arc::clone(&link);
        callers.spawn(async move { link.count("k", &i.to_string()).await });
    }
    while let Some(done) = callers.join_next().await {
        assert!(matches!(&done, Ok(Err(_))), "{done:?}");
    }
    proxy.pass();
    link.count_within(Duration::from_secs(3), "k").await;
}

/// Whoever is given nonsense says so, and gets another connection.
#[tokio::test]
async fn a_distrusted_connection_is_replaced() {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    let link = link(&proxy.url());
    assert_eq!(link.count("k", "a").await, Ok(1));
    // One that has lived for a second is made anew at once when it is lost.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    proxy.answer_with(b":1\r\n:2\r\n");
    assert_eq!(link.call(link.group(), &["k"], b"b").await, Ok(Value::Int(1)));
    proxy.pass();
    link.distrust(link.group());
    assert_eq!(link.count("k", "c").await, Ok(3));
    assert_eq!(proxy.connections(), 2);
}
