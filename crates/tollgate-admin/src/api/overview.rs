//! `/v1/overview`, `/v1/nodes`: how everything is, on one page.

use super::{Api, asked::Asked, millis, problem::Problem};
use crate::pages::readiness;
use axum::{Json, extract::State};
use serde_json::{Value, json};
use std::time::SystemTime;

pub(super) async fn overview(State(api): State<Api>, asked: Asked) -> Result<Json<Value>, Problem> {
    asked.only(&[])?;
    let program = &api.program;
    let (node, rules, store) = (program.node(), api.state.rules(), api.state.store());
    let (mut enabled, mut revision) = (true, String::new());
    program.in_force(&mut |rules, known| {
        enabled = rules.file().enabled;
        known.clone_into(&mut revision);
    });
    let failure = rules.failure.as_ref().map(
        |failure| json!({ "at_ms": millis(failure.at), "why": failure.why, "mistakes": failure.mistakes }),
    );
    let (ready, told) = readiness::told(&*api.state);
    Ok(Json(json!({
        "node": node.name,
        "version": env!("CARGO_PKG_VERSION"),
        "started_ms": millis(node.started),
        "now_ms": millis(SystemTime::now()),
        "enabled": enabled,
        "ready": ready,
        "rules": {
            "source": program.keeper().source(),
            "revision": revision,
            "generation": rules.generation,
            "loaded_ms": millis(rules.loaded),
            "failure": failure,
        },
        "store": {
            "mode": store.mode.name(),
            "last_error": store.last_error,
            "keys": store.keys,
            "evictions": store.evictions,
        },
        "listeners": program.listeners(),
        "upstreams": program.upstreams(),
        "problems": problems(&told),
    })))
}

/// A sentence for everything that is not well.
fn problems(told: &Value) -> Vec<String> {
    let components = told["components"].as_object().into_iter().flatten();
    let why = components.filter_map(|(name, it)| Some(format!("{name}: {}", it["why"].as_str()?)));
    why.collect()
}

pub(super) async fn nodes(State(api): State<Api>, asked: Asked) -> Result<Json<Value>, Problem> {
    asked.only(&[])?;
    let nodes = api.program.keeper().nodes().await.map_err(super::book::refused)?;
    Ok(Json(json!({ "nodes": nodes })))
}
