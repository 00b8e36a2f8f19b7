//! HTTP/2 on either side.

use crate::stage::{
    Origin, PATIENCE, connect, gateway, gateway_with, get, raw, read_head, scripted, settings, status, until,
    upstream,
};
use bytes::Bytes;
use http::{Request, Version};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::{net::SocketAddr, sync::atomic::Ordering::SeqCst, time::Duration};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

async fn client(address: SocketAddr) -> http2::SendRequest<Full<Bytes>> {
    client_with(address, http2::Builder::new(TokioExecutor::new())).await
}

/// One that takes so many bytes of an answer, and as many again for those it has read.
async fn client_with_window(address: SocketAddr, bytes: u32) -> http2::SendRequest<Full<Bytes>> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(bytes);
    client_with(address, builder).await
}

async fn client_with(
    address: SocketAddr,
    builder: http2::Builder<TokioExecutor>,
) -> http2::SendRequest<Full<Bytes>> {
    let io = TokioIo::new(connect(address).await);
    let (sender, connection) = builder.handshake(io).await.expect("HTTP/2");
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
    settings.workers = std::num::NonZeroUsize::MIN;
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
    assert_eq!(drained, tollgate_net::Drained::Empty);
    assert_eq!(io.await.expect("a task"), 5_000_000);
    assert!(sender.ready().await.is_err() || sender.send_request(request("/", "")).await.is_err());
}

/// A client that opens no window leaves its socket writable: the answer waits all the same, and holds what it holds.
#[tokio::test]
async fn streams_of_which_nothing_is_taken_are_reset() {
    let origin = Origin::start("a").await;
    let mut settings = settings();
    settings.limits.write_timeout = Duration::from_millis(300);
    let gateway = gateway_with(settings, upstream(&[origin.url()]));
    let mut sender = client_with_window(gateway.local_addr(), 0).await;
    let mut answers = Vec::new();
    for _ in 0..10 {
        answers.push(sender.send_request(request("/bytes/1000000", "")).await.expect("an answer"));
    }
    for answer in answers {
        let body = tokio::time::timeout(PATIENCE, answer.into_body().collect()).await.expect("an end");
        assert!(body.is_err(), "a body without a window");
    }
    until("all are let go", || gateway.gauges().in_flight == 0).await;
    let answer = sender.send_request(request("/length", "")).await.expect("the connection goes on");
    assert_eq!(answer.status().as_u16(), 200);
    assert_eq!(gateway.gauges().connections, 1);
}

#[tokio::test]
async fn who_takes_a_little_now_and_then_gets_everything() {
    const SIZE: usize = 100_000;
    let origin = Origin::start("a").await;
    let mut settings = settings();
    settings.limits.write_timeout = Duration::from_secs(2);
    let gateway = gateway_with(settings, upstream(&[origin.url()]));
    let mut sender = client_with_window(gateway.local_addr(), 1_000).await;
    let answer = sender.send_request(request(&format!("/bytes/{SIZE}"), "")).await.expect("an answer");
    let (mut body, mut read) = (answer.into_body(), 0);
    while let Some(frame) = body.frame().await {
        read += frame.expect("the next bytes").data_ref().map_or(0, Bytes::len);
        // Twice as long as nothing may be taken, for less than the gateway reads at once.
        if read < SIZE / 6 {
            tokio::time::sleep(Duration::from_millis(120)).await;
        }
    }
    assert_eq!(read, SIZE);
}

#[tokio::test]
async fn an_answer_that_has_nothing_to_send_may_rest() {
    let address = scripted(|mut socket, _| async move {
        read_head(&mut socket).await;
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst").await;
        // Longer than an answer may lie there without being taken.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let _ = socket.write_all(b"later").await;
    })
    .await;
    let mut settings = settings();
    settings.limits.write_timeout = Duration::from_millis(200);
    let gateway = gateway_with(settings, upstream(&[format!("http://{address}")]));
    let mut sender = client(gateway.local_addr()).await;
    let answer = sender.send_request(request("/", "")).await.expect("an answer");
    assert_eq!(answer.into_body().collect().await.expect("all of it").to_bytes(), "firstlater");
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

#[tokio::test]
async fn heads_of_many_headers_are_refused() {
    let origin = Origin::start("a").await;
    let gateway = gateway(&[origin.url()]);
    let mut sender = client(gateway.local_addr()).await;
    for (many, expected) in [(90, 200), (101, 431)] {
        let mut request = request("/", "");
        for i in 0..many {
            let name = http::HeaderName::try_from(format!("x-{i}")).expect("a name");
            request.headers_mut().insert(name, http::HeaderValue::from_static("y"));
        }
        let answer = sender.send_request(request).await.expect("an answer");
        assert_eq!(answer.status().as_u16(), expected, "{many}");
    }
    assert_eq!(origin.requests.load(SeqCst), 1);
}

#[tokio::test]
async fn cookies_that_come_one_by_one_are_one_line() {
    let origin = Origin::start("a").await;
    let gateway = gateway(&[origin.url()]);
    let mut sender = client(gateway.local_addr()).await;
    let mut request = request("/headers", "");
    for i in 0..150 {
        let cookie = http::HeaderValue::try_from(format!("c{i}={i}")).expect("a cookie");
        request.headers_mut().append(http::header::COOKIE, cookie);
    }
    let answer = sender.send_request(request).await.expect("an answer");
    let head = answer.into_body().collect().await.expect("a body").to_bytes();
    let head = String::from_utf8_lossy(&head).into_owned();
    assert!(head.contains("cookie: c0=0; c1=1; c2=2;") && head.contains("; c149=149\n"), "{head}");
}
