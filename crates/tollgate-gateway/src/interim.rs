//! Interim responses (RFC 9110, 15.2) of an HTTP/1.1 server, such as `103 Early Hints`, on their way to the client.
//!
//! The exchange with the server puts them into the queue of the client's connection while the handler is polled; the
//! connection's task writes them out as soon as the handler waits, and at the latest before the final response. A
//! handler that forwards in another task does not wake that task, so its interim responses may come as late as that.
//!
//! Bounds: what the client has not taken is held up to [`MOST_HELD`] bytes, and interim responses beyond that are
//! dropped. A request without interim responses costs a counter and a load of a flag, and no allocation.

use crate::{
    outgoing::{line, status_line},
    passed::Passed,
};
use bytes::{Buf as _, BufMut as _, BytesMut};
use http::{HeaderMap, StatusCode};
use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    task::{Context, Poll, ready},
};
use tokio::io::AsyncWrite;

/// Bytes that are held for a client that does not read.
const MOST_HELD: usize = 16 << 10;

/// The interim responses that a client's connection has yet to write.
#[derive(Debug, Default)]
pub(crate) struct InterimQueue {
    /// There may be something to write or to flush.
    filled: AtomicBool,
    /// Counts the requests of the connection.
    current: AtomicU64,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// The request that `bytes` belong to.
    request: u64,
    bytes: BytesMut,
}

/// Where the interim responses to one request go. A sender that outlives its request sends nothing.
#[derive(Debug, Clone)]
pub(crate) struct InterimSender {
    queue: Arc<InterimQueue>,
    request: u64,
}

impl InterimQueue {
    /// Begins a request. Senders of earlier ones no longer reach the client.
    pub(crate) fn begin(self: &Arc<Self>) -> InterimSender {
        // Only the connection's task writes it.
        let request = self.current.load(Relaxed) + 1;
        self.current.store(request, Relaxed);
        InterimSender { queue: self.clone(), request }
    }

    /// Whether there may be something to write.
    pub(crate) fn is_filled(&self) -> bool {
        self.filled.load(Acquire)
    }

    /// Writes what there is; ready when all of it is written and flushed.
    pub(crate) fn poll_write(
        &self,
        mut stream: Pin<&mut impl AsyncWrite>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut held = self.held();
        while !held.bytes.is_empty() {
            match ready!(stream.as_mut().poll_write(context, &held.bytes))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => held.bytes.advance(written),
            }
        }
        ready!(stream.poll_flush(context))?;
        self.filled.store(false, Release);
        Poll::Ready(Ok(()))
    }

    /// Takes what there is, to be written before the final response.
    pub(crate) fn take(&self) -> BytesMut {
        let mut held = self.held();
        self.filled.store(false, Release);
        held.bytes.split()
    }

    /// What is held for the current request; what an earlier one left is dropped.
    fn held(&self) -> MutexGuard<'_, Held> {
        let mut held = lock(&self.held);
        if held.request != self.current.load(Relaxed) {
            held.bytes.clear();
        }
        held
    }
}

impl InterimSender {
    /// Puts a response behind those that are there. `passed` and `headers` are end-to-end headers only.
    pub(crate) fn send(&self, status: StatusCode, passed: &Passed, headers: &HeaderMap) {
        let mut held = lock(&self.queue.held);
        if self.request < held.request {
            return;
        }
        if self.request > held.request {
            held.request = self.request;
            held.bytes.clear();
        }
        let bytes = &mut held.bytes;
        let before = bytes.len();
        status_line(bytes, status);
        passed.write(bytes);
        for (name, value) in headers {
            line(bytes, name, value);
        }
        bytes.put_slice(b"\r\n");
        if bytes.len() > MOST_HELD {
            bytes.truncate(before);
        }
        self.queue.filled.store(true, Release);
    }
}

fn lock(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(sender: &InterimSender, value: &str) {
        let headers = [(http::header::LINK, value.parse().expect("a value"))].into_iter().collect();
        sender.send(StatusCode::EARLY_HINTS, &Passed::default(), &headers);
    }

    #[test]
    fn a_sender_reaches_its_own_request_only() {
        let queue = Arc::new(InterimQueue::default());
        let first = queue.begin();
        hint(&first, "</a>");
        let second = queue.begin();
        assert!(queue.take().is_empty(), "left by an earlier request");
        hint(&first, "</b>");
        hint(&second, "</c>");
        hint(&first, "</d>");
        assert_eq!(queue.take(), "HTTP/1.1 103 Early Hints\r\nlink: </c>\r\n\r\n");
        assert!(!queue.is_filled());
    }

    #[test]
    fn what_a_client_does_not_take_is_bounded() {
        let queue = Arc::new(InterimQueue::default());
        let sender = queue.begin();
        for _ in 0..100 {
            hint(&sender, &"x".repeat(1000));
        }
        let held = queue.take();
        assert!((15 << 10..=MOST_HELD).contains(&held.len()), "{}", held.len());
        assert!(held.ends_with(b"\r\n\r\n"));
    }
}
