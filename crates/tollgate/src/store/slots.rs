//! The slots of a store: found, locked, opened for the code in [`slot`](crate::slot), and written back.
//!
//! Locks are taken in this order: the extras, then slots in address order, then states in the arena.

use super::{
    entry::Entry,
    extras::Held,
    landlord::Owner,
    memory::MemoryStore,
    table::{NoEntry, Print, Slot},
};
use crate::{
    clock::Clock,
    decision::Status,
    slot::{ChargeRequest, LockedSlot, SlotCounters, SlotExtras, SlotState, Version},
    step::{Mode, narrow::Narrow},
    sync::Backoff,
    time::Time,
};
use std::sync::MutexGuard;

/// Charges on one bucket, merged.
#[derive(Clone, Copy)]
pub(super) struct BucketCharge<'a> {
    pub(super) entry: &'a Entry,
    pub(super) print: Print,
    pub(super) cost: u64,
    pub(super) up_to: Option<u64>,
}

/// A bucket's slot, and the parameters under which it was found.
pub(super) struct FoundSlot<'a> {
    bucket: BucketCharge<'a>,
    version: Version,
    narrow: Option<Narrow>,
    pub(super) slot: Option<Slot<'a>>,
    /// Where no slot could be had: in how many nanoseconds one will be free.
    full: Option<u64>,
    counters: &'a SlotCounters,
}

/// A bucket whose slot is locked, or which has none.
pub(super) struct OpenSlot<'f, 'a> {
    found: &'f FoundSlot<'a>,
    /// The value of the slot's word, while that is locked.
    value: Option<u64>,
    /// Whether a change of form left its state, and it has not come for it.
    pub(super) inherits: bool,
    /// The extras as they are kept.
    kept: SlotExtras,
    pub(super) locked: LockedSlot<'f>,
}

/// The store's grants and bans, locked where one of the limits has any.
pub(super) type HeldExtras<'a> = Option<MutexGuard<'a, Held>>;

