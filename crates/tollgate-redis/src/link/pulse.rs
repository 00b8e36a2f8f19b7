//! Whether a connection still lives: a stream that notes that it was written to and read from.
//!
//! Nobody tells us when a peer vanishes without a word (power cut, pulled cable, stopped process, firewall that forgot us).
//! What there is to see is silence: something was written, and nothing has been read since. Answers are not counted, because
//! a caller may stop waiting for one while it is still to come.
//!
//! Nor is the clock read: silence is counted in looks, made at a steady pace. A process that was itself held up for a while
//! makes no looks meanwhile, and so does not blame its own silence on the peer.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What is known of a connection's life, shared by its stream, its pump and its callers.
///
/// Relaxed throughout: every field is a report of its own, and acting on one a moment late does no harm.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// Written to since it was last read from.
    is_owed: AtomicBool,
    /// How often something was read.
    reads: AtomicU64,
    /// Callers that wait for an answer at this moment.
    waiting: AtomicUsize,
    /// Why nothing more is to be sent here, once that is so.
    ending: OnceLock<&'static str>,
}

impl Pulse {
    /// Whether an answer is still to come.
    fn is_owed(&self) -> bool {
        // Whoever waits is owed one too, if what was read since the last write was the answer to another.
        self.is_owed.load(Relaxed) || self.waiting.load(Relaxed) > 0
    }

    /// How often something was read.
    pub(super) fn reads(&self) -> u64 {
        self.reads.load(Relaxed)
    }

    pub(super) fn is_open(&self) -> bool {
        self.ending.get().is_none()
    }

    /// Says that nothing more is to be sent here. The first to give a reason is believed.
    pub(super) fn end(&self, why: &'static str) {
        let _ = self.ending.set(why);
    }

    pub(super) fn ending(&self) -> Option<&'static str> {
        self.ending.get().copied()
    }

    /// Counts a caller for as long as it waits.
    pub(super) fn wait(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Relaxed);
        Waiting(self)
    }
}

pub(super) struct Waiting<'a>(&'a Pulse);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}

/// How many looks in a row found an answer owed and nothing read.
#[derive(Debug, Default)]
pub(super) struct Silence {
    looks: u32,
    reads: u64,
}

impl Silence {
    pub(super) fn look(&mut self, pulse: &Pulse) -> u32 {
        let reads = pulse.reads();
        let is_silent = reads == self.reads && pulse.is_owed();
        self.looks = if is_silent { self.looks.saturating_add(1) } else { 0 };
        self.reads = reads;
        self.looks
    }
}

/// A stream whose pulse is felt.
pub(super) struct Felt<S> {
    stream: S,
    pulse: Arc<Pulse>,
}

impl<S> Felt<S> {
    pub(super) const fn new(stream: S, pulse: Arc<Pulse>) -> Self {
        Self { stream, pulse }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Felt<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let had = buf.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buf);
        match &result {
            Poll::Ready(Ok(())) if buf.filled().len() > had => {
                self.pulse.reads.fetch_add(1, Relaxed);
                self.pulse.is_owed.store(false, Relaxed);
            }
            // Said here, and not by the pump when it is done: by then calls may have gone into a queue that nobody reads.
            Poll::Ready(Ok(())) => self.pulse.end("the server closed the connection"),
            Poll::Ready(Err(_)) => self.pulse.end("the connection broke"),
            Poll::Pending => {}
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Felt<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        match &result {
            Poll::Ready(Ok(_)) => self.pulse.is_owed.store(true, Relaxed),
            Poll::Ready(Err(_)) => self.pulse.end("the connection broke"),
            Poll::Pending => {}
        }
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_owed_answers_and_nothing_read() {
        let (pulse, mut silence) = (Pulse::default(), Silence::default());
        let looks = |silence: &mut Silence| [(); 3].map(|()| silence.look(&pulse));
        assert_eq!(looks(&mut silence), [0, 0, 0], "nobody asked");
        pulse.is_owed.store(true, Relaxed);
        assert_eq!(looks(&mut silence), [1, 2, 3], "asked, and the caller is gone");
        pulse.reads.fetch_add(1, Relaxed);
        pulse.is_owed.store(false, Relaxed);
        assert_eq!(looks(&mut silence), [0, 0, 0], "answered");
        let waiting = pulse.wait();
        assert_eq!(looks(&mut silence), [1, 2, 3], "somebody waits for more");
        pulse.reads.fetch_add(1, Relaxed);
        assert_eq!(looks(&mut silence), [0, 1, 2], "and gets a part of it");
        drop(waiting);
        assert_eq!(looks(&mut silence), [0, 0, 0]);
    }

    #[test]
    fn the_first_reason_is_the_one() {
        let pulse = Pulse::default();
        assert!(pulse.is_open());
        pulse.end("first");
        pulse.end("second");
        assert_eq!((pulse.is_open(), pulse.ending()), (false, Some("first")));
    }
}
