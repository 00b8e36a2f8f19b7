//! The bytes of a connection, with TLS or without: whoever speaks a protocol on it need not care.

use crate::TlsStream;
use bytes::{Buf, Bytes};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_util::either::Either;

/// The bytes of a connection, and those that were read before anybody wanted them.
#[derive(Debug)]
pub struct Stream {
    transport: Transport,
    /// Read from the transport, to be read again.
    ahead: Bytes,
}

type Transport = Either<TcpStream, Box<TlsStream<TcpStream>>>;

impl Stream {
    pub(crate) const fn plain(socket: TcpStream) -> Self {
        Self { transport: Either::Left(socket), ahead: Bytes::new() }
    }

    pub(crate) fn tls(stream: TlsStream<TcpStream>) -> Self {
        Self { transport: Either::Right(Box::new(stream)), ahead: Bytes::new() }
    }

    /// Whether it is encrypted.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        matches!(self.transport, Either::Right(_))
    }

    /// The protocol that was agreed on in the handshake, if one was.
    #[must_use]
    pub fn alpn(&self) -> Option<&[u8]> {
        match &self.transport {
            Either::Left(_) => None,
            Either::Right(stream) => stream.get_ref().1.alpn_protocol(),
        }
    }

    /// Takes what was read ahead, which is then not read again.
    pub fn take_ahead(&mut self) -> Bytes {
        std::mem::take(&mut self.ahead)
    }

    /// Puts bytes back that were read: they are read again before anything else. Nothing else may be put back already.
    pub fn unread(&mut self, ahead: Bytes) {
        debug_assert!(self.ahead.is_empty(), "bytes that were put back would be lost");
        self.ahead = ahead;
    }

    /// Writes what the socket has room for, without waking anybody where it has none. `None` over TLS.
    pub fn try_write(&self, bytes: &[u8]) -> Option<io::Result<usize>> {
        match &self.transport {
            Either::Left(socket) => Some(socket.try_write(bytes)),
            Either::Right(_) => None,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            return Pin::new(&mut self.transport).poll_read(context, buffer);
        }
        let count = self.ahead.len().min(buffer.remaining());
        buffer.put_slice(&self.ahead[..count]);
        self.ahead.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.transport).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.transport).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.transport).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.transport.is_write_vectored()
    }
}