impl<C: Clock> MemoryStore<C> {
    /// Runs `act` on a bucket under its lock. A bucket without a slot is treated as never used and not kept, unless
    /// `needs_slot` says that it gets a slot. It is asked before `act` runs, and again with the result, which `act` then finds
    /// anew on the slot.
    #[inline(always)]
    pub(super) fn with_slot<R>(
        &self,
        bucket: &BucketCharge<'_>,
        now: Time,
        needs_slot: impl Fn(Option<&R>, &OpenSlot<'_, '_>) -> bool,
        mut act: impl FnMut(&mut LockedSlot<'_>) -> R,
    ) -> R {
        let mut backoff = Backoff::default();
        loop {
            let mut found = self.find_slot(bucket, now);
            let mut held = self.lock_extras(std::slice::from_ref(bucket), now);
            if found.slot.is_none() {
                let mut open = self.open(&found, None, &held, now);
                let is_retired = bucket.entry.is_retired();
                if is_retired || !needs_slot(None, &open) {
                    let result = act(&mut open.locked);
                    if is_retired || !needs_slot(Some(&result), &open) {
                        self.close(&mut open, &mut held, now);
                        return result;
                    }
                }
                drop(open);
                if !self.enter_slot(&mut found, now, &[]) {
                    continue;
                }
            }
            let Some(value) = found.lock() else {
                backoff.wait();
                continue;
            };
            let mut open = self.open(&found, value, &held, now);
            let result = act(&mut open.locked);
            self.close(&mut open, &mut held, now);
            return result;
        }
    }

    /// The slot of a bucket, if it has one.
    #[inline(always)]
    pub(super) fn find_slot<'a>(&'a self, bucket: &BucketCharge<'a>, now: Time) -> FoundSlot<'a> {
        let BucketCharge { entry, print, .. } = bucket;
        entry.forget_heirs(now);
        let counters = self.counters.at(print.meta());
        loop {
            let (version, narrow) = entry.parameters.read();
            if narrow.is_some_and(|narrow| narrow.is_outgrown(entry.never_back(now))) {
                self.rebase(entry, now);
                continue;
            }
            let slot = match narrow {
                Some(_) => entry.tables.narrow().locate(print),
                None => entry.tables.wide().locate(print),
            };
            return FoundSlot { bucket: *bucket, version, narrow, slot, full: None, counters };
        }
    }

    /// Gives a bucket a slot, if there is room. Whether the parameters are still those under which it was looked for.
    pub(super) fn enter_slot(&self, found: &mut FoundSlot<'_>, now: Time, spared: &[usize]) -> bool {
        let BucketCharge { entry, print, .. } = found.bucket;
        let limits = self.limits.load();
        let landlord = Owner { store: self, limits: &limits, entering: entry, version: found.version, now };
        let entered = match found.narrow {
            Some(_) => entry.tables.narrow().enter(&print, spared, &landlord),
            None => entry.tables.wide().enter(&print, spared, &landlord),
        };
        match entered {
            Ok(slot) => found.slot = Some(slot),
            Err(NoEntry::Full(left)) => found.full = Some(left),
            Err(NoEntry::Changed) => return false,
        }
        true
    }

    /// The grants and bans, where one of these limits has any or somebody waits there.
    #[inline(always)]
    pub(super) fn lock_extras(&self, buckets: &[BucketCharge<'_>], now: Time) -> HeldExtras<'_> {
        buckets.iter().any(|bucket| bucket.entry.extras.any()).then(|| self.extras.lock(now))
    }

    /// A bucket as it is in its slot, which is locked and whose word has this value; or without one, as it would be in a new
    /// slot.
    #[inline(always)]
    pub(super) fn open<'f, 'a: 'f>(
        &'f self,
        found: &'f FoundSlot<'a>,
        value: Option<u64>,
        held: &HeldExtras<'_>,
        now: Time,
    ) -> OpenSlot<'f, 'a> {
        let BucketCharge { entry, print, .. } = &found.bucket;
        let (first, second) = match (value, &found.slot) {
            (Some(value), Some(slot)) => (value, slot.second()),
            _ => (0, 0),
        };
        let step = found.narrow.is_none().then(|| entry.parameters.step());
        let is_new = first == 0 && second == 0;
        let inherited = if is_new && entry.has_heirs() { Self::inherited(found, value) } else { None };
        let inherits = inherited.is_some();
        let state = inherited.unwrap_or_else(|| match &step {
            None => SlotState::Word(first),
            Some(step) if !step.is_boxed() => SlotState::Words([first >> 1, second]),
            Some(step) if second == 0 => SlotState::Owned(step.unseen()),
            Some(_) => SlotState::Kept(self.arena.state(second)),
        });
        let extra = held.as_ref().and_then(|held| held.get(&(entry.tag, print.full())));
        let kept = extra.map(|extra| extra.extras).unwrap_or_default();
        let now = entry.never_back(now);
        let parameters = (&entry.parameters, found.narrow.as_ref());
        let mut locked =
            LockedSlot::new(parameters, step, found.counters, (state, kept), now, || self.clock.unix(now));
        locked.full = found.full;
        OpenSlot { found, value, inherits, kept, locked }
    }

    /// The state that a change of form left for a bucket. It is taken from there where the bucket has a slot to keep it.
    #[cold]
    fn inherited<'f>(found: &FoundSlot<'_>, value: Option<u64>) -> Option<SlotState<'f>> {
        let BucketCharge { entry, print, .. } = &found.bucket;
        let state = match value {
            Some(_) => entry.inherit(print),
            None => entry.inherited().get(&print.meta()).cloned(),
        };
        Some(SlotState::of(state?, found.narrow.as_ref(), entry.birth))
    }

