//! All waiters of a limiter or a store, each in a slot that its ticket names. Slots of those who have left are used again.

use super::waiter::Waiter;
use std::ops::Index;

/// Names a waiter. Ordered by arrival, which is counted over all queues of a limiter or a store. Packed, since futures keep
/// it.
#[repr(Rust, packed(4))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket {
    pub(super) arrival: u64,
    pub(super) slot: u32,
}

/// Room for so many is kept when nobody waits.
const KEPT: usize = 64;

#[derive(Default)]
pub(super) struct Waiters {
    arrivals: u64,
    slots: Vec<Option<(u64, Waiter)>>,
    free: Vec<u32>,
}

impl Waiters {
    /// A ticket for the next one that is [inserted](Self::insert).
    pub(super) fn next_ticket(&mut self) -> Ticket {
        self.arrivals += 1;
        let slot =
            self.free.last().copied().unwrap_or_else(|| u32::try_from(self.slots.len()).unwrap_or(u32::MAX));
        Ticket { arrival: self.arrivals, slot }
    }

    /// Adds a waiter under a ticket that is the last one made, or under the one that was removed last.
    pub(super) fn insert(&mut self, ticket: Ticket, waiter: Waiter) {
        let kept = Some((ticket.arrival, waiter));
        if self.free.last() == Some(&{ ticket.slot }) {
            self.free.pop();
        }
        match self.slots.get_mut(ticket.slot as usize) {
            Some(slot) => *slot = kept,
            None => self.slots.push(kept),
        }
    }

    pub(super) fn remove(&mut self, ticket: &Ticket) -> Option<Waiter> {
        let slot = self.slots.get_mut(ticket.slot as usize)?;
        let (_, waiter) = slot.take_if(|(arrival, _)| *arrival == ticket.arrival)?;
        self.free.push(ticket.slot);
        Some(waiter)
    }

    /// Removes one where it is, which moves nothing.
    pub(super) fn discard(&mut self, ticket: &Ticket) {
        let slot = self.slots.get_mut(ticket.slot as usize);
        if let Some(slot) = slot.filter(|it| it.as_ref().is_some_and(|it| it.0 == ticket.arrival)) {
            *slot = None;
            self.free.push(ticket.slot);
        }
    }

    /// Gives back the memory of a crowd that has left.
    pub(super) fn shrink(&mut self) -> ShrinkOutcome {
        if self.free.len() < self.slots.len() || self.slots.capacity() <= KEPT {
            return ShrinkOutcome::No;
        }
        (self.slots, self.free) = (Vec::new(), Vec::new());
        ShrinkOutcome::Yes
    }

    pub(super) fn get(&self, ticket: &Ticket) -> Option<&Waiter> {
        let (arrival, waiter) = self.slots.get(ticket.slot as usize)?.as_ref()?;
        (*arrival == ticket.arrival).then_some(waiter)
    }

    pub(super) fn get_mut(&mut self, ticket: &Ticket) -> Option<&mut Waiter> {
        let (arrival, waiter) = self.slots.get_mut(ticket.slot as usize)?.as_mut()?;
        (*arrival == ticket.arrival).then_some(waiter)
    }
}

/// Whether memory was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShrinkOutcome {
    Yes,
    No,
}

impl Index<&Ticket> for Waiters {
    type Output = Waiter;

    fn index(&self, ticket: &Ticket) -> &Waiter {
        self.get(ticket).expect("a waiter that is here")
    }
}

#[cfg(test)]
mod tests {
    use super::Waiter;
    use crate::{Limiter, MemoryStore, wait::Wait};

    /// Ten thousand waiters cost memory only, so there should be little of it.
    #[test]
    fn a_waiter_is_small() {
        assert!(size_of::<Option<(u64, Waiter)>>() <= 144);
        // With a tokio task around it: two blocks of 128 bytes, and not three.
        assert!(size_of::<Wait<'_, Limiter>>() <= 112 && size_of::<Wait<'_, MemoryStore>>() <= 112);
    }
}
