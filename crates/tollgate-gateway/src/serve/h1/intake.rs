//! The body of a request on its way in.
//!
//! The connection's task reads, and only when somebody wants a frame; whoever handles the request takes it out at the other end, the
//! [`Inlet`], which may be in another task. One frame at most lies between them.

use super::wire::{MOST_AHEAD, Wire};
use crate::{
    body::BodyError,
    chunks::Broken,
    framing::{BodyReader, DecodeStep, Framing},
    interim::InterimQueue,
};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
};
use tokio::io::AsyncWrite;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// What may be thrown away of a body that nobody wants, so that its connection can be kept.
const NOT_WORTH_CLOSING: usize = 64 << 10;

/// The end that reads.
pub(super) struct Intake {
    between: Arc<Mutex<Between>>,
    body: BodyReader,
    /// What is still to be said before the client sends its body.
    invitation: &'static [u8],
    invited: bool,
    done: bool,
}

/// The end that is read from.
pub(crate) struct Inlet {
    between: Arc<Mutex<Between>>,
    /// How much is to come, where that is known.
    left: Option<u64>,
}

#[derive(Default)]
struct Between {
    frame: Option<Frame<Bytes>>,
    ended: bool,
    failed: bool,
    wanted: bool,
    dropped: bool,
    reader: Option<Waker>,
    feeder: Option<Waker>,
}

/// How reading went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fed {
    /// There is something new at the other end.
    Some,
    /// Not now.
    Pending,
    /// The client is gone.
    Gone,
}

impl Intake {
    /// Both ends. `framing` is not `None`.
    pub(super) fn new(framing: Framing, expects: bool) -> (Self, Inlet) {
        let between = Arc::<Mutex<Between>>::default();
        let body = BodyReader::new(framing);
        let invitation = if expects { CONTINUE } else { b"" };
        let inlet = Inlet { between: between.clone(), left: body.length() };
        (Self { between, body, invitation, invited: !expects, done: false }, inlet)
    }