    /// Writes a bucket back and gives its lock back.
    #[inline(always)]
    pub(super) fn close<'s>(&'s self, open: &mut OpenSlot<'_, '_>, held: &mut HeldExtras<'s>, now: Time) {
        if let (Some(slot), Some(value)) = (&open.found.slot, open.value) {
            self.write(slot, value, std::mem::replace(&mut open.locked.state, SlotState::Word(0)));
        }
        if open.locked.extras != open.kept {
            self.keep_extras(open, held, now);
        }
    }

    /// Writes a state into its slot, whose word had this value, and gives the lock back.
    #[inline(always)]
    pub(super) fn write(&self, slot: &Slot<'_>, value: u64, state: SlotState<'_>) {
        let next = match state {
            SlotState::Word(word) => word,
            SlotState::Words(words) => {
                slot.set_second(words[1]);
                words[0] << 1
            }
            SlotState::Owned(state) if !state.is_unseen() => {
                slot.set_second(self.arena.keep(state));
                value
            }
            SlotState::Owned(_) | SlotState::Kept(_) => value,
        };
        slot.word().unlock(next);
    }

    /// Keeps a grant or a ban. Not under the lock of a slot, unless the extras were locked before it.
    #[cold]
    fn keep_extras<'s>(&'s self, open: &OpenSlot<'_, '_>, held: &mut HeldExtras<'s>, now: Time) {
        let BucketCharge { entry, print, .. } = &open.found.bucket;
        let (extras, kept) = (open.locked.extras, open.kept);
        let held = held.get_or_insert_with(|| self.extras.lock(now));
        if entry.is_retired() {
            // The limit was removed meanwhile, and nobody would come to forget these.
            return;
        }
        held.change((entry.tag, print.full()), &entry.extras, now, |extra| {
            let (more, less) =
                (extras.granted.saturating_sub(kept.granted), kept.granted.saturating_sub(extras.granted));
            extra.granted = extra.granted.saturating_add(more).saturating_sub(less);
            if extras.banned_until != kept.banned_until {
                extra.banned_until = extras.banned_until;
            }
        });
    }

    /// Locks the slots of a set in address order. `None`, with nothing locked, where a slot has another key now or
    /// parameters changed.
    pub(super) fn open_set<'f, 'a: 'f>(
        &'f self,
        found: &'f [FoundSlot<'a>],
        held: &HeldExtras<'_>,
        now: Time,
    ) -> Option<Vec<OpenSlot<'f, 'a>>> {
        let address = |index: &usize| found[*index].slot.map(|slot| slot.address());
        let mut order: Vec<usize> = (0..found.len()).filter(|index| address(index).is_some()).collect();
        order.sort_unstable_by_key(address);
        // Two keys that fingerprints cannot tell apart have one slot; it is locked once.
        order.dedup_by_key(|index| address(index));
        let mut values = vec![None; found.len()];
        for index in order {
            let Some(value) = found[index].lock() else {
                found.iter().zip(values).for_each(|(found, value)| found.unlock(value));
                return None;
            };
            values[index] = value;
        }
        Some(found.iter().zip(values).map(|(found, value)| self.open(found, value, held, now)).collect())
    }
}

impl<'a> BucketCharge<'a> {
    /// A bucket that is not charged.
    pub(super) const fn free(entry: &'a Entry, print: Print) -> Self {
        Self { entry, print, cost: 0, up_to: None }
    }

    pub(super) const fn request(&self, mode: Mode) -> ChargeRequest {
        ChargeRequest { cost: self.cost, up_to: self.up_to, mode }
    }

    /// Whether a bucket without a slot gets one for this charge. A denied charge takes nobody's place.
    #[inline(always)]
    pub(super) fn needs_slot(&self, mode: Mode, status: &Status) -> bool {
        mode.charges() && self.cost > 0 && !status.is_deny() && !self.entry.is_retired()
    }
}

impl FoundSlot<'_> {
    /// Locks the slot, if there is one; the value of its word. `None`, with nothing locked, where it has another key now or
    /// parameters changed.
    #[inline(always)]
    fn lock(&self) -> Option<Option<u64>> {
        let Some(slot) = self.slot else { return Some(None) };
        let value = slot.word().lock();
        if slot.is_of(&self.bucket.print) && self.bucket.entry.parameters.is_current(self.version) {
            return Some(Some(value));
        }
        slot.word().unlock(value);
        None
    }

    fn unlock(&self, value: Option<u64>) {
        if let (Some(slot), Some(value)) = (self.slot, value) {
            slot.word().unlock(value);
        }
    }
}

impl OpenSlot<'_, '_> {
    pub(super) const fn has_slot(&self) -> bool {
        self.value.is_some()
    }
}
