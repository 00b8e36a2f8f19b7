//! What is shown, a page each: `/healthz`, `/readyz`, `/metrics`, `/v1/top`, `/v1/explain`.
//!
//! Pages only read. Those under `/v1` are JSON and keep their shape; a console is built on them.

use crate::{
    Access, Format, Heavy, Meters, Needs, Ranking, Sketch, State, StoreMode, Unexplained,
    api::{
        asked::{self, Asked},
        guarded::Guarded,
        problem::Problem,
    },
};
use axum::{
    Json,
    body::Body,
    extract::{Request, State as Extract},
    http::{HeaderMap, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::task;
use tollgate_rules::model::Role;

pub(crate) mod readiness;

/// How many keys are told unless a number is asked for, and at most.
const TOP: usize = 20;
const TOP_MAX: usize = 500;

/// What pages are made from.
#[derive(Clone)]
pub(crate) struct Shown {
    pub(crate) state: Arc<dyn State>,
    pub(crate) meters: Meters,
    pub(crate) sketch: Sketch,
    pub(crate) access: Access,
}

/// Adds all pages.
pub(crate) fn add(pages: Guarded, shown: &Shown) -> Guarded {
    let viewer = Needs::Role(Role::Viewer);
    pages
        .page(Needs::Nobody, (Method::GET, "/healthz"), async || "alive\n", &())
        .page(Needs::Nobody, (Method::GET, "/readyz"), readiness, shown)
        .page(viewer, (Method::GET, "/metrics"), metrics, shown)
        .page(viewer, (Method::GET, "/v1/top"), top, shown)
        .page(viewer, (Method::POST, "/v1/explain"), explain, shown)
}

async fn readiness(Extract(shown): Extract<Shown>, request: Request) -> Response {
    let (ready, mut body) = readiness::told(&*shown.state);
    // Whoever has not said who they are learns whether to send traffic, and no more.
    if shown.access.who_sent(&request).is_err() {
        body = json!({ "ready": ready });
    }
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, [(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

async fn metrics(Extract(shown): Extract<Shown>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let format = Format::accepted(accept);
    // Thousands of rules are milliseconds of writing, for which no request should wait.
    let text = task::spawn_blocking(move || shown.meters.registry().text(format)).await;
    let Ok(text) = text else {
        return Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written")
            .into_response();
    };
    ([(header::CONTENT_TYPE, format.content_type()), (header::CACHE_CONTROL, "no-store")], text)
        .into_response()
}

/// A request's description is short, and so is the time that it takes to say it.
const QUESTION: usize = 256 * 1024;
const SAID_WITHIN: Duration = Duration::from_secs(5);

async fn explain(Extract(shown): Extract<Shown>, question: Body) -> Result<Response, Problem> {
    let question = asked::read(question, QUESTION, SAID_WITHIN).await?;
    let question =
        str::from_utf8(&question).map_err(|_| Problem::asked_wrong("the question must be a JSON object"))?;
    let json = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    match shown.state.explain(question).await {
        Ok(answer) => Ok((json, answer).into_response()),
        Err(why) => {
            let status = match why {
                Unexplained::NotHere => StatusCode::NOT_FOUND,
                Unexplained::Question(_) => StatusCode::BAD_REQUEST,
                Unexplained::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            };
            Err(Problem::new(status, why.to_string()))
        }
    }
}

async fn top(Extract(shown): Extract<Shown>, asked: Asked) -> Result<Response, Problem> {
    asked.only(&["n"])?;
    let expected = "a number from 1 to 500";
    let n = asked.one("n", expected)?.unwrap_or(TOP);
    if !(1..=TOP_MAX).contains(&n) {
        return Err(Problem::asked_wrong(format!("n must be {expected}")));
    }
    let heavy = |ranking| shown.sketch.top(ranking, n).into_iter().map(told).collect::<Vec<_>>();
    Ok(Json(json!({
        "half_life_seconds": 60,
        "limited": heavy(Ranking::Refused),
        "used": heavy(Ranking::Used),
        "lost": shown.sketch.lost(),
    }))
    .into_response())
}

#[derive(Serialize)]
struct Told {
    limit: String,
    key: Value,
    key_cut: bool,
    refused_per_second: f64,
    used_per_second: f64,
    at_least: f64,
    at_most: f64,
}

fn told(heavy: Heavy) -> Told {
    Told {
        limit: heavy.limit,
        // As the doors take it: one value is that value.
        key: match heavy.key.values.as_slice() {
            [Some(one)] => json!(one),
            several => json!(several),
        },
        key_cut: heavy.key.is_cut,
        refused_per_second: short(heavy.refused_per_second),
        used_per_second: short(heavy.used_per_second),
        at_least: short(heavy.at_least),
        at_most: short(heavy.at_most),
    }
}

/// Three places after the point are plenty for people.
fn short(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// From now on the registry asks the state for what it knows.
pub(crate) fn ask_state(shown: &Shown) {
    let registry = shown.meters.registry();
    let state = Arc::clone(&shown.state);
    registry.ask_gauge("tollgate_keys", "Keys in the memory of this process.", &[], move || {
        vec![(vec![], state.store().keys)]
    });
    let state = Arc::clone(&shown.state);
    let help = "Keys in use that were evicted from memory.";
    registry
        .ask_counter("tollgate_evictions_total", help, &[], move || vec![(vec![], state.store().evictions)]);
    let state = Arc::clone(&shown.state);
    registry.ask_gauge(
        "tollgate_store_mode",
        "Mode of the store: 1 for the current mode, 0 for all others.",
        &["mode"],
        move || {
            let now = state.store().mode;
            StoreMode::ALL.map(|mode| (vec![mode.name().to_owned()], u64::from(mode == now))).to_vec()
        },
    );
    let sketch = shown.sketch.clone();
    let help = "Updates of the busiest keys (/v1/top) that were dropped under load.";
    registry.ask_counter("tollgate_top_lost_total", help, &[], move || vec![(vec![], sketch.lost())]);
}
