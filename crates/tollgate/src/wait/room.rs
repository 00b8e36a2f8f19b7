//! The [lines](super::line) in front of buckets that cannot book turns: one lock for all of a limiter's, or of a store's.
//!
//! A line is ordered by arrival: whoever comes back from another line finds the place its arrival gives it. The first may
//! ask; the others sleep. Whoever steps out of the first place wakes the next, so a bucket that has room again is filled
//! by a chain of single wake-ups, never by a crowd.
//!
//! A waiter says how to be woken *before* it asks. Whatever happens at the bucket after that wakes it, so no wake is lost.
//! Wakers are called, and dropped, when the lock is no longer held.

use super::{
    foresee::{Goes, View},
    line::{After, Comer, Leaving, Line, NoPlace, Place, Ticket},
};
use crate::{
    sync::{AtomicU64, Mutex, Ordering, hold},
    time::Time,
};
use std::{
    collections::{HashMap, hash_map::Entry},
    task::Waker,
};

/// Names a bucket's line.
pub(crate) type LineId = [u64; 2];

/// All lines of a limiter or a store.
#[derive(Default)]
pub struct Room {
    lines: Mutex<Lines>,
    /// How many lines there are: while there is none, which is nearly always, nobody looks further.
    count: AtomicU64,
}

#[derive(Default)]
struct Lines {
    arrivals: u64,
    by_bucket: HashMap<LineId, Line>,
}

/// Somebody who stands in a line now.
pub(crate) struct Joined {
    pub(crate) ticket: Ticket,
    /// When it would go, if anybody knows.
    pub(crate) start: Option<Time>,
    pub(crate) changed: Changed,
}

/// Whether there is a line now where there was none, or the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Changed {
    Yes,
    No,
}

impl Room {
    /// Whether anybody stands anywhere.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Stands in a line, at the place of its arrival. `look` shows the bucket as it is.
    pub(crate) fn join(
        &self,
        line: LineId,
        comer: &Comer,
        look: impl FnOnce() -> Option<View>,
    ) -> Result<Joined, NoPlace> {
        let mut lines = hold(&self.lines);
        let ticket = comer.ticket.unwrap_or(Ticket(lines.arrivals + 1));
        let mut fresh = Line::default();
        let known = lines.by_bucket.get_mut(&line);
        let changed = if known.is_some() { Changed::No } else { Changed::Yes };
        let start = known.unwrap_or(&mut fresh).admit(ticket, comer, look)?;
        if changed == Changed::Yes {
            lines.by_bucket.insert(line, fresh);
            self.count.fetch_add(1, Ordering::AcqRel);
        }
        lines.arrivals = lines.arrivals.max(ticket.0);
        Ok(Joined { ticket, start, changed })
    }

    /// Steps out. Whoever is first then is woken.
    pub(crate) fn leave(&self, line: LineId, ticket: Ticket, now: Time, leaving: Leaving) -> Changed {
        self.at(line, |line| line.remove(ticket, now, leaving).unwrap_or_default())
    }

    /// Says that there may be room at a bucket: the first in its line asks again.
    pub(crate) fn nudge(&self, line: LineId, now: Time) {
        if self.any() {
            // Nobody leaves by being nudged.
            let _ = self.at(line, |line| line.nudge(now));
        }
    }

    /// Looks whether the first of a line is overdue, see [`line`](super::line).
    pub(crate) fn watch(&self, line: LineId, now: Time) -> Changed {
        if self.any() { self.at(line, |line| line.watch(now).1) } else { Changed::No }
    }

    /// [`nudge`](Self::nudge) at every bucket.
    pub(crate) fn nudge_all(&self, now: Time) {
        if self.any() {
            let after: Vec<After> =
                hold(&self.lines).by_bucket.values_mut().map(|line| line.nudge(now)).collect();
            after.into_iter().for_each(After::run);
        }
    }

    /// Where it stands in its line. `waker` is called when that may have changed, or when there may be room for the first.
    pub(crate) fn place(&self, line: LineId, ticket: Ticket, now: Time, waker: &Waker) -> Place {
        let waker = waker.clone();
        let mut lines = hold(&self.lines);
        let Some(line) = lines.by_bucket.get_mut(&line) else { return Place::Nowhere };
        let (place, after) = line.place(ticket, now, waker);
        drop(lines);
        after.run();
        place
    }

    /// The first was refused, and will ask again then, or when it is woken.
    pub(crate) fn asks_again(&self, line: LineId, ticket: Ticket, at: Option<Time>) {
        if let Some(line) = hold(&self.lines).by_bucket.get_mut(&line) {
            line.asks_again(ticket, at);
        }
    }

    /// The first of these, by its number, at whose line somebody stands who came before.
    pub(crate) fn held_up_at(
        &self,
        ticket: Ticket,
        mut lines: impl Iterator<Item = (usize, LineId)>,
    ) -> Option<usize> {
        if !self.any() {
            return None;
        }
        let held = hold(&self.lines);
        let held_up = |line: &LineId| held.by_bucket.get(line).is_some_and(|line| line.is_older_than(ticket));
        lines.find(|(_, line)| held_up(line)).map(|(number, _)| number)
    }

    /// When a charge that comes now could go, behind everybody who stands there: `None` where nobody does, `Some(None)` where
    /// nobody knows.
    pub(crate) fn goes_at(
        &self,
        line: LineId,
        units: u32,
        now: Time,
        look: impl FnOnce() -> Option<View>,
    ) -> Option<Option<Goes>> {
        if !self.any() {
            return None;
        }
        let mut lines = hold(&self.lines);
        let line = lines.by_bucket.get_mut(&line)?;
        Some(line.foresee(Ticket::LATER, units, now, look))
    }

    /// Changes a line, if there is one, and forgets it when nobody stands there any more.
    fn at(&self, line: LineId, change: impl FnOnce(&mut Line) -> After) -> Changed {
        let mut lines = hold(&self.lines);
        let Entry::Occupied(mut entry) = lines.by_bucket.entry(line) else { return Changed::No };
        let after = change(entry.get_mut());
        let changed = if entry.get().is_empty() {
            entry.remove();
            self.count.fetch_sub(1, Ordering::AcqRel);
            Changed::Yes
        } else {
            Changed::No
        };
        drop(lines);
        after.run();
        changed
    }
}
