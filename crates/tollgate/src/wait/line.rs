//! One line in front of a bucket.
//!
//! **Watching.** A first that does not ask although it could (a future that somebody keeps and no longer polls) would hold up
//! everybody. Whoever looks at the line and finds the first overdue warns it, that is wakes it once more, and puts it out
//! if it has not asked a little later. A line is looked at by its second, which is woken when it becomes that; by everybody
//! else when their own turn is overdue; and by whoever comes. One who was put out, and is polled after all, stands where its
//! arrival puts it.

use super::foresee::{Goes, View};
use crate::{step::turns::Turns, time::Time};
use std::{collections::BTreeMap, task::Waker, time::Duration};

/// The order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(pub(super) u64);

impl Ticket {
    /// Whoever has not come yet.
    pub(crate) const LATER: Self = Self(u64::MAX);
}

#[derive(Default)]
pub(super) struct Line {
    standing: BTreeMap<Ticket, Standing>,
    /// The bucket as it will be when everybody here has gone.
    forecast: Option<Forecast>,
    /// When the first is to ask, if anybody knows.
    asks_at: Option<Time>,
    /// When the first was found overdue.
    warned_at: Option<Time>,
}

pub(super) struct Standing {
    units: u32,
    waker: Option<Waker>,
}

struct Forecast {
    view: View,
    made: Time,
    /// Whether somebody gave up since: their units are out of it, but those behind them may go earlier than it says.
    gave_up: bool,
}

/// How much later than it could the first may ask before it is warned, and then before it is put out.
pub(super) const GRACE: Duration = Duration::from_millis(100);

/// A first that is overdue by this much is put out without a warning.
const LOST: Duration = Duration::from_secs(10);

/// How long a forecast is good enough to let somebody wait: those in front go a little later than they could.
const TRUSTED_FOR: Duration = Duration::from_millis(100);

/// Of this much time, for everybody in the line, one forecast may be made anew: it takes about a tenth of that.
const EFFORT: Duration = Duration::from_micros(10);

/// Who wants to stand in a line.
pub(crate) struct Comer {
    /// Its ticket, where it has stood in a line before.
    pub(crate) ticket: Option<Ticket>,
    pub(crate) units: u32,
    pub(crate) now: Time,
    /// The latest time at which its turn may come, if there is one.
    pub(crate) by: Option<Time>,
    /// How turns are had there. When a slot will be free nobody knows.
    pub(crate) turns: Turns,
    pub(crate) arrival: Arrival,
}

/// Whether somebody comes to a line for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    New,
    /// It stood here before, and keeps its place.
    Back,
}

/// Why somebody may not stand in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// So many do already, and no more may.
    QueueFull(u32),
    /// Its turn would come then, which is too late.
    Late(Time),
}

/// Where somebody stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It may ask.
    First,
    /// It has to look again then, if anybody knows.
    Behind(Option<Time>),
    /// It did not ask when it could, and was put out.
    Nowhere,
}

/// Whom to wake and what to drop, once no lock is held: either may come back here.
#[derive(Default)]
pub(super) struct After {
    wake: [Option<Waker>; 2],
    _gone: Option<Standing>,
    _waker: Option<Waker>,
}

impl After {
    pub(super) fn run(self) {
        self.wake.iter().flatten().for_each(Waker::wake_by_ref);
    }
}

impl Line {
    pub(super) fn is_empty(&self) -> bool {
        self.standing.is_empty()
    }

    /// Stands here; when it would go, if anybody knows.
    pub(super) fn admit(
        &mut self,
        ticket: Ticket,
        comer: &Comer,
        look: impl FnOnce() -> Option<View>,
    ) -> Result<Option<Time>, NoPlace> {
        if self.standing.contains_key(&ticket) {
            return Ok(None);
        }
        let queue = comer.turns.queue().filter(|_| comer.arrival == Arrival::New);
        if let Some(queue) = queue.filter(|queue| self.standing.len() >= *queue as usize) {
            return Err(NoPlace::QueueFull(queue));
        }
        let start = match comer.turns {
            Turns::Slots { .. } => None,
            _ => self.foresee(ticket, comer.units, comer.now, look).map(|goes| goes.start),
        };
        if let (Some(by), Some(start)) = (comer.by, start)
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
        let first_before = self.first();
        self.standing.insert(ticket, Standing { units: comer.units, waker: None });
        if self.first() != first_before {
            self.first_changed(comer.now);
        }
        Ok(start)
    }

