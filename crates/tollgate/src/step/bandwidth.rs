//! Bandwidth: paces the bytes of one body. It is not a charge and has no key.
//!
//! ```text
//! may have sent by t:  after + chunk + rate * (t - start)
//! ```
//!
//! `chunk` is 1/16 of a second's bytes (at least one byte, at most 64 KiB): the largest burst beyond `after`, where
//! nginx's `limit_rate` lets a whole second's bytes go at once. The step is asked with what was sent and answers how much
//! may go now, or how long to sleep until a chunk may.

use crate::{
    rate::Rate,
    time::{Time, hint},
};
use std::time::Duration;

/// How fast a body may go.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Bandwidth, Pace, Rate, Time};
///
/// let numbers = Bandwidth::new(Rate::per_second(1600)?).with_after(1000);
/// let start = Time::ZERO;
/// assert_eq!(numbers.pace(start, 0, start), Pace::Send(1100));
/// assert_eq!(numbers.pace(start, 1100, start), Pace::Sleep(Duration::from_micros(62_500)));
/// assert_eq!(numbers.pace(start, 1100, start + Duration::from_secs(1)), Pace::Send(1600));
/// # Ok::<(), tollgate::LimitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    rate: Rate,
    after: u64,
}

/// What to do with the next bytes of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Up to this many may go now.
    Send(u64),
    /// None may go now; after this long, a chunk may.
    Sleep(Duration),
}

/// The largest burst beyond `after`.
const LARGEST_CHUNK: u64 = 64 * 1024;

impl Bandwidth {
    /// Bytes at `rate`.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self { rate, after: 0 }
    }

    /// Lets the first `after` bytes go unpaced.
    #[must_use]
    pub const fn with_after(self, after: u64) -> Self {
        Self { after, ..self }
    }

    /// The bytes that may go at once when the pace allows any.
    #[must_use]
    pub fn chunk(&self) -> u64 {
        let second =
            u128::from(self.rate.amount().get()) * 1_000_000_000 / u128::from(self.rate.period_nanos());
        u64::try_from(second / 16).unwrap_or(u64::MAX).clamp(1, LARGEST_CHUNK)
    }

    /// What to do at `now` with a body begun at `start` of which `sent` bytes have gone.
    #[must_use]
    pub fn pace(&self, start: Time, sent: u64, now: Time) -> Pace {
        let (amount, period) = (u128::from(self.rate.amount().get()), u128::from(self.rate.period_nanos()));
        let elapsed = u128::from(now.nanos_since(start));
        let head = u128::from(self.after) + u128::from(self.chunk());
        let may_have_sent = head + elapsed * amount / period;
        match may_have_sent.saturating_sub(sent.into()) {
            0 => {
                // Awake when a whole chunk may go, not at the next byte.
                let wanted = u128::from(sent) + u128::from(self.chunk()) - head;
                let at = (wanted * period).div_ceil(amount);
                Pace::Sleep(hint(u64::try_from(at - elapsed).unwrap_or(u64::MAX)))
            }
            bytes => Pace::Send(u64::try_from(bytes).unwrap_or(u64::MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Sending all that is allowed, whenever it is allowed, is on pace at every instant and never behind it.
        #[test]
        fn the_pace_is_kept(amount in 1_u64..1_000_000_000, after in 0_u64..1_000_000, body in 1_u64..10_000_000) {
            let rate = Rate::new(amount, Duration::from_secs(1)).unwrap();
            let numbers = Bandwidth::new(rate).with_after(after);
            let (mut sent, mut now, mut steps) = (0, Time::ZERO, 0);
            while sent < body && steps < 10_000 {
                steps += 1;
                match numbers.pace(Time::ZERO, sent, now) {
                    Pace::Send(bytes) => sent = (sent + bytes).min(body),
                    Pace::Sleep(time) => {
                        prop_assert!(time > Duration::ZERO);
                        now += time;
                        prop_assert!(matches!(numbers.pace(Time::ZERO, sent, now), Pace::Send(_)));
                    }
                }
                let bound = u128::from(after + numbers.chunk())
                    + u128::from(now.as_nanos()) * u128::from(amount) / 1_000_000_000;
                prop_assert!(u128::from(sent) <= bound);
            }
        }
    }
}
