//! A line a second, for pipes and files: in words, or as JSON.

use super::told::{Key, Pace, Series, Told};
use serde_json::{Value, json};

/// How a line reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Words,
    Json,
}

/// Rules and keys that a line of words names.
const NAMED: usize = 3;

pub(super) fn line(told: &Told, form: Form) -> String {
    match form {
        Form::Words => words(told),
        Form::Json => json_line(told).to_string(),
    }
}

fn words(told: &Told) -> String {
    let overview = &told.overview;
    let Pace { passed, delayed, refused } = told.usage.total.pace();
    let mut line = format!("allowed {passed:.1}/s  delayed {delayed:.1}/s  denied {refused:.1}/s");
    let refusing: Vec<_> =
        refusing(told).take(NAMED).map(|(name, pace)| format!("{name} {pace:.1}")).collect();
    if !refusing.is_empty() {
        line += &format!("  by {}", refusing.join(", "));
    }
    let limited = told.top.limited.iter().filter(|key| key.refused_per_second > 0.0);
    let limited: Vec<_> = limited.take(NAMED).map(Key::name).collect();
    if !limited.is_empty() {
        line += &format!("  keys {}", limited.join(", "));
    }
    line += &format!("  store {}", super::told::plain(&overview.store.mode));
    line += match (overview.ready, overview.enabled) {
        (true, true) => "  ready",
        (true, false) => "  switched off",
        (false, _) => "  not ready",
    };
    for problem in &overview.problems {
        line += &format!("  problem: {}", super::told::plain(problem));
    }
    line
}

/// The rules that refuse, the one that refuses most first.
fn refusing(told: &Told) -> impl Iterator<Item = (String, f64)> {
    let rules = told.usage.rules.iter().map(|rule| (rule.name(), rule.pace().refused));
    let mut rules: Vec<_> = rules.filter(|(_, refused)| *refused > 0.0).collect();
    rules.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    rules.into_iter()
}

fn json_line(told: &Told) -> Value {
    let overview = &told.overview;
    let rule = |series: &Series| {
        let Series { route, rule, door, limit, .. } = series;
        json!({ "route": route, "rule": rule, "door": door, "limit": limit, "pace": series.pace() })
    };
    let key = |key: &Key| {
        json!({
            "limit": key.limit,
            "key": key.key,
            "refused_per_second": key.refused_per_second,
            "used_per_second": key.used_per_second,
        })
    };
    json!({
        "at_ms": overview.now_ms,
        "node": overview.node,
        "ready": overview.ready,
        "enabled": overview.enabled,
        "store": overview.store.mode,
        "problems": overview.problems,
        "pace": told.usage.total.pace(),
        "rules": told.usage.rules.iter().map(rule).collect::<Vec<_>>(),
        "limited": told.top.limited.iter().map(key).collect::<Vec<_>>(),
        "used": told.top.used.iter().map(key).collect::<Vec<_>>(),
    })
}
