//! Rules in force: a compiled file bound to a store.
//!
//! An [`Enforcer`] holds the [`Edition`] of the rules that is in force and replaces it when a file changes, all or nothing. An
//! edition rules on a request: every charge of every rule that applies is one atomic set; shadow rules are sets of their own,
//! decided after it. What a refusal looks like is the door's business.

mod edition;
mod limits;
mod ruling;

pub use edition::Edition;
pub use ruling::{Body, Outcome, Ruling, Shadow, Stand, Why};

use crate::{Program, RuleFile};
use arc_swap::ArcSwap;
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;
use tollgate::{Store, StoreError};

/// The rules in force, and the store they charge.
pub struct Enforcer<S: Store> {
    store: Arc<S>,
    current: ArcSwap<Edition<S>>,
    /// One change at a time.
    changing: Mutex<()>,
}

/// Rules that a store cannot keep; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the store cannot keep the limit {limit:?}: {source}")]
pub struct EnforceError {
    limit: String,
    source: StoreError,
}

impl EnforceError {
    fn new(limit: &str, source: StoreError) -> Self {
        Self { limit: limit.to_owned(), source }
    }
}

impl<S: Store> Enforcer<S> {
    /// Puts a file in force on a store.
    ///
    /// # Errors
    /// Where the store cannot keep one of its limits.
    pub fn new(store: Arc<S>, file: RuleFile) -> Result<Self, EnforceError> {
        let edition = Edition::bind(&store, Program::new(file), None)?;
        Ok(Self { store, current: ArcSwap::from_pointee(edition), changing: Mutex::new(()) })
    }

    /// Puts another file in force, whole or not at all. What was consumed stays; requests under way go on by the rules they
    /// began with.
    ///
    /// # Errors
    /// Where the store cannot keep one of its limits; then the old rules stay in force.
    pub fn reload(&self, file: RuleFile) -> Result<(), EnforceError> {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.current.load_full();
        let edition = Edition::bind(&self.store, Program::new(file), Some(&old))?;
        self.current.store(Arc::new(edition));
        Ok(())
    }

    /// The rules in force now; hold them for one request.
    pub fn edition(&self) -> Arc<Edition<S>> {
        self.current.load_full()
    }

    /// The store that is charged.
    pub const fn store(&self) -> &Arc<S> {
        &self.store
    }
}

impl<S: Store> std::fmt::Debug for Enforcer<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Enforcer").finish_non_exhaustive()
    }
}
