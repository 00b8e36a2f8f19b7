//! The lines in front of buckets that cannot book turns.
//!
//! A line is ordered by arrival: whoever comes back from another line finds the place its arrival gives it. The first may
//! ask; the others sleep. Whoever steps out of the first place wakes the next, so a bucket that has room again is filled
//! by a chain of single wake-ups, never by a crowd.
//!
//! A waiter says how to be woken *before* it asks. Whatever happens at the bucket after that wakes it, so no wake is lost.
//!
//! A first that does not ask although it could (a future that somebody keeps and no longer polls) would hold up everybody.
//! So the second watches it: woken when it becomes second, it sleeps until a little after the first should have asked, and
//! then puts it out. Should it be polled after all, it stands where its arrival puts it.

use super::foresee::View;
use crate::{
    sync::{AtomicU64, Mutex, Ordering, hold},
    time::Time,
};
use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    task::Waker,
    time::Duration,
};

/// Names a bucket's line.
pub(crate) type LineId = [u64; 2];

/// The order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

impl Ticket {
    /// Whoever has not come yet.
    pub(crate) const LATER: Self = Self(u64::MAX);
}

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

#[derive(Default)]
struct Line {
    standing: BTreeMap<Ticket, Standing>,
    /// The bucket as it will be when everybody here has gone; never later than it really will.
    forecast: Option<Forecast>,
    /// When the first is to ask, if anybody knows.
    asks_at: Option<Time>,
}

struct Standing {
    units: u32,
    waker: Option<Waker>,
}

struct Forecast {
    view: View,
    made: Time,
    /// Whether somebody gave up since: their units are out of it, but those behind them may go earlier than it says.
    gave_up: bool,
}

/// How long a forecast is good enough to let somebody wait: those in front go a little later than they could.
const TRUSTED_FOR: Duration = Duration::from_millis(100);

/// What it costs to make a forecast anew, for everybody in the line, and how much of the time may go into that.
const EFFORT: Duration = Duration::from_micros(10);

/// How much later than it could the first may ask before it is put out.
const GRACE: Duration = Duration::from_millis(100);

/// Where somebody stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It may ask.
    First,
    /// It has to watch the first, until then if anybody knows.
    Second(Option<Time>),
    Behind,
    /// It did not ask when it could, and was put out.
    Nowhere,
}

/// Who wants to stand in a line.
pub(crate) struct Comer {
    /// Its ticket, where it has stood in a line before.
    pub(crate) ticket: Option<Ticket>,
    pub(crate) units: u32,
    pub(crate) now: Time,
    /// The latest time at which its turn may come, if there is one.
    pub(crate) by: Option<Time>,
    /// How many may stand there at most.
    pub(crate) queue: Option<u32>,
}

/// Why somebody may not stand in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// So many do already, and no more may.
    QueueFull(u32),
    /// Its turn would come then, which is too late.
    Late(Time),
}

/// When somebody could go, if anybody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Goes(Option<Time>);

impl Goes {
    pub(crate) const fn known(self) -> Option<Time> {
        self.0
    }
}

/// Whether there is a line now where there was none, or the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    Yes,
    No,
}

