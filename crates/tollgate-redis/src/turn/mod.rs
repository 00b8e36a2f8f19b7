//! Turns that are booked in Redis, for a whole fleet: many waiters, each within its own time, no lock.
//!
//! Where the limit books, one question gives the turn: the script charges it, says when it is due, and what it took. Whoever
//! gives up hands that back, and the script gives back what is still there of it. Where the limit does not book (windows,
//! logs, counters, slots), a waiter asks again when there should be room; on each node only the first of those who wait at
//! a bucket does.

mod entering;
mod line;
mod permit;
mod reservation;
mod wait;

pub(crate) use line::Lines;
pub use permit::RedisPermit;
pub use reservation::RedisReservation;

use thiserror::Error;
use tollgate::{Decision, Retry, SetStatus, StoreError};

/// Why there is no turn.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TurnError {
    /// It would not come in time, or never; nothing was charged.
    #[error("refused: {}", when(.0))]
    Refused(SetStatus),
    /// There was no room in time; nothing was charged.
    #[error("its turn did not come in time")]
    TimedOut,
    /// Redis did not answer: no turn can be had without it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn when(status: &SetStatus) -> String {
    match status.decision() {
        Decision::Deny(Retry::After(after)) => format!("its turn would be in reach in {after:?}"),
        Decision::Deny(Retry::Never) => "it costs more than the limit can ever give".to_owned(),
        _ => "nobody can say when there will be room".to_owned(),
    }
}
