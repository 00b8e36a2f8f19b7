//! A stream that reads and writes no faster than it may.
//!
//! It has no buffer: a read asks the inner stream for no more than may go, a write hands on no more. So bytes that may
//! not go yet stay where they are, and the peer feels it. The price is that the inner stream is not asked while a lane
//! sleeps: its end, or an error, is noticed up to a chunk's time later.

use super::Lane;
use crate::{
    clock::{Clock, SystemClock, Timer},
    step::bandwidth::{Bandwidth, Pacer},
};
use pin_project_lite::pin_project;
use std::{
    io::{IoSlice, Result},
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pin_project! {
    /// A stream of which reads go at a [`Bandwidth`], and writes at the same one, each by themselves.
    ///
    /// Past the bandwidth's first `after` bytes, at most its [largest burst](Bandwidth::largest_burst) and rate · t bytes
    /// go in any time t. The end of what is read is noticed when another byte might go. For another pace in the other
    /// direction, or for none, split the stream and pace a half.
    ///
    /// ```
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    /// use tollgate::{Bandwidth, Paced, Rate, TokioClock};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
    /// # let begun = tokio::time::Instant::now();
    /// let (ours, mut theirs) = tokio::io::duplex(1 << 20);
    /// let slow = Bandwidth::new(Rate::per_second(16_000)?);
    /// let mut ours = Paced::with_clock(ours, slow, TokioClock::new()); // `Paced::new` goes by the system's clock
    /// ours.write_all(&[7; 80_500]).await?; // five seconds, which paused time skips
    /// # assert_eq!(begun.elapsed().as_secs(), 5);
    /// drop(ours);
    /// let mut all = Vec::new();
    /// assert_eq!(theirs.read_to_end(&mut all).await?, 80_500);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Debug)]
    pub struct Paced<T, C = SystemClock> {
        #[pin]
        inner: T,
        clock: C,
        reads: Lane,
        writes: Lane,
    }
}

impl<T> Paced<T> {
    /// Paces `inner` by the system's clock, from now on.
    pub fn new(inner: T, bandwidth: Bandwidth) -> Self {
        Self::with_clock(inner, bandwidth, SystemClock::new())
    }
}

impl<T, C: Clock> Paced<T, C> {
    /// Paces `inner` by that clock, from now on.
    pub fn with_clock(inner: T, bandwidth: Bandwidth, clock: C) -> Self {
        let pacer = Pacer::new(bandwidth, clock.now());
        Self { inner, clock, reads: Lane::new(pacer.clone()), writes: Lane::new(pacer) }
    }
}

impl<T, C> Paced<T, C> {
    /// What is paced.
    pub const fn get_ref(&self) -> &T {
        &self.inner
    }

    /// What is paced. Bytes that go past the pace this way are not counted.
    pub const fn get_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    /// What is paced, with not a byte held back.
    pub fn into_inner(self) -> T {
        self.inner
    }
}

impl<T: AsyncRead, C: Timer> AsyncRead for Paced<T, C> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let this = self.project();
        let wanted = buffer.remaining();
        if wanted == 0 {
            return this.inner.poll_read(context, buffer);
        }
        let allowed = ready!(this.reads.poll_allow(this.clock, wanted, context));
        let read = if allowed == wanted {
            let before = buffer.filled().len();
            ready!(this.inner.poll_read(context, buffer))?;
            buffer.filled().len() - before
        } else {
            // Zeroes what was never written to: to hand on a part of that as it is would take `unsafe`.
            let mut part = ReadBuf::new(buffer.initialize_unfilled_to(allowed));
            ready!(this.inner.poll_read(context, &mut part))?;
            let read = part.filled().len();
            buffer.advance(read);
            read
        };
        this.reads.sent(read);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite, C: Timer> AsyncWrite for Paced<T, C> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &[u8]) -> Poll<Result<usize>> {
        let this = self.project();
        if buffer.is_empty() {
            return this.inner.poll_write(context, buffer);
        }
        let allowed = ready!(this.writes.poll_allow(this.clock, buffer.len(), context));
        let written = ready!(this.inner.poll_write(context, &buffer[..allowed]))?;
        this.writes.sent(written);
        Poll::Ready(Ok(written))
    }

    /// Hands on the buffers that may go whole, or else a part of the first.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let this = self.project();
        let wanted = buffers.iter().fold(0_usize, |sum, buffer| sum.saturating_add(buffer.len()));
        if wanted == 0 {
            return this.inner.poll_write_vectored(context, buffers);
        }
        let allowed = ready!(this.writes.poll_allow(this.clock, wanted, context));
        let (mut whole, mut left) = (0, allowed);
        while let Some(buffer) = buffers.get(whole)
            && buffer.len() <= left
        {
            (whole, left) = (whole + 1, left - buffer.len());
        }
        let written = match buffers.get(whole) {
            Some(first) if left == allowed => this.inner.poll_write(context, &first[..allowed]),
            _ => this.inner.poll_write_vectored(context, &buffers[..whole]),
        };
        let written = ready!(written)?;
        this.writes.sent(written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.project().inner.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.project().inner.poll_shutdown(context)
    }
}
