//! Clients that end their side of the connection and still want their response.
//!
//! A client may do so as soon as it has sent its request; but one that goes away while it waits for a turn looks the same, and
//! its turn is to be given back. So the end is kept from hyper, which drops what is under way, until everything is answered or
//! somebody waits. HTTP/1.1 only: in HTTP/2 a stream is ended, not the connection.

use futures_util::task::AtomicWaker;
use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tollgate_net::{ActivityStream, ConnectionActivity, RequestGuard};

/// What keeps the end of a client's side from hyper. Clones are the same.
#[derive(Clone)]
pub(super) struct HalfClose(Arc<State>);

struct State {
    activity: Arc<ConnectionActivity>,
    /// Requests that wait for their turn.
    waiting: AtomicU32,
    /// Waits to see the end.
    reader: AtomicWaker,
}

/// A request that is being answered.
pub(super) struct Answering {
    // First: the request is over when the reader looks.
    _request: RequestGuard,
    _wakes: WakeReader,
}

/// A request that waits for its turn: a client that leaves meanwhile has left.
pub(super) struct Waiting(HalfClose);

struct WakeReader(HalfClose);

impl HalfClose {
    pub(super) fn new(activity: Arc<ConnectionActivity>) -> Self {
        Self(Arc::new(State { activity, waiting: AtomicU32::new(0), reader: AtomicWaker::new() }))
    }

    /// A request is being answered, until that is dropped.
    pub(super) fn answering(&self) -> Answering {
        let request = RequestGuard::new(Arc::clone(&self.0.activity));
        Answering { _request: request, _wakes: WakeReader(self.clone()) }
    }

    /// A request waits for its turn, until that is dropped.
    pub(super) fn waiting(&self) -> Waiting {
        self.0.waiting.fetch_add(1, SeqCst);
        self.0.reader.wake();
        Waiting(self.clone())
    }

    fn holds_end(&self) -> bool {
        self.0.activity.is_busy() && self.0.waiting.load(SeqCst) == 0
    }
}

impl Drop for WakeReader {
    fn drop(&mut self) {
        self.0.0.reader.wake();
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.waiting.fetch_sub(1, SeqCst);
    }
}

/// The bytes of an HTTP/1.1 connection, whose end comes when nobody wants a response any more.
pub(super) struct HalfCloseStream {
    stream: ActivityStream,
    half_close: HalfClose,
    has_ended: bool,
}

impl HalfCloseStream {
    pub(super) const fn new(stream: ActivityStream, half_close: HalfClose) -> Self {
        Self { stream, half_close, has_ended: false }
    }
}

impl AsyncRead for HalfCloseStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.has_ended {
            let before = buffer.filled().len();
            let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
            let is_end = matches!(polled, Poll::Ready(Ok(())))
                && buffer.filled().len() == before
                && buffer.remaining() > 0;
            if !is_end {
                return polled;
            }
            self.has_ended = true;
        }
        self.half_close.0.reader.register(context.waker());
        match self.half_close.holds_end() {
            true => Poll::Pending,
            false => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for HalfCloseStream {
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
