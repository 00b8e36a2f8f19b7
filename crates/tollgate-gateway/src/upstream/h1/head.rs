//! The head of an answer: parsed, checked, and already put right for the next hop.
//!
//! Headers that belong to this hop (RFC 9110, 7.6.1) are read here and not passed on. Of the others only those are put into a map that
//! the gateway may look at or replace; the rest stay lines (see `passed`).
//!
//! Refused, since the next hop might read them differently: `Content-Length` beside `Transfer-Encoding`, lengths that
//! differ or are no plain number, any transfer coding but `chunked`, folded lines, a head above 64 KiB or 128 headers.

use crate::{
    framing::{Framing, plain_number},
    passed::Passed,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use std::{mem::MaybeUninit, time::Duration};

const MOST_HEADERS: usize = 128;
pub(super) const LONGEST_HEAD: usize = 64 << 10;

/// An answer's head.
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) passed: Box<Passed>,
    pub(super) framing: Framing,
    /// Whether the server keeps the connection, as far as it says.
    pub(super) keep_alive: bool,
    /// For how long, if it says so.
    pub(super) keep_for: Option<Duration>,
    /// How many bytes the head has.
    pub(super) length: usize,
}

/// Reads a head off the start of `bytes`, the answer to a request by `method`; none if it is not complete.
pub(super) fn parse(bytes: &Bytes, method: &Method) -> Result<Option<Head>, &'static str> {
    let mut slots = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut parsed = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let length = match config.parse_response_with_uninit_headers(&mut parsed, bytes, &mut slots) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() < LONGEST_HEAD => return Ok(None),
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Err("the head of the answer is too long");
        }
        Err(_) => return Err("the head of the answer is malformed"),
    };
    let status = parsed.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or("no such status")?;
    let fields = &*parsed.headers;
    let place = |field: &httparse::Header<'_>| field.name.as_ptr() as usize - bytes.as_ptr() as usize;
    let ends_well = |end: usize| bytes[..end].ends_with(b"\r\n");
    // What is not as everybody writes it is written anew.
    let usual = status != StatusCode::SWITCHING_PROTOCOLS && ends_well(length);
    let mut reading = Reading::new(bytes.slice(..length), parsed.version == Some(1));
    for (at, field) in fields.iter().enumerate() {
        let kind = Kind::of(field.name);
        match kind {
            Kind::Length => reading.length(field.value)?,
            Kind::Connection => reading.connection(field.value)?,
            Kind::ForNobody => {}
            Kind::ForUs | Kind::Date | Kind::ForTheClient => {
                let end = fields.get(at + 1).map_or(length - 2, place);
                if kind != Kind::ForUs && usual && ends_well(end) {
                    reading.passed.dated |= kind == Kind::Date;
                    reading.passed.push(place(field)..end);
                    continue;
                }
                let name = HeaderName::from_bytes(field.name.as_bytes())
                    .map_err(|_| "a header's name is malformed")?;
                let value = HeaderValue::from_maybe_shared(bytes.slice_ref(field.value))
                    .map_err(|_| "a header's value is malformed")?;
                reading.take(name, value)?;
            }
        }
    }
    reading.finish(status, method, length).map(Some)
}

/// Whom a header concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Length,
    Connection,
    /// It belongs to this hop and says nothing that is needed.
    ForNobody,
    /// It belongs to this hop, or the gateway may look at it or replace it.
    ForUs,
    Date,
    ForTheClient,
}

impl Kind {
    /// By the first letter and the length, which tell most names from those that are looked for.
    fn of(name: &str) -> Self {
        let is = |other: &str, kind: Self| {
            if name.eq_ignore_ascii_case(other) { kind } else { Self::ForTheClient }
        };
        match (name.as_bytes().first().map_or(0, u8::to_ascii_lowercase), name.len()) {
            (b'c', 10) => is("connection", Self::Connection),
            (b'c', 14) => is("content-length", Self::Length),
            (b'd', 4) => is("date", Self::Date),
            (b'k', 10) => is("keep-alive", Self::ForUs),
            (b'p', 16) => is("proxy-connection", Self::ForNobody),
            (b'r', 11) => is("retry-after", Self::ForUs),
            (b't', 2) => is("te", Self::ForNobody),
            (b't', 7) => is("trailer", Self::ForNobody),
            (b't', 17) => is("transfer-encoding", Self::ForUs),
            (b'u', 7) => is("upgrade", Self::ForUs),
            (b'x', 12..) if name.as_bytes()[..12].eq_ignore_ascii_case(b"x-ratelimit-") => Self::ForUs,
            _ => Self::ForTheClient,
        }
    }
}

struct Reading {
    headers: HeaderMap,
    /// In a box, since it is large and goes through many hands to whoever writes it.
    passed: Box<Passed>,
    version_1_1: bool,
    keep_alive: bool,
    keep_for: Option<Duration>,
    length: Option<u64>,
    chunked: bool,
    /// Headers that `Connection` names.
    named: Vec<HeaderName>,
    upgrade: Option<HeaderValue>,
}

impl Reading {
    fn new(head: Bytes, version_1_1: bool) -> Self {
        let (named, upgrade) = (Vec::new(), None);
        let keep_alive = version_1_1;
        Self {
            headers: HeaderMap::new(),
            passed: Box::new(Passed::new(head)),
            version_1_1,
            keep_alive,
            keep_for: None,
            length: None,
            chunked: false,
            named,
            upgrade,
        }
    }

