//! The admin API: what the console shows is an API first.
//!
//! | file | what |
//! |---|---|
//! | `guarded.rs`, `gate.rs` | pages, each with whom it is for; who gets through |
//! | `access.rs`, `token.rs`, `sessions.rs`, `login.rs` | who somebody is |
//! | `asked.rs`, `problem.rs` | what is asked, and what cannot be done |
//! | `operated.rs` | what the API asks of the program |
//! | `overview.rs`, `rules.rs`, `summary.rs` | how everything is |
//! | `book.rs`, `attempt.rs`, `recorder.rs` | rules as they are kept, changed, and tried on requests that came |
//! | `secrets.rs` | what of them is not for everybody |
//! | `keys.rs` | one key: looked at, reset, granted, banned |
//! | `usage/`, `events.rs`, `sampler.rs` | what happens, over time and live |
//! | `play/` | a limit and some traffic, to play with |
//! | `openapi.rs` | the document that describes it; the console that shows it is `../console.rs` |

mod access;
pub(crate) mod asked;
mod attempt;
mod book;
mod events;
mod gate;
pub(crate) mod guarded;
mod keys;
mod login;
mod openapi;
mod operated;
mod overview;
mod play;
pub(crate) mod problem;
mod recorder;
mod rules;
mod sampler;
mod secrets;
mod sessions;
mod summary;
mod token;
pub(crate) mod usage;

pub use access::{Access, Line, Who};
pub use events::{Events, Refusal};
pub use gate::Needs;
pub(crate) use gate::Peer;
pub use guarded::Operation;
pub use operated::{
    Doing, Held, KeyAct, KeyError, Node, OpenListener, Operated, UpstreamServer, UpstreamState,
};
pub use recorder::Recorder;
pub use token::{NoRandomness, fresh_token};

use crate::{Meters, Sketch, State};
use axum::{Json, Router, extract, middleware, response::Response};
use guarded::Guarded;
use http::{HeaderName, HeaderValue, Method, header};
use serde_json::Value;
use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::sync::{Mutex, Semaphore};
use tollgate_rules::model::Role;
use usage::Usage;

/// What the gateway tells of its requests, for [`Events`] and a [`Recorder`]. Clones are the same.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Who listens.
    pub events: Events,
    /// What is kept.
    pub recorder: Recorder,
}

impl Traffic {
    /// Nobody listens yet, nothing is kept yet.
    ///
    /// # Errors
    /// Where the system has no random numbers to give.
    pub fn new() -> Result<Self, NoRandomness> {
        Ok(Self { events: Events::default(), recorder: Recorder::new()? })
    }
}

/// What the API is made from. Clones are the same.
#[derive(Clone)]
pub(crate) struct Api {
    program: Arc<dyn Operated>,
    state: Arc<dyn State>,
    meters: Meters,
    sketch: Sketch,
    access: Access,
    events: Events,
    recorder: Recorder,
    usage: Usage,
    /// One change of the rules at a time.
    changing: Arc<Mutex<()>>,
    /// One long computation at a time.
    working: Arc<Semaphore>,
}

impl Api {
    pub(crate) fn new(program: Arc<dyn Operated>, shown: &crate::pages::Shown, traffic: Traffic) -> Self {
        Self {
            program,
            state: Arc::clone(&shown.state),
            meters: shown.meters.clone(),
            sketch: shown.sketch.clone(),
            access: shown.access.clone(),
            events: traffic.events,
            recorder: traffic.recorder,
            usage: Usage::default(),
            changing: Arc::default(),
            working: Arc::new(Semaphore::new(1)),
        }
    }

    /// For those whom `access` lets in.
    pub(crate) fn access(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// Adds its pages.
    pub(crate) fn add(&self, pages: Guarded) -> Guarded {
        const VIEWER: Needs = Needs::Role(Role::Viewer);
        const OPERATOR: Needs = Needs::Role(Role::Operator);
        const ADMIN: Needs = Needs::Role(Role::Admin);
        pages
            .page(VIEWER, (Method::GET, "/v1/overview"), overview::overview, self)
            .page(VIEWER, (Method::GET, "/v1/rules"), rules::rules, self)
            .page(VIEWER, (Method::GET, "/v1/nodes"), overview::nodes, self)
            .page(VIEWER, (Method::GET, "/v1/book"), book::book, self)
            .page(ADMIN, (Method::POST, "/v1/changes"), book::change, self)
            .page(VIEWER, (Method::POST, "/v1/changes/check"), book::check, self)
            .page(VIEWER, (Method::POST, "/v1/changes/try"), attempt::attempt, self)
            .page(OPERATOR, (Method::PUT, "/v1/switch"), book::switch, self)
            .page(OPERATOR, (Method::PUT, "/v1/switch/rule"), book::switch_rule, self)
            .page(VIEWER, (Method::GET, "/v1/audit"), book::audit, self)
            .page(VIEWER, (Method::GET, "/v1/usage"), usage, self)
            .page(VIEWER, (Method::GET, "/v1/events"), events::events, self)
            .page(VIEWER, (Method::GET, "/v1/keys"), keys::look, self)
            .page(OPERATOR, (Method::POST, "/v1/keys/reset"), keys::reset, self)
            .page(OPERATOR, (Method::POST, "/v1/keys/grant"), keys::grant, self)
            .page(OPERATOR, (Method::POST, "/v1/keys/ban"), keys::ban, self)
            .page(VIEWER, (Method::POST, "/v1/play"), play::play, self)
            .page(VIEWER, (Method::GET, "/v1/openapi.json"), openapi::document, &())
    }
}

async fn usage(
    extract::State(api): extract::State<Api>,
    asked: asked::Asked,
) -> Result<Json<Value>, problem::Problem> {
    asked.only(&["last"])?;
    let last = asked.one("last", "a number of seconds from 1 to 86400")?.unwrap_or(300);
    if !(1..=Usage::LONGEST).contains(&last) {
        return Err(problem::Problem::asked_wrong("last must be a number of seconds from 1 to 86400"));
    }
    Ok(Json(api.usage.told(last, now_ms())))
}

/// Milliseconds since 1970 began.
pub(crate) fn now_ms() -> u64 {
    millis(SystemTime::now())
}

fn millis(time: SystemTime) -> u64 {
    u64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

/// Adds who one is, and how to become somebody.
pub(crate) fn add_login(pages: Guarded, access: &Access) -> Guarded {
    pages
        .page(Needs::Role(Role::Viewer), (Method::GET, "/v1/me"), login::me, access)
        .page(Needs::Nobody, (Method::POST, "/v1/login"), login::login, access)
        .page(Needs::Nobody, (Method::POST, "/v1/logout"), login::logout, access)
}

/// What every answer tells a browser: run nothing that is not ours, show us in nobody's frame, guess no types, tell nobody
/// where one came from.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; \
         frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Refuses requests that could be read in two ways, and puts on every answer what browsers are to be told.
pub(crate) fn headers(router: Router) -> Router {
    let checked = router.layer(middleware::from_fn(gate::check));
    checked.layer(middleware::map_response(async |mut response: Response| {
        for (name, value) in HEADERS {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }))
}
