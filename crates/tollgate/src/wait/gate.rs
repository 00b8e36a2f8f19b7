//! What can be waited at: one bucket, or the buckets of a store.

use super::{
    forecast::View,
    order::{Bucket, Order, Toll, WaitSpan},
    queues::{BucketChange, WaitQueues},
    refused::Ending,
};
use crate::{
    clock::Clock,
    decision::{Status, Verdict, strictest},
    few::Few,
    slot::{LockedSlot, Missing},
    step::{
        Mode,
        concurrency::PermitId,
        taken::{ReturnReason, Taken},
        turns::Turns,
    },
    store::StoreError,
    time::Time,
};
use std::{ops::Deref, sync::Arc, time::Duration};

/// Where orders are decided and given back. It knows of no queue: [`WaitQueues`] and [`change`] see to those.
pub trait Gate {
    /// Now, on the gate's clock.
    fn now(&self) -> Time;

    /// Puts this thread to sleep, see [`Clock::park`].
    fn park(&self, until: Option<Time>);

    /// The queues in front of its buckets.
    fn queues(&self) -> &WaitQueues;

    /// Makes all charges, or none.
    fn ask(&self, order: &Order, timing: Timing) -> Asked;

    /// Releases a waiter of one charge by a shorter way than [`ask`](Self::ask), where the gate has one: its status, and the
    /// time as of which it is charged. `None` where there is no shorter way for this charge, or it does not pass now; nothing is
    /// charged then.
    fn release_one(&self, _: &Toll, _: Timing) -> Option<(Status, Time)> {
        None
    }

    /// Makes a single charge by the shortest way, if it can go at once.
    fn ask_quickly(&self, order: &Order) -> Option<Status>;

    /// How turns are had there.
    fn turns(&self, bucket: &Bucket) -> Turns;

    /// One more waits there: whoever does not wait must not overtake it by the short way.
    fn add_waiter(&self, bucket: &Bucket);

    /// One less waits there.
    fn remove_waiter(&self, bucket: &Bucket);

    /// Runs `act` on a bucket under its lock; not at all where its limit is no longer known.
    fn with_slot(
        &self,
        bucket: &Bucket,
        now: Time,
        missing: Missing,
        act: &mut dyn FnMut(&mut LockedSlot<'_>),
    );
}

impl dyn Gate + '_ {
    fn act<R>(
        &self,
        bucket: &Bucket,
        now: Time,
        missing: Missing,
        mut act: impl FnMut(&mut LockedSlot<'_>) -> R,
    ) -> Option<R> {
        let mut result = None;
        self.with_slot(bucket, now, missing, &mut |slot| result = Some(act(slot)));
        result
    }

    /// How every charge stands, making none, whoever waits.
    pub(super) fn peek(&self, order: &Order) -> Few<Status> {
        let timing = Timing { mode: Mode::Peek, ..Timing::reservation(self.now(), 0) };
        match self.ask(order, timing) {
            Asked::Granted(booked) => booked.statuses,
            Asked::Denied(denied) => denied.statuses,
            Asked::Unknown(_) => Few::Many(Vec::new()),
        }
    }

    /// A copy of the bucket as it is now, to foresee turns on. `None` where it is not known any more, and for slots: nobody knows
    /// when somebody will leave.
    pub(crate) fn look(&self, bucket: &Bucket) -> Option<View> {
        let is_foreseeable = !self.turns(bucket).is_slots();
        is_foreseeable.then(|| self.act(bucket, self.now(), Missing::Skip, |slot| slot.view())).flatten()
    }

    /// When the time of the first holder is up who holds slots at that time.
    pub(super) fn first_expiry(&self, bucket: &Bucket, at: Time) -> Option<Time> {
        let nanos = self.act(bucket, at, Missing::Skip, |slot| slot.first_expiry())??;
        Some(at + Duration::from_nanos(nanos))
    }

    /// Gives back what a charge consumed, as far as that is still there. How many units came back.
    pub(super) fn give_back(&self, bucket: &Bucket, taken: &Taken, reason: ReturnReason) -> u32 {
        self.act(bucket, self.now(), Missing::Skip, |slot| slot.give_back(taken, reason)).unwrap_or(0)
    }

    /// Charges so many units whether they are there or not. A key that was forgotten gets a slot for its debt.
    pub(super) fn owe(&self, bucket: &Bucket, units: u32) {
        if units > 0 {
            self.act(bucket, self.now(), Missing::Enter, |slot| slot.owe(units));
        }
    }

    /// Gives back the slots of a permit.
    pub(super) fn leave(&self, bucket: &Bucket, permit: PermitId) {
        self.act(bucket, self.now(), Missing::Skip, |slot| slot.leave(permit));
    }

    /// Lets a permit hold its slots for longer. Whether it still did.
    pub(super) fn renew(&self, bucket: &Bucket, permit: PermitId) -> bool {
        self.act(bucket, self.now(), Missing::Skip, |slot| slot.renew(permit)).flatten().unwrap_or(false)
    }
}

/// Something with a gate.
pub trait HasGate: Send + Sync {
    /// Its gate.
    fn gate(&self) -> &dyn Gate;
}

/// A gate whose clock is known, and what it says when it does not let somebody pass.
pub trait WaitAt: HasGate + Sized {
    /// Its clock.
    type Clock: Clock;
    /// Why somebody did not pass.
    type Error: From<Ending>;