    /// Whether all of it was read.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// An answer has begun: it is too late to ask for the body. What is left of an invitation that was begun has to go first.
    pub(super) fn answered(&mut self) -> &'static [u8] {
        let rest = std::mem::take(&mut self.invitation);
        if rest.len() < CONTINUE.len() { rest } else { b"" }
    }

    /// Whether an invitation is still to be written, in whole or in part.
    pub(super) fn has_invitation(&self) -> bool {
        !self.invitation.is_empty()
    }

    /// Writes an interim response of the server, and before it what is left of an invitation that was begun.
    pub(super) fn poll_interim(
        &mut self,
        interim: &InterimQueue,
        wire: &mut Wire,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if self.invitation.len() < CONTINUE.len() {
            ready!(self.poll_invite(wire, context))?;
        }
        interim.poll_write(Pin::new(&mut wire.io), context)
    }

    fn poll_invite(&mut self, wire: &mut Wire, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.invitation.is_empty() {
            self.invited = true;
            match ready!(Pin::new(&mut wire.io).poll_write(context, self.invitation))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.invitation = &self.invitation[written..],
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads on, where a frame is wanted; where none is, notices when the client leaves.
    pub(super) fn feed(&mut self, wire: &mut Wire, context: &mut Context<'_>) -> Fed {
        let unwanted = {
            let mut between = lock(&self.between);
            let is_over = between.dropped || between.failed;
            let is_wanted = between.wanted && between.frame.is_none() && !is_over;
            if !is_wanted {
                between.feeder = Some(context.waker().clone());
            }
            (!is_wanted).then_some(is_over)
        };
        if let Some(is_over) = unwanted {
            return self.watch(is_over, wire, context);
        }
        match self.poll_invite(wire, context) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(_)) => return Fed::Gone,
            Poll::Pending => return Fed::Pending,
        }
        if wire.poll_flush(context).is_pending() {
            return Fed::Pending;
        }
        loop {
            match self.decode(&mut wire.ahead) {
                Ok(DecodeStep::Frame(frame)) => {
                    return self.put(context, |between| between.frame = Some(frame));
                }
                Ok(DecodeStep::End(trailers)) => {
                    self.done = true;
                    return self.put(context, |between| {
                        between.frame = trailers.map(Frame::trailers);
                        between.ended = true;
                    });
                }
                Ok(DecodeStep::More) => match wire.poll_fill(context) {
                    Poll::Ready(Ok(1..)) => {}
                    Poll::Ready(_) => {
                        self.put(context, |between| between.failed = true);
                        return Fed::Gone;
                    }
                    Poll::Pending => return Fed::Pending,
                },
                Err(Broken) => return self.put(context, |between| between.failed = true),
            }
        }
    }

    /// Reads ahead, in bounds, only to notice that the client leaves.
    fn watch(&self, is_over: bool, wire: &mut Wire, context: &mut Context<'_>) -> Fed {
        loop {
            if wire.ahead.len() >= MOST_AHEAD {
                if !is_over {
                    return Fed::Pending;
                }
                // Too much for the connection to be kept: it will be closed, and where requests begin does not matter any more.
                lock(&self.between).failed = true;
                wire.ahead = Bytes::new();
            }
            match wire.poll_fill(context) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => {
                    self.put(context, |between| between.failed = true);
                    return Fed::Gone;
                }
                Poll::Pending => return Fed::Pending,
            }
        }
    }

    fn put(&self, context: &Context<'_>, put: impl FnOnce(&mut Between)) -> Fed {
        let reader = {
            let mut between = lock(&self.between);
            put(&mut between);
            between.wanted = false;
            between.reader.take()
        };
        // Who is polled by this very task is polled next.
        if let Some(reader) = reader.filter(|reader| !reader.will_wake(context.waker())) {
            reader.wake();
        }
        Fed::Some
    }

    fn decode(&mut self, ahead: &mut Bytes) -> Result<DecodeStep, Broken> {
        let next = self.body.next(ahead);
        self.done |= self.body.is_done();
        next
    }

    /// Whether anybody may still want something of it.
    pub(super) fn is_wanted(&self) -> bool {
        let between = lock(&self.between);
        !between.dropped && !between.failed && !self.done
    }

    /// Throws away what is left, where nobody wants it and it is here already; says whether that was all.
    pub(super) fn discard(&mut self, wire: &mut Wire, context: &mut Context<'_>) -> bool {
        if !self.invited || lock(&self.between).failed {
            return false;
        }
        let mut thrown = 0;
        while !self.done && thrown < NOT_WORTH_CLOSING {
            match self.decode(&mut wire.ahead) {
                Ok(DecodeStep::Frame(frame)) => thrown += frame.data_ref().map_or(0, Bytes::len),
                Ok(DecodeStep::End(_)) => self.done = true,
                Ok(DecodeStep::More) => match wire.poll_fill(context) {
                    Poll::Ready(Ok(1..)) => {}
                    _ => return false,
                },
                Err(Broken) => return false,
            }
        }
        self.done
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        // Who reads it in another task is told that no more comes.
        let reader = {
            let mut between = lock(&self.between);
            between.failed = true;
            between.reader.take()
        };
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl Inlet {
    pub(crate) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut between = lock(&self.between);
        if let Some(frame) = between.frame.take() {
            if let (Some(left), Some(data)) = (&mut self.left, frame.data_ref()) {
                *left = left.saturating_sub(data.len() as u64);
            }
            return Poll::Ready(Some(Ok(frame)));
        }
        if between.failed {
            return Poll::Ready(Some(Err(BodyError::Client)));
        }
        if between.ended || self.left == Some(0) {
            return Poll::Ready(None);
        }
        between.wanted = true;
        between.reader = Some(context.waker().clone());
        let feeder = between.feeder.take();
        drop(between);
        // Who polls this within the connection's task feeds it next.
        if let Some(feeder) = feeder.filter(|feeder| !feeder.will_wake(context.waker())) {
            feeder.wake();
        }
        Poll::Pending
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        let between = lock(&self.between);
        self.left == Some(0) || (between.ended && between.frame.is_none())
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        let mut between = lock(&self.between);
        between.dropped = true;
        between.frame = None;
    }
}

fn lock(between: &Mutex<Between>) -> MutexGuard<'_, Between> {
    between.lock().unwrap_or_else(PoisonError::into_inner)
}
