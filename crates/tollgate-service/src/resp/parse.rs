//! Requests out of bytes: arrays of bulk strings, or a line of words.
//!
//! Nothing is copied but the words of a line. What was read of a request that is not whole yet is not read again: the parser
//! knows where it stopped, and what it waits for.

use thiserror::Error;

/// How much a client may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes in a request.
    pub(crate) request: usize,
    /// Arguments, the command's name among them.
    pub(crate) arguments: usize,
    /// Bytes in an argument.
    pub(crate) argument: usize,
}

/// Bytes in a line of words; fewer where a request may have no more.
const LONGEST_LINE: usize = 64 * 1024;
/// Digits of a length, with its sign; no length that is accepted has as many.
const LONGEST_NUMBER: usize = 20;

/// Why bytes are no request. There is no telling where the next one would begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Flaw {
    #[error("invalid multibulk length")]
    ArrayLength,
    #[error("invalid bulk length")]
    BulkLength,
    #[error("expected '$', got '{}'", .0.escape_ascii())]
    NotBulk(u8),
    #[error("expected CRLF behind a bulk string")]
    NoEnd,
    #[error("too many arguments: at most {0}")]
    TooMany(usize),
    #[error("an argument is too long: at most {0} bytes")]
    TooLong(usize),
    #[error("the request is too long: at most {0} bytes")]
    TooLarge(usize),
    #[error("too big inline request")]
    LineTooLong,
    #[error("unbalanced quotes in request")]
    Quotes,
}

/// Reads one request after the other from the front of a buffer.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    state: State,
    /// How far it has read.
    at: usize,
    arguments: Vec<(usize, usize)>,
    /// The words of a line, unquoted, which the arguments then are in.
    words: Vec<u8>,
    is_line: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    /// So many arguments are still to come.
    Arguments(usize),
    /// As many, and the first of them is not short, or not all of it is here.
    Argument(usize),
    /// One of so many bytes, and so many after it.
    Bulk { length: usize, left: usize },
    /// A line that has no end yet.
    Line,
}

/// A whole request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    bytes: &'a [u8],
    arguments: &'a [(usize, usize)],
    is_line: bool,
}

impl<'a> Request<'a> {
    /// How many arguments, the command's name among them; none in an empty line.
    pub(crate) const fn len(&self) -> usize {
        self.arguments.len()
    }

    /// Whether it is a line of HTTP: of a browser that was made to send commands in a body, to where only it can reach.
    pub(crate) fn is_http(&self) -> bool {
        let first = self.get(0);
        let is_host = || first.get(..5).is_some_and(|it| it.eq_ignore_ascii_case(b"host:"));
        self.is_line && (first.eq_ignore_ascii_case(b"post") || is_host())
    }

    /// The argument in this place; nothing where there is none.
    pub(crate) fn get(&self, place: usize) -> &'a [u8] {
        self.arguments.get(place).map_or(&[], |(from, to)| &self.bytes[*from..*to])
    }

    /// The arguments from this place on.
    pub(crate) fn from(&self, place: usize) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.arguments.get(place..).unwrap_or_default().iter().map(move |(from, to)| &bytes[*from..*to])
    }
}

