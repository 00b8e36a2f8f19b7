//! The answer: [`Decision`], and the [`Status`] of each charge it was made from.
//!
//! A denial is not an error. Every hint is rounded up to a whole microsecond here, and never down anywhere: a
//! caller who comes back after exactly `retry_after` passes, if nobody else came.

use crate::{
    few::Few,
    step::concurrency::PermitId,
    time::{hint, nanos},
};
use std::{fmt, time::Duration};

/// What a request is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Go ahead.
    Allow,
    /// Go ahead after this long; the turn is booked and paid.
    Wait(Duration),
    /// Not now; nothing was charged.
    Deny(Retry),
}

/// When a refused charge would pass, if nothing else came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// After this long, not earlier.
    After(Duration),
    /// When somebody leaves: a full concurrency limit cannot say when.
    WhenReleased,
    /// Never: the cost is above what the limit can ever give.
    Never,
}

/// Who decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecidedBy {
    /// The limit's own state.
    #[default]
    Store,
    /// A ban on the key.
    Ban,
    /// The table was full of live keys and is told to deny then.
    FullTable,
    /// Units that this node took ahead from a shared store, or a refusal of the store that still holds.
    Lease,
    /// Nobody: the global switch is off, and everything passes.
    Switch,
    /// Nobody who knows: the shared store did not answer, and this is what is done then.
    Failure(OnFailure),
}

impl DecidedBy {
    /// In a few words, the same wherever it is told.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Ban => "ban",
            Self::FullTable => "full table",
            Self::Lease => "lease",
            Self::Switch => "switch",
            Self::Failure(OnFailure::Open) => "failure: open",
            Self::Failure(OnFailure::Closed) => "failure: closed",
            Self::Failure(OnFailure::Local) => "failure: local",
        }
    }
}

/// What is decided while a shared store does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// Everything passes.
    Open,
    /// Everything is refused.
    Closed,
    /// This node decides by itself, in memory, on its share of the limit.
    #[default]
    Local,
}

/// How one charge stands.
///
/// Inside, quantities are in credits, a bucket's own small change: what nobody asks for is never divided.
#[derive(Clone, Copy)]
#[must_use = "a status says whether the request may go on"]
pub struct Status {
    /// With times in credits.
    pub(crate) verdict: Verdict,
    pub(crate) decided_by: DecidedBy,
    pub(crate) limit: u32,
    /// Credits left.
    pub(crate) left: u64,
    /// Credits until the key is as if never used; [`NEVER`] where it never is by itself.
    pub(crate) reset: u64,
    /// Credits that a unit costs.
    pub(crate) per_unit: u64,
    /// Credits that a nanosecond earns.
    pub(crate) per_nano: u32,
    pub(crate) permit: Option<PermitId>,
}

/// A decision, with times in credits (in a [`Status`]) or nanoseconds (compared with others).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allow,
    Wait(u64),
    Deny(u64),
    WhenReleased,
    Never,
}

/// A time that does not come.
pub(crate) const NEVER: u64 = u64::MAX;

impl Status {
    /// What this charge, looked at by itself, is told.
    #[must_use]
    pub const fn decision(&self) -> Decision {
        self.in_nanos().decision()
    }

    /// Whether the request may go on at once.
    #[must_use]
    #[inline]
    pub const fn is_allow(&self) -> bool {
        matches!(self.verdict, Verdict::Allow)
    }

    /// Whether the request is refused.
    #[must_use]
    pub const fn is_deny(&self) -> bool {
        self.verdict.is_deny()
    }

    /// The most that the limit gives at once: burst, capacity or limit.
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// Whole units left after the charge; a refused charge shows them untouched.
    #[must_use]
    pub const fn remaining(&self) -> u32 {
        let units = self.left / self.per_unit;
        if units > u32::MAX as u64 { u32::MAX } else { units as u32 }
    }

