//! The bytes of a client's connection, timed on the way out.

use bytes::Bytes;
use std::{
    cell::RefCell,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tollgate_net::{ConnectionActivity, Stream};

/// What is read at once, at most.
const READ: usize = 32 << 10;

thread_local! {
    static SHARED: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ].into_boxed_slice());
}

/// Memory to read into that all connections of a worker share: what came is kept in as much as it needs.
pub(super) fn with_shared<T>(read: impl FnOnce(&mut [u8]) -> T) -> T {
    SHARED.with_borrow_mut(|shared| read(shared))
}

/// A client's connection that marks when the client takes what is written, and when it does not.
pub(crate) struct ClientIo {
    stream: Stream,
    pub(super) activity: Arc<ConnectionActivity>,
}

impl ClientIo {
    pub(super) const fn new(stream: Stream, activity: Arc<ConnectionActivity>) -> Self {
        Self { stream, activity }
    }

    /// Puts back what was read and not used.
    pub(super) fn unread(&mut self, ahead: Bytes) {
        self.stream.unread(ahead);
    }

    /// Takes what was read ahead, which is then not read again.
    pub(super) fn take_ahead(&mut self) -> Bytes {
        self.stream.take_ahead()
    }

    /// Marks what became of a write.
    fn written<T>(&self, written: Poll<T>) -> Poll<T> {
        self.activity.mark_write(&written);
        written
    }
}

impl AsyncRead for ClientIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for ClientIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.written(written)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.stream.is_tls() {
            return Poll::Ready(Ok(()));
        }
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.written(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
