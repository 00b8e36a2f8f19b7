//! The chunked framing of HTTP/1.1, read strictly: where data is, and where it ends.
//!
//! One state machine for both directions: it reads responses of upstreams and requests of clients. Strict means: a size
//! has 1 to 15 hexadecimal digits; every line ends in CR LF, and neither stands alone; extensions follow the grammar of
//! RFC 9112, 7.1.1, are at most 256 bytes a line, and are dropped; trailers are bounded. Two ends that read the same bytes
//! differently are how requests are smuggled.

use crate::forward::may_trail;
use http::{HeaderMap, HeaderName, HeaderValue};

/// Longest extensions of one chunk, in bytes.
const LONGEST_EXTENSION: u16 = 256;
/// All trailers together.
const LONGEST_TRAILERS: u32 = 8 << 10;
const MOST_TRAILERS: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunks {
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size {
        value: u64,
        digits: u8,
    },
    Extension {
        value: u64,
        length: u16,
        at: Extension,
    },
    SizeLf {
        value: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    /// At the start of a trailer's line.
    LineStart {
        length: u32,
    },
    Line {
        length: u32,
    },
    LineLf {
        length: u32,
    },
    EndLf,
    End,
}

/// Position in the extensions of a chunk: `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extension {
    /// Blanks after the size or a value: only a further extension may follow.
    BeforeSemicolon,
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Token,
    Quoted,
    /// After a backslash in a quoted string.
    Escaped,
    /// Right after the closing quote.
    AfterQuoted,
}

impl Extension {
    /// Takes one byte other than CR; none if the grammar has no such byte here.
    const fn next(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Quoted, b'"') => Self::AfterQuoted,
            (Self::Quoted, b'\\') => Self::Escaped,
            (Self::Quoted | Self::Escaped, b'\t' | b' '..=b'~' | 0x80..) => Self::Quoted,
            (Self::BeforeName, b' ' | b'\t') => Self::BeforeName,
            (Self::BeforeName | Self::Name, _) if is_token(byte) => Self::Name,
            (Self::Name | Self::AfterName, b' ' | b'\t') => Self::AfterName,
            (Self::Name | Self::AfterName, b'=') => Self::BeforeValue,
            (Self::BeforeValue, b' ' | b'\t') => Self::BeforeValue,
            (Self::BeforeValue, b'"') => Self::Quoted,
            (Self::BeforeValue | Self::Token, _) if is_token(byte) => Self::Token,
            (Self::Token | Self::AfterQuoted | Self::BeforeSemicolon, b' ' | b'\t') => Self::BeforeSemicolon,
            (
                Self::Name | Self::AfterName | Self::Token | Self::AfterQuoted | Self::BeforeSemicolon,
                b';',
            ) => Self::BeforeName,
            _ => return None,
        })
    }

    /// Whether the line may end here.
    const fn is_complete(self) -> bool {
        matches!(self, Self::Name | Self::Token | Self::AfterQuoted)
    }
}

/// Whether `byte` may be part of a token (RFC 9110, 5.6.2).
const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// What the first bytes of the input are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// So many bytes of framing.
    Framing(usize),
    /// So many bytes of data.
    Data(usize),
    /// So many bytes of trailers, their line ends included.
    Trailers(usize),
    /// So many bytes, with which the body ends; they are part of the trailers' section.
    End(usize),
}

/// The framing is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken;

impl Chunks {
    pub(crate) const fn new() -> Self {
        Self { state: State::Size { value: 0, digits: 0 } }
    }

    /// Takes the first piece off `input`, which is not empty and starts where the last piece ended.
    pub(crate) fn next(&mut self, input: &[u8]) -> Result<Piece, Broken> {
        match self.state {
            State::Data { left } => {
                let here = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
                let left = left - here as u64;
                self.state = if left == 0 { State::DataCr } else { State::Data { left } };
                Ok(Piece::Data(here))
            }
            State::End => Ok(Piece::End(0)),
            State::LineStart { .. } | State::Line { .. } | State::LineLf { .. } | State::EndLf => {
                self.trailers(input)
            }
            _ => self.framing(input),
        }
    }

