//! HTTP/2 frames by hand, and attempts to dodge rules that only they can make: what no client library would send.

use crate::{
    dodging::{LOGIN, once_by, open},
    slots::client,
    stage::{Stage, Still},
};
use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    thread,
    time::Duration,
};

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Fields as HPACK literals, neither indexed nor compressed.
fn literals(fields: &[(&str, &str)]) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).expect("short")], text.as_bytes()].concat();
    fields.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
}

/// What came back on the first stream.
#[derive(Debug, PartialEq, Eq)]
enum Answered {
    Status(u16),
    /// The stream was reset, or the connection ended: the request was malformed.
    Reset,
}

/// The status of a block of headers, which begins with it.
fn status(block: &[u8]) -> u16 {
    match block {
        [0x88, ..] => 200,
        [0x89, ..] => 204,
        [0x8c, ..] => 400,
        // Three digits in Huffman's code.
        [0x48, 0x83, 0x68, 0x4f, 0xff, ..] => 429,
        [0x48, 0x83, 0x68, 0x0d, 0xff, ..] => 405,
        [0x48, 0x82, 0x6c, 0x01, ..] => 501,
        other => panic!("another status: {:x?}", &other[..other.len().min(8)]),
    }
}

/// Sends one request, perhaps with a body and trailers.
fn ask(address: SocketAddr, fields: &[(&str, &str)], trailers: Option<&[(&str, &str)]>) -> Answered {
    let mut socket = client(address, "");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let mut bytes = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    let end = if trailers.is_none() { END_STREAM } else { 0 };
    bytes.extend(frame(HEADERS, END_HEADERS | end, 1, &literals(fields)));
    if let Some(trailers) = trailers {
        bytes.extend(frame(DATA, 0, 1, b"hi"));
        bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, 1, &literals(trailers)));
    }
    socket.write_all(&bytes).expect("sent");
    loop {
        let mut head = [0; 9];
        if socket.read_exact(&mut head).is_err() {
            return Answered::Reset;
        }
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        socket.read_exact(&mut payload).expect("a whole frame");
        match head[3] {
            HEADERS => return Answered::Status(status(&payload)),
            RESET | GOAWAY => return Answered::Reset,
            _ => {}
        }
    }
}

/// GET, with these fields beside method and scheme.
fn get(address: SocketAddr, fields: &[(&str, &str)]) -> Answered {
    ask(address, &[&[(":method", "GET"), (":scheme", "http")], fields].concat(), None)
}

fn arrived(stage: &Stage<Still>) -> usize {
    stage.up.asked().len()
}

fn is_refused(answered: &Answered) -> bool {
    matches!(answered, Answered::Reset | Answered::Status(400))
}

#[test]
fn paths_meet_the_same_rules_as_by_http_1() {
    let stage = open(LOGIN);
    let path = |path| get(stage.address(), &[(":authority", "a"), (":path", path)]);
    assert_eq!(path("/api/login"), Answered::Status(200));
    for spelling in ["/api/login", "/api/%6cogin", "//api/login", "/x/..//api/./login", "/api/login?x"] {
        assert_eq!(path(spelling), Answered::Status(429), "{spelling}");
    }
    for malformed in [
        "api/login",
        "api/%6cogin",
        "",
        "*",
        "http://a/api/login",
        "/api%2Flogin",
        "/api\\login",
        "/%zz",
        "/a b",
        "/caf\u{e9}",
        "/x/..;/api/login",
        "/api/login%0a",
    ] {
        assert!(is_refused(&path(malformed)), "{malformed:?}");
    }
    assert_eq!(arrived(&stage), 1);
}

#[test]
fn authorities_that_are_no_hosts_are_refused() {
    let stage = open("routes: [ { name: all, upstream: up } ]\n");
    let path = (":path", "/");
    for authority in
        ["", "a b", "a/../b", "<script>", "[::1", "::1", "a,b", "user@a", "user:pw@a", "a?b", "a..b", "a:x"]
    {
        assert!(is_refused(&get(stage.address(), &[(":authority", authority), path])), "{authority:?}");
    }
    for fields in [
        &[path][..],
        &[path, ("host", "a b")],
        &[path, ("host", "a"), ("host", "b")],
        &[(":authority", "a"), path, ("host", "b")],
    ] {
        assert!(is_refused(&get(stage.address(), fields)), "{fields:?}");
    }
    for scheme in ["javascript", "ftp"] {
        let fields = [(":method", "GET"), (":scheme", scheme), (":authority", "a"), path];
        assert!(is_refused(&ask(stage.address(), &fields, None)), "{scheme}");
    }
    assert_eq!(arrived(&stage), 0);
    assert_eq!(get(stage.address(), &[(":authority", "a"), path, ("host", "A")]), Answered::Status(200));
    assert_eq!(get(stage.address(), &[path, ("host", "b")]), Answered::Status(200));
    let hosts: Vec<_> =
        stage.up.asked().iter().map(|asked| asked.header("host").map(str::to_owned)).collect();
    assert_eq!(hosts, [Some("a".to_owned()), Some("b".to_owned())]);
}

