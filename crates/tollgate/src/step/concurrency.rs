//! Concurrency: at most `limit` units in flight.
//!
//! State: who holds how many units, and until when. A holder that does not renew within `max_hold` is taken to be gone,
//! so that a crash, or a permit forgotten, costs its slots for `max_hold` at most. Worst case admitted: `limit` at any
//! instant, plus holders that outlived `max_hold` without renewing. Memory is 24 bytes a holder, at most `limit` of them.

use super::{Ask, Moment};
use crate::{
    decision::{Status, Verdict},
    limit::{LimitError, nonzero, span},
};
use std::{num::NonZeroU64, time::Duration};

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
    limit: u32,
    max_hold: u64,
    queue: u32,
}

/// Names the holder of concurrency slots: what [`Status::permit`] gives, and `leave` and `renew` take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PermitId(NonZeroU64);

impl PermitId {
    pub(crate) const FIRST: Self = Self(NonZeroU64::MIN);

    /// One for each number, from zero.
    pub(crate) fn numbered(number: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(number))
    }

    pub(crate) fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// Who holds what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holders(Vec<Holder>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Holder {
    permit: PermitId,
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

    /// Lets so many wait in a queue for a slot. A check does not wait and so does not queue: the number is for whoever
    /// builds waiting on top.
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
        holders.0.retain(|holder| holder.until > at.since_birth);
        holders.0.push(Holder { permit, units, until: at.since_birth.saturating_add(self.max_hold) });
    }

    /// Whether the permit still held something there, which then lasts another `max_hold`.
    pub(crate) fn renew(&self, holders: &mut Holders, at: Moment, permit: PermitId) -> bool {
        let until = at.since_birth.saturating_add(self.max_hold);
        let live = |holder: &&mut Holder| holder.permit == permit && holder.until > at.since_birth;
        holders.0.iter_mut().find(live).map(|holder| holder.until = until).is_some()
    }
}

impl Holders {
    /// Units that came back; none where the permit had run out or was never there.
    pub(crate) fn leave(&mut self, at: Moment, permit: PermitId) -> u32 {
        let live = |holder: &Holder| holder.until > at.since_birth;
        let back =
            self.0.iter().filter(|holder| holder.permit == permit && live(holder)).map(|h| h.units).sum();
        self.0.retain(|holder| holder.permit != permit && live(holder));
        back
    }

    /// Nanoseconds until the last holder's time is up.
    pub(crate) fn last_in(&self, at: Moment) -> u64 {
        self.0.iter().map(|holder| holder.until.saturating_sub(at.since_birth)).max().unwrap_or(0)
    }

    fn units(&self, at: Moment) -> u64 {
        self.0.iter().filter(|h| h.until > at.since_birth).map(|h| u64::from(h.units)).sum()
    }
}
