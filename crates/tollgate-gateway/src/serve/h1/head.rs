//! The head of a request: read strictly, so that nobody behind can read it differently.
//!
//! Refused is whatever RFC 9112 forbids, and where it lets a reader be lenient the lenient reading too: a line that ends in anything but
//! CR LF, a folded line, a length that is not digits only, or given twice, or beside a transfer coding, a transfer coding other than
//! `chunked`, or twice, or in HTTP/1.0. A server behind the gateway might find a second request in such a one's body.

use crate::{
    framing::{Framing, plain_number},
    serve::settings::{Limits, MOST_HEADERS},
};
use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version, header, uri::PathAndQuery};
use std::mem::MaybeUninit;

/// A request's head, and what it says of this hop.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) version: Version,
    pub(super) headers: HeaderMap,
    pub(super) framing: Framing,
    pub(super) keep_alive: bool,
    /// The body is sent when it is asked for.
    pub(super) expects: bool,
    /// It may switch protocols.
    pub(super) upgrade: bool,
}

/// What a head is refused with.
pub(super) type Refused = (StatusCode, &'static str);

const MALFORMED: Refused = (StatusCode::BAD_REQUEST, "the request is malformed");
const LENGTH: Refused = (StatusCode::BAD_REQUEST, "the request's length can be read in more than one way");
const TOO_LARGE: Refused =
    (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "the request's head is larger than allowed");

/// Takes a head off `bytes`; none if it is not complete.
pub(super) fn take(bytes: &mut Bytes, limits: &Limits) -> Result<Option<Head>, Refused> {
    // RFC 9112, 2.2: an empty line before a request is passed over.
    while bytes.starts_with(b"\r\n") {
        bytes.advance(2);
    }
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut slots = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut []);
    let length = match parsed.parse_with_uninit_headers(bytes, &mut slots) {
        Ok(httparse::Status::Complete(length)) if length <= limits.head => length,
        Ok(httparse::Status::Partial) if bytes.len() <= limits.head => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(TOO_LARGE),
        Err(_) => return Err(MALFORMED),
    };
    if !lines_end_well(&bytes[..length]) {
        return Err(MALFORMED);
    }
    let (Some(method), Some(path), Some(minor)) = (parsed.method, parsed.path, parsed.version) else {
        return Err(MALFORMED);
    };
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| MALFORMED)?;
    let uri = target(bytes.slice_ref(path.as_bytes()))?;
    let version = if minor == 0 { Version::HTTP_10 } else { Version::HTTP_11 };
    let mut reading = Reading::new(parsed.headers.len(), version);
    for field in parsed.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| MALFORMED)?;
        let value = HeaderValue::from_maybe_shared(bytes.slice_ref(field.value)).map_err(|_| MALFORMED)?;
        reading.take(name, value)?;
    }
    let head = reading.finish(method, uri)?;
    bytes.advance(length);
    if bytes.is_empty() {
        *bytes = Bytes::new();
    }
    Ok(Some(head))
}

/// Every LF comes behind a CR. A CR that stands alone is refused by the parser.
fn lines_end_well(head: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', head).all(|at| at > 0 && head[at - 1] == b'\r')
}

fn target(target: Bytes) -> Result<Uri, Refused> {
    if target.first() == Some(&b'/') {
        return PathAndQuery::from_maybe_shared(target).map(Uri::from).map_err(|_| MALFORMED);
    }
    let uri = Uri::from_maybe_shared(target).map_err(|_| MALFORMED)?;
    // `http://host?query` has no path that could be passed on.
    let has_path = uri.path_and_query().is_none_or(|path| !path.as_str().starts_with('?'));
    if has_path { Ok(uri) } else { Err(MALFORMED) }
}

struct Reading {
    headers: HeaderMap,
    version: Version,
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    expects: bool,
    upgrade: bool,
}

