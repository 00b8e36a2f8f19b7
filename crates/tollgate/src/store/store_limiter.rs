//! One limit of a store, a bucket a key: what [`KeyedLimiter`](crate::KeyedLimiter) is in one process, in any store.
//!
//! It adds nothing but the limit to what a store's own methods do.

use super::seam::{Answer, Enter, Entered, Store};
use crate::{
    charge::Charge,
    clock::Clock,
    decision::{OnFailure, Status},
    key::Key,
    limit::Limit,
    store::{MemoryStore, StoreError},
    wait::WaitError,
};
use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

/// One limit in a store, with a bucket for every key. Clones are the same limiter.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::{MemoryStore, Rate, TokenBucket};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = Arc::new(MemoryStore::new()); // or RedisStore::open("redis://127.0.0.1:6379")?
/// let limiter = store.limiter("per-client", TokenBucket::new(Rate::per_second(10)?, 100)?)?;
/// if limiter.check("alice").await?.is_allow() {
///     // serve her
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct StoreLimiter<S: Store> {
    store: Arc<S>,
    limit: S::Limit,
}

impl<S: Store> StoreLimiter<S> {
    /// Adds a limit to a store, under a name that means the same limit to everybody who shares the store.
    ///
    /// # Errors
    /// Where the store has no room for it, or cannot keep its numbers.
    pub fn new(store: &Arc<S>, name: &str, limit: impl Into<Limit>) -> Result<Self, StoreError> {
        let limit = store.add_named(name, limit.into())?;
        Ok(Self { store: Arc::clone(store), limit })
    }

    /// Charges one unit for `key`.
    pub fn check<'k>(&'k self, key: impl Into<Key<'k>>) -> impl Answer<Status> {
        self.check_n(key, 1)
    }

    /// Charges `cost` units for `key`; all of them, or none.
    pub fn check_n<'k>(&'k self, key: impl Into<Key<'k>>, cost: u32) -> impl Answer<Status> {
        let charge = Charge::new(&self.limit, key).cost(cost);
        async move {
            let set = self.store.check(&[charge]).await?;
            let status = set.statuses().first().copied().ok_or(StoreError::UnknownLimit)?;
            Ok(set.permit().map_or(status, |permit| status.held_by(permit)))
        }
    }

    /// What [`check_n`](Self::check_n) would answer, charging nothing.
    pub fn peek<'k>(&'k self, key: impl Into<Key<'k>>, cost: u32) -> impl Answer<Status> {
        let charge = Charge::new(&self.limit, key).cost(cost);
        async move {
            let set = self.store.peek(&[charge]).await?;
            set.statuses().first().copied().ok_or(StoreError::UnknownLimit)
        }
    }

    /// Takes up to `units` off the newest live use of `key`.
    pub fn refund<'k>(&'k self, key: impl Into<Key<'k>>, units: u32) -> impl Answer<()> {
        self.store.refund(&self.limit, key.into(), units)
    }

    /// Forgets what `key` has used. Grants and bans stay.
    pub fn reset<'k>(&'k self, key: impl Into<Key<'k>>) -> impl Answer<()> {
        self.store.reset(&self.limit, key.into())
    }

    /// Gives `key` units above the limit, until used.
    pub fn grant<'k>(&'k self, key: impl Into<Key<'k>>, units: u32) -> impl Answer<()> {
        self.store.grant(&self.limit, key.into(), units)
    }

    /// Refuses `key` for this long; zero lifts the ban.
    pub fn ban<'k>(&'k self, key: impl Into<Key<'k>>, lasting: Duration) -> impl Answer<()> {
        self.store.ban(&self.limit, key.into(), lasting)
    }

    /// Changes the limit's numbers, keeping what was consumed.
    ///
    /// # Errors
    /// Where the store cannot keep the numbers.
    pub fn change(&self, to: impl Into<Limit>) -> Result<(), StoreError> {
        self.store.change_limit(&self.limit, to.into())
    }

    /// The same limiter, decided in this way while a shared store does not answer. One in memory always answers.
    #[must_use]
    pub fn on_failure(self, on_failure: OnFailure) -> Self {
        Self { limit: self.store.when_failing(&self.limit, on_failure), store: self.store }
    }

    /// The limit as the store names it: for a set of charges on several limits.
    #[must_use]
    pub const fn limit(&self) -> &S::Limit {
        &self.limit
    }
}

impl<S: Enter> StoreLimiter<S> {
    /// Waits for one unit of `key`, and holds the slots of a concurrency limit until the permit is dropped. Await it.
    pub fn enter<'a>(&'a self, key: impl Into<Key<'a>>) -> LimiterWait<'a, S> {
        let charge = Charge::new(&self.limit, key).up_to(Duration::MAX);
        LimiterWait { store: &self.store, charge }
    }
}

/// A turn at a [`StoreLimiter`], to be awaited.
#[must_use = "nothing is waited for until it is awaited"]
pub struct LimiterWait<'a, S: Store> {
    store: &'a Arc<S>,
    charge: Charge<'a, S::Limit>,
}

impl<S: Store> LimiterWait<'_, S> {
    /// Waits for so many units.
    pub const fn cost(mut self, cost: u32) -> Self {
        self.charge.cost = cost;
        self
    }

    /// Waits this long at most. A turn that would come later is refused at once. Without this it waits for as long as it takes.
    pub const fn up_to(mut self, up_to: Duration) -> Self {
        self.charge.up_to = Some(up_to);
        self
    }
}

impl<S: Enter + 'static> IntoFuture for LimiterWait<'_, S> {
    type Output = Result<S::Permit, WaitError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        let entering = self.store.enter(&[self.charge]);
        Box::pin(async move {
            match entering.await? {
                Entered::In(permit) => Ok(permit),
                Entered::Refused(refused) => Err(refused.into()),
            }
        })
    }
}

impl<C: Clock + Send + Sync> MemoryStore<C> {
    /// Adds a limit, as a limiter of its own.
    ///
    /// # Errors
    /// Where the store has no room for another limit.
    pub fn limiter(
        self: &Arc<Self>,
        name: &str,
        limit: impl Into<Limit>,
    ) -> Result<StoreLimiter<Self>, StoreError> {
        StoreLimiter::new(self, name, limit)
    }
}

impl<S: Store> Clone for StoreLimiter<S> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store), limit: self.limit.clone() }
    }
}

impl<S: Store> fmt::Debug for StoreLimiter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreLimiter").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl<S: Store> fmt::Debug for LimiterWait<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimiterWait").field("charge", &self.charge).finish_non_exhaustive()
    }
}
