//! Why a request is treated as it is: which route takes it and why those before it do not, which rules apply and why the
//! others do not, and what is charged.
//!
//! Conditions are evaluated here one by one, as they are written, and not by the program's index: slower, but it can say
//! which of them failed, and what the request had instead.

mod json;
mod show;
mod why;
mod words;

use crate::{
    keys::{Keyed, Units},
    model::{Excess, Rule, When},
    program::{ChargedLimit, Found, Program, RouteId, RuleCharge, RuleEntry},
    request::Request,
};
use serde::Serialize;
use why::Asked;

/// So many routes that do not match are told of.
const LISTED: usize = 20;

/// How a request is treated, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The request's method.
    pub method: String,
    /// Its path as rules see it.
    pub path: String,
    /// Whether rules are in force at all.
    pub enabled: bool,
    /// The name of the route that takes it.
    pub route: Option<String>,
    /// What the route captured from the path.
    #[serde(serialize_with = "json::object")]
    pub captures: Vec<(String, String)>,
    /// Routes before it that do not match, the nearest first.
    pub passed_over: Vec<PassedOver>,
    /// How many more there are.
    pub not_listed: usize,
    /// The rules of every route, and those of the route.
    pub rules: Vec<RuleReport>,
    /// Why it is answered 400 before any rule is asked, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
}

/// A route that does not match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PassedOver {
    /// Its name.
    pub route: String,
    /// Its place in the file, from 0.
    pub place: usize,
    /// The first condition that failed, and what the request had.
    pub why: String,
}

/// A rule, and whether it applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleReport {
    /// Its name.
    pub rule: String,
    /// Whose rule it is; `None`: every route's.
    pub route: Option<String>,
    /// Whether it applies.
    pub outcome: Outcome,
}

/// Whether a rule applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It does.
    Applies {
        /// What it charges.
        charges: Vec<ChargeReport>,
        /// What becomes of requests that find no room.
        excess: String,
        /// What is decided while the store does not answer, where the rule says so itself.
        on_failure: Option<String>,
    },
    /// It does not.
    Not {
        /// The first condition that failed, and what the request had.
        why: String,
    },
}

/// What is charged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChargeReport {
    /// The limit's name.
    pub limit: String,
    /// Its algorithm.
    pub algorithm: String,
    /// Whose bucket.
    #[serde(flatten)]
    pub key: KeyReport,
    /// How many units; `None`: as many as the body will have bytes.
    pub cost: Option<u32>,
    /// The key that the numbers are for, where it has numbers of its own.
    pub override_for: Option<Vec<String>>,
}

/// Whose bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyReport {
    /// That of these values, each with the attribute it comes from.
    #[serde(rename = "key", serialize_with = "json::key")]
    Values(Vec<(String, Option<String>)>),
    /// None: the request lacks this, and is not charged.
    Skipped(String),
    /// None: the request lacks this, and is refused.
    Refused(String),
    /// None: the request has this more than once, and is refused.
    Repeated(String),
}

impl Program {
    /// How a request is treated, and why.
    #[must_use]
    pub fn explain(&self, request: &Request<'_>) -> Explanation {
        let found = self.find(request);
        let is_valid = found.invalid().is_none();
        let (passed_over, not_listed) = if is_valid { self.passed_over(&found) } else { (Vec::new(), 0) };
        let shown = self
            .rules()
            .filter(|entry| is_valid && (entry.route.is_none() || entry.route == found.route()))
            .map(|entry| self.rule_report(&found, entry))
            .collect();
        Explanation {
            method: request.method.to_owned(),
            path: found.path().to_owned(),
            invalid: found.invalid().map(ToString::to_string),
            enabled: self.file().enabled,
            route: found.route().map(|route| self.route(route).name.clone()),
            captures: found.captures().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            passed_over,
            not_listed,
            rules: shown,
        }
    }

