//! Waiting at one bucket.

use super::Limiter;
use crate::{
    clock::Clock,
    decision::Status,
    few::Few,
    step::{
        Mode, State, Step,
        concurrency::PermitId,
        taken::{LaterCharges, ReturnReason, Taken, Trace},
        turns::Turns,
    },
    store::Edition,
    sync::{
        Ordering::{Acquire, Relaxed, Release},
        Word,
    },
    time::Time,
    wait::{
        Asked, At, Bucket, Gate, HasGate, Order, Permit, Refused, Reservation, Timing, Toll, View, Wait,
        WaitAt, WaitQueues,
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

impl<C: Clock + Send + Sync, G> Wait<'_, Limiter<C>, G> {
    /// Waits for so many units.
    pub fn cost(self, cost: u32) -> Self {
        self.set_cost(cost)
    }
}

impl<C: Clock + Send + Sync> Reservation<'_, Limiter<C>> {
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
    Order::one(Toll { bucket: Bucket::Only, cost: cost as u64, up_to: None })
}

impl<C: Clock> Limiter<C> {
    /// A charge that does not wait, while others may: it does not overtake them.
    #[cold]
    pub(super) fn decide_behind_queue(&self, cost: u32, now: Time, mode: Mode) -> Status {
        let decide = |cost, mode| self.decide_locked(&mut self.rest(), cost, None, now, mode).0;
        self.queues.serve(self, now);
        let step = self.numbers.step();
        let look = || (!step.turns().is_slots()).then(|| self.view());
        match self.queues.goes_at(Bucket::Only.queue(), cost, now, look).filter(|_| cost > 0) {
            None => decide(cost, mode),
            Some(goes) => {
                let in_so_long = goes.map(|goes| goes.pass_at(step.patience()).nanos_since(now));
                decide(cost, Mode::Peek).behind(decide(0, Mode::Peek), in_so_long)
            }
        }
    }

    /// Books by the word alone, where nothing else decides and nobody is at it. `None` is not an answer: ask at rest.
    fn book_word(&self, cost: u32, up_to: u64, now: Time) -> Option<(Status, Taken)> {
        let (epoch, returned) = (self.epoch.load(Acquire), self.returned.load(Acquire));
        let (edition, narrow) = self.numbers.read();
        let word = Word(&self.hot.word);
        let value = word.glance()?;
        let narrow = narrow?;
        let (status, next) = narrow.ask(value, now, cost, Some(up_to)).ok()?;
        let trace = Trace::After(narrow.widen(next, self.birth));
        let taken = Taken { units: cost, trace, epoch, returned, ..Taken::default() };
        if status.is_deny() || cost == 0 {
            return self.numbers.is_current(edition).then_some((status, taken));
        }
        self.write_word(edition, value, next, || true).then(|| {
            if !C::MONOTONIC {
                self.hot.latest.fetch_max(now.as_nanos(), Relaxed);
            }
            (status, taken)
        })
    }

    /// Whether there was no reset or change since.
    fn is_of_now(&self, taken: &Taken) -> bool {
        self.epoch.load(Acquire) == taken.epoch
    }

    /// Writes the word, if it and the numbers are still what the new one was made from, and `may` says so under the lock.
    fn write_word(&self, edition: Edition, value: u64, next: u64, may: impl FnOnce() -> bool) -> bool {
        let word = Word(&self.hot.word);
        if !word.try_lock(value) {
            return false;
        }
        let current = self.numbers.is_current(edition) && may();
        word.unlock(if current { next } else { value });
        current
    }

    fn view(&self) -> View {
        let mut rest = self.rest();
        let now = self.never_back(self.clock.now());
        let banned_for = rest.banned_until.nanos_since(now);
        let (granted, step) = (rest.granted, Arc::clone(&self.numbers.step()));
        let mut view = self.with_state(&mut rest, now, |_, state, at| View {
            step,
            state: state.clone(),
            now,
            at,
            granted,
        });
        view.skip(banned_for);
        view
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
        let Some(toll) = order.tolls.first() else {
            return Asked::new(Few::Many(Vec::new()), Few::Many(Vec::new()), None, now);
        };
        let (units, up_to) = (toll.units(), timing.patience(toll, self.numbers.step().turns()));
        let booked = match timing.mode {
            Mode::Charge => self.book_word(units, up_to, now),
            Mode::Peek | Mode::Release => None,
        };
        let (status, taken) = booked
            .unwrap_or_else(|| self.decide_locked(&mut self.rest(), units, Some(up_to), now, timing.mode));
        Asked::new(Few::One(status), Few::One(taken), status.permit, now)
    }

    fn ask_quickly(&self, order: &Order) -> Option<Status> {
        let units = u32::try_from(order.tolls.first()?.cost).ok()?;
        let now = self.never_back(self.clock.now());
        let status = self.try_word(units, now, Mode::Charge).ok().filter(Status::is_allow)?;
        if !C::MONOTONIC && units > 0 {
            self.hot.latest.fetch_max(now.as_nanos(), Relaxed);
        }
        Some(status)
    }

    fn peek(&self, order: &Order) -> Few<Status> {
        let now = self.never_back(self.clock.now());
        let peek =
            |toll: &Toll| self.decide_locked(&mut self.rest(), toll.units(), Some(0), now, Mode::Peek).0;
        order.tolls.iter().map(peek).collect()
    }

    fn look(&self, _: &Bucket) -> Option<View> {
        Some(self.view())
    }

    fn turns(&self, _: &Bucket) -> Turns {
        self.numbers.step().turns()
    }

    fn first_expiry(&self, _: &Bucket, at: Time) -> Option<Time> {
        let first_in = |_: &Step, state: &mut State, at| match state {
            State::Holders(holders) => holders.first_in(at),
            _ => None,
        };
        let nanos = self.with_state(&mut self.rest(), at, first_in)?;
        Some(at + Duration::from_nanos(nanos))
    }

    fn add_waiter(&self, _: &Bucket) {
        if !self.parked.load(Acquire) {
            self.update(|_, _, _| ());
        }
    }

    fn remove_waiter(&self, _: &Bucket) {
        if !self.queues.any() {
            self.update(|_, _, _| ());
        }
    }

    fn give_back(&self, _: &Bucket, taken: &Taken, reason: ReturnReason) -> u32 {
        let mut rest = self.rest();
        rest.granted = rest.granted.saturating_add(taken.granted);
        let given = self.with_state(&mut rest, self.clock.now(), |step, state, at| {
            if !self.is_of_now(taken) {
                return 0;
            }
            // Under the mutex: nobody else writes it.
            let returned = self.returned.load(Acquire);
            let later = LaterCharges { returned: taken.returned_since(returned), reason };
            let given = step.give_back(state, at, taken, later);
            self.returned.store(returned.wrapping_add(given.counted), Release);
            given.units
        });
        taken.granted + given
    }

    fn owe(&self, _: &Bucket, units: u32) {
        self.update(|step, state, at| step.owe(state, at, units));
    }

    fn leave(&self, _: &Bucket, permit: PermitId) {
        self.leave_slots(permit);
    }

    fn renew(&self, _: &Bucket, permit: PermitId) -> bool {
        Self::renew(self, permit)
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
