//! One limit, a bucket a key. Waiting at one is in [`gate`].

mod gate;

use crate::{
    charge::Charge,
    clock::{Clock, SystemClock},
    decision::Status,
    key::Key,
    limit::Limit,
    step::concurrency::PermitId,
    store::{Bounds, LimitHandle, MemoryStore, StoreError},
    time::Time,
};
use std::time::Duration;

/// One limit with a bucket for every key, in bounded memory.
///
/// ```
/// use tollgate::{KeyedLimiter, Rate, TokenBucket};
///
/// let limiter = KeyedLimiter::new(TokenBucket::new(Rate::per_second(10)?, 1)?);
/// assert!(limiter.check("alice").is_allow());
/// assert!(limiter.check("alice").is_deny());
/// assert!(limiter.check("bob").is_allow());
/// # Ok::<(), tollgate::LimitError>(())
/// ```
#[derive(Debug)]
pub struct KeyedLimiter<C = SystemClock> {
    store: MemoryStore<C>,
    limit: LimitHandle,
}

impl KeyedLimiter {
    /// A limiter for a million keys on the machine's clock.
    #[must_use]
    pub fn new(limit: impl Into<Limit>) -> Self {
        Self::with_bounds(limit, Bounds::default())
    }

    /// A limiter with these bounds on the machine's clock.
    #[must_use]
    pub fn with_bounds(limit: impl Into<Limit>, bounds: Bounds) -> Self {
        Self::with_clock(limit, bounds, SystemClock::new())
    }
}

impl<C: Clock> KeyedLimiter<C> {
    /// A limiter with these bounds on this clock, born now.
    #[must_use]
    pub fn with_clock(limit: impl Into<Limit>, bounds: Bounds, clock: C) -> Self {
        let store = MemoryStore::with_clock(bounds, clock);
        // A store that has just been made has room for a limit.
        #[expect(clippy::unwrap_used)]
        let limit = store.add("", limit).unwrap();
        Self { store, limit }
    }

    /// Charges one unit for `key`.
    #[inline]
    pub fn check<'k>(&self, key: impl Into<Key<'k>>) -> Status {
        self.check_n(key, 1)
    }

    /// Charges `cost` units for `key`; all of them, or none.
    #[inline]
    pub fn check_n<'k>(&self, key: impl Into<Key<'k>>, cost: u32) -> Status {
        let now = self.store.clock().now();
        self.store.decide(self.limit.entry(), key.into(), cost, now)
    }

    /// Charges at the caller's own time, a point on this limiter's clock. A time before one already charged at counts as
    /// that one.
    #[inline]
    pub fn check_at<'k>(&self, key: impl Into<Key<'k>>, cost: u32, now: Time) -> Status {
        let status = self.store.decide(self.limit.entry(), key.into(), cost, now);
        if !status.is_deny() && cost > 0 {
            self.limit.entry().remember(now);
        }
        status
    }

    /// What [`check_n`](Self::check_n) would answer, charging nothing.
    pub fn peek<'k>(&self, key: impl Into<Key<'k>>, cost: u32) -> Status {
        self.store.peek_one(self.limit.entry(), key.into(), cost)
    }

    /// Charges one unit for each of `keys`, each by itself, and appends their statuses. Faster than one by one: the
    /// memory of several keys is fetched at a time.
    ///
    /// ```
    /// use tollgate::{Key, KeyedLimiter, Rate, TokenBucket};
    ///
    /// let limiter = KeyedLimiter::new(TokenBucket::new(Rate::per_second(10)?, 1)?);
    /// let mut statuses = Vec::new();
    /// limiter.check_batch(&[Key::from("alice"), Key::from("bob"), Key::from("alice")], &mut statuses);
    /// assert!(statuses[0].is_allow() && statuses[1].is_allow() && statuses[2].is_deny());
    /// # Ok::<(), tollgate::LimitError>(())
    /// ```
    pub fn check_batch(&self, keys: &[Key<'_>], statuses: &mut Vec<Status>) {
        let now = self.store.clock().now();
        self.store.decide_batch(self.limit.entry(), keys, now, statuses);
    }

    /// Takes up to `units` off the newest live use of `key`.
    pub fn refund<'k>(&self, key: impl Into<Key<'k>>, units: u32) {
        ours(self.store.refund(&self.limit, key, units));
    }

    /// Forgets what `key` has used.
    pub fn reset<'k>(&self, key: impl Into<Key<'k>>) {
        ours(self.store.reset(&self.limit, key));
    }

    /// Gives `key` units above the limit, until used.
    pub fn grant<'k>(&self, key: impl Into<Key<'k>>, units: u32) {
        ours(self.store.grant(&self.limit, key, units));
    }

    /// Refuses `key` for this long; zero lifts the ban.
    pub fn ban<'k>(&self, key: impl Into<Key<'k>>, lasting: Duration) {
        ours(self.store.ban(&self.limit, key, lasting));
    }

    /// Gives back what a permit holds; how many units came back.
    pub fn leave<'k>(&self, key: impl Into<Key<'k>>, permit: PermitId) -> u32 {
        let key: Key<'_> = key.into();
        ours(self.store.leave(&[Charge::new(&self.limit, key)], permit))
    }

    /// Lets a permit hold its units for another `max_hold`. Whether it still held them.
    pub fn renew<'k>(&self, key: impl Into<Key<'k>>, permit: PermitId) -> bool {
        let key: Key<'_> = key.into();
        ours(self.store.renew(&[Charge::new(&self.limit, key)], permit))
    }

    /// Changes the limit's numbers, keeping what was consumed. Charges wait meanwhile: some tens of nanoseconds for each key
    /// in use.
    pub fn change(&self, to: impl Into<Limit>) {
        ours(self.store.change(&self.limit, to));
    }

    /// How many live keys were evicted to make room.
    #[must_use]
    pub fn evictions(&self) -> u64 {
        self.store.evictions()
    }

    /// How many charges were refused for want of room.
    #[must_use]
    pub fn refusals_when_full(&self) -> u64 {
        self.store.refusals_when_full()
    }

    /// Memory that the table may come to, logs and permits apart.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.store.table_bytes()
    }

    /// The clock that decides.
    #[must_use]
    pub const fn clock(&self) -> &C {
        self.store.clock()
    }
}

/// The limiter's own store has its own limit from beginning to end: nobody else can reach it.
fn ours<T>(result: Result<T, StoreError>) -> T {
    result.expect("a limiter's own store knows its own limit")
}
