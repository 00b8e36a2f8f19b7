//! The memory store: limits, and what every key has used of them, in this process.
//!
//! Deciding is in [`short`](super::short) for one charge and in [`set`](super::set) for several.

use super::{
    arena::Arena,
    entry::{Entry, Tables},
    extras::Extras,
    key_counts::KeyCounts,
    limit_list::{LimitList, LimitNumbers},
    table::{Print, Tag},
};
use crate::{
    cell::CellTable,
    clock::{Clock, SystemClock},
    key::Key,
    limit::Limit,
    step::{Moment, concurrency::PermitId},
    sync::hold_plain,
    time::Time,
    wait::WaitQueues,
};
use arc_swap::ArcSwap;
use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use thiserror::Error;

/// A store in this process's memory, bounded, shared by reference.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Charge, FixedWindow, MemoryStore, Rate, TokenBucket};
///
/// let store = MemoryStore::new();
/// let user = store.add("user", TokenBucket::new(Rate::per_second(10)?, 20)?)?;
/// let tenant = store.add("tenant", FixedWindow::new(1000, Duration::from_secs(3600))?)?;
///
/// // Both are charged, or neither is.
/// let status = store.check(&[Charge::new(&user, "alice"), Charge::new(&tenant, "acme").cost(3)])?;
/// assert!(status.is_allow());
/// assert_eq!(status.statuses()[1].remaining(), 997);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MemoryStore<C = SystemClock> {
    pub(crate) clock: C,
    pub(crate) secret: [u64; 2],
    id: u64,
    shared: Arc<Tables>,
    pub(super) arena: Arena,
    pub(super) extras: Extras,
    pub(super) limits: ArcSwap<LimitList>,
    changing: Mutex<LimitNumbers>,
    permits: AtomicU64,
    /// What decides whether a key's consumption can be given back.
    pub(super) counters: KeyCounts,
    /// Who waits.
    pub(super) queues: WaitQueues,
    pub(crate) cells: CellTable,
    pub(crate) evicted: AtomicU64,
    pub(crate) refused_full: AtomicU64,
    pub(crate) when_full: WhenFull,
}

/// How large a memory store may grow, and what it does then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Keys that fit at once, rounded up to a bucket of eight or five. Each table (one for states of one word, one for the
    /// others) has room for so many; its memory is asked for when the first key comes, and used as keys do.
    pub max_keys: usize,
    /// What a new key gets when every place it could have is in use.
    pub when_full: WhenFull,
}

/// What a new key gets when every place it could have is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// The place of the key nearest to as-if-never-used; never that of a held permit.
    #[default]
    Evict,
    /// A refusal.
    Deny,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { max_keys: 1_000_000, when_full: WhenFull::default() }
    }
}

/// Why a store could not decide.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A charge names a limit that another store made, or that was removed.
    #[error("this store does not know that limit")]
    UnknownLimit,
    /// More limits than a store has room for.
    #[error("a store holds at most {max} limits")]
    TooManyLimits {
        /// How many it holds.
        max: usize,
    },
    /// The limit's numbers are finer or larger than the store can keep.
    #[error("{setting} {problem}")]
    Unsupported {
        /// The setting's name.
        setting: &'static str,
        /// What is wrong with it, and what would do.
        problem: &'static str,
    },
    /// The store could not be reached, or would not answer; nothing was charged.
    #[error("the store does not answer: {why}")]
    Unavailable {
        /// What happened.
        why: String,
    },
    /// The question was sent and no answer came in time: it may have been charged, and is not asked again.
    #[error("the store did not answer in time: {why}")]
    Unanswered {
        /// What happened.
        why: String,
    },
    /// What the store kept for a key could not be read. It was removed, so that the next charge begins anew; nothing was
    /// charged.
    #[error("what was stored under {key:?} was not ours to read, and has been removed")]
    Damaged {
        /// The key in the store.
        key: String,
    },
    /// What the store keeps for a key was written by a later version of Tollgate; nothing was charged.
    #[error("what is stored under {key:?} was written by a later version; please update this node")]
    TooNew {
        /// The key in the store.
        key: String,
    },
}

/// A limit in a store. Clones name the same limit.
#[derive(Clone)]
pub struct LimitHandle(pub(super) Arc<Entry>);

impl LimitHandle {
    #[inline]
    pub(crate) fn entry(&self) -> &Entry {
        &self.0
    }

    pub(crate) fn tag(&self) -> Tag {
        self.0.tag
    }

    /// The name under which it was added.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }
}

impl std::fmt::Debug for LimitHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LimitHandle")
            .field("name", &self.0.name)
            .field("store", &self.0.store())
            .field("tag", &self.0.tag)
            .finish()
    }
}

impl MemoryStore {
    /// A store for a million keys on the machine's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(Bounds::default(), SystemClock::new())
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// A store with these bounds on the machine's clock.
    #[must_use]
    pub fn with_bounds(bounds: Bounds) -> Self {
        Self::with_clock(bounds, SystemClock::new())
    }
}

impl<C> std::fmt::Debug for MemoryStore<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let limits = self.limits.load().iter().count();
        f.debug_struct("MemoryStore")
            .field("limits", &limits)
            .field("when_full", &self.when_full)
            .finish_non_exhaustive()
    }
}

