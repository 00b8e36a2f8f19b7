//! One queue in front of a bucket: who waits, in the order of arrival, and when the last of them is expected to go.
//!
//! The forecast is the bucket's state as it will be when everybody in the queue has gone. It is exact while nobody gives up,
//! and kept up to date by every arrival at the end. It decides who is told on arrival that waiting would be in vain, and is
//! made anew for that where somebody gave up; as a hint for a timer it may be late.
//!
//! When a waiter has given up, the forecast is made again for the next arrival with a deadline; in queues of more than 256
//! waiters at most once in 10 us for each waiter, so that a flood of arrivals that give up costs no more. When numbers are
//! lowered, a ban arrives or a debt is made, the queue is judged again, and waiters that can no longer be released in time
//! are denied.

use super::{
    QueueId,
    agenda::Agenda,
    fifo::Fifo,
    waiters::{Ticket, Waiters},
};
use crate::{
    step::turns::Turns,
    time::Time,
    wait::{
        forecast::{Goes, View},
        order::Order,
    },
};
use std::time::Duration;

/// Up to so many waiters a forecast is exact for every arrival. In longer queues one is made anew at most once in this much
/// time for every waiter, so that a flood of those who come and give up does not keep a processor busy.
pub(super) const EXACT_UP_TO: usize = 256;
const PAUSE: Duration = Duration::from_micros(10);

pub(super) struct WaitQueue {
    /// How turns are had at the bucket, as of the first waiter or the last change.
    pub(super) kind: Turns,
    waiting: Fifo,
    /// When its head is looked at again, which is in the agenda.
    pub(super) looks_at: Option<Time>,
    forecast: Option<Forecast>,
    /// Whether some may go earlier than was expected when they came.
    has_moved_up: bool,
}

struct Forecast {
    view: View,
    made: Time,
    /// Whether somebody gave up since, or units came back: some may go earlier than it says.
    gave_up: bool,
}

impl WaitQueue {
    pub(super) fn new(kind: Turns) -> Self {
        Self { kind, waiting: Fifo::default(), looks_at: None, forecast: None, has_moved_up: false }
    }

    /// Has the head decided at that time, and not at another. `id` is the queue's own.
    pub(super) fn schedule(&mut self, id: QueueId, at: Time, agenda: &mut Agenda) {
        if let Some(before) = self.looks_at.replace(at) {
            agenda.remove((before, id));
        }
        agenda.insert((at, id));
    }

    pub(super) fn head(&self) -> Option<Ticket> {
        self.waiting.first()
    }

