//! Numbers that change under way: every state of the limit is visited and turned over.
//!
//! The sequence of the limit's [parameters](crate::slot::Parameters) is odd meanwhile, so its charges wait; other limits' do not.

use super::{
    entry::Entry,
    memory::{LimitHandle, MemoryStore, StoreError},
    table::Slot,
};
use crate::{
    clock::Clock,
    limit::Limit,
    slot::{Form, SlotState},
    step::{Moment, State, Step},
    time::Time,
};
use std::{collections::HashMap, sync::Arc, time::Duration};

impl<C: Clock> MemoryStore<C> {
    /// Changes a limit's numbers; what was consumed is kept, as the kinds promise. Charges on this limit wait meanwhile,
    /// some nanoseconds for each place in its table; other limits' do not.
    ///
    /// # Errors
    /// Where the store does not know the limit.
    pub fn change(&self, limit: &LimitHandle, to: impl Into<Limit>) -> Result<(), StoreError> {
        // Whose turn has come by now had it before.
        self.queues.serve(self, self.clock.now());
        let one = self.changing();
        let entry = self.known(limit)?;
        self.turn_over(entry, Step::new(&to.into()), self.clock.now(), Occasion::Change);
        drop(one);
        self.queues.touch_all(self, self.clock.now(), |bucket| bucket.is_of(limit));
        Ok(())
    }

    /// Forgets a limit and all its keys. Its handles are refused from now on.
    ///
    /// # Errors
    /// Where the store does not know the limit.
    pub fn remove(&self, limit: &LimitHandle) -> Result<(), StoreError> {
        let one = self.changing();
        let entry = self.known(limit)?;
        // A later limit under the same tag must not find these; nor may a charge under way enter new ones.
        entry.retire();
        let step = Step::clone(&entry.parameters.step());
        entry.parameters.change(step, None, |old, _| {
            for slot in entry.tables.slots_of(entry.tag, old) {
                let word = slot.word().lock();
                if slot.meta() as u16 == entry.tag {
                    self.free_boxed(&slot, old.step.is_boxed());
                    slot.disown();
                }
                slot.word().unlock(word);
            }
        });
        // Only now that no slot has the tag may another limit get it.
        let mut limits = Vec::clone(&self.limits.load());
        limits[usize::from(entry.tag)] = None;
        self.limits.store(Arc::new(limits));
        self.extras.lock(self.clock.now()).forget(entry.tag);
        drop(one);
        self.queues.touch_all(self, self.clock.now(), |bucket| bucket.is_of(limit));
        Ok(())
    }

    /// Moves the base of a limit's words along before the line outgrows them.
    #[cold]
    pub(super) fn rebase(&self, entry: &Entry, now: Time) {
        let now = entry.never_back(now);
        let _one = self.changing();
        let (_, Some(narrow)) = entry.parameters.read() else { return };
        if narrow.is_outgrown(now) {
            let step = Step::clone(&entry.parameters.step());
            self.turn_over(entry, step, now, Occasion::Rebase);
        }
    }

    /// Visits every state of the limit with its new numbers.
    fn turn_over(&self, entry: &Entry, step: Step, now: Time, occasion: Occasion) {
        // The line begins here: a time before it counts as this one.
        entry.remember(now);
        let at = self.moment(entry, now);
        entry.parameters.change(step, Some(at.since_birth), |old, new| {
            let mut moved = HashMap::new();
            for slot in entry.tables.slots_of(entry.tag, old) {
                let word = slot.word().lock();
                if slot.meta() as u16 == entry.tag {
                    self.convert_slot(&slot, word, old, new, at, &mut moved);
                } else {
                    slot.word().unlock(word);
                }
            }
            // Only now: what is charged under a slot's lock before it was visited is of the old numbers.
            if occasion == Occasion::Change {
                entry.parameters.count_change();
            }
            // Only now: a charge that began under the old numbers has inherited under them by the time its slot was had.
            let mut inherited = entry.inherited();
            for state in inherited.values_mut() {
                new.step.convert(&old.step, state, at);
            }
            inherited.extend(moved);
            inherited.retain(|_, state| new.step.idle_in(state, at) > 0);
            let longest = inherited.values().map(|state| new.step.idle_in(state, at)).max().unwrap_or(0);
            entry.leave_heirs(inherited.len(), now + Duration::from_nanos(longest));
        });
    }

    fn convert_slot(
        &self,
        slot: &Slot<'_>,
        word: u64,
        old: &Form,
        new: &Form,
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
        self.free_boxed(slot, old.step.is_boxed());
        new.step.convert(&old.step, &mut state, at);
        if old.narrow.is_some() == new.narrow.is_some() {
            self.write(slot, 0, SlotState::of(state, new.narrow.as_ref(), new.birth));
            return;
        }
        if new.step.idle_in(&state, at) > 0 {
            inherited.insert(slot.meta(), state);
        }
        slot.disown();
        slot.word().unlock(0);
    }

    fn free_boxed(&self, slot: &Slot<'_>, boxed: bool) {
        if boxed && slot.second() != 0 {
            self.arena.drop_state(slot.second());
            slot.set_second(0);
        }
    }
}

/// Why states are turned over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occasion {
    /// The numbers are others now.
    Change,
    /// The same numbers, counted from another base.
    Rebase,
}
