//! The service that a [`LimitLayer`](crate::LimitLayer) makes, and its future.
//!
//! Nothing is charged, and nothing held, before a request comes: a clone that is ready and not used costs nobody anything.

use crate::{
    body::LimitBody,
    held::Held,
    queue::{Ended, Queued},
    rules::{Decided, Rules, Told},
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
            Decided::Pass(told) => State::Calling { future: self.inner.call(request), told, held: None },
            Decided::Refuse(response) => State::Refused { response: Some(response) },
            Decided::Enter(entering, which) => {
                let fresh = self.inner.clone();
                let ready = std::mem::replace(&mut self.inner, fresh);
                let keeper = Arc::clone(&self.rules.keeper);
                State::Waiting { queued: Queued::new(entering, keeper, ready, request), which }
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
        Waiting { queued: Queued<S, Request<B>>, which: Option<Vec<usize>> },
        // The slots are given back after the future has been dropped: fields are dropped in their order.
        Calling { #[pin] future: F, told: Told, held: Option<Held> },
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
                StateProj::Calling { future, told, held } => {
                    let response = ready!(future.poll(context));
                    let held = held.take();
                    let mut response = response?;
                    this.rules.tell(told, response.headers_mut());
                    return Poll::Ready(Ok(response.map(|body| LimitBody::passed(body, held))));
                }
                StateProj::Waiting { queued, which } => match ready!(queued.poll(context)) {
                    Ended::Called(future, entered) => {
                        let told = Told::new(which.take(), entered.statuses);
                        State::Calling { future, told, held: entered.held }
                    }
                    Ended::TurnedAway(error, request) => {
                        let (parts, _) = request.into_parts();
                        let response = this.rules.turned_away(&parts, which.take(), &error);
                        State::Refused { response: Some(response) }
                    }
                    Ended::Broken(error) => return Poll::Ready(Err(error)),
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