/// How somebody leaves a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It was its turn.
    Served,
    /// It gave up, or went to stand elsewhere.
    GaveUp,
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
    ) -> Result<(Ticket, Changed), NoPlace> {
        let mut lines = hold(&self.lines);
        let new_ticket = Ticket(lines.arrivals + 1);
        let ticket = comer.ticket.unwrap_or(new_ticket);
        let mut fresh = Line::default();
        let known = lines.by_bucket.get_mut(&line);
        let changed = if known.is_some() { Changed::No } else { Changed::Yes };
        known.unwrap_or(&mut fresh).admit(ticket, comer, look)?;
        if changed == Changed::Yes {
            lines.by_bucket.insert(line, fresh);
            self.count.fetch_add(1, Ordering::AcqRel);
        }
        lines.arrivals = lines.arrivals.max(ticket.0);
        Ok((ticket, changed))
    }

    /// Steps out. Whoever is first then is woken.
    pub(crate) fn leave(&self, line: LineId, ticket: Ticket, now: Time, leaving: Leaving) -> Changed {
        let mut lines = hold(&self.lines);
        let Entry::Occupied(mut entry) = lines.by_bucket.entry(line) else { return Changed::No };
        let line = entry.get_mut();
        let stood_in_front = line.stands_in_front(ticket);
        let Some(gone) = line.standing.remove(&ticket) else { return Changed::No };
        if leaving == Leaving::GaveUp {
            line.give_up(gone.units);
        }
        if line.standing.is_empty() {
            entry.remove();
            self.count.fetch_sub(1, Ordering::AcqRel);
            return Changed::Yes;
        }
        let woken = if stood_in_front { line.wake(now) } else { Woken::default() };
        drop(lines);
        woken.wake();
        Changed::No
    }

    /// Where it stands in its line. `waker` is called when that may have changed, or when there may be room for the first.
    pub(crate) fn place(&self, line: LineId, ticket: Ticket, now: Time, waker: &Waker) -> Place {
        let waker = waker.clone();
        let mut lines = hold(&self.lines);
        let Some(line) = lines.by_bucket.get_mut(&line) else { return Place::Nowhere };
        let Some(standing) = line.standing.get_mut(&ticket) else { return Place::Nowhere };
        standing.waker = Some(waker);
        let place = line.place(ticket);
        let Place::Second(Some(watches_until)) = place else {
            if place == Place::First {
                line.asks_at = Some(now);
            }
            return place;
        };
        if watches_until > now {
            return place;
        }
        let put_out = line.standing.pop_first();
        line.forecast = None;
        let woken = line.wake(now);
        drop(lines);
        drop(put_out);
        woken.wake();
        Place::First
    }

    /// The first was refused, and will ask again then, or when it is woken.
    pub(crate) fn asks_again(&self, line: LineId, ticket: Ticket, at: Option<Time>) {
        let mut lines = hold(&self.lines);
        if let Some(line) = lines.by_bucket.get_mut(&line)
            && line.place(ticket) == Place::First
        {
            line.asks_at = at;
        }
    }

    /// The first of these lines in which somebody stands who came before.
    pub(crate) fn held_up_at(
        &self,
        ticket: Ticket,
        mut lines: impl Iterator<Item = LineId>,
    ) -> Option<usize> {
        if !self.any() {
            return None;
        }
        let held = hold(&self.lines);
        lines.position(|line| held.by_bucket.get(&line).is_some_and(|line| line.is_older_than(ticket)))
    }

    /// When a charge that comes now could go, behind everybody who stands there. `None` where nobody does.
    pub(crate) fn goes_at(
        &self,
        line: LineId,
        units: u32,
        now: Time,
        look: impl FnOnce() -> Option<View>,
    ) -> Option<Goes> {
        if !self.any() {
            return None;
        }
        let mut lines = hold(&self.lines);
        let line = lines.by_bucket.get_mut(&line)?;
        Some(Goes(line.forecast(now, look).and_then(|view| view.pass_at(units, now))))
    }

    /// Says that there may be room at a bucket: the first in its line asks again.
    pub(crate) fn nudge(&self, line: LineId, now: Time) {
        if !self.any() {
            return;
        }
        let woken = hold(&self.lines).by_bucket.get_mut(&line).map(|line| line.disturb(now));
        woken.iter().for_each(Woken::wake);
    }

    /// The same at every bucket.
    pub(crate) fn nudge_all(&self, now: Time) {
        if !self.any() {
            return;
        }
        let woken: Vec<_> = hold(&self.lines).by_bucket.values_mut().map(|line| line.disturb(now)).collect();
        woken.iter().for_each(Woken::wake);
    }
}