    /// The earliest time at which the same charge would pass if nothing else came. `None` where it would pass now,
    /// or where no time can be named (see [`Retry`]).
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.decision() {
            Decision::Deny(Retry::After(after)) => Some(after),
            _ => None,
        }
    }

    /// Until the key is as if never used; for a fixed window, until it ends. `None` where that never comes.
    #[must_use]
    pub const fn reset_after(&self) -> Option<Duration> {
        match self.reset {
            NEVER => None,
            credits => Some(hint(self.nanos(credits))),
        }
    }

    /// Who decided.
    #[must_use]
    pub const fn decided_by(&self) -> DecidedBy {
        self.decided_by
    }

    /// The permit that holds what a concurrency limit gave, to be given back with `leave`; `None` where no slot was taken.
    /// For a charge in a set see [`SetStatus::permit`].
    #[must_use]
    pub const fn permit(&self) -> Option<PermitId> {
        self.permit
    }

    /// A status made by a store outside this crate. Times longer than 584 years are that.
    pub fn new(decision: Decision, limit: u32, remaining: u32, reset_after: Option<Duration>) -> Self {
        let nanos = |time| nanos(time).min(NEVER - 1);
        let verdict = match decision {
            Decision::Allow => Verdict::Allow,
            Decision::Wait(wait) => Verdict::Wait(nanos(wait)),
            Decision::Deny(Retry::After(after)) => Verdict::Deny(nanos(after)),
            Decision::Deny(Retry::WhenReleased) => Verdict::WhenReleased,
            Decision::Deny(Retry::Never) => Verdict::Never,
        };
        Self::plain(verdict, limit, remaining, reset_after.map_or(NEVER, nanos))
    }

    /// The same, decided by somebody else than the limit's own state.
    pub const fn said_by(self, decided_by: DecidedBy) -> Self {
        Self { decided_by, ..self }
    }

    /// The same, with slots that this permit holds.
    pub const fn held_by(self, permit: PermitId) -> Self {
        Self { permit: Some(permit), ..self }
    }

    /// A status whose units are units and whose times are nanoseconds.
    pub(crate) const fn plain(verdict: Verdict, limit: u32, remaining: u32, reset: u64) -> Self {
        Self {
            verdict,
            decided_by: DecidedBy::Store,
            limit,
            left: remaining as u64,
            reset,
            per_unit: 1,
            per_nano: 1,
            permit: None,
        }
    }

    /// The verdict with its times in nanoseconds, rounded up.
    pub(crate) const fn in_nanos(&self) -> Verdict {
        match self.verdict {
            Verdict::Wait(credits) => Verdict::Wait(self.nanos(credits)),
            Verdict::Deny(credits) => Verdict::Deny(self.nanos(credits)),
            other => other,
        }
    }

    /// The same, refused for so long by something other than the limit's state.
    pub(crate) const fn refused(self, nanos: u64, decided_by: DecidedBy) -> Self {
        Self { verdict: Verdict::Deny(nanos.saturating_mul(self.per_nano as u64)), decided_by, ..self }
    }

    /// The same, refused like this.
    pub(crate) fn denied(self, retry: Retry) -> Self {
        let verdict = match retry {
            Retry::After(after) => return self.refused(nanos(after), self.decided_by),
            Retry::WhenReleased => Verdict::WhenReleased,
            Retry::Never => Verdict::Never,
        };
        Self { verdict, ..self }
    }

    /// The same on a key that is banned for so long: the longer refusal counts, and `idle` shows what is there untouched.
    pub(crate) fn banned(self, idle: Self, nanos: u64) -> Self {
        if self.in_nanos().rank() > Verdict::Deny(nanos).rank() {
            return self;
        }
        idle.refused(nanos, DecidedBy::Ban)
    }

    /// The same for a charge that does not wait, while others do who go first: it could go in so many nanoseconds, or
    /// (`None`) nobody can say when. `idle` shows what is there untouched.
    pub(crate) fn behind(self, idle: Self, nanos: Option<u64>) -> Self {
        let verdict = nanos.map_or(Verdict::WhenReleased, Verdict::Deny);
        if self.in_nanos().rank() >= verdict.rank() {
            return self;
        }
        match nanos {
            Some(nanos) => idle.refused(nanos, DecidedBy::Store),
            None => Self { verdict, ..idle },
        }
    }

    pub(crate) const fn add_remaining(&mut self, units: u32) {
        self.left = self.left.saturating_add(self.per_unit.saturating_mul(units as u64));
    }

    pub(crate) const fn reset_nanos(&self) -> u64 {
        self.nanos(self.reset)
    }

    const fn nanos(&self, credits: u64) -> u64 {
        credits.div_ceil(self.per_nano as u64)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Status")
            .field("decision", &self.decision())
            .field("limit", &self.limit)
            .field("remaining", &self.remaining())
            .field("reset_after", &self.reset_after())
            .field("decided_by", &self.decided_by)
            .field("permit", &self.permit)
            .finish()
    }
}

/// Statuses are the same where all that can be asked of them is, but for the permit's name.
impl PartialEq for Status {
    fn eq(&self, other: &Self) -> bool {
        let asked = |it: &Self| (it.decision(), it.limit, it.remaining(), it.reset_after(), it.decided_by);
        asked(self) == asked(other)
    }
}

impl Eq for Status {}

impl Verdict {
    pub(crate) const fn decision(self) -> Decision {
        match self {
            Self::Allow => Decision::Allow,
            Self::Wait(nanos) => Decision::Wait(hint(nanos)),
            Self::Deny(nanos) => Decision::Deny(Retry::After(hint(nanos))),
            Self::WhenReleased => Decision::Deny(Retry::WhenReleased),
            Self::Never => Decision::Deny(Retry::Never),
        }
    }

