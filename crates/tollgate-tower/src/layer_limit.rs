//! One limit of a layer: its name, its key and its cost.

use crate::key::{By, Missing};
use http::request::Parts;
use std::{fmt, sync::Arc, time::Duration};
use tollgate::{Limit, Numbers};

/// One limit of a [`LimitLayer`](crate::LimitLayer): its name, and by what it counts, if not as the layer does.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Concurrency, FixedWindow, Rate, TokenBucket};
/// use tollgate_tower::{LayerLimit, LimitLayer, Missing};
///
/// // All are charged, or none is.
/// let layer = LimitLayer::of([
///     LayerLimit::new("per-ip", TokenBucket::new(Rate::per_second(10)?, 20)?).by_ip(),
///     LayerLimit::new("per-key", FixedWindow::new(10_000, Duration::from_secs(86_400))?)
///         .by_header("x-api-key")
///         .missing(Missing::Skip),
///     LayerLimit::new("in-flight", Concurrency::new(200, Duration::from_secs(30))?),
/// ]);
/// # let _ = layer;
/// # Ok::<(), tollgate::LimitError>(())
/// ```
#[derive(Clone, Debug)]
pub struct LayerLimit {
    pub(crate) name: String,
    pub(crate) limit: Limit,
    pub(crate) terms: Terms,
}

/// By what a limit counts, as far as that was said.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    pub(crate) by: Option<By>,
    pub(crate) missing: Option<Missing>,
    pub(crate) cost: Option<Cost>,
}

/// How many units a request takes.
#[derive(Clone)]
pub(crate) enum Cost {
    Always(u32),
    Of(Arc<dyn Fn(&Parts) -> u32 + Send + Sync>),
}

impl LayerLimit {
    /// A limit under a name, which clients are told.
    pub fn new(name: impl Into<String>, limit: impl Into<Limit>) -> Self {
        Self { name: name.into(), limit: limit.into(), terms: Terms::default() }
    }

    pub(crate) const fn terms(&mut self) -> &mut Terms {
        &mut self.terms
    }
}

impl Cost {
    pub(crate) fn of(&self, request: &Parts) -> u32 {
        match self {
            Self::Always(cost) => *cost,
            Self::Of(cost) => cost(request),
        }
    }
}

impl fmt::Debug for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always(cost) => cost.fmt(f),
            Self::Of(_) => f.write_str("Closure"),
        }
    }
}

/// How long a limit makes a request wait by itself, at most: a leaky bucket that delays, for as long as a full one takes to
/// drain to where nothing is delayed. What fits waits no longer, and what does not fit would.
pub(crate) fn own_delay(limit: &Limit) -> Option<Duration> {
    let Numbers::Bucket(it) = limit.numbers() else { return None };
    let delayed = u128::from(it.capacity.checked_sub(it.free).filter(|units| *units > 0)?);
    let nanos = (delayed * u128::from(it.price)).div_ceil(u128::from(it.earn.max(1)));
    Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
}

