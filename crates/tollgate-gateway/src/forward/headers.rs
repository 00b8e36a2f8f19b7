//! Headers put right for the next hop.
//!
//! Headers that belong to one hop (RFC 9110, 7.6.1) end here: `Connection` and what it names, `Keep-Alive`,
//! `Proxy-Connection`, `TE`, `Trailer`, `Transfer-Encoding`, `Upgrade`. What frames the body is written anew from what
//! the body is. One pass over the names tells which of them there are, so that a request without them pays for no lookup.
//!
//! Who asked is told in `X-Forwarded-For`, `-Proto` and `-Host`: added to where the peer is trusted, in place of whatever
//! the client claims where it is not. `Forwarded` is treated alike where the client sent one, and not written otherwise:
//! nobody downstream is to read a forged one, and few read it at all.

use crate::{client::ClientInfo, request::RequestBody};
use bytes::{BufMut, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Version, header};

static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
static X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
static KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
static PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// What the client said about this hop, and what the next is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hop {
    /// It asks to switch protocols.
    pub(super) upgrade: bool,
    /// It takes trailers.
    pub(super) trailers: bool,
    pub(super) told: Told,
}

/// Who asked. Kept beside the headers, which would grow and be hashed anew for it: they go to the wire from here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    chain: HeaderValue,
    proto: HeaderValue,
    host: Option<HeaderValue>,
}

impl Told {
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        let host = self.host.as_ref().map(|host| (&X_FORWARDED_HOST, host));
        [(&X_FORWARDED_FOR, &self.chain), (&X_FORWARDED_PROTO, &self.proto)].into_iter().chain(host)
    }

    /// The same as bytes, in as few pieces as there can be: every request has them.
    pub(crate) fn write(&self, out: &mut BytesMut) {
        out.put_slice(b"x-forwarded-for: ");
        out.put_slice(self.chain.as_bytes());
        out.put_slice(b"\r\nx-forwarded-proto: ");
        out.put_slice(self.proto.as_bytes());
        if let Some(host) = &self.host {
            out.put_slice(b"\r\nx-forwarded-host: ");
            out.put_slice(host.as_bytes());
        }
        out.put_slice(b"\r\n");
    }
}

/// The host that is asked for. Most clients name it first, where it is had without a lookup.
pub(crate) fn host(headers: &HeaderMap) -> Option<&HeaderValue> {
    match headers.iter().next() {
        Some((name, host)) if *name == header::HOST => Some(host),
        _ => headers.get(header::HOST),
    }
}

#[derive(Default)]
struct Found {
    connection: bool,
    keep_alive: bool,
    proxy_connection: bool,
    te: bool,
    trailer: bool,
    transfer_encoding: bool,
    upgrade: bool,
    content_length: bool,
    forwarded: bool,
    x_forwarded_for: bool,
    x_forwarded_proto: bool,
    x_forwarded_host: bool,
    /// Some name has an underscore.
    underscore: bool,
}

impl Found {
    fn look(headers: &HeaderMap) -> Self {
        let mut found = Self::default();
        for name in headers.keys() {
            match *name {
                // Nearly all requests have some of these.
                header::HOST
                | header::USER_AGENT
                | header::ACCEPT
                | header::ACCEPT_ENCODING
                | header::ACCEPT_LANGUAGE
                | header::AUTHORIZATION
                | header::COOKIE
                | header::CONTENT_TYPE
                | header::REFERER => {}
                header::CONNECTION => found.connection = true,
                header::TE => found.te = true,
                header::TRAILER => found.trailer = true,
                header::TRANSFER_ENCODING => found.transfer_encoding = true,
                header::UPGRADE => found.upgrade = true,
                header::CONTENT_LENGTH => found.content_length = true,
                header::FORWARDED => found.forwarded = true,
                _ => match name.as_str() {
                    "keep-alive" => found.keep_alive = true,
                    "proxy-connection" => found.proxy_connection = true,
                    "x-forwarded-for" => found.x_forwarded_for = true,
                    "x-forwarded-proto" => found.x_forwarded_proto = true,
                    "x-forwarded-host" => found.x_forwarded_host = true,
                    name if name.contains('_') => found.underscore = true,
                    _ => {}
                },
            }
        }
        found
    }
}

/// Puts a request's headers right.
pub(super) fn request(request: &mut Request<RequestBody>, client: &ClientInfo) -> Hop {
    let version = request.version();
    // HTTP/2 and absolute targets name the host in the target, which then counts.
    if let Some(authority) = request.uri().authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        request.headers_mut().insert(header::HOST, host);
    }
    let headers = request.headers_mut();
    let found = Found::look(headers);
    let upgrade = hop(headers, &found, version);
    let trailers = found.te && has_word(headers, &header::TE, "trailers");
    for (is_there, name) in [
        (found.te, &header::TE),
        (found.trailer, &header::TRAILER),
        (found.transfer_encoding, &header::TRANSFER_ENCODING),
        (found.content_length, &header::CONTENT_LENGTH),
        (found.keep_alive, &KEEP_ALIVE),
        (found.proxy_connection, &PROXY_CONNECTION),
    ] {
        if is_there {
            headers.remove(name);
        }
    }
    if found.underscore {
        remove_lookalikes(headers);
    }
    let told = forwarded(headers, &found, client);
    Hop { upgrade, trailers, told }
}

