//! Waiting: turns that are slept for, reservations that can be cancelled, permits that come back by themselves.
//!
//! - A limit that **books** (buckets, the smooth limiters) gives a waiter its turn at once, as a time. Each waiter sleeps
//!   until its own; nobody is woken for anybody else. Whoever gives up before its time gives its units back.
//! - A limit that **cannot book** (windows, logs, counters, slots in flight, a leaky bucket that is full) has a
//!   [line](room). Only the first in it asks; it sleeps until the limit said there would be room, or until somebody left.
//!   When it goes, the next is woken.
//!
//! First come, first served, per bucket, whatever the sizes: a large request in front of small ones goes first, and they
//! wait for it. It cannot be larger than the limit ever gives, so it waits for one refill at most; and whoever cannot wait
//! that long is told so at once. A charge that does not wait does not overtake a line either.
//!
//! A set of charges stands in one line at a time, that of the charge which refuses it, at the place of its arrival; so it
//! holds up nobody at its other limits.
//!
//! The [turn] is a plain state machine: it says what to sleep for, and a thread or a task sleeps. There is no timer thread.

mod foresee;
mod future;
mod gate;
mod line;
mod order;
mod passed;
mod permit;
mod refused;
mod reservation;
mod room;
mod turn;

pub use future::{Granted, Wait};
pub use gate::WaitAt;
pub use passed::Passed;
pub use permit::Permit;
pub use refused::{Reason, Refused, WaitError};
pub use reservation::Reservation;

pub(crate) use foresee::{Goes, View};
pub(crate) use gate::{Asked, At, Gate};
pub(crate) use order::{Bucket, Order, Toll};
pub(crate) use refused::Ending;
pub(crate) use room::{Changed, Room};