/// What can be said of one limit and of a whole layer alike.
macro_rules! counts_by {
    ($kind:ty) => {
        impl $kind {
            /// A bucket for each client address: an IPv4 address for itself, an IPv6 address for its /64.
            ///
            /// The peer's address is found in the extension [`PeerAddr`](crate::PeerAddr); with the feature `axum` also where
            /// axum puts it (serve with `into_make_service_with_connect_info::<SocketAddr>()`), with the feature `tonic` where
            /// tonic does. Behind proxies see [`trusted_proxies`](crate::LimitLayer::trusted_proxies).
            #[must_use]
            pub fn by_ip(self) -> Self {
                self.by_key(crate::key::By::Ip)
            }

            /// A bucket for each value of a header, such as an API key. Of several lines the first counts.
            ///
            /// # Panics
            /// Where `name` is not a valid header name.
            #[must_use]
            pub fn by_header(self, name: &str) -> Self {
                let name = http::HeaderName::try_from(name)
                    .unwrap_or_else(|_| panic!("by_header: {name:?} is not a valid header name"));
                self.by_key(crate::key::By::Header(name))
            }

            /// A bucket for each value of an extension that a layer before this one has put into the request, such as who is
            /// logged in. For a type of your own, implement `From<&YourType>` for [`Key`](tollgate::Key).
            ///
            /// ```
            /// use tollgate::{Key, Rate, TokenBucket};
            /// use tollgate_tower::LimitLayer;
            ///
            /// #[derive(Clone)]
            /// struct UserId(u64);
            ///
            /// impl<'k> From<&'k UserId> for Key<'k> {
            ///     fn from(user: &'k UserId) -> Self {
            ///         Key::Number(user.0)
            ///     }
            /// }
            ///
            /// let layer = LimitLayer::new(TokenBucket::new(Rate::per_second(10)?, 100)?).by_extension::<UserId>();
            /// # let _ = layer;
            /// # Ok::<(), tollgate::LimitError>(())
            /// ```
            #[must_use]
            pub fn by_extension<T>(self) -> Self
            where
                T: Send + Sync + 'static,
                for<'t> &'t T: Into<tollgate::Key<'t>>,
            {
                fn lent<T>(request: &http::request::Parts) -> Option<tollgate::Key<'_>>
                where
                    T: Send + Sync + 'static,
                    for<'t> &'t T: Into<tollgate::Key<'t>>,
                {
                    request.extensions.get::<T>().map(Into::into)
                }
                self.by_key(crate::key::By::Lent(std::sync::Arc::new(lent::<T>)))
            }

            /// A bucket for each key that this makes of a request; `None` where it is missing.
            ///
            /// ```
            /// use http::request::Parts;
            /// use tollgate::{Rate, TokenBucket};
            /// use tollgate_tower::LimitLayer;
            ///
            /// let header = |request: &Parts, name| Some(request.headers.get(name)?.to_str().ok()?.to_owned());
            /// let layer = LimitLayer::new(TokenBucket::new(Rate::per_second(10)?, 100)?)
            ///     .by(move |request| Some([header(request, "x-tenant"), header(request, "x-user")]));
            /// # let _ = layer;
            /// # Ok::<(), tollgate::LimitError>(())
            /// ```
            #[must_use]
            pub fn by<K: Into<tollgate::OwnedKey>>(
                self,
                key: impl Fn(&http::request::Parts) -> Option<K> + Send + Sync + 'static,
            ) -> Self {
                let make = move |request: &http::request::Parts| key(request).map(Into::into);
                self.by_key(crate::key::By::Made(std::sync::Arc::new(make)))
            }

            /// One bucket for all requests, which is the default.
            #[must_use]
            pub fn by_nothing(self) -> Self {
                self.by_key(crate::key::By::Everyone)
            }

            /// What becomes of a request without what is counted by; by default all such requests share one bucket.
            #[must_use]
            pub fn missing(mut self, missing: crate::key::Missing) -> Self {
                self.terms().missing = Some(missing);
                self
            }

            /// How many units a request takes; 1 by default. Zero tells how things stand and charges nothing.
            #[must_use]
            pub fn cost(mut self, units: u32) -> Self {
                self.terms().cost = Some(crate::layer_limit::Cost::Always(units));
                self
            }

            /// How many units a request takes, from the request.
            #[must_use]
            pub fn cost_of(
                mut self,
                cost: impl Fn(&http::request::Parts) -> u32 + Send + Sync + 'static,
            ) -> Self {
                self.terms().cost = Some(crate::layer_limit::Cost::Of(std::sync::Arc::new(cost)));
                self
            }

            fn by_key(mut self, by: crate::key::By) -> Self {
                self.terms().by = Some(by);
                self
            }
        }
    };
}

pub(crate) use counts_by;

counts_by!(LayerLimit);
