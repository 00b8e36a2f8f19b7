//! A program while its file is gone through.

use super::{
    Map, NamedHeaders, Program,
    conditions::{Conditions, ListId},
    entries::{ChargeId, Charged, InlineLimit, OfRoute, RuleCharge, Terms, UNEVEN},
    expr::{Questions, Scope, Shapes},
    scratch::Sizes,
    subjects::Subject,
    texts::Texts,
};
use crate::{
    keys::Overrides,
    model::{Attribute, LimitSource, Route, Rule, RuleFile, RuleLimit},
};
use std::sync::Arc;

#[derive(Default)]
pub(super) struct Build {
    questions: Questions,
    conditions: Conditions,
    rule_routes: Vec<u32>,
    charges_end: Vec<u32>,
    charges: Vec<RuleCharge>,
    inline: Vec<InlineLimit>,
    terms: Vec<Terms>,
    known_terms: Map<String, u32>,
    of_route: Vec<OfRoute>,
    route_shapes: Vec<Shapes>,
    known_shapes: Map<Shapes, u32>,
    route_names: Texts,
}

/// A route whose rules are gone through.
#[derive(Clone, Copy)]
struct Of<'a> {
    number: u32,
    route: &'a Route,
    shapes: &'a Shapes,
}

impl Build {
    pub(super) fn program(mut self, file: RuleFile) -> Program {
        self.questions.on_repeat = file.on_repeat;
        let everywhere = self.rules(&file.everywhere, None);
        let mut whens = Vec::new();
        for (number, route) in (0..).zip(&file.routes) {
            let shapes = self.questions.shapes(&route.when);
            if route.enabled {
                let scope = Scope { own: &shapes, route: Some(&shapes) };
                whens.push((number, self.questions.expr(&route.when, scope)));
            }
            let even = route.rules.iter().all(|rule| rule.limits.len() == 1);
            let of = OfRoute {
                first_rule: self.charges_end.len() as u32,
                first_charge: if even { self.charges.len() as u32 } else { UNEVEN },
                rules: self.rules(&route.rules, Some(Of { number, route, shapes: &shapes })),
                shapes: self.route_shapes(shapes),
                name: self.route_names.add(&route.name),
            };
            self.of_route.push(of);
        }
        whens.into_iter().for_each(|(number, when)| self.conditions.add(number, when));
        let routes = self.conditions.end_list();
        self.conditions.finish(self.questions.subjects.id(&Subject::Host));
        self.questions.finish();
        let Self { questions, conditions, charges, inline, terms, .. } = self;
        Program {
            sizes: Sizes {
                facts: questions.paths.count(),
                places: questions.paths.places(),
                subjects: questions.subjects.count(),
                checks: questions.checks.count(),
            },
            named_headers: Arc::new(NamedHeaders::of(&file)),
            overrides: file.limits.iter().map(|limit| Overrides::new(&limit.overrides)).collect(),
            file,
            rule_routes: self.rule_routes,
            charges_end: self.charges_end,
            charges,
            inline,
            terms,
            questions,
            conditions,
            routes,
            everywhere,
            of_route: self.of_route,
            route_shapes: self.route_shapes,
            route_names: self.route_names,
        }
    }

    /// Their conditions, numbered from the first of them.
    fn rules(&mut self, rules: &[Rule], of: Option<Of<'_>>) -> ListId {
        let group = of.map_or("everywhere", |of| of.route.name.as_str());
        for (place, rule) in (0..).zip(rules) {
            let shapes = self.questions.shapes(&rule.when);
            if rule.enabled {
                let scope = Scope { own: &shapes, route: of.map(|of| of.shapes) };
                self.conditions.add(place, self.questions.expr(&rule.when, scope));
            }
            for (place, charged) in (0..).zip(&rule.limits) {
                let id = self.charges.len();
                let limit = match &charged.limit {
                    LimitSource::Named(named) => Charged::Named(*named as u32),
                    LimitSource::Inline(limit) => {
                        let name = format!("{group}/{}[{place}]", rule.name);
                        self.inline.push(InlineLimit { charge: ChargeId(id), name, limit: limit.clone() });
                        Charged::Inline(self.inline.len() as u32 - 1)
                    }
                };
                let terms = self.terms(charged, &shapes);
                let rule = self.charges_end.len() as u32;
                self.charges.push(RuleCharge { id: id as u32, rule, place, limit, terms });
            }
            self.rule_routes.extend(of.map(|of| of.number));
            self.charges_end.push(self.charges.len() as u32);
        }
        self.conditions.end_list()
    }

    fn terms(&mut self, charged: &RuleLimit, shapes: &Shapes) -> u32 {
        let RuleLimit { key, missing, cost, .. } = charged;
        let captures = key.iter().any(|attribute| matches!(attribute, Attribute::Capture(_)));
        let shapes = if captures { Arc::clone(shapes) } else { Shapes::default() };
        let fresh = self.terms.len() as u32;
        let same = format!("{key:?}{missing:?}{cost:?}{shapes:?}");
        let id = *self.known_terms.entry(same).or_insert(fresh);
        if id == fresh {
            self.terms.push(Terms { key: key.clone(), missing: *missing, cost: cost.clone(), shapes });
        }
        id
    }

    fn route_shapes(&mut self, shapes: Shapes) -> u32 {
        let fresh = self.route_shapes.len() as u32;
        let id = *self.known_shapes.entry(Arc::clone(&shapes)).or_insert(fresh);
        if id == fresh {
            self.route_shapes.push(shapes);
        }
        id
    }
}
