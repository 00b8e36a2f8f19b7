//! Bandwidth: paces the bytes of one body. It is not a charge and has no key.
//!
//! ```text
//! go in any time t, past the first `after`:  at most  2 * chunk + rate * t
//! chunk = a 32nd of a second's bytes, rounded down, at least 1
//! ```
//!
//! Nothing goes until a whole chunk may, so that whoever sends sleeps once a chunk instead of trickling bytes; a
//! [`Pacer`] begins with one. Credit that is not used is kept up to two chunks and then forgotten. The second is what
//! accrues while a timer is late, so that a late timer costs no rate; and a peer that stalled gets no more than two at
//! once when it comes back. nginx's `limit_rate` lets a whole second's bytes go at once, and all that a stalled peer
//! left.
//!
//! A chunk is a time, 31 ms, and not a size: a timer's grain is a millisecond and a busy machine adds some, and where
//! chunks were shorter than timers are late, the timer would be the limit. A byte that takes longer is a chunk by itself.
//!
//! Credit is counted as in a bucket: a nanosecond earns `earn`, a byte costs `price`, whole numbers in lowest terms.
//! `due` is the place on that line at which all that went is paid for; a chunk may go when it is reached. The step has
//! no clock and moves no bytes: `Paced` and `PacedBody` do.

use crate::{
    rate::Rate,
    time::{Time, hint},
};
use std::time::Duration;

/// How fast a body may go.
///
/// ```
/// use tollgate::{Bandwidth, Rate};
///
/// let numbers = Bandwidth::new(Rate::per_second(3200)?).with_after(1000);
/// assert_eq!(numbers.chunk(), 100);
/// assert_eq!(numbers.largest_burst(), 200);
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

/// How many chunks go in a second.
const CHUNKS_A_SECOND: u128 = 32;

impl Bandwidth {
    /// Bytes at `rate`.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self { rate, after: 0 }
    }

    /// Its rate, in bytes.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Lets the first `after` bytes go unpaced.
    #[must_use]
    pub const fn with_after(self, after: u64) -> Self {
        Self { after, ..self }
    }

    /// The bytes that go after one sleep, by a timer that is on time: a 32nd of a second's bytes, at least one.
    #[must_use]
    pub fn chunk(&self) -> u64 {
        let second =
            u128::from(self.rate.amount().get()) * 1_000_000_000 / u128::from(self.rate.period_nanos());
        u64::try_from(second / CHUNKS_A_SECOND).unwrap_or(u64::MAX).max(1)
    }

    /// The most that goes at once past the first `after` bytes: two chunks, a 16th of a second's bytes. In any time t at
    /// most this and rate · t go.
    #[must_use]
    pub fn largest_burst(&self) -> u64 {
        self.chunk().saturating_mul(2)
    }
}

/// One body on its way: says how much of it may go now.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Bandwidth, Pace, Pacer, Rate, Time};
///
/// let start = Time::ZERO;
/// let mut pacer = Pacer::new(Bandwidth::new(Rate::per_second(3200)?).with_after(1000), start);
/// assert_eq!(pacer.allow(start), Pace::Send(1100));
/// pacer.sent(1100);
/// assert_eq!(pacer.allow(start), Pace::Sleep(Duration::from_micros(31_250)));
///
/// // Whoever comes an hour later finds two chunks, not an hour's bytes.
/// assert_eq!(pacer.allow(start + Duration::from_secs(3600)), Pace::Send(200));
/// # Ok::<(), tollgate::LimitError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pacer {
    start: Time,
    earn: u64,
    price: u64,
    /// A chunk, in credits.
    chunk: u128,
    /// How many of the first bytes are left that go unpaced.
    unpaced: u64,
    /// How many of those that were allowed have not gone.
    granted: u64,
    /// In credits since `start`.
    due: u128,
}

impl Pacer {
    /// A body that begins at `start`.
    #[must_use]
    pub fn new(numbers: Bandwidth, start: Time) -> Self {
        let (earn, price) = numbers.rate.credits();
        let chunk = u128::from(numbers.chunk()) * u128::from(price);
        Self { start, earn, price, chunk, unpaced: numbers.after, granted: 0, due: 0 }
    }

    /// What to do at `now`. Changes nothing but what is forgotten: ask as often as you like.
    pub fn allow(&mut self, now: Time) -> Pace {
        let line = u128::from(now.nanos_since(self.start)) * u128::from(self.earn);
        self.due = self.due.max(line.saturating_sub(self.chunk));
        if self.due <= line {
            let credit = line + self.chunk - self.due;
            self.granted = u64::try_from(credit / u128::from(self.price)).unwrap_or(u64::MAX);
        }
        match self.unpaced.saturating_add(self.granted) {
            0 => {
                let nanos = (self.due - line).div_ceil(self.earn.into());
                Pace::Sleep(hint(u64::try_from(nanos).unwrap_or(u64::MAX)))
            }
            bytes => Pace::Send(bytes),
        }
    }

