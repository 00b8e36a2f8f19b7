//! How long things take, in buckets of a logarithmic scale.
//!
//! Bounds are 1, 2 and 5 of every power of ten from ten microseconds to a hundred seconds: numbers that people write into
//! objectives. A quantile read from them is right within a factor of 2.5. All histograms have the same bounds, so they can
//! be added up.
//!
//! A histogram takes 256 bytes a shard.

use super::{
    cells::Cells,
    family::{Kind, Metric},
    text::Series,
};
use std::{sync::Arc, time::Duration};

/// How long things take. Clones are the same histogram.
#[derive(Clone, Debug)]
pub struct Histogram(Arc<Cells>);

/// The largest time that falls into each bucket, in nanoseconds.
const BOUNDS: [u64; 22] = bounds();

/// What the bounds are called, in seconds.
const NAMES: [&str; 22] = [
    "1e-05", "2e-05", "5e-05", "0.0001", "0.0002", "0.0005", "0.001", "0.002", "0.005", "0.01", "0.02",
    "0.05", "0.1", "0.2", "0.5", "1.0", "2.0", "5.0", "10.0", "20.0", "50.0", "100.0",
];

/// The cell of what is beyond the last bound.
const BEYOND: usize = BOUNDS.len();

/// The cell of the sum, in nanoseconds: five centuries of waiting fit.
const SUM: usize = BEYOND + 1;

/// For times of so many bits: the first bucket that one of them can fall into.
const FIRST: [u8; 65] = first();

impl Histogram {
    /// Something took so long.
    #[inline]
    pub fn observe(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.0.add(bucket(nanos), 1);
        self.0.add(SUM, nanos);
    }

    /// How often, so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        (0..=BEYOND).map(|bucket| self.0.sum(bucket)).sum()
    }

    /// How long altogether, so far.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.0.sum(SUM))
    }
}

impl Metric for Histogram {
    type Room = ();
    const KIND: Kind = Kind::Histogram;

    fn make((): &mut ()) -> Self {
        Self(Arc::new(Cells::new(SUM + 1)))
    }

    fn is_held(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    fn was_used(&self) -> bool {
        self.count() > 0
    }

    /// It is 25 lines, and most rules never make anybody wait.
    fn is_shown(&self) -> bool {
        self.was_used()
    }

    fn write(&self, series: &mut Series<'_>) {
        let mut count = 0;
        for (bucket, name) in NAMES.into_iter().chain(["+Inf"]).enumerate() {
            count += self.0.sum(bucket);
            series.sample("_bucket", Some(("le", name)), count);
        }
        let sum = self.sum();
        series.sample("_sum", None, format_args!("{}.{:09}", sum.as_secs(), sum.subsec_nanos()));
        // What the buckets were seen to hold, so that both agree whatever comes meanwhile.
        series.sample("_count", None, count);
    }
}

#[inline]
fn bucket(nanos: u64) -> usize {
    let mut bucket = usize::from(FIRST[64 - nanos.leading_zeros() as usize]);
    // Between a power of two and the next there is at most one bound, or two just before 10.
    while bucket < BOUNDS.len() && nanos > BOUNDS[bucket] {
        bucket += 1;
    }
    bucket
}

const fn bounds() -> [u64; 22] {
    let mut bounds = [0; 22];
    let mut power = 10_000;
    let mut at = 0;
    while at < bounds.len() {
        bounds[at] = power * [1, 2, 5][at % 3];
        if at % 3 == 2 {
            power *= 10;
        }
        at += 1;
    }
    bounds
}

const fn first() -> [u8; 65] {
    let mut first = [0; 65];
    let mut bits = 1;
    while bits <= 64 {
        let least = 1_u64 << (bits - 1);
        let mut bucket = 0;
        while bucket < BOUNDS.len() && least > BOUNDS[bucket] {
            bucket += 1;
        }
        first[bits] = bucket as u8;
        bits += 1;
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bounds_are_what_they_are_called() {
        for (bound, name) in BOUNDS.into_iter().zip(NAMES) {
            let seconds: f64 = name.parse().expect("a number");
            assert_eq!(bound, (seconds * 1e9).round() as u64, "{name}");
        }
    }

    #[test]
    fn a_time_on_a_bound_belongs_below_it() {
        for (at, bound) in BOUNDS.into_iter().enumerate() {
            assert_eq!((bucket(bound), bucket(bound + 1)), (at, at + 1), "{bound}");
        }
        assert_eq!((bucket(0), bucket(u64::MAX)), (0, BEYOND));
    }

    proptest! {
        #[test]
        fn buckets_found_by_bits_are_those_found_by_looking(bits in 0_u32..64, rest: u64) {
            let nanos = rest >> bits;
            prop_assert_eq!(bucket(nanos), BOUNDS.iter().filter(|bound| nanos > **bound).count());
        }
    }
}
