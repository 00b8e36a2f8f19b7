//! Waiting at one bucket.

use super::Limiter;
use crate::{
    clock::Clock,
    decision::Status,
    few::Few,
    slot::{ChargeRequest, LockedSlot, Missing, SlotExtras},
    step::{Mode, taken::Taken, turns::Turns},
    sync::{
        Ordering::{Acquire, Relaxed},
        hold,
    },
    time::Time,
    wait::{
        Asked, At, Bucket, Gate, HasGate, Order, Permit, Refused, Reservation, Timing, Toll, Wait, WaitAt,
        WaitQueues,
    },
};
use std::{sync::Arc, time::Duration};

impl<C: Clock + Send + Sync> Limiter<C> {
    /// Waits for one unit in the bucket's queue, first in, first out. Await it, or call [`blocking`](Wait::blocking).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate::{Limiter, Rate, TokenBucket};
    /// let limiter = Limiter::new(TokenBucket::new(Rate::per_second(1000)?, 10)?);
    /// limiter.wait().blocking()?;
    /// limiter.wait().cost(5).up_to(Duration::from_millis(200)).blocking()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// On a concurrency limit it waits for a slot and does not hold it: that is [`enter`](Self::enter).
    pub const fn wait(&self) -> Wait<'_, Self> {
        Wait::new(At::Borrowed(self), order(1))
    }

    /// As [`wait`](Self::wait), to be kept in a struct or spawned: it shares the limiter instead of borrowing it.
    pub fn wait_owned<'a>(self: &Arc<Self>) -> Wait<'a, Self> {
        Wait::new(At::Shared(Arc::clone(self)), order(1))
    }

    /// Waits as [`wait`](Self::wait) does, and holds the slots of a concurrency limit until the permit is dropped.
    pub const fn enter(&self) -> Wait<'_, Self, Permit<'_>> {
        Wait::new(At::Borrowed(self), order(1))
    }

    /// As [`enter`](Self::enter), with a permit that may outlive the borrow: to be kept beside a connection, or in the body
    /// of a response.
    pub fn enter_owned<'a>(self: &Arc<Self>) -> Wait<'a, Self, Permit<'a>> {
        Wait::new(At::Shared(Arc::clone(self)), order(1))
    }

    /// Books `cost` units, to be used when the reservation is due, within `up_to`.
    ///
    /// # Errors
    /// Where the turn would come later, or never, or others wait in the queue; nothing is charged then. A limit that cannot book
    /// (a window, a log, a counter, slots) refuses where it has no room now.
    pub fn reserve(&self, cost: u32, up_to: Duration) -> Result<Reservation<'_, Self>, Refused> {
        Reservation::book(At::Borrowed(self), order(cost), up_to)
    }

    /// As [`reserve`](Self::reserve), with a reservation that may outlive the borrow.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    pub fn reserve_owned<'a>(
        self: &Arc<Self>,
        cost: u32,
        up_to: Duration,
    ) -> Result<Reservation<'a, Self>, Refused>
    where
        C: 'a,
    {
        Reservation::book(At::Shared(Arc::clone(self)), order(cost), up_to)
    }
}

/// A limiter at which one waits for one bucket at a time.
pub trait SingleBucket: WaitAt {}

impl<C: Clock + Send + Sync> SingleBucket for Limiter<C> {}

impl<T: SingleBucket, G> Wait<'_, T, G> {
    /// Waits for so many units.
    pub fn cost(self, cost: u32) -> Self {
        self.set_cost(cost)
    }
}

impl<T: SingleBucket> Reservation<'_, T> {
    /// Cancels the reservation and returns how many units came back: its cost, less what was charged after it. Reservations made
    /// later keep their times, so units that they depend on do not come back. Of a smooth limit everything comes back if
    /// nothing was charged after it, otherwise nothing.
    ///
    /// Once it is due, what was charged is spent (see [`settle`](Self::settle)), and only slots come back.
    pub fn cancel(self) -> u32 {
        self.cancel_each().first().copied().unwrap_or(0)
    }

    /// Pays what it really cost and returns how many units came back: what was charged above that comes back, what is missing
    /// becomes debt that later turns wait for. Zero gives everything back, also once it is due: for work that failed. Before
    /// it is due, at most as many come back as by cancelling.
    pub fn settle(self, actual: u32) -> u32 {
        self.settle_each(&[actual]).first().copied().unwrap_or(0)
    }
}

