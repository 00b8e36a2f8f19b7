//! `/v1/rules`: the rules in force, as they were understood.

use super::{Api, asked::Asked, book::aside, problem::Problem, summary};
use axum::{Json, extract::State};
use serde_json::{Value, json};
use tollgate_rules::{
    ChargedLimit, Program, RuleCharge, RuleEntry,
    model::{Cost, HeaderCost, RuleLimit, When},
};

pub(super) async fn rules(State(api): State<Api>, asked: Asked) -> Result<Json<Value>, Problem> {
    asked.only(&[])?;
    aside(async move {
        let mut told = Value::Null;
        api.program.in_force(&mut |program, revision| told = tell(program, revision));
        Ok(Json(told))
    })
    .await
}

fn tell(program: &Program, revision: &str) -> Value {
    let file = program.file();
    let upstream = |place: usize| file.upstreams.get(place).map(|it| it.name.as_str());
    let routes = file.routes.iter().map(|route| {
        json!({
            "name": route.name,
            "enabled": route.enabled,
            "when": condition(program, &route.when),
            "upstream": upstream(route.upstream),
            "strip_prefix": route.strip_prefix.as_deref().map(|prefix| file.taken.named(prefix)),
        })
    });
    let limits = file.limits.iter().map(|named| {
        json!({
            "name": named.name,
            "kind": named.limit.name(),
            "summary": summary::of(&named.limit),
            "overrides": named.overrides.len(),
            "max_keys": named.max_keys,
        })
    });
    json!({
        "revision": revision,
        "enabled": file.enabled,
        "rules": program.rules().map(|entry| rule(program, entry)).collect::<Vec<_>>(),
        "routes": routes.collect::<Vec<_>>(),
        "limits": limits.collect::<Vec<_>>(),
        "upstreams": file.upstreams.iter().map(|it| &it.name).collect::<Vec<_>>(),
    })
}

fn rule(program: &Program, entry: RuleEntry<'_>) -> Value {
    let route = entry.route.map(|route| program.route(route));
    let rule = entry.rule();
    let charges = entry.charges.iter().map(|charge| charged(program, charge, &rule.limits[charge.place()]));
    json!({
        "route": route.map(|route| &route.name),
        "rule": rule.name,
        "route_enabled": route.is_none_or(|route| route.enabled),
        "enabled": rule.enabled,
        "when": condition(program, &rule.when),
        "limits": charges.collect::<Vec<_>>(),
        "excess": program.excess_in_words(&rule.excess),
    })
}

fn charged(program: &Program, charge: &RuleCharge, said: &RuleLimit) -> Value {
    let (name, limit) = match charge.limit() {
        ChargedLimit::Named(place) => {
            let named = &program.file().limits[place];
            (&named.name, &named.limit)
        }
        ChargedLimit::Inline(place) => {
            let inline = &program.inline_limits()[place];
            (&inline.name, &inline.limit)
        }
    };
    json!({
        "limit": name,
        "kind": limit.name(),
        "summary": summary::of(limit),
        "key": said.key.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "cost": cost(&said.cost),
    })
}

/// In words; nothing where every request is meant.
fn condition(program: &Program, when: &When) -> String {
    match when {
        When::Always => String::new(),
        when => program.condition_in_words(when),
    }
}

fn cost(cost: &Cost) -> String {
    match cost {
        Cost::Units(units) => units.to_string(),
        Cost::ContentLength => "content-length".to_owned(),
        Cost::Header(HeaderCost { header, default, min, max }) => {
            format!("header {header}, {default} where it is missing, at least {min}, at most {max}")
        }
    }
}
