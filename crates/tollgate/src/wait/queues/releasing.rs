//! What becomes of the head of a queue: released, sent to another queue, or told that it waits in vain.

use super::{
    BucketChange, Claim, GRACE, Inner, LockedQueues, QueueId, TIMER_GRAIN,
    queue::{EXACT_UP_TO, WaitQueue},
    waiter::{Waiter, WaiterState},
    waiters::Ticket,
};
use crate::{
    decision::{DecidedBy, Verdict},
    step::{taken::ReturnReason, turns::Turns},
    time::Time,
    wait::{
        gate::{self, Asked, Booked, Denied, Timing},
        order::{Order, Toll},
        refused::{Ending, Refused},
    },
};
use std::time::Duration;

/// After so many moves a set no longer gives up its place in one queue when it goes to another: or else limits that have
/// room at different times could send it to and fro for ever.
const MOVES: u32 = 4;

impl LockedQueues<'_> {
    /// Decides about the head of a queue, at an instant that has come.
    pub(super) fn decide_head(&mut self, id: QueueId, at: Time) {
        let Some(queue) = self.inner.queues.get_mut(&id) else { return };
        queue.looks_at = None;
        let Some(ticket) = queue.head() else { return self.forget_if_empty(id) };
        let Some(waiter) = self.inner.waiters.get(&ticket) else { return };
        let is_set = matches!(waiter.order, Order::Set(_));
        let is_head = |toll: &usize| {
            self.inner.queues.get(&waiter.order.queue(*toll)).is_some_and(|it| it.head() == Some(ticket))
        };
        if is_set && !waiter.queued_at().iter().all(is_head) {
            // Whoever leaves the other queue comes here again.
            return;
        }
        if let Some((ended, toll)) = waiter.ends().filter(|(ends, _)| *ends < at) {
            let ending = waiter.refused(toll, Err(ended), self.gate.peek(&waiter.order));
            return self.end(ticket, ending, at);
        }
        if let Some(toll) = is_set.then(|| self.held_up(ticket, waiter)).flatten() {
            return self.move_to(ticket, toll, at);
        }
        let timing = Timing::release(at, waiter.span);
        if let Order::One(toll) = &waiter.order
            && let Some((status, due)) = self.gate.release_one(toll, timing)
        {
            let waited = due - waiter.span.began;
            Self::unregister(self.count, self.gate, &waiter.order);
            return self.finish(
                ticket,
                WaiterState::Passed(Box::new((status, waited))),
                Departure::Released,
                at,
            );
        }
        match self.gate.ask(&waiter.order, timing) {
            Asked::Granted(booked) => self.release(ticket, booked, at),
            Asked::Unknown(error) => self.end(ticket, Ending::Store(error), at),
            Asked::Denied(denied) => {
                let by = denied.by;
                let stands_there = waiter.queued_at().contains(&by);
                match self.judge(waiter, denied, at) {
                    Err(ending) => self.end(ticket, ending, at),
                    Ok(_) if !stands_there => self.move_to(ticket, by, at),
                    Ok(next) => self.plan(id, at, next),
                }
            }
        }
    }

    /// Whether a waiter that is denied now may still be in time; and when to ask again, if anybody knows.
    pub(super) fn judge(&self, waiter: &Waiter, denied: Denied, at: Time) -> Result<Option<Time>, Ending> {
        if denied.verdict() == Verdict::Never {
            return Err(Ending::Refused(Refused::never(&waiter.order, denied)));
        }
        let mut next: Option<Time> = None;
        let mut late: Option<(usize, Time)> = None;
        for (toll, status) in denied.statuses.iter().enumerate() {
            let Verdict::Deny(nanos) = status.in_nanos() else { continue };
            let deadline = waiter.deadline(toll);
            // What is late for a limit's pace is later still when it is asked for later.
            let paced = deadline.and_then(|_| self.paced_start(&waiter.order.tolls()[toll], at));
            let start = paced.unwrap_or(denied.at + Duration::from_nanos(nanos.max(1)));
            if deadline.is_some_and(|by| start > by) && late.is_none_or(|(_, it)| start > it) {
                late = Some((toll, start));
            }
            if toll == denied.by {
                // A table that is full may have a place before that, and nobody would say so.
                let is_full = status.decided_by() == DecidedBy::FullTable;
                let hint = denied.at + Duration::from_nanos(nanos.max(1));
                next = Some(if is_full { (at + GRACE).max(self.now) } else { hint });
            }
        }
        if let Some((toll, start)) = late {
            return Err(waiter.refused(toll, Ok(start), denied.statuses));
        }
        if denied.verdict() == Verdict::WhenReleased {
            let toll = denied.by;
            let bucket = &waiter.order.tolls()[toll].bucket;
            let deadline = waiter.deadline(toll);
            if deadline.is_some_and(|by| by <= at) && !self.is_full(waiter, toll) {
                return Err(waiter.refused(toll, Err(at), denied.statuses));
            }
            // Whoever leaves wakes it. A holder whose time is up does not, nor one that does not fetch its slots.
            let of_bucket = self.inner.unclaimed.iter().find(|claim| claim.queue == bucket.queue());
            let claim = of_bucket.map(|claim| claim.until.max(at + Duration::from_nanos(1)));
            next = [self.gate.first_expiry(bucket, at), claim, deadline].into_iter().flatten().min();
        }
        Ok(next)
    }

    /// When a toll's turn would start at a limit that delays what fits for its pace.
    fn paced_start(&self, toll: &Toll, at: Time) -> Option<Time> {
        if self.gate.turns(&toll.bucket) != Turns::Asked {
            return None;
        }
        let view = self.gate.look(&toll.bucket).filter(|view| view.step.patience() > 0)?;
        view.goes(toll.units(), at).map(|goes| goes.start)
    }

    /// Whether as many wait for slots as may.
    pub(super) fn is_full(&self, waiter: &Waiter, toll: usize) -> bool {
        let bucket = &waiter.order.tolls()[toll].bucket;
        let waiting = self.inner.queues.get(&bucket.queue()).map_or(0, WaitQueue::len);
        !waiter.queued_at().contains(&toll)
            && self.gate.turns(bucket).queue().is_some_and(|most| waiting >= most as usize)
    }

    /// From wherever a waiter stands to the queue of another toll.
    pub(super) fn move_to(&mut self, ticket: Ticket, toll: usize, at: Time) {
        let Some(waiter) = self.inner.waiters.get(&ticket) else { return };
        let Order::Set(set) = &waiter.order else { return };
        let moves = set.moves;
        let admitted = Self::admit(self.gate, &mut self.inner.queues, waiter, toll, at);
        let id = waiter.order.queue(toll);
        self.forget_if_empty(id);
        match admitted {
            Err(ending) => self.end(ticket, ending, at),
            Ok((toll, expected)) => {
                if moves < MOVES {
                    self.leave_queues(ticket, at, Departure::Unserved);
                }
                if let Some(waiter) = self.inner.waiters.get_mut(&ticket) {
                    waiter.expected = expected;
                    if let Order::Set(set) = &mut waiter.order {
                        set.moves = MOVES.min(moves + 1);
                    }
                    // It sleeps for a queue that it has left.
                    waiter.wake_to_set_alarm(&mut self.inner.effects);
                }
                self.enqueue(ticket, toll, at);
            }
        }
    }

    pub(super) fn touch(&mut self, id: QueueId, now: Time, effect: BucketChange) {
        let Inner { queues, waiters, agenda, .. } = &mut *self.inner;
        let Some(queue) = queues.get_mut(&id) else { return };
        match effect {
            BucketChange::MoreRoom => queue.distrust_forecast(),
            BucketChange::Unknown => {
                queue.forget_forecast();
                let head = queue.head().and_then(|head| waiters.get(&head));
                if let Some(bucket) = head.and_then(|head| head.bucket_of(id)) {
                    queue.kind = self.gate.turns(bucket);
                }
            }
        }
        queue.schedule(id, now, agenda);
        // More room makes nobody late, unless a window that is emptied begins anew and ends later. In a long queue those are told
        // by their deadlines: to find them takes time for everybody in it.
        let is_late_for_more = queue.kind == Turns::Asked && queue.len() <= EXACT_UP_TO;
        if effect == BucketChange::MoreRoom && !is_late_for_more {
            return;
        }
        self.serve(now);
        for (ticket, toll, start) in self.out_of_time(id, now) {
            let Some(waiter) = self.inner.waiters.get(&ticket) else { continue };
            let statuses = self.gate.peek(&waiter.order);
            let ending = match start {
                Some(start) => waiter.refused(toll, Ok(start), statuses),
                None => {
                    Ending::Refused(Refused::never(&waiter.order, Denied { statuses, by: toll, at: now }))
                }
            };
            self.end(ticket, ending, now);
        }
    }

    /// Those of a queue who wait in vain, at which of their tolls, and when they would go.
    pub(super) fn out_of_time(&self, id: QueueId, now: Time) -> Vec<(Ticket, usize, Option<Time>)> {
        let Inner { queues, waiters, .. } = &*self.inner;
        let Some(queue) = queues.get(&id) else { return Vec::new() };
        let here = |ticket| {
            let waiter: &Waiter = waiters.get(&ticket)?;
            let toll = waiter.queued_at().iter().find(|toll| waiter.order.queue(**toll) == id)?;
            Some((waiter, *toll))
        };
        let Some((waiter, toll)) = queue.head().and_then(here) else { return Vec::new() };
        let bucket = &waiter.order.tolls()[toll].bucket;
        let deadline = |ticket| here(ticket).and_then(|(waiter, toll)| waiter.deadline(toll));
        let is_late = |ticket, start| deadline(ticket).is_some_and(|by| start > by);
        let out_of_time = queue.out_of_time(now, || self.gate.look(bucket), is_late);
        out_of_time.into_iter().filter_map(|(ticket, start)| Some((ticket, here(ticket)?.1, start))).collect()
    }

    pub(super) fn release(&mut self, ticket: Ticket, booked: Booked, at: Time) {
        let Some(waiter) = self.inner.waiters.get(&ticket) else { return };
        match booked.permit.is_some() {
            true => {
                let until = self.now + GRACE;
                let claims = gate::held(self.gate, waiter.order.tolls(), &booked).map(|bucket| Claim {
                    until,
                    ticket,
                    queue: bucket.queue(),
                });
                self.inner.unclaimed.extend(claims);
            }
            false => Self::unregister(self.count, self.gate, &waiter.order),
        }
        self.finish(ticket, WaiterState::Released(Box::new(booked)), Departure::Released, at);
    }

    pub(super) fn end(&mut self, ticket: Ticket, ending: Ending, at: Time) {
        let Some(waiter) = self.inner.waiters.get(&ticket) else { return };
        Self::unregister(self.count, self.gate, &waiter.order);
        self.finish(ticket, WaiterState::Ended(Box::new(ending)), Departure::Unserved, at);
    }

    /// Takes a waiter out of its queues. It is woken, unless its own timer is just waking it.
    fn finish(&mut self, ticket: Ticket, state: WaiterState, departure: Departure, at: Time) {
        self.leave_queues(ticket, at, departure);
        let Some(waiter) = self.inner.waiters.get_mut(&ticket) else { return };
        waiter.state = state;
        if !self.clock.is_some_and(|clock| waiter.alarm.is_going_off(clock, TIMER_GRAIN)) {
            self.inner.effects.wake.extend(waiter.waker.take());
        }
    }

    /// Takes slots back that were not fetched, where somebody else waits for them.
    pub(super) fn reclaim(&mut self, at: Time) {
        let Inner { queues, waiters, agenda, unclaimed, .. } = &mut *self.inner;
        let Some(claim) = unclaimed.pop_front() else { return };
        let Some(waiter) = waiters.get_mut(&claim.ticket) else { return };
        let WaiterState::Released(booked) = &waiter.state else { return };
        if queues.get(&claim.queue).is_none_or(WaitQueue::is_empty) {
            let until = self.now + GRACE;
            // At the end of a clock's line there is no later time.
            unclaimed.extend((until > self.now).then_some(Claim { until, ..claim }));
            return;
        }
        gate::give_back(self.gate, waiter.order.tolls(), booked, ReturnReason::Settled);
        waiter.state = WaiterState::Withdrawn;
        for toll in 0..waiter.order.tolls().len() {
            let id = waiter.order.queue(toll);
            // The heads are looked at by whoever works off the agenda, which comes here: to do it now would go back in time.
            if let Some(queue) = queues.get_mut(&id) {
                queue.distrust_forecast();
                queue.schedule(id, at, agenda);
            }
        }
    }

    /// Slots have been fetched.
    pub(super) fn claimed(&mut self, order: &Order, ticket: Ticket) {
        self.inner.unclaimed.retain(|claim| claim.ticket != ticket);
        Self::unregister(self.count, self.gate, order);
    }

    /// Takes a waiter out of its queues, whose next ones are looked at.
    pub(super) fn leave_queues(&mut self, ticket: Ticket, at: Time, leaving: Departure) {
        let Inner { queues, waiters, agenda, .. } = &mut *self.inner;
        let Some(waiter) = waiters.get_mut(&ticket) else { return };
        let queued_at = waiter.leave();
        for toll in &*queued_at {
            let id = waiters[&ticket].order.queue(*toll);
            let Some(queue) = queues.get_mut(&id) else { continue };
            match leaving {
                Departure::Released => {
                    queue.remove_released(id, at, waiters, agenda);
                }
                Departure::Unserved => {
                    // The second looks after the head.
                    let was_near = queue.tickets().take(2).any(|near| near == ticket);
                    queue.remove_unserved(ticket);
                    if was_near {
                        queue.schedule(id, at, agenda);
                    }
                }
            }
        }
    }
}

/// How a waiter leaves its queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Departure {
    Released,
    /// It gave up, or went to another queue.
    Unserved,
}
