//! What a cell is asked, and what it answers.

use super::step::{LONGEST, Span, price};
use crate::decision::{DecidedBy, Decision, OnFailure, Retry};
use std::{
    num::{NonZeroU32, NonZeroU64},
    time::Duration,
};
use thiserror::Error;

/// A question to a cell: how fast, how much at once, how many now.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{MemoryStore, Throttle};
///
/// let store = MemoryStore::new();
/// let asked = Throttle::per(30, Duration::from_secs(60))?.burst(15);
/// let told = store.throttle("alice", &asked);
/// assert!(told.is_allow());
/// assert_eq!((told.limit(), told.remaining()), (16, 15));
/// # Ok::<(), tollgate::ThrottleError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// The most at once: one more than the burst.
    pub(super) limit: i64,
    pub(super) count: NonZeroU64,
    /// In nanoseconds, a whole number of microseconds.
    pub(super) period: u128,
    pub(super) quantity: i64,
}

/// Why a question makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ThrottleError {
    /// No units, or no time for them.
    #[error("zero rates are not supported")]
    ZeroRate,
}

impl Throttle {
    /// `count` units every `period`, one at once, one now. Periods are whole microseconds, rounded up.
    ///
    /// # Errors
    /// Where either is zero.
    pub const fn per(count: u64, period: Duration) -> Result<Self, ThrottleError> {
        let period = period.as_nanos().div_ceil(1_000) * 1_000;
        match NonZeroU64::new(count) {
            Some(count) if period > 0 => Ok(Self { limit: 1, count, period, quantity: 1 }),
            _ => Err(ThrottleError::ZeroRate),
        }
    }

    /// So many at once above the one that always may. Below zero nothing ever passes.
    #[must_use]
    pub const fn burst(self, burst: i64) -> Self {
        Self { limit: burst.saturating_add(1), ..self }
    }

    /// So many now. Zero asks without charging, and below zero gives back, up to as if never used.
    #[must_use]
    pub const fn quantity(self, quantity: i64) -> Self {
        Self { quantity, ..self }
    }

    /// How many are asked for now.
    #[must_use]
    pub const fn wanted(&self) -> i64 {
        self.quantity
    }

    /// One of `nodes` equal shares of it, what a node decides by itself: never less than one at once.
    #[must_use]
    pub fn share(self, nodes: NonZeroU32) -> Self {
        let limit = if self.limit > 0 { (self.limit / i64::from(nodes.get())).max(1) } else { self.limit };
        Self { limit, period: self.period.saturating_mul(nodes.get().into()).min(SLOWEST), ..self }
    }

    /// What is told where nobody decides: the policy does.
    pub const fn by_policy(&self, policy: OnFailure, come_back: Duration) -> Throttled {
        let is_refused = matches!(policy, OnFailure::Closed) && self.quantity > 0;
        let decision = if is_refused { Decision::Deny(Retry::After(come_back)) } else { Decision::Allow };
        let remaining = if is_refused || self.limit < 0 { 0 } else { self.limit };
        Throttled {
            decision,
            limit: self.limit,
            remaining,
            reset_after: Duration::ZERO,
            decided_by: DecidedBy::Failure(policy),
        }
    }

    /// The question for a store elsewhere, which counts in microseconds and in numbers below 2^53.
    #[must_use]
    pub fn numbers(&self) -> ThrottleNumbers {
        let (count, period) = (self.count.get(), self.period / 1_000);
        let of = count.min(FINEST);
        let coarse = |units: u64| {
            let span = price(period, count, units, LONGEST / 1_000);
            if of == count {
                return (span.whole, span.part);
            }
            let part = (u128::from(span.part) * u128::from(of)).div_ceil(u128::from(count)) as u64;
            if part == of { (span.whole + 1, 0) } else { (span.whole, part) }
        };
        let can_pass = self.quantity <= self.limit.max(0);
        ThrottleNumbers {
            of,
            tolerance: coarse(u64::try_from(self.limit).unwrap_or(0)),
            price: coarse(self.quantity.unsigned_abs()),
            quantity: if can_pass { self.quantity } else { 0 },
        }
    }

    /// What is told of an answer from elsewhere: so much was owed before, in microseconds and parts of one as
    /// [`numbers`](Self::numbers) has them, and the quantity was let pass or not.
    pub fn told(&self, owed: (u64, u64), passed: Passed) -> Throttled {
        let (count, of) = (self.count.get(), self.count.get().min(FINEST));
        let scaled = |part: u64| {
            if of == count {
                return part.min(count - 1);
            }
            let part = (u128::from(part) * u128::from(count)).div_ceil(u128::from(of));
            u64::try_from(part).unwrap_or(u64::MAX).min(count - 1)
        };
        let thousandths = u128::from(scaled(owed.1)) * 1_000;
        let whole = owed.0.saturating_mul(1_000).saturating_add((thousandths / u128::from(count)) as u64);
        let owed = Span { whole, part: (thousandths % u128::from(count)) as u64 };
        super::step::told(self, owed, passed == Passed::Yes)
    }
}

/// Parts of a microsecond that are told apart elsewhere. More units than that in one period are charged a little more than
/// they cost, by less than one part in 10^15.
const FINEST: u64 = 1 << 52;
/// As long a period as a duration can be.
const SLOWEST: u128 = (u64::MAX as u128) * 1_000_000_000;

/// A question in numbers for a store elsewhere: microseconds, and parts of one, `of` of which are a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThrottleNumbers {
    /// How many parts a microsecond has.
    pub of: u64,
    /// What may be owed at most: microseconds, parts.
    pub tolerance: (u64, u64),
    /// What the quantity costs, whether charged or given back.
    pub price: (u64, u64),
    /// Zero where nothing is to change: also where there is more than can ever pass.
    pub quantity: i64,
}

/// Whether a store elsewhere let a quantity pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// It was charged.
    Yes,
    /// It was not.
    No,
}

/// How a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "it says whether the request may go on"]
pub struct Throttled {
    pub(super) decision: Decision,
    pub(super) limit: i64,
    pub(super) remaining: i64,
    pub(super) reset_after: Duration,
    pub(super) decided_by: DecidedBy,
}

impl Throttled {
    /// What the question is told; never to wait.
    #[must_use]
    pub const fn decision(&self) -> Decision {
        self.decision
    }

    /// Whether the request may go on.
    #[must_use]
    pub const fn is_allow(&self) -> bool {
        matches!(self.decision, Decision::Allow)
    }

    /// The most at once.
    #[must_use]
    pub const fn limit(&self) -> i64 {
        self.limit
    }

    /// Whole units left.
    #[must_use]
    pub const fn remaining(&self) -> i64 {
        self.remaining
    }

    /// When the same question would pass if nothing else came; `None` where it passed, or never will.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.decision {
            Decision::Deny(Retry::After(after)) => Some(after),
            _ => None,
        }
    }

    /// Until the cell is as if never used.
    #[must_use]
    pub const fn reset_after(&self) -> Duration {
        self.reset_after
    }

    /// Who decided.
    #[must_use]
    pub const fn decided_by(&self) -> DecidedBy {
        self.decided_by
    }

    /// The same, said by this one.
    pub const fn said_by(self, decided_by: DecidedBy) -> Self {
        Self { decided_by, ..self }
    }
}
