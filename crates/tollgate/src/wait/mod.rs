//! Waiting: queues in front of buckets, reservations that can be cancelled, permits that come back by themselves.
//!
//! Whoever has to wait stands in the [queue](queues) of the bucket that denies it, first come, first served, and is charged at
//! the instant of its release. Over the times of release each limit's bound holds, whoever gives up meanwhile, and nobody
//! waits longer than in a plain queue that the bucket serves. All kinds of limits are waited for in the same way.
//!
//! A large request in front of small ones goes first, and they wait for it. It cannot be larger than the limit ever gives, so
//! it waits for one refill at most. Neither a check nor a reservation overtakes a queue.
//!
//! A [reservation](Reservation) is another thing: it charges at once, for a time to come that it keeps.
//!
//! A [waiter](waiter_handle) is a plain state machine: it says what to sleep for, and a thread or a task sleeps. There is no timer
//! thread.

mod forecast;
mod future;
mod gate;
mod order;
mod passed;
mod permit;
mod queues;
mod refused;
mod reservation;
mod waiter_handle;

pub use future::{Granted, Wait};
pub use gate::WaitAt;
pub use passed::Passed;
pub use permit::Permit;
pub use refused::{Reason, Refused, WaitError};
pub use reservation::Reservation;

pub(crate) use forecast::View;
pub(crate) use gate::{Asked, At, Gate, HasGate, Timing, change};
pub(crate) use order::{Bucket, Order, Toll};
pub(crate) use queues::{BucketChange, WaitQueues};
pub(crate) use refused::Ending;
