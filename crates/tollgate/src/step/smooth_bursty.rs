//! Guava's SmoothBursty: idle time is banked up to `max_burst`, and a charge is paid for by the next one.
//!
//! Units, formula and worst case are [`smooth`](super::smooth)'s.

use crate::{
    limit::{LimitError, span},
    rate::Rate,
};
use std::time::Duration;

/// Guava's `SmoothBursty`: up to `max_burst` worth of permits is banked while idle; debt is paid by the next caller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SmoothBursty {
    pub(crate) rate: Rate,
    pub(crate) max_burst: u64,
    pub(crate) initial: u32,
}

impl SmoothBursty {
    /// A limiter at `rate` that banks up to one second of it, empty at first, as Guava's `create` makes.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self { rate, max_burst: 1_000_000_000, initial: 0 }
    }

    /// Banks up to this long of the rate.
    ///
    /// # Errors
    /// Where it is zero, or longer than 146 years.
    pub fn with_max_burst(self, max_burst: Duration) -> Result<Self, LimitError> {
        Ok(Self { max_burst: span(max_burst, "max_burst")?, ..self })
    }

    /// Starts with `initial` permits stored. Set the `max_burst` first: it bounds them.
    ///
    /// # Errors
    /// Where `initial` is above what can be stored.
    pub fn with_initial(self, initial: u32) -> Result<Self, LimitError> {
        if f64::from(initial) > self.max_permits() {
            return Err(LimitError::Above { setting: "initial", bound: "rate * max_burst" });
        }
        Ok(Self { initial, ..self })
    }

    pub(crate) fn max_burst_seconds(&self) -> f64 {
        self.max_burst as f64 / 1e9
    }

    fn max_permits(&self) -> f64 {
        self.rate.units_per_second() * self.max_burst_seconds()
    }
}
