//! A request's part in a trace: which one it came with, and the span that the gateway adds.
//!
//! Traces travel in the header `traceparent` (W3C Trace Context). A request that gets a span is sent on with that span as the
//! parent; any other is sent on as it came. A span ends when the last byte of the answer was taken, or when the client went
//! away: it is in the answer's body until then.

use super::{Outcome, active::Active};
use crate::{Body, RequestBody};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use std::{
    cell::Cell,
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};
use tollgate::Enter;
use tollgate_rules::{RouteId, decision::Why, model::Excess};

static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
static TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The flag of a trace that is kept.
const SAMPLED: u8 = 1;
/// The longest path that a span shows; what waits to be sent is bounded.
const LONGEST: usize = 256;

/// Takes the spans of requests. Called on the hot path.
pub trait Tracer: Send + Sync + 'static {
    /// Whether a request gets a span. `parent` is whether the trace that it came with is kept, `None` where it came with none;
    /// `draw` is drawn anew for every request, any number as likely as any other.
    fn wants(&self, parent: Option<bool>, draw: u64) -> bool;

    /// A request is over.
    fn ended(&self, span: Span);
}

/// One request through the gateway.
#[derive(Clone, Debug, Default)]
pub struct Span {
    /// The trace it is part of.
    pub trace: u128,
    /// Its own name in that.
    pub id: u64,
    /// The span that asked for it, if any.
    pub parent: Option<u64>,
    /// What the request came with in `tracestate`.
    pub state: String,
    /// When its head was read.
    pub began: Option<SystemTime>,
    /// From then until the last byte of the answer was taken, or the client went away.
    pub took: Duration,
    /// As it was asked.
    pub method: String,
    /// The path as it was asked, without the query; the beginning of a long one.
    pub path: String,
    /// Who asked.
    pub client: Option<IpAddr>,
    /// The route that took it.
    pub route: Option<String>,
    /// The rule that refused it.
    pub rule: Option<String>,
    /// What the rules said: `allow`, `wait`, `reject`, `divert`, `degrade`, `error` (nobody could decide) or `skip` (switched off).
    pub decision: Option<&'static str>,
    /// How long it waited for its turn.
    pub waited: Duration,
    /// The upstream that was asked, and how long that took to begin its answer.
    pub upstream: Option<(String, Duration)>,
    /// What was answered; none if the client went away before.
    pub status: Option<StatusCode>,
}

/// A span that is not over. It ends when it is dropped.
pub(super) struct Trace(Box<Open>);

struct Open {
    span: Span,
    begun: Instant,
    tracer: Arc<dyn Tracer>,
}

impl Trace {
    /// Begins a span if the request gets one, which is then its parent upstream.
    pub(super) fn begin(
        tracer: &Arc<dyn Tracer>,
        request: &mut Request<RequestBody>,
        begun: Instant,
    ) -> Option<Self> {
        let parent = Parent::of(request.headers());
        let draw = random();
        if !tracer.wants(parent.as_ref().map(Parent::is_kept), draw) {
            return None;
        }
        let id = random().max(1);
        let trace = match &parent {
            Some(parent) => parent.trace,
            None => ((u128::from(random()) << 64) | u128::from(draw)).max(1),
        };
        let flags = parent.as_ref().map_or(0, |parent| parent.flags) | SAMPLED;
        let mut span = Span {
            trace,
            id,
            parent: parent.as_ref().map(|parent| parent.id),
            began: Some(SystemTime::now()),
            method: request.method().as_str().chars().take(LONGEST).collect(),
            path: request.uri().path().chars().take(LONGEST).collect(),
            ..Span::default()
        };
        let headers = request.headers_mut();
        match parent {
            Some(_) => {
                let state =
                    headers.get(&TRACESTATE).and_then(|state| state.to_str().ok()).unwrap_or_default();
                span.state = state.chars().take(2 * LONGEST).collect();
            }
            // It belongs to a trace that nobody could name.
            None => drop(headers.remove(&TRACESTATE)),
        }
        if let Ok(value) = HeaderValue::try_from(format!("00-{trace:032x}-{id:016x}-{flags:02x}")) {
            headers.insert(&TRACEPARENT, value);
        }
        Some(Self(Box::new(Open { span, begun, tracer: Arc::clone(tracer) })))
    }

    pub(super) fn asked_by(&mut self, client: IpAddr) {
        self.0.span.client = Some(client);
    }

