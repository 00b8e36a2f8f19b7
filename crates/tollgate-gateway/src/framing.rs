//! Where a body of HTTP/1.1 ends, for both directions: how it is framed, taken apart and written.
//!
//! Frames are slices of what was read, one at a time; nothing is copied or held here.

use crate::{
    chunks::{self, Broken, Chunks, Piece},
    outgoing::{Outgoing, decimal},
};
use bytes::{BufMut, Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Frame, SizeHint};

/// How a body is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    None,
    /// So much is still to come.
    Length(u64),
    Chunked,
    /// Responses only.
    UntilClose,
}

impl Framing {
    /// The header that tells it, if one does.
    pub(crate) fn write_header(self, out: &mut BytesMut) {
        match self {
            Self::Length(length) => {
                out.put_slice(b"content-length: ");
                decimal(out, length);
                out.put_slice(b"\r\n");
            }
            Self::Chunked => out.put_slice(b"transfer-encoding: chunked\r\n"),
            Self::None | Self::UntilClose => {}
        }
    }

    /// Puts a frame behind what is in `out`, and says whether the body ends with it.
    pub(crate) fn write(&mut self, out: &mut Outgoing, frame: Frame<Bytes>) -> Result<bool, WrongLength> {
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(frame) => return self.end(out, frame.into_trailers().ok().as_ref()).map(|()| true),
        };
        match self {
            // An empty chunk would end the body.
            _ if data.is_empty() => {}
            Self::Length(left) => {
                *left = left.checked_sub(data.len() as u64).ok_or(WrongLength)?;
                out.put(data);
                return Ok(*left == 0);
            }
            Self::Chunked => out.put_chunk(data),
            Self::UntilClose => out.put(data),
            Self::None => return Ok(true),
        }
        Ok(false)
    }

    /// Puts what ends the body behind what is in `out`.
    pub(crate) fn end(self, out: &mut Outgoing, trailers: Option<&HeaderMap>) -> Result<(), WrongLength> {
        match self {
            Self::Length(1..) => return Err(WrongLength),
            Self::Chunked => out.end_chunks(trailers),
            Self::Length(0) | Self::UntilClose | Self::None => {}
        }
        Ok(())
    }
}

/// A body is longer or shorter than its head says.
pub(crate) struct WrongLength;

/// Digits only: no sign, no blanks, no list; as many as surely fit.
pub(crate) fn plain_number(text: &[u8]) -> Option<u64> {
    if !(1..=19).contains(&text.len()) {
        return None;
    }
    text.iter().try_fold(0_u64, |number, digit| match digit {
        b'0'..=b'9' => Some(number * 10 + u64::from(digit - b'0')),
        _ => None,
    })
}

/// Takes a body apart into frames.
pub(crate) struct BodyReader {
    left: Left,
}

enum Left {
    Length(u64),
    Chunked { chunks: Chunks, trailers: BytesMut },
    UntilClose,
}

/// What the next bytes of a body are.
pub(crate) enum DecodeStep {
    Frame(Frame<Bytes>),
    /// The end, perhaps with trailers.
    End(Option<HeaderMap>),
    /// More has to be read.
    More,
}

impl BodyReader {
    pub(crate) fn new(framing: Framing) -> Self {
        let left = match framing {
            Framing::None => Left::Length(0),
            Framing::Length(length) => Left::Length(length),
            Framing::Chunked => Left::Chunked { chunks: Chunks::new(), trailers: BytesMut::new() },
            Framing::UntilClose => Left::UntilClose,
        };
        Self { left }
    }

    /// How much is still to come, where that is known.
    pub(crate) const fn length(&self) -> Option<u64> {
        match self.left {
            Left::Length(left) => Some(left),
            _ => None,
        }
    }

    /// Whether the body is known to have ended.
    pub(crate) const fn is_done(&self) -> bool {
        matches!(self.left, Left::Length(0))
    }

    pub(crate) const fn ends_with_connection(&self) -> bool {
        matches!(self.left, Left::UntilClose)
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.length().map_or_else(SizeHint::default, SizeHint::with_exact)
    }

    /// Takes the next frame off what was read.
    pub(crate) fn next(&mut self, read: &mut Bytes) -> Result<DecodeStep, Broken> {
        loop {
            match &mut self.left {
                Left::Length(0) => return Ok(DecodeStep::End(None)),
                _ if read.is_empty() => return Ok(DecodeStep::More),
                Left::Length(left) => {
                    let here = usize::try_from(*left).unwrap_or(usize::MAX).min(read.len());
                    *left -= here as u64;
                    return Ok(DecodeStep::Frame(Frame::data(read.split_to(here))));
                }
                Left::UntilClose => return Ok(DecodeStep::Frame(Frame::data(std::mem::take(read)))),
                Left::Chunked { chunks, trailers } => match chunks.next(read)? {
                    Piece::Framing(n) => drop(read.split_to(n)),
                    Piece::Data(n) => return Ok(DecodeStep::Frame(Frame::data(read.split_to(n)))),
                    Piece::Trailers(n) => trailers.extend_from_slice(&read.split_to(n)),
                    Piece::End(n) => {
                        trailers.extend_from_slice(&read.split_to(n));
                        return Ok(DecodeStep::End(chunks::trailers(trailers)?));
                    }
                },
            }
        }
    }
}
