//! Routes and rules.

use super::{
    all,
    charge::Item,
    condition, excess,
    limits::Limits,
    names::{Names, read_name},
    pattern::captured,
    settings::ON_FAILURE,
};
use crate::{
    decode::{Cursor, default_of, record},
    limit::defaulted,
    model::{Excess, Route, Rule, When},
    schema,
};
use std::collections::{BTreeSet, HashSet};
use tollgate::Limit;

/// What routes and rules may speak of.
pub(super) struct Known<'a> {
    pub(super) limits: &'a Limits,
    pub(super) upstreams: &'a Names,
}

impl Known<'_> {
    /// Reads `everywhere`: its rules, and their names.
    pub(super) fn everywhere(&self, rules: Option<Cursor<'_>>) -> (Option<Vec<Rule>>, HashSet<String>) {
        let mut taken = HashSet::new();
        let rules = defaulted(rules, Vec::new(), |rules| self.rules(rules, &When::Always, &mut taken));
        (rules, taken)
    }

    /// Reads `routes`, whose rules must not have the `taken` names.
    pub(super) fn routes(&self, routes: Option<Cursor<'_>>, taken: &HashSet<String>) -> Option<Vec<Route>> {
        let Some(routes) = routes else { return Some(Vec::new()) };
        let mut names = HashSet::new();
        let read = routes.list("[ { name: orders, upstream: orders } ]")?;
        let read = read.iter().map(|route| self.route(route, &mut names, taken));
        all(read.collect::<Vec<_>>())
    }

    fn route(
        &self,
        route: &Cursor<'_>,
        names: &mut HashSet<String>,
        taken: &HashSet<String>,
    ) -> Option<Route> {
        let mut fields = route.mapping(&schema::ROUTE)?;
        let name = fields.required("name").and_then(|name| unique(&name, names, "every route"));
        let enabled = fields.defaulted("enabled", |it| it.switch());
        let when = condition::when(fields.optional("when"));
        let certain = when.clone().unwrap_or(When::Always);
        record!(fields => Route {
            strip_prefix: defaulted(fields.optional("strip_prefix"), None, |prefix| strip_prefix(prefix).map(Some)),
            upstream: fields.required("upstream").and_then(|upstream| self.upstreams.find(&upstream)),
            rules: defaulted(fields.optional("rules"), Vec::new(), |rules| {
                self.rules(rules, &certain, &mut taken.clone())
            });
            name, enabled, when
        })
    }

    fn rules(&self, rules: &Cursor<'_>, route: &When, taken: &mut HashSet<String>) -> Option<Vec<Rule>> {
        let items = rules.list("[ { name: per-ip, limits: [ { use: per-client, key: [ip] } ] } ]")?;
        let read = items.iter().map(|rule| self.rule(rule, route, taken));
        all(read.collect::<Vec<_>>())
    }

    fn rule(&self, rule: &Cursor<'_>, route: &When, taken: &mut HashSet<String>) -> Option<Rule> {
        let mut fields = rule.mapping(&schema::RULE)?;
        let name = fields
            .required("name")
            .and_then(|name| unique(&name, taken, "every rule of a route, and of `everywhere`,"));
        let enabled = fields.defaulted("enabled", |it| it.switch());
        let when = condition::when(fields.optional("when"));
        let mut certain = captured(route);
        certain.extend(when.iter().flat_map(captured));
        let limits = fields.required("limits").and_then(|limits| self.rule_limits(&limits, &certain));
        let written = fields.optional("excess");
        let excess = match &written {
            Some(written) => excess::excess(written, self.upstreams),
            None => default_of(&schema::RULE, "excess", |word| excess::excess(word, self.upstreams)),
        };
        let on_failure =
            defaulted(fields.optional("on_failure"), None, |on| on.choice(&ON_FAILURE).map(Some));
        fields.finish();

        if let (Some(written), Some(limits), Some(excess)) = (&written, &limits, &excess) {
            check_excess(written, excess, limits);
        }
        let (charges, bandwidth) = sorted(limits?)?;
        Some(Rule {
            name: name?,
            enabled: enabled?,
            when: when?,
            limits: charges,
            bandwidth,
            excess: excess?,
            on_failure: on_failure?,
        })
    }

    /// Every entry, good or not: what the excess gets is judged by all that could be read.
    fn rule_limits(&self, limits: &Cursor<'_>, captured: &BTreeSet<&str>) -> Option<Vec<Item>> {
        let cursors = limits.list("[ { use: per-client, key: [ip] } ]")?;
        if cursors.is_empty() {
            limits.mistake("must not be empty: a rule without limits does nothing");
            return None;
        }
        let mut is_paced = false;
        let read = |cursor: &Cursor<'_>| {
            let item = self.item(cursor, captured);
            let is_second = matches!(item, Item::Pace(_)) && std::mem::replace(&mut is_paced, true);
            if is_second {
                cursor.mistake("must be the only `bandwidth` of its rule");
                return Item::Wrong;
            }
            item
        };
        Some(cursors.iter().map(read).collect())
    }
}

type Sorted = (Vec<crate::model::RuleLimit>, Option<tollgate::Bandwidth>);

/// Charges and bandwidth, each to its place; nothing where one could not be read.
fn sorted(items: Vec<Item>) -> Option<Sorted> {
    let (mut charges, mut bandwidth) = (Vec::new(), None);
    for item in items {
        match item {
            Item::Charge(charge, _) => charges.push(charge?),
            Item::Pace(pace) => bandwidth = Some(pace),
            Item::Wrong => return None,
        }
    }
    Some((charges, bandwidth))
}

/// Whether the limits can do what the excess is promised.
fn check_excess(written: &Cursor<'_>, excess: &Excess, items: &[Item]) {
    if items.iter().all(|item| matches!(item, Item::Pace(_))) {
        written.mistake("has no effect: the rule charges nothing, so it denies no request");
        return;
    }
    if !matches!(excess, Excess::Wait(_)) {
        return;
    }
    for (index, item) in items.iter().enumerate() {
        let Item::Charge(_, Some(limit)) = item else { continue };
        let reason = match limit {
            limit if limit.books() => continue,
            Limit::Concurrency(concurrency) if concurrency.queue() > 0 => continue,
            Limit::Concurrency(_) => {
                "a `concurrency` limit queues requests only with a `queue` above 0".to_owned()
            }
            limit => format!(
                "a `{}` cannot queue requests; `token_bucket`, `leaky_bucket`, `smooth_bursty` and `smooth_warming_up` can",
                limit.name()
            ),
        };
        written.mistake_without_values(format!("cannot wait for `limits[{index}]`: {reason}"));
    }
}

/// A name that no sibling has.
fn unique(name: &Cursor<'_>, taken: &mut HashSet<String>, whose: &str) -> Option<String> {
    let read = read_name(name)?;
    if !taken.insert(read.clone()) {
        name.mistake_without_values(format!("is given twice: {whose} needs a name of its own"));
        return None;
    }
    Some(read)
}

fn strip_prefix(prefix: &Cursor<'_>) -> Option<String> {
    let text = prefix.text("a path such as /orders")?;
    let message = match text {
        _ if !text.starts_with('/') => "must begin with `/`, such as /orders",
        _ if text.ends_with('/') => "must not end with `/`: the rest of the path starts with it",
        _ if text.contains(['*', '{', '}']) => "must be a path prefix without wildcards",
        _ if text.contains(['?', '#'])
            || text.contains(|letter: char| letter.is_whitespace() || letter.is_control()) =>
        {
            "must be a path alone, such as /orders"
        }
        _ => return Some(text.to_owned()),
    };
    prefix.mistake(message);
    None
}
