//! The rules in force on a store, and their replacement.

use super::{
    Api, BindError, NoRecorder, Recorder, RuleSnapshot, Session, definitions::Definitions, limits,
    snapshot::Binding,
};
use crate::{Program, RuleFile};
use arc_swap::ArcSwap;
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};
use tollgate::Store;

/// Decides for every API, by the rules in force on one store. Clones are the same service.
pub struct DecisionService<S: Store>(Arc<Inner<S>>);

struct Inner<S: Store> {
    binding: Binding<S>,
    current: ArcSwap<RuleSnapshot<S>>,
    /// Rules that were replaced, until nobody decides by them any more. Locked while rules are replaced.
    retired: Mutex<Vec<Arc<RuleSnapshot<S>>>>,
}

impl<S: Store> DecisionService<S> {
    /// Puts a file in force on a store. Decisions are not recorded.
    ///
    /// # Errors
    /// Where the store cannot keep one of the limits.
    pub fn new(store: Arc<S>, file: RuleFile) -> Result<Self, BindError> {
        let recorder: Arc<dyn Recorder> = Arc::new(NoRecorder);
        Self::recorded(store, file, move |_| Arc::clone(&recorder))
    }

    /// Puts a file in force on a store, and records decisions. `recorder` makes a recorder for each file that comes into force.
    ///
    /// # Errors
    /// Where the store cannot keep one of the limits.
    pub fn recorded(
        store: Arc<S>,
        file: RuleFile,
        recorder: impl Fn(&Program) -> Arc<dyn Recorder> + Send + Sync + 'static,
    ) -> Result<Self, BindError> {
        let definitions = Arc::new(Definitions::new(Arc::clone(&store)));
        let binding = Binding { store, definitions, recorder: Box::new(recorder) };
        let current = ArcSwap::from_pointee(RuleSnapshot::bind(&binding, Program::new(file), None)?);
        Ok(Self(Arc::new(Inner { binding, current, retired: Mutex::default() })))
    }

    /// Puts another file in force, whole or not at all. What was consumed stays; sessions that are open go on by the rules
    /// they began with.
    ///
    /// # Errors
    /// Where the store cannot keep one of the limits; then the old rules stay in force.
    pub fn reload(&self, file: RuleFile) -> Result<(), BindError> {
        let mut retired = self.0.retired.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = RuleSnapshot::bind(&self.0.binding, Program::new(file), Some(&self.rules()))?;
        retired.push(self.0.current.swap(Arc::new(snapshot)));
        drop(retired);
        self.free_retired();
        Ok(())
    }

    /// Frees rules that were replaced and that no session decides by any more, with the limits that only they had. Says whether
    /// some are still in use. It takes time linear in the rules, so sessions leave it to the thread that calls this.
    pub fn free_retired(&self) -> bool {
        let mut retired = self.0.retired.lock().unwrap_or_else(PoisonError::into_inner);
        let unused: Vec<_> = retired.extract_if(.., |rules| Arc::strong_count(rules) == 1).collect();
        let is_used = !retired.is_empty();
        drop(retired);
        drop(unused);
        is_used
    }

    /// Whether the store can keep the limits of a file. Nothing is changed.
    ///
    /// # Errors
    /// Where it cannot keep one of them.
    pub fn judge(&self, file: &RuleFile) -> Result<(), BindError> {
        limits::wanted(file).try_for_each(|new| {
            self.store().can_keep(&new.limit).map_err(|error| BindError::new(&new.name, error))
        })
    }

    /// Opens a session on the rules in force now. Hold it for one request, or for those of one pipeline.
    #[must_use]
    pub fn session(&self, api: Api) -> Session<S> {
        Session::new(self.rules(), api)
    }

    /// The rules in force now.
    #[must_use]
    pub fn rules(&self) -> Arc<RuleSnapshot<S>> {
        self.0.current.load_full()
    }

    /// The store that is charged.
    #[must_use]
    pub fn store(&self) -> &Arc<S> {
        &self.0.binding.store
    }
}

impl<S: Store> Clone for DecisionService<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Store> fmt::Debug for DecisionService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecisionService").finish_non_exhaustive()
    }
}
