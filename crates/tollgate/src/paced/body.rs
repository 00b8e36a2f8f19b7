//! An http body that goes no faster than it may.
//!
//! A frame with more data than may go is handed on in parts, which share its memory where the data is [`Bytes`]. The
//! inner body is asked for a frame when the one before has gone, and not sooner: one frame is held, however slow the
//! pace. It is asked before the pace is, so that trailers, an error and the end are not held up by a sleep that they don't
//! need.

use super::Lane;
use crate::{
    clock::{Clock, SystemClock, Timer},
    step::bandwidth::{Bandwidth, Pacer},
};
use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

pin_project! {
    /// A body of which data goes at a [`Bandwidth`]. Trailers are not paced.
    ///
    /// Past the bandwidth's first `after` bytes, at most its [largest burst](Bandwidth::largest_burst) and rate · t bytes
    /// go in any time t.
    ///
    /// ```
    /// use http_body::Body;
    /// use tollgate::{Bandwidth, ManualClock, PacedBody, Rate};
    ///
    /// let slow = Bandwidth::new(Rate::per_second(50 << 10)?);
    /// let answer = String::from("hello");
    /// // `PacedBody::new` goes by the system's clock, with the feature `tokio`.
    /// let body = PacedBody::with_clock(answer, slow, ManualClock::new());
    /// assert_eq!(body.size_hint().exact(), Some(5));
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    #[derive(Debug)]
    pub struct PacedBody<B: Body, C = SystemClock> {
        #[pin]
        inner: B,
        clock: C,
        lane: Lane,
        held: Option<B::Data>,
    }
}

impl<B: Body> PacedBody<B> {
    /// Paces `inner` by the system's clock, from now on. It is a body with the feature `tokio`.
    pub fn new(inner: B, bandwidth: Bandwidth) -> Self {
        Self::with_clock(inner, bandwidth, SystemClock::new())
    }
}

impl<B: Body, C: Clock> PacedBody<B, C> {
    /// Paces `inner` by that clock, from now on.
    pub fn with_clock(inner: B, bandwidth: Bandwidth, clock: C) -> Self {
        let lane = Lane::new(Pacer::new(bandwidth, clock.now()));
        Self { inner, clock, lane, held: None }
    }
}

impl<B: Body, C> PacedBody<B, C> {
    /// What is paced.
    pub const fn get_ref(&self) -> &B {
        &self.inner
    }

    /// What is paced. Frames that are taken past the pace this way are not counted.
    pub const fn get_mut(&mut self) -> &mut B {
        &mut self.inner
    }

    /// What is paced. The rest of a frame of which a part has gone is lost.
    pub fn into_inner(self) -> B {
        self.inner
    }
}

impl<B: Body, C: Timer> Body for PacedBody<B, C> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        let mut data = match this.held.take() {
            Some(data) => data,
            None => match ready!(this.inner.poll_frame(context)?).map(Frame::into_data) {
                Some(Ok(data)) => data,
                Some(Err(other)) => return Poll::Ready(Some(Ok(other.map_data(whole)))),
                None => return Poll::Ready(None),
            },
        };
        let wanted = data.remaining();
        if wanted == 0 {
            return Poll::Ready(Some(Ok(Frame::data(Bytes::new()))));
        }
        let Poll::Ready(allowed) = this.lane.poll_allow(this.clock, wanted, context) else {
            *this.held = Some(data);
            return Poll::Pending;
        };
        let part = data.copy_to_bytes(allowed);
        *this.held = (allowed < wanted).then_some(data);
        this.lane.sent(allowed);
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let inner = self.inner.size_hint();
        let held = self.held.as_ref().map_or(0, Buf::remaining) as u64;
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(held));
        if let Some(upper) = inner.upper().and_then(|upper| upper.checked_add(held)) {
            hint.set_upper(upper);
        }
        hint
    }
}

fn whole(mut data: impl Buf) -> Bytes {
    data.copy_to_bytes(data.remaining())
}
