//! The layer for outgoing calls, whatever their protocol: each waits its turn, or is not made.

use crate::{
    gate::{Entering, Gate},
    held::{Held, Keeper},
    key::{Found, OwnedKey},
    queue::{Ended, Queued},
    toll::max_hold,
};
use pin_project_lite::pin_project;
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use thiserror::Error;
use tollgate::{Charge, Limit, LimitHandle, MemoryStore, Refused, StoreError, Timer, WaitError};
use tower_layer::Layer;
use tower_service::Service;

/// Limits for calls that go out: to a partner who allows so many a second, a database that takes so many at once.
///
/// Calls wait in a queue, first in, first out, and are charged when they are released; one that would wait too long is an error at
/// once, and is not made. One that is dropped while it waits leaves the queue, and those behind it move up. Slots of
/// a concurrency limit are held until the call's future has ended. (For HTTP responses whose body should count as well there is
/// [`LimitLayer`](crate::LimitLayer), which answers 429 instead.)
///
/// ```
/// use std::{convert::Infallible, time::Duration};
/// use tollgate::{Rate, TokenBucket};
/// use tollgate_tower::{CallError, CallLayer};
/// use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let partner = service_fn(|question: &'static str| async move { Ok::<_, Infallible>(question.len()) });
/// let mut partner = ServiceBuilder::new()
///     .layer(CallLayer::new(TokenBucket::new(Rate::per_minute(1)?, 1)?).wait(Duration::from_secs(5)))
///     .service(partner);
///
/// assert_eq!(partner.ready().await?.call("how long?").await?, 9);
/// let refused = partner.ready().await?.call("and again?").await;
/// assert!(matches!(refused, Err(CallError::Refused(_))), "a minute is longer than five seconds");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct CallLayer<K = Everyone> {
    rules: Arc<CallRules>,
    key: K,
}

#[derive(Clone)]
struct CallRules {
    gate: Arc<dyn Gate>,
    keeper: Arc<Keeper>,
    handle: LimitHandle,
    wait: Option<Duration>,
    cost: u32,
}

/// One bucket for all calls.
#[derive(Clone, Copy, Debug)]
pub struct Everyone;

/// A bucket for each key that a closure makes of a request.
#[derive(Clone, Copy, Debug)]
pub struct ByRequest<F>(F);

/// How a call's bucket is found.
pub trait KeyOf<R>: sealed::Sealed {
    /// The key of a request.
    fn key_of(&self, request: &R) -> OwnedKey;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Everyone {}
    impl<F> Sealed for super::ByRequest<F> {}
}

impl<R> KeyOf<R> for Everyone {
    fn key_of(&self, _: &R) -> OwnedKey {
        OwnedKey::All
    }
}

impl<R, K: Into<OwnedKey>, F: Fn(&R) -> K> KeyOf<R> for ByRequest<F> {
    fn key_of(&self, request: &R) -> OwnedKey {
        self.0(request).into()
    }
}

impl CallLayer {
    /// A limit for calls; they wait for as long as it takes, unless said otherwise.
    pub fn new(limit: impl Into<Limit>) -> Self {
        match Self::in_store(&Arc::new(MemoryStore::new()), limit) {
            Ok(layer) => layer,
            Err(error) => unreachable!("a new store has room for a limit: {error}"),
        }
    }

    /// As [`new`](Self::new), in a store of yours, which may have a clock of its own.
    ///
    /// # Errors
    /// Where the store has no room for the limit.
    pub fn in_store<C: Timer + Send + Sync + 'static>(
        store: &Arc<MemoryStore<C>>,
        limit: impl Into<Limit>,
    ) -> Result<Self, StoreError> {
        let limit = limit.into();
        let handle = store.add(limit.clone())?;
        let gate: Arc<dyn Gate> = Arc::new(Arc::clone(store));
        let keeper = Keeper::new(Arc::clone(&gate), max_hold(&limit).into_iter());
        let rules = CallRules { gate, keeper, handle, wait: None, cost: 1 };
        Ok(Self { rules: Arc::new(rules), key: Everyone })
    }
}

impl<K> CallLayer<K> {
    /// Lets a call wait for so long at most. Zero lets none wait.
    #[must_use]
    pub fn wait(mut self, up_to: Duration) -> Self {
        Arc::make_mut(&mut self.rules).wait = Some(up_to);
        self
    }

    /// How many units a call takes; 1 by default.
    #[must_use]
    pub fn cost(mut self, units: u32) -> Self {
        Arc::make_mut(&mut self.rules).cost = units;
        self
    }

