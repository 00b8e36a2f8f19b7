//! Concurrency: at most `limit` units in flight.
//!
//! State: who holds how many units, and until when. A holder that does not renew within `max_hold` is taken to be gone,
//! so that a crash, or a permit forgotten, costs its slots for `max_hold` at most. Worst case admitted: `limit` at any
//! instant, plus holders that outlived `max_hold` without renewing. Memory is some 60 bytes a
//! holder, at most `limit` of them; entering and leaving take the logarithm of their number.

use super::{Ask, Moment};
use crate::{
    decision::{Status, Verdict},
    limit::{LimitError, nonzero, span},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU64,
    time::Duration,
};

/// Concurrency: at most so many units in flight.
///
/// A check that passes takes slots, which are held until they are given back, or until `max_hold` has gone by without a
/// renewal. The status names the permit that holds them.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Concurrency, KeyedLimiter};
///
/// let limiter = KeyedLimiter::new(Concurrency::new(1, Duration::from_secs(30))?);
/// let entered = limiter.check("db");
/// let permit = entered.permit().expect("the first one is let in");
/// assert!(limiter.check("db").is_deny());
///
/// assert!(limiter.renew("db", permit), "held for another 30 s from now");
/// assert_eq!(limiter.leave("db", permit), 1);
/// assert!(limiter.check("db").is_allow());
/// # Ok::<(), tollgate::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency {
    pub(crate) limit: u32,
    pub(crate) max_hold: u64,
    queue: u32,
}

/// Names the holder of concurrency slots: what [`Status::permit`] gives, and `leave` and `renew` take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PermitId(NonZeroU64);

impl PermitId {
    /// A permit that a store outside this crate numbered.
    #[must_use]
    pub const fn new(number: NonZeroU64) -> Self {
        Self(number)
    }

    /// Its number, unlike that of any other permit of the store.
    #[must_use]
    pub const fn number(self) -> NonZeroU64 {
        self.0
    }

    pub(crate) const FIRST: Self = Self(NonZeroU64::MIN);

    /// One for each number, from zero.
    pub(crate) fn numbered(number: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(number))
    }
}

/// Who holds what, and in which order their time is up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holders {
    by_permit: BTreeMap<PermitId, Holder>,
    by_time: BTreeSet<(u64, PermitId)>,
    /// Units of all that are in the maps, those whose time is up included.
    units: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Holder {
    units: u32,
    until: u64,
}

impl Concurrency {
    /// At most `limit` in flight, each for `max_hold` unless renewed.
    ///
    /// # Errors
    /// Where either is zero, or `max_hold` is longer than 146 years.
    pub fn new(limit: u32, max_hold: Duration) -> Result<Self, LimitError> {
        Ok(Self { limit: nonzero(limit, "limit")?, max_hold: span(max_hold, "max_hold")?, queue: 0 })
    }

    /// Lets so many wait in the queue for a slot. Without it nobody waits: a full limit refuses at once.
    #[must_use]
    pub const fn with_queue(self, queue: u32) -> Self {
        Self { queue, ..self }
    }

    /// How many may wait for a slot.
    #[must_use]
    pub const fn queue(&self) -> u32 {
        self.queue
    }

    pub(crate) fn ask(&self, holders: &Holders, ask: &Ask) -> Status {
        let held = holders.units(ask.at);
        let wanted = held + u64::from(ask.cost);
        let verdict = match ask.cost {
            0 => Verdict::Allow,
            cost if cost > self.limit => Verdict::Never,
            _ if wanted > u64::from(self.limit) => Verdict::WhenReleased,
            _ => Verdict::Allow,
        };
        let charged = !verdict.is_deny() && ask.cost > 0;
        let others = holders.last_in(ask.at);
        let last = if charged { others.max(self.max_hold) } else { others };
        Status::plain(
            verdict,
            self.limit,
            u64::from(self.limit).saturating_sub(if charged { wanted } else { held }) as u32,
            last,
        )
    }

    pub(crate) fn enter(&self, holders: &mut Holders, at: Moment, units: u32, permit: PermitId) {
        holders.forget(at);
        holders.insert(permit, Holder { units, until: at.since_birth.saturating_add(self.max_hold) });
    }

    /// Whether the permit still held something there, which then lasts another `max_hold`.
    pub(crate) fn renew(&self, holders: &mut Holders, at: Moment, permit: PermitId) -> bool {
        holders.forget(at);
        let Some(holder) = holders.remove(permit) else { return false };
        holders.insert(permit, Holder { until: at.since_birth.saturating_add(self.max_hold), ..holder });
        true
    }

    /// How long a permit holds without a renewal.
    #[must_use]
    pub const fn max_hold(&self) -> Duration {
        Duration::from_nanos(self.max_hold)
    }
}

impl Holders {
    /// Units that came back; none where the permit had run out or was never there.
    pub(crate) fn leave(&mut self, at: Moment, permit: PermitId) -> u32 {
        self.forget(at);
        self.remove(permit).map_or(0, |holder| holder.units)
    }

    /// Nanoseconds until the first holder's time is up; `None` where nobody holds anything.
    pub(crate) fn first_in(&self, at: Moment) -> Option<u64> {
        let live = |(until, _): &&(u64, PermitId)| *until > at.since_birth;
        self.by_time.iter().find(live).map(|(until, _)| until - at.since_birth)
    }

    /// Nanoseconds until the last holder's time is up.
    pub(crate) fn last_in(&self, at: Moment) -> u64 {
        self.by_time.last().map_or(0, |(until, _)| until.saturating_sub(at.since_birth))
    }

    fn units(&self, at: Moment) -> u64 {
        let gone = self.by_time.iter().take_while(|(until, _)| *until <= at.since_birth);
        self.units
            - gone
                .filter_map(|(_, permit)| self.by_permit.get(permit))
                .map(|it| u64::from(it.units))
                .sum::<u64>()
    }

    fn forget(&mut self, at: Moment) {
        while let Some((until, permit)) = self.by_time.first().copied()
            && until <= at.since_birth
        {
            self.remove(permit);
        }
    }

    fn insert(&mut self, permit: PermitId, holder: Holder) {
        self.units += u64::from(holder.units);
        self.by_time.insert((holder.until, permit));
        self.by_permit.insert(permit, holder);
    }

    fn remove(&mut self, permit: PermitId) -> Option<Holder> {
        let holder = self.by_permit.remove(&permit)?;
        self.by_time.remove(&(holder.until, permit));
        self.units -= u64::from(holder.units);
        Some(holder)
    }
}