    /// The clock that decides.
    fn timer(&self) -> &Self::Clock;
}

/// When an order is decided, and how long it may wait.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    pub(crate) at: Time,
    /// How long it has waited, and may wait yet, in nanoseconds.
    waited: u64,
    left: u64,
    pub(crate) mode: Mode,
}

impl Timing {
    /// Of a waiter that is to be released at that time: only a pace may still be waited for.
    pub(super) fn release(at: Time, span: WaitSpan) -> Self {
        let WaitSpan { began, up_to } = span;
        let left = match up_to {
            u64::MAX => u64::MAX,
            up_to => (began + Duration::from_nanos(up_to)).nanos_since(at),
        };
        Self { at, waited: at.nanos_since(began), left, mode: Mode::Release }
    }

    /// Of a reservation made at that time, as far ahead as it may be.
    pub(crate) const fn reservation(at: Time, up_to: u64) -> Self {
        Self { at, waited: 0, left: up_to, mode: Mode::Charge }
    }

    /// Nanoseconds that a toll may still wait once it is charged.
    pub(crate) fn patience(&self, toll: &Toll, turns: Turns) -> u64 {
        match (self.mode, turns) {
            (Mode::Release, Turns::Booked) => 0,
            _ => toll.patience(self.waited, self.left),
        }
    }
}

/// Changes something at a bucket, and lets those who wait there know. `act` must not come back here.
pub(crate) fn change<R>(
    gate: &dyn Gate,
    bucket: &Bucket,
    effect: BucketChange,
    act: impl FnOnce() -> R,
) -> R {
    // Whose turn has come by now had it before.
    gate.queues().serve(gate, gate.now());
    let result = act();
    gate.queues().touch(gate, bucket.queue(), gate.now(), effect);
    result
}

/// What came of asking.
pub enum Asked {
    /// All charges are made.
    Granted(Booked),
    /// None is.
    Denied(Denied),
    /// The store no longer knows one of the limits.
    Unknown(StoreError),
}

/// Charges that were made, to be used at `due`.
#[derive(Debug)]
pub struct Booked {
    pub(crate) statuses: Few<Status>,
    pub(crate) taken: Few<Taken>,
    pub(crate) permit: Option<PermitId>,
    pub(crate) due: Time,
}

/// How every toll stands, and which of them refuses.
#[derive(Debug)]
pub struct Denied {
    pub(crate) statuses: Few<Status>,
    pub(crate) by: usize,
    /// The time that was asked for: the gate's own, where it has seen a later one than it was asked at.
    pub(crate) at: Time,
}

impl Asked {
    /// From how every toll stands and what each took, at `now`.
    pub(crate) fn new(statuses: Few<Status>, taken: Few<Taken>, permit: Option<PermitId>, now: Time) -> Self {
        let Some((by, status)) = strictest(&statuses) else {
            return Self::Granted(Booked { statuses, taken, permit, due: now });
        };
        match status {
            Verdict::Allow => Self::Granted(Booked { statuses, taken, permit, due: now }),
            Verdict::Wait(nanos) => {
                let due = now + Duration::from_nanos(nanos);
                Self::Granted(Booked { statuses, taken, permit, due })
            }
            _ => Self::Denied(Denied { statuses, by, at: now }),
        }
    }
}

impl Denied {
    pub(crate) fn verdict(&self) -> Verdict {
        self.statuses.get(self.by).map_or(Verdict::Never, Status::in_nanos)
    }
}

/// A gate, borrowed or shared.
#[derive(Debug)]
pub enum At<'a, T> {
    Borrowed(&'a T),
    Shared(Arc<T>),
}