/// Takes out headers that an underscore makes equal to one that is set here: CGI and WSGI servers take `X_Forwarded_For`
/// for `X-Forwarded-For`.
#[cold]
fn remove_lookalikes(headers: &mut HeaderMap) {
    const SET: [&str; 6] = [
        "content-length",
        "content-type",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "x-real-ip",
    ];
    let is_lookalike = |name: &&HeaderName| {
        let dashed = name.as_str().replace('_', "-");
        dashed != name.as_str() && (SET.contains(&&*dashed) || dashed.starts_with("x-forwarded-"))
    };
    let lookalikes: Vec<_> = headers.keys().filter(is_lookalike).cloned().collect();
    for name in lookalikes {
        headers.remove(name);
    }
}

/// Takes out `Connection`, what it names, and `Upgrade`; says whether an upgrade is asked for, and then leaves that.
fn hop(headers: &mut HeaderMap, found: &Found, version: Version) -> bool {
    if !found.connection {
        if found.upgrade {
            headers.remove(header::UPGRADE);
        }
        return false;
    }
    let upgrade = found.upgrade
        && version == Version::HTTP_11
        && has_word(headers, &header::CONNECTION, "upgrade")
        && !upgrades_to_http(headers);
    while let header::Entry::Occupied(lines) = headers.entry(header::CONNECTION) {
        let (_, lines) = lines.remove_entry_mult();
        let lines: Vec<HeaderValue> = lines.collect();
        for word in lines.iter().filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(',')) {
            let word = word.trim();
            let known = ["close", "keep-alive", "upgrade", "te"];
            // What routes and frames a request is not the client's to strike out.
            let needed = ["host", "content-length", "transfer-encoding", "expect"];
            if !known.iter().chain(&needed).any(|name| word.eq_ignore_ascii_case(name)) {
                headers.remove(word);
            }
        }
    }
    if upgrade {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    } else if found.upgrade {
        headers.remove(header::UPGRADE);
    }
    upgrade
}

/// Whether the other protocol is HTTP again: what is asked by it in a tunnel no rule would see.
fn upgrades_to_http(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::UPGRADE).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|word| {
        let word = word.trim().to_ascii_lowercase();
        ["h2c", "h2", "http/", "tls/"].iter().any(|name| word.starts_with(name))
    })
}

fn has_word(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|found| found.trim().eq_ignore_ascii_case(word))
}

/// Takes the claims out and says what is told instead.
fn forwarded(headers: &mut HeaderMap, found: &Found, client: &ClientInfo) -> Told {
    let believed = client.trusted;
    let peer = &client.peer_text;
    let chain = match found.x_forwarded_for {
        true if believed => joined(headers, &X_FORWARDED_FOR, peer.as_bytes()),
        _ => peer.clone(),
    };
    let claimed = |headers: &mut HeaderMap, is_there: bool, name: &HeaderName| {
        if is_there { headers.remove(name).filter(|_| believed) } else { None }
    };
    claimed(headers, found.x_forwarded_for, &X_FORWARDED_FOR);
    let proto = claimed(headers, found.x_forwarded_proto, &X_FORWARDED_PROTO)
        .unwrap_or_else(|| HeaderValue::from_static(client.scheme.as_str()));
    let host = claimed(headers, found.x_forwarded_host, &X_FORWARDED_HOST).or_else(|| host(headers).cloned());
    if found.forwarded {
        let element = element(headers, client);
        let chain = if believed { joined(headers, &header::FORWARDED, &element) } else { value(&element) };
        headers.insert(header::FORWARDED, chain);
    }
    Told { chain, proto, host }
}

/// All lines of a header and `last` as one list.
fn joined(headers: &HeaderMap, name: &HeaderName, last: &[u8]) -> HeaderValue {
    let mut chain = Vec::new();
    for line in headers.get_all(name) {
        chain.extend_from_slice(line.as_bytes());
        chain.extend_from_slice(b", ");
    }
    chain.extend_from_slice(last);
    value(&chain)
}

