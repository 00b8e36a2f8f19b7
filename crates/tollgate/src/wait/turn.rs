//! One waiter, from its arrival to its turn: what it does next, and what it sleeps for meanwhile.

use super::{
    gate::{self, Asked, At, Booked, Denied, WaitAt},
    line::{Arrival, Comer, GRACE, Leaving, NoPlace, Place, Ticket},
    order::Order,
    refused::{Ending, Reason, Refused},
    reservation::Reservation,
    room::Changed,
};
use crate::{
    decision::{DecidedBy, Status, Verdict},
    few::Few,
    step::turns::Turns,
    time::{Time, hint, nanos},
};
use std::{task::Waker, time::Duration};

/// A waiter.
#[derive(Debug)]
pub(crate) struct Turn<'a, T: WaitAt> {
    at: At<'a, T>,
    pub(crate) order: Order,
    pub(crate) up_to: Option<Duration>,
    began: Option<Time>,
    /// How often its slots ran out before its turn came.
    restarts: u32,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Fresh,
    Standing(Stand),
    /// With a turn that lies ahead. Slots that it holds already are renewed then.
    Booked(Booked, Option<Time>),
    Over,
}

/// Where it stands: in the line of one of its tolls, or of several where it has been sent to and fro.
#[derive(Clone, Debug)]
struct Stand {
    tolls: Few<usize>,
    ticket: Ticket,
    /// How often it went from one line to another.
    moves: u32,
    /// When to look at the line although nobody woke it.
    looks_at: Option<Time>,
}

/// What a waiter does next.
pub(crate) enum Next<'a, T: WaitAt> {
    /// It is its turn.
    Go(Reservation<'a, T>),
    Stop(Ending),
    /// Nothing until then, or until it is woken.
    Sleep(Option<Time>),
}

/// A waiter who was told that its turn comes in time is not refused because a timer, or somebody in front, was late by less
/// than this.
const LAG: Duration = Duration::from_millis(5);

/// After so many moves a set no longer gives up its place in one line when it goes to stand in another: or else limits that
/// have room at different times could send it to and fro for ever.
const MOVES: u32 = 4;

/// How often it begins again when its slots run out in the wait for another limit.
const RESTARTS: u32 = 3;

impl<'a, T: WaitAt> Turn<'a, T> {
    pub(crate) const fn new(at: At<'a, T>, order: Order) -> Self {
        Self { at, order, up_to: None, began: None, restarts: 0, stage: Stage::Fresh }
    }

