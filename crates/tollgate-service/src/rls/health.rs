//! `grpc.health.v1`: whether this door serves. It says no as soon as the way out begins, while everything is still answered.

use super::{
    grpc::{Code, Failure},
    messages::{HealthRequest, HealthResponse, Serving},
};
use tollgate_net::{Drain, Phase};

/// What may be asked about: the server as a whole, and the name that envoyproxy/ratelimit has.
const SERVICES: [&str; 3] = ["", "ratelimit", "envoy.service.ratelimit.v3.RateLimitService"];

/// Bytes of a question: a name, and anybody may ask.
pub(super) const LONGEST: usize = 1 << 10;

/// How it is for a while.
pub(super) struct Step {
    pub(super) told: HealthResponse,
    /// What ends it.
    until: Phase,
}

/// Whether it serves and means to go on.
pub(super) fn is_well(drain: &Drain) -> bool {
    drain.phase() < Phase::Leaving
}

/// How it is now.
pub(super) fn check(request: &HealthRequest, drain: &Drain) -> Result<HealthResponse, Failure> {
    if !SERVICES.contains(&request.service.as_str()) {
        return Err(Failure::new(Code::NotFound, "there is no such service; ask for \"\" or \"ratelimit\""));
    }
    Ok(told(if is_well(drain) { Serving::Yes } else { Serving::No }))
}

/// How it is and will be, one after the other.
pub(super) fn steps(request: &HealthRequest, drain: &Drain) -> Vec<Step> {
    let step = |serving, until| Step { told: told(serving), until };
    if !SERVICES.contains(&request.service.as_str()) {
        return vec![step(Serving::ServiceUnknown, Phase::Closing)];
    }
    let last = step(Serving::No, Phase::Closing);
    match is_well(drain) {
        true => vec![step(Serving::Yes, Phase::Leaving), last],
        false => vec![last],
    }
}

impl Step {
    /// Waits for its end.
    pub(super) async fn lasts(&self, drain: &Drain) {
        drain.reached(self.until).await;
    }
}

fn told(serving: Serving) -> HealthResponse {
    HealthResponse { status: serving.into() }
}
