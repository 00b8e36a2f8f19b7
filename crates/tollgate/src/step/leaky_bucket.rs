//! Leaky bucket: a charge fits when `level + cost <= capacity`; the level drains at `rate`.
//!
//! Without a delay what fits passes at once and the worst case admitted is `capacity + rate * t` in any time `t`.
//! With [`Delay::After`]`(n)` the first `n` pass at once and the others wait for the pace, so that at most
//! `n + rate * t` start in any time `t`, and at most `capacity - n` are waiting: nginx's `limit_req` with
//! `burst = capacity - 1`. The arithmetic is [`bucket`](super::bucket)'s, on nanoseconds where nginx rounds to
//! thousandths of a request and milliseconds.

use crate::{
    limit::{LimitError, nonzero},
    rate::Rate,
};

/// Leaky bucket: a level that drains at a rate; what would overflow is refused, what is above the delay waits.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Decision, Delay, LeakyBucket, Limiter, ManualClock, Rate};
///
/// // nginx: rate=1r/s burst=2
/// let numbers = LeakyBucket::new(Rate::per_second(1)?, 3)?.with_delay(Delay::After(1))?;
/// let limiter = Limiter::with_clock(numbers, ManualClock::new());
/// assert_eq!(limiter.check().decision(), Decision::Allow);
/// assert_eq!(limiter.check().decision(), Decision::Wait(Duration::from_secs(1)));
/// assert_eq!(limiter.check().decision(), Decision::Wait(Duration::from_secs(2)));
/// assert!(limiter.check().is_deny());
/// # Ok::<(), tollgate::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeakyBucket {
    pub(crate) rate: Rate,
    pub(crate) capacity: u32,
    pub(crate) delay: Delay,
}

/// What a leaky bucket does with what fits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delay {
    /// It passes at once (nginx: `nodelay`).
    #[default]
    None,
    /// The first so many pass at once, the others wait for the pace (nginx: `delay=n-1`; 1 is its default).
    After(u32),
}

impl LeakyBucket {
    /// A bucket of `capacity` that drains at `rate`, without delay.
    ///
    /// # Errors
    /// Where `capacity` is zero.
    pub fn new(rate: Rate, capacity: u32) -> Result<Self, LimitError> {
        Ok(Self { rate, capacity: nonzero(capacity, "capacity")?, delay: Delay::None })
    }

    /// Delays what fits in this way.
    ///
    /// # Errors
    /// Where the delay starts at zero units or above the capacity.
    pub fn with_delay(self, delay: Delay) -> Result<Self, LimitError> {
        match delay {
            Delay::After(0) => Err(LimitError::Zero { setting: "delay" }),
            Delay::After(units) if units > self.capacity => {
                Err(LimitError::Above { setting: "delay", bound: "capacity" })
            }
            _ => Ok(Self { delay, ..self }),
        }
    }
}
