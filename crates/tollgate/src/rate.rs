//! How much in how long, kept as the two numbers a person wrote.
//!
//! A rate is a rational, never a truncated interval: 7 per second is seven in a second over any length of time. The
//! two numbers are kept as written because a bucket that refills by interval adds exactly that amount.

use crate::{limit::LimitError, time::nanos};
use std::{fmt, num::NonZeroU64, time::Duration};

/// An amount per duration; neither is ever zero.
///
/// ```
/// use std::time::Duration;
/// use tollgate::Rate;
///
/// let rate = Rate::new(3, Duration::from_secs(7 * 86_400))?;
/// assert_eq!(rate.to_string(), "3/604800s");
/// assert!(Rate::per_second(0).is_err());
/// # Ok::<(), tollgate::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    amount: NonZeroU64,
    period: NonZeroU64,
}

impl Rate {
    /// `amount` units every `period`.
    ///
    /// # Errors
    /// Where either is zero, or the period is longer than 146 years.
    pub fn new(amount: u64, period: Duration) -> Result<Self, LimitError> {
        let period_nanos = nanos(period);
        if period_nanos > 1 << 62 {
            return Err(LimitError::TooLong { setting: "rate's period" });
        }
        match (NonZeroU64::new(amount), NonZeroU64::new(period_nanos)) {
            (Some(amount), Some(period)) => Ok(Self { amount, period }),
            (None, _) => Err(LimitError::Zero { setting: "rate" }),
            (_, None) => Err(LimitError::Zero { setting: "rate's period" }),
        }
    }

    /// `amount` units a second.
    ///
    /// # Errors
    /// Where `amount` is zero.
    pub fn per_second(amount: u32) -> Result<Self, LimitError> {
        Self::new(amount.into(), Duration::from_secs(1))
    }

    /// `amount` units a minute.
    ///
    /// # Errors
    /// Where `amount` is zero.
    pub fn per_minute(amount: u32) -> Result<Self, LimitError> {
        Self::new(amount.into(), Duration::from_secs(60))
    }

    /// `amount` units an hour.
    ///
    /// # Errors
    /// Where `amount` is zero.
    pub fn per_hour(amount: u32) -> Result<Self, LimitError> {
        Self::new(amount.into(), Duration::from_secs(3_600))
    }

    /// How many units come in a [`period`](Self::period).
    #[must_use]
    pub const fn amount(self) -> NonZeroU64 {
        self.amount
    }

    /// How long it takes for the [`amount`](Self::amount) to come.
    #[must_use]
    pub const fn period(self) -> Duration {
        Duration::from_nanos(self.period.get())
    }

    pub(crate) const fn period_nanos(self) -> u64 {
        self.period.get()
    }

    /// The rate in lowest terms: each nanosecond earns the first number of credits, each unit costs the second.
    pub(crate) fn credits(self) -> (u64, u64) {
        let divisor = gcd(self.amount.get(), self.period.get());
        (self.amount.get() / divisor, self.period.get() / divisor)
    }

    pub(crate) fn units_per_second(self) -> f64 {
        self.amount.get() as f64 * 1e9 / self.period.get() as f64
    }
}

/// As the rule file would say it.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
        let period = self.period.get();
        let (size, unit) =
            UNITS.into_iter().find(|(size, _)| period.is_multiple_of(*size)).unwrap_or((1, "ns"));
        match period / size {
            1 => write!(f, "{}/{unit}", self.amount),
            count => write!(f, "{}/{count}{unit}", self.amount),
        }
    }
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_terms() {
        assert_eq!(Rate::per_second(10).unwrap().credits(), (1, 100_000_000));
        assert_eq!(Rate::per_second(7).unwrap().credits(), (7, 1_000_000_000));
        assert_eq!(Rate::per_minute(100).unwrap().credits(), (1, 600_000_000));
    }

    #[test]
    fn zero_is_an_error_never_unlimited() {
        assert!(matches!(Rate::per_second(0), Err(LimitError::Zero { .. })));
        assert!(matches!(Rate::new(1, Duration::ZERO), Err(LimitError::Zero { .. })));
    }
}
