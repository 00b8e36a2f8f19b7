//! What a waiter does: it comes, waits in a queue, and goes. Plain state: it says what to sleep for, and a thread or a task
//! sleeps.

use super::{
    gate::{self, Asked, At, Booked, Gate, Timing, WaitAt},
    order::{Order, WaitSpan},
    queues::{BucketChange, Ticket, WaitOutcome},
    refused::{Ending, Reason, Refused},
    reservation::Reservation,
};
use crate::{
    decision::Status,
    few::Few,
    step::{taken::ReturnReason, turns::Turns},
    time::Time,
};
use std::{mem, task::Waker, time::Duration};

/// A waiter.
#[derive(Debug)]
pub(crate) struct WaiterHandle<'a, T: WaitAt> {
    at: At<'a, T>,
    /// Nothing while it is in a queue, which has it meanwhile.
    order: Order,
    stage: Stage,
}

/// Where a waiter is. What only some stages need is not kept in the others, nor what a queue knows: a future takes its memory
/// for as long as it waits.
#[derive(Debug)]
enum Stage {
    /// Not polled yet, or back at the beginning. In this stage and the others it counts how often its slots ran out before its
    /// turn came.
    Outside {
        span: WaitSpan,
        restarts: u8,
    },
    Queued {
        ticket: Ticket,
        restarts: u8,
    },
    /// Charged, and delayed by a limit's pace.
    Delayed(Box<Delayed>),
    Over,
}

#[derive(Debug)]
struct Delayed {
    booked: Booked,
    span: WaitSpan,
    /// When slots that it holds already are renewed.
    renews_at: Option<Time>,
    restarts: u8,
}

/// What a waiter does next.
pub(crate) enum Next<'a, T: WaitAt> {
    /// Its turn is one charge that holds no slots, after it waited for so long.
    Pass(Status, Duration),
    /// It is its turn, after it waited for so long.
    Go(Reservation<'a, T>, Duration),
    Stop(Ending),
    /// Nothing until then, or until it is woken.
    Sleep(Option<Time>),
}

/// How often it begins again when its slots run out while a pace delays it.
const RESTARTS: u8 = 3;

impl<'a, T: WaitAt> WaiterHandle<'a, T> {
    pub(crate) const fn new(at: At<'a, T>, order: Order) -> Self {
        let span = WaitSpan { began: Time::ZERO, up_to: u64::MAX };
        Self { at, order, stage: Stage::Outside { span, restarts: 0 } }
    }

