//! A request that waits until it is admitted, and then calls the service.
//!
//! The service was ready when the request came. If it is admitted at once, the service is called; if the request has to wait,
//! that readiness is given up, since it may be somebody else's slot, and a fresh clone is asked after the wait.

use crate::backend::{Admission, Admitting};
use std::task::{Context, Poll, ready};
use tollgate::WaitError;
use tower_service::Service;

pub(crate) struct QueuedCall<S, R> {
    admitting: Admitting,
    admission: Option<Admission>,
    service: S,
    is_ready: bool,
    request: Option<R>,
}

/// How it ends.
pub(crate) enum QueueOutcome<F, R, E> {
    Called(F, Admission),
    /// It is not admitted.
    Rejected(WaitError, R),
    /// The service will not be ready again.
    Broken(E),
}

impl<S, R> QueuedCall<S, R> {
    /// With a service that is ready.
    pub(crate) const fn new(admitting: Admitting, service: S, request: R) -> Self {
        Self { admitting, admission: None, service, is_ready: true, request: Some(request) }
    }

    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<QueueOutcome<S::Future, R, S::Error>>
    where
        S: Service<R> + Clone,
    {
        if self.admission.is_none() {
            match self.admitting.as_mut().poll(context) {
                Poll::Ready(Ok(admission)) => self.admission = Some(admission),
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(QueueOutcome::Rejected(error, self.take_request()));
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
                Err(error) => return Poll::Ready(QueueOutcome::Broken(error)),
            }
        }
        let request = self.take_request();
        match self.admission.take() {
            // Should the call panic, the slots are given back.
            Some(admission) => Poll::Ready(QueueOutcome::Called(self.service.call(request), admission)),
            None => Poll::Pending,
        }
    }

    fn take_request(&mut self) -> R {
        self.request.take().expect("a future is not polled again when it has ended")
    }
}
