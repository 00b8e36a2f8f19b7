//! What the admin listener answers about a request: how the rules in force would treat it, and what each bucket holds that
//! it would be charged on. Nothing is charged for asking.

use crate::{described::Described, file, words};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tollgate::{Status, Store, StoreError};
use tollgate_admin::RulesState;
use tollgate_http::TrustedProxies;
use tollgate_rules::{Found, RuleCharge, decision::RuleSnapshot};

/// The explanation, with where the rules are from and what is held, as JSON.
pub(super) async fn told<S: Store>(
    snapshot: &RuleSnapshot<S>,
    described: &Described,
    rules: &RulesState,
) -> Result<String, StoreError> {
    let program = snapshot.program();
    let proxies = TrustedProxies::new(program.file().trusted_proxies.iter().copied());
    let request = described.seen(&proxies, now());
    let found = program.find(&request);
    // Without a route nothing is charged.
    let held = if found.route().is_some() { snapshot.peek(&found).await? } else { Vec::new() };
    let holds = held.iter().map(|(id, status)| hold(&found, &program.charges()[id.0], status)).collect();

    let explained = serde_json::from_str(&program.explain(&request).to_json());
    let mut told: serde_json::Map<String, Value> = explained.unwrap_or_default();
    told.insert("file".to_owned(), json!(rules.file.display().to_string()));
    told.insert("generation".to_owned(), json!(rules.generation));
    told.insert("fingerprint".to_owned(), file::fingerprint(program.file()).into());
    told.insert("holds".to_owned(), Value::Array(holds));
    Ok(Value::Object(told).to_string())
}

fn hold(found: &Found<'_, '_>, charge: &RuleCharge, status: &Status) -> Value {
    let program = found.program();
    let (decision, wait, retry_after) = words::decision(status.decision());
    json!({
        "rule": program.rule(charge.rule()).rule().name,
        "limit": words::limit_name(program, charge),
        "key": words::key_values(found, charge),
        "cost": found.units(charge).known_or(1),
        "decision": decision,
        "wait_ms": millis(wait),
        "remaining": status.remaining(),
        "limit_most": status.limit(),
        "retry_after_ms": retry_after.map(millis),
        "reset_after_ms": status.reset_after().map(millis),
        "decided_by": status.decided_by().as_str(),
    })
}

/// Rounded up, as every hint is: who comes back then is not early.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}

/// Microseconds since 1970 began.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
