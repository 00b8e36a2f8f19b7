//! What a waiter finds when it looks, how long it sleeps, and how it goes away.
//!
//! A waiter sleeps until its turn is expected. Where turns have moved up since, its timer is late: so the head is woken to set
//! it anew, and the one behind it as well, which then looks after a head that is not polled any more. Where neither is
//! polled, the others go by their own timers, or with the next call that serves the queue.

use super::{
    BucketChange, GRACE, Inner, LockedQueues, QueueId, WaitOutcome,
    releasing::Departure,
    waiter::{Alarm, WaiterState},
    waiters::Ticket,
};
use crate::{
    step::turns::Turns,
    time::Time,
    wait::{
        gate::{self, Timing},
        order::Order,
    },
};
use std::task::Waker;

/// So many at the front of a queue are looked at for one that is polled.
const NEAR: usize = 8;

impl LockedQueues<'_> {
    /// `None` where a clone of the waker is needed, which `spare` brings. Leaves what is to be dropped under no lock there.
    pub(super) fn poll(
        &mut self,
        ticket: Ticket,
        now: Time,
        waker: &Waker,
        spare: &mut Option<Waker>,
    ) -> Option<WaitOutcome> {
        // It is awake: nobody has to wake it.
        let before = self.inner.waiters.get_mut(&ticket).and_then(|waiter| waiter.waker.take());
        let outcome = self.fetch_passed(ticket, now).or_else(|| self.release_as_expected(ticket, now));
        if let Some(outcome) = outcome {
            self.inner.effects.gone.extend(std::mem::replace(spare, before));
            return Some(outcome);
        }
        let outcome = self.look(ticket, now);
        let same = before.as_ref().is_some_and(|before| before.will_wake(waker));
        let kept = if same { before } else { std::mem::replace(spare, before) };
        match (&outcome, self.inner.waiters.get_mut(&ticket)) {
            (WaitOutcome::Waits(..), Some(waiter)) => waiter.waker = Some(kept?),
            _ => self.inner.effects.gone.extend(kept),
        }
        Some(outcome)
    }

    /// The result of a waiter that was released with one charge while another was served.
    fn fetch_passed(&mut self, ticket: Ticket, now: Time) -> Option<WaitOutcome> {
        let waiter = self.inner.waiters.get(&ticket)?;
        let WaiterState::Passed(passed) = &waiter.state else { return None };
        let outcome = WaitOutcome::Passed(passed.0, passed.1);
        self.inner.waiters.discard(&ticket);
        if !self.is_as_expected(now) {
            self.serve(now);
        }
        Some(outcome)
    }

    /// Releases a waiter that comes when it was expected: the head of a queue, while nothing else is due.
    fn release_as_expected(&mut self, ticket: Ticket, now: Time) -> Option<WaitOutcome> {
        let Inner { agenda, queues, waiters, unclaimed, .. } = &mut *self.inner;
        let ((at, id), true) = agenda.due(now)? else { return None };
        let queue = queues.get_mut(&id).filter(|queue| queue.head() == Some(ticket))?;
        let waiter = waiters.get(&ticket)?;
        let Order::One(toll) = &waiter.order else { return None };
        if !unclaimed.is_empty() || waiter.deadline(0).is_some_and(|by| by < at) {
            return None;
        }
        let timing = Timing::release(at, waiter.span);
        let (status, due) = self.gate.release_one(toll, timing)?;
        let waited = due - waiter.span.began;
        let is_next_expected = queue.remove_released(id, at, waiters, agenda);
        Self::unregister(self.count, self.gate, &waiters.get(&ticket)?.order);
        waiters.discard(&ticket);
        if !is_next_expected || agenda.due(now).is_some_and(|(_, is_only)| !is_only) {
            self.serve(now);
        }
        Some(WaitOutcome::Passed(status, waited))
    }

    fn look(&mut self, ticket: Ticket, now: Time) -> WaitOutcome {
        // It is here to fetch its slots, so they are not taken back for being late.
        self.inner.unclaimed.retain(|claim| claim.ticket != ticket);
        self.serve_own(ticket, now);
        if let Some(waiter) = self.inner.waiters.get_mut(&ticket)
            && matches!(waiter.state, WaiterState::Withdrawn)
        {
            waiter.state = WaiterState::Waiting;
            self.requeue(ticket, now);
            self.serve(now);
        }
        self.find(ticket, now)
    }

    /// What has become of a waiter, by now.
    pub(super) fn find(&mut self, ticket: Ticket, now: Time) -> WaitOutcome {
        let Some(waiter) = self.inner.waiters.get(&ticket) else { return WaitOutcome::Waits(ticket, None) };
        if waiter.is_waiting() {
            if let Some((_, toll)) = waiter.ends().filter(|(at, _)| *at <= now) {
                // Its time is up, and nobody could say that it would be.
                let ending = waiter.refused(toll, Err(now), self.gate.peek(&waiter.order));
                self.end(ticket, ending, now);
                self.serve(now);
            } else {
                let alarm = self.sleeps_until(ticket, now);
                if let Some(waiter) = self.inner.waiters.get_mut(&ticket) {
                    waiter.alarm = Alarm::Set(alarm);
                }
                return WaitOutcome::Waits(ticket, alarm);
            }
        }
        let Some(waiter) = self.inner.waiters.remove(&ticket) else {
            return WaitOutcome::Waits(ticket, None);
        };
        match waiter.state {
            WaiterState::Passed(passed) => WaitOutcome::Passed(passed.0, passed.1),
            WaiterState::Released(booked) => {
                if booked.permit.is_some() {
                    Self::unregister(self.count, self.gate, &waiter.order);
                }
                WaitOutcome::Released(waiter.order, waiter.span, booked)
            }
            WaiterState::Ended(ending) => WaitOutcome::Ended(ending),
            WaiterState::Waiting | WaiterState::Withdrawn => WaitOutcome::Waits(ticket, None),
        }
    }

    pub(super) fn leave(&mut self, ticket: Ticket) {
        let now = self.gate.now();
        self.serve(now);
        let Some(waiter) = self.inner.waiters.get(&ticket) else { return };
        let was_waiting = waiter.is_waiting();
        if was_waiting {
            self.leave_queues(ticket, now, Departure::Unserved);
        }
        let Some(waiter) = self.inner.waiters.remove(&ticket) else { return };
        if was_waiting || matches!(waiter.state, WaiterState::Withdrawn) {
            Self::unregister(self.count, self.gate, &waiter.order);
        }
        self.inner.effects.gone.extend(waiter.waker);
        if let WaiterState::Released(booked) = &waiter.state
            && booked.permit.is_some()
        {
            // What was charged is spent. Slots are held, not spent.
            self.claimed(&waiter.order, ticket);
            gate::leave_slots(self.gate, waiter.order.tolls(), booked);
            for bucket in gate::held(self.gate, waiter.order.tolls(), booked) {
                self.touch(bucket.queue(), now, BucketChange::MoreRoom);
            }
        }
        self.serve(now);
    }

    /// Looks at the head of a queue at that time, which has come.
    pub(super) fn schedule(&mut self, id: QueueId, at: Time) {
        let Inner { queues, agenda, .. } = &mut *self.inner;
        if let Some(queue) = queues.get_mut(&id) {
            queue.schedule(id, at, agenda);
        }
    }

    /// Looks at the head of a queue at that time, which is to come. The head sleeps until then, or is woken to see to that;
    /// and should it not be polled any more, the next one sees to its own turn.
    pub(super) fn plan(&mut self, id: QueueId, now: Time, at: Option<Time>) {
        // At the end of a clock's line there is no later time to look at.
        let Some(at) = at.filter(|at| *at > now) else { return };
        self.schedule(id, at);
        let Inner { queues, waiters, effects, .. } = &mut *self.inner;
        let Some(queue) = queues.get(&id) else { return };
        let Some(head) = queue.head().and_then(|head| waiters.get(&head)) else { return };
        if !queue.has_moved_up() && head.alarm.is_set_by(at) {
            // Everybody sleeps until their own turn.
            return;
        }
        let bucket = head.bucket_of(id).cloned();
        let look = || bucket.and_then(|bucket| self.gate.look(&bucket));
        for (place, (ticket, turn)) in queue.turns(now, look).take(NEAR).enumerate() {
            let by = if place == 0 { at } else { turn.unwrap_or(at + GRACE) };
            let Some(waiter) = waiters.get_mut(&ticket) else { return };
            if waiter.alarm == Alarm::Woken {
                // Told before, it may not be polled any more.
                continue;
            }
            if !waiter.alarm.is_set_by(by) {
                waiter.wake_to_set_alarm(effects);
            }
            if place > 0 {
                return;
            }
        }
    }

    /// Until when a waiter sleeps that waits.
    pub(super) fn sleeps_until(&self, ticket: Ticket, now: Time) -> Option<Time> {
        let waiter = self.inner.waiters.get(&ticket)?;
        let mut until = waiter.ends().map(|(at, _)| at);
        for toll in waiter.queued_at() {
            let Some(queue) = self.inner.queues.get(&waiter.order.queue(*toll)) else { continue };
            let is_head = queue.head() == Some(ticket);
            // Those in front may not be polled any more; or this is the next one, see `plan`.
            let is_near = || {
                let mut ahead = queue.tickets().take_while(|ahead| *ahead != ticket).enumerate();
                ahead.all(|(place, ahead)| place == 0 || (place < NEAR && self.is_woken(ahead)))
            };
            let bucket = &waiter.order.tolls()[*toll].bucket;
            let looks_at = queue.looks_at.filter(|_| is_head);
            // Later than expected, it looks ever more rarely.
            let later = || now + GRACE.max((now - waiter.span.began) / 4);
            let own = match queue.kind {
                _ if looks_at.is_some() => None,
                Turns::Slots { .. } if is_near() => queue.looks_at.map(|at| at + GRACE),
                Turns::Slots { max_hold, .. } => Some(later().max(now + max_hold)),
                _ if queue.has_moved_up() && is_near() => {
                    let mut turns = queue.turns(now, || self.gate.look(bucket));
                    turns.find(|(of, _)| *of == ticket).and_then(|(_, turn)| turn)
                }
                _ => waiter.expected,
            };
            let own = if looks_at.is_some() {
                None
            } else {
                Some(own.filter(|at| *at > now).unwrap_or_else(later))
            };
            until = [until, looks_at, own].into_iter().flatten().min();
        }
        until
    }

    /// Whether somebody was woken to look at the time, and has not done so.
    pub(super) fn is_woken(&self, ticket: Ticket) -> bool {
        self.inner.waiters.get(&ticket).is_some_and(|waiter| waiter.alarm == Alarm::Woken)
    }
}
