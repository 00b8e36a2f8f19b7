//! Numbers that change under way, and limits that are removed: every state of the limits is visited once and turned over.
//!
//! The sequence of the limits' [parameters](crate::slot::Parameters) is odd meanwhile, so their charges wait; other limits' do
//! not. Many limits are changed or removed in one pass over the tables, so that a reload takes time linear in their number.

use super::{
    entry::Entry,
    limit_list::LimitList,
    memory::{LimitHandle, MemoryStore, StoreError},
    table::{Slot, Tag},
};
use crate::{
    clock::Clock,
    limit::Limit,
    slot::{Form, ParametersChange, SlotState},
    step::{Moment, State, Step},
    time::Time,
};
use std::{collections::HashMap, num::NonZeroU32, slice, sync::Arc, time::Duration};

impl<C: Clock> MemoryStore<C> {
    /// Changes a limit's numbers; what was consumed is kept, as the kinds promise. Charges on this limit wait meanwhile, for
    /// some nanoseconds for each place in its table, which is the whole store's unless the limit has room of its own. Charges
    /// on other limits do not wait, unless their limit is changed as well.
    ///
    /// # Errors
    /// Where the store does not know the limit.
    pub fn change(&self, limit: &LimitHandle, to: impl Into<Limit>) -> Result<(), StoreError> {
        self.change_limits(&[(limit.clone(), to.into())]).map_err(|(_, error)| error)
    }

    /// Changes limits, all or none, in one pass over their tables. Of a limit that is named twice the last numbers count.
    pub(super) fn change_limits(&self, changes: &[(LimitHandle, Limit)]) -> Result<(), (usize, StoreError)> {
        // Whose turn has come by now had it before.
        self.queues.serve(self, self.clock.now());
        let one = self.changing();
        let mut batch = Batch::default();
        for (place, (limit, to)) in changes.iter().enumerate() {
            let entry = self.known(limit).map_err(|error| (place, error))?;
            batch.add(entry, to);
        }
        let steps = batch.limits.iter().map(|(entry, to)| (*entry, Step::new(to)));
        self.turn_over(steps, &batch.places, self.clock.now(), Occasion::Change);
        drop(one);
        self.touch_waiting(&batch.places);
        Ok(())
    }

    /// Forgets a limit and all its keys. Its handles are refused from now on.
    ///
    /// # Errors
    /// Where the store does not know the limit.
    pub fn remove(&self, limit: &LimitHandle) -> Result<(), StoreError> {
        self.remove_each(slice::from_ref(limit))
    }

    /// Forgets limits in one pass over their tables. One that the store does not know does not keep the others: they are
    /// forgotten, and that is the error.
    pub(super) fn remove_each(&self, limits: &[LimitHandle]) -> Result<(), StoreError> {
        let mut numbers = self.changing();
        let mut batch = Batch::default();
        let mut outcome = Ok(());
        for limit in limits {
            match self.known(limit) {
                Ok(entry) => batch.add(entry, ()),
                Err(error) => outcome = Err(error),
            }
        }
        // A later limit under the same tag must not find these; nor may a charge under way enter new ones.
        let mut turns = Vec::with_capacity(batch.limits.len());
        for (entry, ()) in &batch.limits {
            entry.retire();
            let (at, step) = (self.moment(entry, self.clock.now()), Step::clone(&entry.parameters.step()));
            turns.push(Turn {
                entry,
                at,
                change: entry.parameters.begin_change(step, None),
                moved: HashMap::new(),
            });
        }
        visit_slots(&mut turns, &batch.places, |turn, slot, word| {
            self.free_boxed(slot, turn.change.old.step.is_boxed());
            slot.disown();
            slot.word().unlock(word);
        });
        // Only now that no slot has the tags may other limits get them.
        let mut list = LimitList::clone(&self.limits.load());
        for Turn { entry, change, .. } in turns {
            change.finish();
            list.set(entry.tag, None);
            numbers.give_back(entry.tag);
        }
        self.limits.store(Arc::new(list));
        self.extras.lock(self.clock.now()).forget(|tag| batch.places.of(tag).is_some());
        drop(numbers);
        self.touch_waiting(&batch.places);
        outcome
    }

    /// Looks again at whoever waits for one of these limits.
    fn touch_waiting(&self, places: &Places) {
        let is_touched = |tag| places.of(tag).is_some();
        self.queues.touch_all(self, self.clock.now(), |bucket| bucket.tag().is_some_and(is_touched));
    }

