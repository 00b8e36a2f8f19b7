//! The layer for outgoing calls, whatever their protocol: each waits its turn, or is not made.

use crate::{
    backend::{Admitting, Backend, HeldSlots, KeyCharge, StoreBackend},
    queued_call::{QueueOutcome, QueuedCall},
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
use tollgate::{Enter, Limit, MemoryStore, OwnedKey, Refused, Store, StoreError, WaitError};
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
    backend: Arc<dyn Backend>,
    wait: Duration,
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
        match Self::in_store(&Arc::new(MemoryStore::new()), "calls", limit) {
            Ok(layer) => layer,
            Err(error) => unreachable!("a new store has room for a limit: {error}"),
        }
    }

    /// As [`new`](Self::new), in a store of yours: one that several processes share (`RedisStore` of `tollgate-redis`), or one
    /// in memory with a clock of its own. In a shared store the name is what processes share.
    ///
    /// # Errors
    /// Where the store has no room for the limit, or cannot keep its numbers.
    pub fn in_store<S: Enter + 'static>(
        store: &Arc<S>,
        name: &str,
        limit: impl Into<Limit>,
    ) -> Result<Self, StoreError> {
        let backend: Arc<dyn Backend> = StoreBackend::add(store, std::iter::once((name, &limit.into())))?;
        let rules = CallRules { backend, wait: Duration::MAX, cost: 1 };
        Ok(Self { rules: Arc::new(rules), key: Everyone })
    }
}

impl<K> CallLayer<K> {
    /// Lets a call wait for so long at most. Zero lets none wait.
    #[must_use]
    pub fn wait(mut self, up_to: Duration) -> Self {
        Arc::make_mut(&mut self.rules).wait = up_to;
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

    /// The limit as the store knows it that was given to [`in_store`](CallLayer::in_store); `None` where that is of another
    /// type.
    #[must_use]
    pub fn handle<S: Store + 'static>(&self, _: &Arc<S>) -> Option<&S::Limit> {
        self.rules.backend.limit(0)?.downcast_ref()
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
        let admitting = self.rules.enter(&self.key.key_of(&request));
        let fresh = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, fresh);
        CallFuture { state: State::Waiting { queued: QueuedCall::new(admitting, ready, request) } }
    }
}

impl CallRules {
    fn enter(&self, key: &OwnedKey) -> Admitting {
        let values = key.values();
        let charge = KeyCharge { limit: 0, key: key.key(&values), cost: self.cost, up_to: Some(self.wait) };
        Arc::clone(&self.backend).enter(&[charge])
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
        Waiting { queued: QueuedCall<S, R> },
        Calling { #[pin] future: F, slots: Option<HeldSlots> },
    }
}

impl<S: Service<R> + Clone, R> Future for CallFuture<S, R> {
    type Output = Result<S::Response, CallError<S::Error>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.state.as_mut().project() {
                StateProj::Calling { future, slots } => {
                    let result = ready!(future.poll(context));
                    *slots = None;
                    return Poll::Ready(result.map_err(CallError::Call));
                }
                StateProj::Waiting { queued } => match ready!(queued.poll(context)) {
                    QueueOutcome::Called(future, admission) => {
                        State::Calling { future, slots: admission.slots }
                    }
                    QueueOutcome::Rejected(error, _) => return Poll::Ready(Err(error.into())),
                    QueueOutcome::Broken(error) => return Poll::Ready(Err(CallError::Call(error))),
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
