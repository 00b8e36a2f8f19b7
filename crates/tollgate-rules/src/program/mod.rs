//! A rule file made ready: which route takes a request, which rules apply, in time that hardly grows with the file.
//!
//! ```text
//! When        -> Expr        conditions, with every question a number        expr.rs
//! questions: paths.rs (facts about the path, all found in one walk), subjects.rs (values, looked up once),
//!            checks.rs and times.rs (everything else, asked at most once)
//! many Expr   -> Index       which of them may hold at all                   index.rs
//! a request   -> Asking      what is known about it so far                   asking.rs, scratch.rs
//! ```
//!
//! There is no cache of matches: a path alone does not tell which rules apply, and what does tell is cheap to ask.

mod asking;
mod checks;
mod expr;
mod found;
mod index;
mod paths;
mod scratch;
mod subjects;
mod times;

pub use found::Found;

pub(crate) use checks::Test;
pub(crate) use subjects::Subject;
pub(crate) use times::Span;

use crate::{
    keys::Overrides,
    model::{Attribute, Cost, LimitSource, Missing, Route, Rule, RuleFile, RuleLimit},
    reading::normal_path,
    request::Request,
};
use asking::Asking;
use expr::{Questions, Scope, Shapes};
use index::{Conditions, Index};
use scratch::{Sizes, with_scratch};
use smallvec::SmallVec;
use std::{
    collections::HashMap,
    ops::{ControlFlow, Range},
    sync::Arc,
};
use tollgate::{Key, Limit};

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// A route, by its place in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(pub usize);

/// A rule, by its place in the file: the rules of every route first, then the routes' own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub usize);

/// A charge, by its place in the file, over all rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChargeId(pub usize);

/// A rule, and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct RuleEntry<'p> {
    /// Its number.
    pub id: RuleId,
    /// Whose rule it is; `None`: every route's.
    pub route: Option<RouteId>,
    /// What it says.
    pub rule: &'p Rule,
    /// What it charges, one for each of its limits.
    pub charges: &'p [RuleCharge],
}

/// What a rule charges, and where that stands.
#[derive(Clone, Debug)]
pub struct RuleCharge {
    /// Its number.
    pub id: ChargeId,
    /// Whose charge it is.
    pub rule: RuleId,
    /// Its place among the rule's limits.
    pub place: usize,
    /// Which limit.
    pub limit: ChargedLimit,
    /// Its key and cost, among the program's.
    terms: u32,
    /// The rule's shapes: its key may name their captures, and the route's.
    shapes: Shapes,
}

/// Key and cost of a charge. Equal ones are kept once, so that those of thousands of rules are near.
struct Terms {
    key: Vec<Attribute>,
    missing: Missing,
    cost: Cost,
}

/// Which limit is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChargedLimit {
    /// One with a name, by its place in the file.
    Named(usize),
    /// One of a rule's own, by its place in [`Program::inline_limits`].
    Inline(usize),
}

/// A limit that belongs to one rule.
#[derive(Clone, Debug)]
pub struct InlineLimit {
    /// The only charge on it.
    pub charge: ChargeId,
    /// What it is called where people see it, such as `orders/create[2]`: route, rule and place among the rule's limits.
    pub name: String,
    /// Its numbers.
    pub limit: Limit,
}

/// A rule file made ready to be asked.
pub struct Program {
    file: RuleFile,
    rules: Vec<Placed>,
    charges: Vec<RuleCharge>,
    inline: Vec<InlineLimit>,
    overrides: Vec<Overrides>,
    terms: Vec<Terms>,
    questions: Questions,
    conditions: Conditions,
    routes: Index,
    everywhere: Index,
    of_route: Vec<OfRoute>,
    sizes: Sizes,
}

/// Where a rule stands in the file.
struct Placed {
    route: Option<RouteId>,
    place: usize,
    charges: Range<usize>,
}

/// What is kept for a route.
struct OfRoute {
    /// The shapes whose captures its keys may name.
    shapes: Shapes,
    rules: Index,
}

impl Program {
    /// Makes a file ready. Parsing has found all mistakes already; this finds none.
    #[must_use]
    pub fn new(file: RuleFile) -> Self {
        let mut build = Build::default();
        let everywhere = build.rules(&file.everywhere, None);
        let mut whens = Vec::new();
        let mut of_route = Vec::with_capacity(file.routes.len());
        for (place, route) in file.routes.iter().enumerate() {
            let shapes = build.questions.shapes(&route.when);
            if route.enabled {
                let scope = Scope { own: &shapes, route: Some(&shapes) };
                whens.push((place as u32, build.questions.expr(&route.when, scope)));
            }
            let rules = build.rules(&route.rules, Some((RouteId(place), route, &shapes)));
            of_route.push((shapes, rules));
        }
        let Build { mut questions, mut conditions, rules, charges, inline, terms, .. } = build;
        let routes = conditions.end();
        whens.into_iter().for_each(|(place, when)| conditions.add(place, when));
        let routes = routes..conditions.end();
        conditions.finish();
        questions.finish();
        let host = questions.subjects.id(&Subject::Host);
        let index = |places| Index::new(&conditions, places, host);
        let with_index = |(shapes, places)| OfRoute { shapes, rules: index(places) };
        Self {
            sizes: Sizes {
                facts: questions.paths.count(),
                places: questions.paths.places(),
                subjects: questions.subjects.count(),
                checks: questions.checks.count(),
            },
            routes: index(routes),
            everywhere: index(everywhere),
            of_route: of_route.into_iter().map(with_index).collect(),
            overrides: file.limits.iter().map(|limit| Overrides::new(&limit.overrides)).collect(),
            file,
            rules,
            charges,
            inline,
            terms,
            questions,
            conditions,
        }
    }

