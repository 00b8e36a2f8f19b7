//! How the store fares, for whoever watches.

use crate::{names, store::RedisStore};
use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tollgate::StoreError;

/// How the store fares. Counts are since it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// What is done with questions now.
    pub state: HealthState,
    /// Questions that Redis answered.
    pub answered: u64,
    /// Questions that it did not answer, or not in time, or with an error.
    pub failed: u64,
    /// Sets that were decided without it, as their limits say.
    pub without_redis: u64,
    /// How often Redis was given up for a while.
    pub outages: u64,
    /// Charges that wait on this node now, for their turn or for a slot.
    pub waiting: usize,
    /// Why the last of the failed questions failed, if any did.
    pub last_error: Option<String>,
}

/// What is done with questions: the worse, the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum HealthState {
    /// Redis is asked.
    Healthy,
    /// Redis has answered again: more and more questions go to it.
    Recovering,
    /// Redis is not asked: it did not answer.
    Degraded,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    answered: AtomicU64,
    failed: AtomicU64,
    without_redis: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl Counts {
    pub(crate) fn answered(&self) {
        self.answered.fetch_add(1, Relaxed);
    }

    pub(crate) fn failed(&self, why: String) {
        self.failed.fetch_add(1, Relaxed);
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }

    pub(crate) fn without_redis(&self) {
        self.without_redis.fetch_add(1, Relaxed);
    }
}

impl RedisStore {
    /// Tells how long every call to Redis takes from now on, answered or not; of several who want to know the first is told.
    /// Called by whoever made the call: it must not block.
    pub fn on_call(&self, hear: impl Fn(Duration) + Send + Sync + 'static) {
        self.shared.gatherer.on_call(Box::new(hear));
    }

    /// Asks Redis whether it is there, which connects: for whoever wants to know before the first question, and have it in the
    /// log. How that went counts as any question's does.
    ///
    /// # Errors
    /// Where Redis does not answer within the store's timeout.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let key = names::probe(&self.shared.settings.prefix, b"");
        let link = self.shared.gatherer.link();
        let group = link.group_of(&key);
        self.call(group, &key, link.plain(group, redis::cmd("PING"))).await.map(drop)
    }

    /// How the store fares.
    #[must_use]
    pub fn health(&self) -> Health {
        let (state, outages) = self.shared.guard.health();
        let counts = &self.shared.counts;
        Health {
            state,
            answered: counts.answered.load(Relaxed),
            failed: counts.failed.load(Relaxed),
            without_redis: counts.without_redis.load(Relaxed),
            outages,
            waiting: self.shared.queues.waiting(),
            last_error: counts.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}
