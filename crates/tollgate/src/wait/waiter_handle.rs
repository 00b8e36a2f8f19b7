//! What a waiter does: it comes, waits in a queue, and goes. Plain state: it says what to sleep for, and a thread or a task
//! sleeps.

use super::{
    gate::{self, Asked, At, Booked, Gate, Timing, WaitAt},
    order::Order,
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
use std::{task::Waker, time::Duration};

/// A waiter.
#[derive(Debug)]
pub(crate) struct WaiterHandle<'a, T: WaitAt> {
    at: At<'a, T>,
    pub(crate) order: Order,
    /// In nanoseconds; as long as it takes where it does not say.
    pub(crate) up_to: u64,
    /// When it came; nothing before that.
    began: Time,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Unpolled,
    /// Not in a queue. With how often its slots ran out before its turn came, as in the others.
    Fresh(u8),
    /// In a queue, which has its order meanwhile.
    Queued(u8, Ticket),
    /// Charged, and delayed by a limit's pace. In a box, so that those in a queue are smaller.
    Delayed(Box<Delayed>),
    Over,
}

#[derive(Debug)]
struct Delayed {
    booked: Booked,
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
        Self { at, order, up_to: u64::MAX, began: Time::ZERO, stage: Stage::Unpolled }
    }

    pub(crate) const fn at(&self) -> &At<'a, T> {
        &self.at
    }

    pub(crate) fn gate(&self) -> &dyn Gate {
        self.at.gate()
    }

    /// By the shortest way, where it was not polled before.
    #[inline(always)]
    pub(crate) fn try_at_once(&mut self) -> Option<Status> {
        if !matches!(self.stage, Stage::Unpolled) {
            return None;
        }
        let status = self.gate().ask_quickly(&self.order);
        self.stage = if status.is_some() { Stage::Over } else { Stage::Fresh(0) };
        status
    }

    const fn restarts(&self) -> u8 {
        match &self.stage {
            Stage::Unpolled | Stage::Over => 0,
            Stage::Fresh(restarts) | Stage::Queued(restarts, _) => *restarts,
            Stage::Delayed(delayed) => delayed.restarts,
        }
    }

    /// Goes on as far as possible. `waker` is called when there may be more to do; time is the caller's to watch.
    pub(crate) fn advance(&mut self, waker: &Waker) -> Next<'a, T> {
        loop {
            let next = match &self.stage {
                Stage::Unpolled | Stage::Fresh(_) => self.arrive(waker),
                Stage::Queued(_, ticket) => {
                    let ticket = *ticket;
                    self.look(ticket, waker)
                }
                Stage::Delayed(..) => self.await_pace(),
                Stage::Over => Some(Next::Sleep(None)),
            };
            if let Some(next) = next {
                return next;
            }
        }
    }

    fn arrive(&mut self, waker: &Waker) -> Option<Next<'a, T>> {
        let now = self.gate().now();
        if self.restarts() == 0 {
            self.began = now;
        }
        let began = self.began;
        if let Some(booked) = self.try_without_queue(now, began) {
            return self.go(booked);
        }
        let order = std::mem::take(&mut self.order);
        let gate = self.at.gate();
        let outcome = gate.queues().arrive(gate, order, began, self.up_to, waker);
        self.follow(outcome)
    }

    fn look(&mut self, ticket: Ticket, waker: &Waker) -> Option<Next<'a, T>> {
        let gate = self.at.gate();
        let outcome = gate.queues().poll(gate, ticket, waker);
        self.follow(outcome)
    }

    fn follow(&mut self, outcome: WaitOutcome) -> Option<Next<'a, T>> {
        match outcome {
            WaitOutcome::Passed(status, due) => {
                self.stage = Stage::Over;
                Some(Next::Pass(status, due - self.began))
            }
            WaitOutcome::Released(order, booked) => {
                self.order = order;
                self.go(*booked)
            }
            WaitOutcome::Ended(ending) => Some(self.stop(*ending)),
            WaitOutcome::Waits(ticket, until) => {
                self.stage = Stage::Queued(self.restarts(), ticket);
                Some(Next::Sleep(until))
            }
        }
    }

    /// Where nobody waits and there is room. What is decided by a word has been tried already.
    fn try_without_queue(&self, now: Time, began: Time) -> Option<Booked> {
        let gate = self.at.gate();
        let by_word = |toll| matches!(gate.turns(toll), Turns::Booked);
        if gate.queues().any() || matches!(&self.order, Order::One(toll) if by_word(&toll.bucket)) {
            return None;
        }
        match gate.ask(&self.order, Timing::release(now, began, self.up_to)) {
            Asked::Granted(booked) => Some(booked),
            Asked::Denied(_) | Asked::Unknown(_) => None,
        }
    }

    /// Charged: it goes, once its pace lets it.
    fn go(&mut self, booked: Booked) -> Option<Next<'a, T>> {
        let (gate, now) = (self.at.gate(), self.at.gate().now());
        if booked.due <= now {
            self.stage = Stage::Over;
            return Some(self.take(booked));
        }
        let renews_at = gate::renews_at(gate, self.order.tolls(), &booked, now);
        self.stage = Stage::Delayed(Box::new(Delayed { booked, renews_at, restarts: self.restarts() }));
        None
    }

    fn await_pace(&mut self) -> Option<Next<'a, T>> {
        let gate = self.at.gate();
        let Stage::Delayed(delayed) = &mut self.stage else { return None };
        let Delayed { booked, renews_at, restarts } = &mut **delayed;
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
                let restarts = *restarts + 1;
                self.stage = Stage::Fresh(restarts);
                return (restarts > RESTARTS).then(|| self.refuse_lost());
            }
            *renews_at = gate::renews_at(gate, self.order.tolls(), booked, now);
        }
        if is_due {
            let Stage::Delayed(delayed) = std::mem::replace(&mut self.stage, Stage::Over) else {
                return None;
            };
            return Some(self.take(delayed.booked));
        }
        Some(Next::Sleep([Some(booked.due), *renews_at].into_iter().flatten().min()))
    }

    /// The turn that it has, to be used.
    fn take(&mut self, booked: Booked) -> Next<'a, T> {
        let waited = booked.due - self.began;
        if let (Few::One(status), None) = (&booked.statuses, booked.permit) {
            return Next::Pass(*status, waited);
        }
        let order = std::mem::take(&mut self.order);
        Next::Go(Reservation::new(self.at.clone(), order, booked), waited)
    }

    fn refuse_lost(&mut self) -> Next<'a, T> {
        let gate = self.at.gate();
        let waited = gate.now() - self.began;
        let statuses = gate.peek(&self.order);
        let refused = Refused::new(Reason::TimedOut { waited }, &self.order, 0, statuses);
        self.stop(Ending::Refused(refused))
    }

    fn stop(&mut self, ending: Ending) -> Next<'a, T> {
        self.stage = Stage::Over;
        Next::Stop(ending)
    }
}

/// Whoever stops waiting leaves its queue. What a pace delays was charged when it came, and is spent; slots come back.
impl<T: WaitAt> Drop for WaiterHandle<'_, T> {
    fn drop(&mut self) {
        match &self.stage {
            Stage::Unpolled | Stage::Fresh(_) | Stage::Over => {}
            Stage::Queued(_, ticket) => self.gate().queues().leave(self.gate(), *ticket),
            Stage::Delayed(delayed) => {
                let (gate, tolls) = (self.gate(), self.order.tolls());
                gate::release_slots(gate, tolls, &delayed.booked);
            }
        }
    }
}