    /// The file it was made of.
    #[must_use]
    pub fn file(&self) -> &RuleFile {
        &self.file
    }

    /// A route.
    ///
    /// # Panics
    /// If the file has no route of that number.
    #[must_use]
    pub fn route(&self, id: RouteId) -> &Route {
        &self.file.routes[id.0]
    }

    /// All rules, enabled or not: those of every route, then the routes' in file order.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = RuleEntry<'_>> {
        (0..self.rules.len()).map(|id| self.rule(RuleId(id)))
    }

    /// A rule.
    ///
    /// # Panics
    /// If the file has no rule of that number.
    #[must_use]
    pub fn rule(&self, id: RuleId) -> RuleEntry<'_> {
        let Placed { route, place, ref charges } = self.rules[id.0];
        let rules = route.map_or(&self.file.everywhere, |route| &self.file.routes[route.0].rules);
        RuleEntry { id, route, rule: &rules[place], charges: &self.charges[charges.clone()] }
    }

    /// All charges of all rules, in file order.
    #[must_use]
    pub fn charges(&self) -> &[RuleCharge] {
        &self.charges
    }

    /// The limits that belong to one rule each, in file order.
    #[must_use]
    pub fn inline_limits(&self) -> &[InlineLimit] {
        &self.inline
    }

    /// Whether any condition asks what time it is. Where none does, a request's `at` is never looked at.
    #[must_use]
    pub fn asks_time(&self) -> bool {
        self.questions.checks.any_time()
    }

    /// Which of a named limit's overrides holds for a key, by its place; `None`: the limit's own numbers do.
    #[must_use]
    pub fn override_of(&self, named: usize, key: Key<'_>) -> Option<usize> {
        self.overrides.get(named)?.find(key)
    }

    /// Which route takes a request, and which rules apply to it.
    #[must_use]
    pub fn find<'p, 'r>(&'p self, request: &Request<'r>) -> Found<'p, 'r> {
        let path = normal_path(request.path);
        let mut rules = SmallVec::new();
        let route = with_scratch(self.sizes, |scratch| {
            let mut asking = Asking::new(&self.questions, request, &path, scratch);
            let mut found = None;
            self.routes.visit(&self.conditions, &mut asking, |route| {
                found = Some(route as usize);
                ControlFlow::Break(())
            });
            let of_route = found.map(|route| &self.of_route[route]);
            if let Some(of_route) = of_route {
                asking.route = &of_route.shapes;
            }
            let mut apply = |rule| {
                rules.push(RuleId(rule as usize));
                ControlFlow::Continue(())
            };
            self.everywhere.visit(&self.conditions, &mut asking, &mut apply);
            if let Some(of_route) = of_route {
                of_route.rules.visit(&self.conditions, &mut asking, &mut apply);
            }
            found
        });
        Found::new(self, *request, path, route.map(RouteId), rules)
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program")
            .field("routes", &self.file.routes.len())
            .field("rules", &self.rules.len())
            .finish_non_exhaustive()
    }
}

/// What grows while a file is gone through.
#[derive(Default)]
struct Build {
    questions: Questions,
    conditions: Conditions,
    rules: Vec<Placed>,
    charges: Vec<RuleCharge>,
    inline: Vec<InlineLimit>,
    terms: Vec<Terms>,
    known_terms: Map<String, u32>,
}

impl Build {
    fn rules(&mut self, rules: &[Rule], of: Option<(RouteId, &Route, &Shapes)>) -> Range<u32> {
        let begin = self.conditions.end();
        let group = of.map_or("everywhere", |(_, route, _)| route.name.as_str());
        for (place, rule) in rules.iter().enumerate() {
            let id = RuleId(self.rules.len());
            let shapes = self.questions.shapes(&rule.when);
            if rule.enabled {
                let scope = Scope { own: &shapes, route: of.map(|(_, _, shapes)| shapes) };
                self.conditions.add(id.0 as u32, self.questions.expr(&rule.when, scope));
            }
            let first = self.charges.len();
            for (place, charged) in rule.limits.iter().enumerate() {
                let charge = ChargeId(self.charges.len());
                let limit = match &charged.limit {
                    LimitSource::Named(named) => ChargedLimit::Named(*named),
                    LimitSource::Inline(limit) => {
                        let name = format!("{group}/{}[{place}]", rule.name);
                        self.inline.push(InlineLimit { charge, name, limit: limit.clone() });
                        ChargedLimit::Inline(self.inline.len() - 1)
                    }
                };
                let terms = self.terms(charged);
                let shapes = Arc::clone(&shapes);
                self.charges.push(RuleCharge { id: charge, rule: id, place, limit, terms, shapes });
            }
            let route = of.map(|(id, ..)| id);
            self.rules.push(Placed { route, place, charges: first..self.charges.len() });
        }
        begin..self.conditions.end()
    }

    fn terms(&mut self, charged: &RuleLimit) -> u32 {
        let RuleLimit { key, missing, cost, .. } = charged;
        let fresh = self.terms.len() as u32;
        let id = *self.known_terms.entry(format!("{key:?}{missing:?}{cost:?}")).or_insert(fresh);
        if id == fresh {
            self.terms.push(Terms { key: key.clone(), missing: *missing, cost: cost.clone() });
        }
        id
    }
}
