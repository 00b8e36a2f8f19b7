//! The memory store: limits, and what every key has used of them, in this process.
//!
//! One bucket in one word is decided here without a lock where it is refused, and under the slot's own lock where it is
//! charged; all else goes through [`set`](super::set), one charge being the smallest set.

use super::{
    arena::Arena,
    extras::{ExtraCount, Extras},
    numbers::{Edition, Numbers},
    table::{Landlord, Life, NOBODY, NoEntry, Print, Slot, Table},
};
use crate::{
    charge::Charge,
    clock::{Clock, SystemClock},
    decision::{DecidedBy, Status, Verdict},
    key::Key,
    limit::Limit,
    step::{Ask, Moment, State, Step, concurrency::PermitId, narrow::Outgrown},
    sync::Backoff,
    time::{Time, nanos},
};
use arc_swap::ArcSwap;
use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use thiserror::Error;

/// A store in this process's memory, bounded, shared by reference.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Charge, FixedWindow, MemoryStore, Rate, TokenBucket};
///
/// let store = MemoryStore::new();
/// let user = store.add(TokenBucket::new(Rate::per_second(10)?, 20)?)?;
/// let tenant = store.add(FixedWindow::new(1000, Duration::from_secs(3600))?)?;
///
/// // Both are charged, or neither is.
/// let status = store.check(&[Charge::new(&user, "alice"), Charge::new(&tenant, "acme").cost(3)])?;
/// assert!(status.is_allow());
/// assert_eq!(status.statuses()[1].remaining(), 997);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MemoryStore<C = SystemClock> {
    pub(super) clock: C,
    secret: [u64; 2],
    id: u64,
    shared: Arc<Tables>,
    pub(super) arena: Arena,
    pub(super) extras: Extras,
    limits: ArcSwap<Vec<Option<Arc<Entry>>>>,
    changing: Mutex<u64>,
    permits: AtomicU64,
    evicted: AtomicU64,
    refused_full: AtomicU64,
    when_full: WhenFull,
}

/// How large a memory store may grow, and what it does then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Keys that fit at once. Each table (one for states of one word, one for the others) has room for so many.
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
}

/// A limit in a store. Clones name the same limit.
#[derive(Clone)]
pub struct LimitHandle(pub(super) Arc<Entry>);

impl LimitHandle {
    #[inline]
    pub(crate) fn entry(&self) -> &Entry {
        &self.0
    }
}

impl std::fmt::Debug for LimitHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LimitHandle").field("store", &self.0.store).field("tag", &self.0.tag).finish()
    }
}

