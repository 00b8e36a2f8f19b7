//! Whether the client of an HTTP/2 stream takes its answer.
//!
//! A client that opens no window leaves the socket writable, so the connection shows nothing; and nobody asks the answer's
//! body for more while its last piece waits for the window. So the bytes tell themselves when they go, and the task of a stream
//! has a timer as long as some are waiting: one of which nothing went for so long is dropped. That resets the stream and lets
//! go of all it holds; the connection and its other streams go on. A stream that has nothing to send has no bytes waiting, and
//! may rest for ever.

use crate::body::{Body, BodyError};
use bytes::{Buf, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::rt::Executor;
use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep};

tokio::task_local! {
    /// Of the stream whose task this is.
    static TAKING: Arc<Taking>;
}

/// Bytes of one answer.
#[derive(Default)]
struct Taking {
    handed: AtomicU64,
    taken: AtomicU64,
}

/// Runs the streams of a connection, each until its client takes nothing of its answer for so long.
#[derive(Clone, Copy)]
pub(super) struct Streams(pub(super) Duration);

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
{
    fn execute(&self, stream: F) {
        let taking = Arc::<Taking>::default();
        tokio::spawn(TAKING.scope(taking.clone(), watched(stream, taking, self.0)));
    }
}

async fn watched(stream: impl Future, taking: Arc<Taking>, patience: Duration) {
    let mut stream = pin!(stream);
    // With what had been taken when it was set.
    let mut timer: Option<(Pin<Box<Sleep>>, u64)> = None;
    poll_fn(|context| {
        if stream.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        loop {
            let taken = taking.taken.load(Relaxed);
            if taking.handed.load(Relaxed) == taken {
                timer = None;
                return Poll::Pending;
            }
            let (sleep, before) = timer.get_or_insert_with(|| (Box::pin(sleep(patience)), taken));
            if sleep.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            if *before == taken {
                return Poll::Ready(());
            }
            *before = taken;
            sleep.as_mut().reset(Instant::now() + patience);
        }
    })
    .await;
}

/// The body of an answer that tells when its bytes go.
pub(super) struct Telling {
    body: Body,
    taking: Arc<Taking>,
}

impl Telling {
    /// For the stream whose task this is.
    pub(super) fn new(body: Body) -> Self {
        Self { body, taking: TAKING.try_with(Arc::clone).unwrap_or_default() }
    }
}

impl HttpBody for Telling {
    type Data = Piece;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, BodyError>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        frame.map_ok(|frame| frame.map_data(|bytes| Piece::new(bytes, self.taking.clone())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Bytes that tell when they go.
pub(super) struct Piece {
    bytes: Bytes,
    taking: Arc<Taking>,
}

impl Piece {
    fn new(bytes: Bytes, taking: Arc<Taking>) -> Self {
        taking.handed.fetch_add(bytes.len() as u64, Relaxed);
        Self { bytes, taking }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.taking.taken.fetch_add(count as u64, Relaxed);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        // Nobody waits for what is no longer to be sent.
        self.taking.taken.fetch_add(self.bytes.len() as u64, Relaxed);
    }
}
