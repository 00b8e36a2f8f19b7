//! The door: a request comes in, the rules say what becomes of it, and it is forwarded, held, turned away or answered here.
//!
//! A [`Gateway`] is the handler that the server calls. What it needs to know of the rules in force is made once for every
//! edition of them (`Active`), so that a request looks nothing up by name. Whatever a request holds (a place among the
//! requests in flight, slots of concurrency limits) goes into its response's body, and comes back when that ends, however it
//! ends.

mod active;
mod answer;
mod hold;
mod responses;
mod trace;

pub use active::{PrepareError, Prepared};
pub use responses::{NoResponseRecorder, ResponseRecord, ResponseRecorder};
pub use trace::{Span, Tracer};

use crate::{
    error::problem,
    forward::{self, forward_lines},
    guards::Guards,
    {Body, ClientInfo, Handler, RequestBody, Upstream},
};
use active::Active;
use arc_swap::ArcSwap;
use hold::Holding;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode, uri::PathAndQuery};
use http_body::Body as _;
use std::{
    borrow::Cow,
    num::NonZeroUsize,
    sync::{Arc, OnceLock},
    time::{Instant, SystemTime, UNIX_EPOCH},
};
use tokio::runtime::Handle;
use tollgate::{Bandwidth, Enter};
use tollgate_net::Ceiling;
use tollgate_rules::{
    Invalid, NamedHeaders, RouteId,
    decision::{self, Outcome, RequestDecision, Session},
};
use trace::Trace;

/// The gateway: rules, and the upstreams behind them.
pub struct Gateway<S: Enter> {
    inner: Arc<Inner<S>>,
}

struct Inner<S: Enter> {
    active: ArcSwap<Active<S>>,
    in_flight: Ceiling,
    /// Where upstreams are asked if they are well, once they are.
    checks: OnceLock<Handle>,
}

/// What the rules say of a request, with nothing of the request in it.
struct Verdict<P> {
    decision: RequestDecision<P>,
    route: RouteId,
    /// What upstream is to see instead of the path as sent.
    path: Option<String>,
    bandwidth: Option<Bandwidth>,
}

impl<S: Enter + 'static> Gateway<S> {
    /// A gateway that decides by the rules of this session, and answers 503 where more than so many requests are in flight.
    pub fn new(
        session: Session<S>,
        prepared: Prepared,
        responses: Arc<dyn ResponseRecorder>,
        max_in_flight: NonZeroUsize,
    ) -> Self {
        let active = Active::new(session, prepared, responses);
        let in_flight = Ceiling::new(max_in_flight);
        let active = ArcSwap::from_pointee(active);
        Self { inner: Arc::new(Inner { active, in_flight, checks: OnceLock::new() }) }
    }

    /// Asks the upstreams if they are well, as the file says: those of the rules in force, and of all that follow.
    pub fn start_checks(&self, runtime: &Handle) {
        let runtime = self.inner.checks.get_or_init(|| runtime.clone());
        self.inner.active.load().upstreams.iter().for_each(|upstream| upstream.start_checks(runtime));
    }

    /// Goes on with the rules of another session. Requests under way end by those they began with.
    pub fn adopt(&self, session: Session<S>, prepared: Prepared, responses: Arc<dyn ResponseRecorder>) {
        let active = Active::new(session, prepared, responses);
        if let Some(runtime) = self.inner.checks.get() {
            active.upstreams.iter().for_each(|upstream| upstream.start_checks(runtime));
        }
        self.inner.active.store(Arc::new(active));
    }

    /// What is needed of a file beside its rules; pools and health of servers that stay are kept. Nothing changes yet.
    ///
    /// # Errors
    /// Where an upstream cannot be had.
    pub fn prepare(&self, file: &tollgate_rules::RuleFile) -> Result<Prepared, PrepareError> {
        Prepared::new(file, &self.inner.active.load().upstreams)
    }

    /// The upstreams of the rules in force.
    pub fn upstreams(&self) -> Vec<Arc<Upstream>> {
        self.inner.active.load().upstreams.clone()
    }

    /// How many requests are in flight, and at most.
    pub fn in_flight(&self) -> &Ceiling {
        &self.inner.in_flight
    }
}

