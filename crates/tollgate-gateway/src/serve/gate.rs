//! The bytes of a client's connection: in clear or over TLS, what was read too early first, and timed on the way out.

use super::presence::Presence;
use bytes::{Buf, Bytes};
use std::{
    cell::RefCell,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::server::TlsStream;

/// What is read at once, at most.
const READ: usize = 32 << 10;

thread_local! {
    static SHARED: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ].into_boxed_slice());
}

/// Memory to read into that all connections of a worker share: what came is kept in as much as it needs.
pub(super) fn with_shared<T>(read: impl FnOnce(&mut [u8]) -> T) -> T {
    SHARED.with_borrow_mut(|shared| read(shared))
}

pub(super) enum ClientStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

pub(crate) struct Gate {
    stream: ClientStream,
    /// Read before anybody asked.
    ahead: Bytes,
    pub(super) presence: Arc<Presence>,
}

impl Gate {
    pub(super) const fn new(stream: ClientStream, ahead: Bytes, presence: Arc<Presence>) -> Self {
        Self { stream, ahead, presence }
    }

    /// The same bytes, beginning with these.
    pub(super) fn after(self, ahead: Bytes) -> Self {
        Self { ahead, ..self }
    }

    /// Takes what was read ahead, which is then not read again.
    pub(super) fn take_ahead(&mut self) -> Bytes {
        std::mem::take(&mut self.ahead)
    }
}

impl AsyncRead for Gate {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            return self.stream.poll_read(context, buffer);
        }
        let count = self.ahead.len().min(buffer.remaining());
        buffer.put_slice(&self.ahead[..count]);
        self.ahead.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Gate {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = match &mut self.stream {
            ClientStream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            ClientStream::Tls(stream) => Pin::new(&mut **stream).poll_write(context, bytes),
        };
        self.presence.took(written.is_ready());
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = match &mut self.stream {
            ClientStream::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            ClientStream::Tls(stream) => Pin::new(&mut **stream).poll_write_vectored(context, slices),
        };
        self.presence.took(written.is_ready());
        written
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            ClientStream::Plain(_) => Poll::Ready(Ok(())),
            ClientStream::Tls(stream) => {
                let flushed = Pin::new(&mut **stream).poll_flush(context);
                self.presence.took(flushed.is_ready());
                flushed
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            ClientStream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            ClientStream::Tls(stream) => Pin::new(&mut **stream).poll_shutdown(context),
        }
    }
}

impl ClientStream {
    pub(super) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_read(context, buffer),
        }
    }
}