impl<T> Clone for At<'_, T> {
    fn clone(&self) -> Self {
        match self {
            Self::Borrowed(it) => Self::Borrowed(it),
            Self::Shared(it) => Self::Shared(Arc::clone(it)),
        }
    }
}

impl<T> Deref for At<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Borrowed(it) => it,
            Self::Shared(it) => it,
        }
    }
}

/// A gate whose type is not of interest.
pub(crate) enum AnyGate<'a> {
    Borrowed(&'a dyn HasGate),
    Shared(Arc<dyn HasGate + 'a>),
}

impl<'a, T: HasGate + 'a> From<At<'a, T>> for AnyGate<'a> {
    fn from(at: At<'a, T>) -> Self {
        match at {
            At::Borrowed(it) => Self::Borrowed(it),
            At::Shared(it) => Self::Shared(it),
        }
    }
}

impl AnyGate<'_> {
    pub(super) fn gate(&self) -> &dyn Gate {
        match self {
            Self::Borrowed(it) => it.gate(),
            Self::Shared(it) => it.gate(),
        }
    }
}

/// As [`change`], at the buckets of several tolls.
pub(super) fn change_all<R>(
    gate: &dyn Gate,
    tolls: &[Toll],
    effect: BucketChange,
    act: impl FnOnce() -> R,
) -> R {
    gate.queues().serve(gate, gate.now());
    let result = act();
    let now = gate.now();
    tolls.iter().for_each(|toll| gate.queues().touch(gate, toll.bucket.queue(), now, effect));
    result
}

/// Gives back the slots that are held, and lets those who wait for them know.
pub(super) fn release_slots(gate: &dyn Gate, tolls: &[Toll], booked: &Booked) {
    if booked.permit.is_none() {
        return;
    }
    gate.queues().serve(gate, gate.now());
    leave_slots(gate, tolls, booked);
    let now = gate.now();
    for bucket in held(gate, tolls, booked) {
        gate.queues().touch(gate, bucket.queue(), now, BucketChange::MoreRoom);
    }
}

/// Gives back what was charged as far as that may be, slots included. How many units of each toll came back.
pub(super) fn give_back(gate: &dyn Gate, tolls: &[Toll], booked: &Booked, why: ReturnReason) -> Vec<u32> {
    leave_slots(gate, tolls, booked);
    let give_back = |(toll, taken): (&Toll, &Taken)| {
        let slots = if gate.turns(&toll.bucket).is_slots() { taken.units } else { 0 };
        slots + gate.give_back(&toll.bucket, taken, why)
    };
    tolls.iter().zip(booked.taken.iter()).map(give_back).collect()
}

/// The buckets of which slots are held. What a grant paid for holds none.
pub(super) fn held<'t>(
    gate: &dyn Gate,
    tolls: &'t [Toll],
    booked: &Booked,
) -> impl Iterator<Item = &'t Bucket> {
    let holds = |(toll, taken): &(&Toll, &Taken)| taken.units > 0 && gate.turns(&toll.bucket).is_slots();
    let any = booked.permit.map(|_| tolls.iter().zip(booked.taken.iter()));
    any.into_iter().flatten().filter(holds).map(|(toll, _)| &toll.bucket)
}

/// Gives back the slots that are held.
pub(super) fn leave_slots(gate: &dyn Gate, tolls: &[Toll], booked: &Booked) {
    let Some(permit) = booked.permit else { return };
    held(gate, tolls, booked).for_each(|bucket| gate.leave(bucket, permit));
}

/// When slots that are held through a wait are to be renewed.
pub(super) fn renews_at(gate: &dyn Gate, tolls: &[Toll], booked: &Booked, now: Time) -> Option<Time> {
    let max_hold = |bucket| match gate.turns(bucket) {
        Turns::Slots { max_hold, .. } => Some(max_hold),
        _ => None,
    };
    held(gate, tolls, booked).filter_map(max_hold).min().map(|max_hold| now + (max_hold / 3).max(SHORTEST))
}

/// No timer is finer than this.
const SHORTEST: Duration = Duration::from_millis(1);

/// Lets slots be held for longer. Whether all of them still were.
pub(super) fn renew(gate: &dyn Gate, tolls: &[Toll], booked: &Booked) -> bool {
    let Some(permit) = booked.permit else { return true };
    // Every one of them, whatever became of the first.
    held(gate, tolls, booked).map(|bucket| gate.renew(bucket, permit)).fold(true, |all, held| all & held)
}
