//! What clients say over a connection: gRPC, health, reflection, JSON on either HTTP, tokens.

use super::stage::{Client, Open, descriptor, frame, hits, request, tokens};
use bytes::Bytes;
use prost::Message;
use prost_reflect::DescriptorPool;
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
};
use tollgate_service::rls::messages::{Code, RateLimitResponse};

const DOMAIN: &str =
    "domain: d\ndescriptors: [ { key: k, rate_limit: { unit: hour, requests_per_unit: 2, name: n } } ]";

/// A message whose first field is a text.
fn named(text: &str) -> Bytes {
    frame(&text.to_owned())
}

#[tokio::test]
async fn many_calls_go_over_one_connection() {
    let open = Open::start(DOMAIN, |_| ());
    let client = open.client().await;
    for expected in [Code::Ok, Code::Ok, Code::OverLimit] {
        let told = client.ask(&request([descriptor(&[("k", "v")])])).await.expect("an answer");
        assert_eq!(told.overall_code(), expected);
    }
    let asked = request([hits(&[("k", "w")], 1)]);
    let (one, two) = (client.ask(&asked), client.ask(&asked));
    let (one, two) = tokio::join!(one, two);
    let mut left = [one, two].map(|told| told.expect("an answer").statuses[0].limit_remaining);
    left.sort_unstable();
    assert_eq!(left, [0, 1]);
}

#[tokio::test]
async fn a_call_that_makes_no_sense_is_told_so() {
    let open = Open::start(DOMAIN, |_| ());
    let client = open.client().await;
    let ended = client.ask(&request([])).await.expect_err("no descriptors");
    assert_eq!(
        (ended.code.as_str(), ended.message.as_str()),
        ("3", "rate limit descriptor list must not be empty")
    );
    let ended = client.call(Client::head("/no.such/Method"), named("")).await.expect("an end");
    assert_eq!((ended.code.as_str(), ended.message.as_str()), ("12", "there is no method /no.such/Method"));
    let told = client.ask(&request([descriptor(&[("k", "v")])])).await;
    assert!(told.is_ok(), "the connection is good for more");
}

/// Envoy sends what a header holds, and takes an error for a yes: nobody may get one by sending such bytes.
#[tokio::test]
async fn bytes_that_are_no_text_are_limited_like_any_others() {
    let open = Open::start(DOMAIN, |_| ());
    let client = open.client().await;
    let ask = async |value: u8| {
        // The domain d, and a descriptor of one entry: k, and this byte.
        let message = [b"\0\0\0\0\x0d\x0a\x01d\x12\x08\x0a\x06\x0a\x01k\x12\x01", &[value][..]].concat();
        let head = Client::head(super::stage::SHOULD_RATE_LIMIT);
        let ended = client.call(head, message.into()).await.expect("an end");
        assert_eq!(ended.code, "0", "{}", ended.message);
        RateLimitResponse::decode(&ended.messages[5..]).expect("a message").overall_code()
    };
    for expected in [Code::Ok, Code::Ok, Code::OverLimit] {
        assert_eq!(ask(0xff).await, expected);
    }
    assert_eq!(ask(0xfe).await, Code::Ok, "other bytes are another bucket");
    assert_eq!(ask(b'v').await, Code::Ok);
}

#[tokio::test]
async fn health_is_told_by_name() {
    let open = Open::start(DOMAIN, |settings| settings.tokens = tokens(&["word"]));
    let client = open.client().await;
    for service in ["", "ratelimit"] {
        let ended =
            client.call(Client::head("/grpc.health.v1.Health/Check"), named(service)).await.expect("an end");
        assert_eq!((ended.code.as_str(), &ended.messages[..]), ("0", &[0, 0, 0, 0, 2, 8, 1][..]), "serving");
    }
    let ended = client.call(Client::head("/grpc.health.v1.Health/Check"), named("x")).await.expect("an end");
    assert_eq!(ended.code, "5");
}

#[tokio::test]
async fn reflection_has_every_file_that_is_needed() {
    let open = Open::start(DOMAIN, |_| ());
    let client = open.client().await;
    for version in ["v1", "v1alpha"] {
        let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
        // list_services, and file_containing_symbol.
        let list = frame(&prost_list(7, "*"));
        let ended = client.call(Client::head(&path), list).await.expect("an end");
        let text = String::from_utf8_lossy(&ended.messages).into_owned();
        assert!(text.contains("envoy.service.ratelimit.v3.RateLimitService"), "{text}");
        assert!(text.contains("grpc.health.v1.Health"), "{text}");

        let symbol = frame(&prost_list(4, "envoy.service.ratelimit.v3.RateLimitService"));
        let ended = client.call(Client::head(&path), symbol).await.expect("an end");
        let response = Reflected::decode(&ended.messages[5..]).expect("a response");
        let mut pool = DescriptorPool::new();
        let mut files: Vec<Vec<u8>> = response.files.expect("files").files;
        // Imports come after what needs them.
        files.reverse();
        for _ in 0..files.len() {
            files.retain(|file| pool.decode_file_descriptor_proto(&**file).is_err());
        }
        assert!(files.is_empty(), "all imports are there");
        assert!(pool.get_service_by_name("envoy.service.ratelimit.v3.RateLimitService").is_some());

        let unknown = frame(&prost_list(4, "no.such.Symbol"));
        let ended = client.call(Client::head(&path), unknown).await.expect("an end");
        assert!(String::from_utf8_lossy(&ended.messages).contains("there is no such symbol"));
    }
}