    pub(crate) const fn at(&self) -> &At<'a, T> {
        &self.at
    }

    pub(crate) fn gate(&self) -> &dyn Gate {
        self.at.gate()
    }

    /// Waits for so many nanoseconds at most. Without effect once it was polled.
    pub(crate) const fn set_up_to(&mut self, nanos: u64) {
        if let Stage::Outside { span, .. } = &mut self.stage {
            span.up_to = nanos;
        }
    }

    /// Sets what every charge costs. Without effect once it was polled.
    pub(crate) fn set_cost(&mut self, cost: u32) {
        if let Stage::Outside { .. } = self.stage {
            self.order.tolls_mut().iter_mut().for_each(|toll| toll.cost = cost.into());
        }
    }

    /// By the shortest way, where it was not polled before.
    #[inline(always)]
    pub(crate) fn try_at_once(&mut self) -> Option<Status> {
        if !matches!(self.stage, Stage::Outside { .. }) {
            return None;
        }
        let status = self.gate().ask_quickly(&self.order)?;
        self.stage = Stage::Over;
        Some(status)
    }

    /// Goes on as far as possible. `waker` is called when there may be more to do; time is the caller's to watch.
    pub(crate) fn advance(&mut self, waker: &Waker) -> Next<'a, T> {
        loop {
            let next = match self.stage {
                Stage::Outside { span, restarts } => self.arrive(span, restarts, waker),
                Stage::Queued { ticket, restarts } => {
                    let gate = self.at.gate();
                    let outcome = gate.queues().poll(gate, ticket, waker);
                    self.follow(outcome, restarts)
                }
                Stage::Delayed(_) => self.await_pace(),
                Stage::Over => Some(Next::Sleep(None)),
            };
            if let Some(next) = next {
                return next;
            }
        }
    }

    fn arrive(&mut self, span: WaitSpan, restarts: u8, waker: &Waker) -> Option<Next<'a, T>> {
        let gate = self.at.gate();
        let now = gate.now();
        let span = if restarts == 0 { WaitSpan { began: now, ..span } } else { span };
        if let Some(booked) = self.try_without_queue(now, span) {
            return self.go(booked, span, restarts);
        }
        let order = mem::take(&mut self.order);
        let outcome = gate.queues().arrive(gate, order, span, now, waker);
        self.follow(outcome, restarts)
    }

    fn follow(&mut self, outcome: WaitOutcome, restarts: u8) -> Option<Next<'a, T>> {
        match outcome {
            WaitOutcome::Passed(status, waited) => {
                self.stage = Stage::Over;
                Some(Next::Pass(status, waited))
            }
            WaitOutcome::Released(order, span, booked) => {
                self.order = order;
                self.go(*booked, span, restarts)
            }
            WaitOutcome::Ended(ending) => {
                self.stage = Stage::Over;
                Some(Next::Stop(*ending))
            }
            WaitOutcome::Waits(ticket, until) => {
                self.stage = Stage::Queued { ticket, restarts };
                Some(Next::Sleep(until))
            }
        }
    }

    /// Where nobody waits and there is room. What is decided by a word has been tried already.
    fn try_without_queue(&self, now: Time, span: WaitSpan) -> Option<Booked> {
        let gate = self.at.gate();
        let by_word = |toll| matches!(gate.turns(toll), Turns::Booked);
        if gate.queues().any() || matches!(&self.order, Order::One(toll) if by_word(&toll.bucket)) {
            return None;
        }
        match gate.ask(&self.order, Timing::release(now, span)) {
            Asked::Granted(booked) => Some(booked),
            Asked::Denied(_) | Asked::Unknown(_) => None,
        }
    }

    /// Charged: it goes, once its pace lets it.
    fn go(&mut self, booked: Booked, span: WaitSpan, restarts: u8) -> Option<Next<'a, T>> {
        let (gate, now) = (self.at.gate(), self.at.gate().now());
        if booked.due <= now {
            self.stage = Stage::Over;
            return Some(self.take(booked, span));
        }
        let renews_at = gate::renews_at(gate, self.order.tolls(), &booked, now);
        self.stage = Stage::Delayed(Box::new(Delayed { booked, span, renews_at, restarts }));
        None
    }

    fn await_pace(&mut self) -> Option<Next<'a, T>> {
        let gate = self.at.gate();
        let Stage::Delayed(delayed) = &mut self.stage else { return None };
        let Delayed { booked, span, renews_at, restarts } = &mut **delayed;
        let now = gate.now();
        let is_due = booked.due <= now;
        if let Some(at) = *renews_at
            && (is_due || at <= now)
        {
            if !gate::renew(gate, self.order.tolls(), booked) {
                // Its slots ran out while nobody polled it: back to the beginning, a few times.
                let tolls = self.order.tolls();
                gate::change_all(gate, tolls, BucketChange::MoreRoom, || {
                    gate::give_back(gate, tolls, booked, ReturnReason::Settled)
                });
                let (span, restarts) = (*span, *restarts + 1);
                self.stage = Stage::Outside { span, restarts };
                return (restarts > RESTARTS).then(|| self.refuse_lost(span));
            }
            *renews_at = gate::renews_at(gate, self.order.tolls(), booked, now);
        }
        if is_due {
            let Stage::Delayed(delayed) = mem::replace(&mut self.stage, Stage::Over) else { return None };
            return Some(self.take(delayed.booked, delayed.span));
        }
        Some(Next::Sleep([Some(booked.due), *renews_at].into_iter().flatten().min()))
    }

    /// The turn that it has, to be used.
    fn take(&mut self, booked: Booked, span: WaitSpan) -> Next<'a, T> {
        let waited = booked.due - span.began;
        if let (Few::One(status), None) = (&booked.statuses, booked.permit) {
            return Next::Pass(*status, waited);
        }
        let order = mem::take(&mut self.order);
        Next::Go(Reservation::new(self.at.clone(), order, booked), waited)
    }

    fn refuse_lost(&mut self, span: WaitSpan) -> Next<'a, T> {
        self.stage = Stage::Over;
        let gate = self.at.gate();
        let reason = Reason::TimedOut { waited: gate.now() - span.began };
        Next::Stop(Ending::Refused(Refused::new(reason, &self.order, 0, gate.peek(&self.order))))
    }
}

/// Whoever stops waiting leaves its queue. What a pace delays was charged when it came, and is spent; slots come back.
impl<T: WaitAt> Drop for WaiterHandle<'_, T> {
    fn drop(&mut self) {
        match &self.stage {
            Stage::Outside { .. } | Stage::Over => {}
            Stage::Queued { ticket, .. } => self.gate().queues().leave(self.gate(), *ticket),
            Stage::Delayed(delayed) => {
                gate::release_slots(self.gate(), self.order.tolls(), &delayed.booked);
            }
        }
    }
}