    /// The rules have spoken.
    pub(super) fn ruled<S: Enter>(&mut self, active: &Active<S>, route: RouteId, outcome: &Outcome) {
        let program = active.program();
        let span = &mut self.0.span;
        span.route = Some(program.route(route).name.clone());
        span.decision = Some(match outcome {
            Outcome::Skipped => "skip",
            Outcome::Pass { waited } if waited.is_zero() => "allow",
            Outcome::Pass { waited } => {
                span.waited = *waited;
                "wait"
            }
            Outcome::Refused { by, why } => {
                let rule = program.rule(*by).rule();
                span.rule = Some(rule.name.clone());
                match (&rule.excess, why) {
                    (_, Why::Store(_)) => "error",
                    (Excess::Divert(_), _) => "divert",
                    (Excess::Degrade(_), _) => "degrade",
                    _ => "reject",
                }
            }
        });
    }

    pub(super) fn forwarded(&mut self, upstream: &str, took: Duration) {
        self.0.span.upstream = Some((upstream.to_owned(), took));
    }

    /// Stays until the answer has ended.
    pub(super) fn stay_with(mut self, response: &mut Response<Body>) {
        self.0.span.status = Some(response.status());
        response.body_mut().hold(self);
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let mut span = std::mem::take(&mut self.0.span);
        span.took = self.0.begun.elapsed();
        self.0.tracer.ended(span);
    }
}

/// The trace that a request came with.
#[derive(Debug, PartialEq, Eq)]
struct Parent {
    trace: u128,
    id: u64,
    flags: u8,
}

impl Parent {
    /// `None` where there is none, or none that can be read.
    fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(&TRACEPARENT).iter();
        let value = values.next().filter(|_| values.next().is_none())?;
        Self::parse(value.to_str().ok()?)
    }

    /// `version-trace-span-flags`; later versions may have more behind.
    fn parse(text: &str) -> Option<Self> {
        let (known, more) = text.split_at_checked(55)?;
        let mut parts = known.split('-');
        let mut part = |length: usize| {
            let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            parts.next().filter(|part| part.len() == length && part.bytes().all(is_hex))
        };
        let (version, trace, id, flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
        if version == "ff" || !(more.is_empty() || version != "00" && more.starts_with('-')) {
            return None;
        }
        let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace != 0)?;
        let id = u64::from_str_radix(id, 16).ok().filter(|id| *id != 0)?;
        Some(Self { trace, id, flags: u8::from_str_radix(flags, 16).ok()? })
    }

    const fn is_kept(&self) -> bool {
        self.flags & SAMPLED != 0
    }
}

/// A number that nobody can guess from those before: SipHash of a counter, under a key of this thread's own.
fn random() -> u64 {
    thread_local! {
        static NEXT: (RandomState, Cell<u64>) = (RandomState::new(), const { Cell::new(0) });
    }
    NEXT.with(|(state, next)| {
        next.set(next.get().wrapping_add(1));
        state.hash_one(next.get())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let parent = Parent::parse(good).expect("it is the specification's own");
        assert_eq!(
            (parent.trace, parent.id),
            (0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c, 0xb7ad_6b71_6920_3331)
        );
        assert!(parent.is_kept());
        assert!(!Parent::parse(&good.replace("-01", "-02")).expect("an unknown flag").is_kept());
        assert!(Parent::parse(&good.replacen("00", "cc", 1)).is_some(), "a version that is to come");
        assert!(Parent::parse(&format!("cc{}-what-is-to-come", &good[2..])).is_some());
        for bad in [
            "",
            "00",
            &good[..54],
            &format!("{good}-"),
            &format!("{good}0"),
            &format!("cc{}.more", &good[2..]),
            &good.replacen("00", "ff", 1),
            &good.to_uppercase(),
            &good.replace("b7ad6b7169203331", "0000000000000000"),
            &good.replace("0af7651916cd43dd8448eb211c80319c", "00000000000000000000000000000000"),
            &good.replace('-', "_"),
            &good.replace("319c-", "319-c"),
            "00-é0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert_eq!(Parent::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn two_parents_are_none() {
        let good = HeaderValue::from_static("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        let mut headers = HeaderMap::new();
        headers.append(&TRACEPARENT, good.clone());
        assert!(Parent::of(&headers).is_some());
        headers.append(&TRACEPARENT, good);
        assert_eq!(Parent::of(&headers), None);
    }

    #[test]
    fn numbers_differ() {
        let mut seen = std::collections::HashSet::new();
        assert!((0..10_000).all(|_| seen.insert(random())));
    }
}
