//! What clients should not send, and how they should not behave: refused, bounded, and without a trace.

use crate::stage::{
    Origin, PATIENCE, connect, gateway, gateway_with, get, raw, read_head, rest, settings, status, until,
    upstream,
};
use std::{
    sync::atomic::Ordering::SeqCst,
    time::{Duration, Instant},
};
use tokio::io::AsyncWriteExt as _;

/// Each of these could be one request to one reader and two to another. `SMUGGLED` would be the second.
const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

#[tokio::test]
async fn requests_that_can_be_read_two_ways_are_refused() {
    let origin = Origin::start("a").await;
    let gateway = gateway(&[origin.url()]);
    let heads = [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: \r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length : 5\r\n",
        "Content-Length\t: 5\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding:\x0bchunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding\r\n : chunked\r\n",
        "X: y\r\n Transfer-Encoding: chunked\r\n",
        "X: y\nContent-Length: 5\r\n",
        "X: y\rContent-Length: 5\r\n",
        "X: y\r\r\n",
        "X: y\0z\r\n",
        ": empty\r\n",
        "no colon\r\n",
        "Host: second\r\n",
    ];
    for extra in heads {
        let request = format!("POST / HTTP/1.1\r\nHost: a\r\n{extra}\r\n0\r\n\r\n{SMUGGLED}");
        let answer = raw(gateway.local_addr(), request.as_bytes()).await;
        assert_eq!(status(&answer), 400, "{extra:?}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{extra:?}: {answer}");
    }
    let whole = [
        "GET http://a?x=1 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/3.1\r\nHost: a\r\n\r\n",
        "GET /\r\n\r\n",
        " GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ];
    for request in whole {
        let answer = raw(gateway.local_addr(), request.as_bytes()).await;
        assert_eq!(status(&answer), 400, "{request:?}: {answer}");
    }
    assert_eq!(origin.requests.load(SeqCst), 0, "a refused request was forwarded");
}

/// A tunnel that speaks HTTP again would carry requests that no rule sees.
#[tokio::test]
async fn upgrades_to_another_http_do_not_pass() {
    let origin = Origin::start("a").await;
    let gateway = gateway(&[origin.url()]);
    for protocol in ["h2c", "H2C, websocket", "HTTP/2.0", "TLS/1.2"] {
        let request = format!(
            "GET /headers HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: {protocol}\r\n\
             HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
        );
        let answer = raw(gateway.local_addr(), request.as_bytes()).await.to_ascii_lowercase();
        assert_eq!(status(&answer), 200, "{protocol}: {answer}");
        assert!(!answer.contains("upgrade:") && !answer.contains("http2-settings"), "{protocol}: {answer}");
    }
}

/// Who sends all of a body before it reads is told why it was refused, and is not reset.
#[tokio::test]
async fn a_refusal_reaches_a_client_that_still_sends() {
    let origin = Origin::start("a").await;
    let mut settings = settings();
    settings.limits.body = 1_000;
    let gateway = gateway_with(settings, upstream(&[origin.url()]));
    let mut stream = connect(gateway.local_addr()).await;
    let head = b"POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: 8000000\r\n\r\n";
    stream.write_all(head).await.expect("sent");
    let piece = vec![b'x'; 80_000];
    for _ in 0..100 {
        stream.write_all(&piece).await.expect("nobody resets it");
    }
    let answer = rest(&mut stream).await;
    assert_eq!(status(&answer), 413, "{answer}");
    assert!(answer.to_ascii_lowercase().contains("connection: close"), "{answer}");
}

#[tokio::test]
async fn broken_chunks_end_the_request_and_the_connection() {
    let origin = Origin::start("a").await;
    let gateway = gateway(&[origin.url()]);
    for chunks in [
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhelloX\r\n0\r\n\r\n",
        "5;\nx\r\nhello\r\n0\r\n\r\n",
        "5;a\rb\r\nhello\r\n0\r\n\r\n",
        "5;\r\nhello\r\n0\r\n\r\n",
        "5;a=\r\nhello\r\n0\r\n\r\n",
        "5;a b\r\nhello\r\n0\r\n\r\n",
        "5;a=\"b\r\nhello\r\n0\r\n\r\n",
        "5;a=\"b\"c\r\nhello\r\n0\r\n\r\n",
        "5;a=\x01\r\nhello\r\n0\r\n\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
        "5 \r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nx: y\n\r\n",
    ] {
        let request = format!(
            "POST /length HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}{SMUGGLED}"
        );
        let answer = raw(gateway.local_addr(), request.as_bytes()).await;
        assert!(matches!(status(&answer), 0 | 400), "{chunks:?}: {answer}");
        assert!(!answer.contains(" 200 "), "{chunks:?}: {answer}");
    }
    until("nothing under way", || gateway.gauges().in_flight == 0).await;
    until("no connection", || gateway.gauges().connections == 0).await;
}

#[tokio::test]
async fn heads_have_a_size() {
    let origin = Origin::start("a").await;
    let gateway = gateway(&[origin.url()]);
    let long = "x".repeat(40 << 10);
    let answer =
        raw(gateway.local_addr(), format!("GET / HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n").as_bytes()).await;
    assert_eq!(status(&answer), 431, "{answer}");
    let many: String = (0..200).map(|i| format!("x-{i}: y\r\n")).collect();
    let answer =
        raw(gateway.local_addr(), format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n").as_bytes()).await;
    assert_eq!(status(&answer), 431, "{answer}");
    let target = "x".repeat(9 << 10);
    let answer = get(gateway.local_addr(), &format!("/{target}")).await;
    assert_eq!(status(&answer), 414, "{answer}");
    assert_eq!(origin.requests.load(SeqCst), 0);
}

#[tokio::test]
async fn bodies_have_a_size() {
    let origin = Origin::start("a").await;
    let mut settings = settings();
    settings.limits.body = 10;
    let gateway = gateway_with(settings, upstream(&[origin.url()]));
    let head = "POST /length HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
    let answer =
        raw(gateway.local_addr(), format!("{head}Content-Length: 10\r\n\r\n0123456789").as_bytes()).await;
    assert_eq!(status(&answer), 200, "{answer}");
    let answer = raw(gateway.local_addr(), format!("{head}Content-Length: 11\r\n\r\n").as_bytes()).await;
    assert_eq!(status(&answer), 413, "{answer}");
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\nb\r\n0123456789a\r\n0\r\n\r\n");
    let answer = raw(gateway.local_addr(), chunked.as_bytes()).await;
    assert_eq!(status(&answer), 413, "{answer}");
}

#[tokio::test]
async fn slow_clients_are_closed() {
    let origin = Origin::start("a").await;
    let mut settings = settings();
    settings.limits.head_timeout = Duration::from_millis(300);
    settings.limits.idle_timeout = Duration::from_millis(300);
    settings.limits.body_timeout = Duration::from_millis(300);
    let gateway = gateway_with(settings, upstream(&[origin.url()]));
    let start = Instant::now();
    // Says nothing; begins and does not end; comes back and does not end; begins a body; rests.
    let starts = [
        "",
        "GET / HT",
        "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n",
        "POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx",
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ];
    for bytes in starts {
        raw(gateway.local_addr(), bytes.as_bytes()).await;
    }
    // A byte now and then does not help.
    let mut socket = connect(gateway.local_addr()).await;
    for byte in b"GET / HTTP/1.1\r\nHost: a\r\nX-Long: yyyyyyyyyyyyyyyyyyyyyyyyyy".chunks(1) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        if socket.write_all(byte).await.is_err() {
            break;
        }
    }
    rest(&mut socket).await;
    assert!(start.elapsed() < PATIENCE / 2, "{:?}", start.elapsed());
    until("no connection", || gateway.gauges().connections == 0).await;
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_closed() {
    let origin = Origin::start("a").await;
    let mut settings = settings();
    settings.limits.write_timeout = Duration::from_millis(300);
    let gateway = gateway_with(settings, upstream(&[origin.url()]));
    // Its request is complete; or its body does not end.
    for more in ["", "transfer-encoding: chunked\r\n"] {
        let mut socket = connect(gateway.local_addr()).await;
        let head = format!("GET /bytes/100000000 HTTP/1.1\r\nHost: a\r\n{more}\r\n");
        socket.write_all(head.as_bytes()).await.expect("sent");
        until("it is under way", || gateway.gauges().in_flight == 1).await;
        until("it is cut off", || gateway.gauges().connections == 0).await;
        assert_eq!(gateway.gauges().in_flight, 0);
    }
}

#[tokio::test]
async fn no_more_connections_than_allowed() {
    let origin = Origin::start("a").await;
    let mut settings = settings();
    settings.max_connections = std::num::NonZeroUsize::new(2).expect("not zero");
    let gateway = gateway_with(settings, upstream(&[origin.url()]));
    let (first, _second) = (connect(gateway.local_addr()).await, connect(gateway.local_addr()).await);
    until("two are open", || gateway.gauges().connections == 2).await;
    let mut third = connect(gateway.local_addr()).await;
    third.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.expect("sent");
    let early = tokio::time::timeout(Duration::from_millis(200), third.readable()).await;
    assert!(early.is_err(), "a third was served");
    assert_eq!(gateway.gauges().connections, 2);
    drop(first);
    let head = tokio::time::timeout(PATIENCE, read_head(&mut third)).await.expect("its turn");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
}

#[tokio::test]
async fn uploads_and_downloads_that_break_off_leave_nothing() {
    let origin = Origin::start("a").await;
    let gateway = gateway(&[origin.url()]);
    for _ in 0..20 {
        let mut socket = connect(gateway.local_addr()).await;
        let head = "POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nsome";
        socket.write_all(head.as_bytes()).await.expect("sent");
        let mut other = connect(gateway.local_addr()).await;
        other.write_all(b"GET /bytes/10000000 HTTP/1.1\r\nHost: a\r\n\r\n").await.expect("sent");
        read_head(&mut other).await;
        let mut third = connect(gateway.local_addr()).await;
        third.write_all(b"GET /never HTTP/1.1\r\nHost: a\r\n\r\n").await.expect("sent");
    }
    until("nothing under way", || gateway.gauges().in_flight == 0).await;
    until("no connection", || gateway.gauges().connections == 0).await;
    assert_eq!(status(&get(gateway.local_addr(), "/").await), 200);
}
