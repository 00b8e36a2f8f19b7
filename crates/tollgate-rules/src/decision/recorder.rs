//! What the decision service records: metrics, the busiest keys, the log, samples of requests.

use super::{Outcome, Shadow, Stand};
use crate::Found;
use tollgate::Key;

/// The API that a request came through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// The gateway.
    Gateway,
    /// Redis clients.
    Resp,
    /// JSON over HTTP.
    Http,
    /// Envoy's rate limit service.
    Grpc,
}

impl Api {
    /// The name of its listener in the rule file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Resp => "resp",
            Self::Http => "http",
            Self::Grpc => "grpc",
        }
    }
}

/// Records decisions, for one snapshot of the rules. Called on the hot path.
pub trait Recorder: Send + Sync + 'static {
    /// One charge was decided, or could not be. Of a denied set, only the charges that deny are recorded.
    fn charge(&self, record: &ChargeRecord<'_>) {
        let _ = record;
    }

    /// Rules decided a request of the gateway.
    fn request(&self, record: &RequestRecord<'_>) {
        let _ = record;
    }
}

/// Records nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRecorder;

impl Recorder for NoRecorder {}

/// A charge, and what became of it.
#[derive(Clone, Copy, Debug)]
pub struct ChargeRecord<'a> {
    /// The API it came through.
    pub api: Api,
    /// The limit.
    pub limit: RecordedLimit,
    /// Whose bucket.
    pub key: Key<'a>,
    /// How many units; zero where the charge only asked, or gave units back.
    pub units: u32,
    /// What became of it.
    pub outcome: ChargeOutcome,
}

/// Which limit a charge was on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedLimit {
    /// A named limit, by its place in the rule file.
    Named(usize),
    /// One that came with the request.
    Defined,
    /// A bucket of `CL.THROTTLE`, whose numbers come with every request.
    Throttle,
    /// A descriptor rule, by its place among those of all domains.
    Descriptor(usize),
}

/// What became of a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChargeOutcome {
    /// It passed.
    Allowed,
    /// It passed, and its turn is later.
    Delayed,
    /// It was denied.
    Denied,
    /// A shadow rule would have denied it.
    ShadowDenied,
    /// The global switch is off; the store was not asked.
    Skipped,
    /// The store did not answer, and no failure policy decided instead.
    Unanswered,
}

/// What the rules decided about a request of the gateway.
#[derive(Clone, Copy, Debug)]
pub struct RequestRecord<'a> {
    /// The request, its route, the rules that apply, its keys.
    pub found: &'a Found<'a, 'a>,
    /// Whether it may go on.
    pub outcome: &'a Outcome,
    /// The status of every charge.
    pub stands: &'a [Stand],
    /// What shadow rules would have decided.
    pub shadows: &'a [Shadow],
}
