//! Waiting at one bucket.

use super::{Charging, Limiter};
use crate::{
    clock::Clock,
    decision::Status,
    few::Few,
    step::{
        State,
        concurrency::PermitId,
        taken::{Taken, Trace},
        turns::Turns,
    },
    store::Edition,
    sync::{
        Ordering::{Acquire, Relaxed},
        Word,
    },
    time::Time,
    wait::{
        Asked, At, Bucket, Changed, Gate, Goes, Order, Permit, Refused, Reservation, Room, Toll, View, Wait,
        WaitAt,
    },
};
use std::{sync::Arc, time::Duration};

impl<C: Clock + Send + Sync> Limiter<C> {
    /// Waits for one unit, first come, first served. Await it, or call [`blocking`](Wait::blocking).
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
    /// Where the turn would come later, or never; nothing is charged then. A limit that cannot book (a window, a log, a
    /// counter, slots) refuses where it has no room now.
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
    /// Pays what it really cost: what was booked above that comes back, what is missing becomes debt that later turns wait
    /// for. Zero gives everything back, also once it is due: for work that failed.
    pub fn settle(self, actual: u32) {
        self.settle_each(&[actual]);
    }
}

const fn order(cost: u32) -> Order {
    Order::one(Toll { bucket: Bucket::Only, cost: cost as u64, up_to: None })
}

impl<C: Clock> Limiter<C> {
    /// A charge that does not wait, while others do: it does not overtake them.
    #[cold]
    pub(super) fn decide_behind_the_line(&self, cost: u32, now: Time, charging: Charging) -> Status {
        let decide = |cost, charging| self.decide_at_rest(&mut self.rest(), cost, None, now, charging).0;
        if self.room.watch(Bucket::Only.line(), now) == Changed::Yes {
            self.update(|_, _, _| ());
        }
        match self.behind_the_line(cost, now) {
            None => decide(cost, charging),
            Some(goes) => {
                let patience = self.numbers.step().patience();
                let in_so_long = goes.map(|goes| goes.pass_at(patience).nanos_since(now));
                decide(cost, Charging::No).behind(decide(0, Charging::No), in_so_long)
            }
        }
    }

    /// When a charge could go behind the line: see [`Gate::goes_at`].
    fn behind_the_line(&self, units: u32, now: Time) -> Option<Option<Goes>> {
        let slots = self.numbers.step().turns().is_slots();
        self.room.goes_at(Bucket::Only.line(), units, now, || (!slots).then(|| self.view()))
    }

    /// Books by the word alone, where nothing else decides and nobody is at it. `None` is not an answer: ask at rest.
    fn book_word(&self, cost: u32, up_to: u64, now: Time) -> Option<(Status, Taken)> {
        let epoch = self.epoch.load(Acquire);
        let (edition, narrow) = self.numbers.read();
        let word = Word(&self.hot.word);
        let value = word.glance()?;
        let narrow = narrow?;
        let (status, next) = narrow.ask(value, now, cost, Some(up_to)).ok()?;
        let trace = Trace::After(narrow.widen(next, self.birth));
        let taken = Taken { units: cost, trace, epoch, ..Taken::default() };
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

    /// Gives back by the word alone, likewise. Whether it did; then there is no line, and nobody to be told.
    fn give_back_word(&self, taken: &Taken) -> bool {
        let (edition, narrow) = self.numbers.read();
        let now = self.never_back(self.clock.now());
        let Trace::After(after) = taken.trace else { return false };
        let Some((narrow, value)) = narrow.zip(Word(&self.hot.word).glance()) else { return false };
        let next = narrow.give_back(value, now, narrow.narrow(after, self.birth), taken.units);
        next.is_ok_and(|next| self.write_word(edition, value, next, || self.is_of_now(taken)))
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

    /// Says that there may be room: whoever is first in line asks again.
    pub(super) fn nudge(&self) {
        self.room.nudge(Bucket::Only.line(), self.clock.now());
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

impl<C: Clock + Send + Sync> Gate for Limiter<C> {
    fn now(&self) -> Time {
        self.clock.now()
    }

    fn park(&self, until: Option<Time>) {
        self.clock.park(until);
    }

    fn room(&self) -> &Room {
        &self.room
    }

    fn ask(&self, order: &Order, waited: u64, left: u64) -> Asked {
        let now = self.never_back(self.clock.now());
        let Some(toll) = order.tolls.first() else {
            return Asked::new(Few::Many(Vec::new()), Few::Many(Vec::new()), None, now);
        };
        let (units, up_to) = (toll.units(), toll.patience(waited, left));
        let (status, taken) = self
            .book_word(units, up_to, now)
            .unwrap_or_else(|| self.decide_at_rest(&mut self.rest(), units, Some(up_to), now, Charging::Yes));
        Asked::new(Few::One(status), Few::One(taken), status.permit, now)
    }

    fn ask_quickly(&self, order: &Order) -> Option<Status> {
        let units = u32::try_from(order.tolls.first()?.cost).ok()?;
        let now = self.never_back(self.clock.now());
        let status = self.try_word(units, now, Charging::Yes).ok().filter(Status::is_allow)?;
        if !C::MONOTONIC && units > 0 {
            self.hot.latest.fetch_max(now.as_nanos(), Relaxed);
        }
        Some(status)
    }

    fn peek(&self, order: &Order) -> Few<Status> {
        order.tolls.iter().map(|toll| self.peek(toll.units())).collect()
    }

    fn goes_at(&self, _: &Bucket, units: u32, now: Time) -> Option<Option<Goes>> {
        self.behind_the_line(units, now)
    }

    fn first_expiry(&self, _: &Bucket) -> Option<u64> {
        self.update(|_, state, at| match state {
            State::Holders(holders) => holders.first_in(at),
            _ => None,
        })
    }

    fn look(&self, _: &Bucket) -> Option<View> {
        Some(self.view())
    }

    fn turns(&self, _: &Bucket) -> Turns {
        self.numbers.step().turns()
    }

    fn line_forms(&self, _: &Bucket) {
        self.update(|_, _, _| ());
    }

    fn line_ends(&self, _: &Bucket) {
        self.update(|_, _, _| ());
    }

    fn give_back(&self, _: &Bucket, taken: &Taken) -> bool {
        if taken.granted == 0 && self.give_back_word(taken) {
            return true;
        }
        let given = {
            let mut rest = self.rest();
            rest.granted = rest.granted.saturating_add(taken.granted);
            self.with_state(&mut rest, self.clock.now(), |step, state, at| {
                let of_now = self.is_of_now(taken);
                if of_now {
                    step.give_back(state, at, taken);
                }
                of_now
            })
        };
        self.nudge();
        given || taken.granted > 0
    }

    fn owe(&self, _: &Bucket, units: u32) {
        self.update(|step, state, at| step.owe(state, at, units));
    }

    fn leave(&self, _: &Bucket, permit: PermitId) {
        Self::leave(self, permit);
    }

    fn renew(&self, _: &Bucket, permit: PermitId) -> bool {
        Self::renew(self, permit)
    }
}

impl<C: Clock + Send + Sync> WaitAt for Limiter<C> {
    type Clock = C;
    type Error = Refused;

    fn timer(&self) -> &C {
        &self.clock
    }
}
