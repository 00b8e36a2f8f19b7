//! The door as a server: who is let in, what is not taken, and what slow or broken clients do to others.

use super::stage::{LONG, RULES, memory, memory_with};
use std::{
    io::{Read, Write},
    net::Shutdown,
    num::NonZeroUsize,
    time::{Duration, Instant},
};
use tollgate_net::Tokens;
use tollgate_service::JsonSettings;

const CHECK: &str = r#"{"limit":"per-client","key":"a"}"#;

#[test]
fn unknown_paths_and_methods_are_told_what_there_is() {
    let (stage, _) = memory();
    let mut client = stage.client();
    let told = client.request("GET", "/v1/chek");
    assert_eq!(
        (told.status, &*told.detail()),
        (404, "there is nothing under this path; did you mean /v1/check?")
    );
    let told = client.request("GET", "/");
    assert_eq!(
        (told.status, &*told.detail()),
        (404, "there is nothing under this path; GET /openapi.json tells what there is")
    );
    for (method, path, allow) in [
        ("GET", "/v1/check", "POST"),
        ("PUT", "/v1/permits", "POST"),
        ("POST", "/v1/limits", "GET, HEAD"),
        ("DELETE", "/healthz", "GET, HEAD"),
        ("POST", "/openapi.json", "GET, HEAD"),
        ("GET", "/v1/permits/x", "PUT, DELETE"),
    ] {
        let told = client.request(method, path);
        assert_eq!((told.status, told.header("allow")), (405, Some(allow)), "{method} {path}");
        assert_eq!(told.detail(), format!("this path takes {allow}"));
    }
    assert_eq!(client.request("HEAD", "/healthz").status, 200);
    assert_eq!(client.request("GET", "/healthz").body, r#"{"status":"ok"}"#);
    assert_eq!(client.request("GET", "/v1/limits?x=1").status, 200);
}

#[test]
fn what_is_not_said_to_be_json_is_not_read() {
    let (stage, _) = memory();
    for kind in ["", "content-type: text/plain\r\n", "content-type: application/x-www-form-urlencoded\r\n"] {
        let mut client = stage.client();
        client
            .send(&format!("POST /v1/check HTTP/1.1\r\nhost: x\r\n{kind}content-length: 32\r\n\r\n{CHECK}"));
        let told = client.told().expect("an answer");
        assert_eq!(told.status, 415);
        assert_eq!(
            told.detail(),
            "send JSON and say so: `content-type: application/json` (with curl: --json)"
        );
    }
    let mut client = stage.client();
    client.send(&format!(
        "POST /v1/check HTTP/1.1\r\nhost: x\r\nContent-Type: Application/JSON; charset=utf-8\r\ncontent-length: {}\r\n\r\n{CHECK}",
        CHECK.len()
    ));
    assert_eq!(client.told().expect("an answer").status, 200);
}

#[test]
fn without_the_word_nobody_is_let_in() {
    let mut settings = JsonSettings::default();
    settings.tokens = Tokens::new(["open sesame".to_owned(), "second".to_owned()]);
    let (stage, _) = memory_with(RULES, settings);
    let ask = |authorization: &str| {
        let mut client = stage.client();
        client.send(&format!(
            "POST /v1/check HTTP/1.1\r\nhost: x\r\n{authorization}content-type: application/json\r\ncontent-length: {}\r\n\r\n{CHECK}",
            CHECK.len()
        ));
        client.told().expect("an answer")
    };
    for word in ["Bearer open sesame", "bearer second"] {
        assert_eq!(ask(&format!("authorization: {word}\r\n")).status, 200);
    }
    for word in [
        "",
        "authorization: Basic second\r\n",
        "authorization: Bearer secon\r\n",
        "authorization: Bearer \r\n",
    ] {
        let told = ask(word);
        assert_eq!(
            (told.status, told.header("www-authenticate")),
            (401, Some("Bearer realm=\"tollgate\"")),
            "{word}"
        );
    }
    let mut client = stage.client();
    for path in ["/v1/limits", "/v1/permits/x", "/nothing"] {
        assert_eq!(client.request("GET", path).status, 401, "{path}");
    }
    assert_eq!(client.request("GET", "/healthz").status, 200);
    assert_eq!(client.request("GET", "/openapi.json").status, 200);
    assert_eq!(stage.decisions.store().keys(), 1);
}

#[test]
fn a_body_that_is_too_long_is_refused() {
    let mut settings = JsonSettings::default();
    settings.max_body = 1000;
    let (stage, _) = memory_with(RULES, settings);
    let long = format!(r#"{{"limit":"per-client","key":"{}"}}"#, "x".repeat(1000));
    let told = stage.post("/v1/check", &long);
    assert_eq!(
        (told.status, &*told.detail()),
        (413, "the body is longer than 1000 bytes; ask for less at once")
    );
    // Without saying so beforehand.
    let mut client = stage.client();
    client.send("POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n");
    client.send(&format!("{:x}\r\n{long}\r\n0\r\n\r\n", long.len()));
    assert_eq!(client.told().expect("an answer").status, 413);
    assert_eq!(stage.post("/v1/check", CHECK).status, 200);
}

#[test]
fn whoever_sends_too_long_a_body_hears_so_while_still_sending() {
    let mut settings = JsonSettings::default();
    settings.max_body = 1_000_000;
    let (stage, _) = memory_with(RULES, settings);
    let long = format!(r#"{{"limit":"per-client","key":"{}"}}"#, "x".repeat(1_900_000));
    for _ in 0..10 {
        assert_eq!(stage.post("/v1/check", &long).status, 413);
    }
    // Who waits to be asked for it is not.
    let mut client = stage.client();
    client.send("POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ncontent-length: 1900000\r\n\r\n");
    assert_eq!(client.told().expect("an answer").status, 413);
}

#[test]
fn a_body_in_pieces_is_one_body() {
    let (stage, _) = memory();
    let mut client = stage.client();
    client.send("POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n");
    for piece in CHECK.as_bytes().chunks(5) {
        client.send(&format!("{:x}\r\n{}\r\n", piece.len(), std::str::from_utf8(piece).expect("text")));
        // So that they come one by one.
        std::thread::sleep(Duration::from_millis(1));
    }
    client.send("0\r\n\r\n");
    assert_eq!(client.told().expect("an answer").json()["remaining"], 99);
}

#[test]
fn questions_in_a_row_are_answered_in_their_order() {
    let (stage, _) = memory();
    let mut client = stage.client();
    let one = format!(
        "POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{CHECK}",
        CHECK.len()
    );
    client.send(&one.repeat(50));
    for left in (50..100).rev() {
        assert_eq!(client.told().expect("an answer").json()["remaining"], left);
    }
}

#[test]
fn slow_and_silent_clients_are_let_go_and_others_are_not_harmed() {
    let mut settings = JsonSettings::default();
    settings.header_timeout = Duration::from_millis(300);
    settings.idle_timeout = Duration::from_millis(600);
    let (stage, _) = memory_with(RULES, settings);
    let (mut silent, mut slow, mut stuck) = (stage.client(), stage.client(), stage.client());
    slow.send("POST /v1/check HT");
    stuck.send(
        "POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 32\r\n\r\n{",
    );
    let begun = Instant::now();
    assert_eq!(stage.post("/v1/check", CHECK).status, 200);
    let told = stuck.told().expect("an answer");
    assert_eq!((told.status, &*told.detail()), (408, "the body did not come within 300ms"));
    assert!(slow.told().is_none() && silent.told().is_none(), "closed");
    assert!(begun.elapsed() < LONG / 2);
    assert_eq!(stage.post("/v1/check", CHECK).status, 200);
}

#[test]
fn nonsense_is_answered_or_closed_and_others_are_not_harmed() {
    let (stage, _) = memory();
    let huge = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(200_000));
    let many = format!("GET /healthz HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(5_000));
    let both = format!(
        "POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\ncontent-type: application/json\r\n\r\n{CHECK}"
    );
    for nonsense in [
        "\r\n\r\n\r\n",
        "\0\0\0\0",
        "*3\r\n$4\r\nPING\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nxxxxxxxxxxxxxxxxxx",
        &huge,
        &many,
        &both,
    ] {
        let mut client = stage.client();
        let _ = client.stream.get_mut().write_all(nonsense.as_bytes());
        let _ = client.stream.get_ref().shutdown(Shutdown::Write);
        let mut told = Vec::new();
        let _ = client.stream.read_to_end(&mut told);
        let told = String::from_utf8_lossy(&told);
        assert!(!told.contains("HTTP/1.1 200"), "{told}");
        assert_eq!(stage.post("/v1/check", r#"{"limit":"login","cost":0}"#).status, 200);
    }
}

#[test]
fn a_client_that_says_no_more_is_answered_still() {
    let (stage, _) = memory();
    let mut client = stage.client();
    client.send_post("/v1/check", CHECK);
    client.stream.get_ref().shutdown(Shutdown::Write).expect("half closed");
    assert_eq!(client.told().expect("an answer").status, 200);
}

#[test]
fn above_the_most_at_once_the_answer_is_503() {
    let mut settings = JsonSettings::default();
    settings.max_in_flight = NonZeroUsize::MIN;
    let (stage, _) = memory_with(RULES, settings);
    let mut stuck = stage.client();
    stuck.send(
        "POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 32\r\n\r\n{",
    );
    testkit::eventually("it is full", || ((stage.in_flight)() == 1).then_some(()));
    let told = stage.post("/v1/check", CHECK);
    assert_eq!(told.status, 503);
    assert_eq!(told.detail(), "too many requests are being answered at once; please try again");
    assert!(told.body.contains("#temporary-reduced-capacity"), "{told:?}");
    assert_eq!(stage.client().request("GET", "/healthz").status, 200);
    drop(stuck);
    testkit::eventually("there is room again", || {
        (stage.post("/v1/check", CHECK).status == 200).then_some(())
    });
}

#[test]
fn a_head_that_is_none_is_answered_400_and_not_only_closed() {
    let (stage, _) = memory();
    for head in [
        "POST /v1/check HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ncontent-length: 4\r\n",
        "POST /v1/check HTTP/1.1\r\nhost : a\r\n",
        "nonsense\r\n",
    ] {
        let mut client = stage.client();
        client.send(&format!("{head}\r\n{{}} and what follows"));
        assert_eq!(client.told().expect("an answer").status, 400, "{head:?}");
    }
}

#[test]
fn a_head_that_could_be_read_in_two_ways_is_answered_400() {
    let (stage, _) = memory();
    let host = "the request's host is malformed";
    let repeated = "the request has Host, Authorization, Content-Type or Content-Length more than once";
    for (headers, detail) in [
        ("", "the request names no host"),
        ("host: \r\n", host),
        ("host: a b\r\n", host),
        ("host: a/../b\r\n", host),
        ("host: <script>\r\n", host),
        ("host: [::1\r\n", host),
        ("host: a,b\r\n", host),
        ("host: u@a\r\n", host),
        ("host: a\r\nhost: b\r\n", repeated),
        ("host: a\r\nauthorization: Bearer a\r\nauthorization: Bearer b\r\n", repeated),
        ("host: a\r\ncontent-type: text/plain\r\n", repeated),
    ] {
        for target in ["POST /v1/check", "POST /nowhere", "GET /healthz"] {
            let mut client = stage.client();
            let length = CHECK.len();
            client.send(&format!(
                "{target} HTTP/1.1\r\n{headers}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{CHECK}"
            ));
            let told = client.told().expect("an answer");
            assert_eq!((told.status, &*told.detail()), (400, detail), "{target} {headers:?}");
        }
    }
}