impl<S: Enter + 'static> Handler for Gateway<S> {
    #[expect(
        clippy::manual_async_fn,
        reason = "a request is large, and an async fn moves what it is given once more"
    )]
    fn handle(
        &self,
        mut request: Request<RequestBody>,
        mut client: ClientInfo,
    ) -> impl Future<Output = Response<Body>> + Send {
        async move {
            let begun = Instant::now();
            let active = self.inner.active.load_full();
            let mut trace =
                active.tracer.as_ref().and_then(|tracer| Trace::begin(tracer, &mut request, begun));
            let Some(slot) = self.inner.in_flight.enter() else {
                return active.counted(active.overloaded(request.headers()), None, begun, trace);
            };
            let mut guards = Guards::from(slot);
            client.client_ip = active.proxies.client(client.peer.ip(), request.headers());
            client.trusted = active.proxies.trusts(client.peer.ip());

            if let Some(trace) = &mut trace {
                trace.asked_by(client.client_ip);
            }

            if let Err(InConnection) = guard_named_headers(&mut request, active.program().named_headers()) {
                let why = "Connection names a header that a rule depends on";
                let refused = problem(StatusCode::BAD_REQUEST, why);
                return active.counted(refused, None, begun, trace);
            }
            let mut verdict = match decide(&active, &request, &client).await {
                Ok(verdict) => verdict,
                Err(Undecided::NoRoute) => {
                    return active.counted(Active::<S>::no_route(), None, begun, trace);
                }
                Err(Undecided::Invalid(invalid)) => {
                    return active.counted(Active::<S>::invalid(&invalid), None, begun, trace);
                }
            };
            if let Some(trace) = &mut trace {
                trace.ruled(&active, verdict.route, &verdict.decision.outcome);
            }
            let route = active.program().route(verdict.route);
            let (upstream, passed) = match &verdict.decision.outcome {
                Outcome::Pass { .. } | Outcome::Skipped => (route.upstream, true),
                Outcome::Refused { by, why } => match active.diverted(*by, why) {
                    Some(other) => (other, false),
                    None => {
                        let refused = active.refuse(request.headers(), &verdict.decision, *by, why);
                        let mut response = active.counted(refused, Some(verdict.route), begun, trace);
                        response.body_mut().hold_all(guards);
                        return response;
                    }
                },
            };
            if let Some(path) = verdict.path
                && let Err(TooLong) = rewrite(&mut request, &path)
            {
                let why = "the request's target is longer than allowed once it is encoded";
                let refused = problem(StatusCode::URI_TOO_LONG, why);
                return active.counted(refused, Some(verdict.route), begun, trace);
            }
            // Slots are renewed from here on: a server may take longer to answer than they are held for.
            let permits = std::mem::take(&mut verdict.decision.permits);
            if !permits.is_empty() {
                guards.hold(Holding::new(permits));
            }
            // A clock is read where it may tell something new.
            let waited = matches!(verdict.decision.outcome, Outcome::Pass { waited } if !waited.is_zero());
            let asked = if waited { Instant::now() } else { begun };
            let forwarded = forward_lines(request, &client, &active.upstreams[upstream], &mut guards).await;
            let answered = Instant::now();
            let mut response = match forwarded {
                Ok(response) => response,
                Err(error) => error.into_response(),
            };
            active.responses.response(&ResponseRecord {
                route: Some(verdict.route),
                upstream: Some((upstream, answered - asked)),
                status: response.status(),
                took: answered - begun,
            });
            if let Some(mut trace) = trace {
                trace.forwarded(active.upstreams[upstream].name(), answered - asked);
                trace.stay_with(&mut response);
            }
            if passed {
                active.tell(&verdict.decision, &mut response);
            }
            if let Some(bandwidth) = verdict.bandwidth {
                response = response.map(|body| body.pace(bandwidth));
            }
            response.body_mut().hold_all(guards);
            response
        }
    }
}

