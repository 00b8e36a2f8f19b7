//! Operations on one key besides charging it: refund, reset, grant, ban, and a permit given back or renewed. Each changes the
//! key's slot under its lock.

use super::{
    memory::{LimitHandle, MemoryStore, StoreError},
    slots::BucketCharge,
};
use crate::{
    charge::Charge, clock::Clock, key::Key, slot::LockedSlot, step::concurrency::PermitId, wait::BucketChange,
};
use std::time::Duration;

impl<C: Clock> MemoryStore<C> {
    /// Takes up to `units` off the newest live use of a key; never below no use, never out of a window that has passed.
    ///
    /// # Errors
    /// Where the store does not know the limit.
    pub fn refund<'k>(
        &self,
        limit: &LimitHandle,
        key: impl Into<Key<'k>>,
        units: u32,
    ) -> Result<(), StoreError> {
        self.change_bucket(limit, key.into(), BucketChange::MoreRoom, |slot| slot.refund(units))
    }

    /// Forgets what a key has used. Grants and bans stay.
    ///
    /// # Errors
    /// Where the store does not know the limit.
    pub fn reset<'k>(&self, limit: &LimitHandle, key: impl Into<Key<'k>>) -> Result<(), StoreError> {
        self.change_bucket(limit, key.into(), BucketChange::MoreRoom, |slot| slot.reset())
    }

    /// Gives a key `units` above its limit, until used; they are spent before the limit's own.
    ///
    /// # Errors
    /// Where the store does not know the limit.
    pub fn grant<'k>(
        &self,
        limit: &LimitHandle,
        key: impl Into<Key<'k>>,
        units: u32,
    ) -> Result<(), StoreError> {
        self.change_bucket(limit, key.into(), BucketChange::MoreRoom, |slot| slot.grant(units))
    }

    /// Refuses a key for this long from now. Zero lifts the ban.
    ///
    /// # Errors
    /// Where the store does not know the limit.
    pub fn ban<'k>(
        &self,
        limit: &LimitHandle,
        key: impl Into<Key<'k>>,
        lasting: Duration,
    ) -> Result<(), StoreError> {
        self.change_bucket(limit, key.into(), BucketChange::Unknown, |slot| slot.ban(lasting))
    }

    /// Gives back the slots that `permit` holds under the charges it was given for. How many units came back: none
    /// where its time was up.
    ///
    /// # Errors
    /// Where the store does not know one of the limits.
    pub fn leave(&self, charges: &[Charge<'_>], permit: PermitId) -> Result<u32, StoreError> {
        let left = self.change_each(charges, |slot| slot.leave(permit));
        left.into_iter().try_fold(0_u32, |all, left| Ok(all.saturating_add(left?)))
    }

    /// Lets `permit` hold its slots for another `max_hold` from now. Whether it still held all of them.
    ///
    /// # Errors
    /// Where the store does not know one of the limits.
    pub fn renew(&self, charges: &[Charge<'_>], permit: PermitId) -> Result<bool, StoreError> {
        let renewed = self.change_each(charges, |slot| slot.renew(permit).unwrap_or(true));
        renewed.into_iter().try_fold(true, |all, held| Ok(all & held?))
    }

    /// Changes the buckets of charges one by one, the others too where a limit is unknown.
    fn change_each<R>(
        &self,
        charges: &[Charge<'_>],
        change: impl Fn(&mut LockedSlot<'_>) -> R,
    ) -> Vec<Result<R, StoreError>> {
        let change = |charge: &Charge<'_>| {
            self.change_bucket(charge.limit, charge.key, BucketChange::MoreRoom, &change)
        };
        charges.iter().map(change).collect()
    }

    /// Changes a bucket, and lets those who wait there know.
    fn change_bucket<R>(
        &self,
        limit: &LimitHandle,
        key: Key<'_>,
        effect: BucketChange,
        change: impl FnMut(&mut LockedSlot<'_>) -> R,
    ) -> Result<R, StoreError> {
        let entry = self.known(limit)?;
        let print = self.print(entry, key);
        self.queues.serve(self, self.clock.now());
        let now = self.clock.now();
        let bucket = BucketCharge::free(entry, print);
        let changed = self.with_slot(&bucket, now, |_, open| open.inherits, change);
        self.queues.touch(self, print.full(), now, effect);
        Ok(changed)
    }
}
