//! The service that a [`LimitLayer`](crate::LimitLayer) makes, and its future.
//!
//! Nothing is charged, and nothing held, before a request comes: a clone that is ready and not used costs nobody anything.

use crate::{
    backend::HeldSlots,
    body::LimitBody,
    queued_call::{QueueOutcome, QueuedCall},
    rules::{LimitReport, RequestDecision, Rules},
};
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tower_service::Service;

/// A service whose requests pay their toll first. Clones share the limits.
#[derive(Clone)]
pub struct LimitService<S> {
    inner: S,
    rules: Arc<Rules>,
}

impl<S> LimitService<S> {
    pub(crate) const fn new(inner: S, rules: Arc<Rules>) -> Self {
        Self { inner, rules }
    }

    /// The service behind.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }
}

impl<S, B, R> Service<Request<B>> for LimitService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    R: Body<Data: From<Bytes>>,
{
    type Response = Response<LimitBody<R>>;
    type Error = S::Error;
    type Future = LimitFuture<S, B>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let decided = self.rules.decide(&parts);
        let request = Request::from_parts(parts, body);
        let state = match decided {
            RequestDecision::Pass(report) => {
                State::Calling { future: self.inner.call(request), report, slots: None }
            }
            RequestDecision::Refuse(response) => State::Refused { response: Some(response) },
            RequestDecision::Later(admitting, which) => {
                let fresh = self.inner.clone();
                let ready = std::mem::replace(&mut self.inner, fresh);
                State::Waiting { queued: QueuedCall::new(admitting, ready, request), which }
            }
        };
        LimitFuture { rules: Arc::clone(&self.rules), state }
    }
}

pin_project! {
    /// A response that is on its way, or waits its turn.
    ///
    /// Dropped while it waits, it leaves the limits as if it had never come; dropped later, it gives back the slots it holds.
    #[must_use = "futures do nothing unless polled"]
    pub struct LimitFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        rules: Arc<Rules>,
        #[pin]
        state: State<S, B, S::Future>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, B, F> {
        Refused { response: Option<Response<Bytes>> },
        Waiting { queued: QueuedCall<S, Request<B>>, which: Option<Vec<usize>> },
        // The slots are given back after the future has been dropped: fields are dropped in their order.
        Calling { #[pin] future: F, report: LimitReport, slots: Option<HeldSlots> },
    }
}

impl<S, B, R> Future for LimitFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    R: Body,
{
    type Output = Result<Response<LimitBody<R>>, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.state.as_mut().project() {
                StateProj::Refused { response } => {
                    let response = response.take().expect("a future is not polled again when it has ended");
                    return Poll::Ready(Ok(response.map(LimitBody::refused)));
                }
                StateProj::Calling { future, report, slots } => {
                    let response = ready!(future.poll(context));
                    let slots = slots.take();
                    let mut response = response?;
                    this.rules.write_headers(report, response.headers_mut());
                    return Poll::Ready(Ok(response.map(|body| LimitBody::passed(body, slots))));
                }
                StateProj::Waiting { queued, which } => match ready!(queued.poll(context)) {
                    QueueOutcome::Called(future, admission) => {
                        let report = LimitReport::new(which.take(), admission.status);
                        State::Calling { future, report, slots: admission.slots }
                    }
                    QueueOutcome::Rejected(error, request) => {
                        let (parts, _) = request.into_parts();
                        let response = this.rules.reject(&parts, which.take(), &error);
                        State::Refused { response: Some(response) }
                    }
                    QueueOutcome::Broken(error) => return Poll::Ready(Err(error)),
                },
            };
            this.state.set(next);
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for LimitService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S: Service<Request<B>>, B> fmt::Debug for LimitFuture<S, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitFuture").finish_non_exhaustive()
    }
}
