//! Who waits in a queue, in the order of arrival, and what each costs there.
//!
//! Nearly all come last and leave first, which is what a ring is for: 16 bytes each. One that leaves from the middle leaves a
//! mark, found by its arrival in as many steps as a search halves the queue; marks are swept when they are more than half.

use super::waiters::Ticket;
use std::collections::VecDeque;

#[derive(Default)]
pub(super) struct Fifo {
    /// By arrival; neither the first nor the last has left.
    places: VecDeque<QueueEntry>,
    gone: usize,
}

#[derive(Clone, Copy)]
struct QueueEntry {
    arrival: u64,
    slot: u32,
    units: u32,
}

/// The slot of one that has left.
const GONE: u32 = u32::MAX;
/// So few marks are not worth sweeping.
const FEW: usize = 32;

impl Fifo {
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.gone
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn first(&self) -> Option<Ticket> {
        self.places.front().map(QueueEntry::ticket)
    }

    /// Whether it would come last.
    pub(super) fn is_last(&self, ticket: Ticket) -> bool {
        self.places.back().is_none_or(|last| last.arrival < ticket.arrival)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Ticket, u32)> {
        self.places.iter().filter(|place| !place.is_gone()).map(|place| (place.ticket(), place.units))
    }

    /// Adds one at the place of its arrival.
    pub(super) fn insert(&mut self, ticket: Ticket, units: u32) {
        let place = QueueEntry { arrival: ticket.arrival, slot: ticket.slot, units };
        if self.is_last(ticket) {
            return self.places.push_back(place);
        }
        match self.places.binary_search_by_key(&{ ticket.arrival }, |place| place.arrival) {
            Ok(index) => {
                self.gone -= usize::from(self.places[index].is_gone());
                self.places[index] = place;
            }
            Err(index) => self.places.insert(index, place),
        }
    }

    /// Removes the first.
    pub(super) fn remove_first(&mut self) {
        self.places.pop_front();
        self.sweep_front();
    }

    /// Removes one. What it cost, if it was there.
    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<u32> {
        let index = self.places.binary_search_by_key(&{ ticket.arrival }, |place| place.arrival).ok()?;
        let place = self.places.get_mut(index).filter(|place| !place.is_gone())?;
        place.slot = GONE;
        let units = place.units;
        self.gone += 1;
        self.sweep_front();
        while self.places.back().is_some_and(QueueEntry::is_gone) {
            self.places.pop_back();
            self.gone -= 1;
        }
        if self.gone > FEW.max(self.len()) {
            self.places.retain(|place| !place.is_gone());
            self.gone = 0;
        }
        Some(units)
    }

    fn sweep_front(&mut self) {
        while self.places.front().is_some_and(QueueEntry::is_gone) {
            self.places.pop_front();
            self.gone -= 1;
        }
    }
}

impl QueueEntry {
    const fn is_gone(&self) -> bool {
        self.slot == GONE
    }

    const fn ticket(&self) -> Ticket {
        Ticket { arrival: self.arrival, slot: self.slot }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn is_a_map_by_arrival(steps in prop::collection::vec((0_u64..200, 0_u32..4), 0..600)) {
            let (mut fifo, mut map, mut next) = (Fifo::default(), BTreeMap::new(), 0);
            for (arrival, what) in steps {
                // A newcomer; one that comes back, or comes for the first time; one that leaves; the first.
                let arrival = if what == 0 { next } else { arrival };
                next = next.max(arrival + 1);
                let ticket = Ticket { arrival, slot: 7 };
                if what == 3 {
                    fifo.remove_first();
                    map.pop_first();
                } else if what == 2 {
                    prop_assert_eq!(fifo.remove(ticket), map.remove(&arrival));
                } else {
                    fifo.insert(ticket, what);
                    map.insert(arrival, what);
                }
                prop_assert_eq!((fifo.len(), fifo.is_empty()), (map.len(), map.is_empty()));
                prop_assert_eq!(fifo.first().map(|it| { it.arrival }), map.keys().next().copied());
                prop_assert_eq!(fifo.is_last(ticket), map.keys().next_back().is_none_or(|last| *last < arrival));
                prop_assert!(fifo.iter().map(|(it, units)| (it.arrival, units)).eq(map.iter().map(|(a, u)| (*a, *u))));
            }
        }
    }
}
