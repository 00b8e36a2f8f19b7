//! What Redis answers, in the older of its two protocols.

use std::io::{self, BufRead, ErrorKind::InvalidData, ErrorKind::UnexpectedEof};

/// One answer of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// `+OK`.
    Status(String),
    /// `-ERR ...`, without the dash.
    Error(String),
    /// `:1`.
    Integer(i64),
    /// A string of bytes.
    Bulk(Vec<u8>),
    /// No string, or no array.
    Nil,
    /// Several answers.
    Array(Vec<Reply>),
}

impl Reply {
    /// The text of a status, an error, a string or a number.
    ///
    /// # Panics
    ///
    /// On nil and on arrays.
    #[track_caller]
    pub fn text(&self) -> String {
        match self {
            Self::Status(text) | Self::Error(text) => text.clone(),
            Self::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Integer(number) => number.to_string(),
            Self::Nil | Self::Array(_) => panic!("not a text: {self:?}"),
        }
    }

    /// The number.
    ///
    /// # Panics
    ///
    /// If it is none.
    #[track_caller]
    pub fn integer(&self) -> i64 {
        match self {
            Self::Integer(number) => *number,
            _ => panic!("not a number: {self:?}"),
        }
    }

    /// The answers in an array.
    ///
    /// # Panics
    ///
    /// If it is none.
    #[track_caller]
    pub fn items(&self) -> &[Reply] {
        match self {
            Self::Array(items) => items,
            _ => panic!("not an array: {self:?}"),
        }
    }

    /// The value after `name`, in an array of names and values or in lines of `name:value`. Empty if there is no such
    /// name.
    #[track_caller]
    pub fn field(&self, name: &str) -> String {
        match self {
            Self::Array(items) => {
                let mut pairs = items.chunks_exact(2);
                pairs.find(|pair| pair[0].text() == name).map(|pair| pair[1].text()).unwrap_or_default()
            }
            _ => {
                let text = self.text();
                let mut values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
                values.next().unwrap_or_default().to_owned()
            }
        }
    }

    /// Whether the server refused.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// Itself, if the server did not refuse.
    ///
    /// # Panics
    ///
    /// If it did.
    #[track_caller]
    pub fn done(self) -> Self {
        assert!(!self.is_error(), "the server refused: {}", self.text());
        self
    }

    /// Reads one answer.
    pub(crate) fn read(from: &mut impl BufRead) -> io::Result<Self> {
        let line = read_line(from)?;
        let Some((kind, rest)) = line.split_at_checked(1) else { return Err(nonsense(&line)) };
        Ok(match kind {
            "+" => Self::Status(rest.to_owned()),
            "-" => Self::Error(rest.to_owned()),
            ":" => Self::Integer(number(rest)?),
            "$" => match usize::try_from(number(rest)?) {
                Ok(length) => Self::Bulk(read_bytes(from, length)?),
                Err(_) => Self::Nil,
            },
            "*" => match usize::try_from(number(rest)?) {
                Ok(length) => Self::Array((0..length).map(|_| Self::read(from)).collect::<io::Result<_>>()?),
                Err(_) => Self::Nil,
            },
            _ => return Err(nonsense(&line)),
        })
    }
}

fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    let Some(line) = line.strip_suffix(b"\r\n") else {
        // Bytes without an end are an answer broken off, unless they could not begin one.
        let begins = line.first().is_none_or(|first| b"+-:$*".contains(first));
        return Err(if begins { UnexpectedEof.into() } else { nonsense(&String::from_utf8_lossy(&line)) });
    };
    String::from_utf8(line.to_vec()).map_err(|e| io::Error::new(InvalidData, e))
}

/// The string and the line end behind it.
fn read_bytes(from: &mut impl BufRead, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length + 2];
    from.read_exact(&mut bytes)?;
    bytes.truncate(length);
    Ok(bytes)
}

fn number(text: &str) -> io::Result<i64> {
    text.parse().map_err(|_| nonsense(text))
}

fn nonsense(text: &str) -> io::Error {
    io::Error::new(InvalidData, format!("not an answer of Redis: {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut bytes: &[u8]) -> Reply {
        Reply::read(&mut bytes).unwrap()
    }

    #[test]
    fn every_kind_is_read() {
        assert_eq!(read(b"+OK\r\n"), Reply::Status("OK".into()));
        assert_eq!(read(b"-ERR no\r\n"), Reply::Error("ERR no".into()));
        assert_eq!(read(b":-2\r\n"), Reply::Integer(-2));
        assert_eq!(read(b"$4\r\na\r\nb\r\n"), Reply::Bulk(b"a\r\nb".to_vec()));
        assert_eq!(read(b"$-1\r\n"), Reply::Nil);
        assert_eq!(read(b"*-1\r\n"), Reply::Nil);
        let nested = Reply::Array(vec![Reply::Integer(1), Reply::Array(vec![])]);
        assert_eq!(read(b"*2\r\n:1\r\n*0\r\n"), nested);
    }

    #[test]
    fn what_is_broken_off_or_garbage_is_told_apart() {
        let kind = |mut bytes: &[u8]| Reply::read(&mut bytes).unwrap_err().kind();
        assert_eq!(kind(b""), UnexpectedEof);
        assert_eq!(kind(b"$4\r\nab"), UnexpectedEof);
        assert_eq!(kind(b"\x80\x81"), InvalidData);
        assert_eq!(kind(b"?\r\n"), InvalidData);
    }

    #[test]
    fn fields_are_found_in_lists_and_in_lines() {
        assert_eq!(read(b"*2\r\n$1\r\na\r\n$1\r\nb\r\n").field("a"), "b");
        let lines = Reply::Bulk(b"# head\r\na_b:1\r\na:2\r\n".to_vec());
        assert_eq!((lines.field("a"), lines.field("c")), ("2".into(), String::new()));
    }
}
