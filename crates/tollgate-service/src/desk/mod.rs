//! The desk: one path from every door to the store.
//!
//! A door sits down at the desk for one question, or for a pipeline of them, and keeps the edition of the rules that was in
//! force then. Limits are asked for by name, as the rule file has them, with the numbers that a key has of its own; or by a
//! definition that comes with the question.

mod cells;
mod defined;
mod error;
mod ledger;
mod sitting;

pub use error::AskError;
pub use ledger::{Answered, CellAnswered, Described, DoorName, Ledger, NoLedger, Stood};
pub use sitting::{Question, Sitting, Which};

use arc_swap::ArcSwap;
use defined::Definitions;
use std::{fmt, sync::Arc};
use tollgate::Store;
use tollgate_rules::Enforcer;

/// Where every door asks. Clones are the same desk.
pub struct Desk<S: Store>(Arc<Inner<S>>);

struct Inner<S: Store> {
    enforcer: Arc<Enforcer<S>>,
    definitions: Definitions<S>,
    ledger: ArcSwap<Arc<dyn Ledger>>,
}

impl<S: Store> Desk<S> {
    /// A desk over rules in force.
    #[must_use]
    pub fn new(enforcer: Arc<Enforcer<S>>, ledger: Arc<dyn Ledger>) -> Self {
        let definitions = Definitions::new(Arc::clone(enforcer.store()));
        Self(Arc::new(Inner { enforcer, definitions, ledger: ArcSwap::from_pointee(ledger) }))
    }

    /// Takes a seat, by the rules that are in force now.
    #[must_use]
    pub fn sit(&self) -> Sitting<'_, S> {
        Sitting::new(&self.0.definitions, self.0.enforcer.edition(), self.0.ledger.load_full())
    }

    /// The store that is asked, for a door that has limits of its own.
    #[must_use]
    pub fn store(&self) -> &Arc<S> {
        self.0.enforcer.store()
    }

    /// Whether the global switch is on.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.0.enforcer.edition().program().file().enabled
    }

    /// From now on somebody else keeps the books: those of the rules that came into force.
    pub fn keep_books(&self, ledger: Arc<dyn Ledger>) {
        self.0.ledger.store(Arc::new(ledger));
    }
}

impl<S: Store> Clone for Desk<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Store> fmt::Debug for Desk<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}
