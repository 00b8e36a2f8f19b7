//! Where a memory store keeps its cells: a bounded table of its own, apart from the limits'.
//!
//! A cell is 32 bytes: 64 bits of the key's fingerprint (a bucket of the table is chosen by others), and until when it owes. The
//! table is made for `max_keys` and half as many again, so a key takes 48 bytes; its memory is asked for when the first cell is
//! written, as zero pages, and used as keys come. It is cut into parts with a lock each. A key has two buckets of eight; it
//! takes a place that owes nothing any more, so nothing is swept and nobody waits for a sweep; else, as the store is told,
//! that of the cell whose debt ends first, or none. With `max_keys` live keys one more in a hundred million meets two full
//! buckets while there is room elsewhere.

use super::{
    step::{Cell, step},
    throttle::{Throttle, Throttled},
};
use crate::{
    decision::{DecidedBy, Decision, Retry},
    store::WhenFull,
    sync::hold_plain as hold,
    time::hint,
};
use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// Cells in a bucket.
const ABREAST: usize = 8;
/// Parts of a table that is large enough for so many.
const MOST_PARTS: usize = 64;
/// Keys below which a table is not cut further.
const FEW: usize = 4_096;

/// Fingerprint, due, part, of.
type Place = [u64; 4];

pub(crate) struct CellTable {
    parts: Box<[Mutex<Vec<Place>>]>,
    /// Buckets in a part.
    buckets: usize,
}

/// What a table does about a key that finds no place, and who counts it.
pub(crate) struct Landlord<'a> {
    pub(crate) when_full: WhenFull,
    pub(crate) evicted: &'a AtomicU64,
    pub(crate) refused: &'a AtomicU64,
}

impl CellTable {
    pub(crate) fn new(max_keys: usize) -> Self {
        let parts = (max_keys / FEW).clamp(1, MOST_PARTS).next_power_of_two();
        let places = max_keys.saturating_add(max_keys / 2).max(1);
        let buckets = places.div_ceil(parts * ABREAST);
        Self { parts: (0..parts).map(|_| Mutex::default()).collect(), buckets }
    }

    /// Memory that the table may come to, once it has been asked for.
    pub(crate) fn bytes(&self) -> usize {
        let made = self.parts.iter().filter(|part| !hold(part).is_empty()).count();
        made * self.buckets * ABREAST * size_of::<Place>()
    }

    pub(crate) fn throttle(
        &self,
        print: [u64; 2],
        now: u64,
        asked: &Throttle,
        landlord: &Landlord<'_>,
    ) -> Throttled {
        let mut part = self.part(print);
        let found = self.find(&part, print);
        let cell = found.map(|at| cell(&part[at])).unwrap_or_default();
        let (told, next) = step(cell, now, asked);
        let Some(next) = next else { return told };
        let place = match found {
            Some(at) => at,
            None => match self.place(&mut part, print, now, landlord) {
                Ok(at) => at,
                Err(free_in) => return full(asked, free_in),
            },
        };
        part[place] = [fingerprint(print), next.due, next.part, next.of];
        told
    }

    /// Forgets what a key owes. Whether it owed anything.
    pub(crate) fn forget(&self, print: [u64; 2], now: u64) -> bool {
        let mut part = self.part(print);
        let Some(at) = self.find(&part, print) else { return false };
        let owed = is_live(&part[at], now);
        part[at] = Place::default();
        owed
    }

    /// Until when a key owes, in nanoseconds, rounded up; `None` where it does not.
    pub(crate) fn due(&self, print: [u64; 2], now: u64) -> Option<u64> {
        let part = self.part(print);
        let place = &part[self.find(&part, print)?];
        is_live(place, now).then_some(place[1] + u64::from(place[2] > 0))
    }

    fn part(&self, print: [u64; 2]) -> MutexGuard<'_, Vec<Place>> {
        hold(&self.parts[print[1] as usize & (self.parts.len() - 1)])
    }

    /// The first places of the two buckets that a key may be in: two different ones where there are two, since a key with a
    /// single choice would now and then find it full in a table with room.
    const fn starts(&self, print: [u64; 2]) -> [usize; 2] {
        let one = (print[1] >> 8) as u32 as usize % self.buckets;
        let apart = match self.buckets {
            1 => 0,
            buckets => 1 + (print[1] >> 32) as usize % (buckets - 1),
        };
        [one * ABREAST, (one + apart) % self.buckets * ABREAST]
    }

    fn find(&self, part: &[Place], print: [u64; 2]) -> Option<usize> {
        if part.is_empty() {
            return None;
        }
        let wanted = fingerprint(print);
        self.starts(print).into_iter().find_map(|start| {
            part[start..start + ABREAST].iter().position(|place| place[0] == wanted).map(|at| start + at)
        })
    }

    /// A place for a key that has none; otherwise in how many nanoseconds there may be one.
    fn place(
        &self,
        part: &mut Vec<Place>,
        print: [u64; 2],
        now: u64,
        landlord: &Landlord<'_>,
    ) -> Result<usize, u64> {
        if part.is_empty() {
            *part = vec![Place::default(); self.buckets * ABREAST];
        }
        // The emptier bucket of the two, so that they fill evenly.
        let [one, other] = self.starts(print);
        let live = |start: usize| part[start..start + ABREAST].iter().filter(|it| is_live(it, now)).count();
        let (first, second) = if live(other) < live(one) { (other, one) } else { (one, other) };
        let places = (first..first + ABREAST).chain(second..second + ABREAST);
        // Whatever is not owed any more is as good as empty, and comes before whatever is.
        let Some(at) = places.min_by_key(|at| part[*at][1].max(now)) else { return Err(0) };
        if !is_live(&part[at], now) {
            return Ok(at);
        }
        match landlord.when_full {
            WhenFull::Evict => {
                landlord.evicted.fetch_add(1, Relaxed);
                Ok(at)
            }
            WhenFull::Deny => {
                landlord.refused.fetch_add(1, Relaxed);
                Err(part[at][1] - now)
            }
        }
    }
}

fn full(asked: &Throttle, free_in: u64) -> Throttled {
    Throttled {
        decision: Decision::Deny(Retry::After(hint(free_in.saturating_add(1)))),
        ..step(Cell::default(), 0, &asked.quantity(0)).0.said_by(DecidedBy::FullTable)
    }
}

const fn cell(place: &Place) -> Cell {
    Cell { due: place[1], part: place[2], of: place[3] }
}

const fn is_live(place: &Place, now: u64) -> bool {
    place[1] > now || (place[1] == now && place[2] > 0)
}

/// Never that of an empty place.
fn fingerprint(print: [u64; 2]) -> u64 {
    print[0].max(1)
}
