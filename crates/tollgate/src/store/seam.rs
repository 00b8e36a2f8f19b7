//! The one seam: everything above asks a [`Store`], everything below answers as one.
//!
//! A memory store answers without awaiting and has plain methods of the same names; the trait is for whoever does not know,
//! or care, where the state lives.

use super::{LimitHandle, MemoryStore, StoreError};
use crate::{
    charge::Charge,
    clock::{Clock, Sleep, Timer},
    decision::{OnFailure, SetStatus, Status},
    key::Key,
    limit::Limit,
    step::concurrency::PermitId,
    wait::{Permit, Refused, Wait, WaitError},
};
use std::{
    borrow::Cow,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

/// Where limits and what was used of them live. Sealed: only the stores of this project are.
pub trait Store: Sealed + Send + Sync {
    /// How the store names a limit. Clones name the same one.
    type Limit: Clone + fmt::Debug + Send + Sync;

    /// Adds a limit, under a name that means the same limit to everybody who shares the store. Where a shared store knows the
    /// name, its limit is changed to these numbers, as by [`change_limit`](Self::change_limit).
    ///
    /// # Errors
    /// Where the store has no room for it, or cannot keep its numbers.
    fn add_named(&self, name: &str, limit: Limit) -> Result<Self::Limit, StoreError>;

    /// Adds limits as [`add_named`](Self::add_named) does, all or none, in time linear in their number.
    ///
    /// # Errors
    /// As [`add_named`](Self::add_named), with the place of the limit that could not be added.
    fn add_all(&self, limits: &[NewLimit<'_>]) -> Result<Vec<Self::Limit>, (usize, StoreError)> {
        let mut added = Vec::with_capacity(limits.len());
        for (place, new) in limits.iter().enumerate() {
            match self.add_named(&new.name, Limit::clone(&new.limit)) {
                Ok(limit) => added.push(limit),
                Err(error) => {
                    self.remove_all(&added);
                    return Err((place, error));
                }
            }
        }
        Ok(added)
    }

    /// Whether the store can keep a limit of these numbers.
    ///
    /// # Errors
    /// Where it cannot, as [`add_named`](Self::add_named).
    fn can_keep(&self, limit: &Limit) -> Result<(), StoreError> {
        let _ = limit;
        Ok(())
    }

    /// Whether a limit's room is the store's to give, and a limit with other room another limit.
    fn gives_room(&self) -> bool {
        false
    }

    /// Forgets a limit that nobody charges any more. A shared store lets its keys expire instead.
    fn remove_limit(&self, limit: &Self::Limit);

    /// Forgets limits as [`remove_limit`](Self::remove_limit) does, in time linear in their number.
    fn remove_all(&self, limits: &[Self::Limit]) {
        limits.iter().for_each(|limit| self.remove_limit(limit));
    }

    /// The same limit, decided in this way while a shared store does not answer. One in memory always answers.
    fn when_failing(&self, limit: &Self::Limit, on_failure: OnFailure) -> Self::Limit {
        let _ = on_failure;
        limit.clone()
    }

    /// The same limit, decided by a shared store itself every time, even where that lets nodes take units ahead. One in
    /// memory always is.
    fn exactly(&self, limit: &Self::Limit) -> Self::Limit {
        limit.clone()
    }

    /// Changes a limit's numbers. What was consumed stays, as each kind of limit promises.
    ///
    /// # Errors
    /// Where the store does not know the limit, or cannot keep the numbers.
    fn change_limit(&self, limit: &Self::Limit, to: Limit) -> Result<(), StoreError>;

    /// Changes limits as [`change_limit`](Self::change_limit) does, in time linear in their number.
    ///
    /// # Errors
    /// As [`change_limit`](Self::change_limit), with the place of the limit that could not be changed; those before it may have
    /// been.
    fn change_all(&self, changes: &[(Self::Limit, Limit)]) -> Result<(), (usize, StoreError)> {
        let change = |(place, (limit, to)): (usize, &(Self::Limit, Limit))| {
            self.change_limit(limit, to.clone()).map_err(|error| (place, error))
        };
        changes.iter().enumerate().try_for_each(change)
    }

    /// Decides a set of charges: all are charged, or none is.
    fn check(&self, charges: &[Charge<'_, Self::Limit>]) -> impl Answer<SetStatus>;

    /// As [`check`](Self::check), where the store can decide without waiting for anybody: in memory always, in a shared store
    /// from units that this node has taken ahead. `None` where only [`check`](Self::check) can decide; nothing is charged then.
    fn check_now(&self, charges: &[Charge<'_, Self::Limit>]) -> Option<Result<SetStatus, StoreError>> {
        let _ = charges;
        None
    }

    /// What [`check`](Self::check) would answer, charging nothing.
    fn peek(&self, charges: &[Charge<'_, Self::Limit>]) -> impl Answer<SetStatus>;

    /// Takes up to `units` off the newest live use of a key.
    fn refund(&self, limit: &Self::Limit, key: Key<'_>, units: u32) -> impl Answer<()>;

    /// Forgets what a key has used. Grants and bans stay.
    fn reset(&self, limit: &Self::Limit, key: Key<'_>) -> impl Answer<()>;

    /// Gives a key `units` above its limit, until used.
    fn grant(&self, limit: &Self::Limit, key: Key<'_>, units: u32) -> impl Answer<()>;

    /// Refuses a key for this long from now. Zero lifts the ban.
    fn ban(&self, limit: &Self::Limit, key: Key<'_>, lasting: Duration) -> impl Answer<()>;

    /// Gives back the slots that `permit` holds under these charges. How many units came back.
    fn leave(&self, charges: &[Charge<'_, Self::Limit>], permit: PermitId) -> impl Answer<u32>;

    /// Lets `permit` hold its slots for another `max_hold` from now. Whether it still held all of them.
    fn renew(&self, charges: &[Charge<'_, Self::Limit>], permit: PermitId) -> impl Answer<bool>;
}

/// A limit to be added to a store.
#[derive(Clone, Debug)]
pub struct NewLimit<'a> {
    /// Its name, which means the same limit to everybody who shares the store.
    pub name: Cow<'a, str>,
    /// Its numbers.
    pub limit: Cow<'a, Limit>,
    /// Room for so many keys of its own, where the store keeps keys in memory: a flood on it then evicts nobody else.
    pub max_keys: Option<u32>,
}

/// A store at which one can wait for a turn, and hold slots.
pub trait Enter: Store {
    /// What somebody holds who is in.
    type Permit: Held;

    /// Waits for a set in the queues of its buckets, charges all of it when it is released, and holds its slots until the permit
    /// is dropped. Dropped before the release, it leaves the queue and is not charged.
    ///
    /// As for a check, a charge that does not say how long it may wait does not, except for the pace of a leaky bucket's delay.
    /// The future owns all that it needs: the charges may go before it is polled.
    fn enter(
        self: &Arc<Self>,
        charges: &[Charge<'_, Self::Limit>],
    ) -> impl Answer<Entered<Self::Permit>> + use<Self>;

    /// Sleeps for this long on the store's clock.
    fn sleep(&self, time: Duration) -> Sleep;
}

/// What the stores of this project are, and what they give out.
#[doc(hidden)]
pub trait Sealed {}

impl<C> Sealed for MemoryStore<C> {}
impl Sealed for Permit<'static> {}

/// Whether somebody is in.
#[derive(Debug)]
#[must_use = "a permit that is dropped gives its slots back"]
pub enum Entered<P> {
    /// All is charged, its turn has come.
    In(P),
    /// Nothing is charged.
    Refused(Refused),
}

/// What somebody holds who is in: slots, until dropped. Where no charge was for slots it holds nothing.
pub trait Held: Sealed + Send + Sync + 'static {
    /// How every charge stood, in the order they were given.
    fn statuses(&self) -> &[Status];

    /// How long it waited for its turn.
    fn waited(&self) -> Duration;

    /// How often it has to be renewed to be kept; `None` where it holds nothing, or renews itself.
    fn renew_every(&self) -> Option<Duration>;

    /// Holds on for another while. Whether nothing was lost until now.
    fn renew(&self) -> bool;

    /// Puts the slots into other hands, which renew them and give them back by this name: from here on nothing is given back
    /// by itself but by `max_hold`. `None` where it holds nothing.
    fn keep(self) -> Option<PermitId>
    where
        Self: Sized;
}

impl<C: Timer + Send + Sync + 'static> Enter for MemoryStore<C> {
    type Permit = Permit<'static>;

    fn enter(self: &Arc<Self>, charges: &[Charge<'_>]) -> impl Answer<Entered<Permit<'static>>> + use<C> {
        MemoryEnter(self.enter_in_time(charges))
    }

    fn sleep(&self, time: Duration) -> Sleep {
        self.clock().sleep_until(self.clock().now() + time)
    }
}

/// A turn in memory. An async block would keep the wait twice.
struct MemoryEnter<C: Clock + Send + Sync + 'static>(Wait<'static, MemoryStore<C>, Permit<'static>>);

impl<C: Timer + Send + Sync + 'static> Future for MemoryEnter<C> {
    type Output = Result<Entered<Permit<'static>>, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let entered = Pin::new(&mut self.0).poll(context);
        entered.map(|entered| entered.map(Entered::In).or_else(Entered::from_error))
    }
}

impl<P> Entered<P> {
    /// From what ended a wait: a refusal is an answer, and everything else an error.
    ///
    /// # Errors
    /// Where the store could not decide.
    pub fn from_error(error: WaitError) -> Result<Self, StoreError> {
        match error {
            WaitError::Refused(refused) => Ok(Self::Refused(refused)),
            WaitError::Store(error) => Err(error),
        }
    }
}

impl Held for Permit<'static> {
    fn statuses(&self) -> &[Status] {
        Self::statuses(self)
    }

    fn waited(&self) -> Duration {
        Self::waited(self)
    }

    fn renew_every(&self) -> Option<Duration> {
        self.max_hold().map(|hold| hold / 3)
    }

    fn renew(&self) -> bool {
        Self::renew(self)
    }

    fn keep(self) -> Option<PermitId> {
        Self::keep(self)
    }
}

/// A future of what a store answers.
pub trait Answer<T>: Future<Output = Result<T, StoreError>> + Send {}

impl<T, F: Future<Output = Result<T, StoreError>> + Send> Answer<T> for F {}

impl<C: Clock + Send + Sync> Store for MemoryStore<C> {
    type Limit = LimitHandle;

    fn add_named(&self, name: &str, limit: Limit) -> Result<LimitHandle, StoreError> {
        self.add(name, limit)
    }

    fn add_all(&self, limits: &[NewLimit<'_>]) -> Result<Vec<LimitHandle>, (usize, StoreError)> {
        let limits = limits.iter().map(|new| (&*new.name, &*new.limit, self.tables_for(new.max_keys)));
        self.add_each(limits).map_err(|error| (0, error))
    }

    fn gives_room(&self) -> bool {
        true
    }

    fn remove_limit(&self, limit: &LimitHandle) {
        // One that the store does not know is gone already.
        let _ = self.remove(limit);
    }

    fn remove_all(&self, limits: &[LimitHandle]) {
        // Those that the store does not know are gone already.
        let _ = self.remove_each(limits);
    }

    fn change_limit(&self, limit: &LimitHandle, to: Limit) -> Result<(), StoreError> {
        self.change(limit, to)
    }

    fn change_all(&self, changes: &[(LimitHandle, Limit)]) -> Result<(), (usize, StoreError)> {
        self.change_limits(changes)
    }

    async fn check(&self, charges: &[Charge<'_>]) -> Result<SetStatus, StoreError> {
        Self::check(self, charges)
    }

    #[inline]
    fn check_now(&self, charges: &[Charge<'_>]) -> Option<Result<SetStatus, StoreError>> {
        Some(Self::check(self, charges))
    }

    async fn peek(&self, charges: &[Charge<'_>]) -> Result<SetStatus, StoreError> {
        Self::peek(self, charges)
    }

    async fn refund(&self, limit: &LimitHandle, key: Key<'_>, units: u32) -> Result<(), StoreError> {
        Self::refund(self, limit, key, units)
    }

    async fn reset(&self, limit: &LimitHandle, key: Key<'_>) -> Result<(), StoreError> {
        Self::reset(self, limit, key)
    }

    async fn grant(&self, limit: &LimitHandle, key: Key<'_>, units: u32) -> Result<(), StoreError> {
        Self::grant(self, limit, key, units)
    }

    async fn ban(&self, limit: &LimitHandle, key: Key<'_>, lasting: Duration) -> Result<(), StoreError> {
        Self::ban(self, limit, key, lasting)
    }

    async fn leave(&self, charges: &[Charge<'_>], permit: PermitId) -> Result<u32, StoreError> {
        Self::leave(self, charges, permit)
    }

    async fn renew(&self, charges: &[Charge<'_>], permit: PermitId) -> Result<bool, StoreError> {
        Self::renew(self, charges, permit)
    }
}
