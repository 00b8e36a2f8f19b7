//! What a client sends on HTTP/1.1, watched byte by byte for what two readers might read differently.
//!
//! hyper reads requests and is strict in much; it is lenient where RFC 9112 lets it be: a line may end in a bare LF,
//! `Content-Length` beside `Transfer-Encoding` is overruled, equal lengths may be repeated, chunk extensions may hold
//! anything. A server behind the gateway may read such a request in another way, and find a second request in the first
//! one's body. So here it is refused before hyper sees it:
//! - a line that ends in anything but CR LF, a CR within a line, a folded line;
//! - a length that is not digits only, or given twice, or beside a transfer coding;
//! - a transfer coding other than `chunked`, or twice, or in HTTP/1.0;
//! - chunks that are not as [`Chunks`] reads them.
//!
//! It follows heads and bodies exactly as hyper does, which is sure only because it refuses everything in between.

use crate::chunks::{Chunks, Piece};

/// How much of a line is kept when it comes in parts: enough for the headers that matter.
const KEPT: usize = 256;

pub(super) struct Grammar {
    place: Place,
    /// The start of a line that has come in part.
    line: Vec<u8>,
    /// The part ended in CR.
    cr: bool,
    head: Head,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    RequestLine,
    Headers,
    Length(u64),
    Chunked(Chunks),
}

#[derive(Default)]
struct Head {
    version_1_0: bool,
    length: Option<u64>,
    chunked: bool,
}

/// The byte at `at` must not be seen by anybody; `instead` makes hyper refuse in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) at: usize,
    pub(super) instead: &'static [u8],
}

/// In a head or in framing a NUL is an error wherever it stands.
const IN_HEAD: &[u8] = b"\0\r\n\r\n";
/// In a chunk's extension hyper minds nothing but this.
const IN_EXTENSION: &[u8] = b"\n";

impl Grammar {
    pub(super) const fn new() -> Self {
        let head = Head { version_1_0: false, length: None, chunked: false };
        Self { place: Place::RequestLine, line: Vec::new(), cr: false, head }
    }

    /// Whether a head has begun and not ended.
    pub(super) fn is_in_head(&self) -> bool {
        match self.place {
            Place::RequestLine => !self.line.is_empty() || self.cr,
            Place::Headers => true,
            Place::Length(_) | Place::Chunked(_) => false,
        }
    }

