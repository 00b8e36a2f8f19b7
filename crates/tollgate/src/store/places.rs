//! The slots of a set: found, locked in address order, read and written back.

use super::{
    entry::Entry,
    extras::Holder,
    memory::MemoryStore,
    numbers::Edition,
    table::{NoEntry, Print, Slot},
};
use crate::{
    clock::Clock,
    step::{Mode, Moment, State, Step, narrow::Narrow},
    time::Time,
};
use std::sync::{Arc, MutexGuard};

/// Charges on one bucket.
pub(super) struct Part<'a> {
    pub(super) entry: &'a Entry,
    pub(super) print: Print,
    pub(super) cost: u64,
    pub(super) up_to: Option<u64>,
}

/// A part's numbers as they were read, and its slot.
pub(super) struct Place<'a> {
    edition: Edition,
    narrow: Option<Narrow>,
    pub(super) step: Arc<Step>,
    pub(super) at: Moment,
    birth: Time,
    pub(super) slot: Result<Option<Slot<'a>>, Full>,
}

/// No slot could be had; one will be free in so many nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Full(pub(super) u64);

/// A locked slot's state.
pub(super) enum Body<'a> {
    Owned(State),
    Kept(MutexGuard<'a, State>),
}

impl<C: Clock> MemoryStore<C> {
    pub(super) fn find_places<'a>(&self, parts: &[Part<'a>], now: Time, mode: Mode) -> Vec<Place<'a>> {
        let mut spared = Vec::with_capacity(parts.len());
        parts
            .iter()
            .map(|part| {
                loop {
                    let (edition, narrow) = part.entry.numbers.read();
                    part.entry.forget_heirs(now);
                    let at = self.moment(part.entry, now);
                    if narrow
                        .is_some_and(|narrow| narrow.ask(0, part.entry.never_back(now), 0, None).is_err())
                    {
                        self.rebase(part.entry, now);
                        continue;
                    }
                    let enters = mode.charges() && part.cost > 0;
                    let slot = match self.find_slot(part, narrow.is_some(), enters, edition, now, &spared) {
                        Ok(slot) => Ok(slot),
                        Err(NoEntry::Full(left)) => Err(Full(left)),
                        Err(NoEntry::Changed) => continue,
                    };
                    spared.extend(slot.iter().flatten().map(Slot::address));
                    let step = Arc::clone(&part.entry.numbers.step());
                    break Place { edition, narrow, step, at, birth: part.entry.birth, slot };
                }
            })
            .collect()
    }

    fn find_slot<'a>(
        &self,
        part: &Part<'a>,
        narrow: bool,
        enters: bool,
        edition: Edition,
        now: Time,
        spared: &[usize],
    ) -> Result<Option<Slot<'a>>, NoEntry> {
        let (entry, print) = (part.entry, &part.print);
        let enters = enters && !entry.is_retired();
        let found =
            if narrow { entry.tables.narrow().locate(print) } else { entry.tables.wide().locate(print) };
        match found {
            Some(slot) => Ok(Some(slot)),
            None if !enters => Ok(None),
            None if narrow => {
                self.enter_key(entry, entry.tables.narrow(), print, edition, now, spared).map(Some)
            }
            None => self.enter_key(entry, entry.tables.wide(), print, edition, now, spared).map(Some),
        }
    }

    /// The state in a locked slot, or of a key that has none.
    pub(super) fn body(
        &self,
        part: &Part<'_>,
        place: &Place<'_>,
        value: Option<u64>,
        mode: Mode,
    ) -> Body<'_> {
        let (Ok(Some(slot)), Some(value)) = (&place.slot, value) else {
            let inherited = part.entry.inherited().get(&part.print.meta()).cloned();
            return Body::Owned(inherited.unwrap_or_else(|| place.step.unseen()));
        };
        let second = slot.second();
        if value == 0 && second == 0 {
            // The slot is new, or as good as: what a change of form left for the key is its state now.
            let inherited = match mode {
                Mode::Charge | Mode::Release => part.entry.inherit(&part.print),
                Mode::Peek => part.entry.inherited().get(&part.print.meta()).cloned(),
            };
            if let Some(state) = inherited {
                return Body::Owned(state);
            }
        }
        match (&place.narrow, place.step.is_boxed()) {
            (Some(narrow), _) => Body::Owned(State::Words(narrow.widen(value, part.entry.birth))),
            (None, true) if second != 0 => Body::Kept(self.arena.state(second)),
            (None, true) => Body::Owned(place.step.unseen()),
            (None, false) => Body::Owned(State::Words([value >> 1, second])),
        }
    }

    /// Writes the state and gives the lock back.
    pub(super) fn put_back(&self, slot: &Slot<'_>, place: &Place<'_>, body: Body<'_>, value: u64) {
        let next = match (body, &place.narrow) {
            (Body::Kept(_), _) => value,
            (Body::Owned(State::Words(words)), Some(narrow)) => narrow.narrow(words, place.birth),
            (Body::Owned(State::Words(words)), None) => {
                slot.set_second(words[1]);
                words[0] << 1
            }
            (Body::Owned(state), _) => {
                if state != place.step.unseen() {
                    slot.set_second(self.arena.keep(state));
                }
                value
            }
        };
        slot.word().unlock(next);
    }
}

/// Every slot of a set, locked, with the value each had.
pub(super) struct Locked<'a> {
    pub(super) values: Vec<Option<u64>>,
    _slots: std::marker::PhantomData<&'a ()>,
}

impl<'a> Locked<'a> {
    /// Locks in address order. `None`, with nothing locked, where a slot has another key now or numbers changed.
    pub(super) fn lock(parts: &[Part<'_>], places: &'a [Place<'_>]) -> Option<Self> {
        let mut order: Vec<(usize, usize)> = places
            .iter()
            .enumerate()
            .filter_map(|(index, place)| Some((place.slot.ok()??.address(), index)))
            .collect();
        order.sort_unstable();
        let mut values = vec![None; places.len()];
        for (position, (address, index)) in order.iter().copied().enumerate() {
            // Two keys that fingerprints cannot tell apart have one slot; it is locked once.
            if position > 0 && order[position - 1].0 == address {
                continue;
            }
            let (part, place) = (&parts[index], &places[index]);
            let Ok(Some(slot)) = place.slot else { continue };
            values[index] = Some(slot.word().lock());
            if !slot.is_of(&part.print) || !part.entry.numbers.is_current(place.edition) {
                for (place, value) in places.iter().zip(values) {
                    if let (Ok(Some(slot)), Some(value)) = (place.slot, value) {
                        slot.word().unlock(value);
                    }
                }
                return None;
            }
        }
        Some(Self { values, _slots: std::marker::PhantomData })
    }
}

impl Place<'_> {
    pub(super) fn is_unplaced(&self) -> bool {
        matches!(self.slot, Ok(None))
    }
}

impl Part<'_> {
    pub(super) fn holder(&self) -> Holder {
        (self.entry.tag, self.print.full())
    }
}

impl Body<'_> {
    pub(super) fn state(&self) -> &State {
        match self {
            Self::Owned(state) => state,
            Self::Kept(state) => state,
        }
    }

    pub(super) fn state_mut(&mut self) -> &mut State {
        match self {
            Self::Owned(state) => state,
            Self::Kept(state) => state,
        }
    }
}
