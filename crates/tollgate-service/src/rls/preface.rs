//! Which HTTP a client speaks, by what it says first.

use bytes::{Buf, Bytes, BytesMut};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tollgate_net::Stream;

/// What HTTP/2 begins with. No request of HTTP/1.1 does.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// Which HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// A connection, and what was read of it already.
pub(super) struct Begun {
    first: Bytes,
    stream: Stream,
}

/// Reads until it is clear.
pub(super) async fn begin(mut stream: Stream) -> io::Result<(Version, Begun)> {
    let mut read = BytesMut::with_capacity(256);
    let version = loop {
        if stream.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let length = read.len().min(PREFACE.len());
        match read[..length] == PREFACE[..length] {
            true if length == PREFACE.len() => break Version::Two,
            true => {}
            false => break Version::One,
        }
    };
    Ok((version, Begun { first: read.freeze(), stream }))
}

impl AsyncRead for Begun {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let length = self.first.len().min(buffer.remaining());
        buffer.put_slice(&self.first[..length]);
        self.first.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Begun {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
