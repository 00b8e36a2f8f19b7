//! Waiting at the buckets of a store.

use super::{
    entry::Entry,
    memory::{LimitHandle, MemoryStore, StoreError},
    set::Decided,
    slots::{BucketCharge, OpenSlot},
    table::Print,
};
use crate::{
    charge::Charge,
    clock::Clock,
    decision::Status,
    few::Few,
    slot::{LockedSlot, Missing},
    step::{Mode, turns::Turns},
    time::Time,
    wait::{
        Asked, At, Bucket, Gate, HasGate, Order, Permit, Reservation, Timing, Toll, Wait, WaitAt, WaitError,
        WaitQueues,
    },
};
use std::{sync::Arc, time::Duration};

impl<C: Clock + Send + Sync> MemoryStore<C> {
    /// Waits until all charges can be made, and makes them at that instant: all or none. Before that nothing is charged and no
    /// slot is held. Await it, or call [`blocking`](Wait::blocking).
    ///
    /// Each charge may say how long it may wait at most ([`Charge::up_to`]); the wait itself may as well. Slots of a
    /// concurrency limit are waited for and not held: that is [`enter`](Self::enter).
    pub fn wait(&self, charges: &[Charge<'_>]) -> Wait<'_, Self> {
        Wait::of(At::Borrowed(self), self.order(charges))
    }

    /// As [`wait`](Self::wait), to be kept in a struct or spawned: it shares the store instead of borrowing it.
    pub fn wait_owned<'a>(self: &Arc<Self>, charges: &[Charge<'_>]) -> Wait<'a, Self> {
        Wait::of(At::Shared(Arc::clone(self)), self.order(charges))
    }

    /// Waits as [`wait`](Self::wait) does, and holds the slots of its concurrency limits until the permit is dropped.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Charge, Concurrency, MemoryStore, Rate, TokenBucket};
    ///
    /// let store = MemoryStore::new();
    /// let calls = store.add("calls", TokenBucket::new(Rate::per_second(1000)?, 10)?)?;
    /// let in_flight = store.add("in-flight", Concurrency::new(20, Duration::from_secs(30))?.with_queue(100))?;
    ///
    /// let charges = [Charge::new(&calls, "alice"), Charge::new(&in_flight, ())];
    /// let permit = store.enter(&charges).up_to(Duration::from_millis(500)).blocking()?;
    /// // ... one of twenty in flight, until the permit is dropped
    /// # drop(permit);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn enter(&self, charges: &[Charge<'_>]) -> Wait<'_, Self, Permit<'_>> {
        Wait::of(At::Borrowed(self), self.order(charges))
    }

    /// As [`enter`](Self::enter), with a permit that may outlive the borrow.
    pub fn enter_owned<'a>(self: &Arc<Self>, charges: &[Charge<'_>]) -> Wait<'a, Self, Permit<'a>> {
        Wait::of(At::Shared(Arc::clone(self)), self.order(charges))
    }

    /// As [`enter_owned`](Self::enter_owned), where a charge waits only as long as it or its limit says, as in a check: for a
    /// pace, and not for room.
    pub(super) fn enter_in_time<'a>(self: &Arc<Self>, charges: &[Charge<'_>]) -> Wait<'a, Self, Permit<'a>> {
        let own = |charge: &Charge<'_>| Duration::from_nanos(charge.limit.0.parameters.step().longest_pace());
        let charges = charges.iter().map(|charge| charge.up_to(charge.up_to.unwrap_or_else(|| own(charge))));
        self.enter_owned(&charges.collect::<Vec<_>>())
    }

    /// Books all charges, to be used when the reservation is due, within `up_to`; or none of them.
    ///
    /// # Errors
    /// Where the turn would come later, or never, or others wait at one of the buckets; where the store does not know one of the
    /// limits.
    pub fn reserve(
        &self,
        charges: &[Charge<'_>],
        up_to: Duration,
    ) -> Result<Reservation<'_, Self>, WaitError> {
        Reservation::book(At::Borrowed(self), self.order(charges)?, up_to)
    }

    /// As [`reserve`](Self::reserve), with a reservation that may outlive the borrow.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve).
    pub fn reserve_owned<'a>(
        self: &Arc<Self>,
        charges: &[Charge<'_>],
        up_to: Duration,
    ) -> Result<Reservation<'a, Self>, WaitError>
    where
        C: 'a,
    {
        Reservation::book(At::Shared(Arc::clone(self)), self.order(charges)?, up_to)
    }

    fn order(&self, charges: &[Charge<'_>]) -> Result<Order, StoreError> {
        // Whoever waits does so for as long as it takes, unless told otherwise.
        let (parts, toll_of) = self.merge(charges, |_| u64::MAX)?;
        let first_of = |part| toll_of.iter().position(|of| *of == part).and_then(|at| charges.get(at));
        let tolls = parts.iter().enumerate().filter_map(|(index, part)| {
            let limit = first_of(index)?.limit.clone();
            Some(Toll { bucket: Bucket::Of(limit, part.print.full()), cost: part.cost, up_to: part.up_to })
        });
        let tolls = tolls.collect();
        let charges = toll_of.into_iter().zip(charges.iter().map(|charge| charge.cost)).collect();
        Ok(Order::new(tolls, charges))
    }
}

impl<C: Clock> MemoryStore<C> {
    pub(crate) fn order_one(&self, limit: &LimitHandle, print: Print) -> Order {
        Order::One(Toll { bucket: Bucket::Of(limit.clone(), print.full()), cost: 1, up_to: None })
    }

