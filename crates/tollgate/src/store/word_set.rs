//! Sets of a few charges, each on a state of one word that has its slot already.
//!
//! The same protocol as [`set`](super::set): find every slot, lock in address order, check again, ask, commit all or none. But
//! it decides on words and allocates only the answer, which takes half the time (the set rows of the benchmark). Sets with a
//! key to enter, two charges on one bucket, a grant, a ban, a queue or another state are not decided here.

use super::{
    entry::Entry,
    memory::MemoryStore,
    table::{Print, Slot},
};
use crate::{
    charge::Charge,
    clock::Clock,
    decision::{SetStatus, Status},
    few::Few,
    slot::Version,
    step::narrow::Narrow,
    time::{Time, nanos},
};

/// More charges than people put into a set.
const MOST: usize = 8;

/// One charge and its slot.
#[derive(Clone, Copy)]
struct Spot<'a> {
    entry: &'a Entry,
    print: Print,
    slot: Slot<'a>,
    narrow: Narrow,
    version: Version,
    cost: u32,
    up_to: Option<u64>,
    /// The word under the lock.
    word: u64,
}

impl<C: Clock> MemoryStore<C> {
    /// Decides and charges a set. `None` is not an answer: take the long way.
    pub(super) fn try_word_set(&self, charges: &[Charge<'_>], now: Time) -> Option<SetStatus> {
        if charges.is_empty() || charges.len() > MOST || self.queues.any() {
            return None;
        }
        let mut spots = [None; MOST];
        for (spot, charge) in spots.iter_mut().zip(charges) {
            *spot = Some(self.spot(charge)?);
        }
        // In address order; `of` says whose turn it is.
        let mut order = [0; MOST];
        let order = &mut order[..charges.len()];
        order.iter_mut().enumerate().for_each(|(index, place)| *place = index);
        let address = |index: &usize| spots[*index].map_or(0, |spot: Spot<'_>| spot.slot.address());
        order.sort_unstable_by_key(address);
        if order.windows(2).any(|pair| address(&pair[0]) == address(&pair[1])) {
            return None;
        }
        for (locked, index) in order.iter().enumerate() {
            let Some(spot) = &mut spots[*index] else { continue };
            spot.word = spot.slot.word().lock();
            if !spot.slot.is_of(&spot.print) || !spot.entry.parameters.is_current(spot.version) {
                unlock(&spots, &order[..=locked]);
                return None;
            }
        }
        let statuses = self.decide_spots(&mut spots, charges.len(), now);
        unlock(&spots, order);
        Some(SetStatus::of(Few::Many(statuses?)))
    }

    fn spot<'a>(&self, charge: &Charge<'a>) -> Option<Spot<'a>> {
        let entry = self.known(charge.limit).ok()?;
        if entry.extras.any() {
            return None;
        }
        let (version, narrow) = entry.parameters.read();
        // After the numbers: a change of form leaves its heirs before it publishes.
        if entry.has_heirs() {
            return None;
        }
        let print = self.print(entry, charge.key);
        let slot = entry.tables.narrow().locate(&print)?;
        let up_to = charge.up_to.map(nanos);
        Some(Spot { entry, print, slot, narrow: narrow?, version, cost: charge.cost, up_to, word: 0 })
    }

    /// How every charge stands, and in each spot the word that follows; `None` where a line has outgrown its word.
    fn decide_spots(
        &self,
        spots: &mut [Option<Spot<'_>>; MOST],
        count: usize,
        now: Time,
    ) -> Option<Vec<Status>> {
        let mut asked = Vec::with_capacity(count);
        let mut next = [0; MOST];
        for (spot, next) in spots.iter().flatten().zip(&mut next) {
            let (status, word) =
                spot.narrow.ask(spot.word, spot.entry.never_back(now), spot.cost, spot.up_to).ok()?;
            *next = if spot.cost > 0 { word } else { spot.word };
            asked.push(status);
        }
        if !asked.iter().any(Status::is_deny) {
            spots.iter_mut().flatten().zip(next).for_each(|(spot, next)| spot.word = next);
            return Some(asked);
        }
        // The set was refused: what was not made shows what is left untouched.
        for (spot, status) in spots.iter().flatten().zip(&mut asked).filter(|(_, status)| !status.is_deny()) {
            let (idle, _) = spot.narrow.ask(spot.word, spot.entry.never_back(now), 0, None).ok()?;
            *status = Status { verdict: status.verdict, ..idle };
        }
        Some(asked)
    }
}

/// Gives the locks back and leaves the words.
fn unlock(spots: &[Option<Spot<'_>>; MOST], which: &[usize]) {
    for spot in which.iter().filter_map(|index| spots[*index].as_ref()) {
        spot.slot.word().unlock(spot.word);
    }
}
