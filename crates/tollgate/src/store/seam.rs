//! The one seam: everything above asks a [`Store`], everything below answers as one.
//!
//! A memory store answers without awaiting and has plain methods of the same names; the trait is for whoever does not know,
//! or care, where the state lives.

use super::{LimitHandle, MemoryStore, StoreError};
use crate::{
    charge::Charge, clock::Clock, decision::SetStatus, key::Key, limit::Limit, step::concurrency::PermitId,
};
use std::{fmt, future::Future, time::Duration};

/// Where limits and what was used of them live.
pub trait Store: Send + Sync {
    /// How the store names a limit. Clones name the same one.
    type Limit: Clone + fmt::Debug + Send + Sync;

    /// Adds a limit, under a name that means the same limit to everybody who shares the store.
    ///
    /// # Errors
    /// Where the store has no room for it, or cannot keep its numbers.
    fn add_named(&self, name: &str, limit: Limit) -> Result<Self::Limit, StoreError>;

    /// Changes a limit's numbers. What was consumed stays, as each kind of limit promises.
    ///
    /// # Errors
    /// Where the store does not know the limit, or cannot keep the numbers.
    fn change_limit(&self, limit: &Self::Limit, to: Limit) -> Result<(), StoreError>;

    /// Decides a set of charges: all are charged, or none is.
    fn check(&self, charges: &[Charge<'_, Self::Limit>]) -> impl Answer<SetStatus>;

    /// What [`check`](Self::check) would answer, charging nothing.
    fn peek(&self, charges: &[Charge<'_, Self::Limit>]) -> impl Answer<SetStatus>;

    /// Takes up to `units` off the newest live use of a key.
    fn refund(&self, limit: &Self::Limit, key: Key<'_>, units: u32) -> impl Answer<()>;

    /// Forgets what a key has used. Grants and bans stay.
    fn reset(&self, limit: &Self::Limit, key: Key<'_>) -> impl Answer<()>;

    /// Gives a key `units` above its limit, until used.
    fn grant(&self, limit: &Self::Limit, key: Key<'_>, units: u32) -> impl Answer<()>;

    /// Refuses a key for this long from now. Zero lifts the ban.
    fn ban(&self, limit: &Self::Limit, key: Key<'_>, lasting: Duration) -> impl Answer<()>;

    /// Gives back the slots that `permit` holds under these charges. How many units came back.
    fn leave(&self, charges: &[Charge<'_, Self::Limit>], permit: PermitId) -> impl Answer<u32>;

    /// Lets `permit` hold its slots for another `max_hold` from now. Whether it still held all of them.
    fn renew(&self, charges: &[Charge<'_, Self::Limit>], permit: PermitId) -> impl Answer<bool>;
}

/// A future of what a store answers.
pub trait Answer<T>: Future<Output = Result<T, StoreError>> + Send {}

impl<T, F: Future<Output = Result<T, StoreError>> + Send> Answer<T> for F {}

impl<C: Clock + Send + Sync> Store for MemoryStore<C> {
    type Limit = LimitHandle;

    fn add_named(&self, _: &str, limit: Limit) -> Result<LimitHandle, StoreError> {
        self.add(limit)
    }

    fn change_limit(&self, limit: &LimitHandle, to: Limit) -> Result<(), StoreError> {
        self.change(limit, to)
    }

    async fn check(&self, charges: &[Charge<'_>]) -> Result<SetStatus, StoreError> {
        Self::check(self, charges)
    }

    async fn peek(&self, charges: &[Charge<'_>]) -> Result<SetStatus, StoreError> {
        Self::peek(self, charges)
    }

    async fn refund(&self, limit: &LimitHandle, key: Key<'_>, units: u32) -> Result<(), StoreError> {
        Self::refund(self, limit, key, units)
    }

    async fn reset(&self, limit: &LimitHandle, key: Key<'_>) -> Result<(), StoreError> {
        Self::reset(self, limit, key)
    }

    async fn grant(&self, limit: &LimitHandle, key: Key<'_>, units: u32) -> Result<(), StoreError> {
        Self::grant(self, limit, key, units)
    }

    async fn ban(&self, limit: &LimitHandle, key: Key<'_>, lasting: Duration) -> Result<(), StoreError> {
        Self::ban(self, limit, key, lasting)
    }

    async fn leave(&self, charges: &[Charge<'_>], permit: PermitId) -> Result<u32, StoreError> {
        Self::leave(self, charges, permit)
    }

    async fn renew(&self, charges: &[Charge<'_>], permit: PermitId) -> Result<bool, StoreError> {
        Self::renew(self, charges, permit)
    }
}