    /// How parts stand that do not wait, where others do who go first; `None` where nobody does.
    pub(super) fn decide_behind_queues(&self, parts: &[BucketCharge<'_>], now: Time) -> Option<Vec<Status>> {
        if !self.queues.any() {
            return None;
        }
        self.queues.serve(self, now);
        let goes: Vec<_> = parts
            .iter()
            .map(|part| {
                let units = u32::try_from(part.cost).ok().filter(|units| *units > 0)?;
                let step = part.entry.parameters.step();
                let up_to = part.up_to.unwrap_or_else(|| step.patience());
                let look = || {
                    (!step.turns().is_slots())
                        .then(|| self.with_slot(part, self.clock.now(), |_, _| false, |slot| slot.view()))
                };
                self.queues.passes_in(part.print.full(), units, up_to, now, look)
            })
            .collect();
        if goes.iter().all(Option::is_none) {
            return None;
        }
        let asked = self.charge_set(parts, now, Mode::Peek);
        let nothing: Vec<_> = parts.iter().map(|part| BucketCharge { cost: 0, ..*part }).collect();
        let idle = self.charge_set(&nothing, now, Mode::Peek);
        let statuses =
            asked.statuses.iter().zip(&idle.statuses[..]).zip(goes).map(|((asked, idle), goes)| match goes {
                Some(in_so_long) => asked.behind(*idle, in_so_long),
                None if asked.is_deny() => *asked,
                None => Status { verdict: asked.verdict, ..*idle },
            });
        Some(statuses.collect())
    }

    /// The limit and the key of a bucket, while the store knows them.
    fn bucket<'b>(&self, bucket: &'b Bucket) -> Option<(&'b Entry, Print)> {
        let Bucket::Of(limit, fingerprint) = bucket else { return None };
        Some((self.known(limit).ok()?, Print::new(*fingerprint, limit.tag())))
    }

    fn parts<'o>(&self, order: &'o Order, timing: Timing) -> Result<Vec<BucketCharge<'o>>, StoreError> {
        let part = |toll: &'o Toll| {
            let (entry, print) = self.bucket(&toll.bucket).ok_or(StoreError::UnknownLimit)?;
            let up_to = timing.patience(toll, entry.parameters.step().turns());
            Ok(BucketCharge { entry, print, cost: toll.cost, up_to: Some(up_to) })
        };
        order.tolls().iter().map(part).collect()
    }
}

impl<C: Clock> Gate for MemoryStore<C> {
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
        let parts = match self.parts(order, timing) {
            Ok(parts) => parts,
            Err(error) => return Asked::Unknown(error),
        };
        let now = parts.iter().fold(timing.at, |now, part| part.entry.never_back(now));
        let Decided { statuses, taken, permit } = self.charge_set(&parts, now, timing.mode);
        if !C::MONOTONIC && timing.mode.charges() && !statuses.iter().any(Status::is_deny) {
            parts.iter().filter(|part| part.cost > 0).for_each(|part| part.entry.remember(now));
        }
        match (order, statuses, taken) {
            (Order::Set(_), Few::One(status), Few::One(taken)) => {
                Asked::new(Few::Many(vec![status]), Few::Many(vec![taken]), permit, now)
            }
            (_, statuses, taken) => Asked::new(statuses, taken, permit, now),
        }
    }

    fn ask_quickly(&self, order: &Order) -> Option<Status> {
        let Order::One(toll) = order else { return None };
        let (entry, print) = self.bucket(&toll.bucket)?;
        let units = u32::try_from(toll.cost).ok()?;
        let now = entry.never_back(self.clock.now());
        let status = self.try_single_word(entry, &print, units, now).filter(Status::is_allow)?;
        if !C::MONOTONIC && units > 0 {
            entry.remember(now);
        }
        Some(status)
    }

    fn turns(&self, bucket: &Bucket) -> Turns {
        self.bucket(bucket).map_or(Turns::Asked, |(entry, _)| entry.parameters.step().turns())
    }

    fn add_waiter(&self, bucket: &Bucket) {
        if let Bucket::Of(limit, _) = bucket {
            limit.0.extras.add_waiter();
        }
    }

    fn remove_waiter(&self, bucket: &Bucket) {
        if let Bucket::Of(limit, _) = bucket {
            limit.0.extras.remove_waiter();
        }
    }

    fn with_slot(
        &self,
        bucket: &Bucket,
        now: Time,
        missing: Missing,
        act: &mut dyn FnMut(&mut LockedSlot<'_>),
    ) {
        if let Some((entry, print)) = self.bucket(bucket) {
            let needs_slot =
                |_: Option<&()>, open: &OpenSlot<'_, '_>| missing == Missing::Enter || open.inherits;
            Self::with_slot(self, &BucketCharge::free(entry, print), now, needs_slot, act);
        }
    }
}

impl<C: Clock + Send + Sync> HasGate for MemoryStore<C> {
    fn gate(&self) -> &dyn Gate {
        self
    }
}

impl<C: Clock + Send + Sync> WaitAt for MemoryStore<C> {
    type Clock = C;
    type Error = WaitError;

    fn timer(&self) -> &C {
        &self.clock
    }
}

impl<C: Clock + Send + Sync> Reservation<'_, MemoryStore<C>> {
    /// Cancels the reservation and returns how many units of each charge came back, in their order; charges on one bucket count
    /// at the first of them. At each bucket that is the cost, less what was charged there after it: reservations made later
    /// keep their times. Of a smooth limit everything comes back if nothing was charged after it, otherwise nothing.
    ///
    /// Once it is due, what was charged is spent (see `settle_each`), and only slots come back.
    pub fn cancel(self) -> Vec<u32> {
        self.cancel_each()
    }
}