    /// Steps out; `None` where it does not stand here.
    pub(super) fn remove(&mut self, ticket: Ticket, now: Time, leaving: Leaving) -> Option<After> {
        let stood_in_front = self.standing.keys().take(2).any(|it| *it == ticket);
        let was_first = self.first() == Some(ticket);
        let gone = self.standing.remove(&ticket)?;
        if leaving == Leaving::GaveUp
            && let Some(forecast) = &mut self.forecast
        {
            // As if the last to come had not.
            forecast.view.refund(gone.units);
            forecast.gave_up = true;
        }
        if was_first {
            self.first_changed(now);
        }
        let wake = if stood_in_front { self.wakers() } else { [None, None] };
        Some(After { wake, _gone: Some(gone), _waker: None })
    }

    /// Where it stands. `waker` is called when that may have changed, or when there may be room for the first.
    pub(super) fn place(&mut self, ticket: Ticket, now: Time, waker: Waker) -> (Place, After) {
        let Some(standing) = self.standing.get_mut(&ticket) else {
            return (Place::Nowhere, After::default());
        };
        let before = standing.waker.replace(waker);
        let (looks_again, mut after) =
            if self.first() == Some(ticket) { (None, After::default()) } else { self.watch(now) };
        after._waker = before;
        if self.first() == Some(ticket) {
            self.first_changed(now);
            return (Place::First, after);
        }
        let is_second = self.standing.keys().nth(1) == Some(&ticket);
        (Place::Behind(looks_again.filter(|_| is_second)), after)
    }

    /// Warns a first that is overdue, and puts it out if it has been warned. When to look again.
    pub(super) fn watch(&mut self, now: Time) -> (Option<Time>, After) {
        let Some(asks_at) = self.asks_at else { return (None, After::default()) };
        let patient_until = self.warned_at.unwrap_or(asks_at) + GRACE;
        if now < patient_until {
            return (Some(patient_until), After::default());
        }
        if self.warned_at.is_none() && now < asks_at + LOST {
            self.warned_at = Some(now);
            let [first, _] = self.wakers();
            return (Some(now + GRACE), After { wake: [first, None], ..After::default() });
        }
        let out = self.standing.pop_first().map(|(_, standing)| standing);
        self.forecast = None;
        self.first_changed(now);
        (Some(now + GRACE), After { wake: self.wakers(), _gone: out, _waker: None })
    }

    /// The first was refused, and will ask again then, or when it is woken.
    pub(super) fn asks_again(&mut self, ticket: Ticket, at: Option<Time>) {
        if self.first() == Some(ticket) {
            self.asks_at = at;
        }
    }

    /// There may be room: the first may ask now, and the second watches it.
    pub(super) fn nudge(&mut self, now: Time) -> After {
        self.forecast = None;
        // One that could have asked before is not given more time.
        self.asks_at = Some(self.asks_at.map_or(now, |at| at.min(now)));
        After { wake: self.wakers(), ..After::default() }
    }

    pub(super) fn is_older_than(&self, ticket: Ticket) -> bool {
        self.first().is_some_and(|first| first < ticket)
    }

    /// When a charge with this ticket could go, behind everybody here who came before.
    pub(super) fn foresee(
        &mut self,
        ticket: Ticket,
        units: u32,
        now: Time,
        look: impl FnOnce() -> Option<View>,
    ) -> Option<Goes> {
        if self.is_younger_here(ticket) {
            let mut view = look()?;
            for (_, standing) in self.standing.range(..ticket) {
                view.serve(standing.units, now)?;
            }
            return view.goes(units, now);
        }
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
        self.forecast.as_ref()?.view.goes(units, now)
    }

    fn first(&self) -> Option<Ticket> {
        self.standing.first_key_value().map(|(first, _)| *first)
    }

    fn first_changed(&mut self, now: Time) {
        self.asks_at = Some(now);
        self.warned_at = None;
    }

    /// Whether somebody stands here who came after.
    fn is_younger_here(&self, ticket: Ticket) -> bool {
        self.standing.last_key_value().is_some_and(|(last, _)| *last > ticket)
    }

    /// Those of the first and the second.
    fn wakers(&self) -> [Option<Waker>; 2] {
        let mut standing = self.standing.values();
        let mut waker = || standing.next().and_then(|standing| standing.waker.clone());
        [waker(), waker()]
    }
}

/// How somebody leaves a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It was its turn.
    Served,
    /// It gave up, or went to stand elsewhere.
    GaveUp,
}
