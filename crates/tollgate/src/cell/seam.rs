//! Stores that have cells.

use super::{
    table::Landlord,
    throttle::{Throttle, Throttled},
};
use crate::{
    clock::Clock,
    key::Key,
    store::{Answer, MemoryStore, Store, StoreError},
    time::{Time, hint},
};
use std::time::Duration;

/// A store that also keeps cells: buckets whose numbers come with every question.
pub trait Cells: Store {
    /// Asks a cell, and charges it where that passes.
    fn throttle(&self, key: Key<'_>, asked: &Throttle) -> impl Answer<Throttled>;

    /// Forgets what a cell owes. Whether it owed anything.
    fn forget(&self, key: Key<'_>) -> impl Answer<bool>;

    /// Until when a cell owes; `None` where it does not.
    fn owing(&self, key: Key<'_>) -> impl Answer<Option<Owing>>;
}

/// Until when a cell owes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owing {
    /// For how long from now.
    pub lasting: Duration,
    /// Until then, in nanoseconds since 1970.
    pub until: u64,
}

/// What cells' fingerprints are made with, where limits have their serial numbers, which begin at one.
const DOMAIN: u64 = 0;

impl<C: Clock> MemoryStore<C> {
    /// Asks a cell, and charges it where that passes.
    pub fn throttle<'k>(&self, key: impl Into<Key<'k>>, asked: &Throttle) -> Throttled {
        let landlord =
            Landlord { when_full: self.when_full, evicted: &self.evicted, refused: &self.refused_full };
        let print = key.into().fingerprint(self.secret, DOMAIN);
        self.cells.throttle(print, self.clock.now().as_nanos(), asked, &landlord)
    }

    /// Forgets what a cell owes. Whether it owed anything.
    pub fn forget<'k>(&self, key: impl Into<Key<'k>>) -> bool {
        let print = key.into().fingerprint(self.secret, DOMAIN);
        self.cells.forget(print, self.clock.now().as_nanos())
    }

    /// Until when a cell owes; `None` where it does not.
    pub fn owing<'k>(&self, key: impl Into<Key<'k>>) -> Option<Owing> {
        let print = key.into().fingerprint(self.secret, DOMAIN);
        let now = self.clock.now();
        let due = self.cells.due(print, now.as_nanos())?;
        let lasting = hint(due - now.as_nanos());
        Some(Owing { lasting, until: self.clock.unix(Time::from_nanos(due)) })
    }
}

impl<C: Clock + Send + Sync> Cells for MemoryStore<C> {
    async fn throttle(&self, key: Key<'_>, asked: &Throttle) -> Result<Throttled, StoreError> {
        Ok(Self::throttle(self, key, asked))
    }

    async fn forget(&self, key: Key<'_>) -> Result<bool, StoreError> {
        Ok(Self::forget(self, key))
    }

    async fn owing(&self, key: Key<'_>) -> Result<Option<Owing>, StoreError> {
        Ok(Self::owing(self, key))
    }
}
