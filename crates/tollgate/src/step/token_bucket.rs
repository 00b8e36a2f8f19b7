//! Token bucket: `burst` units at most, refilled at `rate`.
//!
//! Worst case admitted: `burst + rate * t` in any time `t`, exactly; the arithmetic is [`bucket`](super::bucket)'s.
//! With [`Refill::Interval`] the rate's whole amount is added at the end of every whole period, counted from the
//! first charge of a full bucket; the worst case is then `burst + amount * ceil(t / period)`
//! ([`interval`](super::interval)).

use crate::{
    limit::{LimitError, nonzero},
    rate::Rate,
};

/// Token bucket: a store of units that refills at a rate and lets bursts through.
///
/// ```
/// use tollgate::{Limiter, Rate, TokenBucket};
///
/// let limiter = Limiter::new(TokenBucket::new(Rate::per_second(10)?, 2)?);
/// assert!(limiter.check().is_allow());
/// assert!(limiter.check().is_allow());
/// assert!(limiter.check().is_deny());
/// # Ok::<(), tollgate::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    pub(crate) rate: Rate,
    pub(crate) burst: u32,
    pub(crate) initial: u32,
    pub(crate) refill: Refill,
}

/// How a token bucket fills.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refill {
    /// Unit by unit, as time passes.
    #[default]
    Continuous,
    /// The rate's whole amount at the end of every whole period.
    Interval,
}

impl TokenBucket {
    /// A bucket of `burst` units, full at first, that refills at `rate`.
    ///
    /// # Errors
    /// Where `burst` is zero.
    pub fn new(rate: Rate, burst: u32) -> Result<Self, LimitError> {
        let burst = nonzero(burst, "burst")?;
        Ok(Self { rate, burst, initial: burst, refill: Refill::Continuous })
    }

    /// Starts with `initial` units instead of a full bucket. Zero is a good answer here.
    ///
    /// # Errors
    /// Where `initial` is above the burst.
    pub fn with_initial(self, initial: u32) -> Result<Self, LimitError> {
        if initial > self.burst {
            return Err(LimitError::Above { setting: "initial", bound: "burst" });
        }
        Ok(Self { initial, ..self })
    }

    /// Fills in this way.
    #[must_use]
    pub const fn with_refill(self, refill: Refill) -> Self {
        Self { refill, ..self }
    }
}
