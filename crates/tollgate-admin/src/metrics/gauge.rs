//! A number that goes up and down.

use super::{
    family::{Kind, Metric},
    row::{Place, Row},
    text::Series,
};

/// A number that goes up and down: how many are inside. Clones are the same gauge.
///
/// It is spread over cores as a counter is, so it cannot be set. Where somebody else knows the number, have it asked for
/// instead, with [`Registry::ask_gauge`](super::Registry::ask_gauge).
#[derive(Clone, Debug)]
pub struct Gauge(Place);

impl Gauge {
    /// One more.
    #[inline]
    pub fn increment(&self) {
        self.0.add(1);
    }

    /// One less. Another thread than the one that added may do it.
    #[inline]
    pub fn decrement(&self) {
        self.0.add(1_u64.wrapping_neg());
    }

    /// How many now. Where some come and go while it is read, one may be seen that has gone already, and never less than
    /// none.
    #[must_use]
    pub fn value(&self) -> u64 {
        // Somebody may have been seen to go and not to come.
        u64::try_from(self.0.sum().cast_signed()).unwrap_or_default()
    }
}

impl Metric for Gauge {
    type Room = Row;
    const KIND: Kind = Kind::Gauge;

    fn make(room: &mut Row) -> Self {
        Self(room.next())
    }

    fn is_held(&self) -> bool {
        self.0.is_held()
    }

    /// Whom nobody can change any more tells nothing, unless somebody is still inside.
    fn was_used(&self) -> bool {
        self.value() > 0
    }

    fn write(&self, series: &mut Series<'_>) {
        series.sample("", None, self.value());
    }
}
