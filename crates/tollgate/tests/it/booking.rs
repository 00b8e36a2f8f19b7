//! Bookings as the tests of decisions see them.

use std::time::Duration;
use tollgate::{Clock, Decision, KeyedLimiter, Limiter, Refused, Reservation, WaitAt};

/// Books a turn for good; what it was told.
pub(crate) fn book<C: Clock + Send + Sync>(limiter: &Limiter<C>, cost: u32, up_to: Duration) -> Decision {
    decision(limiter.reserve(cost, up_to))
}

/// The same for a key.
pub(crate) fn book_key<C: Clock + Send + Sync>(
    limiter: &KeyedLimiter<C>,
    key: &str,
    cost: u32,
    up_to: Duration,
) -> Decision {
    decision(limiter.reserve(key, cost, up_to))
}

fn decision<T: WaitAt>(booked: Result<Reservation<'_, T>, Refused>) -> Decision {
    match booked {
        Ok(turn) => {
            let told = turn.statuses()[0].decision();
            turn.keep();
            told
        }
        Err(refused) => Decision::Deny(refused.retry()),
    }
}
