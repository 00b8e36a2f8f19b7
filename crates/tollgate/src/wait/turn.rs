//! One waiter, from its arrival to its turn: what it does next, and what it sleeps for meanwhile.

use super::{
    gate::{Asked, At, Booked, Denied, WaitAt},
    order::{Few, Order},
    refused::{Ending, Reason, Refused},
    reservation::Reservation,
    room::{Changed, Comer, Leaving, NoPlace, Place, Ticket},
};
use crate::{
    decision::{Status, Verdict},
    time::{Time, hint, nanos},
};
use std::{task::Waker, time::Duration};

/// A waiter.
#[derive(Debug)]
pub(crate) struct Turn<'a, T: WaitAt> {
    at: At<'a, T>,
    pub(crate) order: Order,
    pub(crate) up_to: Option<Duration>,
    began: Time,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Fresh,
    /// In the line of one of its tolls.
    Standing {
        toll: usize,
        ticket: Ticket,
    },
    /// With a turn that lies ahead.
    Booked(Booked),
    Over,
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

impl<'a, T: WaitAt> Turn<'a, T> {
    pub(crate) const fn new(at: At<'a, T>, order: Order) -> Self {
        Self { at, order, up_to: None, began: Time::ZERO, stage: Stage::Fresh }
    }

    pub(crate) const fn gate(&self) -> &At<'a, T> {
        &self.at
    }

    /// How long it has been waiting.
    pub(crate) fn waited(&self) -> Duration {
        self.at.now() - self.began
    }

    /// Goes on as far as possible. `waker` is called when there may be more to do; time is the caller's to watch.
    pub(crate) fn advance(&mut self, waker: &Waker) -> Next<'a, T> {
        loop {
            let next = match &self.stage {
                Stage::Fresh => self.arrive(),
                Stage::Standing { toll, ticket } => self.stand(*toll, *ticket, waker),
                Stage::Booked(booked) => match booked.due {
                    due if due > self.at.now() => Some(Next::Sleep(Some(due))),
                    _ => self.take_booked().map(Next::Go),
                },
                Stage::Over => Some(Next::Sleep(None)),
            };
            if let Some(next) = next {
                return next;
            }
        }
    }

    /// The turn that was booked, to be used or given back.
    fn take_booked(&mut self) -> Option<Reservation<'a, T>> {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Booked(booked) => {
                let order = std::mem::take(&mut self.order);
                Some(Reservation::new(self.at.clone(), order, booked))
            }
            other => {
                self.stage = other;
                None
            }
        }
    }

    fn arrive(&mut self) -> Option<Next<'a, T>> {
        self.began = self.at.now();
        match self.at.room().held_up_at(Ticket::LATER, self.lines()) {
            Some(toll) => self.join(toll, None),
            None => self.ask(None),
        }
    }

    fn stand(&mut self, toll: usize, ticket: Ticket, waker: &Waker) -> Option<Next<'a, T>> {
        let line = self.order.tolls[toll].bucket.line();
        let now = self.at.now();
        let watches_until = match self.at.room().place(line, ticket, now, waker) {
            Place::First => return self.ask_if_nobody_came_before(toll, ticket),
            Place::Nowhere => return self.join(toll, Some(ticket)),
            Place::Second(watches_until) => watches_until,
            Place::Behind => None,
        };
        let until = self.stays_until(toll);
        if until.is_some_and(|until| now >= until) {
            let statuses = self.at.peek(&self.order);
            return Some(self.refuse_late(toll, None, statuses));
        }
        Some(Next::Sleep(earlier(watches_until, until)))
    }

    fn ask_if_nobody_came_before(&mut self, toll: usize, ticket: Ticket) -> Option<Next<'a, T>> {
        match self.at.room().held_up_at(ticket, self.lines()) {
            Some(other) => self.join(other, Some(ticket)),
            None => self.ask(Some((toll, ticket))),
        }
    }

    fn ask(&mut self, standing: Option<(usize, Ticket)>) -> Option<Next<'a, T>> {
        let now = self.at.now();
        let waited = now.nanos_since(self.began);
        let left = self.up_to.map_or(u64::MAX, |up_to| (self.began + up_to).nanos_since(now));
        match self.at.ask(&self.order, waited, left) {
            Asked::Granted(booked) => {
                self.step_out(Leaving::Served);
                self.stage = Stage::Booked(booked);
                None
            }
            Asked::Denied(denied) => match (denied.verdict(), standing) {
                (Verdict::Never, _) => Some(self.stop(Refused::never(&self.order, denied))),
                (_, Some((toll, ticket))) if toll == denied.by => self.sleep_in_front(ticket, now, denied),
                (_, standing) => self.join(denied.by, standing.map(|(_, ticket)| ticket)),
            },
            Asked::Unknown(error) => {
                self.step_out(Leaving::GaveUp);
                Some(Next::Stop(Ending::Store(error)))
            }
        }
    }

    /// The first in its line, and there is no room yet.
    fn sleep_in_front(&mut self, ticket: Ticket, now: Time, denied: Denied) -> Option<Next<'a, T>> {
        let toll = denied.by;
        let view = self.at.look(&self.order.tolls[toll].bucket);
        let units = self.order.tolls[toll].units();
        let start = view.as_ref().and_then(|view| view.start(units, now));
        if let (Some(by), Some(start)) = (self.by(toll), start)
            && start > by.max(now)
        {
            return Some(self.refuse_late(toll, Some(start), denied.statuses));
        }
        let until = self.stays_until(toll);
        if until.is_some_and(|until| now >= until) {
            return Some(self.refuse_late(toll, None, denied.statuses));
        }
        let wakes = match denied.verdict() {
            Verdict::Deny(nanos) => Some(now + Duration::from_nanos(nanos.max(1))),
            // Whoever leaves wakes it; a holder whose time is up does not.
            _ => view.and_then(|view| view.first_expiry()).map(|nanos| now + Duration::from_nanos(nanos)),
        };
        let asks_at = earlier(wakes, until);
        self.at.room().asks_again(self.order.tolls[toll].bucket.line(), ticket, asks_at);
        Some(Next::Sleep(asks_at))
    }

    /// Stands in the line of a toll, at the place of its arrival.
    fn join(&mut self, toll: usize, ticket: Option<Ticket>) -> Option<Next<'a, T>> {
        self.step_out(Leaving::GaveUp);
        let Some(wanted) = self.order.tolls.get(toll) else { return Some(Next::Sleep(None)) };
        let bucket = &wanted.bucket;
        let comer = Comer {
            ticket,
            units: wanted.units(),
            now: self.at.now(),
            by: self.by(toll),
            queue: self.at.turns(bucket).queue(),
        };
        match self.at.room().join(bucket.line(), &comer, || self.at.look(bucket)) {
            Ok((ticket, changed)) => {
                if changed == Changed::Yes {
                    self.at.line_forms(bucket);
                }
                self.stage = Stage::Standing { toll, ticket };
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
        let up_to = match (own, self.up_to) {
            (Some(own), Some(up_to)) => Some(own.min(up_to)),
            (own, up_to) => own.or(up_to),
        };
        up_to.map(|up_to| self.began + up_to)
    }

    /// When it gives up standing in line: a slot that nobody knows the time of is not waited for any longer than asked.
    fn stays_until(&self, toll: usize) -> Option<Time> {
        let is_slot = self.order.tolls.get(toll).is_some_and(|toll| self.at.turns(&toll.bucket).is_slots());
        self.by(toll).map(|by| if is_slot { by } else { by + LAG })
    }

    fn lines(&self) -> impl Iterator<Item = [u64; 2]> {
        self.order.tolls.iter().map(|toll| toll.bucket.line())
    }

    fn step_out(&mut self, leaving: Leaving) {
        let Stage::Standing { toll, ticket } = self.stage else { return };
        self.stage = Stage::Over;
        let Some(toll) = self.order.tolls.get(toll) else { return };
        if self.at.room().leave(toll.bucket.line(), ticket, self.at.now(), leaving) == Changed::Yes {
            self.at.line_ends(&toll.bucket);
        }
    }
}

fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    one.into_iter().chain(other).min()
}

/// Whoever stops waiting steps out of its line, and gives a turn back that was booked.
impl<T: WaitAt> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        self.step_out(Leaving::GaveUp);
        drop(self.take_booked());
    }
}