#[derive(Clone, PartialEq, Message)]
struct Reflected {
    #[prost(message, optional, tag = "4")]
    files: Option<Files>,
}

#[derive(Clone, PartialEq, Message)]
struct Files {
    #[prost(bytes = "vec", repeated, tag = "1")]
    files: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct Reflecting {
    #[prost(string, optional, tag = "4")]
    symbol: Option<String>,
    #[prost(string, optional, tag = "7")]
    list: Option<String>,
}

fn prost_list(tag: u32, text: &str) -> Reflecting {
    let text = Some(text.to_owned());
    if tag == 4 { Reflecting { symbol: text, list: None } } else { Reflecting { symbol: None, list: text } }
}

#[tokio::test]
async fn a_token_is_asked_for_where_there_are_some() {
    let open = Open::start(DOMAIN, |settings| settings.tokens = tokens(&["word"]));
    let client = open.client().await;
    let ended = client.ask(&request([descriptor(&[("k", "v")])])).await.expect_err("no token");
    assert_eq!(ended.code, "16");
    for (given, code) in
        [("Bearer word", "0"), ("bearer word", "0"), ("Bearer wort", "16"), ("word", "16"), ("", "16")]
    {
        let mut head = Client::head(super::stage::SHOULD_RATE_LIMIT);
        head.headers_mut().insert("authorization", given.parse().expect("a value"));
        let ended = client.call(head, frame(&request([descriptor(&[("k", "v")])]))).await.expect("an end");
        assert_eq!(ended.code, code, "{given}");
    }
}

/// Says something in HTTP/1.1, and reads the answer.
fn say(address: SocketAddr, head: &str, body: &str) -> String {
    say_with(address, head, "accept: */*", body)
}

/// The same, with another header.
fn say_with(address: SocketAddr, head: &str, header: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let length = body.len();
    let text = format!(
        "{head} HTTP/1.1\r\nhost: x\r\n{header}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).expect("said");
    let mut heard = String::new();
    stream.read_to_string(&mut heard).expect("heard");
    heard
}

#[tokio::test]
async fn the_same_question_in_json() {
    let open = Open::start(DOMAIN, |_| ());
    let body = r#"{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}],"hits_addend":"2"}]}"#;
    let heard = say(open.address, "POST /json", body);
    assert!(heard.starts_with("HTTP/1.1 200 OK"), "{heard}");
    let told: serde_json::Value =
        serde_json::from_str(heard.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
    assert_eq!(told["overallCode"], "OK");
    let limit = &told["statuses"][0]["currentLimit"];
    assert_eq!(
        (&limit["requestsPerUnit"], &limit["unit"], &limit["name"]),
        (&2.into(), &"HOUR".into(), &"n".into())
    );
    assert!(told["statuses"][0]["durationUntilReset"].as_str().expect("text").ends_with('s'));

    let heard = say(open.address, "POST /json", body);
    assert!(heard.starts_with("HTTP/1.1 429") && heard.contains("\"OVER_LIMIT\""), "{heard}");
    for (head, body, told) in [
        ("POST /json", "{", "400"),
        ("POST /json", "{}", "400"),
        ("GET /json", "", "405"),
        ("GET /elsewhere", "", "404"),
        ("GET /healthcheck", "", "200"),
    ] {
        let heard = say(open.address, head, body);
        assert!(heard.starts_with(&format!("HTTP/1.1 {told}")), "{head}: {heard}");
    }

    let client = open.client().await;
    let head = http::Request::post("http://x/json").body(()).expect("a head");
    let ended = client.call(head, Bytes::from(body)).await.expect("an end");
    assert!(String::from_utf8_lossy(&ended.messages).contains("\"OVER_LIMIT\""), "HTTP/2 as well");
}

#[tokio::test]
async fn pages_in_a_browser_may_not_ask() {
    let open = Open::start(DOMAIN, |_| ());
    let body = r#"{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}"#;
    for (header, told) in [
        ("origin: http://elsewhere.example", "403"),
        ("origin: null", "403"),
        ("sec-fetch-site: cross-site", "403"),
        ("sec-fetch-site: none", "200"),
        ("content-type: application/x-www-form-urlencoded", "200"),
    ] {
        let heard = say_with(open.address, "POST /json", header, body);
        assert!(heard.starts_with(&format!("HTTP/1.1 {told}")), "{header}: {heard}");
    }
    assert!(say(open.address, "POST /json", body).starts_with("HTTP/1.1 429"), "two passed, and no more");
}

#[tokio::test]
async fn json_needs_a_token_too() {
    let open = Open::start(DOMAIN, |settings| settings.tokens = tokens(&["word"]));
    assert!(say(open.address, "POST /json", "{}").starts_with("HTTP/1.1 401"));
    assert!(say(open.address, "GET /healthcheck", "").starts_with("HTTP/1.1 200"));
}