impl<C: Clock> MemoryStore<C> {
    /// A store with these bounds on this clock.
    #[must_use]
    pub fn with_clock(bounds: Bounds, clock: C) -> Self {
        static STORES: AtomicU64 = AtomicU64::new(0);
        Self {
            clock,
            secret: secret(),
            id: STORES.fetch_add(1, Relaxed),
            shared: Arc::new(Tables::new(bounds.max_keys)),
            arena: Arena::new(),
            extras: Extras::default(),
            limits: ArcSwap::default(),
            changing: Mutex::default(),
            permits: AtomicU64::new(first_permit()),
            counters: KeyCounts::default(),
            queues: WaitQueues::default(),
            cells: CellTable::new(bounds.max_keys),
            evicted: AtomicU64::new(0),
            refused_full: AtomicU64::new(0),
            when_full: bounds.when_full,
        }
    }

    /// Adds a limit, born now. Its keys share the store's room. The name is shown in `Debug`; every call adds a limit of its own,
    /// while a store that is shared knows limits by their names.
    ///
    /// # Errors
    /// Where the store has no room for another limit.
    pub fn add(&self, name: &str, limit: impl Into<Limit>) -> Result<LimitHandle, StoreError> {
        self.add_to(name, &limit.into(), Arc::clone(&self.shared))
    }

    /// Adds a limit with room for `max_keys` of its own, so that a flood of its keys evicts nobody else's.
    ///
    /// # Errors
    /// Where the store has no room for another limit.
    pub fn add_bounded(
        &self,
        name: &str,
        limit: impl Into<Limit>,
        max_keys: usize,
    ) -> Result<LimitHandle, StoreError> {
        self.add_to(name, &limit.into(), Arc::new(Tables::new(max_keys)))
    }

    fn add_to(&self, name: &str, limit: &Limit, tables: Arc<Tables>) -> Result<LimitHandle, StoreError> {
        let mut added = self.add_each([(name, limit, tables)])?;
        added.pop().ok_or(StoreError::UnknownLimit)
    }

    /// Adds limits, all or none, in time linear in their number.
    pub(super) fn add_each<'l>(
        &self,
        limits: impl IntoIterator<Item = (&'l str, &'l Limit, Arc<Tables>), IntoIter: ExactSizeIterator>,
    ) -> Result<Vec<LimitHandle>, StoreError> {
        let limits = limits.into_iter();
        let mut numbers = self.changing();
        if !numbers.has_room_for(limits.len()) {
            return Err(StoreError::TooManyLimits { max: LimitNumbers::MOST });
        }
        let (mut list, now) = (LimitList::clone(&self.limits.load()), self.clock.now());
        let mut added = Vec::with_capacity(limits.len());
        for (name, limit, tables) in limits {
            let (tag, serial) = numbers.next();
            let entry = Arc::new(Entry::new(name, (self.id, tag, serial), now, limit, tables));
            list.set(tag, Some(Arc::clone(&entry)));
            added.push(LimitHandle(entry));
        }
        self.limits.store(Arc::new(list));
        Ok(added)
    }

    /// The tables of a limit with room for so many keys of its own, or of those without.
    pub(super) fn tables_for(&self, max_keys: Option<u32>) -> Arc<Tables> {
        max_keys.map_or_else(|| Arc::clone(&self.shared), |max| Arc::new(Tables::new(max as usize)))
    }

    /// How many live keys were evicted to make room.
    #[must_use]
    pub fn evictions(&self) -> u64 {
        self.evicted.load(Relaxed)
    }

    /// How many charges were refused for want of room.
    #[must_use]
    pub fn refusals_when_full(&self) -> u64 {
        self.refused_full.load(Relaxed)
    }

    /// The clock that decides.
    #[must_use]
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Places in the tables that keys have, or had and would find again: a key that is as if never used keeps its place until
    /// another needs it.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.sum_over_tables(Tables::taken)
    }

    /// Memory that the tables may come to, logs and permits apart.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.sum_over_tables(Tables::bytes) + self.cells.bytes()
    }

    fn sum_over_tables(&self, of: fn(&Tables) -> usize) -> usize {
        let limits = self.limits.load();
        let own = limits.iter().filter(|entry| !Arc::ptr_eq(&entry.tables, &self.shared));
        own.map(|entry| of(&entry.tables)).sum::<usize>() + of(&self.shared)
    }

    #[inline(always)]
    pub(crate) fn print(&self, entry: &Entry, key: Key<'_>) -> Print {
        Print::new(key.fingerprint(self.secret, entry.serial), entry.tag)
    }

    pub(super) fn moment(&self, entry: &Entry, now: Time) -> Moment {
        let now = entry.never_back(now);
        Moment::new(now.nanos_since(entry.birth), self.clock.unix(now))
    }

    pub(super) fn known<'h>(&self, limit: &'h LimitHandle) -> Result<&'h Entry, StoreError> {
        let entry = &limit.0;
        // A limit says itself whose it is, and when it is no more: nobody has to look for it among the others.
        match entry.store() == self.id && !entry.is_retired() {
            true => Ok(entry),
            false => Err(StoreError::UnknownLimit),
        }
    }

    pub(super) fn next_permit(&self) -> PermitId {
        PermitId::numbered(self.permits.fetch_add(1, Relaxed))
    }

    pub(super) fn changing(&self) -> MutexGuard<'_, LimitNumbers> {
        hold_plain(&self.changing)
    }
}

/// Where the numbers of permits begin: somewhere else in every store, so that the name of a permit that somebody kept from
/// before a restart is nobody's.
fn first_permit() -> u64 {
    if cfg!(loom) { 1 } else { RandomState::new().hash_one(2) >> 12 }
}

/// A fingerprint's secret. Loom plays the same game many times and wants the same cards.
fn secret() -> [u64; 2] {
    if cfg!(loom) { [1, 2] } else { [RandomState::new().hash_one(0), RandomState::new().hash_one(1)] }
}
