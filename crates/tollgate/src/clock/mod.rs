//! Where time comes from, and how to sleep by it.
//!
//! Decisions run on a monotonic line ([`Clock::now`]); only windows that follow the wall (epoch and calendar
//! windows) ask [`Clock::unix`], which is an anchor plus that same line. The anchor is renewed now and then, so a
//! stepped system clock moves the next window's edge but never stretches a wait or refills a bucket.
//!
//! A thread sleeps by any clock ([`Clock::park`]). A task sleeps by a [`Timer`]: the system's clock is one with the feature
//! `tokio`, and another runtime's is a few lines.

mod manual;
#[cfg(feature = "tokio")]
mod runtime;
mod system;

pub use manual::ManualClock;
#[cfg(feature = "tokio")]
pub use runtime::TokioClock;
pub use system::SystemClock;

use crate::time::Time;
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Wake, Waker},
    thread::{self, Thread},
};

/// A source of time.
///
/// A caller may pass its own time, and a clock may misbehave: on a limit, a time before the latest that was charged counts
/// as that one.
pub trait Clock {
    /// Whether [`now`](Self::now) never goes back. Where it may, limits remember the latest time they charged at.
    const MONOTONIC: bool = false;

    /// Now, on this clock's line.
    fn now(&self) -> Time;

    /// Nanoseconds since 1970-01-01 UTC at `at`.
    fn unix(&self, at: Time) -> u64;

    /// Puts this thread to sleep until that time (for good, without one) or until somebody unparks it. It may come back
    /// early for no reason at all, as [`thread::park`] may.
    fn park(&self, until: Option<Time>) {
        match until {
            Some(until) => thread::park_timeout(until - self.now()),
            None => thread::park(),
        }
    }
}

/// A clock that a task can sleep by.
///
/// [`SystemClock`] is one with the feature `tokio`; a [`ManualClock`] always is.
#[diagnostic::on_unimplemented(
    message = "a task cannot sleep by `{Self}`",
    note = "for `SystemClock`, enable the feature `tokio` of the crate `tollgate`; or take the form that blocks the thread \
            (`.blocking()`, `ready_blocking()`, `acquire()`)"
)]
pub trait Timer: Clock {
    /// Ready at that time, or a little later; never earlier.
    fn sleep_until(&self, at: Time) -> Sleep;
}

/// What a [`Timer`] gives: ready when the time has come.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<C: Clock> Clock for &C {
    const MONOTONIC: bool = C::MONOTONIC;

    fn now(&self) -> Time {
        C::now(self)
    }

    fn unix(&self, at: Time) -> u64 {
        C::unix(self, at)
    }

    fn park(&self, until: Option<Time>) {
        C::park(self, until);
    }
}

impl<C: Clock> Clock for Arc<C> {
    const MONOTONIC: bool = C::MONOTONIC;

    fn now(&self) -> Time {
        C::now(self)
    }

    fn unix(&self, at: Time) -> u64 {
        C::unix(self, at)
    }

    fn park(&self, until: Option<Time>) {
        C::park(self, until);
    }
}

impl<C: Timer> Timer for &C {
    fn sleep_until(&self, at: Time) -> Sleep {
        C::sleep_until(self, at)
    }
}

impl<C: Timer> Timer for Arc<C> {
    fn sleep_until(&self, at: Time) -> Sleep {
        C::sleep_until(self, at)
    }
}

/// Wakes this thread from [`Clock::park`].
pub(crate) fn unparker() -> Waker {
    Waker::from(Arc::new(Unpark(thread::current())))
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