    fn framing(&mut self, input: &[u8]) -> Result<Piece, Broken> {
        for (i, &byte) in input.iter().enumerate() {
            self.state = match (self.state, byte) {
                (State::DataCr, b'\r') => State::DataLf,
                (State::DataLf, b'\n') => State::Size { value: 0, digits: 0 },
                (State::Size { value, digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') if digits < 15 => {
                    let digit = char::from(byte).to_digit(16).ok_or(Broken)?;
                    State::Size { value: value << 4 | u64::from(digit), digits: digits + 1 }
                }
                (State::Size { value, digits: 1.. }, b'\r') => State::SizeLf { value },
                (State::Size { value, digits: 1.. }, _) => {
                    let at = Extension::BeforeSemicolon.next(byte).ok_or(Broken)?;
                    State::Extension { value, length: 1, at }
                }
                (State::Extension { value, at, .. }, b'\r') if at.is_complete() => State::SizeLf { value },
                (State::Extension { value, length, at }, _) if length < LONGEST_EXTENSION => {
                    State::Extension { value, length: length + 1, at: at.next(byte).ok_or(Broken)? }
                }
                (State::SizeLf { value: 0 }, b'\n') => State::LineStart { length: 0 },
                (State::SizeLf { value }, b'\n') => State::Data { left: value },
                _ => return Err(Broken),
            };
            if matches!(self.state, State::Data { .. } | State::LineStart { .. }) {
                return Ok(Piece::Framing(i + 1));
            }
        }
        Ok(Piece::Framing(input.len()))
    }

    fn trailers(&mut self, input: &[u8]) -> Result<Piece, Broken> {
        for (i, &byte) in input.iter().enumerate() {
            self.state = match (self.state, byte) {
                (State::LineStart { .. }, b'\r') => State::EndLf,
                (State::EndLf, b'\n') => {
                    self.state = State::End;
                    return Ok(Piece::End(i + 1));
                }
                // A line that starts with a blank would continue the one before.
                (State::LineStart { .. }, b' ' | b'\t') => return Err(Broken),
                (State::Line { length }, b'\r') => State::LineLf { length },
                (State::LineLf { length }, b'\n') => State::LineStart { length },
                (State::LineStart { length } | State::Line { length }, b'\t' | b' '..=b'~' | 0x80..)
                    if length < LONGEST_TRAILERS =>
                {
                    State::Line { length: length + 1 }
                }
                _ => return Err(Broken),
            };
        }
        Ok(Piece::Trailers(input.len()))
    }
}

/// Whether the framing of the first bytes of a body is well formed, as far as they go.
pub(crate) fn check_start(mut input: &[u8]) -> Result<(), Broken> {
    let mut chunks = Chunks::new();
    while !input.is_empty() {
        match chunks.next(input)? {
            Piece::Framing(n) | Piece::Data(n) | Piece::Trailers(n) => input = &input[n..],
            Piece::End(_) => break,
        }
    }
    Ok(())
}

/// Trailers with the empty line that ends them, those that may be; none if there is no more than that.
pub(crate) fn trailers(bytes: &[u8]) -> Result<Option<HeaderMap>, Broken> {
    if bytes.len() <= 2 {
        return Ok(None);
    }
    let mut slots = [httparse::EMPTY_HEADER; MOST_TRAILERS];
    let httparse::Status::Complete((_, fields)) =
        httparse::parse_headers(bytes, &mut slots).map_err(|_| Broken)?
    else {
        return Ok(None);
    };
    let mut trailers = HeaderMap::with_capacity(fields.len());
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| Broken)?;
        let value = HeaderValue::from_bytes(field.value).map_err(|_| Broken)?;
        if may_trail(&name) {
            trailers.append(name, value);
        }
    }
    Ok(Some(trailers))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data, trailers, and how much is left after the end.
    type Read = (Vec<u8>, Vec<u8>, Option<usize>);

    /// Reads `input` in parts of `cut` bytes.
    fn read(input: &[u8], cut: usize) -> Result<Read, Broken> {
        let (mut chunks, mut data, mut trailers, mut at) = (Chunks::new(), Vec::new(), Vec::new(), 0);
        while at < input.len() {
            let part = &input[at..input.len().min(at + cut)];
            at += match chunks.next(part)? {
                Piece::Framing(n) => n,
                Piece::Data(n) => {
                    data.extend_from_slice(&part[..n]);
                    n
                }
                Piece::Trailers(n) => {
                    trailers.extend_from_slice(&part[..n]);
                    n
                }
                Piece::End(n) => {
                    trailers.extend_from_slice(&part[..n]);
                    return Ok((data, trailers, Some(input.len() - at - n)));
                }
            };
        }
        Ok((data, trailers, None))
    }

    #[test]
    fn whole_or_byte_by_byte() {
        let input = b"5;a=b\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\na: b\r\n\r\nGET";
        for cut in [1, 2, 3, 7, 100] {
            let (data, trailers, left) = read(input, cut).expect("good framing");
            assert_eq!(data, b"hello world", "cut {cut}");
            assert_eq!(trailers, b"a: b\r\n\r\n", "cut {cut}");
            assert_eq!(left, Some(3), "cut {cut}");
        }
        assert_eq!(read(b"0\r\n\r\n", 100), Ok((vec![], b"\r\n".to_vec(), Some(0))));
    }

    #[test]
    fn what_is_broken() {
        let cases: [&[u8]; 17] = [
            b"5\nhello\r\n0\r\n\r\n",
            b"5\rhello",
            b"\r\n",
            b"0x5\r\nhello",
            b"-5\r\nhello",
            b"+5\r\nhello",
            b"5 \r\nhello",
            b" 5\r\nhello",
            b"5;a\nb\r\nhello",
            b"5;a\0b\r\nhello",
            b"5\r\nhelloX\r\n",
            b"5\r\nhello\n0\r\n\r\n",
            b"1000000000000000\r\n",
            b"0\r\n\n",
            b"0\r\na: b\n\r\n",
            b"0\r\n a: b\r\n\r\n",
            b"g\r\n",
        ];
        for case in cases {
            assert!(read(case, 1).is_err(), "{}", case.escape_ascii());
            assert!(read(case, 100).is_err(), "{}", case.escape_ascii());
        }
        assert!(read(&[b"5;".as_slice(), &[b'x'; 300]].concat(), 100).is_err());
        assert!(read(&[b"0\r\na:".as_slice(), &[b'x'; 9000]].concat(), 100).is_err());
    }

    /// Whether a chunk of five bytes with these bytes after its size is read, whole and byte by byte alike.
    fn is_read(extensions: &[u8]) -> bool {
        let input = [b"5", extensions, b"\r\nhello\r\n0\r\n\r\n"].concat();
        let read: Vec<_> =
            [1, 2, 3, input.len()].map(|cut| read(&input, cut).is_ok_and(|read| read.0 == b"hello")).into();
        assert!(read.windows(2).all(|pair| pair[0] == pair[1]), "{}: {read:?}", extensions.escape_ascii());
        read[0]
    }

    #[test]
    fn well_formed_extensions_are_skipped() {
        let cases: [&[u8]; 13] = [
            b"",
            b";a",
            b";a;b",
            b";a=b",
            b" ; a = b",
            b"\t;\ta\t=\tb\t;c",
            b";a ;b",
            b";a=\"\"",
            b";a=\"b c;=\xe4\t\"",
            b";a=\"\\\"\\\\\" ;b=\"\"",
            b";!#$%&'*+-.^_`|~09AZaz=1",
            b";a=b;c=\"d\";e",
            b";a=\"b\";c",
        ];
        for case in cases {
            assert!(is_read(case), "{}", case.escape_ascii());
        }
    }

    #[test]
    fn malformed_extensions_are_refused() {
        let cases: [&[u8]; 26] = [
            b";",
            b"; ",
            b" ",
            b";;a",
            b";a;",
            b";a=",
            b";a= ",
            b";=b",
            b";a ",
            b";a=b ",
            b";a=\"b\" ",
            b";a b",
            b";a=b c",
            b";a=b=c",
            b";a=\"b",
            b";a=\"b\"c",
            b";a=b\"c\"",
            b";a=\"b\\\"",
            b";a,b",
            b";\xe4",
            b";a=\xe4",
            b";a=\"\x01\"",
            b";a=\"\x7f\"",
            b";a=\"\\\0\"",
            b";a=\"\r\n\"",
            b" a",
        ];
        for case in cases {
            assert!(!is_read(case), "{}", case.escape_ascii());
        }
        for byte in (0..=b' ').chain([b'\n', b'\r', 0x7f]) {
            assert!(!is_read(&[b';', b'a', byte, b'b']), "{byte}");
        }
    }

    #[test]
    fn extensions_have_a_size() {
        let quoted = |length: usize| [b";a=\"", &vec![b'x'; length][..], b"\""].concat();
        assert!(is_read(&quoted(251)));
        assert!(!is_read(&quoted(252)));
    }
}