#[test]
fn methods_are_checked() {
    let stage = open("routes: [ { name: all, upstream: up } ]\n");
    let method = |method: &str, path: &str| {
        ask(
            stage.address(),
            &[(":method", method), (":scheme", "http"), (":authority", "a"), (":path", path)],
            None,
        )
    };
    assert_eq!(method("TRACE", "/"), Answered::Status(405));
    assert_eq!(method("post", "/"), Answered::Status(501));
    assert_eq!(method(&"M".repeat(33), "/"), Answered::Status(501));
    assert_eq!(method("OPTIONS", "*"), Answered::Status(204));
    assert_eq!(arrived(&stage), 0);
}

#[test]
fn cookies_in_several_fields_are_one_line() {
    let stage = open(&once_by("cookie.session"));
    let cookies = |fields: &[(&str, &str)]| {
        get(stage.address(), &[&[(":authority", "a"), (":path", "/")], fields].concat())
    };
    assert_eq!(cookies(&[("cookie", "a=b"), ("cookie", "session=abc")]), Answered::Status(200));
    assert_eq!(stage.up.asked()[0].header("cookie"), Some("a=b; session=abc"));
    assert_eq!(cookies(&[("cookie", "session=abc"), ("cookie", "c=d")]), Answered::Status(429));
    assert_eq!(cookies(&[("cookie", "session=abc; x=\"")]), Answered::Status(429));
    assert_eq!(cookies(&[("cookie", "session=abc"), ("cookie", "session=x1")]), Answered::Status(400));
    assert_eq!(arrived(&stage), 1);
}

#[test]
fn repeated_headers_and_lookalikes_make_no_fresh_bucket() {
    let stage = open(&once_by("header.x-user"));
    let fields = |fields: &[(&str, &str)]| {
        get(stage.address(), &[&[(":authority", "a"), (":path", "/")], fields].concat())
    };
    assert_eq!(fields(&[("x-user", "u")]), Answered::Status(200));
    assert_eq!(fields(&[("x-user", "u"), ("x_user", "v")]), Answered::Status(429));
    assert_eq!(fields(&[("x-user", "u"), ("x-user", "v")]), Answered::Status(400));
    for blanks in [" u", "u ", "\tu", "  u\t", "\u{a0}u"] {
        assert_eq!(fields(&[("x-user", blanks)]), Answered::Status(429), "{blanks:?}");
    }
    for name in ["authorization", "content-type"] {
        assert_eq!(fields(&[("x-user", "v"), (name, "1"), (name, "2")]), Answered::Status(400), "{name}");
    }
    let lookalikes = [("x-user", "w"), ("x_user", "forged"), ("x_forwarded_for", "1.1.1.1")];
    assert_eq!(fields(&lookalikes), Answered::Status(200));
    let head = stage.up.asked()[1].head();
    assert!(!head.contains("forged") && !head.contains("1.1.1.1"), "{head}");
}

/// An upstream that keeps all bytes of the first request, whose body is chunked; its address, and where to get them.
pub(crate) fn recording() -> (String, thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let recorded = thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a connection");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        let mut bytes = Vec::new();
        let is_over = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            text.split_once("\r\n0\r\n").is_some_and(|(_, end)| end == "\r\n" || end.ends_with("\r\n\r\n"))
        };
        while !is_over(&bytes) {
            let mut piece = [0; 1024];
            let count = socket.read(&mut piece).expect("more of the request");
            assert_ne!(count, 0, "the request is incomplete: {}", String::from_utf8_lossy(&bytes));
            bytes.extend(&piece[..count]);
        }
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("sent");
        String::from_utf8_lossy(&bytes).to_lowercase()
    });
    (url, recorded)
}

/// What no trailer may bring in, where a rule names `X-User`; the last is harmless.
pub(crate) const TRAILERS: [(&str, &str); 11] = [
    ("x-forwarded-for", "forged"),
    ("x_forwarded_for", "forged"),
    ("x-forwarded-host", "forged"),
    ("forwarded", "for=forged"),
    ("x-real-ip", "forged"),
    ("x-user", "forged"),
    ("x_user", "forged"),
    ("authorization", "forged"),
    ("cookie", "session=forged"),
    ("host", "forged"),
    ("x-checksum", "harmless"),
];

#[test]
fn trailers_bring_no_header_in() {
    let (url, recorded) = recording();
    let upstreams = format!("upstreams: {{ up: {{ servers: [ \"{url}\" ] }} }}\n");
    let stage = open(&format!("{upstreams}{}", once_by("header.x-user")));
    let fields =
        [(":method", "POST"), (":scheme", "http"), (":authority", "a"), (":path", "/"), ("te", "trailers")];
    assert_eq!(ask(stage.address(), &fields, Some(&TRAILERS)), Answered::Status(200));
    let arrived = recorded.join().expect("a request");
    assert!(!arrived.contains("forged"), "{arrived}");
    assert!(arrived.ends_with("x-checksum: harmless\r\n\r\n"), "{arrived}");
}
