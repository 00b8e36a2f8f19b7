//! As much HTTP/1.1 as the kit's own client and upstream need: heads, and bodies by length, in chunks, or until the end.
//!
//! Written out, and not taken from a library that what is tested may be built on: a misunderstanding would then be on
//! both sides, and nobody would notice. It is strict about what it reads and guesses nothing.

use std::io::{self, ErrorKind};
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// Longer heads are a mistake of somebody's.
const LONGEST_LINE: usize = 64 * 1024;

/// The first line, and the headers as they were written, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) first: String,
    pub(crate) headers: Vec<(String, String)>,
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    Bytes(u64),
    Chunked,
    UntilClosed,
}

impl Head {
    /// The next head, or `None` where the other end has closed instead.
    pub(crate) async fn read(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Self>> {
        if from.fill_buf().await?.is_empty() {
            return Ok(None);
        }
        let first = line(from).await?;
        let mut headers = Vec::new();
        loop {
            let line = line(from).await?;
            if line.is_empty() {
                return Ok(Some(Self { first, headers }));
            }
            let (name, value) = line.split_once(':').ok_or_else(|| bad(format!("not a header: {line:?}")))?;
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// Whether the connection ends with this message.
    pub(crate) fn closes(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    /// What the headers say about the body; `otherwise` where they say nothing.
    pub(crate) fn length(&self, otherwise: Length) -> io::Result<Length> {
        if let Some(coding) = self.header("transfer-encoding") {
            return match coding.eq_ignore_ascii_case("chunked") {
                true => Ok(Length::Chunked),
                false => Err(bad(format!("not a transfer coding we know: {coding:?}"))),
            };
        }
        match self.header("content-length") {
            Some(number) => match number.parse() {
                Ok(bytes) => Ok(Length::Bytes(bytes)),
                Err(_) => Err(bad(format!("not a length: {number:?}"))),
            },
            None => Ok(otherwise),
        }
    }
}

/// The first header of this name, in whatever case.
pub(crate) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// Reads a body, and hands its bytes over as they come, without what frames them.
pub(crate) async fn body(
    from: &mut (impl AsyncBufRead + Unpin),
    length: Length,
    mut take: impl FnMut(&[u8]),
) -> io::Result<()> {
    match length {
        Length::Bytes(bytes) => exactly(from, bytes, &mut take).await,
        Length::Chunked => loop {
            let line = line(from).await?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(size, 16).map_err(|_| bad(format!("not a chunk: {line:?}")))?;
            if size > 0 {
                exactly(from, size, &mut take).await?;
                self::line(from).await?;
                continue;
            }
            // Trailers, which nobody here asks for.
            while !self::line(from).await?.is_empty() {}
            return Ok(());
        },
        Length::UntilClosed => loop {
            let bytes = from.fill_buf().await?;
            let count = bytes.len();
            if count == 0 {
                return Ok(());
            }
            take(bytes);
            from.consume(count);
        },
    }
}

async fn exactly(
    from: &mut (impl AsyncBufRead + Unpin),
    mut left: u64,
    take: &mut impl FnMut(&[u8]),
) -> io::Result<()> {
    while left > 0 {
        let bytes = from.fill_buf().await?;
        if bytes.is_empty() {
            return Err(io::Error::new(
                ErrorKind::UnexpectedEof,
                format!("closed with {left} bytes to come"),
            ));
        }
        let count = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        take(&bytes[..count]);
        from.consume(count);
        left -= count as u64;
    }
    Ok(())
}

/// A line, without its end.
async fn line(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<String> {
    let mut line = Vec::new();
    loop {
        let bytes = from.fill_buf().await?;
        if bytes.is_empty() {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "closed in the middle of a line"));
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let count = end.map_or(bytes.len(), |at| at + 1);
        line.extend_from_slice(&bytes[..count]);
        from.consume(count);
        if end.is_some() {
            // A header may hold any bytes; what is no UTF-8 is read as the standard once had it, a byte a character.
            let text = String::from_utf8(line)
                .unwrap_or_else(|error| error.as_bytes().iter().copied().map(char::from).collect());
            return match text.strip_suffix("\r\n") {
                Some(text) => Ok(text.to_owned()),
                None => Err(bad(format!("a line without a carriage return: {text:?}"))),
            };
        }
        if line.len() > LONGEST_LINE {
            return Err(bad(format!("a line of more than {LONGEST_LINE} bytes")));
        }
    }
}

fn bad(what: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}