    /// Reads on.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        let mut at = 0;
        while at < bytes.len() {
            at += match &mut self.place {
                Place::RequestLine | Place::Headers => self.line(bytes, at)?,
                Place::Length(left) => {
                    let here = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len() - at);
                    *left -= here as u64;
                    if *left == 0 {
                        self.place = Place::RequestLine;
                    }
                    here
                }
                Place::Chunked(chunks) => {
                    let in_extension = chunks.in_extension();
                    match chunks.next(&bytes[at..]) {
                        Ok(Piece::Framing(n) | Piece::Data(n) | Piece::Trailers(n)) => n,
                        Ok(Piece::End(n)) => {
                            self.place = Place::RequestLine;
                            n
                        }
                        Err(_) => {
                            let instead = if in_extension { IN_EXTENSION } else { IN_HEAD };
                            return Err(Violation { at, instead });
                        }
                    }
                }
            };
        }
        Ok(())
    }

    /// Reads a line, or as much as there is; says how many bytes.
    fn line(&mut self, bytes: &[u8], from: usize) -> Result<usize, Violation> {
        let part = &bytes[from..];
        let violation = |here: usize| Violation { at: from + here, instead: IN_HEAD };
        let end = if self.cr {
            if part[0] != b'\n' {
                return Err(violation(0));
            }
            0
        } else {
            let Some(found) = memchr::memchr2(b'\r', b'\n', part) else {
                self.keep(part);
                return Ok(part.len());
            };
            if part[found] == b'\n' {
                return Err(violation(found));
            }
            match part.get(found + 1) {
                Some(b'\n') => found + 1,
                Some(_) => return Err(violation(found + 1)),
                None => {
                    self.keep(&part[..found]);
                    self.cr = true;
                    return Ok(part.len());
                }
            }
        };
        let here = &part[..end.saturating_sub(1)];
        let good = if self.line.is_empty() {
            self.whole(here)
        } else {
            self.keep(here);
            let line = std::mem::take(&mut self.line);
            self.whole(&line)
        };
        self.cr = false;
        if good { Ok(end + 1) } else { Err(violation(end)) }
    }

    fn keep(&mut self, part: &[u8]) {
        let room = KEPT.saturating_sub(self.line.len());
        self.line.extend_from_slice(&part[..part.len().min(room)]);
    }

    /// Takes a whole line, without its end; says whether it is good.
    fn whole(&mut self, line: &[u8]) -> bool {
        match (self.place, line.first()) {
            // RFC 9112, 2.2: an empty line before a request is passed over.
            (Place::RequestLine, None) => true,
            (Place::RequestLine, Some(_)) => {
                self.head = Head { version_1_0: line.ends_with(b"HTTP/1.0"), length: None, chunked: false };
                self.place = Place::Headers;
                true
            }
            (_, None) => self.end(),
            (_, Some(b' ' | b'\t')) => false,
            (_, Some(b'c' | b'C')) => match value(line, b"content-length") {
                Some(value) => self.length(value),
                None => true,
            },
            (_, Some(b't' | b'T')) => match value(line, b"transfer-encoding") {
                Some(value) => self.coding(value),
                None => true,
            },
            _ => true,
        }
    }

    fn length(&mut self, value: &[u8]) -> bool {
        // So many digits fit.
        if self.head.length.is_some() || !(1..19).contains(&value.len()) {
            return false;
        }
        self.head.length = value.iter().try_fold(0, |number, byte| match byte {
            b'0'..=b'9' => Some(number * 10 + u64::from(byte - b'0')),
            _ => None,
        });
        self.head.length.is_some()
    }

    fn coding(&mut self, value: &[u8]) -> bool {
        let good = !self.head.chunked && value.eq_ignore_ascii_case(b"chunked");
        self.head.chunked = true;
        good
    }

    fn end(&mut self) -> bool {
        self.place = match (self.head.length, self.head.chunked) {
            (Some(_), true) => return false,
            (None, true) if self.head.version_1_0 => return false,
            (None, true) => Place::Chunked(Chunks::new()),
            (Some(1..), false) => Place::Length(self.head.length.unwrap_or(0)),
            (Some(0) | None, false) => Place::RequestLine,
        };
        true
    }
}

/// The value of a line whose header has that name (in lower case), without blanks around it. A blank between name and
/// colon is no match; hyper refuses it.
fn value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (found, rest) = line.split_at_checked(name.len())?;
    if !found.eq_ignore_ascii_case(name) {
        return None;
    }
    let value = rest.strip_prefix(b":")?;
    let start = value.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(value.len());
    let end = value.iter().rposition(|byte| !matches!(byte, b' ' | b'\t')).map_or(start, |last| last + 1);
    Some(&value[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &[u8], cut: usize) -> Result<bool, usize> {
        let mut grammar = Grammar::new();
        for (i, part) in input.chunks(cut).enumerate() {
            grammar.read(part).map_err(|violation| i * cut + violation.at)?;
        }
        Ok(grammar.place == Place::RequestLine && !grammar.is_in_head())
    }

    #[test]
    fn good_requests_however_they_are_cut() {
        let cases: [&[u8]; 6] = [
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: a\r\ncontent-LENGTH:  5\t\r\n\r\nhelloGET / HTTP/1.1\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
            b"GET / HTTP/1.0\r\nContent-Type: a\r\nTe: b\r\n\r\n",
        ];
        for case in cases {
            for cut in 1..=case.len() {
                assert_eq!(read(case, cut), Ok(true), "{} by {cut}", case.escape_ascii());
            }
        }
        assert_eq!(read(b"GET / HT", 100), Ok(false));
        assert_eq!(read(b"GET / HTTP/1.1\r\n", 100), Ok(false));
    }

    #[test]
    fn what_is_refused_however_it_is_cut() {
        let cases: [&[u8]; 19] = [
            b"GET / HTTP/1.1\nHost: a\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\n\n",
            b"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\r\n\r\n",
            b"GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length:\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
        ];
        for case in cases {
            for cut in 1..=case.len() {
                assert!(read(case, cut).is_err(), "{} by {cut}", case.escape_ascii());
            }
        }
    }
}
