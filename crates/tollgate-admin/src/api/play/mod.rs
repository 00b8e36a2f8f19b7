//! `/v1/play`: a limit meets traffic of some shape, on a clock that is moved by hand. What decides is what decides for real.

mod traffic;

use super::{Api, asked::Said, problem::Problem, summary};
use axum::{Json, extract::State};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::task;
use tollgate::{Bounds, Charge, Decision, Limit, ManualClock, MemoryStore, PermitId, StoreError, Time};
use tollgate_rules::{Mistakes, ParsedLimit, parse_limit};
use traffic::Traffic;

/// How long a request may wait or hold a slot.
const LONGEST_MS: u64 = 3_600_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    limit: String,
    traffic: Traffic,
    #[serde(default)]
    wait_ms: u64,
    #[serde(default = "usual_hold")]
    hold_ms: u64,
}

const fn usual_hold() -> u64 {
    100
}

/// What became of one request.
#[derive(Serialize)]
struct Arrival {
    at_us: u64,
    decision: &'static str,
    wait_us: u64,
}

pub(super) async fn play(State(api): State<Api>, Said(asked): Said<Asked>) -> Result<Json<Value>, Problem> {
    let limit = match parse_limit(&asked.limit) {
        Ok(ParsedLimit::Limit(limit)) => limit,
        Ok(_) => {
            let detail = "bandwidth paces the bytes of a body, and decides nothing about requests";
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).with("mistakes", json!([])));
        }
        Err(mistakes) => return Err(wrong(&mistakes)),
    };
    if asked.wait_ms > LONGEST_MS || asked.hold_ms > LONGEST_MS {
        return Err(Problem::asked_wrong("wait_ms and hold_ms must be at most 3600000, an hour"));
    }
    let cost = asked.traffic.cost();
    let times = asked.traffic.times().map_err(Problem::asked_wrong)?;
    let (wait, hold) = (Duration::from_millis(asked.wait_ms), Duration::from_millis(asked.hold_ms));
    let one = Arc::clone(&api.working).acquire_owned().await;
    let summary = summary::of(&limit);
    let played = task::spawn_blocking(move || {
        // Held by the work itself: whoever hangs up does not make room for more of it.
        let _one = one;
        run(limit, &times, Terms { cost, wait, hold })
    })
    .await;
    let Ok(Ok(arrivals)) = played else {
        let detail = "memory cannot keep a limit with these numbers";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).with("mistakes", json!([])));
    };
    let count = |decision| arrivals.iter().filter(|it| it.decision == decision).count();
    Ok(Json(json!({
        "passed": count("allow"),
        "delayed": count("wait"),
        "refused": count("deny"),
        "summary": summary,
        "arrivals": arrivals,
    })))
}

fn wrong(mistakes: &Mistakes) -> Problem {
    let told = mistakes.iter().map(
        |it| json!({ "line": it.line(), "column": it.column(), "path": it.path(), "message": it.message() }),
    );
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "the limit has mistakes")
        .with("mistakes", told.collect::<Vec<_>>().into())
}

/// What every request brings.
#[derive(Clone, Copy)]
struct Terms {
    cost: u32,
    wait: Duration,
    hold: Duration,
}

/// A day into the clock, so that a limit that begins empty has had the time it takes.
const BEGIN: Time = Time::from_micros(86_400_000_000);

fn run(limit: Limit, times: &[u64], terms: Terms) -> Result<Vec<Arrival>, StoreError> {
    let store = MemoryStore::with_clock(Bounds { max_keys: 1, ..Bounds::default() }, ManualClock::new());
    store.clock().set(BEGIN);
    let has_pace = matches!(limit, Limit::LeakyBucket(_));
    let handle = store.add("limit", limit)?;
    let charge = Charge::new(&handle, ()).cost(terms.cost);
    // A leaky bucket's own delay says how long, unless somebody is asked to wait longer.
    let charge = if has_pace && terms.wait.is_zero() { charge } else { charge.up_to(terms.wait) };
    let mut inside: Vec<(Time, PermitId)> = Vec::new();
    let mut arrivals = Vec::with_capacity(times.len());
    for at_us in times {
        let at = BEGIN + Duration::from_micros(*at_us);
        for (leaves, permit) in inside.extract_if(.., |(leaves, _)| *leaves <= at) {
            store.clock().set(leaves);
            store.leave(&[charge], permit)?;
        }
        store.clock().set(at);
        let set = store.check(&[charge])?;
        let (decision, wait) = match set.decision() {
            Decision::Allow => ("allow", Duration::ZERO),
            Decision::Wait(wait) => ("wait", wait),
            Decision::Deny(_) => ("deny", Duration::ZERO),
        };
        inside.extend(set.permit().map(|permit| (at + wait + terms.hold, permit)));
        let wait_us = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        arrivals.push(Arrival { at_us: *at_us, decision, wait_us });
    }
    Ok(arrivals)
}
