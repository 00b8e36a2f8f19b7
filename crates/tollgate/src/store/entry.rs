//! A limit in a store: its parameters, its tables, and what is kept beside them.

use super::{
    extras::ExtraCount,
    table::{Print, Slot, Table, Tag},
};
use crate::{limit::Limit, slot::Parameters, step::State, sync::hold_plain, time::Time};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

pub(crate) struct Entry {
    pub(super) name: Box<str>,
    store: u64,
    pub(super) tag: Tag,
    pub(super) serial: u64,
    pub(super) birth: Time,
    /// The latest time that was charged at, where times may go back: an earlier one counts as that.
    latest: AtomicU64,
    pub(super) parameters: Parameters,
    pub(super) tables: Arc<Tables>,
    pub(super) extras: Arc<ExtraCount>,
    retired: AtomicBool,
    /// States that a change of form took out of a table, until their keys come for them; by fingerprint and tag.
    inherited: Mutex<HashMap<u64, State>>,
    inherits: AtomicUsize,
    /// When the last of them is as if never used, and all may be forgotten.
    inherited_until: AtomicU64,
}

/// The two tables of a store, or of a limit with a bound of its own; had when first needed.
pub(crate) struct Tables {
    max_keys: usize,
    narrow: OnceLock<Table<2>>,
    wide: OnceLock<Table<3>>,
}

impl Entry {
    /// A limit of this name: its store, its tag, and its number in the order of addition.
    pub(super) fn new(
        name: &str,
        (store, tag, serial): (u64, Tag, u64),
        birth: Time,
        limit: &Limit,
        tables: Arc<Tables>,
    ) -> Self {
        Self {
            name: name.into(),
            store,
            tag,
            serial,
            birth,
            latest: AtomicU64::new(0),
            parameters: Parameters::new(limit, birth),
            tables,
            extras: Arc::default(),
            retired: AtomicBool::new(false),
            inherited: Mutex::default(),
            inherits: AtomicUsize::new(0),
            inherited_until: AtomicU64::new(0),
        }
    }

    /// Which store made it.
    pub(super) const fn store(&self) -> u64 {
        self.store
    }

    /// Says that the limit was removed.
    pub(super) fn retire(&self) {
        self.retired.store(true, Relaxed);
    }

    /// Whether a change of form left states for keys that have not come for them.
    #[inline(always)]
    pub(super) fn has_heirs(&self) -> bool {
        self.inherits.load(Relaxed) > 0
    }

    /// Says how many states are left, and when the last of them is as if never used.
    pub(super) fn leave_heirs(&self, count: usize, until: Time) {
        self.inherited_until.store(until.as_nanos(), Relaxed);
        self.inherits.store(count, Relaxed);
    }

    #[inline]
    pub(super) fn never_back(&self, now: Time) -> Time {
        now.max(Time::from_nanos(self.latest.load(Relaxed)))
    }

    /// Remembers a time that was charged at, for times that may go back.
    pub(crate) fn remember(&self, now: Time) {
        self.latest.fetch_max(now.as_nanos(), Relaxed);
    }

    /// Whether the limit was removed: a charge under way then finds no state, and leaves none.
    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Relaxed)
    }

    pub(super) fn inherited(&self) -> MutexGuard<'_, HashMap<u64, State>> {
        hold_plain(&self.inherited)
    }

    /// Forgets what was left for keys that did not come for it, once it is as if never used.
    pub(super) fn forget_heirs(&self, now: Time) {
        let is_due = || self.has_heirs() && now.as_nanos() > self.inherited_until.load(Relaxed);
        if !is_due() {
            return;
        }
        // A change may have left new ones since; it does so under this lock.
        let mut inherited = self.inherited();
        if is_due() {
            *inherited = HashMap::new();
            self.inherits.store(0, Relaxed);
        }
    }

    /// The state that a change of form left for this key, taken out for good.
    pub(super) fn inherit(&self, print: &Print) -> Option<State> {
        if self.inherits.load(Relaxed) == 0 {
            return None;
        }
        let mut inherited = self.inherited();
        let state = inherited.remove(&print.meta());
        self.inherits.store(inherited.len(), Relaxed);
        state
    }
}

impl Tables {
    pub(super) fn new(max_keys: usize) -> Self {
        Self { max_keys, narrow: OnceLock::new(), wide: OnceLock::new() }
    }

    #[inline(always)]
    pub(super) fn narrow(&self) -> &Table<2> {
        self.narrow.get_or_init(|| Table::new(self.max_keys))
    }

    pub(super) fn wide(&self) -> &Table<3> {
        self.wide.get_or_init(|| Table::new(self.max_keys))
    }

    pub(super) fn bytes(&self) -> usize {
        self.narrow.get().map_or(0, Table::bytes) + self.wide.get().map_or(0, Table::bytes)
    }

    pub(super) fn taken(&self) -> usize {
        self.narrow.get().map_or(0, Table::taken) + self.wide.get().map_or(0, Table::taken)
    }

    /// Every slot of the table of one-word states, or of the other.
    pub(super) fn slots(&self, is_narrow: bool) -> Box<dyn Iterator<Item = Slot<'_>> + '_> {
        match is_narrow {
            true => Box::new(self.narrow.get().into_iter().flat_map(Table::slots)),
            false => Box::new(self.wide.get().into_iter().flat_map(Table::slots)),
        }
    }
}
