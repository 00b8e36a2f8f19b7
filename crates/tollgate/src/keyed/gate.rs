//! Waiting at one key's bucket: its store's gate, under the limiter's own name.

use super::KeyedLimiter;
use crate::{
    clock::Clock,
    decision::Status,
    few::Few,
    key::Key,
    step::{concurrency::PermitId, taken::Taken, turns::Turns},
    time::Time,
    wait::{Asked, At, Bucket, Gate, Goes, Order, Permit, Refused, Reservation, Room, View, Wait, WaitAt},
};
use std::{sync::Arc, time::Duration};

impl<C: Clock + Send + Sync> KeyedLimiter<C> {
    /// Waits for one unit of `key`, first come, first served. Await it, or call [`blocking`](Wait::blocking).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate::{KeyedLimiter, Rate, TokenBucket};
    /// let limiter = KeyedLimiter::new(TokenBucket::new(Rate::per_second(1000)?, 10)?);
    /// limiter.wait("alice").cost(3).up_to(Duration::from_millis(200)).blocking()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait<'k>(&self, key: impl Into<Key<'k>>) -> Wait<'_, Self> {
        Wait::new(At::Borrowed(self), self.order(key.into()))
    }

    /// As [`wait`](Self::wait), to be kept in a struct or spawned: it shares the limiter instead of borrowing it.
    pub fn wait_owned<'a, 'k>(self: &Arc<Self>, key: impl Into<Key<'k>>) -> Wait<'a, Self> {
        Wait::new(At::Shared(Arc::clone(self)), self.order(key.into()))
    }

    /// Waits as [`wait`](Self::wait) does, and holds the slots of a concurrency limit until the permit is dropped.
    pub fn enter<'k>(&self, key: impl Into<Key<'k>>) -> Wait<'_, Self, Permit<'_>> {
        Wait::new(At::Borrowed(self), self.order(key.into()))
    }

    /// As [`enter`](Self::enter), with a permit that may outlive the borrow.
    pub fn enter_owned<'a, 'k>(self: &Arc<Self>, key: impl Into<Key<'k>>) -> Wait<'a, Self, Permit<'a>> {
        Wait::new(At::Shared(Arc::clone(self)), self.order(key.into()))
    }

    /// Books `cost` units of `key`, to be used when the reservation is due, within `up_to`.
    ///
    /// # Errors
    /// Where the turn would come later, or never; nothing is charged then. A limit that cannot book (a window, a log, a
    /// counter, slots) refuses where it has no room now.
    pub fn reserve<'k>(
        &self,
        key: impl Into<Key<'k>>,
        cost: u32,
        up_to: Duration,
    ) -> Result<Reservation<'_, Self>, Refused> {
        Reservation::book(At::Borrowed(self), self.order(key.into()).cost(cost), up_to)
    }

    /// As [`reserve`](Self::reserve), with a reservation that may outlive the borrow.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    pub fn reserve_owned<'a, 'k>(
        self: &Arc<Self>,
        key: impl Into<Key<'k>>,
        cost: u32,
        up_to: Duration,
    ) -> Result<Reservation<'a, Self>, Refused>
    where
        C: 'a,
    {
        Reservation::book(At::Shared(Arc::clone(self)), self.order(key.into()).cost(cost), up_to)
    }

    fn order(&self, key: Key<'_>) -> Order {
        self.store.order_one(&self.limit, self.store.print(self.limit.entry(), key))
    }
}

impl<C: Clock + Send + Sync, G> Wait<'_, KeyedLimiter<C>, G> {
    /// Waits for so many units.
    pub fn cost(self, cost: u32) -> Self {
        self.set_cost(cost)
    }
}

impl<C: Clock + Send + Sync> Reservation<'_, KeyedLimiter<C>> {
    /// Pays what it really cost: what was booked above that comes back, what is missing becomes debt that later turns wait
    /// for. Zero gives everything back, also once it is due: for work that failed.
    pub fn settle(self, actual: u32) {
        self.settle_each(&[actual]);
    }
}

impl<C: Clock + Send + Sync> Gate for KeyedLimiter<C> {
    fn now(&self) -> Time {
        self.store.now()
    }

    fn park(&self, until: Option<Time>) {
        self.store.park(until);
    }

    fn room(&self) -> &Room {
        self.store.room()
    }

    fn ask(&self, order: &Order, waited: u64, left: u64) -> Asked {
        self.store.ask(order, waited, left)
    }

    fn ask_quickly(&self, order: &Order) -> Option<Status> {
        self.store.ask_quickly(order)
    }

    fn peek(&self, order: &Order) -> Few<Status> {
        Gate::peek(&self.store, order)
    }

    fn goes_at(&self, bucket: &Bucket, units: u32, now: Time) -> Option<Option<Goes>> {
        self.store.goes_at(bucket, units, now)
    }

    fn first_expiry(&self, bucket: &Bucket) -> Option<u64> {
        self.store.first_expiry(bucket)
    }

    fn look(&self, bucket: &Bucket) -> Option<View> {
        self.store.look(bucket)
    }

    fn turns(&self, bucket: &Bucket) -> Turns {
        self.store.turns(bucket)
    }

    fn line_forms(&self, bucket: &Bucket) {
        self.store.line_forms(bucket);
    }

    fn line_ends(&self, bucket: &Bucket) {
        self.store.line_ends(bucket);
    }

    fn give_back(&self, bucket: &Bucket, taken: &Taken) -> bool {
        self.store.give_back(bucket, taken)
    }

    fn owe(&self, bucket: &Bucket, units: u32) {
        self.store.owe(bucket, units);
    }

    fn leave(&self, bucket: &Bucket, permit: PermitId) {
        Gate::leave(&self.store, bucket, permit);
    }

    fn renew(&self, bucket: &Bucket, permit: PermitId) -> bool {
        Gate::renew(&self.store, bucket, permit)
    }
}

impl<C: Clock + Send + Sync> WaitAt for KeyedLimiter<C> {
    type Clock = C;
    type Error = Refused;

    fn timer(&self) -> &C {
        self.store.clock()
    }
}
