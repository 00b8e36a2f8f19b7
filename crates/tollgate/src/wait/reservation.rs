//! A charge made now for a time to come, which it keeps.
//!
//! A cancelled reservation returns what is left of what it consumed itself, less what was charged after it: it promised a
//! time, and so did the reservations after it, so only what no later one depends on comes back. The bound then holds over
//! due times. A reservation records where it left the bucket, and the bucket's epoch. An epoch ends with a reset, a change
//! of numbers, or the eviction of a live key; consumption of an earlier epoch is not returned. `wait` is the verb for
//! callers that give up.

use super::{
    gate::{self, Asked, At, Booked, Timing, WaitAt},
    order::{Order, Toll},
    passed::Passed,
    permit::Permit,
    queues::BucketChange,
    refused::{Ending, Reason, Refused},
};
use crate::{
    clock::Timer,
    decision::Status,
    limiter::Limiter,
    step::{
        concurrency::PermitId,
        taken::{ReturnReason, Taken},
    },
    time::{Time, hint, nanos},
};
use std::{fmt, time::Duration};

/// A turn that is charged for and may lie ahead. It keeps its time.
///
/// Until it is due it can be cancelled, and dropping it does so. Reservations made after it keep their times: its cost comes
/// back, less what was charged after it. Once it is due it is spent. [`keep`](Self::keep) lets it stand in any case.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, ManualClock, Rate, TokenBucket};
///
/// let clock = ManualClock::new();
/// let tokens = Limiter::with_clock(TokenBucket::new(Rate::per_second(100)?, 1000)?, clock.clone());
///
/// // An estimate now, the real cost when it is known.
/// let turn = tokens.reserve(800, Duration::from_secs(5))?;
/// assert_eq!(turn.due_in(), Duration::ZERO);
/// turn.settle(300);
/// assert_eq!(tokens.peek(0).remaining(), 700);
///
/// let later = tokens.reserve(900, Duration::from_secs(5))?;
/// assert_eq!(later.due_in(), Duration::from_secs(2));
/// drop(later);
/// assert_eq!(tokens.peek(0).remaining(), 700);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropped before it is due, a reservation is cancelled"]
pub struct Reservation<'a, T: WaitAt = Limiter> {
    at: At<'a, T>,
    order: Order,
    /// Nothing once it is cancelled, kept or settled.
    booked: Option<Booked>,
}

impl<'a, T: WaitAt> Reservation<'a, T> {
    pub(crate) fn new(at: At<'a, T>, order: Order, booked: Booked) -> Self {
        let statuses = order.spread(booked.statuses);
        Self { at, order, booked: Some(Booked { statuses, ..booked }) }
    }

    /// Books a turn, if it comes in time.
    pub(crate) fn book(at: At<'a, T>, order: Order, up_to: Duration) -> Result<Self, T::Error> {
        let (gate, up_to) = (at.gate(), nanos(up_to));
        let now = gate.now();
        gate.queues().serve(gate, now);
        if let Some(by) = gate.queues().held_up_at(order.queues())
            && let Some(toll) = order.tolls().get(by)
            && let Some(nanos) = gate.queues().passes_in(
                toll.bucket.queue(),
                toll.units(),
                toll.patience(0, up_to),
                now,
                || gate.look(&toll.bucket),
            )
        {
            let retry_after = nanos.map(hint);
            let statuses = gate.peek(&order);
            return Err(
                Ending::Refused(Refused::new(Reason::NoRoom { retry_after }, &order, by, statuses)).into()
            );
        }
        match gate.ask(&order, Timing::reservation(now, up_to)) {
            Asked::Granted(booked) => Ok(Self::new(at, order, booked)),
            Asked::Denied(denied) => Err(Ending::Refused(Refused::of(gate, &order, denied)).into()),
            Asked::Unknown(error) => Err(Ending::Store(error).into()),
        }
    }

    /// When its turn comes, on the limiter's clock.
    #[must_use]
    pub fn due(&self) -> Time {
        self.booked.as_ref().map_or(Time::ZERO, |booked| booked.due)
    }

    /// How long until then, rounded up to a microsecond; zero where it has come.
    #[must_use]
    pub fn due_in(&self) -> Duration {
        hint(self.due().nanos_since(self.at.gate().now()))
    }

