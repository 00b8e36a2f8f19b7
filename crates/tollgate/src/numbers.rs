//! A limit's numbers as its arithmetic needs them: for stores outside this crate, which restate the steps where their state
//! lives, and for whoever wants to show them.

use crate::{
    limit::Limit,
    step::{Kind, Step, bucket::Overbooks, fixed_window::Windows},
};
use std::time::Duration;

/// What an algorithm computes with.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Numbers {
    /// A token bucket that refills continuously, or a leaky bucket.
    Bucket(BucketNumbers),
    /// A token bucket that refills by whole periods.
    Interval {
        /// Units that a period adds.
        amount: u64,
        /// How long a period is.
        period: Duration,
        /// The most it holds.
        burst: u32,
        /// What it holds at first.
        initial: u32,
    },
    /// One of Guava's limiters.
    Smooth(Which, SmoothNumbers),
    /// A fixed window.
    FixedWindow {
        /// Units a window.
        limit: u32,
        /// Where windows begin and end.
        windows: WindowNumbers,
    },
    /// A sliding counter.
    SlidingCounter {
        /// Units a window.
        limit: u32,
        /// How long a window is.
        window: Duration,
    },
    /// A sliding log, or a sliding window.
    Log {
        /// Units a window.
        limit: u32,
        /// How long a window is.
        window: Duration,
        /// How long a sub-window is; `None` for the exact log.
        precision: Option<Duration>,
    },
    /// Concurrency.
    Concurrency {
        /// Units in flight.
        limit: u32,
        /// How long a slot is held without a renewal.
        max_hold: Duration,
    },
}

/// Which of the two limits that share their arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Token bucket, or smooth bursty.
    First,
    /// Leaky bucket, or smooth warming up.
    Second,
}

/// The numbers of a bucket whose level drains at an exact rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketNumbers {
    /// A token bucket, or a leaky one.
    pub which: Which,
    /// Credits that a nanosecond earns, in lowest terms with `price`.
    pub earn: u64,
    /// Credits that a unit costs.
    pub price: u64,
    /// The most it holds.
    pub capacity: u32,
    /// How many of the capacity's units pass without waiting for the pace.
    pub free: u32,
    /// Whether turns can be booked above the capacity.
    pub books: bool,
    /// What a key never used holds at the limit's birth.
    pub initial: u32,
}

/// The numbers of Guava's limiters, in microseconds and permits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SmoothNumbers {
    /// Microseconds a permit at the stable rate.
    pub stable: f64,
    /// The most permits stored.
    pub max: f64,
    /// What a key never used has stored at the limit's birth.
    pub initial: f64,
    /// Microseconds of rest that store one permit.
    pub cool: f64,
    /// Of a limiter that warms up: stored permits above the threshold cost by this slope more.
    pub warm: Option<(f64, f64)>,
    /// Whether fractions of a microsecond are dropped, as Guava does, or owed.
    pub drops_fractions: bool,
}

/// Where fixed windows begin and end.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum WindowNumbers {
    /// At multiples of the window since 1970.
    Epoch(Duration),
    /// With the first charge that finds none open.
    FirstHit(Duration),
    /// Never.
    Forever,
    /// With the calendar.
    #[cfg(feature = "calendar")]
    Calendar(crate::Calendar),
}

impl Limit {
    /// Its numbers, as its arithmetic needs them.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        let span = Duration::from_nanos;
        match Step::new(self) {
            Step::Bucket(kind, it) => Numbers::Bucket(BucketNumbers {
                which: which(kind),
                earn: it.earn,
                price: it.price,
                capacity: it.capacity,
                free: it.free,
                books: it.overbooks == Overbooks::Yes,
                initial: match self {
                    Self::TokenBucket(it) => it.initial,
                    _ => it.capacity,
                },
            }),
            Step::Interval(it) => Numbers::Interval {
                amount: it.amount,
                period: span(it.period),
                burst: it.burst,
                initial: it.initial,
            },
            Step::Smooth(kind, it) => Numbers::Smooth(which(kind), it.numbers()),
            Step::FixedWindow(it) => Numbers::FixedWindow {
                limit: it.limit,
                windows: match it.windows {
                    Windows::Epoch(window) => WindowNumbers::Epoch(span(window)),
                    Windows::FirstHit(window) => WindowNumbers::FirstHit(span(window)),
                    Windows::Forever => WindowNumbers::Forever,
                    #[cfg(feature = "calendar")]
                    Windows::Calendar(calendar) => WindowNumbers::Calendar(calendar),
                },
            },
            Step::SlidingCounter(it) => Numbers::SlidingCounter { limit: it.limit, window: span(it.window) },
            Step::Log(it) => {
                Numbers::Log { limit: it.limit, window: span(it.window), precision: it.precision.map(span) }
            }
            Step::Concurrency(it) => Numbers::Concurrency { limit: it.limit, max_hold: span(it.max_hold) },
        }
    }
}

const fn which(kind: Kind) -> Which {
    match kind {
        Kind::Token | Kind::Bursty => Which::First,
        Kind::Leaky | Kind::WarmingUp => Which::Second,
    }
}