    pub(crate) const fn gate(&self) -> &At<'a, T> {
        &self.at
    }

    /// How long it has been waiting.
    pub(crate) fn waited(&self) -> Duration {
        self.began.map_or(Duration::ZERO, |began| self.at.now() - began)
    }

    /// Says that nothing more is to come.
    pub(crate) fn end(&mut self) {
        self.stage = Stage::Over;
    }

    /// Goes on as far as possible. `waker` is called when there may be more to do; time is the caller's to watch.
    pub(crate) fn advance(&mut self, waker: &Waker) -> Next<'a, T> {
        loop {
            let next = match &self.stage {
                Stage::Fresh => self.arrive(),
                Stage::Standing(stand) => {
                    let stand = stand.clone();
                    self.stand(stand, waker)
                }
                Stage::Booked(..) => self.await_turn(),
                Stage::Over => Some(Next::Sleep(None)),
            };
            if let Some(next) = next {
                return next;
            }
        }
    }

    fn arrive(&mut self) -> Option<Next<'a, T>> {
        let now = self.at.now();
        self.began.get_or_insert(now);
        gate::watch(&*self.at, &self.order, now);
        match self.at.room().held_up_at(Ticket::LATER, self.order.lines()) {
            Some(toll) => self.go_to(toll, None),
            None => self.ask(None),
        }
    }

    fn stand(&mut self, mut stand: Stand, waker: &Waker) -> Option<Next<'a, T>> {
        let now = self.at.now();
        let (mut is_first, mut looks_again) = (true, None);
        for toll in stand.tolls.iter().copied() {
            match self.at.room().place(self.line(toll), stand.ticket, now, waker) {
                Place::First => {}
                Place::Nowhere => return self.join(toll, Some(stand.clone()), Arrival::Back),
                Place::Behind(at) => (is_first, looks_again) = (false, earlier(looks_again, at)),
            }
        }
        if is_first {
            return match self.at.room().held_up_at(stand.ticket, self.order.lines()) {
                Some(other) => self.go_to(other, Some(stand)),
                None => self.ask(Some(stand)),
            };
        }
        let first_to_end =
            stand.tolls.iter().filter_map(|toll| Some((self.stays_until(*toll)?, *toll))).min();
        let (until, toll) = first_to_end.unzip();
        if let Some(toll) = toll.filter(|_| until.is_some_and(|until| now >= until)) {
            let statuses = self.at.peek(&self.order);
            return Some(self.refuse_late(toll, None, statuses));
        }
        if stand.looks_at.is_some_and(|at| now >= at) {
            // Later than foreseen, and nobody to blame: ever more rarely.
            stand.looks_at = Some(now + GRACE.max(self.waited() / 4));
            self.stage = Stage::Standing(stand.clone());
        }
        Some(Next::Sleep(earlier(earlier(looks_again, stand.looks_at), until)))
    }

    fn ask(&mut self, stand: Option<Stand>) -> Option<Next<'a, T>> {
        let now = self.at.now();
        let began = self.began.unwrap_or(now);
        let left = self.up_to.map_or(u64::MAX, |up_to| (began + up_to).nanos_since(now));
        match self.at.ask(&self.order, now.nanos_since(began), left) {
            Asked::Granted(booked) => {
                self.step_out(Leaving::Served);
                // One that goes at once has its slots from now.
                let now = self.at.now();
                let renews_at = (booked.due > now)
                    .then(|| gate::renews_at(&*self.at, &self.order.tolls, &booked, now))
                    .flatten();
                self.stage = Stage::Booked(booked, renews_at);
                None
            }
            Asked::Denied(denied) if denied.verdict() == Verdict::Never => {
                Some(self.stop(Refused::never(&self.order, denied)))
            }
            Asked::Denied(denied) => match stand {
                Some(stand) if stand.tolls.contains(&denied.by) => self.sleep_in_front(&stand, now, denied),
                stand => self.go_to(denied.by, stand),
            },
            Asked::Unknown(error) => {
                self.step_out(Leaving::GaveUp);
                self.stage = Stage::Over;
                Some(Next::Stop(Ending::Store(error)))
            }
        }
    }

    /// The first in its line, and there is no room yet.
    fn sleep_in_front(&mut self, stand: &Stand, now: Time, denied: Denied) -> Option<Next<'a, T>> {
        let toll = denied.by;
        let bucket = &self.order.tolls[toll].bucket;
        let is_full = denied.statuses.get(toll).is_some_and(|it| it.decided_by() == DecidedBy::FullTable);
        let hint = match denied.verdict() {
            Verdict::Deny(nanos) => Some(now + Duration::from_nanos(nanos.max(1))),
            // Whoever leaves wakes it; a holder whose time is up does not.
            _ => self.at.first_expiry(bucket).map(|nanos| now + Duration::from_nanos(nanos)),
        };
        let start = match self.at.turns(bucket) {
            Turns::Slots { .. } => None,
            _ if is_full => hint,
            _ => {
                let units = self.order.tolls[toll].units();
                self.at.look(bucket).and_then(|view| view.goes(units, now)).map(|goes| goes.start)
            }
        };
        if let (Some(by), Some(start)) = (self.by(toll), start)
            && start > by.max(now)
        {
            return Some(self.refuse_late(toll, Some(start), denied.statuses));
        }
        let until = self.stays_until(toll);
        if until.is_some_and(|until| now >= until) {
            return Some(self.refuse_late(toll, None, denied.statuses));
        }
        // A table that is full may have a place before the hint, and nobody would say so.
        let hint = if is_full { earlier(hint, Some(now + GRACE)) } else { hint };
        let asks_at = earlier(hint, until);
        for toll in stand.tolls.iter().copied() {
            self.at.room().asks_again(self.line(toll), stand.ticket, asks_at);
        }
        Some(Next::Sleep(asks_at))
    }

    /// From wherever it stands to the line of another toll.
    fn go_to(&mut self, toll: usize, from: Option<Stand>) -> Option<Next<'a, T>> {
        let from = from.map(|from| {
            if from.moves == MOVES {
                return from;
            }
            self.step_out(Leaving::GaveUp);
            Stand { tolls: Few::Many(Vec::new()), moves: from.moves + 1, ..from }
        });
        self.join(toll, from, Arrival::New)
    }

    /// Stands in the line of a toll as well, at the place of its arrival.
    fn join(&mut self, toll: usize, from: Option<Stand>, arrival: Arrival) -> Option<Next<'a, T>> {
        let Some(wanted) = self.order.tolls.get(toll) else { return Some(Next::Sleep(None)) };
        let bucket = &wanted.bucket;
        let (now, turns) = (self.at.now(), self.at.turns(bucket));
        let comer = Comer {
            ticket: from.as_ref().map(|from| from.ticket),
            units: wanted.units(),
            now,
            by: self.by(toll),
            turns,
            arrival,
        };
        match self.at.room().join(bucket.line(), &comer, || self.at.look(bucket)) {
            Ok(joined) => {
                if joined.changed == Changed::Yes {
                    self.at.line_forms(bucket);
                }
                let looks_at = match turns {
                    Turns::Slots { max_hold, .. } => Some(now + max_hold),
                    _ => joined.start.map(|start| start + 2 * GRACE),
                };
                let others = from.iter().flat_map(|from| from.tolls.iter().copied());
                let stand = Stand {
                    tolls: others.filter(|other| *other != toll).chain([toll]).collect(),
                    ticket: joined.ticket,
                    moves: from.as_ref().map_or(0, |from| from.moves),
                    looks_at,
                };
                self.stage = Stage::Standing(stand);
                None
            }
            Err(NoPlace::QueueFull(queue)) => {
                let statuses = self.at.peek(&self.order);
                Some(self.refuse(Reason::QueueFull { queue }, toll, statuses))
            }
            Err(NoPlace::Late(start)) => {
                let statuses = self.at.peek(&self.order);
                Some(self.refuse_late(toll, Some(start), statuses))
            }
        }
    }

    /// With a turn that lies ahead, or has come.
    fn await_turn(&mut self) -> Option<Next<'a, T>> {
        let Stage::Booked(booked, renews_at) = &mut self.stage else { return None };
        let now = self.at.now();
        let is_due = booked.due <= now;
        if let Some(at) = *renews_at
            && (is_due || at <= now)
        {
            if !gate::renew(&*self.at, &self.order.tolls, booked) {
                // Its slots ran out while nobody polled it: back to the beginning, a few times.
                gate::give_back(&*self.at, &self.order.tolls, booked);
                self.stage = Stage::Fresh;
                self.restarts += 1;
                let ends = (self.restarts > RESTARTS).then(|| self.at.peek(&self.order));
                return ends.map(|statuses| self.refuse_late(0, None, statuses));
            }
            *renews_at = gate::renews_at(&*self.at, &self.order.tolls, booked, now);
        }
        if is_due {
            return self.take_booked().map(Next::Go);
        }
        Some(Next::Sleep(earlier(Some(booked.due), *renews_at)))
    }

    /// The turn that was booked, to be used or given back.
    fn take_booked(&mut self) -> Option<Reservation<'a, T>> {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Booked(booked, _) => {
                let order = std::mem::take(&mut self.order);
                Some(Reservation::new(self.at.clone(), order, booked))
            }
            other => {
                self.stage = other;
                None
            }
        }
    }

    fn refuse_late(&mut self, toll: usize, start: Option<Time>, statuses: Few<Status>) -> Next<'a, T> {
        // A wait as long as this one is long enough when it begins later by what was missing.
        let missing = start.zip(self.by(toll)).map(|(start, by)| hint(nanos(start - by)));
        let reason = match missing {
            Some(retry_after) => Reason::Late { retry_after },
            None => Reason::TimedOut { waited: self.waited() },
        };
        self.refuse(reason, toll, statuses)
    }

    fn refuse(&mut self, reason: Reason, toll: usize, statuses: Few<Status>) -> Next<'a, T> {
        self.stop(Refused::new(reason, &self.order, toll, statuses))
    }

    fn stop(&mut self, refused: Refused) -> Next<'a, T> {
        self.step_out(Leaving::GaveUp);
        self.stage = Stage::Over;
        Next::Stop(Ending::Refused(refused))
    }

    /// The latest time at which the turn may come.
    fn by(&self, toll: usize) -> Option<Time> {
        let own = self.order.tolls.get(toll).and_then(|toll| toll.up_to).map(Duration::from_nanos);
        let up_to = own.into_iter().chain(self.up_to).min();
        up_to.zip(self.began).map(|(up_to, began)| began + up_to)
    }

    /// When it gives up standing in line: a slot that nobody knows the time of is not waited for any longer than asked.
    fn stays_until(&self, toll: usize) -> Option<Time> {
        let is_slot =
            |toll: usize| self.order.tolls.get(toll).is_some_and(|it| self.at.turns(&it.bucket).is_slots());
        self.by(toll).map(|by| if is_slot(toll) { by } else { by + LAG })
    }

    fn line(&self, toll: usize) -> [u64; 2] {
        self.order.tolls[toll].bucket.line()
    }

    fn step_out(&mut self, leaving: Leaving) {
        if !matches!(self.stage, Stage::Standing(_)) {
            return;
        }
        let Stage::Standing(stand) = std::mem::replace(&mut self.stage, Stage::Over) else { return };
        for toll in stand.tolls.iter().filter_map(|toll| self.order.tolls.get(*toll)) {
            let left = self.at.room().leave(toll.bucket.line(), stand.ticket, self.at.now(), leaving);
            if left == Changed::Yes {
                self.at.line_ends(&toll.bucket);
            }
        }
    }
}

fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    one.into_iter().chain(other).min()
}

/// Whoever stops waiting steps out of its line, and gives a turn back that was booked.
impl<T: WaitAt> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        // Nearly always there is nothing to give back, and a stage is large to move.
        match self.stage {
            Stage::Fresh | Stage::Over => {}
            Stage::Standing(_) => self.step_out(Leaving::GaveUp),
            Stage::Booked(..) => drop(self.take_booked()),
        }
    }
}
