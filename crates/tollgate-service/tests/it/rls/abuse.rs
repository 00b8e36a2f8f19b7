//! What nobody means well with: it costs the one who sends it, and nobody else.

use super::stage::{Client, Open, SHOULD_RATE_LIMIT, descriptor, frame, request, tokens};
use bytes::Bytes;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

const DOMAIN: &str =
    "domain: d\ndescriptors: [ { key: k, rate_limit: { unit: hour, requests_per_unit: 100000 } } ]";

/// Long enough on any machine.
const LONG: Duration = Duration::from_secs(20);

async fn is_served(open: &Open) {
    let client = open.client().await;
    let told = timeout(LONG, client.ask(&request([descriptor(&[("k", "v")])]))).await;
    told.expect("in time").expect("an answer");
}

#[tokio::test]
async fn messages_that_are_too_long_damaged_or_compressed() {
    let open = Open::start(DOMAIN, |settings| settings.max_message = 1_000);
    let client = open.client().await;
    let long = request([descriptor(&[("k", &"x".repeat(2_000))])]);
    for (body, code) in [
        (frame(&long), "8"),
        (Bytes::from_static(&[1, 0, 0, 0, 0]), "12"),
        (Bytes::from_static(&[0, 0, 0, 0, 3, 255, 255, 255]), "3"),
        (Bytes::from_static(&[0, 0, 0, 0, 9, 1]), "3"),
        (Bytes::new(), "3"),
    ] {
        let ended = client.call(Client::head(SHOULD_RATE_LIMIT), body.clone()).await.expect("an end");
        assert_eq!(ended.code, code, "{body:?}");
    }
    is_served(&open).await;
}

/// Anybody may ask how it is, so nobody has to listen to much of it; and who may not ask is not listened to at all.
#[tokio::test]
async fn strangers_have_little_room() {
    let open = Open::start(DOMAIN, |settings| settings.tokens = tokens(&["word"]));
    let client = open.client().await;
    for method in ["Check", "Watch"] {
        let head = Client::head(&format!("/grpc.health.v1.Health/{method}"));
        let ended = client.call(head, frame(&"x".repeat(2_000))).await.expect("an end");
        assert_eq!(ended.code, "8", "{method}: {}", ended.message);
    }
    // Nothing of these bodies comes, and yet there is an answer.
    let head = "POST /json HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n";
    let mut stream = TcpStream::connect(open.address).await.expect("it listens");
    stream.write_all(head.as_bytes()).await.expect("said");
    let mut heard = [0; 12];
    timeout(LONG, stream.read_exact(&mut heard)).await.expect("in time").expect("an answer");
    assert_eq!(&heard, b"HTTP/1.1 401");
    let mut sender = client.sender.clone().ready().await.expect("ready");
    let head = http::Request::post("http://x/json").body(()).expect("a head");
    let (response, _stream) = sender.send_request(head, false).expect("sent");
    let response = timeout(LONG, response).await.expect("in time").expect("an answer");
    assert_eq!(response.status(), 401);
}

#[tokio::test]
async fn only_so_many_long_messages_are_read_at_once() {
    let open = Open::start(DOMAIN, |settings| settings.patience = LONG);
    let client = open.client().await;
    // The heads of messages of 64 KiB, and a little of them.
    let begun = Bytes::from_static(&[0, 0, 1, 0, 0, 10]);
    let mut calls = Vec::new();
    let refused = loop {
        let mut sender = client.sender.clone().ready().await.expect("ready");
        let (mut response, mut stream) =
            sender.send_request(Client::head(SHOULD_RATE_LIMIT), false).expect("sent");
        stream.send_data(begun.clone(), false).expect("sent");
        // None of those that are read has an answer.
        if let Ok(response) = timeout(Duration::from_millis(20), &mut response).await {
            break response.expect("an end");
        }
        calls.push((response, stream));
        assert!(calls.len() < 1_000, "there is no end to it");
    };
    assert!(calls.len() >= 64);
    assert_eq!(refused.headers()["grpc-status"], "14", "{refused:?}");
    // Short ones are read all the same.
    is_served(&open).await;
    drop(calls);
    let long = request([descriptor(&[("k", &"x".repeat(100_000))])]);
    testkit::eventually_async("room for a long one", || async { client.ask(&long).await.ok() }).await;
}

#[tokio::test]
async fn heads_that_are_too_long() {
    let open = Open::start(DOMAIN, |settings| settings.max_header = 4_096);
    let client = open.client().await;
    let mut head = Client::head(SHOULD_RATE_LIMIT);
    head.headers_mut().insert("x-long", "y".repeat(100_000).parse().expect("a value"));
    let ended = timeout(LONG, client.call(head, frame(&request([descriptor(&[("k", "v")])])))).await;
    if let Ok(Ok(ended)) = ended {
        assert_ne!(ended.code, "0");
    }
    is_served(&open).await;
}

#[tokio::test]
async fn a_client_that_opens_and_resets_is_not_served_any_longer() {
    let open = Open::start(DOMAIN, |_| ());
    let mut stream = TcpStream::connect(open.address).await.expect("it listens");
    // The preface, settings, then heads and resets of ever new streams in one piece.
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    for place in 0..2_000_u32 {
        let id = (2 * place + 1).to_be_bytes();
        // :method POST, :scheme http, :path /, as the static table has them.
        bytes.extend([0, 0, 3, 1, 4]);
        bytes.extend(id);
        bytes.extend([0x83, 0x86, 0x84]);
        bytes.extend([0, 0, 4, 3, 0]);
        bytes.extend(id);
        bytes.extend(8_u32.to_be_bytes());
    }
    // It may close before it has heard all of it.
    let _ = stream.write_all(&bytes).await;
    let mut heard = Vec::new();
    let ended = timeout(LONG, stream.read_to_end(&mut heard)).await;
    assert!(ended.is_ok(), "the connection was closed");
    is_served(&open).await;
}

#[tokio::test]
async fn slow_clients_are_let_go() {
    let open = Open::start(DOMAIN, |settings| settings.patience = Duration::from_millis(200));
    for said in
        ["", "PRI", "GET /healthcheck HTTP/1.1\r\nhost:", "POST /json HTTP/1.1\r\ncontent-length: 9\r\n\r\n{"]
    {
        let mut stream = TcpStream::connect(open.address).await.expect("it listens");
        stream.write_all(said.as_bytes()).await.expect("said");
        let mut heard = Vec::new();
        timeout(LONG, stream.read_to_end(&mut heard)).await.expect("it was closed").expect("read");
    }
    // A call whose message does not come.
    let client = open.client().await;
    let mut sender = client.sender.clone().ready().await.expect("ready");
    let (response, mut stream) = sender.send_request(Client::head(SHOULD_RATE_LIMIT), false).expect("sent");
    stream.send_data(Bytes::from_static(&[0, 0, 0]), false).expect("sent");
    let response = timeout(LONG, response).await.expect("in time").expect("an end");
    assert_eq!(response.headers()["grpc-status"], "4");
    is_served(&open).await;
}

#[tokio::test]
async fn a_client_that_says_nothing_more_is_asked_whether_it_is_there() {
    let open = Open::start(DOMAIN, |settings| settings.idle = Duration::from_millis(100));
    let client = open.client().await;
    client.ask(&request([descriptor(&[("k", "v")])])).await.expect("an answer");
    // Longer than several of the times after which it is asked.
    tokio::time::sleep(Duration::from_millis(600)).await;
    client.ask(&request([descriptor(&[("k", "v")])])).await.expect("it answered, and is served");
}
