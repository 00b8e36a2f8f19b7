//! A booked turn: what it took, and how much of that comes back.
//!
//! The script returns what a booking consumed as a text that only the script reads. Giving up sends the text back. The epoch in
//! it tells whether the key's state is still the one that was charged: a reset, a conversion or an expiry ends an epoch.

use super::{permit::Renewal, request::Request};
use crate::{
    question::{GiveBackReason, Parts, Question, Taken, Verb},
    store::RedisStore,
};
use smallvec::smallvec;
use std::time::Duration;
use tollgate::{SetStatus, StoreError, Time};

/// A turn booked in Redis. Dropped before it is due, it is cancelled.
#[must_use = "a reservation that is dropped is given back"]
#[derive(Debug)]
pub struct RedisReservation {
    store: RedisStore,
    status: SetStatus,
    due: Time,
    booked: Option<Booked>,
}

/// What the turn took, until it is given back or kept.
#[derive(Debug)]
pub(super) struct Booked {
    pub(super) parts: Parts,
    /// Which part each charge is of.
    pub(super) part_of: Vec<usize>,
    pub(super) taken: Vec<Taken>,
    /// Holds slots, and renews them.
    pub(super) slots: Option<Renewal>,
}

/// More than any charge took: all of it.
const ALL: u64 = 1 << 40;

impl RedisReservation {
    pub(super) const fn new(store: RedisStore, status: SetStatus, due: Time, booked: Booked) -> Self {
        Self { store, status, due, booked: Some(booked) }
    }

    /// How long until its turn comes; zero where it has.
    #[must_use]
    pub fn due_in(&self) -> Duration {
        self.due - self.store.now()
    }

    /// Whether its turn has come.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.due <= self.store.now()
    }

    /// How every charge stood when it was booked.
    pub const fn status(&self) -> &SetStatus {
        &self.status
    }

    /// Sleeps until the turn comes. Dropped before that, the reservation is still there.
    pub async fn ready(&self) {
        self.store.sleep(self.due).await;
    }

    /// Cancels the turn, and returns how many units of each charge came back, in their order; charges on one bucket count at
    /// the first of them. What later charges on a bucket stand on does not come back: a reservation returns its cost less
    /// everything that was charged there after it, cancelled since or not; on a smooth limit all of it, or nothing if anything
    /// was charged after it. Once it is due, what was charged is spent and only slots come back.
    ///
    /// # Errors
    /// Where Redis does not answer; it is not asked again.
    pub async fn cancel(mut self) -> Result<Vec<u32>, StoreError> {
        if self.is_due() {
            return Ok(self.booked.take().map_or_else(Vec::new, |booked| vec![0; booked.part_of.len()]));
        }
        let Some(booked) = self.booked.take() else { return Ok(Vec::new()) };
        let back = booked.taken.iter().map(|_| ALL).collect();
        self.give_back(&booked, back, GiveBackReason::Unused).await
    }

    /// Pays what each charge really cost, in the order they were given, and returns how many units of each came back. Less
    /// comes back as far as it is still there, and before the turn is due as by [`cancel`](Self::cancel); more is debt.
    /// Slots come back.
    ///
    /// # Errors
    /// Where Redis does not answer; it is not asked again.
    pub async fn settle_each(mut self, actual: &[u32]) -> Result<Vec<u32>, StoreError> {
        if self.booked.as_ref().is_some_and(|booked| booked.part_of.len() != actual.len()) {
            return Err(StoreError::Unsupported {
                setting: "settle_each",
                problem: "must be given one cost for each charge, in their order; the turn was given back",
            });
        }
        let reason = if self.is_due() { GiveBackReason::Settled } else { GiveBackReason::Unused };
        let Some(booked) = self.booked.take() else { return Ok(Vec::new()) };
        let mut costs = vec![0_u64; booked.parts.len()];
        for (part, actual) in booked.part_of.iter().zip(actual) {
            costs[*part] += u64::from(*actual);
        }
        let less = booked.parts.iter().zip(&costs).map(|(part, cost)| part.cost.saturating_sub(*cost));
        let returned = self.give_back(&booked, less.collect(), reason).await?;
        for (part, cost) in booked.parts.iter().zip(&costs).filter(|(part, cost)| **cost > part.cost) {
            let verb = Verb::Owe { units: cost - part.cost };
            self.store.ask(Question { verb, parts: smallvec![part.clone()] }).await?;
        }
        Ok(returned)
    }

    /// Gives back up to so many units of each part, and returns how many of each charge did come back.
    async fn give_back(
        &self,
        booked: &Booked,
        units: Vec<u64>,
        reason: GiveBackReason,
    ) -> Result<Vec<u32>, StoreError> {
        let taken = booked.taken.iter().cloned().zip(units).collect();
        let question = Question { verb: Verb::GiveBack { taken, reason }, parts: booked.parts.clone() };
        let mut returned = self.store.ask(question).await?.returned()?;
        booked.wake_waiters(&self.store);
        let of_charge = |part: &usize| returned.get_mut(*part).map_or(0, std::mem::take);
        Ok(booked
            .part_of
            .iter()
            .map(of_charge)
            .map(|units| u32::try_from(units).unwrap_or(u32::MAX))
            .collect())
    }

    /// Keeps what was charged, whether the turn is used or not. Slots stay held until their `max_hold` is over.
    pub fn keep(mut self) {
        if let Some(slots) = self.booked.take().and_then(|booked| booked.slots) {
            slots.forget();
        }
    }

    pub(super) const fn due(&self) -> Time {
        self.due
    }

    /// What it costs at its first bucket.
    pub(super) fn units(&self) -> u64 {
        self.booked.as_ref().and_then(|booked| booked.parts.first()).map_or(0, |part| part.cost)
    }

    pub(super) fn holds_slots(&self) -> bool {
        self.booked.as_ref().is_some_and(|booked| booked.slots.is_some())
    }

    /// Whether it charges what the request does.
    pub(super) fn is_for(&self, request: &Request) -> bool {
        self.booked.as_ref().is_some_and(|booked| request.charges_as(&booked.parts, &booked.part_of))
    }

    /// The turn is used: nothing but slots is given back any more.
    pub(super) fn spend(mut self) -> (SetStatus, Option<Renewal>) {
        let slots = self.booked.take().and_then(|booked| booked.slots);
        (self.status.clone(), slots)
    }

    /// Cancels a turn that nobody was released by, due or not.
    pub(super) fn cancel_unused(mut self) {
        self.cancel_in_background();
    }

    fn cancel_in_background(&mut self) {
        let Some(booked) = self.booked.take() else { return };
        let taken = booked.taken.iter().map(|taken| (taken.clone(), ALL)).collect();
        let verb = Verb::GiveBack { taken, reason: GiveBackReason::Unused };
        self.store.tell(Question { verb, parts: booked.parts.clone() });
        booked.wake_waiters(&self.store);
    }
}

impl Booked {
    /// Those of this node who wait there may have their turns earlier.
    fn wake_waiters(&self, store: &RedisStore) {
        self.parts.iter().for_each(|part| store.shared.queues.look_again(&part.key));
    }
}

impl Drop for RedisReservation {
    fn drop(&mut self) {
        if !self.is_due() {
            self.cancel_in_background();
        }
    }
}
