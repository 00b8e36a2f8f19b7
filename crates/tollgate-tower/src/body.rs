//! A response's body, which holds its slots until it ends.

use crate::backend::HeldSlots;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

pin_project! {
    /// The body of a response that has passed a [`LimitLayer`](crate::LimitLayer), or of its refusal.
    ///
    /// Slots that the request holds come back when the body has ended, or is dropped.
    #[derive(Debug)]
    pub struct LimitBody<B> {
        #[pin]
        kind: Kind<B>,
        slots: Option<HeldSlots>,
    }
}

pin_project! {
    #[project = KindProj]
    #[derive(Debug)]
    enum Kind<B> {
        Passed { #[pin] body: B },
        Refused { body: Option<Bytes> },
    }
}

impl<B: Body> LimitBody<B> {
    /// Of a response that holds something until its body has ended. One that has none has ended.
    pub(crate) fn passed(body: B, slots: Option<HeldSlots>) -> Self {
        let slots = slots.filter(|_| !body.is_end_stream());
        Self { kind: Kind::Passed { body }, slots }
    }
}

impl<B> LimitBody<B> {
    pub(crate) fn refused(body: Bytes) -> Self {
        Self { kind: Kind::Refused { body: Some(body).filter(|body| !body.is_empty()) }, slots: None }
    }
}

impl<B: Body<Data: From<Bytes>>> Body for LimitBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        match this.kind.project() {
            KindProj::Passed { mut body } => {
                let frame = ready!(body.as_mut().poll_frame(context));
                // Whoever reads may not ask again after the last frame, and keep the body.
                if !matches!(frame, Some(Ok(_))) || body.is_end_stream() {
                    *this.slots = None;
                }
                Poll::Ready(frame)
            }
            KindProj::Refused { body } => Poll::Ready(body.take().map(|body| Ok(Frame::data(body.into())))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Passed { body } => body.is_end_stream(),
            Kind::Refused { body } => body.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Passed { body } => body.size_hint(),
            Kind::Refused { body } => SizeHint::with_exact(body.as_ref().map_or(0, Bytes::len) as u64),
        }
    }
}

/// An empty body, for frameworks that make a response of their own.
impl<B: Default> Default for LimitBody<B> {
    fn default() -> Self {
        Self { kind: Kind::Passed { body: B::default() }, slots: None }
    }
}
