//! Attempts to dodge rules: the same resource or the same caller in another spelling. What counts is what arrives upstream:
//! every request either meets the same bucket as the plain one, or is answered 400 and arrives nowhere.

use crate::{
    http2::{TRAILERS, recording},
    stage::{Stage, Still},
};
use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    num::NonZeroUsize,
    sync::Arc,
    time::Duration,
};
use testkit::{App, Upstream};
use tollgate::{Bounds, ManualClock, MemoryStore};

/// Sends these bytes, ends its side, and reads all that comes back.
fn raw(address: SocketAddr, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(address).expect("a gateway that listens");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket with a timeout");
    socket.write_all(bytes).expect("bytes that can be sent");
    let mut answer = Vec::new();
    // A connection that is reset after its answer has been read to its end all the same.
    let _ = socket.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn status(answer: &str) -> u16 {
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    code.unwrap_or_else(|| panic!("no status in {answer:?}"))
}

/// The status for a request with this target and these header lines.
fn ask(address: SocketAddr, target: &str, lines: &str) -> u16 {
    status(&ask_text(address, target, lines))
}

fn ask_text(address: SocketAddr, target: &str, lines: &str) -> String {
    raw(address, format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{lines}\r\n").as_bytes())
}

/// A gateway whose clock stands still, in front of an upstream that answers everything.
pub(crate) fn open(rules: &str) -> Stage<Still> {
    let store = MemoryStore::with_clock(Bounds::default(), ManualClock::new());
    Stage::with(Arc::new(store), rules, NonZeroUsize::MAX, Upstream::ok())
}

/// One request an hour for what the key says, on `/api/login` or everywhere.
pub(crate) fn once_by(key: &str) -> String {
    format!(
        "routes: [ {{ name: all, upstream: up, rules: [ {{ name: only, limits: [ \
         {{ fixed_window: {{ limit: 1, window: 1h }}, key: [\"{key}\"], missing: share }} ] }} ] }} ]\n"
    )
}

pub(crate) const LOGIN: &str = "
routes:
  - name: login
    when: { path: /api/login }
    upstream: up
    rules: [ { name: once, limits: [ { fixed_window: { limit: 1, window: 1h }, key: [] } ] } ]
  - { name: rest, upstream: up }
";

fn targets(stage: &Stage<Still>) -> Vec<String> {
    stage.up.asked().iter().map(|asked| asked.target.clone()).collect()
}

#[test]
fn encoded_paths_meet_the_rules_of_the_plain_path() {
    let stage = open(LOGIN);
    assert_eq!(ask(stage.address(), "/api/login", ""), 200);
    for path in
        ["/api/%6cogin", "/api//login", "/api/./login", "/x/..//api/login", "/%61%70%69/%6C%6F%67%69%6E"]
    {
        assert_eq!(ask(stage.address(), path, ""), 429, "{path}");
    }
    for path in [
        "/api%2Flogin",
        "/api%2flogin",
        "/api%5Clogin",
        "/api\\login",
        "/api/login%00",
        "/api/%zz",
        "/api/%",
        "/api/%4",
        "/api/%ff",
        "/api/caf\u{e9}",
        "/api/login%0a",
        "/api/login%7F",
        "/x/..;/api/login",
        "/api/%2e;v=1/login",
    ] {
        assert_eq!(ask(stage.address(), path, ""), 400, "{path}");
    }
    assert_eq!(targets(&stage), ["/api/login"]);
}

#[test]
fn encoded_slashes_are_slashes_or_stay_encoded_as_the_file_says() {
    let stage = open(&format!("encoded_slash: decode\n{LOGIN}"));
    assert_eq!(ask(stage.address(), "/api%2Flogin?next=%2F", ""), 200);
    assert_eq!(ask(stage.address(), "/x%2F..%5Capi%2f%2Flogin", ""), 429);
    assert_eq!(targets(&stage), ["/api/login?next=%2F"]);

    let stage = open(&format!("encoded_slash: keep\n{LOGIN}"));
    assert_eq!(ask(stage.address(), "/api%2flogin", ""), 200);
    assert_eq!(ask(stage.address(), "/a%2F..%2Fapi", ""), 400, "dots behind a kept slash");
    assert_eq!(targets(&stage), ["/api%2Flogin"], "another resource to the rules, and to the upstream");
}

#[test]
fn the_upstream_gets_one_spelling_and_the_query_as_sent() {
    let stage = open("routes: [ { name: all, upstream: up } ]\n");
    for (sent, arrives) in [
        ("/users/%40me?a=%40&b=//..", "/users/@me?a=%40&b=//.."),
        ("/caf%c3%a9/%7e", "/caf%C3%A9/~"),
        ("/a%20b/100%25", "/a%20b/100%25"),
        ("/a;v=1/%3Bx", "/a;v=1/;x"),
        ("/%252F", "/%252F"),
    ] {
        assert_eq!(ask(stage.address(), sent, ""), 200, "{sent}");
        assert_eq!(targets(&stage).last().map(String::as_str), Some(arrives), "{sent}");
    }
}

#[test]
fn a_second_header_makes_no_fresh_bucket() {
    let stage = open(&once_by("header.x-api-key"));
    assert_eq!(ask(stage.address(), "/", "X-Api-Key: K\r\n"), 200);
    assert_eq!(ask(stage.address(), "/", "X-Api-Key: K\r\n"), 429);
    for second in ["X-Api-Key: x1", "x-api-key: K", "X-API-KEY:"] {
        assert_eq!(ask(stage.address(), "/", &format!("X-Api-Key: K\r\n{second}\r\n")), 400, "{second}");
    }
    assert_eq!(ask(stage.address(), "/", "X-Api-Key: L\r\nX_Api_Key: K\r\n"), 200);
    let asked = stage.up.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[1].header("x_api_key"), None, "what WSGI would take for the header is dropped");
}

#[test]
fn a_header_that_connection_takes_out_is_not_counted() {
    let stage = open(&once_by("header.x-api-key"));
    for connection in ["X-Api-Key", "close, x-api-key", "keep-alive,\tX-API-KEY ,te"] {
        let lines = format!("X-Api-Key: K\r\nConnection: {connection}\r\n");
        assert_eq!(ask(stage.address(), "/", &lines), 400, "{connection}");
    }
    assert_eq!(stage.up.asked().len(), 0);
    assert_eq!(ask(stage.address(), "/", "X-Api-Key: K\r\nConnection: x-other\r\n"), 200);

    let stage = open(&once_by("cookie.session"));
    assert_eq!(ask(stage.address(), "/", "Cookie: session=abc\r\nConnection: Cookie\r\n"), 400);
    assert_eq!(stage.up.asked().len(), 0);
}

#[test]
fn blanks_around_a_header_make_no_fresh_bucket() {
    for (header, value) in [("x-api-key", "K"), ("authorization", "Bearer K")] {
        let stage = open(&once_by(&format!("header.{header}")));
        let ask = |value: &[u8]| {
            let head = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{header}:");
            status(&raw(stage.address(), &[head.as_bytes(), value, b"\r\n\r\n"].concat()))
        };
        assert_eq!(ask(value.as_bytes()), 200);
        // As Latin-1 and as UTF-8, which applications strip.
        for blank in [&b" \t"[..], b"\xa0", b"\x85", "\u{a0}".as_bytes(), "\u{3000}".as_bytes()] {
            assert_eq!(ask(&[blank, value.as_bytes()].concat()), 429, "{blank:?}");
            assert_eq!(ask(&[value.as_bytes(), blank].concat()), 429, "{blank:?}");
        }
        assert_eq!(stage.up.asked().len(), 1);
    }
}

#[test]
fn one_of_several_headers_counts_where_the_file_says_so() {
    let stage = open(&format!("on_repeat: first\n{}", once_by("header.x-api-key")));
    assert_eq!(ask(stage.address(), "/", "X-Api-Key: K\r\nX-Api-Key: x1\r\n"), 200);
    assert_eq!(ask(stage.address(), "/", "X-Api-Key: K\r\nX-Api-Key: x2\r\n"), 429);
    let stage = open(&format!("on_repeat: last\n{}", once_by("query.id")));
    assert_eq!(ask(stage.address(), "/?id=1&id=7", ""), 200);
    assert_eq!(ask(stage.address(), "/?id=2&%69d=7", ""), 429);
}

#[test]
fn singleton_headers_are_given_once() {
    let stage = open(&once_by("header.authorization"));
    let lines = |second: &str| format!("Authorization: Bearer K\r\n{second}\r\n");
    assert_eq!(ask(stage.address(), "/", &lines("X: y")), 200);
    for second in ["Authorization: x1", "Authorization: Bearer K", "authorization: x2"] {
        assert_eq!(ask(stage.address(), "/", &lines(second)), 400, "{second}");
    }
    for spelling in ["bearer K", "BEARER K", "Bearer  K", "bearer \t K"] {
        assert_eq!(ask(stage.address(), "/", &format!("Authorization: {spelling}\r\n")), 429, "{spelling}");
    }
    for twice in ["Content-Type: a\r\nContent-Type: b\r\n", "Host: b\r\n"] {
        assert_eq!(ask(stage.address(), "/", twice), 400, "{twice}");
    }
    assert_eq!(stage.up.asked().len(), 1);
}

#[test]
fn spellings_of_basic_credentials_share_a_bucket() {
    let stage = open(&once_by("header.authorization"));
    let basic = |base64: &str| ask(stage.address(), "/", &format!("Authorization: Basic {base64}\r\n"));
    assert_eq!(basic("YTpiYw=="), 200);
    for spelling in ["YTpiYw", "YTpiYx==", "YTpiYz="] {
        assert_eq!(basic(spelling), 429, "{spelling}");
    }
    assert_eq!(basic("YTp!iYw=="), 200, "the bucket of those who send no base64");
    for spelling in ["Y!TpiYw==", "YTpi-Yw==", "YTpiYw==x"] {
        assert_eq!(basic(spelling), 429, "{spelling}");
    }
    assert_eq!(stage.up.asked().len(), 2);
}

#[test]
fn spellings_of_one_cookie_share_a_bucket() {
    let stage = open(&once_by("cookie.session"));
    assert_eq!(ask(stage.address(), "/", "Cookie: session=abc\r\n"), 200);
    for cookie in [
        "session=\"abc\"",
        "session=\"\\141bc\"",
        "session=%61bc",
        "a=b; session=abc ; c=d",
        "session=abc\u{a0}",
        "\u{2003}session=\u{3000}abc",
    ] {
        assert_eq!(ask(stage.address(), "/", &format!("Cookie: {cookie}\r\n")), 429, "{cookie}");
    }
    for cookies in ["Cookie: session=abc; session=x1\r\n", "Cookie: session=x1\r\nCookie: session=abc\r\n"] {
        assert_eq!(ask(stage.address(), "/", cookies), 400, "{cookies}");
    }
    assert_eq!(stage.up.asked().len(), 1);
}

#[test]
fn repeated_query_parameters_are_refused_where_a_rule_names_them() {
    let stage = open(&once_by("query.id"));
    assert_eq!(ask(stage.address(), "/?id=7&x=1&x=2", ""), 200);
    for query in ["id=7&id=8", "id=8&%69d=7", "i%64=7&x&id="] {
        assert_eq!(ask(stage.address(), &format!("/?{query}"), ""), 400, "{query}");
    }
    assert_eq!(stage.up.asked().len(), 1);
}

#[test]
fn hosts_and_targets_that_are_none_are_refused() {
    let stage = open("routes: [ { name: all, upstream: up } ]\n");
    for host in [
        "",
        "a b",
        "a/../b",
        "<script>",
        "[::1",
        "::1",
        "a, b",
        "user@a",
        "user:pw@a",
        "a/",
        "a?b",
        "a#b",
        "a:x",
        "a:",
        "a:99999",
        "[::g]",
        "[::1]x",
        "a\\b",
        "a%41",
        "\"a\"",
        "a;b",
        "a b:80",
        "http://a",
        "[v1.a]",
        "(a)",
        "a,b",
        "{a}",
        "a|b",
        "caf\u{e9}",
        "a..b",
        "a..",
    ] {
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        assert_eq!(status(&raw(stage.address(), request.as_bytes())), 400, "{host:?}");
    }
    for target in
        ["javascript:alert(1)", "user:pw@a", "http://user:pw@a/", "ftp://a/", "*", "a", "http://a b/"]
    {
        assert_eq!(ask(stage.address(), target, ""), 400, "{target}");
    }
    assert_eq!(stage.up.asked().len(), 0);
    for host in ["a", "A.example:8080", "a_b.c-d.", "[::1]", "[2001:db8::1]:443", "192.0.2.7"] {
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        assert_eq!(status(&raw(stage.address(), request.as_bytes())), 200, "{host:?}");
    }
}

#[test]
fn methods_that_are_not_for_a_gateway_say_which_are() {
    let stage = open("routes: [ { name: all, upstream: up } ]\n");
    let ask = |line: &str| {
        raw(stage.address(), format!("{line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes())
    };
    for line in ["TRACE /", "CONNECT a:80"] {
        let answer = ask(line);
        assert_eq!(status(&answer), 405, "{line}");
        assert!(answer.to_lowercase().contains("\r\nallow: get, head"), "{line}: {answer}");
    }
    for method in ["M".repeat(33).as_str(), "get", "Post", "pATCH"] {
        assert_eq!(status(&ask(&format!("{method} /"))), 501, "{method}");
    }
    let options = ask("OPTIONS *");
    assert_eq!(status(&options), 204, "{options}");
    assert!(options.to_lowercase().contains("\r\nallow: get, head"), "{options}");
    assert_eq!(stage.up.asked().len(), 0);
    assert_eq!(status(&ask("PROPFIND /")), 200);
}

#[test]
fn forwarding_headers_are_not_forged_by_another_spelling_or_as_trailers() {
    let stage = open(&once_by("header.x-user"));
    let lines = "X_Forwarded_For: 1.1.1.1\r\nX_FORWARDED_PROTO: gopher\r\nX-Forwarded_Host: evil\r\n";
    assert_eq!(ask(stage.address(), "/", &format!("{lines}X_Other: kept\r\n")), 200);
    let asked = stage.up.asked();
    for name in ["x_forwarded_for", "x_forwarded_proto", "x-forwarded_host"] {
        assert_eq!(asked[0].header(name), None, "{name}");
    }
    assert_eq!(asked[0].header("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(asked[0].header("x_other"), Some("kept"));

    let (url, recorded) = recording();
    let upstreams = format!("upstreams: {{ up: {{ servers: [ \"{url}\" ] }} }}\n");
    let stage = open(&format!("{upstreams}{}", once_by("header.x-user")));
    let trailers: String = TRAILERS.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let chunked = format!(
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: close, TE\r\nTE: trailers\r\nX-User: u\r\n\
         Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n{trailers}\r\n"
    );
    assert_eq!(status(&raw(stage.address(), chunked.as_bytes())), 200);
    let arrived = recorded.join().expect("a request");
    assert!(!arrived.contains("forged"), "{arrived}");
    assert!(arrived.ends_with("x-checksum: harmless\r\n\r\n"), "{arrived}");
}

/// What the applications say ran, and what they read, for every spelling that is let through.
#[test]
fn flask_and_node_see_what_the_rules_see() {
    for app in [App::flask(), App::node()] {
        let upstreams = format!("upstreams: {{ up: {{ servers: [ \"{}\" ] }} }}\n", app.url());
        let with = |rules: &str| open(&format!("{upstreams}{rules}"));

        let stage = with(LOGIN);
        let first = ask_text(stage.address(), "/api/login", "");
        assert!(first.contains("\"login\""), "{first}");
        for path in ["/api%2Flogin", "/api/%6cogin", "//api/login", "/api/x/../login", "/api%5clogin"] {
            let answer = ask_text(stage.address(), path, "");
            assert!(!answer.contains("\"login\""), "{path} runs the view unlimited: {answer}");
        }
        let decoding = with(&format!("encoded_slash: decode\n{LOGIN}"));
        assert!(ask_text(decoding.address(), "/api%2Flogin", "").contains("\"login\""));
        assert_eq!(ask(decoding.address(), "/api%2Flogin", ""), 429);

        let stage = with(&once_by("header.authorization"));
        assert!(ask_text(stage.address(), "/", "Authorization: Bearer K\r\n").contains("Bearer K"));
        for second in 0..3 {
            let lines = format!("Authorization: Bearer K\r\nAuthorization: x{second}\r\n");
            let answer = ask_text(stage.address(), "/", &lines);
            assert!(!answer.contains("Bearer K"), "the application read the first: {answer}");
        }

        let stage = with(&once_by("header.x-user"));
        assert_eq!(ask(stage.address(), "/", ""), 200, "the bucket of those without a user");
        let answer = ask_text(stage.address(), "/", "X_User: xavier\r\nX_Forwarded_For: 1.1.1.1\r\n");
        assert!(!answer.contains("xavier") && !answer.contains("1.1.1.1"), "{answer}");

        let stage = with(&once_by("cookie.session"));
        assert!(ask_text(stage.address(), "/", "Cookie: session=abc\r\n").contains("\"abc\""));
        for cookie in ["session=\"abc\"", "session=\"\\141bc\"", "session=%61bc", "session=abc; session=x"] {
            let answer = ask_text(stage.address(), "/", &format!("Cookie: {cookie}\r\n"));
            assert!(!answer.contains("\"abc\""), "{cookie} is the same session unlimited: {answer}");
        }
    }
}
