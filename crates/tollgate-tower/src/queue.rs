//! A request that waits its turn, and then calls the service.
//!
//! The service was ready when the request came. If the turn has come too, it is called; if the request has to wait, that
//! readiness is given up, since it may be somebody else's slot, and a fresh clone is asked after the wait.

use crate::{
    gate::Entering,
    held::{Held, Keeper},
};
use std::{
    sync::Arc,
    task::{Context, Poll, ready},
};
use tollgate::{Status, WaitError};
use tower_service::Service;

pub(crate) struct Queued<S, R> {
    entering: Entering,
    keeper: Arc<Keeper>,
    entered: Option<Entered>,
    service: S,
    is_ready: bool,
    request: Option<R>,
}

/// A turn that has come.
pub(crate) struct Entered {
    pub(crate) statuses: Vec<Status>,
    pub(crate) held: Option<Held>,
}

/// How it ends.
pub(crate) enum Ended<F, R, E> {
    Called(F, Entered),
    /// Its turn does not come.
    TurnedAway(WaitError, R),
    /// The service will not be ready again.
    Broken(E),
}

impl<S, R> Queued<S, R> {
    /// With a service that is ready.
    pub(crate) const fn new(entering: Entering, keeper: Arc<Keeper>, service: S, request: R) -> Self {
        Self { entering, keeper, entered: None, service, is_ready: true, request: Some(request) }
    }

    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Ended<S::Future, R, S::Error>>
    where
        S: Service<R> + Clone,
    {
        if self.entered.is_none() {
            match self.entering.as_mut().poll(context) {
                Poll::Ready(Ok(permit)) => {
                    let statuses = permit.statuses().to_vec();
                    self.entered = Some(Entered { statuses, held: self.keeper.hold(permit) });
                }
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Ended::TurnedAway(error, self.take_request()));
                }
                Poll::Pending => {
                    if std::mem::take(&mut self.is_ready) {
                        self.service = self.service.clone();
                    }
                    return Poll::Pending;
                }
            }
        }
        if !self.is_ready {
            match ready!(self.service.poll_ready(context)) {
                Ok(()) => self.is_ready = true,
                Err(error) => return Poll::Ready(Ended::Broken(error)),
            }
        }
        let request = self.take_request();
        match self.entered.take() {
            // Should the call panic, what was entered is given back.
            Some(entered) => Poll::Ready(Ended::Called(self.service.call(request), entered)),
            None => Poll::Pending,
        }
    }

    fn take_request(&mut self) -> R {
        self.request.take().expect("a future is not polled again when it has ended")
    }
}