    pub(crate) const fn is_deny(self) -> bool {
        matches!(self, Self::Deny(_) | Self::WhenReleased | Self::Never)
    }

    /// Restrictiveness: never, then a full concurrency limit, then the longest deny, then the longest wait. Times count as
    /// they are told, in whole microseconds, so that every store agrees on a tie.
    pub(crate) fn rank(self) -> (u8, u64) {
        match self {
            Self::Allow => (0, 0),
            Self::Wait(nanos) => (1, nanos.div_ceil(1_000)),
            Self::Deny(nanos) => (2, nanos.div_ceil(1_000)),
            Self::WhenReleased => (3, 0),
            Self::Never => (4, 0),
        }
    }
}

/// The most restrictive; ties go to the first.
pub(crate) fn strictest(statuses: &[Status]) -> Option<(usize, Verdict)> {
    let ranked = statuses.iter().map(Status::in_nanos).enumerate();
    ranked.reduce(|best, next| if next.1.rank() > best.1.rank() { next } else { best })
}

/// How a whole set of charges stands: all were charged, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a set's status says whether the request may go on"]
pub struct SetStatus {
    verdict: Verdict,
    decisive: Option<usize>,
    statuses: Few<Status>,
    pub(crate) permit: Option<PermitId>,
}

impl SetStatus {
    /// A set that a store outside this crate decided: how every charge stands, and the permit that holds its slots. The
    /// most restrictive status wins; ties go to the first.
    pub fn new(statuses: impl IntoIterator<Item = Status>, permit: Option<PermitId>) -> Self {
        Self { permit, ..Self::of(statuses.into_iter().collect()) }
    }

    /// A set of one charge.
    pub fn one(status: Status) -> Self {
        let (verdict, permit) = (status.in_nanos(), status.permit);
        let decisive = (verdict != Verdict::Allow).then_some(0);
        Self { verdict, decisive, statuses: Few::One(status), permit }
    }

    /// The most restrictive status wins; ties go to the first.
    pub(crate) fn of(statuses: Few<Status>) -> Self {
        let strictest = strictest(&statuses).filter(|(_, verdict)| *verdict != Verdict::Allow);
        let (decisive, verdict) = strictest.unzip();
        let verdict = verdict.unwrap_or(Verdict::Allow);
        Self { verdict, decisive, statuses, permit: None }
    }

    /// What the request is told.
    #[must_use]
    pub const fn decision(&self) -> Decision {
        self.verdict.decision()
    }

    /// Whether the request may go on at once.
    #[must_use]
    pub const fn is_allow(&self) -> bool {
        matches!(self.verdict, Verdict::Allow)
    }

    /// Whether the request is refused; then no charge of the set was made.
    #[must_use]
    pub const fn is_deny(&self) -> bool {
        self.verdict.is_deny()
    }

    /// Which charge refuses the set.
    #[must_use]
    pub fn denied_by(&self) -> Option<usize> {
        self.decisive.filter(|_| self.is_deny())
    }

    /// The earliest time at which the same set would pass, see [`Status::retry_after`].
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.verdict.decision() {
            Decision::Deny(Retry::After(after)) => Some(after),
            _ => None,
        }
    }

    /// The status of every charge, in the order they were given.
    pub fn statuses(&self) -> &[Status] {
        &self.statuses
    }

    /// The permit that owns every concurrency slot the set entered, where it entered any.
    #[must_use]
    pub const fn permit(&self) -> Option<PermitId> {
        self.permit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(verdict: Verdict) -> Status {
        Status::plain(verdict, 1, 0, 0)
    }

    #[test]
    fn the_most_restrictive_wins_and_ties_go_to_the_first() {
        let order = [
            Verdict::Allow,
            Verdict::Wait(5_000),
            Verdict::Wait(5_001),
            Verdict::Deny(0),
            Verdict::Deny(7_000),
            Verdict::WhenReleased,
            Verdict::Never,
        ];
        for (weaker, pair) in order.windows(2).enumerate() {
            let set = SetStatus::new([status(pair[0]), status(pair[1]), status(pair[1])], None);
            assert_eq!(set.verdict, pair[1], "after {weaker}");
            assert_eq!(set.decisive, Some(1));
        }
    }

    #[test]
    fn a_deny_of_zero_is_still_a_deny() {
        let set = SetStatus::new([status(Verdict::Deny(0))], None);
        assert!(set.is_deny());
        assert_eq!(set.denied_by(), Some(0));
        assert_eq!(set, SetStatus::one(status(Verdict::Deny(0))));
    }
}
