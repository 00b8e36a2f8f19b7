//! What is done to one key besides charging it: refund, reset, grant, ban, and a permit given back or renewed.
//!
//! A state is changed as a [set](super::set) of one would be, under its slot's lock.

use super::{
    entry::Entry,
    extras::Extra,
    memory::{LimitHandle, MemoryStore, StoreError},
    places::{Locked, Part},
    table::Print,
};
use crate::{
    charge::Charge,
    clock::Clock,
    key::Key,
    step::{Mode, Moment, State, Step, concurrency::PermitId},
    sync::Backoff,
    time::Time,
    wait::BucketChange,
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
        self.update(limit, key.into(), |step, state, at| step.refund(state, at, units))?;
        Ok(())
    }

    /// Forgets what a key has used. Grants and bans stay.
    ///
    /// # Errors
    /// Where the store does not know the limit.
    pub fn reset<'k>(&self, limit: &LimitHandle, key: impl Into<Key<'k>>) -> Result<(), StoreError> {
        let key = key.into();
        let meta = self.print(limit.entry(), key).meta();
        self.update(limit, key, |step, state, _| {
            *state = step.unseen();
            self.epochs.add(meta, 1);
        })?;
        Ok(())
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
        self.change_extra(limit, key.into(), |extra, _| extra.granted = extra.granted.saturating_add(units))
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
        self.change_extra(limit, key.into(), |extra, now| extra.banned_until = Some(now + lasting))
    }

    fn change_extra(
        &self,
        limit: &LimitHandle,
        key: Key<'_>,
        change: impl FnOnce(&mut Extra, Time),
    ) -> Result<(), StoreError> {
        let entry = self.known(limit)?;
        let print = self.print(entry, key);
        self.queues.serve(self, self.clock.now());
        let now = self.clock.now();
        self.extras
            .lock(now)
            .change((entry.tag, print.full()), &entry.extras, now, |extra| change(extra, now));
        self.queues.touch(self, print.full(), self.clock.now(), BucketChange::Unknown);
        Ok(())
    }

    /// Gives back the slots that `permit` holds under the charges it was given for. How many units came back: none
    /// where its time was up.
    ///
    /// # Errors
    /// Where the store does not know one of the limits.
    pub fn leave(&self, charges: &[Charge<'_>], permit: PermitId) -> Result<u32, StoreError> {
        let mut back = Ok(0_u32);
        for charge in charges {
            let left = self.update(charge.limit, charge.key, |_, state, at| match state {
                State::Holders(holders) => holders.leave(at, permit),
                _ => 0,
            });
            // An unknown limit does not keep the others' slots.
            back = match (back, left) {
                (Ok(back), Ok(left)) => Ok(back.saturating_add(left.unwrap_or(0))),
                (Err(error), _) | (_, Err(error)) => Err(error),
            };
        }
        back
    }

    /// Lets `permit` hold its slots for another `max_hold` from now. Whether it still held all of them.
    ///
    /// # Errors
    /// Where the store does not know one of the limits.
    pub fn renew(&self, charges: &[Charge<'_>], permit: PermitId) -> Result<bool, StoreError> {
        let mut held = Ok(true);
        for charge in charges {
            let renewed = self.update(charge.limit, charge.key, |step, state, at| match (step, state) {
                (Step::Concurrency(it), State::Holders(holders)) => it.renew(holders, at, permit),
                (Step::Concurrency(_), _) => false,
                _ => true,
            });
            let is_held = || !matches!(**charge.limit.entry().numbers.step(), Step::Concurrency(_));
            held = match (held, renewed) {
                (Ok(held), Ok(renewed)) => Ok(held && renewed.unwrap_or_else(is_held)),
                (Err(error), _) | (_, Err(error)) => Err(error),
            };
        }
        held
    }

    /// Changes a key's state, if it has one. Those who wait there may have room.
    fn update<R>(
        &self,
        limit: &LimitHandle,
        key: Key<'_>,
        change: impl FnOnce(&Step, &mut State, Moment) -> R,
    ) -> Result<Option<R>, StoreError> {
        let entry = self.known(limit)?;
        let print = self.print(entry, key);
        self.queues.serve(self, self.clock.now());
        let now = self.clock.now();
        let changed = self.update_at(entry, print, now, change);
        self.queues.touch(self, print.full(), now, BucketChange::MoreRoom);
        Ok(changed)
    }

    /// Changes the state of a key with this fingerprint, if it has one.
    pub(super) fn update_at<R>(
        &self,
        entry: &Entry,
        print: Print,
        now: Time,
        change: impl FnOnce(&Step, &mut State, Moment) -> R,
    ) -> Option<R> {
        let part = Part { entry, print, cost: 0, up_to: None };
        let mut backoff = Backoff::default();
        loop {
            let places = self.find_places(std::slice::from_ref(&part), now, Mode::Peek);
            let Some(locked) = Locked::lock(std::slice::from_ref(&part), &places) else {
                backoff.wait();
                continue;
            };
            let place = &places[0];
            let (Ok(Some(slot)), Some(value)) = (&place.slot, locked.values[0]) else {
                let mut inherited = entry.inherited();
                let state = inherited.get_mut(&part.print.meta());
                return state.map(|state| change(&place.step, state, place.at));
            };
            let mut body = self.body(&part, place, Some(value), Mode::Charge);
            let changed = change(&place.step, body.state_mut(), place.at);
            self.put_back(slot, place, body, value);
            return Some(changed);
        }
    }
}
