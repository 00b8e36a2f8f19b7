//! What can be waited at: one bucket, or the buckets of a store.

use super::{
    foresee::{Goes, View},
    order::{Bucket, Order, Toll},
    refused::Ending,
    room::{Changed, Room},
};
use crate::{
    clock::Clock,
    decision::{Status, Verdict, strictest},
    few::Few,
    step::{concurrency::PermitId, taken::Taken, turns::Turns},
    store::StoreError,
    time::Time,
};
use std::{ops::Deref, sync::Arc, time::Duration};

/// Where turns are asked for, given back and paid. It decides; [`Turn`](super::turn::Turn) does the waiting.
pub trait Gate: Send + Sync {
    /// Now, on the gate's clock.
    fn now(&self) -> Time;

    /// Puts this thread to sleep, see [`Clock::park`].
    fn park(&self, until: Option<Time>);

    /// The lines in front of its buckets.
    fn room(&self) -> &Room;

    /// Makes all charges, or none. They may wait for `left` nanoseconds yet, and have waited for `waited`.
    fn ask(&self, order: &Order, waited: u64, left: u64) -> Asked;

    /// Makes a single charge by the shortest way, if it can go at once.
    fn ask_quickly(&self, order: &Order) -> Option<Status>;

    /// How every charge stands, making none.
    fn peek(&self, order: &Order) -> Few<Status>;

    /// When a charge could go that comes now, behind everybody who stands there: `None` where nobody does, `Some(None)` where
    /// nobody knows.
    fn goes_at(&self, bucket: &Bucket, units: u32, now: Time) -> Option<Option<Goes>>;

    /// The bucket as it is now; `None` where there is none any more.
    fn look(&self, bucket: &Bucket) -> Option<View>;

    /// How turns are had there.
    fn turns(&self, bucket: &Bucket) -> Turns;

    /// Nanoseconds until the first holder's time is up, where slots are held.
    fn first_expiry(&self, bucket: &Bucket) -> Option<u64>;

    /// There is a line now: whoever does not wait must not overtake it by the short way.
    fn line_forms(&self, bucket: &Bucket);

    /// There is no line any more.
    fn line_ends(&self, bucket: &Bucket);

    /// Gives back what is still there of what a charge took. Whether there was anything to be given back.
    fn give_back(&self, bucket: &Bucket, taken: &Taken) -> bool;

    /// Charges so many units whether they are there or not.
    fn owe(&self, bucket: &Bucket, units: u32);

    /// Gives back the slots of a permit.
    fn leave(&self, bucket: &Bucket, permit: PermitId);

    /// Lets a permit hold its slots for longer. Whether it still did.
    fn renew(&self, bucket: &Bucket, permit: PermitId) -> bool;
}

/// A gate whose clock is known, and what it says when it does not let somebody pass.
pub trait WaitAt: Gate + Sized {
    /// Its clock.
    type Clock: Clock;
    /// Why somebody did not pass.
    type Error: From<Ending>;

    /// The clock that decides.
    fn timer(&self) -> &Self::Clock;
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
            _ => Self::Denied(Denied { statuses, by }),
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
    Borrowed(&'a dyn Gate),
    Shared(Arc<dyn Gate + 'a>),
}

impl<'a, T: Gate + 'a> From<At<'a, T>> for AnyGate<'a> {
    fn from(at: At<'a, T>) -> Self {
        match at {
            At::Borrowed(it) => Self::Borrowed(it),
            At::Shared(it) => Self::Shared(it),
        }
    }
}

impl<'a> Deref for AnyGate<'a> {
    type Target = dyn Gate + 'a;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Borrowed(it) => *it,
            Self::Shared(it) => &**it,
        }
    }
}

/// Gives back everything that was charged, slots included. Whether there was anything to be given back.
pub(crate) fn give_back(gate: &dyn Gate, tolls: &[Toll], booked: &Booked) -> bool {
    leave(gate, tolls, booked);
    let given = |(toll, taken): (&Toll, &Taken)| gate.give_back(&toll.bucket, taken);
    tolls.iter().zip(booked.taken.iter()).map(given).fold(booked.permit.is_some(), |any, given| any | given)
}

/// Looks whether somebody at its buckets holds up everybody else, see [`line`](super::line).
pub(crate) fn watch(gate: &dyn Gate, order: &Order, now: Time) {
    if !gate.room().any() {
        return;
    }
    for toll in &*order.tolls {
        if gate.room().watch(toll.bucket.line(), now) == Changed::Yes {
            gate.line_ends(&toll.bucket);
        }
    }
}

/// The buckets of which slots are held. What a grant paid for holds none.
pub(crate) fn held<'t>(
    gate: &dyn Gate,
    tolls: &'t [Toll],
    booked: &Booked,
) -> impl Iterator<Item = &'t Bucket> {
    let holds = |(toll, taken): &(&Toll, &Taken)| taken.units > 0 && gate.turns(&toll.bucket).is_slots();
    let any = booked.permit.map(|_| tolls.iter().zip(booked.taken.iter()));
    any.into_iter().flatten().filter(holds).map(|(toll, _)| &toll.bucket)
}

/// Gives back the slots that are held.
pub(crate) fn leave(gate: &dyn Gate, tolls: &[Toll], booked: &Booked) {
    let Some(permit) = booked.permit else { return };
    held(gate, tolls, booked).for_each(|bucket| gate.leave(bucket, permit));
}

/// When slots that are held through a wait are to be renewed.
pub(crate) fn renews_at(gate: &dyn Gate, tolls: &[Toll], booked: &Booked, now: Time) -> Option<Time> {
    let max_hold = |bucket| match gate.turns(bucket) {
        Turns::Slots { max_hold, .. } => Some(max_hold),
        _ => None,
    };
    held(gate, tolls, booked).filter_map(max_hold).min().map(|max_hold| now + (max_hold / 3).max(SHORTEST))
}

/// No timer is finer than this.
const SHORTEST: Duration = Duration::from_millis(1);

/// Lets slots be held for longer. Whether all of them still were.
pub(crate) fn renew(gate: &dyn Gate, tolls: &[Toll], booked: &Booked) -> bool {
    let Some(permit) = booked.permit else { return true };
    // Every one of them, whatever became of the first.
    held(gate, tolls, booked).map(|bucket| gate.renew(bucket, permit)).fold(true, |all, held| all & held)
}
