//! Live events, as server-sent events: `/v1/events`.
//!
//! What happens is told to whoever listens, and nothing is done for it where nobody does: a refusal looks at one number that
//! hardly ever changes. Of refusals some twenty a second are told, and how many were not. Whoever reads too slowly loses the
//! oldest events, and is told how many.

use super::{Access, Api, asked::Asked, problem::Problem};
use axum::{
    extract::{Request, State},
    response::{IntoResponse, Response, Sse, sse::Event},
};
use futures_util::stream;
use http::{StatusCode, header};
use serde_json::{Value, json};
use std::{
    net::IpAddr,
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tokio::{sync::broadcast, time};
use tollgate_net::{Ceiling, Slot};

/// Who may listen at a time.
const LISTENERS: NonZeroUsize = NonZeroUsize::new(32).expect("not zero");
/// Events that wait for a slow one.
const WAITING: usize = 256;
/// Refusals a second that are told.
const REFUSALS: u64 = 20;
/// How often a line goes out that says nothing, so that both sides know that they are there.
const BREATH: Duration = Duration::from_secs(15);

/// What happens, told to whoever listens. Clones are the same.
#[derive(Clone)]
pub struct Events(Arc<Inner>);

struct Inner {
    sender: broadcast::Sender<Event>,
    ceiling: Ceiling,
    listening: AtomicUsize,
    begun: Instant,
    /// The second that is being counted, how many refusals it told, and how many were not told.
    second: AtomicU64,
    told: AtomicU64,
    left_out: AtomicU64,
    /// Which rules were told of last.
    revision: Mutex<String>,
}

/// A request that was refused.
#[derive(Clone, Copy, Debug)]
pub struct Refusal<'a> {
    /// The route it took; none for a rule of every route.
    pub route: Option<&'a str>,
    /// The rule that refused it.
    pub rule: &'a str,
    /// Its method.
    pub method: &'a str,
    /// Its path, without the query.
    pub path: &'a str,
    /// Where it came from.
    pub ip: IpAddr,
    /// The limit that had no room, where it was one.
    pub limit: Option<&'a str>,
    /// The key's values there.
    pub key: &'a [Option<&'a str>],
}

impl Default for Events {
    fn default() -> Self {
        Self(Arc::new(Inner {
            sender: broadcast::Sender::new(WAITING),
            ceiling: Ceiling::new(LISTENERS),
            listening: AtomicUsize::new(0),
            begun: Instant::now(),
            second: AtomicU64::new(0),
            told: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
            revision: Mutex::default(),
        }))
    }
}

impl Events {
    /// Whether anybody listens: the first thing to ask on a hot path.
    #[inline]
    #[must_use]
    pub fn listening(&self) -> bool {
        self.0.listening.load(Relaxed) > 0
    }

    /// Whether a refusal is to be told now. Where it is not, it is counted.
    #[must_use]
    pub fn wants_refusal(&self) -> bool {
        if !self.listening() {
            return false;
        }
        let second = self.0.begun.elapsed().as_secs();
        // Two threads at a second's edge may tell one too many.
        if self.0.second.swap(second, Relaxed) != second {
            self.0.told.store(0, Relaxed);
        }
        let has_room = self.0.told.fetch_add(1, Relaxed) < REFUSALS;
        if !has_room {
            self.0.left_out.fetch_add(1, Relaxed);
        }
        has_room
    }

    /// Tells of a refusal that is [wanted](Self::wants_refusal).
    pub fn refused(&self, refusal: &Refusal<'_>) {
        let Refusal { route, rule, method, path, ip, limit, key } = refusal;
        let left_out = self.0.left_out.swap(0, Relaxed);
        let data = json!({
            "at_ms": super::now_ms(), "route": route, "rule": rule, "method": method, "path": cut(path),
            "ip": ip, "limit": limit, "key": key.iter().map(|value| value.map(cut)).collect::<Vec<_>>(),
            "left_out": left_out,
        });
        self.tell("refused", &data);
    }

    /// Other rules are in force; told once, by whoever knows first.
    pub(super) fn rules(&self, revision: &str, by: Option<&str>) {
        let mut told = self.0.revision.lock().unwrap_or_else(PoisonError::into_inner);
        if *told != revision {
            revision.clone_into(&mut told);
            self.tell("rules", &json!({ "revision": revision, "by": by }));
        }
    }

    pub(crate) fn tell(&self, event: &str, data: &Value) {
        if self.listening() {
            let _ = self.0.sender.send(Event::default().event(event).data(data.to_string()));
        }
    }

    fn listen(&self) -> Option<Listening> {
        let slot = self.0.ceiling.enter()?;
        self.0.listening.fetch_add(1, Relaxed);
        Some(Listening { events: self.clone(), receiver: self.0.sender.subscribe(), _slot: slot })
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("listening", &self.0.listening.load(Relaxed)).finish_non_exhaustive()
    }
}

/// Long paths and keys are somebody's attempt at something.
fn cut(text: &str) -> &str {
    let end = (0..=256.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

struct Listening {
    events: Events,
    receiver: broadcast::Receiver<Event>,
    _slot: Slot,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.events.0.listening.fetch_sub(1, Relaxed);
    }
}

/// One who listens, until they leave or may not any more.
struct Heard {
    listening: Listening,
    breath: time::Interval,
    access: Access,
    /// As it asked: whoever was let in may be put out later.
    asked: http::Request<()>,
}

pub(super) async fn events(
    State(api): State<Api>,
    asked: Asked,
    request: Request,
) -> Result<Response, Problem> {
    asked.only(&[])?;
    let listening = api.events.listen().ok_or_else(|| {
        let detail = "32 others listen already; come back when one has left";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(BREATH)
    })?;
    let (parts, _) = request.into_parts();
    let mut breath = time::interval(BREATH);
    breath.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    let heard =
        Heard { listening, breath, access: api.access.clone(), asked: http::Request::from_parts(parts, ()) };
    let no_store = [(header::CACHE_CONTROL, "no-store")];
    Ok((no_store, Sse::new(stream::unfold(heard, next))).into_response())
}

type Next = Option<(Result<Event, std::convert::Infallible>, Heard)>;

async fn next(mut heard: Heard) -> Next {
    let event = tokio::select! {
        told = heard.listening.receiver.recv() => match told {
            Ok(event) => event,
            Err(broadcast::error::RecvError::Lagged(lost)) => {
                Event::default().event("lost").data(format!("{{\"events\":{lost}}}"))
            }
            Err(broadcast::error::RecvError::Closed) => return None,
        },
        _ = heard.breath.tick() => Event::default().comment(""),
    };
    // Before anything is told: whoever is put out hears no more.
    if heard.access.who_sent(&heard.asked).is_err() {
        return None;
    }
    Some((Ok(event), heard))
}