    /// Whether its turn has come.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.due() <= self.at.gate().now()
    }

    /// How every charge stood when it was booked, in the order they were given.
    pub fn statuses(&self) -> &[Status] {
        self.booked.as_ref().map_or(&[], |booked| &booked.statuses)
    }

    /// Sleeps until the turn comes. Dropped before that, the reservation is still there. Slots that it holds are renewed
    /// meanwhile.
    pub async fn ready(&self)
    where
        T::Clock: Timer,
    {
        while let Some(until) = self.sleeps_until() {
            self.at.timer().sleep_until(until).await;
        }
    }

    /// Puts the thread to sleep until the turn comes.
    pub fn ready_blocking(&self) {
        while let Some(until) = self.sleeps_until() {
            self.at.gate().park(Some(until));
        }
    }

    /// Renews its slots; and until when to sleep, if it is not due.
    fn sleeps_until(&self) -> Option<Time> {
        let (booked, gate) = (self.booked.as_ref()?, self.at.gate());
        let now = gate.now();
        gate::renew(gate, self.order.tolls(), booked);
        let renews_at = gate::renews_at(gate, self.order.tolls(), booked, now);
        (booked.due > now).then(|| renews_at.map_or(booked.due, |at| at.min(booked.due)))
    }

    pub(crate) fn cancel_each(mut self) -> Vec<u32> {
        self.give_back()
    }

    /// Pays what it really cost, with a cost for every charge in the order they were given: what was booked above that comes
    /// back, as far as it is still there and, before the turn is due, as by cancelling; what is missing becomes debt that
    /// later turns wait for. A charge without a cost cost what was booked. Slots are given back. Returns how many units of
    /// each charge came back; charges on one bucket count at the first of them.
    pub fn settle_each(mut self, actual: &[u32]) -> Vec<u32> {
        let Some(booked) = self.booked.take() else { return Vec::new() };
        let (gate, tolls) = (self.at.gate(), self.order.tolls());
        let why = if booked.due <= gate.now() { ReturnReason::Settled } else { ReturnReason::Cancelled };
        let settle = || {
            gate::leave_slots(gate, tolls, &booked);
            let settle = |(index, (toll, taken)): (usize, (&Toll, &Taken))| {
                let actual = self.really_cost(index, toll, actual);
                if gate.turns(&toll.bucket).is_slots() {
                    return taken.units;
                }
                match toll.cost.checked_sub(actual) {
                    Some(back) => {
                        let back = u32::try_from(back).unwrap_or(u32::MAX);
                        gate.give_back(&toll.bucket, &taken.part(back), why)
                    }
                    None => {
                        gate.owe(&toll.bucket, u32::try_from(actual - toll.cost).unwrap_or(u32::MAX));
                        0
                    }
                }
            };
            tolls.iter().zip(booked.taken.iter()).enumerate().map(settle).collect()
        };
        self.order.of_charges(gate::change_all(gate, tolls, BucketChange::Unknown, settle))
    }

    /// Lets the turn stand whatever becomes of this. Slots that it entered stay held as well, by the permit that is
    /// returned, until that is given back with `leave`.
    pub fn keep(mut self) -> Option<PermitId> {
        self.booked.take().and_then(|booked| booked.permit)
    }

    /// What somebody gets whose turn has come, and who does not want to hold anything.
    pub(super) fn pass(mut self, waited: Duration) -> Passed {
        let (gate, tolls) = (self.at.gate(), self.order.tolls());
        if let Some(booked) = &self.booked {
            gate::release_slots(gate, tolls, booked);
        }
        Passed::new(self.booked.take(), waited)
    }

    /// The permit that holds the slots of a turn that has come.
    pub(super) fn enter(mut self, waited: Duration) -> Permit<'a>
    where
        T: 'a,
    {
        let held = |booked| gate::held(self.at.gate(), self.order.tolls(), booked).cloned();
        let buckets = self.booked.as_ref().into_iter().flat_map(held).collect();
        let passed = Passed::new(self.booked.take(), waited);
        Permit::new(self.at.clone(), buckets, passed)
    }

    /// What a toll really cost, when the charges that are part of it cost so much; those not named cost what was booked.
    fn really_cost(&self, index: usize, toll: &Toll, actual: &[u32]) -> u64 {
        if self.order.charges().is_empty() {
            return actual.first().map_or(toll.cost, |actual| u64::from(*actual));
        }
        let parts = self.order.charges().iter().enumerate().filter(|(_, (of, _))| *of == index);
        parts.map(|(charge, (_, booked))| u64::from(*actual.get(charge).unwrap_or(booked))).sum()
    }

    /// How many units of each charge came back.
    fn give_back(&mut self) -> Vec<u32> {
        let Some(booked) = self.booked.take() else { return Vec::new() };
        let (gate, tolls) = (self.at.gate(), self.order.tolls());
        if booked.due > gate.now() {
            let give_back = || gate::give_back(gate, tolls, &booked, ReturnReason::Cancelled);
            return self.order.of_charges(gate::change_all(gate, tolls, BucketChange::MoreRoom, give_back));
        }
        // What was charged is spent. Slots are held, not spent.
        gate::release_slots(gate, tolls, &booked);
        let slots = |(toll, taken): (&Toll, &Taken)| {
            if gate.turns(&toll.bucket).is_slots() { taken.units } else { 0 }
        };
        self.order.of_charges(tolls.iter().zip(booked.taken.iter()).map(slots).collect())
    }
}

impl<T: WaitAt> fmt::Debug for Reservation<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("due_in", &self.due_in())
            .field("statuses", &self.statuses())
            .finish_non_exhaustive()
    }
}

impl<T: WaitAt> Drop for Reservation<'_, T> {
    fn drop(&mut self) {
        self.give_back();
    }
}
