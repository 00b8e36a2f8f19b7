//! The layer for services: what it charges requests, and how.

use crate::{
    backend::{Backend, StoreBackend, max_hold},
    layer_limit::{LayerLimit, Terms, counts_by, own_delay},
    refusal::Refusal,
    rules::{KeyedLimit, Rules},
    service::LimitService,
};
use bytes::Bytes;
use http::Response;
use ipnet::IpNet;
use std::{fmt, sync::Arc, time::Duration};
use tollgate::{Enter, Limit, MemoryStore, Store, StoreError};
use tollgate_http::{HeaderStyle, Policies, RefusalStyle, TrustedProxies};
use tower_layer::Layer;

/// Limits for a service of HTTP requests: axum, tonic, hyper, or anything else that speaks tower.
///
/// What is used of a limit is kept in one place, whatever the clones of the layer and of the services it makes.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Rate, TokenBucket};
/// use tollgate_tower::LimitLayer;
///
/// // Ten requests a second for each address, a hundred at once; whoever comes too early waits half a second at most.
/// let layer = LimitLayer::new(TokenBucket::new(Rate::per_second(10)?, 100)?)
///     .by_ip()
///     .trusted_proxies(["10.0.0.0/8".parse()?])
///     .wait(Duration::from_millis(500));
/// # let _ = layer;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct LimitLayer {
    rules: Arc<Rules>,
}

impl LimitLayer {
    /// One limit, which clients know as `default`; one bucket for all requests, unless said otherwise.
    pub fn new(limit: impl Into<Limit>) -> Self {
        Self::of([LayerLimit::new("default", limit)])
    }

    /// Several limits: a request is charged for all of them, or for none.
    ///
    /// # Panics
    /// Where there are more than a store holds, some million.
    pub fn of(limits: impl IntoIterator<Item = LayerLimit>) -> Self {
        match Self::in_store(&Arc::new(MemoryStore::new()), limits) {
            Ok(layer) => layer,
            Err(error) => panic!("LimitLayer::of: {error}"),
        }
    }

    /// As [`of`](Self::of), in a store of yours: one that several processes share (`RedisStore` of `tollgate-redis`), one in
    /// memory with bounds or a clock of your choice, or one whose keys you change by hand (see [`handle`](Self::handle)).
    ///
    /// In a shared store the names are what processes share: the same name and the same key are the same bucket.
    ///
    /// # Errors
    /// Where the store has no room for the limits, or cannot keep their numbers.
    pub fn in_store<S: Enter + 'static>(
        store: &Arc<S>,
        limits: impl IntoIterator<Item = LayerLimit>,
    ) -> Result<Self, StoreError> {
        let keyed = |it: LayerLimit| KeyedLimit {
            name: it.name,
            terms: it.terms,
            delay: own_delay(&it.limit),
            has_slots: max_hold(&it.limit).is_some(),
            limit: it.limit,
        };
        let limits: Vec<_> = limits.into_iter().map(keyed).collect();
        let backend: Arc<dyn Backend> =
            StoreBackend::add(store, limits.iter().map(|it| (&*it.name, &it.limit)))?;
        let mut rules = Rules {
            backend,
            limits,
            terms: Terms::default(),
            proxies: TrustedProxies::default(),
            wait: None,
            policies: Policies::new(HeaderStyle::default(), []),
            refusal: RefusalStyle::default(),
            on_refusal: None,
        };
        rules.set_headers(HeaderStyle::default());
        Ok(Self { rules: Arc::new(rules) })
    }

    /// Believes the `X-Forwarded-For` of proxies in these networks, and of no other: what anybody else writes there is not
    /// even looked at. Without this, [`by_ip`](Self::by_ip) counts by the peer's address.
    #[must_use]
    pub fn trusted_proxies(mut self, networks: impl IntoIterator<Item = IpNet>) -> Self {
        self.change().proxies = TrustedProxies::new(networks);
        self
    }

    /// Lets a request wait in the queue of its bucket for so long, first in, first out. Where the turn would come later the
    /// request is refused on arrival. It is charged when it is released; dropped before that it has cost nothing, and those
    /// behind it move up. Slots are waited for where the limit has a queue
    /// ([`Concurrency::with_queue`](tollgate::Concurrency::with_queue)).
    ///
    /// Without this nobody waits, except for the pace of a leaky bucket that delays.
    #[must_use]
    pub fn wait(mut self, up_to: Duration) -> Self {
        self.change().wait = Some(up_to);
        self
    }

    /// Which header fields tell of the limits; [`HeaderStyle::Draft10`] by default.
    #[must_use]
    pub fn headers(mut self, style: HeaderStyle) -> Self {
        self.change().set_headers(style);
        self
    }

    /// What a refused request gets; [`RefusalStyle::Problem`] by default. A gRPC request gets a gRPC status in any case.
    #[must_use]
    pub fn refusal(mut self, style: RefusalStyle) -> Self {
        self.change().refusal = style;
        self
    }

    /// Answers a refused request in your words. Fields that tell of the limits, and `Retry-After`, are added to it.
    ///
    /// ```
    /// use tollgate::{Rate, TokenBucket};
    /// use tollgate_tower::LimitLayer;
    ///
    /// let layer = LimitLayer::new(TokenBucket::new(Rate::per_second(10)?, 100)?).on_refusal(|refusal| {
    ///     if refusal.request().uri.path().starts_with("/api/") {
    ///         return refusal.response();
    ///     }
    ///     let mut response = http::Response::new("<h1>Slow down, please</h1>".into());
    ///     *response.status_mut() = http::StatusCode::TOO_MANY_REQUESTS;
    ///     response
    /// });
    /// # let _ = layer;
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    #[must_use]
    pub fn on_refusal(
        mut self,
        answer: impl Fn(&Refusal<'_>) -> Response<Bytes> + Send + Sync + 'static,
    ) -> Self {
        self.change().on_refusal = Some(Arc::new(answer));
        self
    }

    /// A limit by its name, as the store knows it that was given to [`in_store`](Self::in_store): there its keys can be reset,
    /// granted and banned. Its numbers can be changed there, not its kind; responses name those that the layer was made with.
    /// `None` where no limit has that name, or the store is of another type.
    #[must_use]
    pub fn handle<S: Store + 'static>(&self, _: &Arc<S>, name: &str) -> Option<&S::Limit> {
        let limit = self.rules.limits.iter().position(|it| it.name == name)?;
        self.rules.backend.limit(limit)?.downcast_ref()
    }

    /// The rules of this layer and its later clones; those of earlier ones stay, and so does what is used of the limits.
    fn change(&mut self) -> &mut Rules {
        Arc::make_mut(&mut self.rules)
    }

    fn terms(&mut self) -> &mut Terms {
        &mut self.change().terms
    }
}

counts_by!(LimitLayer);

impl<S> Layer<S> for LimitLayer {
    type Service = LimitService<S>;

    fn layer(&self, inner: S) -> LimitService<S> {
        LimitService::new(inner, Arc::clone(&self.rules))
    }
}

impl fmt::Debug for LimitLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits: Vec<_> = self.rules.limits.iter().map(|it| (&it.name, &it.limit)).collect();
        f.debug_struct("LimitLayer")
            .field("limits", &limits)
            .field("terms", &self.rules.terms)
            .field("wait", &self.rules.wait)
            .finish_non_exhaustive()
    }
}
