//! A deadline that moves with every request, on a timer that is set seldom.
//!
//! Setting a runtime's timer for every request and cancelling it again costs more than the parsing of a head. Here a new
//! deadline is a store; the timer underneath stays where it was, and when it fires before the deadline it is set anew.
//! So it is set about once in the time it measures, not once a request.

use std::{
    pin::Pin,
    task::{Context, Poll},
};
use tokio::time::{Instant, Sleep, sleep_until};

pub(crate) struct Deadline {
    at: Instant,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    pub(crate) const fn new(at: Instant) -> Self {
        Self { at, sleep: None }
    }

    pub(crate) const fn set(&mut self, at: Instant) {
        self.at = at;
    }

    /// Ready when the deadline has passed.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let at = self.at;
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(at)));
        if sleep.deadline() > at {
            sleep.as_mut().reset(at);
        }
        while sleep.as_mut().poll(context).is_ready() {
            if Instant::now() >= at {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(at);
        }
        Poll::Pending
    }
}
