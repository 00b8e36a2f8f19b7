//! The terms of leasing: how long a lease lives, how often a node calls, how many buckets it remembers.

use std::time::Duration;
use tollgate::Time;

/// The terms that a node leases on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    life: Duration,
    period: Duration,
    most_buckets: usize,
}

/// A lease that is shorter than this ends before the next call may be made.
const SHORTEST: Duration = Duration::from_millis(50);

/// What is lowered by hand, or banned, must be seen soon.
const LONGEST: Duration = Duration::from_secs(5);

/// At most 25 calls a second for a key, while leases carry it: 22 or 23 by plan, the rest for windows that end and arrivals
/// that run out.
const BETWEEN_CALLS: Duration = Duration::from_millis(44);

impl Terms {
    /// Leases of `life`, which is brought into 50 ms to 5 s.
    pub(crate) fn new(life: Duration) -> Self {
        let life = life.clamp(SHORTEST, LONGEST);
        // At two fifths the lease before last is settled with a fifth of its life to go (an eighth of 100 ms): time for the
        // call to arrive.
        Self { life, period: (life * 2 / 5).max(BETWEEN_CALLS), most_buckets: 100_000 }
    }

    /// Remembers at most so many buckets.
    #[cfg(test)]
    pub(crate) fn with_most_buckets(self, most_buckets: usize) -> Self {
        Self { most_buckets: most_buckets.max(1), ..self }
    }

    /// The life that is asked for.
    pub(crate) const fn life(&self) -> Duration {
        self.life
    }

    /// The time from one call to the next.
    pub(crate) const fn period(&self) -> Duration {
        self.period
    }

    pub(crate) const fn most_buckets(&self) -> usize {
        self.most_buckets
    }

    /// Until when a lease may be spent that was asked for then, by this node's clock. A thousandth is a drift of 1000
    /// millionths between two clocks, ten times what a bad one has; ten microseconds are more than all roundings.
    pub(crate) fn ends(asked: Time, life: Duration) -> Time {
        asked + life.saturating_sub(life / 1000 + Duration::from_micros(10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_outlives_the_call_after_the_next() {
        for millis in [1, 50, 100, 1_000, 60_000] {
            let terms = Terms::new(Duration::from_millis(millis));
            assert!(terms.period() >= BETWEEN_CALLS);
            assert!(terms.period() < terms.life());
            assert!(Terms::ends(Time::ZERO, terms.life()) < Time::ZERO + terms.life());
        }
        let usual = Terms::new(Duration::from_millis(100));
        assert!(usual.period() * 2 < usual.life());
    }
}
