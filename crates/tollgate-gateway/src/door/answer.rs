//! A ruling as a response: the one place of this door that knows statuses, headers and bodies.

use super::active::Active;
use crate::Body;
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use std::time::Duration;
use tollgate::{Enter, Status};
use tollgate_http::problem;
use tollgate_rules::{
    Ruling,
    enforce::{Outcome, Why},
    model::{Attribute, Excess, Reply},
};

/// When to come back while there is too much to do.
const SOON: Duration = Duration::from_secs(1);

impl<S: Enter> Active<S> {
    /// Tells a request that passed how it stands.
    pub(super) fn tell<P>(&self, ruling: &Ruling<P>, headers: &mut HeaderMap) {
        if !ruling.stands.is_empty() {
            self.policies.allow(told(ruling), headers);
        }
    }

    /// Refuses, as the first rule that refuses says.
    pub(super) fn refuse<P>(&self, request: &HeaderMap, ruling: &Ruling<P>) -> Response<Body> {
        let Outcome::Refused { by, why } = &ruling.outcome else { return self.overloaded(request) };
        let excess = &self.edition.program().rule(*by).rule.excess;
        if let Excess::Degrade(reply) = excess {
            return spelled_out(reply, None);
        }
        let plain = match why {
            Why::Limit { retry, .. } => self.policies.refusal(self.refusal, request, told(ruling), *retry),
            Why::Missing(attribute) => {
                let detail = format!("the request has no {}", named(attribute));
                problem(StatusCode::BAD_REQUEST, "Incomplete request", &detail)
            }
            Why::Length => problem(
                StatusCode::LENGTH_REQUIRED,
                "Length required",
                "the request must tell the length of its body in Content-Length",
            ),
            Why::Store(_) => self.refusal.reduced_capacity(request, Some(SOON)),
        };
        match excess {
            Excess::Reject(Some(reply)) => spelled_out(reply, Some(plain)),
            _ => plain.map(Body::full),
        }
    }

    /// There is more to do than the gateway is allowed to.
    pub(super) fn overloaded(&self, request: &HeaderMap) -> Response<Body> {
        self.refusal.reduced_capacity(request, Some(SOON)).map(Body::full)
    }

    /// Nothing in the file takes the request.
    pub(super) fn no_route(&self, _: &HeaderMap) -> Response<Body> {
        problem(StatusCode::NOT_FOUND, "No route", "no route takes this request").map(Body::full)
    }
}

/// How the charges stand, each with its place among the policies.
fn told<P>(ruling: &Ruling<P>) -> impl Iterator<Item = (usize, &Status)> + Clone {
    ruling.stands.iter().map(|stand| (stand.charge.0, &stand.status))
}

/// An answer that the file spells out; where it leaves the body out, that of `plain` is sent.
fn spelled_out(reply: &Reply, plain: Option<Response<Bytes>>) -> Response<Body> {
    let mut response = plain.unwrap_or_default();
    *response.status_mut() = reply.status;
    if let Some(body) = &reply.body {
        *response.body_mut() = Bytes::copy_from_slice(body.as_bytes());
        let kind = reply.content_type.as_deref().unwrap_or("text/plain; charset=utf-8");
        if let Ok(kind) = HeaderValue::from_str(kind) {
            response.headers_mut().insert(CONTENT_TYPE, kind);
        }
    } else if let Some(kind) = reply.content_type.as_deref().and_then(|kind| HeaderValue::from_str(kind).ok())
    {
        response.headers_mut().insert(CONTENT_TYPE, kind);
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
