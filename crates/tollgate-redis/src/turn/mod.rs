//! Waiting for a turn that a whole fleet shares: queues on each node, turns in Redis.
//!
//! Whoever has to wait stands in this node's queue of the bucket that refused it, in the order of arrival. A queue has one
//! task, which asks Redis on behalf of its head and hands turns over when they are due. A turn belongs to the queue: where a
//! waiter gives up, everybody behind it moves up, and a turn that was booked for it passes to the next who waits for the same
//! charges. Only a turn that nobody is left for is given back, as far as no later charge stands on it.
//!
//! **When a set is charged.** A wait at one bucket that books (token bucket, leaky bucket without delay, the smooth
//! limiters) is booked ahead, within the horizon (27 ms and two calls, at most 75 ms), and released when its turn is due.
//! Every other set is asked for when its turn should have come, with no wait allowed, so that it is charged at the instant
//! of its release: windows, logs, slots, and buckets that share a set with them or with one another. So each limit's bound
//! holds over the times of release. What this costs is that such a set is late by a timer's grain and one call, which a
//! bucket without burst does not make up for. A leaky bucket with `delay` is charged on arrival, delayed, and not given
//! back, as nginx does it.
//!
//! **Bounds.** A node that dies has at most what its queues had booked within the horizon, and the next turn. Queues hold up
//! to 1,024 turns each. Order is kept within a node; between nodes the first to ask is first. A reservation takes the next time
//! that is free in Redis, so it may come before those who wait in a queue.

mod entering;
mod outlook;
mod permit;
mod queue;
mod queues;
mod request;
mod reservation;
mod serving;
mod wait;

pub use entering::RedisWait;
pub use permit::RedisPermit;
pub(crate) use queues::WaitQueues;
pub(crate) use request::Room;
pub use reservation::RedisReservation;

use tollgate::{SetStatus, StoreError};

/// Why Redis gave no turn; nothing was charged.
enum NoTurn {
    /// It would not come in time, or never.
    Refused(SetStatus),
    /// It did not come in time.
    TimedOut,
    /// Redis did not answer.
    Store(StoreError),
}

impl From<StoreError> for NoTurn {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
