//! How long to wait before the next attempt: doubling from a floor to a ceiling.
//!
//! Every pause is drawn from the upper half of its range, so that the gateways of a fleet that lost the same server at the
//! same moment do not come back at the same moment.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

#[derive(Debug)]
pub(super) struct Backoff {
    floor: Duration,
    ceiling: Duration,
    next: Duration,
}

impl Backoff {
    pub(super) fn new(floor: Duration, ceiling: Duration) -> Self {
        Self { floor, ceiling, next: floor }
    }

    /// The pause before the next attempt.
    pub(super) fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.ceiling);
        pause / 2 + (pause / 2).mul_f64(random())
    }

    /// What was tried has worked: pauses begin short again.
    pub(super) fn reset(&mut self) {
        self.next = self.floor;
    }
}

/// From 0 to 1. A hasher of the standard library is keyed at random, which is all the chance a pause needs.
pub(crate) fn random() -> f64 {
    RandomState::new().hash_one(0_u8) as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubling_then_level() {
        let (floor, ceiling) = (Duration::from_millis(10), Duration::from_secs(1));
        let mut backoff = Backoff::new(floor, ceiling);
        for _ in 0..2 {
            for full in [10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000].map(Duration::from_millis) {
                let pause = backoff.pause();
                assert!(pause >= full / 2 && pause <= full, "{pause:?} of {full:?}");
            }
            backoff.reset();
        }
    }
}
