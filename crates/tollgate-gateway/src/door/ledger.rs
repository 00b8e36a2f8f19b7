//! What the gateway tells whoever keeps the books: metrics, the busiest keys, logs, traces.

use super::Tracer;
use http::StatusCode;
use std::{sync::Arc, time::Duration};
use tollgate_rules::{
    Found, RouteId,
    enforce::{Outcome, Shadow, Stand},
};

/// Keeps the books of a gateway, for one edition of its rules. Called on the hot path.
pub trait Ledger: Send + Sync + 'static {
    /// The rules have spoken.
    fn ruled(&self, ruled: &Ruled<'_>);

    /// A response has begun.
    fn answered(&self, answered: &Answered);

    /// Who takes the spans of requests, if anybody does. Asked once, when the rules are put in force.
    fn tracer(&self) -> Option<Arc<dyn Tracer>> {
        None
    }
}

/// What the rules said of a request.
#[derive(Clone, Copy, Debug)]
pub struct Ruled<'a> {
    /// The request, its route, the rules that apply, its keys.
    pub found: &'a Found<'a, 'a>,
    /// Whether it may go on.
    pub outcome: &'a Outcome,
    /// How every charge stands.
    pub stands: &'a [Stand],
    /// What shadow rules would have said.
    pub shadows: &'a [Shadow],
}

/// How a request was answered.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    /// The route it took, if any did.
    pub route: Option<RouteId>,
    /// The upstream that was asked, by its place in the file, and how long that took to begin.
    pub upstream: Option<(usize, Duration)>,
    /// The status.
    pub status: StatusCode,
    /// How long it took from the request's head to the response's, waits included.
    pub took: Duration,
}

/// Keeps none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLedger;

impl Ledger for NoLedger {
    fn ruled(&self, _: &Ruled<'_>) {}

    fn answered(&self, _: &Answered) {}
}