impl Line {
    fn admit(
        &mut self,
        ticket: Ticket,
        comer: &Comer,
        look: impl FnOnce() -> Option<View>,
    ) -> Result<(), NoPlace> {
        let standing = self.standing.len();
        // Whoever has stood in a line before keeps its place.
        let queue = comer.queue.filter(|_| comer.ticket.is_none());
        if let Some(queue) = queue.filter(|queue| standing >= *queue as usize) {
            return Err(NoPlace::QueueFull(queue));
        }
        if let Some(by) = comer.by
            && let Some(start) = self.foresee(ticket, comer.units, comer.now, look)
            && start > by
        {
            return Err(NoPlace::Late(start));
        }
        if self.is_younger_here(ticket) {
            self.forecast = None;
        } else if let Some(forecast) = &mut self.forecast
            && forecast.view.serve(comer.units, comer.now).is_none()
        {
            self.forecast = None;
        }
        self.standing.insert(ticket, Standing { units: comer.units, waker: None });
        Ok(())
    }

    /// When a charge with this ticket could go, behind everybody here who came before.
    fn foresee(
        &mut self,
        ticket: Ticket,
        units: u32,
        now: Time,
        look: impl FnOnce() -> Option<View>,
    ) -> Option<Time> {
        if self.is_younger_here(ticket) {
            let mut view = look()?;
            for (_, standing) in self.standing.range(..ticket) {
                view.serve(standing.units, now)?;
            }
            return view.start(units, now);
        }
        self.forecast(now, look)?.start(units, now)
    }

    /// Takes units out of the forecast that will not be used: as if the last to come had not.
    fn give_up(&mut self, units: u32) {
        if let Some(forecast) = &mut self.forecast {
            forecast.view.refund(units);
            forecast.gave_up = true;
        }
    }

    /// The bucket as it will be when everybody here has gone.
    fn forecast(&mut self, now: Time, look: impl FnOnce() -> Option<View>) -> Option<&View> {
        // Anew now and then, and sooner where somebody gave up; but not so often that a flood of comers and goers would keep
        // everybody busy with it.
        let effort = EFFORT * u32::try_from(self.standing.len()).unwrap_or(u32::MAX);
        let trusted = |forecast: &Forecast| {
            let age = now - forecast.made;
            age < TRUSTED_FOR && (!forecast.gave_up || age < effort)
        };
        if !self.forecast.as_ref().is_some_and(trusted) {
            let mut view = look()?;
            for standing in self.standing.values() {
                view.serve(standing.units, now)?;
            }
            self.forecast = Some(Forecast { view, made: now, gave_up: false });
        }
        self.forecast.as_ref().map(|forecast| &forecast.view)
    }

    fn place(&self, ticket: Ticket) -> Place {
        let mut tickets = self.standing.keys();
        match (tickets.next(), tickets.next()) {
            (Some(first), _) if *first == ticket => Place::First,
            (_, Some(second)) if *second == ticket => Place::Second(self.asks_at.map(|at| at + GRACE)),
            _ => Place::Behind,
        }
    }

    fn stands_in_front(&self, ticket: Ticket) -> bool {
        self.standing.keys().take(2).any(|it| *it == ticket)
    }

    fn is_older_than(&self, ticket: Ticket) -> bool {
        self.standing.first_key_value().is_some_and(|(first, _)| *first < ticket)
    }

    /// Whether somebody stands here who came after.
    fn is_younger_here(&self, ticket: Ticket) -> bool {
        self.standing.last_key_value().is_some_and(|(last, _)| *last > ticket)
    }

    /// What was foreseen no longer holds; whom to wake.
    fn disturb(&mut self, now: Time) -> Woken {
        self.forecast = None;
        self.wake(now)
    }

    /// The first, who may ask now, and the second, who watches it.
    fn wake(&mut self, now: Time) -> Woken {
        self.asks_at = Some(now);
        let mut standing = self.standing.values();
        let mut waker = || standing.next().and_then(|standing| standing.waker.clone());
        Woken([waker(), waker()])
    }
}

/// Who is to be woken, once no lock is held.
#[derive(Default)]
struct Woken([Option<Waker>; 2]);

impl Woken {
    fn wake(&self) {
        self.0.iter().flatten().for_each(Waker::wake_by_ref);
    }
}
