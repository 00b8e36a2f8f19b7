//! Bytes on their way out, written together: a buffer, then a frame that was not copied, then what ends its chunk.

use crate::forward::may_trail;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::AsyncWrite;

/// Frames up to this size are copied behind what is in the buffer, so that a small message is one write of one piece.
const COPIED: usize = 4 << 10;

#[derive(Default)]
pub(crate) struct Outgoing {
    pub(crate) head: BytesMut,
    data: Bytes,
    tail: &'static [u8],
}

impl Outgoing {
    pub(crate) fn new(head: BytesMut) -> Self {
        Self { head, ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_empty() && self.data.is_empty() && self.tail.is_empty()
    }

    /// Whether another frame may be put behind what is there.
    pub(crate) fn has_room(&self) -> bool {
        self.data.is_empty() && self.tail.is_empty()
    }

    /// A frame, as a part of a body of known length.
    pub(crate) fn put(&mut self, data: Bytes) {
        if data.len() <= COPIED {
            self.head.put_slice(&data);
        } else {
            self.data = data;
        }
    }

    /// A frame as a chunk. An empty one would end the body.
    pub(crate) fn put_chunk(&mut self, data: Bytes) {
        chunk_size(&mut self.head, data.len());
        if data.len() <= COPIED {
            self.head.put_slice(&data);
            self.head.put_slice(b"\r\n");
        } else {
            self.data = data;
            self.tail = b"\r\n";
        }
    }

    /// What ends a body in chunks.
    pub(crate) fn end_chunks(&mut self, trailers: Option<&HeaderMap>) {
        self.head.put_slice(b"0\r\n");
        for (name, value) in trailers.into_iter().flatten().filter(|(name, _)| may_trail(name)) {
            line(&mut self.head, name, value);
        }
        self.head.put_slice(b"\r\n");
    }

    pub(crate) fn poll_write(
        &mut self,
        stream: Pin<&mut impl AsyncWrite>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let written = if self.has_room() {
            ready!(stream.poll_write(context, &self.head))?
        } else {
            let parts = [IoSlice::new(&self.head), IoSlice::new(&self.data), IoSlice::new(self.tail)];
            ready!(stream.poll_write_vectored(context, &parts))?
        };
        self.advance(written);
        Poll::Ready(Ok(written))
    }

    fn advance(&mut self, written: usize) {
        let here = written.min(self.head.len());
        if here == self.head.len() {
            // Keeps the memory from its start.
            self.head.clear();
        } else {
            self.head.advance(here);
        }
        let rest = written - here;
        let here = rest.min(self.data.len());
        self.data.advance(here);
        self.tail = &self.tail[rest - here..];
    }
}

/// The line before a chunk of so many bytes.
fn chunk_size(out: &mut BytesMut, size: usize) {
    let digits = (usize::BITS - size.leading_zeros()).div_ceil(4).max(1);
    for i in (0..digits).rev() {
        out.put_u8(b"0123456789abcdef"[size >> (4 * i) & 15]);
    }
    out.put_slice(b"\r\n");
}

/// The first line of a response.
pub(crate) fn status_line(out: &mut BytesMut, status: StatusCode) {
    out.put_slice(b"HTTP/1.1 ");
    out.put_slice(status.as_str().as_bytes());
    out.put_u8(b' ');
    out.put_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    out.put_slice(b"\r\n");
}

/// A header's line.
pub(crate) fn line(out: &mut BytesMut, name: &HeaderName, value: &HeaderValue) {
    out.put_slice(name.as_str().as_bytes());
    out.put_slice(b": ");
    out.put_slice(value.as_bytes());
    out.put_slice(b"\r\n");
}

/// A number as digits.
pub(crate) fn decimal(out: &mut BytesMut, number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut left = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.put_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for number in [0_usize, 1, 9, 10, 15, 16, 255, 256, 65_535, 1 << 40] {
            let mut out = BytesMut::new();
            decimal(&mut out, number as u64);
            assert_eq!(out, number.to_string().as_bytes());
            let mut out = BytesMut::new();
            chunk_size(&mut out, number);
            assert_eq!(out, format!("{number:x}\r\n").as_bytes());
        }
    }
}
