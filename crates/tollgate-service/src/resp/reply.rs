//! Answers into bytes, in the protocol that the client chose.

use std::borrow::Cow;

/// Which of the two protocols is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Protocol {
    #[default]
    Two,
    Three,
}

/// What of a client's own words is repeated to it.
const LONGEST_ECHO: usize = 128;

/// A kind, the longest number with its sign, and the end of its line.
const LONGEST_COUNT: usize = 1 + 20 + 2;

/// What a decision is told by: limited, limit, remaining, retry after, reset after.
const TOLD: usize = 5;

/// Numbers below a hundred in two digits.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < pairs.len() {
        pairs[number] = [b'0' + number as u8 / 10, b'0' + number as u8 % 10];
        number += 1;
    }
    pairs
};

/// Appends answers to a buffer.
pub(crate) struct Reply<'o> {
    out: &'o mut Vec<u8>,
    protocol: Protocol,
}

impl<'o> Reply<'o> {
    pub(crate) const fn new(out: &'o mut Vec<u8>, protocol: Protocol) -> Self {
        Self { out, protocol }
    }

    pub(crate) fn simple(&mut self, text: &str) {
        self.out.push(b'+');
        self.out.extend_from_slice(text.as_bytes());
        self.end();
    }

    pub(crate) fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// An error, on one line whatever is in it.
    pub(crate) fn error(&mut self, text: &str) {
        self.out.push(b'-');
        self.out.extend(text.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }));
        self.end();
    }

    pub(crate) fn integer(&mut self, value: i64) {
        self.counted(b':', value);
    }

    pub(crate) fn bulk(&mut self, bytes: &[u8]) {
        self.counted(b'$', bytes.len() as i64);
        self.out.extend_from_slice(bytes);
        self.end();
    }

    /// Text that a person reads.
    pub(crate) fn text(&mut self, text: &str) {
        match self.protocol {
            Protocol::Two => self.bulk(text.as_bytes()),
            Protocol::Three => {
                self.counted(b'=', text.len() as i64 + 4);
                self.out.extend_from_slice(b"txt:");
                self.out.extend_from_slice(text.as_bytes());
                self.end();
            }
        }
    }

    pub(crate) fn null(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Two => b"$-1\r\n",
            Protocol::Three => b"_\r\n",
        });
    }

    pub(crate) fn array(&mut self, many: usize) {
        self.counted(b'*', many as i64);
    }

    /// So many pairs; an array of twice as many where there are no maps.
    pub(crate) fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Two => self.counted(b'*', pairs as i64 * 2),
            Protocol::Three => self.counted(b'%', pairs as i64),
        }
    }

    /// An array of so many, which begins with these whole numbers: what every decision is told by, so it is appended at once.
    pub(crate) fn array_of(&mut self, many: usize, first: [i64; TOLD]) {
        let mut lines = [0; (1 + TOLD) * LONGEST_COUNT];
        let mut at = lines.len();
        for value in first.iter().rev() {
            at = line(&mut lines, at, b':', *value);
        }
        at = line(&mut lines, at, b'*', many as i64);
        self.out.extend_from_slice(&lines[at..]);
    }

    fn counted(&mut self, kind: u8, value: i64) {
        let mut lines = [0; LONGEST_COUNT];
        let at = line(&mut lines, LONGEST_COUNT, kind, value);
        self.out.extend_from_slice(&lines[at..]);
    }

    fn end(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }
}

/// Writes a line that ends before `end`, from its end, two digits a step. Where it begins.
#[inline(always)]
fn line<const N: usize>(lines: &mut [u8; N], end: usize, kind: u8, value: i64) -> usize {
    match value {
        0..=9 => {
            lines[end - 4..end].copy_from_slice(&[kind, b'0' + value as u8, b'\r', b'\n']);
            return end - 4;
        }
        -1 => {
            lines[end - 5..end].copy_from_slice(&[kind, b'-', b'1', b'\r', b'\n']);
            return end - 5;
        }
        _ => {}
    }
    let mut at = end - 2;
    lines[at..end].copy_from_slice(b"\r\n");
    let mut rest = value.unsigned_abs();
    while rest > 9 {
        at -= 2;
        lines[at..at + 2].copy_from_slice(&PAIRS[(rest % 100) as usize]);
        rest /= 100;
    }
    if rest > 0 {
        at -= 1;
        lines[at] = b'0' + rest as u8;
    }
    if value < 0 {
        at -= 1;
        lines[at] = b'-';
    }
    at -= 1;
    lines[at] = kind;
    at
}

/// A client's own words, short enough to be repeated to it.
pub(crate) fn echoed(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST_ECHO)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(protocol: Protocol, write: impl FnOnce(&mut Reply<'_>)) -> String {
        let mut out = Vec::new();
        write(&mut Reply::new(&mut out, protocol));
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn numbers_of_every_size() {
        for number in [0, 9, 10, 99, 100, 105, 1000, 1234567, i64::MAX, -1, -10, i64::MIN] {
            assert_eq!(written(Protocol::Two, |reply| reply.integer(number)), format!(":{number}\r\n"));
        }
        for power in 1..19 {
            for number in [10_i64.pow(power) - 1, 10_i64.pow(power), 10_i64.pow(power) + 1] {
                let expected = format!("*6\r\n:{number}\r\n:-{number}\r\n:0\r\n:-1\r\n:{number}\r\n");
                let numbers = [number, -number, 0, -1, number];
                assert_eq!(written(Protocol::Two, |reply| reply.array_of(6, numbers)), expected);
            }
        }
    }

    #[test]
    fn an_error_stays_on_its_line() {
        assert_eq!(written(Protocol::Two, |reply| reply.error("ERR a\r\n+OK")), "-ERR a  +OK\r\n");
    }

    #[test]
    fn what_differs_between_the_protocols() {
        assert_eq!(written(Protocol::Two, |reply| reply.null()), "$-1\r\n");
        assert_eq!(written(Protocol::Three, |reply| reply.null()), "_\r\n");
        assert_eq!(written(Protocol::Two, |reply| reply.map(3)), "*6\r\n");
        assert_eq!(written(Protocol::Three, |reply| reply.map(3)), "%3\r\n");
        assert_eq!(written(Protocol::Three, |reply| reply.text("hi")), "=6\r\ntxt:hi\r\n");
    }
}