    /// A bucket for each key that this makes of a request, such as the host that is called.
    ///
    /// ```
    /// use http::Request;
    /// use tollgate::{Rate, TokenBucket};
    /// use tollgate_tower::CallLayer;
    ///
    /// let layer = CallLayer::new(TokenBucket::new(Rate::per_second(5)?, 5)?)
    ///     .by(|request: &Request<String>| request.uri().host().unwrap_or_default().to_owned());
    /// # let _ = layer;
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    #[must_use]
    pub fn by<R, O: Into<OwnedKey>, F: Fn(&R) -> O>(self, key: F) -> CallLayer<ByRequest<F>> {
        CallLayer { rules: self.rules, key: ByRequest(key) }
    }

    /// The limit in the store that was given to [`in_store`](CallLayer::in_store).
    #[must_use]
    pub fn handle(&self) -> &LimitHandle {
        &self.rules.handle
    }
}

impl<S, K: Clone> Layer<S> for CallLayer<K> {
    type Service = CallService<S, K>;

    fn layer(&self, inner: S) -> CallService<S, K> {
        CallService { inner, rules: Arc::clone(&self.rules), key: self.key.clone() }
    }
}

/// A service whose calls wait their turn. Clones share the limit.
#[derive(Clone)]
pub struct CallService<S, K = Everyone> {
    inner: S,
    rules: Arc<CallRules>,
    key: K,
}

/// Why a call did not come to its end.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum CallError<E> {
    /// It was not made: its turn does not come in time.
    #[error("not called: {0}")]
    Refused(Refused),
    /// It was not made: the store could not decide.
    #[error("not called: {0}")]
    Undecided(StoreError),
    /// It was made, and failed.
    #[error("{0}")]
    Call(E),
}

impl<S, R, K> Service<R> for CallService<S, K>
where
    S: Service<R> + Clone,
    K: KeyOf<R>,
{
    type Response = S::Response;
    type Error = CallError<S::Error>;
    type Future = CallFuture<S, R>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context).map_err(CallError::Call)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let entering = self.rules.enter(self.key.key_of(&request));
        let fresh = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, fresh);
        let queued = Queued::new(entering, Arc::clone(&self.rules.keeper), ready, request);
        CallFuture { state: State::Waiting { queued } }
    }
}

impl CallRules {
    fn enter(&self, key: OwnedKey) -> Entering {
        let found = Found::Made(key);
        let values = found.values();
        let charge = Charge::new(&self.handle, found.key(&values)).cost(self.cost);
        self.gate.enter(&[self.wait.map_or(charge, |wait| charge.up_to(wait))])
    }
}

pin_project! {
    /// A call that waits its turn, or is under way. Dropped while it waits, it leaves the limit as if it had never come.
    #[must_use = "futures do nothing unless polled"]
    pub struct CallFuture<S, R>
    where
        S: Service<R>,
    {
        #[pin]
        state: State<S, R, S::Future>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, R, F> {
        Waiting { queued: Queued<S, R> },
        Calling { #[pin] future: F, held: Option<Held> },
    }
}

impl<S: Service<R> + Clone, R> Future for CallFuture<S, R> {
    type Output = Result<S::Response, CallError<S::Error>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.state.as_mut().project() {
                StateProj::Calling { future, held } => {
                    let result = ready!(future.poll(context));
                    *held = None;
                    return Poll::Ready(result.map_err(CallError::Call));
                }
                StateProj::Waiting { queued } => match ready!(queued.poll(context)) {
                    Ended::Called(future, entered) => State::Calling { future, held: entered.held },
                    Ended::TurnedAway(error, _) => return Poll::Ready(Err(error.into())),
                    Ended::Broken(error) => return Poll::Ready(Err(CallError::Call(error))),
                },
            };
            this.state.set(next);
        }
    }
}

impl<E> From<WaitError> for CallError<E> {
    fn from(error: WaitError) -> Self {
        match error {
            WaitError::Refused(refused) => Self::Refused(refused),
            WaitError::Store(error) => Self::Undecided(error),
            _ => Self::Undecided(StoreError::UnknownLimit),
        }
    }
}

impl<K> fmt::Debug for CallLayer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallLayer").field("wait", &self.rules.wait).finish_non_exhaustive()
    }
}

impl<S: fmt::Debug, K> fmt::Debug for CallService<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S: Service<R>, R> fmt::Debug for CallFuture<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallFuture").finish_non_exhaustive()
    }
}
