//! Sliding log: at most `limit` in any window, exactly.
//!
//! The log keeps every use for `window`; a use leaves exactly `window` after it entered. Worst case admitted: `limit`
//! in any half-open time of length `window`. Memory is 16 bytes for each use in the window, at most `limit` of them
//! ([`events`](super::events)).

use super::events::Log;
use crate::limit::{LimitError, nonzero, span};
use std::time::Duration;

/// Sliding log: at most so many units in any window, exactly. Its memory grows with the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingLog(pub(crate) Log);

impl SlidingLog {
    /// At most `limit` in any `window`.
    ///
    /// # Errors
    /// Where either is zero, or the window is longer than 146 years.
    pub fn new(limit: u32, window: Duration) -> Result<Self, LimitError> {
        Ok(Self(Log { limit: nonzero(limit, "limit")?, window: span(window, "window")?, precision: None }))
    }
}
