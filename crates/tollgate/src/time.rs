//! Points in time on a clock's own line, in whole nanoseconds.
//!
//! A [`Time`] has no meaning of its own: it is only compared with times of the same clock. All arithmetic
//! saturates, so that no number a caller can name makes time run backwards or panic.

use std::{
    fmt,
    ops::{Add, AddAssign, Sub},
    time::Duration,
};

/// A point on a [`Clock`](crate::Clock)'s line, in nanoseconds from wherever that line begins. The line is 146 years
/// long; what would lie beyond is its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// Where the line begins.
    pub const ZERO: Self = Self(0);

    /// Where the line ends.
    pub const END: Self = Self(1 << 62);

    /// The point `nanos` nanoseconds after the line's beginning.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        if nanos > Self::END.0 { Self::END } else { Self(nanos) }
    }

    /// A point that a clock of this machine measured: no machine runs to the line's end.
    #[inline(always)]
    pub(crate) const fn measured(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The point `micros` microseconds after the line's beginning.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self::from_nanos(micros.saturating_mul(1_000))
    }

    /// Nanoseconds since the line's beginning.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Nanoseconds since `earlier`, zero where `earlier` is in fact later.
    #[must_use]
    pub(crate) const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        Self::from_nanos(self.0.saturating_add(nanos(by)))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, by: Duration) {
        *self = *self + by;
    }
}

impl Sub for Time {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns", self.0)
    }
}

/// A duration in whole nanoseconds; longer than 584 years is 584 years.
pub(crate) const fn nanos(duration: Duration) -> u64 {
    let nanos = duration.as_nanos();
    if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
}

/// A hint is rounded up to a whole microsecond, so that nobody is told to come early.
pub(crate) const fn hint(nanos: u64) -> Duration {
    Duration::from_micros(nanos.div_ceil(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_round_up_never_down() {
        assert_eq!(hint(0), Duration::ZERO);
        assert_eq!(hint(1), Duration::from_micros(1));
        assert_eq!(hint(1_000), Duration::from_micros(1));
        assert_eq!(hint(1_001), Duration::from_micros(2));
        assert!(hint(u64::MAX) >= Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!((Time::from_nanos(5) - Time::from_nanos(9)), Duration::ZERO);
        assert_eq!(Time::from_nanos(5) + Duration::MAX, Time::END);
        assert_eq!(Time::from_micros(u64::MAX), Time::END);
    }
}
