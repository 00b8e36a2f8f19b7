//! A line of output about a request: what became of it, and how every charge of its rules stood then.

use super::answer::Standing;
use crate::words;
use serde::Serialize;
use tollgate::Decision;
use tollgate_rules::{
    Found, RuleId,
    decision::{Outcome, RequestDecision, Shadow, Stand, Why},
    model::Excess,
};

#[derive(Serialize)]
pub(super) struct Told<'a> {
    at_us: u64,
    route: Option<&'a str>,
    rules: Vec<&'a str>,
    decision: &'static str,
    wait_us: u128,
    /// The rule that refused, and what the excess gets there.
    refused_by: Option<&'a str>,
    excess: Option<&'static str>,
    /// Why, where it is not for want of room.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    retry_after_us: Option<u128>,
    charges: Vec<ToldCharge<'a>>,
    shadows: Vec<ToldShadow<'a>>,
}

#[derive(Serialize)]
struct ToldCharge<'a> {
    rule: &'a str,
    limit: &'a str,
    key: Vec<Option<String>>,
    cost: u32,
    #[serde(flatten)]
    standing: Standing,
}

#[derive(Serialize)]
struct ToldShadow<'a> {
    rule: &'a str,
    decision: &'static str,
}

impl<'a> Told<'a> {
    /// No route takes it: no rule is asked, and nothing is charged.
    pub(super) const fn nothing(at_us: u64) -> Self {
        Self {
            at_us,
            route: None,
            rules: Vec::new(),
            decision: "none",
            wait_us: 0,
            refused_by: None,
            excess: None,
            why: None,
            retry_after_us: None,
            charges: Vec::new(),
            shadows: Vec::new(),
        }
    }

    /// What the rules decided.
    pub(super) fn decided(at_us: u64, found: &Found<'a, '_>, decided: &RequestDecision<()>) -> Self {
        let program = found.program();
        let name = |rule: RuleId| program.rule(rule).rule().name.as_str();
        let (whole, refused_by, why) = match &decided.outcome {
            Outcome::Skipped => (Some(Decision::Allow), None, None),
            Outcome::Pass { waited } if waited.is_zero() => (Some(Decision::Allow), None, None),
            Outcome::Pass { waited } => (Some(Decision::Wait(*waited)), None, None),
            Outcome::Refused { by, why: Why::Limit { retry, .. } } => {
                (Some(Decision::Deny(*retry)), Some(*by), None)
            }
            Outcome::Refused { by, why } => (None, Some(*by), Some(reason(why))),
        };
        // What is refused for what it lacks is so for good.
        let (decision, wait, retry_after) =
            whole.map_or(("deny", std::time::Duration::ZERO, None), words::decision);
        Self {
            at_us,
            route: found.route().map(|route| program.route(route).name.as_str()),
            rules: found.rules().iter().map(|rule| name(*rule)).collect(),
            decision,
            wait_us: wait.as_micros(),
            refused_by: refused_by.map(name),
            excess: refused_by.map(|rule| excess(&program.rule(rule).rule().excess)),
            why,
            retry_after_us: retry_after.map(|after| after.as_micros()),
            charges: decided.stands.iter().map(|stand| ToldCharge::of(found, stand)).collect(),
            shadows: decided.shadows.iter().map(|shadow| ToldShadow::of(name(shadow.rule), shadow)).collect(),
        }
    }
}

impl<'a> ToldCharge<'a> {
    fn of(found: &Found<'a, '_>, stand: &Stand) -> Self {
        let program = found.program();
        let charge = &program.charges()[stand.charge.0];
        Self {
            rule: &program.rule(charge.rule()).rule().name,
            limit: words::limit_name(program, charge),
            key: words::key_values(found, charge).unwrap_or_default(),
            cost: stand.units,
            standing: Standing::of(&stand.status),
        }
    }
}

impl<'a> ToldShadow<'a> {
    const fn of(rule: &'a str, shadow: &Shadow) -> Self {
        Self { rule, decision: if shadow.refused_by.is_some() { "deny" } else { "allow" } }
    }
}

fn reason(why: &Why) -> String {
    match why {
        Why::Limit { .. } => "there is no room".to_owned(),
        Why::Missing(attribute) => format!("{attribute} is missing"),
        Why::Repeated(attribute) => format!("{attribute} is given more than once"),
        Why::Length => "it does not tell the length of its body".to_owned(),
        Why::Store(error) => error.to_string(),
    }
}

const fn excess(excess: &Excess) -> &'static str {
    match excess {
        Excess::Reject(_) => "reject",
        Excess::Wait(_) => "wait",
        Excess::Divert(_) => "divert",
        Excess::Degrade(_) => "degrade",
        Excess::Shadow => "shadow",
    }
}
