//! Rate limiting: every algorithm exact, several limits at once all-or-nothing, bounded memory.
//!
//! ```
//! use tollgate::{KeyedLimiter, Rate, TokenBucket};
//!
//! let limiter = KeyedLimiter::new(TokenBucket::new(Rate::per_second(10)?, 100)?);
//! if limiter.check("alice").is_allow() {
//!     // serve her
//! }
//! # Ok::<(), tollgate::LimitError>(())
//! ```
//!
//! - A [`Limit`] is an algorithm with its numbers: [`TokenBucket`], [`LeakyBucket`], [`SmoothBursty`],
//!   [`SmoothWarmingUp`], [`FixedWindow`], [`SlidingLog`], [`SlidingWindow`], [`SlidingCounter`], [`Concurrency`];
//!   [`Bandwidth`] paces bytes, by a [`Pacer`].
//! - A [`Limiter`] is one bucket; a [`KeyedLimiter`] has a bucket for every key.
//! - A [`MemoryStore`] holds several limits and decides a set of [`Charge`]s over them at once: all or none.
//! - A [`RateLimiter`] has the shape of Guava's: permits a second, `acquire`, `set_rate`.
//! - A [`Status`] says how a charge stands: its [`Decision`], what remains, when to retry.
//! - [`wait`](Limiter::wait) waits in the queue of a bucket, [`reserve`](Limiter::reserve) charges for a time that it keeps,
//!   [`enter`](Limiter::enter) holds a [`Permit`] of a concurrency limit. Tasks need the feature `tokio`, threads do not.
//! - Time comes from a [`Clock`]; a [`ManualClock`] moves when told to, and wakes whoever sleeps by it.

#[cfg(doctest)]
#[doc = include_str!("../../../docs/choosing.md")]
#[doc = include_str!("../../../docs/algorithms.md")]
#[doc = include_str!("../../../docs/zh-CN/algorithms.md")]
#[doc = include_str!("../../../docs/zh-CN/quick-start.md")]
#[cfg_attr(all(feature = "tokio", feature = "http-body"), doc = include_str!("../../../docs/waiting.md"))]
mod documents {}

mod cell;
mod charge;
mod clock;
mod decision;
mod few;
mod guava;
#[cfg(all(test, loom))]
mod interleavings;
mod key;
mod keyed;
mod limit;
mod limiter;
mod numbers;
mod owned;
#[cfg(any(feature = "tokio", feature = "http-body"))]
mod paced;
mod rate;
mod share;
mod siphash;
mod slot;
mod step;
mod store;
mod sync;
mod time;
mod wait;

pub use cell::{CellPassed, Cells, Owing, Throttle, ThrottleError, ThrottleNumbers, Throttled};
pub use charge::Charge;
#[cfg(feature = "tokio")]
pub use clock::TokioClock;
pub use clock::{Clock, ManualClock, Sleep, SystemClock, Timer};
pub use decision::{DecidedBy, Decision, OnFailure, Retry, SetStatus, Status};
pub use guava::{RateLimiter, RateLimiterError};
pub use key::Key;
pub use keyed::KeyedLimiter;
pub use limit::{
    Align, Bandwidth, Concurrency, Delay, FixedWindow, LeakyBucket, Limit, LimitError, Refill,
    SlidingCounter, SlidingLog, SlidingWindow, SmoothBursty, SmoothWarmingUp, TokenBucket,
};
#[cfg(feature = "calendar")]
pub use limit::{Calendar, Unit};
pub use limiter::Limiter;
pub use numbers::{BucketNumbers, Numbers, SmoothNumbers, Which, WindowNumbers};
pub use owned::{BorrowedCharges, KeyValues, OwnedCharges, OwnedKey};
#[cfg(feature = "tokio")]
pub use paced::Paced;
#[cfg(feature = "http-body")]
pub use paced::PacedBody;
pub use rate::Rate;
pub use step::{
    bandwidth::{Pace, Pacer},
    concurrency::PermitId,
};
#[doc(hidden)]
pub use store::Sealed;
pub use store::{
    Answer, Bounds, Enter, Entered, Held, LimitHandle, LimiterWait, MemoryStore, NewLimit, Store, StoreError,
    StoreLimiter, WhenFull,
};
pub use time::Time;
pub use wait::{Granted, Passed, Permit, Reason, Refused, Reservation, Wait, WaitAt, WaitError};
