//! How somebody comes to wait: asked for at once where nobody is in front, else judged by the queue in front and let in or
//! refused.

use super::{
    ArrivalOutcome, LockedQueues, PollOutcome, QueueId, Queues, SetForecast,
    queue::{EXACT_UP_TO, WaitQueue},
    waiter::{Alarm, Waiter, WaiterState},
    waiters::Ticket,
};
use crate::{
    decision::Verdict,
    few::Few,
    step::turns::Turns,
    time::Time,
    wait::{
        gate::{Asked, Denied, Gate, Timing},
        order::Order,
        refused::{Ending, Reason, Refused},
    },
};
use std::{task::Waker, time::Duration};

impl LockedQueues<'_> {
    pub(super) fn arrive(
        &mut self,
        order: Order,
        began: Time,
        up_to: Option<Duration>,
        waker: Waker,
    ) -> ArrivalOutcome {
        let now = self.gate.now().max(began);
        self.serve(now);
        let ticket = self.inner.waiters.next_ticket();
        let waiter = Waiter {
            order,
            began,
            up_to,
            queued_at: Few::Many(Vec::new()),
            moves: 0,
            expected: None,
            alarm: Alarm::Set(None),
            waker: None,
            state: WaiterState::Waiting,
        };
        self.register(&waiter.order);
        let mut next = None;
        let outcome = match self.held_up(ticket, &waiter) {
            Some(toll) => match Self::never(self.gate, &waiter.order) {
                Some(refused) => Err(Ending::Refused(refused)),
                None => self
                    .judge_set(ticket, &waiter, now)
                    .and_then(|()| Self::admit(self.gate, &mut self.inner.queues, &waiter, toll, now)),
            },
            None => match self.gate.ask(&waiter.order, Timing::release(now, began, up_to)) {
                Asked::Granted(booked) => {
                    self.unregister(&waiter.order);
                    self.inner.effects.gone.push(waker);
                    return ArrivalOutcome::Granted(waiter.order, booked);
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
                self.serve(now);
                match self.find(ticket, now, waker) {
                    PollOutcome::Released(order, booked) => ArrivalOutcome::Granted(order, booked),
                    PollOutcome::Ended(ending) => ArrivalOutcome::Ended(ending),
                    PollOutcome::Waits(until) => ArrivalOutcome::Waits(ticket, until),
                }
            }
            Err(ending) => {
                for (_, id) in waiter.order.queues() {
                    self.forget_if_empty(id);
                }
                self.unregister(&waiter.order);
                self.inner.effects.gone.push(waker);
                ArrivalOutcome::Ended(ending)
            }
        }
    }

    /// That an order asks for more than a limit ever gives, where it does. No limit gives less than one unit.
    pub(super) fn never(gate: &dyn Gate, order: &Order) -> Option<Refused> {
        if order.tolls.iter().all(|toll| toll.cost <= 1) {
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
        let (bucket, units) = (&waiter.order.tolls[toll].bucket, waiter.order.tolls[toll].units());
        let queue = queues.entry(bucket.queue()).or_default();
        let look = || gate.look(bucket);
        // Sets have been judged by all of their limits.
        let deadline = waiter.deadline(toll).filter(|_| waiter.order.tolls.len() == 1);
        match (gate.turns(bucket), deadline) {
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

    /// Whether a set that comes now would be late, by all of its limits, behind those who wait in each of its queues.
    pub(super) fn judge_set(&self, ticket: Ticket, waiter: &Waiter, now: Time) -> Result<(), Ending> {
        let deadlines =
            || (0..waiter.order.tolls.len()).filter_map(|toll| Some((waiter.deadline(toll)?, toll)));
        if waiter.order.tolls.len() < 2 || deadlines().next().is_none() {
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
        let Some(waiter) = self.inner.waiters.get_mut(&ticket) else { return };
        let (id, units) = (waiter.order.queue(toll), waiter.order.tolls[toll].units());
        let others = waiter.queued_at.iter().copied().filter(|other| *other != toll);
        waiter.queued_at = others.chain([toll]).collect();
        let queue = self.inner.queues.entry(id).or_default();
        if queue.is_empty() {
            queue.begin();
        } else if self.gate.turns(&waiter.order.tolls[toll].bucket).is_slots() {
            queue.forget_forecast();
        }
        let head = queue.head();
        waiter.expected = queue.insert(ticket, units, now).or(waiter.expected);
        if queue.head() != head {
            self.schedule(id, now);
        }
    }

    /// Where a waiter that was withdrawn stands again, at the place of its arrival.
    pub(super) fn requeue(&mut self, ticket: Ticket, now: Time) {
        let Some(waiter) = self.inner.waiters.get(&ticket) else { return };
        let held_up = self.held_up(ticket, waiter);
        let slots = || waiter.order.tolls.iter().position(|toll| self.gate.turns(&toll.bucket).is_slots());
        self.enqueue(ticket, held_up.or_else(slots).unwrap_or(0), now);
    }
}
