//! Waiting at one key's bucket: its store's gate, under the limiter's own name.

use super::KeyedLimiter;
use crate::{
    clock::Clock,
    key::Key,
    limiter::SingleBucket,
    wait::{At, Gate, HasGate, Order, Permit, Refused, Reservation, Wait, WaitAt},
};
use std::{sync::Arc, time::Duration};

impl<C: Clock + Send + Sync> KeyedLimiter<C> {
    /// Waits for one unit of `key` in its queue, first in, first out. Await it, or call [`blocking`](Wait::blocking).
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
    /// Where the turn would come later, or never, or others wait in the queue; nothing is charged then. A limit that cannot book
    /// (a window, a log, a counter, slots) refuses where it has no room now.
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

impl<C: Clock + Send + Sync> SingleBucket for KeyedLimiter<C> {}

impl<C: Clock + Send + Sync> HasGate for KeyedLimiter<C> {
    fn gate(&self) -> &dyn Gate {
        &self.store
    }
}

impl<C: Clock + Send + Sync> WaitAt for KeyedLimiter<C> {
    type Clock = C;
    type Error = Refused;

    fn timer(&self) -> &C {
        self.store.clock()
    }
}
