//! What the gateway records of its responses. What rules decide is recorded by the decision service.

use super::Tracer;
use http::StatusCode;
use std::{sync::Arc, time::Duration};
use tollgate_rules::RouteId;

/// Records the responses of a gateway, for one snapshot of its rules. Called on the hot path.
pub trait ResponseRecorder: Send + Sync + 'static {
    /// A response has begun.
    fn response(&self, response: &ResponseRecord);

    /// Who takes the spans of requests, if anybody does. Asked once, when the rules are put in force.
    fn tracer(&self) -> Option<Arc<dyn Tracer>> {
        None
    }
}

/// How a request was answered.
#[derive(Clone, Copy, Debug)]
pub struct ResponseRecord {
    /// The route it took, if any did.
    pub route: Option<RouteId>,
    /// The upstream that was asked, by its place in the file, and how long that took to begin.
    pub upstream: Option<(usize, Duration)>,
    /// The status.
    pub status: StatusCode,
    /// How long it took from the request's head to the response's, waits included.
    pub took: Duration,
}

/// Records nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoResponseRecorder;

impl ResponseRecorder for NoResponseRecorder {
    fn response(&self, _: &ResponseRecord) {}
}
