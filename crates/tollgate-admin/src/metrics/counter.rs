//! A number that only grows.

use super::{
    family::{Kind, Metric},
    row::{Place, Row},
    text::Series,
};

/// A number that only grows. Clones are the same counter.
#[derive(Clone, Debug)]
pub struct Counter(Place);

impl Counter {
    /// One more.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// `n` more.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.add(n);
    }

    /// How many so far.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.sum()
    }
}

impl Metric for Counter {
    type Room = Row;
    const KIND: Kind = Kind::Counter;

    fn make(room: &mut Row) -> Self {
        Self(room.next())
    }

    fn is_held(&self) -> bool {
        self.0.is_held()
    }

    fn was_used(&self) -> bool {
        self.total() > 0
    }

    fn write(&self, series: &mut Series<'_>) {
        series.sample("", None, self.total());
    }
}
