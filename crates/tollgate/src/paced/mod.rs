//! Bytes on their way, slowed down to a [`Bandwidth`](crate::Bandwidth): streams (feature `tokio`) and http bodies
//! (feature `http-body`).
//!
//! How much may go is the [`Pacer`]'s to say; here is who asks it and sleeps. Each direction is a [`Lane`] with at most
//! one timer, made when nothing may go and gone when it has fired: one wake a chunk, no task, no thread. No bytes are
//! stored up, so a thousand slow peers cost no more memory than a thousand fast ones, and a future that is dropped
//! half-way loses no bytes and no credit.
//!
//! A pace belongs to one stream or one body. Many that share a pace are no business of this module.

#[cfg(feature = "http-body")]
mod body;
#[cfg(feature = "tokio")]
mod io;

#[cfg(feature = "http-body")]
pub use body::PacedBody;
#[cfg(feature = "tokio")]
pub use io::Paced;

use crate::{
    clock::{Sleep, Timer},
    step::bandwidth::{Pace, Pacer},
};
use std::{
    fmt,
    sync::{Mutex, PoisonError},
    task::{Context, Poll, ready},
};

/// One direction: its pacer, and the sleep until that allows more.
struct Lane {
    pacer: Pacer,
    /// Never locked, only reached through `&mut`: the mutex makes a paced body `Sync`, which many boxes for bodies ask
    /// for and a sleep is not.
    sleep: Option<Mutex<Sleep>>,
}

impl Lane {
    const fn new(pacer: Pacer) -> Self {
        Self { pacer, sleep: None }
    }

    /// How many of the `wanted` bytes may go now, at least one of them; sleeps while none may.
    fn poll_allow<C: Timer>(&mut self, clock: &C, wanted: usize, context: &mut Context<'_>) -> Poll<usize> {
        loop {
            if let Some(sleep) = &mut self.sleep {
                let sleep = sleep.get_mut().unwrap_or_else(PoisonError::into_inner);
                ready!(sleep.as_mut().poll(context));
                self.sleep = None;
            }
            let now = clock.now();
            match self.pacer.allow(now) {
                Pace::Send(bytes) => {
                    return Poll::Ready(usize::try_from(bytes).unwrap_or(usize::MAX).min(wanted));
                }
                Pace::Sleep(time) => self.sleep = Some(Mutex::new(clock.sleep_until(now + time))),
            }
        }
    }

    fn sent(&mut self, bytes: usize) {
        self.pacer.sent(bytes as u64);
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("pacer", &self.pacer).field("asleep", &self.sleep.is_some()).finish()
    }
}