impl<S: Enter> Active<S> {
    /// An answer that was given here, recorded.
    fn counted(
        &self,
        mut response: Response<Body>,
        route: Option<RouteId>,
        begun: Instant,
        trace: Option<Trace>,
    ) -> Response<Body> {
        let (status, took) = (response.status(), begun.elapsed());
        self.responses.response(&ResponseRecord { route, upstream: None, status, took });
        if let Some(trace) = trace {
            trace.stay_with(&mut response);
        }
        response
    }
}

/// Why no rule was asked.
enum Undecided {
    NoRoute,
    Invalid(Invalid),
}

/// Asks the rules.
async fn decide<S: Enter>(
    active: &Active<S>,
    request: &Request<RequestBody>,
    client: &ClientInfo,
) -> Result<Verdict<S::Permit>, Undecided> {
    let program = active.program();
    let uri = request.uri();
    let seen = tollgate_rules::Request {
        method: request.method().as_str(),
        path: uri.path(),
        query: uri.query(),
        host: host(request),
        headers: request.headers(),
        ip: client.client_ip,
        at: if program.asks_time() { now() } else { 0 },
    };
    let found = program.find(&seen);
    if let Some(invalid) = found.invalid() {
        return Err(Undecided::Invalid(invalid.clone()));
    }
    let route = found.route().ok_or(Undecided::NoRoute)?;
    let body = if request.body().is_end_stream() || has_length(request.headers()) {
        decision::Body::Known
    } else {
        decision::Body::Open
    };
    let decision = active.session.decide_request(&found, body).await;
    let path = uri.path_and_query().and_then(|sent| match found.forwarded(sent.as_str()) {
        Cow::Borrowed(same) if same.len() == sent.as_str().len() => None,
        other => Some(other.into_owned()),
    });
    let bandwidth = active.slowest(&found, &decision.outcome);
    Ok(Verdict { decision, route, path, bandwidth })
}

/// `Connection` names a header that a rule depends on.
struct InConnection;

/// Takes out headers that servers may take for those that rules depend on, and keeps the body's trailers from adding any.
/// Refuses a request that takes one out which rules would see.
fn guard_named_headers(
    request: &mut Request<RequestBody>,
    named: &Arc<NamedHeaders>,
) -> Result<(), InConnection> {
    if named.is_empty() {
        return Ok(());
    }
    if named.in_connection(request.headers()).is_some() {
        return Err(InConnection);
    }
    request.body_mut().guard_trailers(named);
    let has_underscore = |name: &&HeaderName| name.as_str().contains('_');
    if request.headers().keys().find(has_underscore).is_none() {
        return Ok(());
    }
    let is_lookalike = |name: &&HeaderName| has_underscore(name) && named.resembles(name);
    let lookalikes: Vec<_> = request.headers().keys().filter(is_lookalike).cloned().collect();
    for name in lookalikes {
        request.headers_mut().remove(name);
    }
    Ok(())
}

/// A target that is too long once it is encoded.
struct TooLong;

/// Replaces the target. What was sent is never forwarded in its place: rules have not seen it.
fn rewrite(request: &mut Request<RequestBody>, path: &str) -> Result<(), TooLong> {
    let path = PathAndQuery::try_from(path).map_err(|_| TooLong)?;
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.path_and_query = Some(path);
    *request.uri_mut() = http::Uri::from_parts(parts).map_err(|_| TooLong)?;
    Ok(())
}

fn host(request: &Request<RequestBody>) -> Option<&str> {
    match request.uri().authority() {
        Some(authority) => Some(authority.as_str()),
        None => forward::host(request.headers())?.to_str().ok(),
    }
}

fn has_length(headers: &HeaderMap) -> bool {
    headers.contains_key(http::header::CONTENT_LENGTH)
}

/// Microseconds since 1970 began.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

impl<S: Enter> Clone for Gateway<S> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<S: Enter> std::fmt::Debug for Gateway<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("in_flight", &self.inner.in_flight.inside()).finish_non_exhaustive()
    }
}