pub(crate) struct Entry {
    store: u64,
    pub(super) tag: u16,
    serial: u64,
    pub(super) birth: Time,
    /// The latest time that was charged at, where times may go back: an earlier one counts as that.
    latest: AtomicU64,
    pub(super) numbers: Numbers,
    pub(super) tables: Arc<Tables>,
    pub(super) extras: ExtraCount,
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

const MOST_LIMITS: usize = NOBODY as usize - 1;

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
            limits: ArcSwap::from_pointee(vec![None]),
            changing: Mutex::new(0),
            permits: AtomicU64::new(1),
            evicted: AtomicU64::new(0),
            refused_full: AtomicU64::new(0),
            when_full: bounds.when_full,
        }
    }

    /// Adds a limit, born now. Its keys share the store's room.
    ///
    /// # Errors
    /// Where the store has no room for another limit.
    pub fn add(&self, limit: impl Into<Limit>) -> Result<LimitHandle, StoreError> {
        self.add_to(&limit.into(), Arc::clone(&self.shared))
    }

    /// Adds a limit with room for `max_keys` of its own, so that a flood of its keys evicts nobody else's.
    ///
    /// # Errors
    /// Where the store has no room for another limit.
    pub fn add_bounded(&self, limit: impl Into<Limit>, max_keys: usize) -> Result<LimitHandle, StoreError> {
        self.add_to(&limit.into(), Arc::new(Tables::new(max_keys)))
    }

    fn add_to(&self, limit: &Limit, tables: Arc<Tables>) -> Result<LimitHandle, StoreError> {
        let mut serial = self.changing();
        let mut limits = Vec::clone(&self.limits.load());
        let free = limits.iter().skip(1).position(Option::is_none).map(|place| place + 1);
        let place = free.unwrap_or(limits.len());
        if place > MOST_LIMITS {
            return Err(StoreError::TooManyLimits { max: MOST_LIMITS });
        }
        *serial += 1;
        let birth = self.clock.now();
        let entry = Arc::new(Entry {
            store: self.id,
            tag: place as u16,
            serial: *serial,
            birth,
            latest: AtomicU64::new(0),
            numbers: Numbers::new(limit, birth),
            tables,
            extras: ExtraCount::default(),
            retired: AtomicBool::new(false),
            inherited: Mutex::default(),
            inherits: AtomicUsize::new(0),
            inherited_until: AtomicU64::new(0),
        });
        if place == limits.len() {
            limits.push(None);
        }
        limits[place] = Some(Arc::clone(&entry));
        self.limits.store(Arc::new(limits));
        Ok(LimitHandle(entry))
    }

    /// Forgets a limit and all its keys. Its handles are refused from now on.
    ///
    /// # Errors
    /// Where the store does not know the limit.
    pub fn remove(&self, limit: &LimitHandle) -> Result<(), StoreError> {
        let _one = self.changing();
        let entry = self.known(limit)?;
        let mut limits = Vec::clone(&self.limits.load());
        limits[usize::from(entry.tag)] = None;
        self.limits.store(Arc::new(limits));
        // A later limit under the same tag must not find these; nor may a charge under way enter new ones.
        entry.retired.store(true, Relaxed);
        let step = Step::clone(&entry.numbers.step());
        entry.numbers.change(step, None, |old, _| {
            for slot in entry.tables.slots_of(entry.tag, old) {
                let word = slot.word().lock();
                if slot.meta() as u16 == entry.tag {
                    self.free_boxed(&slot, old.step.is_boxed());
                    slot.disown();
                }
                slot.word().unlock(word);
            }
        });
        self.extras.lock().retain(|(tag, _), _| *tag != entry.tag);
        Ok(())
    }

    /// Changes a limit's numbers; what was consumed is kept, as the kinds promise. Charges on this limit wait meanwhile,
    /// some nanoseconds for each place in its table; other limits' do not.
    ///
    /// # Errors
    /// Where the store does not know the limit.
    pub fn change(&self, limit: &LimitHandle, to: impl Into<Limit>) -> Result<(), StoreError> {
        let _one = self.changing();
        let entry = self.known(limit)?;
        self.turn_over(entry, Step::new(&to.into()), self.clock.now());
        Ok(())
    }

    /// Decides one charge.
    ///
    /// # Errors
    /// Where the store does not know the limit.
    pub fn check_one(&self, charge: &Charge<'_>) -> Result<Status, StoreError> {
        let entry = self.known(charge.limit)?;
        Ok(self.decide(entry, charge.key, charge.cost, charge.up_to, self.clock.now(), Mode::Charge))
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

    /// Memory that the tables may come to, logs and permits apart.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        let mut tables: Vec<Arc<Tables>> =
            self.limits.load().iter().flatten().map(|entry| Arc::clone(&entry.tables)).collect();
        tables.push(Arc::clone(&self.shared));
        tables.sort_by_key(|tables| Arc::as_ptr(tables).addr());
        tables.dedup_by_key(|tables| Arc::as_ptr(tables).addr());
        tables.iter().map(|tables| tables.bytes()).sum()
    }

    /// One charge, by the short way where there is one.
    #[inline]
    pub(crate) fn decide(
        &self,
        entry: &Entry,
        key: Key<'_>,
        cost: u32,
        up_to: Option<Duration>,
        now: Time,
        mode: Mode,
    ) -> Status {
        let print = self.print(entry, key);
        self.decide_print(entry, &print, cost, up_to, now, mode)
    }

    #[inline]
    pub(crate) fn decide_print(
        &self,
        entry: &Entry,
        print: &Print,
        cost: u32,
        up_to: Option<Duration>,
        now: Time,
        mode: Mode,
    ) -> Status {
        let up_to = up_to.map(nanos);
        let now = entry.never_back(now);
        let status = self.decide_now(entry, print, cost, up_to, now, mode);
        if !C::MONOTONIC && mode == Mode::Charge && cost > 0 && !status.is_deny() {
            entry.remember(now);
        }
        status
    }

    #[inline]
    fn decide_now(
        &self,
        entry: &Entry,
        print: &Print,
        cost: u32,
        up_to: Option<u64>,
        now: Time,
        mode: Mode,
    ) -> Status {
        if !entry.extras.any() {
            let mut backoff = Backoff::default();
            loop {
                match self.try_short(entry, print, cost, up_to, now, mode) {
                    Short::Decided(status) => return status,
                    Short::Again => backoff.wait(),
                    Short::Elsewhere => break,
                }
            }
        }
        self.decide_alone(entry, print, cost, up_to, now, mode)
    }

    /// One unit for each key, the first bucket of a few keys fetched at a time.
    pub(crate) fn decide_batch(
        &self,
        entry: &Entry,
        keys: &[Key<'_>],
        now: Time,
        statuses: &mut Vec<Status>,
    ) {
        const AT_A_TIME: usize = 16;
        statuses.reserve(keys.len());
        let narrow = entry.numbers.read().1.is_some();
        for keys in keys.chunks(AT_A_TIME) {
            let mut prints = [Print::new([0, 0], 0); AT_A_TIME];
            let mut touched = 0;
            for (print, key) in prints.iter_mut().zip(keys) {
                *print = self.print(entry, *key);
                touched ^= if narrow { entry.tables.narrow().touch(print) } else { 0 };
            }
            std::hint::black_box(touched);
            for print in &prints[..keys.len()] {
                statuses.push(self.decide_print(entry, print, 1, None, now, Mode::Charge));
            }
        }
    }

    /// The short ways: a state of one word, or of two.
    #[inline]
    fn try_short(
        &self,
        entry: &Entry,
        print: &Print,
        cost: u32,
        up_to: Option<u64>,
        now: Time,
        mode: Mode,
    ) -> Short {
        let (edition, narrow) = entry.numbers.read();
        // After the numbers: a change of form leaves its heirs before it publishes.
        if entry.inherits.load(Relaxed) > 0 {
            return Short::Elsewhere;
        }
        let Some(narrow) = narrow else {
            return self.try_wide(entry, print, edition, cost, up_to, now, mode);
        };
        let table = entry.tables.narrow();
        let found = table.locate(print);
        let word = found.map_or(0, |slot| slot.word().read());
        let Ok((status, next)) = narrow.ask(word, now, cost, up_to) else {
            self.rebase(entry, now);
            return Short::Again;
        };
        if status.is_deny() || cost == 0 || mode == Mode::Peek {
            let fresh = found.is_none_or(|slot| slot.is_of(print)) && entry.numbers.is_current(edition);
            return if fresh { Short::Decided(status) } else { Short::Again };
        }
        let slot = match found {
            Some(slot) => slot,
            None => match self.enter(entry, table, print, edition, now, &[]) {
                Ok(slot) => slot,
                Err(NoEntry::Full(left)) => return Short::Decided(self.full(entry, left)),
                Err(NoEntry::Changed) => return Short::Again,
            },
        };
        if !slot.word().try_lock(word) {
            return Short::Again;
        }
        if slot.is_of(print) && entry.numbers.is_current(edition) {
            slot.word().unlock(next);
            Short::Decided(status)
        } else {
            slot.word().unlock(word);
            Short::Again
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a charge, when, and under which numbers")]
    fn try_wide(
        &self,
        entry: &Entry,
        print: &Print,
        edition: Edition,
        cost: u32,
        up_to: Option<u64>,
        now: Time,
        mode: Mode,
    ) -> Short {
        let step = entry.numbers.step();
        let table = entry.tables.wide();
        let charges = mode == Mode::Charge && cost > 0;
        let slot = match table.locate(print) {
            Some(slot) => slot,
            _ if step.is_boxed() || !charges || entry.is_retired() => return Short::Elsewhere,
            None => match self.enter(entry, table, print, edition, now, &[]) {
                Ok(slot) => slot,
                Err(NoEntry::Full(left)) => return Short::Decided(self.full(entry, left)),
                Err(NoEntry::Changed) => return Short::Again,
            },
        };
        if step.is_boxed() {
            return Short::Elsewhere;
        }
        let ask = Ask { at: self.moment(entry, now), cost, up_to };
        let word = slot.word().lock();
        if !slot.is_of(print) || !entry.numbers.is_current(edition) {
            slot.word().unlock(word);
            return Short::Again;
        }
        let answer = step.ask_words([word >> 1, slot.second()], &ask);
        if charges && !answer.status.is_deny() {
            slot.set_second(answer.next[1]);
            slot.word().unlock(answer.next[0] << 1);
        } else {
            slot.word().unlock(word);
        }
        Short::Decided(answer.status)
    }

    pub(super) fn enter<'t, const STRIDE: usize>(
        &self,
        entry: &Entry,
        table: &'t Table<STRIDE>,
        print: &Print,
        edition: Edition,
        now: Time,
        spared: &[usize],
    ) -> Result<Slot<'t>, NoEntry> {
        let limits = self.limits.load();
        let landlord = Owner { store: self, limits: &limits, entering: entry, edition, now };
        table.enter(print, spared, &landlord)
    }

    /// The answer to a key for which there is no room.
    pub(super) fn full(&self, entry: &Entry, left: u64) -> Status {
        self.refused_full.fetch_add(1, Relaxed);
        let limit = entry.numbers.step().limit();
        Status::plain(Verdict::Allow, limit, 0, left).refused(left, DecidedBy::FullTable)
    }

    /// Moves the base of a limit's words along before the line outgrows them.
    #[cold]
    pub(super) fn rebase(&self, entry: &Entry, now: Time) {
        let now = entry.never_back(now);
        let _one = self.changing();
        let (_, Some(narrow)) = entry.numbers.read() else { return };
        if narrow.ask(0, now, 0, None) == Err(Outgrown) {
            let step = Step::clone(&entry.numbers.step());
            self.turn_over(entry, step, now);
        }
    }

    /// Visits every state of the limit with its new numbers.
    fn turn_over(&self, entry: &Entry, step: Step, now: Time) {
        let at = self.moment(entry, now);
        entry.numbers.change(step, Some(at.since_birth), |old, new| {
            let mut moved = HashMap::new();
            for slot in entry.tables.slots_of(entry.tag, old) {
                let word = slot.word().lock();
                if slot.meta() as u16 == entry.tag {
                    self.convert_slot(&slot, word, old, new, at, &mut moved);
                } else {
                    slot.word().unlock(word);
                }
            }
            // Only now: a charge that began under the old numbers has inherited under them by the time its slot was had.
            let mut inherited = entry.inherited();
            for state in inherited.values_mut() {
                new.step.convert(&old.step, state, at);
            }
            inherited.extend(moved);
            inherited.retain(|_, state| new.step.idle_in(state, at) > 0);
            let longest = inherited.values().map(|state| new.step.idle_in(state, at)).max().unwrap_or(0);
            entry.inherited_until.store(now.as_nanos().saturating_add(longest), Relaxed);
            entry.inherits.store(inherited.len(), Relaxed);
        });
    }

    fn convert_slot(
        &self,
        slot: &Slot<'_>,
        word: u64,
        old: &super::numbers::Form,
        new: &super::numbers::Form,
        at: Moment,
        inherited: &mut HashMap<u64, State>,
    ) {
        let mut state = match (&old.narrow, old.step.is_boxed()) {
            (Some(narrow), _) => State::Words(narrow.widen(word, old.birth)),
            (None, false) => State::Words([word >> 1, slot.second()]),
            (None, true) => match slot.second() {
                0 => old.step.unseen(),
                number => std::mem::replace(&mut *self.arena.state(number), State::Words([0, 0])),
            },
        };
        new.step.convert(&old.step, &mut state, at);
        if old.narrow.is_some() != new.narrow.is_some() {
            if new.step.idle_in(&state, at) > 0 {
                inherited.insert(slot.meta(), state);
            }
            self.free_boxed(slot, old.step.is_boxed());
            slot.disown();
            slot.word().unlock(0);
            return;
        }
        let next = match (&new.narrow, state) {
            (Some(narrow), State::Words(words)) => narrow.narrow(words, new.birth),
            (None, State::Words(words)) => {
                self.free_boxed(slot, old.step.is_boxed());
                slot.set_second(words[1]);
                words[0] << 1
            }
            (_, state) => {
                match slot.second() {
                    number if number != 0 && old.step.is_boxed() => *self.arena.state(number) = state,
                    _ => slot.set_second(self.arena.keep(state)),
                }
                0
            }
        };
        slot.word().unlock(next);
    }

    fn free_boxed(&self, slot: &Slot<'_>, boxed: bool) {
        if boxed && slot.second() != 0 {
            self.arena.drop_state(slot.second());
            slot.set_second(0);
        }
    }

    #[inline]
    pub(crate) fn print(&self, entry: &Entry, key: Key<'_>) -> Print {
        Print::new(key.fingerprint(self.secret, entry.serial), entry.tag)
    }

    pub(super) fn moment(&self, entry: &Entry, now: Time) -> Moment {
        let now = entry.never_back(now);
        Moment::new(now.nanos_since(entry.birth), self.clock.unix(now))
    }

    pub(super) fn known<'h>(&self, limit: &'h LimitHandle) -> Result<&'h Entry, StoreError> {
        let entry = &limit.0;
        let limits = self.limits.load();
        match limits.get(usize::from(entry.tag)) {
            Some(Some(ours)) if Arc::ptr_eq(ours, entry) => Ok(entry),
            _ => Err(StoreError::UnknownLimit),
        }
    }

    pub(super) fn next_permit(&self) -> PermitId {
        PermitId(self.permits.fetch_add(1, Relaxed))
    }

    fn changing(&self) -> MutexGuard<'_, u64> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A fingerprint's secret. Loom plays the same game many times and wants the same cards.
