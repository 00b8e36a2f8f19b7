//! A client's connection and what was read of it too early.
//!
//! Bytes are read into memory that all connections of a worker share: a connection that rests keeps none.

use bytes::{Bytes, BytesMut};
use std::{
    cell::RefCell,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tollgate_net::ActivityStream;

/// What came too early is read up to here.
pub(super) const MOST_AHEAD: usize = 64 << 10;

/// What is read at once, at most.
const READ: usize = 32 << 10;

thread_local! {
    static SHARED: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ].into_boxed_slice());
}

pub(super) struct Wire {
    pub(super) io: ActivityStream,
    /// Read and not taken yet.
    pub(super) ahead: Bytes,
}

impl Wire {
    pub(super) fn new(mut io: ActivityStream) -> Self {
        let ahead = io.stream().take_ahead();
        Self { io, ahead }
    }

    /// Puts what there is to read behind what is there; says how much that was, 0 at the end.
    pub(super) fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        SHARED.with_borrow_mut(|shared| {
            let mut buffer = ReadBuf::new(shared);
            ready!(Pin::new(&mut self.io).poll_read(context, &mut buffer))?;
            let read = buffer.filled();
            if self.ahead.is_empty() {
                self.ahead = Bytes::copy_from_slice(read);
            } else {
                let ahead = std::mem::take(&mut self.ahead);
                let mut ahead = ahead.try_into_mut().unwrap_or_else(|ahead| BytesMut::from(&ahead[..]));
                ahead.extend_from_slice(read);
                self.ahead = ahead.freeze();
            }
            Poll::Ready(Ok(read.len()))
        })
    }

    pub(super) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    /// Says that nothing more comes.
    pub(super) async fn shut(&mut self) {
        let _ = std::future::poll_fn(|context| Pin::new(&mut self.io).poll_shutdown(context)).await;
    }

    /// Reads on until the client has nothing more to say, or its time is over: closing a socket with bytes unread would take the
    /// answer back.
    pub(super) async fn throw_away(&mut self) {
        // The time for a head is also the time to be gone.
        self.io.activity().begin_head();
        while self.read_away().await {}
    }

    /// Whether the client has said something that nobody has read.
    pub(super) async fn has_more(&mut self) -> bool {
        let more =
            |context: &mut Context<'_>| Poll::Ready(matches!(self.poll_fill(context), Poll::Ready(Ok(1..))));
        std::future::poll_fn(more).await
    }

    async fn read_away(&mut self) -> bool {
        self.ahead = Bytes::new();
        matches!(std::future::poll_fn(|context| self.poll_fill(context)).await, Ok(1..))
    }

    /// For a tunnel.
    pub(super) fn into_io(mut self) -> ActivityStream {
        self.io.stream().unread(self.ahead);
        self.io
    }
}
