//! Guava's SmoothWarmingUp: starts cold at `cold_factor` times the interval and warms up under use.
//!
//! Units, formula and worst case are [`smooth`](super::smooth)'s; stored permits cost time here, up to
//! `cold_factor` times the stable interval each, so rest never buys a burst.

use crate::{
    limit::{LimitError, span},
    rate::Rate,
};
use std::time::Duration;

/// Guava's `SmoothWarmingUp`: slow after rest, at the full rate after `warmup` of use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SmoothWarmingUp {
    pub(crate) rate: Rate,
    pub(crate) warmup: u64,
    pub(crate) cold_factor: f64,
}

impl SmoothWarmingUp {
    /// A limiter at `rate` that takes `warmup` to reach it, with Guava's cold factor of 3.
    ///
    /// # Errors
    /// Where `warmup` is zero, or longer than 146 years.
    pub fn new(rate: Rate, warmup: Duration) -> Result<Self, LimitError> {
        Ok(Self { rate, warmup: span(warmup, "warmup")?, cold_factor: 3.0 })
    }

    /// Makes a cold permit cost `cold_factor` times a warm one.
    ///
    /// # Errors
    /// Where it is not a finite number of 1 or more.
    pub fn with_cold_factor(self, cold_factor: f64) -> Result<Self, LimitError> {
        if !cold_factor.is_finite() || cold_factor < 1.0 {
            return Err(LimitError::NotFinite { setting: "cold_factor", at_least: 1.0 });
        }
        Ok(Self { cold_factor, ..self })
    }
}