fn secret() -> [u64; 2] {
    if cfg!(loom) { [1, 2] } else { [RandomState::new().hash_one(0), RandomState::new().hash_one(1)] }
}

/// Whether a decision charges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Charge,
    Peek,
}

/// What came of trying the short way.
enum Short {
    Decided(Status),
    /// Somebody else was at it.
    Again,
    /// The limit's state is not one word.
    Elsewhere,
}

impl Entry {
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
        self.inherited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was left for keys that did not come for it, once it is as if never used.
    pub(super) fn forget_heirs(&self, now: Time) {
        if self.inherits.load(Relaxed) > 0 && now.as_nanos() > self.inherited_until.load(Relaxed) {
            *self.inherited() = HashMap::new();
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
    fn new(max_keys: usize) -> Self {
        Self { max_keys, narrow: OnceLock::new(), wide: OnceLock::new() }
    }

    #[inline]
    pub(super) fn narrow(&self) -> &Table<2> {
        self.narrow.get_or_init(|| Table::new(self.max_keys))
    }

    pub(super) fn wide(&self) -> &Table<3> {
        self.wide.get_or_init(|| Table::new(self.max_keys))
    }

    fn bytes(&self) -> usize {
        self.narrow.get().map_or(0, Table::bytes) + self.wide.get().map_or(0, Table::bytes)
    }

    /// Every slot that is the limit's, or may be becoming so.
    fn slots_of(&self, tag: u16, form: &super::numbers::Form) -> Box<dyn Iterator<Item = Slot<'_>> + '_> {
        let may_be_ours =
            move |slot: &Slot<'_>| slot.word().try_read().is_none() || slot.meta() as u16 == tag;
        match form.narrow {
            Some(_) => Box::new(self.narrow.get().into_iter().flat_map(Table::slots).filter(may_be_ours)),
            None => Box::new(self.wide.get().into_iter().flat_map(Table::slots).filter(may_be_ours)),
        }
    }
}

/// The store, as a table asks it about slots while a key enters.
struct Owner<'a, C> {
    store: &'a MemoryStore<C>,
    limits: &'a [Option<Arc<Entry>>],
    entering: &'a Entry,
    edition: Edition,
    now: Time,
}

impl<C: Clock> Landlord for Owner<'_, C> {
    fn life(&self, tag: u16, words: [u64; 2]) -> Life {
        let Some(Some(entry)) = self.limits.get(usize::from(tag)) else { return Life::Idle };
        // While a limit's numbers change its words cannot be read.
        let Some((narrow, step)) = entry.numbers.try_read() else { return Life::Pinned };
        let now = entry.never_back(self.now);
        let left = match narrow {
            Some(narrow) => {
                narrow.ask(words[0], now, 0, None).map_or(u64::MAX, |(status, _)| status.reset_nanos())
            }
            None if step.is_boxed() => {
                let at = self.store.moment(entry, self.now);
                match words[1] {
                    0 => 0,
                    number => match self.store.arena.try_state(number) {
                        Some(state) => step.idle_in(&state, at),
                        None => return Life::Pinned,
                    },
                }
            }
            None => {
                step.idle_in(&State::Words([words[0] >> 1, words[1]]), self.store.moment(entry, self.now))
            }
        };
        match left {
            0 => Life::Idle,
            _ if matches!(**step, Step::Concurrency(_)) => Life::Pinned,
            left => Life::Live(left),
        }
    }

    fn evicts(&self) -> bool {
        self.store.when_full == WhenFull::Evict
    }

    fn in_force(&self) -> bool {
        self.entering.numbers.is_current(self.edition)
    }

    fn vacated(&self, tag: u16, words: [u64; 2], life: Life) {
        if life != Life::Idle {
            self.store.evicted.fetch_add(1, Relaxed);
        }
        let boxed = self.limits.get(usize::from(tag)).and_then(Option::as_ref);
        if words[1] != 0 && boxed.is_some_and(|entry| entry.numbers.step().is_boxed()) {
            self.store.arena.drop_state(words[1]);
        }
    }
}
