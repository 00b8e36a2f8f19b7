//! What is shown, a page each: `/healthz`, `/readyz`, `/metrics`, `/v1/top`, `/v1/explain`.
//!
//! Pages only read. Those under `/v1` are JSON and keep their shape; a console is built on them.

use crate::{Format, Heavy, Meters, Ranking, Sketch, State, StoreMode, Unexplained};
use axum::{
    Json, Router,
    body::{self, Body},
    extract::{Query, State as Extract, rejection::QueryRejection},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::{task, time};

mod readiness;

/// How many keys are told unless a number is asked for, and at most.
const TOP: usize = 20;
const TOP_MAX: usize = 500;

/// What pages are made from.
#[derive(Clone)]
pub(crate) struct Shown {
    pub(crate) state: Arc<dyn State>,
    pub(crate) meters: Meters,
    pub(crate) sketch: Sketch,
}

/// All pages. From now on the registry asks `state` for what it knows.
pub(crate) fn pages(shown: Shown) -> Router {
    ask_state(&shown);
    Router::new()
        .route("/healthz", get(async || "alive\n"))
        .route("/readyz", get(readiness))
        .route("/metrics", get(metrics))
        .route("/v1/top", get(top))
        .route("/v1/explain", post(explain))
        .fallback(async || {
            problem(StatusCode::NOT_FOUND, "there are /healthz, /readyz, /metrics, /v1/top and /v1/explain")
        })
        .method_not_allowed_fallback(async || {
            let detail = "pages are for GET, and /v1/explain is for POST";
            problem(StatusCode::METHOD_NOT_ALLOWED, detail)
        })
        .with_state(shown)
}

async fn readiness(Extract(shown): Extract<Shown>) -> Response {
    let (ready, body) = readiness::told(&*shown.state);
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, [(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

async fn metrics(Extract(shown): Extract<Shown>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let format = Format::accepted(accept);
    // Thousands of rules are milliseconds of writing, for which no request should wait.
    let text = task::spawn_blocking(move || shown.meters.registry().text(format)).await;
    let Ok(text) = text else {
        return problem(StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written");
    };
    ([(header::CONTENT_TYPE, format.content_type()), (header::CACHE_CONTROL, "no-store")], text)
        .into_response()
}

/// A request's description is short, and so is the time that it takes to say it.
const QUESTION: usize = 256 * 1024;
const SAID_WITHIN: Duration = Duration::from_secs(5);

async fn explain(Extract(shown): Extract<Shown>, question: Body) -> Response {
    let question = time::timeout(SAID_WITHIN, body::to_bytes(question, QUESTION)).await;
    let question = match question.as_ref().map(|read| read.as_deref().map(str::from_utf8)) {
        Ok(Ok(Ok(question))) => question,
        _ => {
            let detail = "the question must be a JSON object of at most 256 KiB, sent within 5 seconds";
            return problem(StatusCode::BAD_REQUEST, detail);
        }
    };
    let json = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    match shown.state.explain(question).await {
        Ok(answer) => (json, answer).into_response(),
        Err(why) => {
            let status = match why {
                Unexplained::NotHere => StatusCode::NOT_FOUND,
                Unexplained::Question(_) => StatusCode::BAD_REQUEST,
                Unexplained::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            };
            problem(status, &why.to_string())
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HowMany {
    #[serde(default = "HowMany::usual")]
    n: usize,
}

impl HowMany {
    const fn usual() -> usize {
        TOP
    }
}

async fn top(Extract(shown): Extract<Shown>, how_many: Result<Query<HowMany>, QueryRejection>) -> Response {
    let n = match how_many {
        Ok(Query(HowMany { n })) if (1..=TOP_MAX).contains(&n) => n,
        _ => return problem(StatusCode::BAD_REQUEST, "n, the only question here, is a number from 1 to 500"),
    };
    let heavy = |ranking| shown.sketch.top(ranking, n).into_iter().map(told).collect::<Vec<_>>();
    Json(json!({
        "half_life_seconds": 60,
        "limited": heavy(Ranking::Refused),
        "used": heavy(Ranking::Used),
        "lost": shown.sketch.lost(),
    }))
    .into_response()
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

fn problem(status: StatusCode, detail: &str) -> Response {
    let title = status.canonical_reason().unwrap_or_default();
    let body = json!({ "title": title, "status": status.as_u16(), "detail": detail });
    (status, [(header::CONTENT_TYPE, "application/problem+json")], body.to_string()).into_response()
}

fn ask_state(shown: &Shown) {
    let registry = shown.meters.registry();
    let state = Arc::clone(&shown.state);
    registry.ask_gauge("tollgate_keys", "Keys in the memory of this process.", &[], move || {
        vec![(vec![], state.store().keys)]
    });
    let state = Arc::clone(&shown.state);
    let help = "Live keys that had to make room for others.";
    registry
        .ask_counter("tollgate_evictions_total", help, &[], move || vec![(vec![], state.store().evictions)]);
    let state = Arc::clone(&shown.state);
    registry.ask_gauge(
        "tollgate_store_mode",
        "Who decides: 1 for the mode it is in.",
        &["mode"],
        move || {
            let now = state.store().mode;
            StoreMode::ALL.map(|mode| (vec![mode.name().to_owned()], u64::from(mode == now))).to_vec()
        },
    );
    let sketch = shown.sketch.clone();
    let help = "Updates of /v1/top that were left out because everything was busy.";
    registry.ask_counter("tollgate_top_lost_total", help, &[], move || vec![(vec![], sketch.lost())]);
}
