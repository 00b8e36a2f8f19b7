//! What a request holds: slots of concurrency limits, and its place among the requests in flight.
//!
//! Guards are dropped when the response has ended. A client that aborts its request does not stop the server, so dropping
//! them then would let the next request start on top of work that still goes on. Instead the exchange moves to a task, which
//! reads the rest of the response, discards it, and drops the guards at its end. It waits for at most the upstream's
//! `abort_grace`; then the connection is closed and the guards are dropped.
//!
//! Every such task has a place among the requests in flight, so `max_in_flight` bounds how many there are.

use std::{any::Any, time::Duration};
use tokio::{runtime::Handle, time::timeout};
use tollgate_net::Slot;

/// Guards of one request, dropped in the order of the fields.
#[derive(Default)]
pub(crate) struct Guards {
    held: Vec<Box<dyn Any + Send>>,
    /// In no box, since every request has one.
    in_flight: Option<Slot>,
}

impl Guards {
    pub(crate) const fn new() -> Self {
        Self { held: Vec::new(), in_flight: None }
    }

    pub(crate) fn hold(&mut self, guard: impl Send + 'static) {
        self.held.push(Box::new(guard));
    }

    pub(crate) fn extend(&mut self, other: Self) {
        if self.held.is_empty() {
            self.held = other.held;
        } else {
            self.held.extend(other.held);
        }
        if self.in_flight.is_none() {
            self.in_flight = other.in_flight;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.in_flight.is_none()
    }

    /// Keeps the guards, in a task of its own, until `exchange` is over, but no longer than `grace`.
    pub(crate) fn keep_during(
        &mut self,
        exchange: impl Future<Output = ()> + Send + 'static,
        grace: Duration,
    ) {
        let guards = std::mem::take(self);
        // There is no runtime where a program is ending.
        if !guards.is_empty()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move {
                let _guards = guards;
                let _ = timeout(grace, exchange).await;
            });
        }
    }
}

impl From<Slot> for Guards {
    fn from(slot: Slot) -> Self {
        Self { held: Vec::new(), in_flight: Some(slot) }
    }
}
