//! HTTP/2 on either side.

use crate::stage::{
    Origin, PATIENCE, connect, gateway, gateway_with, get, raw, settings, status, until, upstream,
};
use bytes::Bytes;
use http::{Request, Version};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::{net::SocketAddr, sync::atomic::Ordering::SeqCst, time::Duration};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

async fn client(address: SocketAddr) -> http2::SendRequest<Full<Bytes>> {
    let io = TokioIo::new(connect(address).await);
    let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.expect("HTTP/2");
    tokio::spawn(connection);
    sender
}

fn request(path: &str, body: &'static str) -> Request<Full<Bytes>> {
    let uri = format!("http://example.org{path}");
    Request::post(uri).header("te", "trailers").body(Full::new(Bytes::from(body))).expect("a request")
}

#[tokio::test]
async fn many_requests_on_one_connection() {
    let origin = Origin::start("a").await;
    let gateway = gateway(&[origin.url()]);
    let sender = client(gateway.local_addr()).await;
    let mut asked = Vec::new();
    for _ in 0..50 {
        let mut sender = sender.clone();
        asked.push(tokio::spawn(async move { sender.send_request(request("/length", "hello")).await }));
    }
    for answer in asked {
        let answer = answer.await.expect("a task").expect("an answer");
        assert_eq!(answer.version(), Version::HTTP_2);
        assert_eq!(answer.into_body().collect().await.expect("a body").to_bytes(), "5");
    }
    assert_eq!(gateway.gauges().connections, 1);
    assert_eq!(origin.requests.load(SeqCst), 50);
}

#[tokio::test]
async fn trailers_pass_to_http2_and_back() {
    let origin = Origin::start("a").await;
    for url in [format!("h2c://{}", origin.address), origin.url()] {
        let gateway = gateway(std::slice::from_ref(&url));
        let mut sender = client(gateway.local_addr()).await;
        let answer = sender.send_request(request("/headers", "")).await.expect("an answer");
        let head = answer.into_body().collect().await.expect("a body").to_bytes();
        let head = String::from_utf8_lossy(&head).into_owned();
        if url.starts_with("h2c") {
            assert!(head.starts_with("POST http://example.org/headers\n"), "{head}");
            assert!(head.contains("te: trailers"), "{head}");
            let answer = sender.send_request(request("/trailers", "x")).await.expect("an answer");
            let body = answer.into_body().collect().await.expect("a body");
            let status = body.trailers().and_then(|trailers| trailers.get("grpc-status")).cloned();
            assert_eq!(status.expect("trailers"), "0", "{url}");
        } else {
            assert!(head.contains("host: example.org"), "{head}");
        }
    }
}

#[tokio::test]
async fn old_clients_reach_new_servers() {
    let origin = Origin::start("a").await;
    let mut settings = settings();
    settings.workers = 1;
    let gateway = gateway_with(settings, upstream(&[format!("h2c://{}", origin.address)]));
    let answer = get(gateway.local_addr(), "/headers").await;
    assert!(answer.contains("GET http://test/headers\n"), "{answer}");
    let answer = raw(
        gateway.local_addr(),
        b"POST /length HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    )
    .await;
    assert!(answer.ends_with("1\r\n3\r\n0\r\n\r\n") || answer.ends_with("\r\n\r\n3"), "{answer}");
    assert_eq!(origin.connections.load(SeqCst), 1, "the connection was not shared");
}

#[tokio::test]
async fn a_stream_that_is_dropped_ends_its_request() {
    let origin = Origin::start("a").await;
    let gateway = gateway(&[origin.url()]);
    let mut sender = client(gateway.local_addr()).await;
    let asked =
        tokio::time::timeout(Duration::from_millis(200), sender.send_request(request("/never", ""))).await;
    assert!(asked.is_err());
    until("it ended", || gateway.gauges().in_flight == 0).await;
    let answer = sender.send_request(request("/length", "")).await.expect("the connection goes on");
    assert_eq!(answer.status().as_u16(), 200);
}

#[tokio::test]
async fn a_drain_says_goodbye() {
    let origin = Origin::start("a").await;
    let gateway = gateway(&[origin.url()]);
    let mut sender = client(gateway.local_addr()).await;
    sender.send_request(request("/length", "")).await.expect("an answer");
    let mut slow = sender.clone();
    let io = tokio::spawn(async move {
        let answer = slow.send_request(request("/bytes/5000000", "")).await.expect("an answer");
        answer.into_body().collect().await.expect("the whole body").to_bytes().len()
    });
    until("it is under way", || gateway.gauges().in_flight > 0 || io.is_finished()).await;
    let drained = gateway.drain(PATIENCE).await;
    assert_eq!(drained.cut, 0);
    assert_eq!(io.await.expect("a task"), 5_000_000);
    assert!(sender.ready().await.is_err() || sender.send_request(request("/", "")).await.is_err());
}

/// A frame: length, kind, flags, stream, payload.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

#[tokio::test]
async fn rapid_resets_end_the_connection() {
    let origin = Origin::start("a").await;
    let gateway = gateway_with(settings(), upstream(&[origin.url()]));
    let mut socket = connect(gateway.local_addr()).await;
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    // :method GET, :scheme http, :path /, :authority a; then the stream is reset.
    for i in 0..5000_u32 {
        bytes.extend(frame(1, 5, 2 * i + 1, &[0x82, 0x86, 0x84, 0x41, 1, b'a']));
        bytes.extend(frame(3, 0, 2 * i + 1, &[0, 0, 0, 8]));
    }
    let _ = socket.write_all(&bytes).await;
    let mut said = Vec::new();
    let read = tokio::time::timeout(PATIENCE, socket.read_to_end(&mut said)).await;
    assert!(read.is_ok(), "the connection goes on");
    until("nothing is left", || gateway.gauges().connections == 0 && gateway.gauges().in_flight == 0).await;
    assert!(origin.requests.load(SeqCst) < 2500, "{} requests got through", origin.requests.load(SeqCst));
    assert_eq!(status(&get(gateway.local_addr(), "/").await), 200);
}

#[tokio::test]
async fn large_heads_are_refused() {
    let origin = Origin::start("a").await;
    let gateway = gateway(&[origin.url()]);
    let io = TokioIo::new(connect(gateway.local_addr()).await);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.expect("HTTP/2");
    tokio::spawn(connection);
    let long = "x".repeat(40 << 10);
    let request =
        Request::get("http://a/").header("x-long", long).body(Empty::<Bytes>::new()).expect("a request");
    match sender.send_request(request).await {
        Ok(answer) => assert_eq!(answer.status().as_u16(), 431),
        Err(error) => assert!(!error.is_canceled(), "{error}"),
    }
    assert_eq!(origin.requests.load(SeqCst), 0);
}