const fn order(cost: u32) -> Order {
    Order::One(Toll { bucket: Bucket::Only, cost: cost as u64, up_to: None })
}

impl<C: Clock> Limiter<C> {
    /// A charge that does not wait, while others may: it does not overtake them.
    #[cold]
    pub(super) fn decide_behind_queue(&self, cost: u32, now: Time, mode: Mode) -> Status {
        let decide = |cost: u32, mode| {
            self.charge_locked(&ChargeRequest { cost: cost.into(), up_to: None, mode }, now, None)
        };
        self.queues.serve(self, now);
        let (gate, patience): (&dyn Gate, _) = (self, self.parameters.step().patience());
        let look = || gate.look(&Bucket::Only);
        match self.queues.passes_in(Bucket::Only.queue(), cost, patience, now, look).filter(|_| cost > 0) {
            None => decide(cost, mode),
            Some(nanos) => decide(cost, Mode::Peek).behind(decide(0, Mode::Peek), nanos),
        }
    }
}

impl<C: Clock> Gate for Limiter<C> {
    fn now(&self) -> Time {
        self.clock.now()
    }

    fn park(&self, until: Option<Time>) {
        self.clock.park(until);
    }

    fn queues(&self) -> &WaitQueues {
        &self.queues
    }

    fn ask(&self, order: &Order, timing: Timing) -> Asked {
        let now = self.never_back(timing.at);
        let Some(toll) = order.tolls().first() else {
            return Asked::new(Few::Many(Vec::new()), Few::Many(Vec::new()), None, now);
        };
        let up_to = timing.patience(toll, self.parameters.step().turns());
        let mut taken = Taken::default();
        let request = ChargeRequest { cost: toll.cost, up_to: Some(up_to), mode: timing.mode };
        let status = self.charge_locked(&request, now, Some(&mut taken));
        Asked::new(Few::One(status), Few::One(taken), status.permit, now)
    }

    fn release_one(&self, toll: &Toll, timing: Timing) -> Option<(Status, Time)> {
        let now = self.never_back(timing.at);
        let rest = &mut *hold(&self.rest);
        let is_alone = self.parked.load(Acquire) && rest.extras == SlotExtras::default();
        let narrow = self.parameters.read().1.filter(|it| is_alone && it.turns() == Turns::Booked)?;
        let (status, next) = narrow.ask_release(rest.word, now, toll.units(), None)?;
        if !status.is_allow() || toll.cost == 0 {
            return None;
        }
        rest.word = next;
        if !C::MONOTONIC {
            self.hot.latest.fetch_max(now.as_nanos(), Relaxed);
        }
        Some((status, now))
    }

    fn ask_quickly(&self, order: &Order) -> Option<Status> {
        let units = u32::try_from(order.tolls().first()?.cost).ok()?;
        let now = self.never_back(self.clock.now());
        let status = self.try_single_word(units, now, Mode::Charge).ok().filter(Status::is_allow)?;
        if !C::MONOTONIC && units > 0 {
            self.hot.latest.fetch_max(now.as_nanos(), Relaxed);
        }
        Some(status)
    }

    fn turns(&self, _: &Bucket) -> Turns {
        self.parameters.step().turns()
    }

    fn add_waiter(&self, _: &Bucket) {
        if !self.parked.load(Acquire) {
            self.with_slot(self.clock.now(), |_| ());
        }
    }

    fn remove_waiter(&self, _: &Bucket) {
        if !self.queues.any() {
            self.with_slot(self.clock.now(), |_| ());
        }
    }

    fn with_slot(&self, _: &Bucket, now: Time, _: Missing, act: &mut dyn FnMut(&mut LockedSlot<'_>)) {
        Self::with_slot(self, now, act);
    }
}

impl<C: Clock + Send + Sync> HasGate for Limiter<C> {
    fn gate(&self) -> &dyn Gate {
        self
    }
}

impl<C: Clock + Send + Sync> WaitAt for Limiter<C> {
    type Clock = C;
    type Error = Refused;

    fn timer(&self) -> &C {
        &self.clock
    }
}
