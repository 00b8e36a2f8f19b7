//! How somebody comes to wait: asked for at once where nobody is in front, else judged by the queue in front and let in or
//! refused.

use super::{
    Inner, LockedQueues, QueueId, Queues, SetForecast, WaitOutcome,
    queue::{EXACT_UP_TO, WaitQueue},
    waiter::{Alarm, Waiter},
    waiters::Ticket,
};
use crate::{
    decision::Verdict,
    step::turns::Turns,
    time::Time,
    wait::{
        gate::{Asked, Denied, Gate, Timing},
        order::{Bucket, Order, Toll, WaitSpan},
        refused::{Ending, Reason, Refused},
    },
};
use std::{collections::hash_map::Entry, task::Waker};

impl LockedQueues<'_> {
    pub(super) fn arrive(&mut self, order: Order, span: WaitSpan, now: Time, waker: Waker) -> WaitOutcome {
        let mut waiter = Waiter::new(order, span);
        if let Some((ticket, expected)) = self.try_join(&waiter, now) {
            Self::register(self.count, self.gate, &waiter.order);
            waiter.join(0);
            (waiter.alarm, waiter.expected) = (Alarm::Set(Some(expected)), Some(expected));
            if expected <= now {
                self.inner.waiters.insert(ticket, waiter);
                return self.settle(ticket, now, waker);
            }
            waiter.waker = Some(waker);
            self.inner.waiters.insert(ticket, waiter);
            return WaitOutcome::Waits(ticket, Some(expected));
        }
        self.serve(now);
        let ticket = self.inner.waiters.next_ticket();
        Self::register(self.count, self.gate, &waiter.order);
        let mut next = None;
        let outcome = match self.held_up(ticket, &waiter) {
            Some(toll) => match Self::never(self.gate, &waiter.order) {
                Some(refused) => Err(Ending::Refused(refused)),
                None => self
                    .judge_set(ticket, &waiter, now)
                    .and_then(|()| Self::admit(self.gate, &mut self.inner.queues, &waiter, toll, now)),
            },
            None => match self.gate.ask(&waiter.order, Timing::release(now, span)) {
                Asked::Granted(booked) => {
                    Self::unregister(self.count, self.gate, &waiter.order);
                    self.inner.effects.gone.push(waker);
                    return WaitOutcome::Released(waiter.order, span, Box::new(booked));
                }
                Asked::Denied(denied) => {
                    let by = denied.by;
                    self.judge(&waiter, denied, now).and_then(|at| {
                        next = at;
                        self.judge_set(ticket, &waiter, now)?;
                        Self::admit(self.gate, &mut self.inner.queues, &waiter, by, now)
                    })
                }
                Asked::Unknown(error) => Err(Ending::Store(error)),
            },
        };
        match outcome {
            Ok((toll, expected)) => {
                let id = waiter.order.queue(toll);
                self.inner.waiters.insert(ticket, Waiter { expected, ..waiter });
                self.enqueue(ticket, toll, now);
                if next.is_some() {
                    // It has just been asked for.
                    self.plan(id, now, next);
                }
                self.settle(ticket, now, waker)
            }
            Err(ending) => {
                for (_, id) in waiter.order.queues() {
                    self.forget_if_empty(id);
                }
                Self::unregister(self.count, self.gate, &waiter.order);
                self.inner.effects.gone.push(waker);
                WaitOutcome::Ended(Box::new(ending))
            }
        }
    }

    /// A place at the end of a queue in which everybody sleeps until a turn that is known, and when its own is. Not for
    /// somebody who asks for more than one unit or would be late, nor where there is more to do first.
    fn try_join(&mut self, waiter: &Waiter, now: Time) -> Option<(Ticket, Time)> {
        let Order::One(Toll { bucket, cost: 1, .. }) = &waiter.order else { return None };
        let Inner { queues, waiters, agenda, unclaimed, .. } = &mut *self.inner;
        let id = bucket.queue();
        let queue = queues.get_mut(&id).filter(|queue| queue.is_foreseen())?;
        // Who is due there comes by its own timer.
        let is_expected = |due| due == id && queue.expected_release(waiters).is_some();
        let is_undisturbed = unclaimed.is_empty()
            && agenda.due(now).is_none_or(|((_, due), is_only)| is_only && is_expected(due));
        let is_in_time = |by| queue.expected_last(1, now, || None).is_some_and(|goes| goes.start <= by);
        if !is_undisturbed || !waiter.deadline(0).is_none_or(is_in_time) {
            return None;
        }
        let ticket = waiters.next_ticket();
        let expected = queue.insert(ticket, 1, now);
        if expected.is_none() {
            queue.remove_unserved(ticket);
        }
        Some((ticket, expected?))
    }

    /// What becomes of somebody who is in a queue now.
    fn settle(&mut self, ticket: Ticket, now: Time, waker: Waker) -> WaitOutcome {
        self.serve(now);
        let outcome = self.find(ticket, now);
        match self.inner.waiters.get_mut(&ticket) {
            Some(waiter) => waiter.waker = Some(waker),
            None => self.inner.effects.gone.push(waker),
        }
        outcome
    }

    /// That an order asks for more than a limit ever gives, where it does. No limit gives less than one unit.
    pub(super) fn never(gate: &dyn Gate, order: &Order) -> Option<Refused> {
        if order.tolls().iter().all(|toll| toll.cost <= 1) {
            return None;
        }
        let statuses = gate.peek(order);
        let by = statuses.iter().position(|status| status.in_nanos() == Verdict::Never)?;
        Some(Refused::never(order, Denied { statuses, by, at: gate.now() }))
    }

    /// Whether somebody is let in at a toll's queue, at its end; comes with the toll, and when its turn is expected.
    pub(super) fn admit(
        gate: &dyn Gate,
        queues: &mut Queues,
        waiter: &Waiter,
        toll: usize,
        now: Time,
    ) -> Result<(usize, Option<Time>), Ending> {
        let (bucket, units) = (&waiter.order.tolls()[toll].bucket, waiter.order.tolls()[toll].units());
        let queue = Self::queue_at(gate, queues, bucket);
        let look = || gate.look(bucket);
        // Sets have been judged by all of their limits.
        let deadline = waiter.deadline(toll).filter(|_| waiter.order.tolls().len() == 1);
        match (queue.kind, deadline) {
            (Turns::Slots { queue: most, .. }, _) if queue.len() >= most as usize => {
                let reason = Reason::QueueFull { queue: most };
                Err(Ending::Refused(Refused::new(reason, &waiter.order, toll, gate.peek(&waiter.order))))
            }
            (Turns::Slots { .. }, _) => Ok((toll, None)),
            (_, None) => {
                queue.foresee(now, look);
                Ok((toll, None))
            }
            (_, Some(by)) => match queue.expected_last(units, now, look).map(|goes| goes.start) {
                Some(start) if start > by => Err(waiter.refused(toll, Ok(start), gate.peek(&waiter.order))),
                expected => Ok((toll, expected)),
            },
        }
    }

    /// The queue in front of a bucket, which begins anew where nobody is in it.
    fn queue_at<'q>(gate: &dyn Gate, queues: &'q mut Queues, bucket: &Bucket) -> &'q mut WaitQueue {
        match queues.entry(bucket.queue()) {
            Entry::Vacant(entry) => entry.insert(WaitQueue::new(gate.turns(bucket))),
            Entry::Occupied(entry) => {
                let queue = entry.into_mut();
                if queue.is_empty() {
                    queue.begin(gate.turns(bucket));
                }
                queue
            }
        }
    }

    /// Whether a set that comes now would be late, by all of its limits, behind those who wait in each of its queues.
    pub(super) fn judge_set(&self, ticket: Ticket, waiter: &Waiter, now: Time) -> Result<(), Ending> {
        let deadlines =
            || (0..waiter.order.tolls().len()).filter_map(|toll| Some((waiter.deadline(toll)?, toll)));
        if waiter.order.tolls().len() < 2 || deadlines().next().is_none() {
            return Ok(());
        }
        let queues = || waiter.order.queues().filter_map(|(_, id)| self.inner.queues.get(&id));
        if queues().map(WaitQueue::len).sum::<usize>() > EXACT_UP_TO {
            // It waits, and is told when it is known.
            return Ok(());
        }
        let mut start = SetForecast::new(self.gate, &waiter.order, now).goes(&waiter.order);
        for queue in queues() {
            let mut forecast = SetForecast::new(self.gate, &waiter.order, now);
            let ahead = queue.tickets().take_while(|ahead| *ahead < ticket);
            for waiter in ahead.filter_map(|ahead| self.inner.waiters.get(&ahead)) {
                forecast.serve(&waiter.order);
            }
            start = start.max(forecast.goes(&waiter.order));
        }
        let Some(start) = start else { return Ok(()) };
        match deadlines().min().filter(|(by, _)| start > *by) {
            Some((_, toll)) => Err(waiter.refused(toll, Ok(start), self.gate.peek(&waiter.order))),
            None => Ok(()),
        }
    }

    /// The first toll at whose queue somebody waits who came before; not one where it stands itself.
    pub(super) fn held_up(&self, ticket: Ticket, waiter: &Waiter) -> Option<usize> {
        let is_behind = |id: &QueueId| {
            self.inner.queues.get(id).and_then(WaitQueue::head).is_some_and(|head| head < ticket)
        };
        waiter.order.queues().find(|(_, id)| is_behind(id)).map(|(toll, _)| toll)
    }

    /// Puts a waiter into the queue of a toll.
    pub(super) fn enqueue(&mut self, ticket: Ticket, toll: usize, now: Time) {
        let Inner { queues, waiters, agenda, .. } = &mut *self.inner;
        let Some(waiter) = waiters.get_mut(&ticket) else { return };
        waiter.join(toll);
        let toll = &waiter.order.tolls()[toll];
        let queue = Self::queue_at(self.gate, queues, &toll.bucket);
        if !queue.is_empty() && queue.kind.is_slots() {
            queue.forget_forecast();
        }
        let head = queue.head();
        waiter.expected = queue.insert(ticket, toll.units(), now).or(waiter.expected);
        if queue.head() != head {
            queue.schedule(toll.bucket.queue(), now, agenda);
        }
    }

    /// Where a waiter that was withdrawn stands again, at the place of its arrival.
    pub(super) fn requeue(&mut self, ticket: Ticket, now: Time) {
        let Some(waiter) = self.inner.waiters.get(&ticket) else { return };
        let held_up = self.held_up(ticket, waiter);
        let slots = || waiter.order.tolls().iter().position(|toll| self.gate.turns(&toll.bucket).is_slots());
        self.enqueue(ticket, held_up.or_else(slots).unwrap_or(0), now);
    }
}
