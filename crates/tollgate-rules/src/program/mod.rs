//! A rule file made ready: which route takes a request, which rules apply, in time that hardly grows with the file.
//!
//! ```text
//! When        -> Expr        conditions, with every question a number        expr.rs
//! questions: paths.rs and trie.rs (facts about the path, all found in one walk), subjects.rs (values, looked up once),
//!            checks.rs and times.rs (everything else, asked at most once)
//! many Expr   -> Conditions  lists of them                                   conditions.rs
//! a long list -> Filed       which of them may hold at all                   index.rs, needs.rs
//! a request   -> Asking      what is known about it so far                   asking.rs, scratch.rs
//! ```
//!
//! What a request reads of its route, its rules and their charges is kept small and close together (entries.rs, texts.rs,
//! trie.rs): with thousands of routes, time is not instructions but memory that no cache holds.
//!
//! There is no cache of matches: a path alone does not tell which rules apply, and what does tell is cheap to ask.

mod asking;
mod build;
mod checks;
mod conditions;
mod entries;
mod expr;
mod found;
mod index;
mod named_headers;
mod needs;
mod paths;
mod scratch;
mod spelling;
mod subjects;
mod texts;
mod times;
mod trie;

pub use entries::{ChargeId, ChargedLimit, InlineLimit, RouteId, RuleCharge, RuleEntry, RuleId};
pub use found::{Found, Invalid};
pub use named_headers::NamedHeaders;

pub(crate) use checks::Test;
pub(crate) use subjects::Subject;
pub(crate) use times::Span;

use crate::{
    keys::Overrides,
    model::{Route, RuleFile},
    reading::decode_path,
    request::Request,
};
use asking::Asking;
use build::Build;
use conditions::{Conditions, ListId};
use entries::{OfRoute, Terms, UNEVEN};
use expr::{Questions, Shapes};
use paths::ShapeId;
use scratch::{Sizes, with_scratch};
use smallvec::SmallVec;
use std::{
    collections::HashMap,
    ops::{ControlFlow, Range},
    sync::Arc,
};
use texts::Texts;
use tollgate::Key;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// A rule file made ready to be asked.
pub struct Program {
    file: RuleFile,
    /// The routes of the routes' rules.
    rule_routes: Vec<u32>,
    /// Where each rule's charges end: they begin where those of the rule before end.
    charges_end: Vec<u32>,
    charges: Vec<RuleCharge>,
    inline: Vec<InlineLimit>,
    overrides: Vec<Overrides>,
    terms: Vec<Terms>,
    questions: Questions,
    conditions: Conditions,
    /// The conditions of the routes.
    routes: ListId,
    /// Those of the rules of every route.
    everywhere: ListId,
    of_route: Vec<OfRoute>,
    route_shapes: Vec<Shapes>,
    route_names: Texts,
    sizes: Sizes,
    named_headers: Arc<NamedHeaders>,
}

impl Program {
    /// Makes a file ready. Parsing has found all mistakes already; this finds none.
    #[must_use]
    pub fn new(mut file: RuleFile) -> Self {
        spelling::spell(&mut file);
        Build::default().program(file)
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
        (0..self.charges_end.len()).map(|id| self.rule(RuleId(id)))
    }

    /// A rule.
    ///
    /// # Panics
    /// If the file has no rule of that number.
    #[must_use]
    pub fn rule(&self, id: RuleId) -> RuleEntry<'_> {
        let own = id.0.checked_sub(self.file.everywhere.len());
        self.entry(id, own.map(|own| RouteId(self.rule_routes[own] as usize)))
    }

    /// A rule whose route is known, if it has one.
    fn entry(&self, id: RuleId, route: Option<RouteId>) -> RuleEntry<'_> {
        RuleEntry { id, route, charges: &self.charges[self.charges_of(id, route)], program: self }
    }

    fn charges_of(&self, id: RuleId, route: Option<RouteId>) -> Range<usize> {
        if let Some(RouteId(route)) = route
            && let OfRoute { first_rule, first_charge, .. } = self.of_route[route]
            && first_charge != UNEVEN
        {
            let at = first_charge as usize + id.0 - first_rule as usize;
            return at..at + 1;
        }
        let begin = id.0.checked_sub(1).map_or(0, |before| self.charges_end[before]);
        begin as usize..self.charges_end[id.0] as usize
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

    /// The headers that keys, conditions and costs name.
    #[must_use]
    pub fn named_headers(&self) -> &Arc<NamedHeaders> {
        &self.named_headers
    }

    /// Which of a named limit's overrides holds for a key, by its place; `None`: the limit's own numbers do.
    #[must_use]
    pub fn override_of(&self, named: usize, key: Key<'_>) -> Option<usize> {
        self.overrides.get(named)?.find(key)
    }

    /// Which route takes a request, and which rules apply to it; none of either where the request is
    /// [invalid](Found::invalid).
    #[must_use]
    pub fn find<'p, 'r>(&'p self, request: &Request<'r>) -> Found<'p, 'r> {
        let path = match decode_path(request.path, self.file.encoded_slash) {
            Ok(path) => path,
            Err(error) => return Found::of_invalid(self, *request, Invalid::Path(error)),
        };
        let mut rules = SmallVec::new();
        let mut repeated = None;
        let route = with_scratch(self.sizes, |scratch| {
            let mut asking = Asking::new(&self.questions, request, &path, scratch);
            let mut found = None;
            self.conditions.visit(self.routes, &mut asking, |route| {
                found = Some(RouteId(route as usize));
                ControlFlow::Break(())
            });
            asking.route = self.shapes_of(found);
            let mut apply = |rule: u32| {
                rules.push(RuleId(rule as usize));
                ControlFlow::Continue(())
            };
            self.conditions.visit(self.everywhere, &mut asking, &mut apply);
            if let Some(RouteId(route)) = found {
                let OfRoute { first_rule, rules, .. } = self.of_route[route];
                self.conditions.visit(rules, &mut asking, |rule| apply(first_rule + rule));
            }
            repeated = asking.repeated.take();
            found
        });
        if let Some(attribute) = repeated {
            return Found::of_invalid(self, *request, Invalid::Repeated(*attribute));
        }
        Found::new(self, *request, path, route, rules)
    }

    /// A route's name, from where a request has been already.
    fn route_name(&self, route: RouteId) -> &str {
        self.route_names.get(&self.of_route[route.0].name)
    }

    /// The shapes whose captures a route's keys may name.
    fn shapes_of(&self, route: Option<RouteId>) -> &[ShapeId] {
        route.map_or(&[], |route| &self.route_shapes[self.of_route[route.0].shapes as usize])
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program")
            .field("routes", &self.file.routes.len())
            .field("rules", &self.charges_end.len())
            .finish_non_exhaustive()
    }
}
