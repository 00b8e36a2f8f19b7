//! A limit: an algorithm with its numbers.
//!
//! Each algorithm's numbers are a type of their own, whose constructor refuses what makes no sense; a [`Limit`] is
//! any one of them. Zero is always an error and never means unlimited.

use std::time::Duration;
use thiserror::Error;

pub use crate::step::{
    bandwidth::Bandwidth,
    concurrency::Concurrency,
    fixed_window::{Align, FixedWindow},
    leaky_bucket::{Delay, LeakyBucket},
    sliding_counter::SlidingCounter,
    sliding_log::SlidingLog,
    sliding_window::SlidingWindow,
    smooth_bursty::SmoothBursty,
    smooth_warming_up::SmoothWarmingUp,
    token_bucket::{Refill, TokenBucket},
};

#[cfg(feature = "calendar")]
pub use crate::step::calendar::{Calendar, Unit};

/// An algorithm with its numbers.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limit, Rate, SlidingLog, TokenBucket};
///
/// let login: Limit = SlidingLog::new(5, Duration::from_secs(60))?.into();
/// let api: Limit = TokenBucket::new(Rate::per_second(10)?, 100)?.into();
/// assert_eq!(login.name(), "sliding_log");
/// assert_eq!(api.name(), "token_bucket");
/// # Ok::<(), tollgate::LimitError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Limit {
    /// See [`TokenBucket`].
    TokenBucket(TokenBucket),
    /// See [`LeakyBucket`].
    LeakyBucket(LeakyBucket),
    /// See [`SmoothBursty`].
    SmoothBursty(SmoothBursty),
    /// See [`SmoothWarmingUp`].
    SmoothWarmingUp(SmoothWarmingUp),
    /// See [`FixedWindow`].
    FixedWindow(FixedWindow),
    /// See [`SlidingLog`].
    SlidingLog(SlidingLog),
    /// See [`SlidingWindow`].
    SlidingWindow(SlidingWindow),
    /// See [`SlidingCounter`].
    SlidingCounter(SlidingCounter),
    /// See [`Concurrency`].
    Concurrency(Concurrency),
}

impl Limit {
    /// The algorithm's name in a rule file.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::TokenBucket(_) => "token_bucket",
            Self::LeakyBucket(_) => "leaky_bucket",
            Self::SmoothBursty(_) => "smooth_bursty",
            Self::SmoothWarmingUp(_) => "smooth_warming_up",
            Self::FixedWindow(_) => "fixed_window",
            Self::SlidingLog(_) => "sliding_log",
            Self::SlidingWindow(_) => "sliding_window",
            Self::SlidingCounter(_) => "sliding_counter",
            Self::Concurrency(_) => "concurrency",
        }
    }

    /// The most that it gives at once: burst, capacity or limit.
    #[must_use]
    pub fn most(&self) -> u32 {
        crate::step::Step::new(self).limit()
    }

    /// Whether turns can be booked ahead on it. Windows, logs, counters and concurrency never answer
    /// [`Wait`](crate::Decision::Wait).
    #[must_use]
    pub const fn books(&self) -> bool {
        matches!(
            self,
            Self::TokenBucket(_) | Self::LeakyBucket(_) | Self::SmoothBursty(_) | Self::SmoothWarmingUp(_)
        )
    }
}

macro_rules! into_limit {
    ($($kind:ident)*) => {$(
        impl From<$kind> for Limit {
            fn from(numbers: $kind) -> Self {
                Self::$kind(numbers)
            }
        }
    )*};
}

into_limit!(TokenBucket LeakyBucket SmoothBursty SmoothWarmingUp FixedWindow SlidingLog SlidingWindow
    SlidingCounter Concurrency);

/// Why numbers make no limit. The messages name the setting as the rule file does.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum LimitError {
    /// Zero where something is needed.
    #[error("{setting} must be greater than zero")]
    Zero {
        /// The setting's name.
        setting: &'static str,
    },
    /// Longer than a clock can tell.
    #[error("{setting} must be at most 146 years")]
    TooLong {
        /// The setting's name.
        setting: &'static str,
    },
    /// Larger than another setting allows.
    #[error("{setting} must not be above {bound}")]
    Above {
        /// The setting's name.
        setting: &'static str,
        /// The setting that bounds it.
        bound: &'static str,
    },
    /// Not a number, infinite, or out of range.
    #[error("{setting} must be a finite number, {at_least} or more")]
    NotFinite {
        /// The setting's name.
        setting: &'static str,
        /// The smallest value it takes.
        at_least: f64,
    },
    /// No such time zone.
    #[error("no time zone is called {name:?}; names look like Europe/Paris")]
    UnknownTimeZone {
        /// The name that was asked for.
        name: String,
    },
}

/// `value`, which must not be zero.
pub(crate) fn nonzero(value: u32, setting: &'static str) -> Result<u32, LimitError> {
    if value == 0 { Err(LimitError::Zero { setting }) } else { Ok(value) }
}

/// The longest window, warm-up or hold: 146 years.
pub(crate) const LONGEST: u64 = 1 << 62;

/// `span` in nanoseconds, which must be neither zero nor longer than a clock can tell.
pub(crate) fn span(span: Duration, setting: &'static str) -> Result<u64, LimitError> {
    match crate::time::nanos(span) {
        0 => Err(LimitError::Zero { setting }),
        nanos if nanos > LONGEST => Err(LimitError::TooLong { setting }),
        nanos => Ok(nanos),
    }
}
