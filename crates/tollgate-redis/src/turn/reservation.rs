//! A booked turn.

use super::permit::Renewal;
use crate::{
    question::{Parts, Question, Taken, Verb},
    store::RedisStore,
};
use smallvec::smallvec;
use std::time::Duration;
use tollgate::{SetStatus, StoreError, Time};

/// A turn booked in Redis. Dropped before it is due, it is given back.
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
        self.store.sleep_until(self.due).await;
    }

    /// Gives the turn back, and hears that it was. Once it is due, what was charged is spent and only slots come back.
    ///
    /// # Errors
    /// Where Redis does not answer; it is not asked again.
    pub async fn cancel(mut self) -> Result<(), StoreError> {
        match self.undo() {
            Some(question) => self.store.ask(question).await.map(drop),
            None => Ok(()),
        }
    }

    /// Pays what each charge really cost, in the order they were given: less comes back as far as it is still there, more is
    /// debt. Slots come back.
    ///
    /// # Errors
    /// Where Redis does not answer; it is not asked again.
    pub async fn settle_each(mut self, actual: &[u32]) -> Result<(), StoreError> {
        if self.booked.as_ref().is_some_and(|booked| booked.part_of.len() != actual.len()) {
            return Err(StoreError::Unsupported {
                setting: "settle_each",
                problem: "must be given one cost for each charge, in their order; the turn was given back",
            });
        }
        let Some(booked) = self.booked.take() else { return Ok(()) };
        let mut costs = vec![0_u64; booked.parts.len()];
        for (part, actual) in booked.part_of.iter().zip(actual) {
            costs[*part] += u64::from(*actual);
        }
        let less = booked.parts.iter().zip(&costs).map(|(part, cost)| part.cost.saturating_sub(*cost));
        let taken = booked.taken.iter().cloned().zip(less).collect();
        self.store.ask(Question { verb: Verb::GiveBack { taken }, parts: booked.parts.clone() }).await?;
        for (part, cost) in booked.parts.iter().zip(&costs).filter(|(part, cost)| **cost > part.cost) {
            let verb = Verb::Owe { units: cost - part.cost };
            self.store.ask(Question { verb, parts: smallvec![part.clone()] }).await?;
        }
        Ok(())
    }

    /// Keeps what was charged, whether the turn is used or not. Slots stay held until their `max_hold` is over.
    pub fn keep(mut self) {
        if let Some(slots) = self.booked.take().and_then(|booked| booked.slots) {
            slots.forget();
        }
    }

    /// What it holds, which it then no longer gives back.
    pub(super) fn into_parts(mut self) -> (RedisStore, SetStatus, Option<Booked>) {
        (self.store.clone(), self.status.clone(), self.booked.take())
    }

    /// What gives the turn back; once it is due, only slots (whose own guard sees to that).
    fn undo(&mut self) -> Option<Question> {
        let is_due = self.is_due();
        let booked = self.booked.take()?;
        if is_due {
            return None;
        }
        let taken = booked.taken.into_iter().map(|taken| (taken, ALL)).collect();
        Some(Question { verb: Verb::GiveBack { taken }, parts: booked.parts })
    }
}

impl Drop for RedisReservation {
    fn drop(&mut self) {
        if let Some(question) = self.undo() {
            self.store.tell(question);
        }
    }
}
