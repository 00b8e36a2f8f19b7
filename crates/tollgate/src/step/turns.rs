//! How turns are had at a step, for those who wait.

use super::{Step, bucket::Overbooks};
use std::time::Duration;

/// How a turn is had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// As a time, known at once.
    Booked,
    /// By asking again when there should be room.
    Asked,
    /// By somebody leaving.
    Slots {
        /// How many may wait.
        queue: u32,
        /// How long a slot is held without a renewal.
        max_hold: Duration,
    },
}

impl Step {
    pub(crate) const fn turns(&self) -> Turns {
        match self {
            Self::Bucket(_, bucket) if matches!(bucket.overbooks, Overbooks::No) => Turns::Asked,
            Self::Bucket(..) | Self::Interval(_) | Self::Smooth(..) => Turns::Booked,
            Self::FixedWindow(_) | Self::SlidingCounter(_) | Self::Log(_) => Turns::Asked,
            Self::Concurrency(it) => Turns::Slots { queue: it.queue(), max_hold: it.max_hold() },
        }
    }
}

impl Turns {
    pub(crate) const fn is_slots(self) -> bool {
        matches!(self, Self::Slots { .. })
    }

    /// How many may wait, where that is bounded.
    pub(crate) const fn queue(self) -> Option<u32> {
        match self {
            Self::Slots { queue, .. } => Some(queue),
            _ => None,
        }
    }
}