    /// Says that so many bytes went, as of the time they were allowed at. More than were allowed are made up for later.
    pub fn sent(&mut self, bytes: u64) {
        let paced = bytes.saturating_sub(self.unpaced);
        self.unpaced = self.unpaced.saturating_sub(bytes);
        self.granted = self.granted.saturating_sub(paced);
        self.due = self.due.saturating_add(u128::from(paced) * u128::from(self.price));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_chunk_takes_a_32nd_of_a_second() {
        let chunk = |amount, period| Bandwidth::new(Rate::new(amount, period).unwrap()).chunk();
        let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3600));
        assert_eq!(chunk(1, hour), 1);
        assert_eq!(chunk(63, second), 1);
        assert_eq!(chunk(50 << 10, second), 1600);
        assert_eq!(chunk(10_000_000_000, second), 312_500_000);
        assert_eq!(chunk(u64::MAX, Duration::from_nanos(1)), u64::MAX);
    }

    #[test]
    fn what_was_sent_beyond_the_allowed_is_made_up_for() {
        let rate = Rate::per_second(3200).unwrap();
        let mut pacer = Pacer::new(Bandwidth::new(rate), Time::ZERO);
        assert_eq!(pacer.allow(Time::ZERO), Pace::Send(100));
        pacer.sent(3300);
        let second_and_a_chunk = Duration::from_micros(1_031_250);
        assert_eq!(pacer.allow(Time::ZERO), Pace::Sleep(second_and_a_chunk));
        assert_eq!(pacer.allow(Time::ZERO + second_and_a_chunk), Pace::Send(100));
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing_away() {
        let mut pacer =
            Pacer::new(Bandwidth::new(Rate::per_second(3200).unwrap()), Time::from_micros(500_000));
        let second = Time::from_micros(1_500_000);
        assert_eq!(pacer.allow(second), Pace::Send(200));
        pacer.sent(200);
        assert_eq!(pacer.allow(Time::ZERO), Pace::Sleep(Duration::from_micros(1_031_250)));
        assert_eq!(pacer.allow(second), Pace::Sleep(Duration::from_micros(31_250)));
    }

    proptest! {
        /// Sending all that is allowed, whenever it is allowed, is on pace at every instant and never behind it.
        #[test]
        fn the_pace_is_kept(amount in 1_u64..1_000_000_000, after in 0_u64..1_000_000, body in 1_u64..10_000_000) {
            let rate = Rate::new(amount, Duration::from_secs(1)).unwrap();
            let numbers = Bandwidth::new(rate).with_after(after);
            let mut pacer = Pacer::new(numbers, Time::ZERO);
            let (mut sent, mut now, mut steps) = (0, Time::ZERO, 0);
            while sent < body && steps < 10_000 {
                steps += 1;
                let flown = u128::from(now.as_nanos()) * u128::from(amount) / 1_000_000_000;
                match pacer.allow(now) {
                    Pace::Send(bytes) => {
                        let bytes = bytes.min(body - sent);
                        pacer.sent(bytes);
                        sent += bytes;
                    }
                    Pace::Sleep(time) => {
                        prop_assert!(u128::from(sent) >= u128::from(after) + flown);
                        prop_assert!(time > Duration::ZERO);
                        now += time;
                        prop_assert!(matches!(pacer.allow(now), Pace::Send(_)));
                    }
                }
                prop_assert!(u128::from(sent) <= u128::from(after + numbers.chunk()) + flown);
            }
        }

        /// No number that can be named makes it panic, or allow nothing without saying for how long.
        #[test]
        fn any_numbers_will_do(
            amount in 1_u64.., period in 1_u64..=1 << 62, after: u64, start: u64,
            asked in prop::collection::vec((any::<u64>(), any::<u64>()), 1..20),
        ) {
            let numbers = Bandwidth::new(Rate::new(amount, Duration::from_nanos(period)).unwrap()).with_after(after);
            let mut pacer = Pacer::new(numbers, Time::from_nanos(start));
            for (at, bytes) in asked {
                match pacer.allow(Time::from_nanos(at)) {
                    Pace::Send(allowed) => prop_assert!(allowed > 0),
                    Pace::Sleep(time) => prop_assert!(time > Duration::ZERO),
                }
                pacer.sent(bytes);
            }
        }
    }
}