    fn take(&mut self, name: HeaderName, value: HeaderValue) -> Result<(), &'static str> {
        match name {
            header::TRANSFER_ENCODING => {
                if self.chunked || !self.version_1_1 || !value.as_bytes().eq_ignore_ascii_case(b"chunked") {
                    return Err("the answer has a transfer coding other than chunked");
                }
                self.chunked = true;
            }
            header::UPGRADE => self.upgrade = Some(value),
            _ => match name.as_str() {
                "keep-alive" => self.keep_for = keep_for(value.as_bytes()),
                _ => {
                    self.headers.append(name, value);
                }
            },
        }
        Ok(())
    }

    fn length(&mut self, value: &[u8]) -> Result<(), &'static str> {
        let length = plain_number(value).ok_or("the length of the answer is no number")?;
        if self.length.is_some_and(|other| other != length) {
            return Err("the answer has two lengths");
        }
        self.length = Some(length);
        Ok(())
    }

    fn connection(&mut self, value: &[u8]) -> Result<(), &'static str> {
        // What nearly all say that say anything.
        if value.eq_ignore_ascii_case(b"keep-alive") {
            self.keep_alive |= !self.version_1_1;
            return Ok(());
        }
        let text = str::from_utf8(value).map_err(|_| "the Connection header is malformed")?;
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            if word.eq_ignore_ascii_case("close") {
                self.keep_alive = false;
            } else if word.eq_ignore_ascii_case("keep-alive") {
                self.keep_alive |= !self.version_1_1;
            } else if !word.eq_ignore_ascii_case("upgrade") {
                let name = HeaderName::from_bytes(word.as_bytes())
                    .map_err(|_| "the Connection header is malformed")?;
                self.named.push(name);
            }
        }
        Ok(())
    }

    fn finish(mut self, status: StatusCode, method: &Method, length: usize) -> Result<Head, &'static str> {
        if self.chunked && self.length.is_some() {
            return Err("the answer has a length and a transfer coding");
        }
        if !self.named.is_empty() {
            std::mem::take(&mut self.passed).unpack(&mut self.headers);
        }
        for name in &self.named {
            self.headers.remove(name);
        }
        let bodiless = status.is_informational()
            || status == StatusCode::NO_CONTENT
            || status == StatusCode::NOT_MODIFIED
            || method == Method::HEAD;
        let framing = match &self.length {
            _ if bodiless => Framing::None,
            Some(length) => Framing::Length(*length),
            None if self.chunked => Framing::Chunked,
            None => Framing::UntilClose,
        };
        // The length of what comes is told by whoever sends it on; that of what HEAD or 304 do not bring is told here.
        if let Some(length) = self.length
            && framing == Framing::None
            && status != StatusCode::NO_CONTENT
            && !status.is_informational()
        {
            self.headers.insert(header::CONTENT_LENGTH, length.into());
        }
        if status == StatusCode::SWITCHING_PROTOCOLS
            && let Some(upgrade) = self.upgrade
        {
            self.headers.insert(header::UPGRADE, upgrade);
            self.headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        }
        let keep_alive = self.keep_alive && framing != Framing::UntilClose;
        let Self { headers, passed, keep_for, .. } = self;
        Ok(Head { status, headers, passed, framing, keep_alive, keep_for, length })
    }
}

/// `timeout=5` as a time, less a second, so that a connection is not used in the moment it is closed.
fn keep_for(text: &[u8]) -> Option<Duration> {
    let text = str::from_utf8(text).ok()?;
    let seconds = text.split(',').find_map(|word| word.trim().strip_prefix("timeout="))?;
    let seconds: u64 = seconds.parse().ok()?;
    Some(Duration::from_secs(seconds.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Result<Option<Head>, &'static str> {
        parse(&Bytes::copy_from_slice(text.as_bytes()), &Method::GET)
    }

    fn good(text: &str) -> Head {
        let mut head = head(text).expect("a good head").expect("a whole head");
        std::mem::take(&mut head.passed).unpack(&mut head.headers);
        head
    }

    #[test]
    fn framing() {
        let head = good("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nKeep-Alive: timeout=5, max=9\r\n\r\nhello");
        assert_eq!((head.framing, head.keep_alive, head.length), (Framing::Length(5), true, 68));
        assert_eq!(head.keep_for, Some(Duration::from_secs(4)));
        assert!(head.headers.is_empty());
        let head = good("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nConnection: close\r\n\r\n");
        assert_eq!((head.framing, head.keep_alive, head.headers.len()), (Framing::Chunked, false, 0));
        let head = good("HTTP/1.0 200 OK\r\n\r\n");
        assert_eq!((head.framing, head.keep_alive), (Framing::UntilClose, false));
        let head = good("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n");
        assert_eq!((head.framing, head.keep_alive), (Framing::Length(0), true));
        let head = good("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");
        assert_eq!(
            (head.framing, head.headers.len()),
            (Framing::None, 1),
            "the length of what does not come is told"
        );
        assert!(matches!(self::head("HTTP/1.1 200 OK\r\nA: b\r\n"), Ok(None)));
    }

    #[test]
    fn headers_of_this_hop_stay_here() {
        let head = good(
            "HTTP/1.1 200 OK\r\nConnection: x-hop, keep-alive\r\nX-Hop: 1\r\nX-End: 1\r\nProxy-Connection: a\r\n\
             TE: trailers\r\nTrailer: x\r\nUpgrade: h2c\r\nContent-Length: 0\r\n\r\n",
        );
        let names: Vec<_> = head.headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["x-end"]);
    }

    #[test]
    fn what_could_be_read_two_ways_is_refused() {
        for text in [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
            "ICY 200 OK\r\n\r\n",
        ] {
            assert!(head(text).is_err(), "{text:?}");
        }
    }
}