impl Parser {
    /// Reads on in `bytes`, which begin with the request at hand and have grown since. The length of the request once it is
    /// whole; `None` where more has to come.
    pub(crate) fn parse(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, Flaw> {
        loop {
            match self.state {
                State::Start => match bytes.first() {
                    None => return Ok(None),
                    Some(b'*') => match number(bytes, 1).map_err(|()| Flaw::ArrayLength)? {
                        None => return Ok(None),
                        Some((count, next)) => {
                            let count = usize::try_from(count).unwrap_or(0);
                            if count > limits.arguments {
                                return Err(Flaw::TooMany(limits.arguments));
                            }
                            (self.state, self.at) = (State::Arguments(count), next);
                        }
                    },
                    Some(_) => self.state = State::Line,
                },
                State::Arguments(left) => match self.short(bytes, left, limits) {
                    0 => return Ok(Some(self.at)),
                    left => self.state = State::Argument(left),
                },
                State::Argument(left) => match bytes.get(self.at) {
                    None => return Ok(None),
                    Some(b'$') => match number(bytes, self.at + 1).map_err(|()| Flaw::BulkLength)? {
                        None => return Ok(None),
                        Some((length, next)) => {
                            let length = usize::try_from(length).map_err(|_| Flaw::BulkLength)?;
                            if length > limits.argument {
                                return Err(Flaw::TooLong(limits.argument));
                            }
                            if next + length > limits.request {
                                return Err(Flaw::TooLarge(limits.request));
                            }
                            (self.state, self.at) = (State::Bulk { length, left: left - 1 }, next);
                        }
                    },
                    Some(other) => return Err(Flaw::NotBulk(*other)),
                },
                State::Bulk { length, left } => {
                    let end = self.at + length;
                    match bytes.get(end..end + 2) {
                        None => return Ok(None),
                        Some(b"\r\n") => {}
                        Some(_) => return Err(Flaw::NoEnd),
                    }
                    self.arguments.push((self.at, end));
                    (self.state, self.at) = (State::Arguments(left), end + 2);
                }
                State::Line => return self.line(bytes, limits),
            }
        }
    }

    /// Takes arguments that are short and whole, which most are. How many are left: the next is another kind, or has a flaw.
    fn short(&mut self, bytes: &[u8], mut left: usize, limits: &Limits) -> usize {
        let mut at = self.at;
        while left > 0 {
            let (length, from) = match bytes.get(at..) {
                Some([b'$', one @ b'0'..=b'9', b'\r', b'\n', ..]) => (one - b'0', at + 4),
                Some([b'$', ten @ b'0'..=b'9', one @ b'0'..=b'9', b'\r', b'\n', ..]) => {
                    (10 * (ten - b'0') + (one - b'0'), at + 5)
                }
                _ => break,
            };
            let length = usize::from(length);
            let end = from + length;
            if length > limits.argument || end > limits.request {
                break;
            }
            let Some([b'\r', b'\n']) = bytes.get(end..end + 2) else { break };
            self.arguments.push((from, end));
            (at, left) = (end + 2, left - 1);
        }
        self.at = at;
        left
    }

    /// The request that [`parse`](Self::parse) has just found whole, in the same bytes.
    pub(crate) fn request<'a>(&'a self, bytes: &'a [u8]) -> Request<'a> {
        let bytes = if self.is_line { &self.words } else { bytes };
        Request { bytes, arguments: &self.arguments, is_line: self.is_line }
    }

    /// How many bytes the request at hand has at least, as far as is known.
    pub(crate) const fn needs(&self) -> usize {
        match self.state {
            State::Bulk { length, .. } => self.at + length + 2,
            _ => self.at,
        }
    }

    /// Goes on to the next request.
    pub(crate) fn next(&mut self) {
        (self.state, self.at, self.is_line) = (State::Start, 0, false);
        self.arguments.clear();
        self.words.clear();
        self.words.shrink_to(1_024);
    }

    fn line(&mut self, bytes: &[u8], limits: &Limits) -> Result<Option<usize>, Flaw> {
        let end = bytes[self.at..].iter().position(|byte| *byte == b'\n').map(|end| end + self.at);
        if end.unwrap_or(bytes.len()) > LONGEST_LINE.min(limits.request) {
            return Err(Flaw::LineTooLong);
        }
        let Some(end) = end else {
            self.at = bytes.len();
            return Ok(None);
        };
        let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
        self.is_line = true;
        split(line, &mut self.words, &mut self.arguments)?;
        if self.arguments.len() > limits.arguments {
            return Err(Flaw::TooMany(limits.arguments));
        }
        self.at = end + 1;
        Ok(Some(end + 1))
    }
}

/// A whole number and its CRLF, from there on: what it is, and where it ends; `None` where more has to come.
#[inline]
fn number(bytes: &[u8], from: usize) -> Result<Option<(i64, usize)>, ()> {
    // Most have one digit.
    if let Some([digit @ b'0'..=b'9', b'\r', b'\n', ..]) = bytes.get(from..) {
        return Ok(Some((i64::from(digit - b'0'), from + 3)));
    }
    let (mut value, mut at, mut is_negative) = (0_i64, from, false);
    loop {
        match bytes.get(at) {
            None => return Ok(None),
            Some(digit @ b'0'..=b'9') if at - from < LONGEST_NUMBER => {
                value = value.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
            }
            Some(b'-') if at == from => is_negative = true,
            Some(b'\r') if at > from + usize::from(is_negative) => {
                return match bytes.get(at + 1) {
                    None => Ok(None),
                    Some(b'\n') => Ok(Some((if is_negative { -value } else { value }, at + 2))),
                    Some(_) => Err(()),
                };
            }
            Some(_) => return Err(()),
        }
        at += 1;
    }
}

/// Words of a line, parted by blanks; one in quotes may have blanks in it, and in double quotes escapes.
fn split(line: &[u8], words: &mut Vec<u8>, places: &mut Vec<(usize, usize)>) -> Result<(), Flaw> {
    let mut rest = line.iter().copied().peekable();
    loop {
        while rest.next_if(u8::is_ascii_whitespace).is_some() {}
        let Some(first) = rest.next_if(|_| true) else { return Ok(()) };
        let from = words.len();
        match first {
            b'\'' | b'"' => {
                loop {
                    let byte = rest.next().ok_or(Flaw::Quotes)?;
                    if byte == first {
                        break;
                    }
                    if byte != b'\\' {
                        words.push(byte);
                        continue;
                    }
                    let escaped = rest.next().ok_or(Flaw::Quotes)?;
                    if first == b'\'' {
                        // Only the quote itself can be escaped there.
                        words.extend_from_slice(if escaped == b'\'' { b"" } else { b"\\" });
                        words.push(escaped);
                        continue;
                    }
                    words.push(match escaped {
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        b'a' => 7,
                        b'b' => 8,
                        b'x' => {
                            let high = rest.next().and_then(digit).ok_or(Flaw::Quotes)?;
                            let low = rest.next().and_then(digit).ok_or(Flaw::Quotes)?;
                            high << 4 | low
                        }
                        other => other,
                    });
                }
                if rest.peek().is_some_and(|byte| !byte.is_ascii_whitespace()) {
                    return Err(Flaw::Quotes);
                }
            }
            first => {
                words.push(first);
                while let Some(byte) = rest.next_if(|byte| !byte.is_ascii_whitespace()) {
                    words.push(byte);
                }
            }
        }
        places.push((from, words.len()));
    }
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::{Fuzz, Random};

    const LIMITS: Limits = Limits { request: 1 << 20, arguments: 1024, argument: 512 * 1024 };

    type Words = Vec<Vec<u8>>;

    /// Every request in `input` when it comes in pieces, and what is wrong with the rest of it, if anything is.
    fn read(input: &[u8], mut piece: impl FnMut() -> usize) -> (Vec<Words>, Option<Flaw>) {
        let (mut parser, mut found) = (Parser::default(), Vec::new());
        let (mut start, mut end) = (0, 0);
        loop {
            match parser.parse(&input[start..end], &LIMITS) {
                Ok(Some(length)) => {
                    assert!(length > 0 && start + length <= end, "a request has a length");
                    let request = parser.request(&input[start..end]);
                    assert!(request.len() <= LIMITS.arguments);
                    found.push(request.from(0).map(<[u8]>::to_vec).collect());
                    start += length;
                    parser.next();
                }
                Ok(None) if end == input.len() => return (found, None),
                Ok(None) => {
                    assert!(parser.needs() <= LIMITS.request + 2, "it waits for more than it may");
                    end = input.len().min(end + piece().max(1));
                }
                Err(flaw) => return (found, Some(flaw)),
            }
        }
    }

    fn words(input: &[u8]) -> (Vec<Words>, Option<Flaw>) {
        let whole = read(input, || usize::MAX / 2);
        assert_eq!(whole, read(input, || 1), "byte by byte");
        whole
    }

    fn one(input: &[u8]) -> Vec<String> {
        let (found, flaw) = words(input);
        assert_eq!((found.len(), flaw), (1, None), "{found:?}");
        found[0].iter().map(|word| word.escape_ascii().to_string()).collect()
    }

    fn flaw(input: &[u8]) -> String {
        words(input).1.map_or_else(String::new, |flaw| flaw.to_string())
    }

    #[test]
    fn arrays_and_lines_are_requests() {
        assert_eq!(one(b"*2\r\n$4\r\nECHO\r\n$3\r\na\0\n\r\n"), ["ECHO", "a\\x00\\n"]);
        assert_eq!(one(b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n"), ["ECHO", ""]);
        assert_eq!(one(b"ping\r\n"), ["ping"]);
        assert_eq!(one(b"  echo  \"a b\\x41\\n\" 'c\\'d\\n'\n"), ["echo", "a bA\\n", "c\\'d\\\\n"]);
        assert_eq!(one(b"*0\r\n"), [""; 0]);
        assert_eq!(one(b"*-1\r\n"), [""; 0]);
        assert_eq!(one(b"\r\n"), [""; 0]);
        let (found, flaw) = words(b"PING\r\n*1\r\n$4\r\nPING\r\n\nPING\n");
        assert_eq!((found.len(), flaw), (4, None));
    }

    #[test]
    fn mistakes_are_told_apart() {
        assert_eq!(flaw(b"*x\r\n"), "invalid multibulk length");
        assert_eq!(flaw(b"*\r\n"), "invalid multibulk length");
        assert_eq!(flaw(b"*-\r\n"), "invalid multibulk length");
        assert_eq!(flaw(b"*1\rx"), "invalid multibulk length");
        assert_eq!(flaw(b"*99999999999999999999999"), "invalid multibulk length");
        assert_eq!(flaw(b"*1025\r\n"), "too many arguments: at most 1024");
        assert_eq!(flaw(b"*1\r\n+OK\r\n"), "expected '$', got '+'");
        assert_eq!(flaw(b"*1\r\n\n"), "expected '$', got '\\n'");
        assert_eq!(flaw(b"*1\r\n$-1\r\n"), "invalid bulk length");
        assert_eq!(flaw(b"*1\r\n$1a\r\n"), "invalid bulk length");
        assert_eq!(flaw(b"*1\r\n$9223372036854775807\r\n"), "an argument is too long: at most 524288 bytes");
        assert_eq!(flaw(b"*1\r\n$4\r\nPINGxx"), "expected CRLF behind a bulk string");
        assert_eq!(flaw(b"echo \"a\r\n"), "unbalanced quotes in request");
        assert_eq!(flaw(b"echo \"a\"b\r\n"), "unbalanced quotes in request");
        assert_eq!(flaw(b"echo \"\\x4\"\r\n"), "unbalanced quotes in request");
        assert_eq!(flaw(&[b'a'; LONGEST_LINE + 1]), "too big inline request");
        let mut long = vec![b'a'; LONGEST_LINE + 1];
        long.push(b'\n');
        assert_eq!(flaw(&long), "too big inline request");
    }

    #[test]
    fn a_line_is_no_longer_than_a_request() {
        let limits = Limits { request: 100, ..LIMITS };
        for end in ["", "\n"] {
            let read = |length| {
                Parser::default().parse(&["a".repeat(length), end.into()].concat().into_bytes(), &limits)
            };
            assert_eq!(read(101), Err(Flaw::LineTooLong));
            assert!(read(100).is_ok());
        }
    }

    #[test]
    fn a_request_may_not_be_longer_than_all_its_arguments_together() {
        let argument = [&b"$524288\r\n"[..], &vec![b'x'; 524_288], b"\r\n"].concat();
        let request = [&b"*3\r\n"[..], &argument, &argument, &argument].concat();
        assert_eq!(
            read(&request, || 65_536).1.map(|flaw| flaw.to_string()),
            Some("the request is too long: at most 1048576 bytes".to_owned())
        );
    }

    /// However the bytes are cut, the same requests come out; whatever the bytes are, nothing panics.
    #[test]
    fn fuzzed_input_is_the_same_however_it_is_cut() {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/resp");
        let inputs = Fuzz::from(corpus).run(|input: &[u8], random: &mut Random| {
            let whole = read(input, || usize::MAX / 2);
            assert_eq!(whole, read(input, || random.below(40)), "cut anywhere");
            assert_eq!(whole, read(input, || 1), "byte by byte");
        });
        assert!(inputs > 100, "{inputs} inputs");
    }
}