    /// Moves the base of a limit's words along before the line outgrows them.
    #[cold]
    pub(super) fn rebase(&self, entry: &Entry, now: Time) {
        let now = entry.never_back(now);
        let _one = self.changing();
        let (_, Some(narrow)) = entry.parameters.read() else { return };
        if narrow.is_outgrown(now) {
            let step = Step::clone(&entry.parameters.step());
            let mut batch = Batch::default();
            batch.add(entry, ());
            self.turn_over([(entry, step)], &batch.places, now, Occasion::Rebase);
        }
    }

    /// Visits every state of the limits with their new numbers.
    fn turn_over<'l>(
        &self,
        steps: impl IntoIterator<Item = (&'l Entry, Step)>,
        places: &Places,
        now: Time,
        occasion: Occasion,
    ) {
        let begin = |(entry, step): (&'l Entry, Step)| {
            // The line begins here: a time before it counts as this one.
            entry.remember(now);
            let at = self.moment(entry, now);
            let change = entry.parameters.begin_change(step, Some(at.since_birth));
            Turn { entry, at, change, moved: HashMap::new() }
        };
        let mut turns: Vec<_> = steps.into_iter().map(begin).collect();
        visit_slots(&mut turns, places, |turn, slot, word| {
            let ParametersChange { old, new, .. } = &turn.change;
            self.convert_slot(slot, word, old, new, turn.at, &mut turn.moved);
        });
        for Turn { entry, at, change, moved } in turns {
            let ParametersChange { old, new, .. } = &change;
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
            drop(inherited);
            change.finish();
        }
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
        // Or the second word of a state of two would be taken for the number of a boxed one.
        slot.set_second(0);
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

/// Limits that are changed or removed together, each once.
struct Batch<'l, T> {
    limits: Vec<(&'l Entry, T)>,
    places: Places,
}

/// Where in a batch the limit of a tag stands.
#[derive(Default)]
struct Places(Vec<Option<NonZeroU32>>);

impl<T> Default for Batch<'_, T> {
    fn default() -> Self {
        Self { limits: Vec::new(), places: Places::default() }
    }
}

impl<'l, T> Batch<'l, T> {
    fn add(&mut self, entry: &'l Entry, what: T) {
        match self.places.of(entry.tag) {
            Some(place) => self.limits[place].1 = what,
            None => {
                self.limits.push((entry, what));
                self.places.set(entry.tag, self.limits.len());
            }
        }
    }
}

impl Places {
    fn of(&self, tag: Tag) -> Option<usize> {
        self.0.get(tag as usize).copied().flatten().map(|nth| nth.get() as usize - 1)
    }

    fn set(&mut self, tag: Tag, nth: usize) {
        let tag = tag as usize;
        if self.0.len() <= tag {
            self.0.resize(tag + 1, None);
        }
        // There are fewer limits than tags.
        self.0[tag] = NonZeroU32::new(nth as u32);
    }
}

/// One limit of a batch while its states are visited.
struct Turn<'l> {
    entry: &'l Entry,
    at: Moment,
    change: ParametersChange<'l>,
    /// States that a change of form took out of a table, by fingerprint and tag.
    moved: HashMap<u64, State>,
}

/// Visits every slot of these limits under its lock, which the visit gives back.
fn visit_slots(
    turns: &mut [Turn<'_>],
    places: &Places,
    mut visit: impl FnMut(&mut Turn<'_>, &Slot<'_>, u64),
) {
    let mut tables: Vec<_> = turns.iter().map(|turn| Arc::clone(&turn.entry.tables)).collect();
    tables.sort_by_key(|tables| Arc::as_ptr(tables).addr());
    tables.dedup_by_key(|tables| Arc::as_ptr(tables).addr());
    for is_narrow in [true, false] {
        let is_there = |turn: &Turn<'_>| turn.change.old.narrow.is_some() == is_narrow;
        if !turns.iter().any(is_there) {
            continue;
        }
        for slot in tables.iter().flat_map(|tables| tables.slots(is_narrow)) {
            // A slot that is locked may be becoming one of theirs.
            if slot.word().try_read().is_some() && places.of(slot.tag()).is_none() {
                continue;
            }
            let word = slot.word().lock();
            match places.of(slot.tag()).map(|place| &mut turns[place]).filter(|turn| is_there(turn)) {
                Some(turn) => visit(turn, &slot, word),
                None => slot.word().unlock(word),
            }
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
