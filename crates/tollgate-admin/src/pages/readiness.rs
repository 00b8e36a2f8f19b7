//! `/readyz`: every component, how it is, and whether traffic should come.

use crate::{Condition, ReloadFailure, State, StoreMode};
use serde_json::{Map, Value, json};
use std::time::SystemTime;
use tollgate_net::Phase;

/// Whether the node is ready, and what is told about it.
pub(crate) fn told(state: &dyn State) -> (bool, Value) {
    let mut components = Map::new();
    let mut ready = true;
    let mut add = |name: &str, condition: &Condition, more: Value| {
        ready &= !matches!(condition, Condition::Down(_));
        components.insert(name.to_owned(), component(condition, more));
    };

    let rules = state.rules();
    let condition = match &rules.failure {
        None => Condition::Well,
        Some(failure) => {
            Condition::Ailing(format!("the rules before the last change are in use: {}", failure.why))
        }
    };
    let more = json!({
        "file": rules.file.display().to_string(),
        "generation": rules.generation,
        "loaded_at": time(rules.loaded),
        "last_failure": rules.failure.as_ref().map(failed),
    });
    add("rules", &condition, more);

    let store = state.store();
    let condition = match store.mode {
        StoreMode::Memory | StoreMode::Exact | StoreMode::Leased => Condition::Well,
        StoreMode::Recovering => {
            Condition::Ailing("the store answers again: more and more questions go to it".into())
        }
        StoreMode::Degraded => {
            Condition::Ailing("the store does not answer: each limit's failure policy decides".into())
        }
    };
    let more = json!({ "mode": store.mode.name(), "keys": store.keys, "last_error": store.last_error });
    add("store", &condition, more);

    let (phase, condition) = match state.phase() {
        Phase::Serving => ("serving", Condition::Well),
        Phase::Leaving => ("leaving", Condition::Down("leaving: send new requests elsewhere".into())),
        Phase::Closing => ("closing", Condition::Down("closed: what was begun is being finished".into())),
        Phase::Over => ("over", Condition::Down("gone".into())),
    };
    add("drain", &condition, json!({ "phase": phase }));

    for other in state.others() {
        add(&other.name, &other.condition, json!({}));
    }
    (ready, json!({ "ready": ready, "components": components }))
}

fn component(condition: &Condition, more: Value) -> Value {
    let (name, why) = match condition {
        Condition::Well => ("well", None),
        Condition::Ailing(why) => ("ailing", Some(why)),
        Condition::Down(why) => ("down", Some(why)),
    };
    let mut told = Map::from_iter([("state".to_owned(), json!(name))]);
    told.extend(why.map(|why| ("why".to_owned(), json!(why))));
    if let Value::Object(more) = more {
        told.extend(more);
    }
    Value::Object(told)
}

fn failed(failure: &ReloadFailure) -> Value {
    json!({
        "at": time(failure.at),
        "file": failure.file.display().to_string(),
        "why": failure.why,
        "mistakes": failure.mistakes,
    })
}

/// As RFC 3339 has it; a time beyond what that can say is left out.
fn time(time: SystemTime) -> Option<String> {
    jiff::Timestamp::try_from(time).ok().map(|time| format!("{time:.3}"))
}
