//! Headers of an answer that are passed on as they came.
//!
//! Most of what a server answers with is for the client, and nobody here looks at it. Such lines stay in the memory they were read into and
//! go out from there; a map of them would be made, hashed and taken apart again for every answer.

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;
use std::ops::Range;

/// Lines of a head.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    head: Bytes,
    /// Where they are: each range is some whole lines, line ends included.
    lines: SmallVec<[Range<u32>; 4]>,
    /// Lines of our own.
    own: Vec<u8>,
    /// One of them is the date.
    pub(crate) dated: bool,
}

impl Passed {
    pub(crate) fn new(head: Bytes) -> Self {
        Self { head, lines: SmallVec::new(), own: Vec::new(), dated: false }
    }

    /// Adds a line. The head is far smaller than the numbers allow.
    pub(crate) fn push(&mut self, line: Range<usize>) {
        let line = line.start as u32..line.end as u32;
        match self.lines.last_mut() {
            Some(last) if last.end == line.start => last.end = line.end,
            _ => self.lines.push(line),
        }
    }

    /// For lines of our own, each with its end.
    pub(crate) fn own(&mut self) -> &mut Vec<u8> {
        &mut self.own
    }

    /// How many bytes they are.
    pub(crate) fn len(&self) -> usize {
        self.lines.iter().map(|lines| (lines.end - lines.start) as usize).sum::<usize>() + self.own.len()
    }

    pub(crate) fn write(&self, out: &mut BytesMut) {
        self.lines.iter().for_each(|lines| out.put_slice(self.bytes(lines)));
        out.put_slice(&self.own);
    }

    /// Puts them into a map, for whoever wants one.
    pub(crate) fn unpack(self, headers: &mut HeaderMap) {
        let pieces = self.lines.iter().map(|lines| self.bytes(lines)).chain([&self.own[..]]);
        for line in pieces.flat_map(|piece| piece.split(|byte| *byte == b'\n')) {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(&line[..colon]), value) {
                headers.append(name, value);
            }
        }
    }

    fn bytes(&self, lines: &Range<u32>) -> &[u8] {
        &self.head[lines.start as usize..lines.end as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_out_as_they_came_or_into_a_map() {
        let head = Bytes::from_static(b"HTTP/1.1 200 OK\r\nA: b\r\nC:  d e\t\r\nX: y\r\na: f:g\r\n\r\n");
        let mut passed = Passed::new(head);
        passed.push(17..23);
        passed.push(23..33);
        passed.push(39..47);
        passed.own().extend_from_slice(b"h: i\r\n");
        assert_eq!((passed.lines.len(), passed.len()), (2, 30));
        let mut out = BytesMut::new();
        passed.write(&mut out);
        assert_eq!(out, "A: b\r\nC:  d e\t\r\na: f:g\r\nh: i\r\n");
        let mut headers = HeaderMap::new();
        passed.unpack(&mut headers);
        let found: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        assert_eq!(found, [("a", &b"b"[..]), ("a", b"f:g"), ("c", b"d e"), ("h", b"i")]);
    }
}
