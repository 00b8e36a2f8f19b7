//! A decision as a response: the one place of this door that knows statuses, headers and bodies.

use super::active::Active;
use crate::Body;
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use std::time::Duration;
use tollgate::{Enter, Status};
use tollgate_http::{HeaderStyle, Problem, is_grpc};
use tollgate_rules::{
    Invalid, RuleId,
    decision::{RequestDecision, Why},
    model::{Attribute, Excess, Reply},
};

/// When to come back while there is too much to do.
const SOON: Duration = Duration::from_secs(1);

impl<S: Enter> Active<S> {
    /// Tells a request that passed how it stands.
    pub(super) fn tell<P>(&self, decision: &RequestDecision<P>, response: &mut Response<Body>) {
        if decision.stands.is_empty() {
            return;
        }
        if self.policies.style() == HeaderStyle::Draft10 {
            // The draft's fields are lists, to which lines may be added without a look at those that are there.
            let latest = response.headers().get(RETRY_AFTER).cloned();
            let lines = response.body_mut().own_lines();
            lines.reserve_exact(256);
            self.policies.allow_in_lines(self.told(decision), latest.as_ref(), lines);
        } else {
            self.policies.allow(self.told(decision), response.headers_mut());
        }
    }

    /// Where a refused request goes instead, if the rule that refuses sends its excess somewhere. What is incomplete is not
    /// in excess of anything.
    pub(super) fn diverted(&self, by: RuleId, why: &Why) -> Option<usize> {
        match (&self.program().rule(by).rule().excess, why) {
            (Excess::Divert(other), Why::Limit { .. } | Why::Store(_)) => Some(*other),
            _ => None,
        }
    }

    /// Refuses, as the first rule that refuses says.
    pub(super) fn refuse<P>(
        &self,
        request: &HeaderMap,
        decision: &RequestDecision<P>,
        by: RuleId,
        why: &Why,
    ) -> Response<Body> {
        // A gRPC client reads no body and no status of ours.
        let reply = match &self.program().rule(by).rule().excess {
            _ if is_grpc(request) => None,
            Excess::Degrade(reply) if matches!(why, Why::Limit { .. } | Why::Store(_)) => {
                return spelled_out(reply, Response::default());
            }
            Excess::Reject(reply) => reply.as_ref(),
            _ => None,
        };
        let status = |usual| reply.map_or(usual, |reply| reply.status);
        let plain = match why {
            Why::Limit { retry, .. } => {
                let status = status(StatusCode::TOO_MANY_REQUESTS);
                self.policies.refusal_as(status, self.refusal, request, self.told(decision), *retry)
            }
            Why::Store(_) => {
                let status = status(StatusCode::SERVICE_UNAVAILABLE);
                self.refusal.reduced_capacity_as(status, request, Some(SOON))
            }
            Why::Missing(attribute) => {
                let detail = format!("the request has no {}", named(attribute));
                return titled(StatusCode::BAD_REQUEST, "Incomplete request", &detail);
            }
            Why::Repeated(attribute) => {
                let detail = format!("the request has {} more than once", named(attribute));
                return titled(StatusCode::BAD_REQUEST, "Ambiguous request", &detail);
            }
            Why::Length => {
                let detail = "the request must tell the length of its body in Content-Length";
                return titled(StatusCode::LENGTH_REQUIRED, "Length required", detail);
            }
        };
        match reply {
            Some(reply) => spelled_out(reply, plain),
            None => plain.map(Body::full),
        }
    }

    /// How the charges stand, each with its place among the policies.
    fn told<'r, P>(
        &'r self,
        decision: &'r RequestDecision<P>,
    ) -> impl Iterator<Item = (usize, &'r Status)> + Clone {
        decision.stands.iter().map(|stand| (self.policy_of(stand), &stand.status))
    }

    /// There is more to do than the gateway is allowed to.
    pub(super) fn overloaded(&self, request: &HeaderMap) -> Response<Body> {
        self.refusal.reduced_capacity(request, Some(SOON)).map(Body::full)
    }

    /// The request can be read in more than one way.
    pub(super) fn invalid(invalid: &Invalid) -> Response<Body> {
        let detail = match invalid {
            Invalid::Repeated(attribute) => format!("the request has {} more than once", named(attribute)),
            other => other.to_string(),
        };
        titled(StatusCode::BAD_REQUEST, "Ambiguous request", &detail)
    }

    /// Nothing in the file takes the request.
    pub(super) fn no_route() -> Response<Body> {
        titled(StatusCode::NOT_FOUND, "No route", "no route takes this request")
    }
}

fn titled(status: StatusCode, title: &str, detail: &str) -> Response<Body> {
    Problem::titled(status, title, detail).into_response().map(Body::full)
}

/// An answer that the file spells out; where it leaves the body out, that of `plain` is sent.
fn spelled_out(reply: &Reply, plain: Response<Bytes>) -> Response<Body> {
    let mut response = plain;
    *response.status_mut() = reply.status;
    if let Some(body) = &reply.body {
        *response.body_mut() = Bytes::copy_from_slice(body.as_bytes());
        let kind = reply.content_type.as_deref().unwrap_or("text/plain; charset=utf-8");
        if let Ok(kind) = HeaderValue::from_str(kind) {
            response.headers_mut().insert(CONTENT_TYPE, kind);
        }
    }
    if matches!(reply.status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED) {
        *response.body_mut() = Bytes::new();
        response.headers_mut().remove(CONTENT_TYPE);
    }
    // Whoever is told that all is well has nothing to come back for.
    if reply.status.is_success() {
        response.headers_mut().remove(RETRY_AFTER);
    }
    response.map(Body::full)
}

/// An attribute as people call it.
fn named(attribute: &Attribute) -> String {
    match attribute {
        Attribute::Header(name) => format!("header {name}"),
        Attribute::Query(name) => format!("query parameter {name}"),
        Attribute::Cookie(name) => format!("cookie {name}"),
        Attribute::Capture(name) => format!("{name} in its path"),
        Attribute::Host => "host".to_owned(),
        Attribute::Path | Attribute::Method | Attribute::Ip | Attribute::IpPrefix(_) => "address".to_owned(),
        Attribute::Route | Attribute::Rule => "route".to_owned(),
    }
}
