//! A connection to a server, with what was read ahead from it and its timer.

use crate::{
    timer::Deadline,
    upstream::stream::{IdleState, Look, Stream},
};
use bytes::BytesMut;
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::Instant;
use tokio_util::io::poll_read_buf;

/// What a read asks for at first; a body that fills it makes it grow.
const SMALL_READ: usize = 16 << 10;
/// What a read asks for at most.
const LARGE_READ: usize = 64 << 10;

/// A connection that was idle for less than this is not read from before it is used again. Most are, on a busy worker: to read
/// from all of them takes 3.2 % of the processor time of a small request, to read only from those idle for longer 0.9 %.
const SHORT_IDLE: Duration = Duration::from_millis(1);

pub(crate) struct Connection {
    pub(super) stream: Stream,
    /// Read and not taken yet. Kept with its memory from one exchange to the next.
    pub(super) read: BytesMut,
    /// Kept for its memory.
    pub(super) write: BytesMut,
    pub(super) deadline: Deadline,
    read_size: usize,
    /// Whether it has carried an exchange before.
    pub(super) reused: bool,
    /// Since when it is idle, if it is.
    idle_since: Instant,
    /// Until when it may be used again.
    pub(crate) keep_until: Instant,
    /// Since when it is in use.
    pub(crate) taken: Instant,
}

impl Connection {
    pub(crate) fn new(stream: Stream) -> Box<Self> {
        let now = Instant::now();
        Box::new(Self {
            stream,
            read: BytesMut::new(),
            write: BytesMut::new(),
            deadline: Deadline::new(now),
            read_size: SMALL_READ,
            reused: false,
            idle_since: now,
            keep_until: now,
            taken: now,
        })
    }

    /// Reads what there is behind what was read already; 0 is the end.
    pub(super) fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // Where nobody holds what was read before, this starts at the buffer's first byte again: the same few lines of
        // cache for every answer. Otherwise it is a new buffer.
        if self.read.capacity() - self.read.len() < self.read_size {
            self.read.reserve(self.read_size);
        }
        let room = self.read.capacity() - self.read.len();
        let read = ready!(poll_read_buf(Pin::new(&mut self.stream), context, &mut self.read))?;
        if read == room && self.read_size < LARGE_READ {
            self.read_size *= 2;
        }
        Poll::Ready(Ok(read))
    }

    /// What the server has sent since the last response. Unless it is quiet the connection must be closed. Bytes that arrive
    /// after this look are not seen. Costs one system call, or none where the connection was idle for less than [`SHORT_IDLE`]:
    /// then bytes that the runtime has not heard of yet are not seen either.
    pub(crate) fn idle_state(&mut self, now: Instant) -> IdleState {
        if !self.read.is_empty() {
            return IdleState::Unasked;
        }
        let is_short = now.saturating_duration_since(self.idle_since) < SHORT_IDLE;
        IdleState::look_at(&mut self.stream, if is_short { Look::Runtime } else { Look::Socket })
    }

    /// Makes the connection idle, to be used again for at most `keep`.
    pub(super) fn rest(&mut self, keep: Duration) {
        self.read_size = SMALL_READ;
        self.reused = true;
        self.idle_since = Instant::now();
        self.keep_until = self.idle_since + keep;
    }

    /// The bytes themselves, and what was read ahead: for a tunnel.
    pub(super) fn into_stream(self) -> (Stream, BytesMut) {
        (self.stream, self.read)
    }
}
