//! Sliding window: counts every sub-window of `precision` that overlaps the last `window`.
//!
//! A charge in the sub-window `[s, s + precision)` counts until `s + precision + window`. Worst case admitted: `limit`
//! in any time of length `window`, as the log; the price is that a use may count for up to `precision` longer. Memory
//! is 16 bytes a sub-window in use, at most `window / precision + 2` of them ([`events`](super::events)).

use super::events::Log;
use crate::limit::{LimitError, nonzero, span};
use std::time::Duration;

/// Sliding window: a log whose entries are sub-windows, so that its memory does not grow with the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindow(pub(crate) Log);

impl SlidingWindow {
    /// At most `limit` in any `window`, counted in sub-windows of `precision`.
    ///
    /// # Errors
    /// Where any is zero, the precision is above the window, or the window is longer than 146 years.
    pub fn new(limit: u32, window: Duration, precision: Duration) -> Result<Self, LimitError> {
        let limit = nonzero(limit, "limit")?;
        let (window, precision) = (span(window, "window")?, span(precision, "precision")?);
        if precision > window {
            return Err(LimitError::Above { setting: "precision", bound: "window" });
        }
        Ok(Self(Log { limit, window, precision: Some(precision) }))
    }
}