    fn passed_over(&self, found: &Found<'_, '_>) -> (Vec<PassedOver>, usize) {
        let end = found.route().map_or(self.file().routes.len(), |RouteId(place)| place);
        let mut ranked: Vec<_> = (0..end)
            .map(|place| {
                let route = &self.file().routes[place];
                (Asked::by_route(found, route).distance(&route.when), place)
            })
            .collect();
        // Those that are not listed are not sorted either.
        if ranked.len() > LISTED {
            ranked.select_nth_unstable(LISTED);
        }
        let not_listed = ranked.len().saturating_sub(LISTED);
        ranked.truncate(LISTED);
        ranked.sort_unstable();
        let listed = ranked.into_iter().map(|(_, place)| {
            let route = &self.file().routes[place];
            let why = if route.enabled {
                Asked::by_route(found, route)
                    .why_not(&route.when)
                    .unwrap_or_else(|| "it does not match".to_owned())
            } else {
                "it is not enabled".to_owned()
            };
            PassedOver { route: route.name.clone(), place, why }
        });
        (listed.collect(), not_listed)
    }

    fn rule_report(&self, found: &Found<'_, '_>, entry: RuleEntry<'_>) -> RuleReport {
        let route = entry.route.map(|route| self.route(route).name.clone());
        let rule = entry.rule();
        let outcome = if found.rules().contains(&entry.id) {
            Outcome::Applies {
                charges: entry.charges.iter().map(|charge| self.charge_report(found, rule, charge)).collect(),
                excess: self.excess_in_words(&rule.excess),
                on_failure: rule.on_failure.map(|policy| format!("{policy:?}").to_lowercase()),
            }
        } else if rule.enabled {
            let asked = Asked::by_rule(found, rule);
            let why = asked.why_not(&rule.when).unwrap_or_else(|| "it does not match".to_owned());
            Outcome::Not { why }
        } else {
            Outcome::Not { why: "it is not enabled".to_owned() }
        };
        RuleReport { rule: rule.name.clone(), route, outcome }
    }

    fn charge_report(&self, found: &Found<'_, '_>, rule: &Rule, charge: &RuleCharge) -> ChargeReport {
        let (name, limit) = match charge.limit() {
            ChargedLimit::Named(place) => {
                let named = &self.file().limits[place];
                (&named.name, &named.limit)
            }
            ChargedLimit::Inline(place) => {
                let inline = &self.inline_limits()[place];
                (&inline.name, &inline.limit)
            }
        };
        let mut override_for = None;
        let key = match found.key(charge) {
            Keyed::Key(values) => {
                if let (ChargedLimit::Named(named), Some(place)) =
                    (charge.limit(), found.override_of(charge, &values))
                {
                    override_for = Some(self.file().limits[named].overrides[place].key.clone());
                }
                let attributes = rule.limits[charge.place()].key.iter().map(words::attribute);
                KeyReport::Values(
                    attributes.zip(values.iter().map(|value| value.map(str::to_owned))).collect(),
                )
            }
            Keyed::Skip => KeyReport::Skipped(missing(found, rule, charge)),
            Keyed::Deny { missing } => KeyReport::Refused(words::attribute(missing)),
            Keyed::Repeated { attribute } => KeyReport::Repeated(words::attribute(attribute)),
        };
        let cost = match found.units(charge) {
            Units::Known(units) => Some(units),
            Units::Unannounced => None,
        };
        ChargeReport { limit: name.clone(), algorithm: limit.name().to_owned(), key, cost, override_for }
    }

    /// A condition of these rules, in words.
    #[must_use]
    pub fn condition_in_words(&self, when: &When) -> String {
        words::condition(when, &self.file().taken)
    }

    /// What becomes of requests that find no room, in words.
    #[must_use]
    pub fn excess_in_words(&self, excess: &Excess) -> String {
        match excess {
            Excess::Reject(None) => "reject".to_owned(),
            Excess::Reject(Some(reply)) => format!("reject with {}", reply.status.as_u16()),
            Excess::Wait(longest) => format!("wait up to {longest:?}"),
            Excess::Divert(upstream) => match self.file().upstreams.get(*upstream) {
                Some(upstream) => format!("divert to {}", upstream.name),
                None => "divert".to_owned(),
            },
            Excess::Degrade(reply) => format!("degrade to {}", reply.status.as_u16()),
            Excess::Shadow => "shadow".to_owned(),
        }
    }
}

/// The first attribute of the key that the request lacks.
fn missing(found: &Found<'_, '_>, rule: &Rule, charge: &RuleCharge) -> String {
    let lacking =
        rule.limits[charge.place()].key.iter().find(|it| matches!(found.attribute(charge, it), Ok(None)));
    lacking.map_or_else(String::new, words::attribute)
}
