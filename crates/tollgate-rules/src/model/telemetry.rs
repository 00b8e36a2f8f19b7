//! What is sent to an OpenTelemetry collector.

use std::fmt;

/// Where spans are sent, and of which requests.
#[derive(Clone, PartialEq)]
pub struct Telemetry {
    /// The collector: `http://` or `https://`, a host, perhaps a port and a path.
    pub otlp: String,
    /// Which share of the requests that come without a trace begin one; between 0 and 1.
    pub sample: f64,
    /// What becomes of requests that come with a trace.
    pub parents: Parents,
    /// What this service is called in traces.
    pub service: String,
    /// Headers that the collector asks for. They are never printed.
    pub headers: Vec<(String, String)>,
}

/// Who says whether a request that comes with a trace gets a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parents {
    /// The trace's own flag.
    Follow,
    /// The share of all requests: whoever may send requests cannot have spans for the asking.
    Ignore,
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Address and headers may hold what lets us in there.
        f.debug_struct("Telemetry")
            .field("sample", &self.sample)
            .field("parents", &self.parents)
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}
