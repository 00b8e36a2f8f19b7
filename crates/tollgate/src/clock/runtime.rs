//! Sleeping by tokio's timer, whose grain is a millisecond: a task wakes up to one later than its time, never earlier.

use super::{Clock, Sleep, SystemClock, Timer};
use crate::time::{Time, nanos};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{Instant, sleep};

impl Timer for SystemClock {
    fn sleep_until(&self, at: Time) -> Sleep {
        Box::pin(sleep(at - self.now()))
    }
}

/// The clock of tokio's runtime, which stands still while `tokio::time::pause` says so: for tests of code that waits.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, Rate, TokenBucket, TokioClock};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
/// let limiter = Limiter::with_clock(TokenBucket::new(Rate::per_hour(1)?, 1)?, TokioClock::new());
/// limiter.wait().await?;
/// limiter.wait().await?; // an hour later, which paused time skips
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    origin: Instant,
    unix_origin: u64,
}

impl TokioClock {
    /// A clock whose line begins now.
    #[must_use]
    pub fn new() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self { origin: Instant::now(), unix_origin: nanos(unix) }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    const MONOTONIC: bool = true;

    fn now(&self) -> Time {
        Time::ZERO + self.origin.elapsed()
    }

    fn unix(&self, at: Time) -> u64 {
        at.as_nanos().saturating_add(self.unix_origin)
    }
}

impl Timer for TokioClock {
    fn sleep_until(&self, at: Time) -> Sleep {
        Box::pin(sleep(at - self.now()))
    }
}
