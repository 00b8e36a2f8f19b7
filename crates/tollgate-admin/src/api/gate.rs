//! Every request passes here before its page does: is the host one of ours, may another site have sent it, who is it, and
//! may they.
//!
//! - **One reading.** A host that is none, and headers that are repeated though one value is expected, are answered 400 on
//!   every path ([`check_head`]).
//! - **Host.** Without users the listener is for this machine, and a page of some other site must not reach it by a name
//!   that it lets point here: only addresses and `localhost` are taken.
//! - **Other sites.** What is not a GET must not come from another site's page: a browser says where it comes from, and what
//!   is no browser says nothing. With `content-type: application/json`, which no form sends, and cookies that other sites'
//!   requests do not carry, that is three locks on one door.
//! - **Who, and may they.** The page says whom it is for; see [`Guarded`](super::guarded::Guarded).

use super::{
    access::{self, Access, Line, Stopped, Who},
    problem::Problem,
};
use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tollgate_net::check_head;
use tollgate_rules::model::Role;

/// Whom a page is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Everybody, also those who have not said who they are.
    Nobody,
    /// Whoever has this role, or a higher one.
    Role(Role),
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Where a request comes from.
pub(super) fn peer<B>(request: &http::Request<B>) -> IpAddr {
    let peer = request.extensions().get::<Peer>();
    peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip())
}

/// Answers 400 to a request whose head could be read in two ways, whatever it asks for.
pub(super) async fn check(request: Request, next: Next) -> Response {
    match check_head(request.uri(), request.version(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(error) => Problem::asked_wrong(error.reason()).into_response(),
    }
}

/// Lets a request through to its page, or does not.
pub(super) async fn pass(
    State((access, needs)): State<(Access, Needs)>,
    mut request: Request,
    next: Next,
) -> Response {
    match judge(&access, needs, &request) {
        Ok(who) => {
            if let Some(who) = who {
                request.extensions_mut().insert(who);
            }
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

fn judge(access: &Access, needs: Needs, request: &Request) -> Result<Option<Who>, Problem> {
    let headers = request.headers();
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    if needs != Needs::Nobody || changes {
        host(access, request)?;
    }
    let who = match needs {
        Needs::Nobody => None,
        Needs::Role(_) if access.asks() && access::sessions(headers).nth(1).is_some() => {
            let detail = "the request has the cookie tollgate_session more than once";
            return Err(Problem::asked_wrong(detail));
        }
        Needs::Role(_) => Some(access.who_sent(request).map_err(|why| match why {
            Stopped::Unknown if headers.contains_key(header::AUTHORIZATION) => {
                let detail = "nobody has this token, or nobody has it any more";
                Problem::new(StatusCode::UNAUTHORIZED, detail)
            }
            why => stopped(why),
        })?),
    };
    if changes {
        same_site(access, headers)?;
    }
    match (needs, &who) {
        (Needs::Role(role), Some(who)) if who.role < role => {
            let (name, has, needs) = (&who.name, who.role.name(), role.name());
            let detail = format!("this takes the role {needs}, and {name} has the role {has}");
            Err(Problem::new(StatusCode::FORBIDDEN, detail))
        }
        _ => Ok(who),
    }
}

pub(super) fn stopped(why: Stopped) -> Problem {
    match why {
        Stopped::Unknown => {
            let detail = "a token is needed: `authorization: Bearer TOKEN`, or a login";
            Problem::new(StatusCode::UNAUTHORIZED, detail)
        }
        Stopped::TooOften(after) => {
            let detail = "too many tries with a wrong token; come back later";
            Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).retry_after(after)
        }
        Stopped::NoRandomness => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the system has no random numbers to give")
        }
    }
}

fn host(access: &Access, request: &Request) -> Result<(), Problem> {
    let host = request.headers().get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    let target = request.uri().authority().map(|authority| authority.as_str());
    if access.asks() || host.into_iter().chain(target).all(is_here) {
        return Ok(());
    }
    let detail =
        "this listener is for its own machine: ask it by an address or as localhost, not by another name";
    Err(Problem::new(StatusCode::FORBIDDEN, detail))
}

fn is_here(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((six, _)) => six,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

fn same_site(access: &Access, headers: &HeaderMap) -> Result<(), Problem> {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let is_ours = match headers.get(header::ORIGIN) {
        None => true,
        Some(origin) => {
            let asked = |name: &str| headers.get(name).and_then(|host| host.to_str().ok());
            let forwarded = asked("x-forwarded-host").filter(|_| access.line() == Line::Proxied);
            let origin = origin.to_str().ok().and_then(|origin| Some(origin.split_once("://")?.1));
            let is = |host: Option<&str>| origin.zip(host).is_some_and(|(a, b)| a.eq_ignore_ascii_case(b));
            is(asked("host")) || is(forwarded)
        }
    };
    if is_ours && matches!(site, None | Some(b"same-origin" | b"none")) {
        return Ok(());
    }
    Err(Problem::new(StatusCode::FORBIDDEN, "another site's page asked for this"))
}