/// This hop as RFC 7239 writes it.
fn element(headers: &HeaderMap, client: &ClientInfo) -> Vec<u8> {
    let peer = client.peer.ip().to_canonical();
    let node = if peer.is_ipv6() { format!("\"[{peer}]\"") } else { peer.to_string() };
    let mut element = format!("for={node};proto={}", client.scheme.as_str()).into_bytes();
    // A quote or backslash in it would need escaping, and no host has one.
    let plain = |host: &&HeaderValue| !host.as_bytes().iter().any(|byte| matches!(byte, b'"' | b'\\'));
    if let Some(host) = headers.get(header::HOST).filter(plain) {
        element.extend_from_slice(b";host=\"");
        element.extend_from_slice(host.as_bytes());
        element.push(b'"');
    }
    element
}

/// Made of header values and plain text, which make a header value.
fn value(bytes: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(bytes).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
}

/// HTTP/2 knows no headers of a hop; a server that sends them all the same is not to confuse the next.
pub(super) fn response_from_http2(headers: &mut HeaderMap) {
    for name in
        [&header::CONNECTION, &header::TRANSFER_ENCODING, &header::UPGRADE, &KEEP_ALIVE, &PROXY_CONNECTION]
    {
        headers.remove(name);
    }
}

/// Whether a header may be a trailer: not one that frames, routes or is of one hop.
pub(crate) fn may_trail(name: &HeaderName) -> bool {
    !matches!(
        *name,
        header::CONNECTION
            | header::CONTENT_LENGTH
            | header::CONTENT_TYPE
            | header::CONTENT_ENCODING
            | header::CONTENT_RANGE
            | header::HOST
            | header::TE
            | header::TRAILER
            | header::TRANSFER_ENCODING
            | header::UPGRADE
            | header::AUTHORIZATION
            | header::SET_COOKIE
            | header::COOKIE
            | header::FORWARDED
            | header::PROXY_AUTHORIZATION
    ) && !matches!(name.as_str(), "keep-alive" | "proxy-connection" | "x-real-ip")
        && !name.as_str().starts_with("x-forwarded-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Scheme;

    fn check(trusted: bool, given: &[(&str, &str)], expected: &[(&str, &str)]) -> Hop {
        let mut asked = Request::new(RequestBody::empty());
        for (name, value) in given {
            let name: HeaderName = name.parse().expect("a name");
            asked.headers_mut().append(name, value.parse().expect("a value"));
        }
        let mut client = ClientInfo::new(([192, 0, 2, 1], 9).into(), Scheme::Https);
        client.trusted = trusted;
        let hop = request(&mut asked, &client);
        let all = asked.headers().iter().chain(hop.told.lines());
        let mut found: Vec<_> =
            all.map(|(name, value)| (name.as_str(), value.to_str().expect("text"))).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{given:?}");
        hop
    }

    const PLAIN: [(&str, &str); 4] = [
        ("host", "a"),
        ("x-forwarded-for", "192.0.2.1"),
        ("x-forwarded-host", "a"),
        ("x-forwarded-proto", "https"),
    ];

    #[test]
    fn headers_of_one_hop_end_here() {
        check(
            false,
            &[
                ("host", "a"),
                ("connection", "keep-alive, x-hop"),
                ("connection", "x-other, host"),
                ("x-hop", "1"),
                ("x-other", "1"),
                ("keep-alive", "5"),
                ("proxy-connection", "close"),
                ("te", "gzip"),
                ("trailer", "x"),
                ("transfer-encoding", "chunked"),
                ("content-length", "1"),
                ("upgrade", "h2c"),
            ],
            &PLAIN,
        );
    }

    #[test]
    fn claims_of_strangers_are_replaced_and_those_of_proxies_kept() {
        let claims = [
            ("host", "a"),
            ("x-forwarded-for", "1.1.1.1"),
            ("x-forwarded-for", "2.2.2.2"),
            ("x-forwarded-proto", "gopher"),
            ("x-forwarded-host", "evil"),
            ("forwarded", "for=1.1.1.1"),
        ];
        let ours = "for=192.0.2.1;proto=https;host=\"a\"";
        check(false, &claims, &[("forwarded", ours), PLAIN[0], PLAIN[1], PLAIN[2], PLAIN[3]]);
        check(
            true,
            &claims,
            &[
                ("forwarded", &format!("for=1.1.1.1, {ours}")),
                ("host", "a"),
                ("x-forwarded-for", "1.1.1.1, 2.2.2.2, 192.0.2.1"),
                ("x-forwarded-host", "evil"),
                ("x-forwarded-proto", "gopher"),
            ],
        );
    }

    #[test]
    fn upgrades_and_trailers() {
        let with =
            [("connection", "upgrade"), PLAIN[0], ("upgrade", "websocket"), PLAIN[1], PLAIN[2], PLAIN[3]];
        let hop = check(
            false,
            &[("host", "a"), ("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")],
            &with,
        );
        assert!(hop.upgrade);
        let hop = check(false, &[("host", "a"), ("te", "gzip, trailers")], &PLAIN);
        assert_eq!((hop.upgrade, hop.trailers), (false, true));
    }
}