impl Reading {
    fn new(count: usize, version: Version) -> Self {
        Self {
            headers: HeaderMap::with_capacity(count),
            version,
            length: None,
            chunked: false,
            close: false,
            keep_alive: false,
            expects: false,
            upgrade: false,
        }
    }

    fn take(&mut self, name: HeaderName, value: HeaderValue) -> Result<(), Refused> {
        match name {
            header::CONTENT_LENGTH => {
                if self.length.is_some() {
                    return Err(LENGTH);
                }
                self.length = Some(plain_number(value.as_bytes()).ok_or(LENGTH)?);
            }
            header::TRANSFER_ENCODING => {
                if self.chunked || !value.as_bytes().eq_ignore_ascii_case(b"chunked") {
                    return Err(LENGTH);
                }
                self.chunked = true;
            }
            header::CONNECTION => {
                for word in value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                    self.close |= word.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= word.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            header::EXPECT => self.expects |= value.as_bytes().eq_ignore_ascii_case(b"100-continue"),
            header::UPGRADE => self.upgrade = true,
            _ => {}
        }
        self.headers.try_append(name, value).map_err(|_| TOO_LARGE)?;
        Ok(())
    }

    fn finish(self, method: Method, uri: Uri) -> Result<Head, Refused> {
        let old = self.version == Version::HTTP_10;
        let framing = match (self.length, self.chunked) {
            (Some(_), true) => return Err(LENGTH),
            (None, true) if old => return Err(LENGTH),
            (None, true) => Framing::Chunked,
            (Some(0) | None, false) => Framing::None,
            (Some(length), false) => Framing::Length(length),
        };
        Ok(Head {
            method,
            uri,
            version: self.version,
            headers: self.headers,
            framing,
            keep_alive: !self.close && (!old || self.keep_alive),
            expects: self.expects && !old,
            upgrade: self.upgrade && !old,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::{Chunks, Piece};
    use testkit::{Fuzz, Random};

    fn read(text: &[u8]) -> Result<Option<(Head, Bytes)>, Refused> {
        let mut bytes = Bytes::copy_from_slice(text);
        take(&mut bytes, &Limits::default()).map(|head| head.map(|head| (head, bytes)))
    }

    fn good(text: &str) -> (Head, Bytes) {
        read(text.as_bytes()).expect("a good head").expect("a whole head")
    }

    #[test]
    fn heads_and_what_follows_them() {
        let (head, rest) = good("\r\nGET /a?b HTTP/1.1\r\nHost: a\r\nX: 1\r\nx: 2\r\n\r\nGET");
        assert_eq!((head.method, head.uri.to_string().as_str()), (Method::GET, "/a?b"));
        assert_eq!((head.framing, head.keep_alive, head.headers.len()), (Framing::None, true, 3));
        assert_eq!(rest, "GET");
        let (head, rest) =
            good("POST / HTTP/1.1\r\ncontent-LENGTH:  5\t\r\nConnection: x, Close\r\n\r\nhello");
        assert_eq!((head.framing, head.keep_alive, &rest[..]), (Framing::Length(5), false, &b"hello"[..]));
        let (head, _) =
            good("POST http://a/b HTTP/1.1\r\nTransfer-Encoding: Chunked\r\nExpect: 100-continue\r\n\r\n");
        assert_eq!((head.framing, head.expects, head.uri.path()), (Framing::Chunked, true, "/b"));
        let (head, _) = good("OPTIONS * HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n");
        assert_eq!((head.framing, head.keep_alive, head.version), (Framing::None, true, Version::HTTP_10));
    }

    #[test]
    fn a_head_is_whole_or_not_there() {
        let text = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        for end in 0..text.len() {
            assert!(matches!(read(&text[..end]), Ok(None)), "{end}");
        }
        assert!(matches!(read(text), Ok(Some(_))));
    }

    #[test]
    fn what_could_be_read_two_ways_is_refused() {
        let cases: [&[u8]; 26] = [
            b"GET / HTTP/1.1\nHost: a\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\n\n",
            b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\0\r\n\r\n",
            b"GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
            b"GET / HTTP/1.1\r\nA : b\r\n\r\n",
            b"GET / HTTP/1.1\r\n: b\r\n\r\n",
            b"GET  / HTTP/1.1\r\n\r\n",
            b" GET / HTTP/1.1\r\n\r\n",
            b"GET / HTTP/2.1\r\n\r\n",
            b"GET /\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length:\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding:\x0bchunked\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        ];
        for case in cases {
            let refused = read(case).expect_err(&case.escape_ascii().to_string());
            assert_eq!(refused.0, StatusCode::BAD_REQUEST, "{}", case.escape_ascii());
        }
    }

    #[test]
    fn heads_have_a_size() {
        let long = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(40 << 10));
        let many: String = (0..200).map(|i| format!("x-{i}: y\r\n")).collect();
        for text in [long.clone(), format!("{long}\r\n\r\n"), format!("GET / HTTP/1.1\r\n{many}\r\n")] {
            assert_eq!(read(text.as_bytes()).expect_err("too large"), TOO_LARGE);
        }
    }

    /// What a connection's bytes are read as: for every request its target and where its body lies; then how it ends.
    fn reading(input: &[u8]) -> (Vec<(String, Framing, usize)>, Option<Refused>) {
        let (mut bytes, mut requests) = (Bytes::copy_from_slice(input), Vec::new());
        loop {
            let head = match take(&mut bytes, &Limits::default()) {
                Ok(Some(head)) => head,
                Ok(None) => return (requests, None),
                Err(refused) => return (requests, Some(refused)),
            };
            let body = match head.framing {
                Framing::None | Framing::UntilClose => 0,
                Framing::Length(length) => usize::try_from(length).unwrap_or(usize::MAX).min(bytes.len()),
                Framing::Chunked => match chunked(&bytes) {
                    Some(length) => length,
                    None => return (requests, None),
                },
            };
            bytes.advance(body);
            requests.push((head.uri.to_string(), head.framing, body));
        }
    }

    /// How long a chunked body is, its framing included; none if it is broken or has no end.
    fn chunked(bytes: &[u8]) -> Option<usize> {
        let (mut chunks, mut at) = (Chunks::new(), 0);
        while at < bytes.len() {
            match chunks.next(&bytes[at..]).ok()? {
                Piece::End(length) => return Some(at + length),
                Piece::Framing(length) | Piece::Data(length) | Piece::Trailers(length) => at += length,
            }
        }
        None
    }

    /// Whatever comes is read or refused. A head that is not whole is never taken for one that is; and a head that was
    /// taken reads the same to the parser that hyper and its friends use, with one length or none.
    #[test]
    fn fuzzed_heads_are_read_in_one_way_only() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/h1");
        let inputs = Fuzz::from(corpus).run(|input: &[u8], random: &mut Random| {
            let (requests, _) = reading(input);
            let (of_less, _) = reading(&input[..random.below(input.len() + 1)]);
            let whole = of_less.len().saturating_sub(1);
            assert_eq!(of_less[..whole], requests[..whole], "what comes later changes nothing");

            let Ok(Some((head, rest))) = read(input) else { return };
            let taken = &input[..input.len() - rest.len()];
            assert!(taken.ends_with(b"\r\n\r\n") && lines_end_well(taken));
            let said = |name: &HeaderName| head.headers.get_all(name).iter().count();
            let (lengths, codings) = (said(&header::CONTENT_LENGTH), said(&header::TRANSFER_ENCODING));
            assert!(lengths + codings <= 1, "one way to say how long it is");
            assert_eq!(head.framing == Framing::Chunked, codings == 1);
            let mut slots = [httparse::EMPTY_HEADER; MOST_HEADERS];
            let mut again = httparse::Request::new(&mut slots);
            assert!(again.parse(taken).is_ok_and(|parsed| parsed.is_complete()));
            assert_eq!(again.headers.len(), head.headers.len());
        });
        assert!(inputs > 100, "{inputs} inputs");
    }
}