    /// Everybody, in the order of arrival.
    pub(super) fn tickets(&self) -> impl Iterator<Item = Ticket> {
        self.waiting.iter().map(|(ticket, _)| ticket)
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a waiter at the place of its arrival. When its turn is expected, as far as that is known.
    pub(super) fn insert(&mut self, ticket: Ticket, units: u32, now: Time) -> Option<Time> {
        let is_last = self.waiting.is_last(ticket);
        self.waiting.insert(ticket, units);
        let expected = self.forecast.as_mut().filter(|_| is_last).and_then(|it| it.view.serve(units, now));
        if expected.is_none() {
            self.forecast = None;
        }
        expected
    }

    /// When the head goes, where that is as it was expected on its arrival: nobody gave up, and its timer is set. Then there
    /// is nothing to ask before. (A set asks, since it may have to go to another queue.)
    pub(super) fn expected_release(&self, waiters: &Waiters) -> Option<Time> {
        if self.has_moved_up || self.kind != Turns::Booked {
            return None;
        }
        let head = waiters.get(&self.head()?).filter(|head| matches!(head.order, Order::One(_)))?;
        head.expected.filter(|at| head.alarm.is_set_by(*at))
    }

    /// Removes the head, which was released at that time, and has the next one decided. Whether that is when it was expected.
    pub(super) fn remove_released(
        &mut self,
        id: QueueId,
        at: Time,
        waiters: &Waiters,
        agenda: &mut Agenda,
    ) -> bool {
        self.waiting.remove_first();
        let next = self.expected_release(waiters);
        self.schedule(id, next.map_or(at, |next| next.max(at)), agenda);
        next.is_some()
    }

    /// Removes a waiter that gave up, or went to another queue.
    pub(super) fn remove_unserved(&mut self, ticket: Ticket) {
        let Some(units) = self.waiting.remove(ticket) else { return };
        self.has_moved_up = true;
        if let Some(forecast) = &mut self.forecast {
            forecast.view.refund(units);
            forecast.gave_up = true;
        }
    }

    /// Whether somebody is in it, and the forecast is exact.
    pub(super) fn is_foreseen(&self) -> bool {
        let is_exact = self.forecast.as_ref().is_some_and(|it| !it.gave_up);
        is_exact && !self.is_empty() && !self.has_moved_up && self.kind == Turns::Booked
    }

    /// Whether some may go earlier than was expected when they came.
    pub(super) fn has_moved_up(&self) -> bool {
        self.has_moved_up
    }

    /// Nobody is in it: what was expected is of those who have left.
    pub(super) fn begin(&mut self, kind: Turns) {
        self.kind = kind;
        self.forecast = None;
        self.has_moved_up = false;
    }

    /// Something happened at the bucket that was not expected.
    pub(super) fn forget_forecast(&mut self) {
        self.forecast = None;
        self.has_moved_up = true;
    }

    /// There is more room at the bucket than was expected.
    pub(super) fn distrust_forecast(&mut self) {
        self.has_moved_up = true;
        if let Some(forecast) = &mut self.forecast {
            forecast.gave_up = true;
        }
    }

    /// When a charge could go that comes now, behind everybody in the queue. `look` shows the bucket as it is.
    pub(super) fn expected_last(
        &mut self,
        units: u32,
        now: Time,
        look: impl FnOnce() -> Option<View>,
    ) -> Option<Goes> {
        let pause = PAUSE * u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        let is_exact = |forecast: &Forecast| {
            !forecast.gave_up || (self.waiting.len() > EXACT_UP_TO && now - forecast.made < pause)
        };
        if !self.forecast.as_ref().is_some_and(is_exact) {
            self.forecast = None;
            let mut view = look()?;
            for (_, units) in self.waiting.iter() {
                view.serve(units, now)?;
            }
            self.forecast = Some(Forecast { view, made: now, gave_up: false });
        }
        self.forecast.as_ref()?.view.goes(units, now)
    }

    /// Sees to it that there is a forecast for somebody who comes last, though where somebody gave up it may be late.
    pub(super) fn foresee(&mut self, now: Time, look: impl FnOnce() -> Option<View>) {
        if self.forecast.is_none() && !self.is_empty() {
            self.expected_last(0, now, look);
        }
    }

    /// Everybody, in the order of arrival, and when they go.
    pub(super) fn turns(
        &self,
        now: Time,
        look: impl FnOnce() -> Option<View>,
    ) -> impl Iterator<Item = (Ticket, Option<Time>)> {
        let mut view = look();
        self.waiting
            .iter()
            .map(move |(ticket, units)| (ticket, view.as_mut().and_then(|view| view.serve(units, now))))
    }

    /// Those who wait in vain: for whom `is_late` holds of when they would go, or who ask for more than the limit ever gives.
    pub(super) fn out_of_time(
        &self,
        now: Time,
        look: impl FnOnce() -> Option<View>,
        is_late: impl Fn(Ticket, Time) -> bool,
    ) -> Vec<(Ticket, Option<Time>)> {
        let mut out_of_time = Vec::new();
        let Some(mut view) = look() else { return out_of_time };
        for (ticket, units) in self.waiting.iter() {
            let start = view.goes(units, now).map(|goes| goes.start);
            if start.is_none_or(|start| is_late(ticket, start)) {
                out_of_time.push((ticket, start));
            } else {
                view.serve(units, now);
            }
        }
        out_of_time
    }
}
