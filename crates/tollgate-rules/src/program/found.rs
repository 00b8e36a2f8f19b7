//! What was found for a request: its route, the rules that apply, and from there keys and costs.

use super::{ChargedLimit, Program, RouteId, RuleCharge, RuleEntry, RuleId, Terms, paths::Fact};
use crate::{
    keys::{KeyValues, Keyed, Units, units},
    model::{Attribute, Missing},
    reading::{Reader, Text, attribute, segments},
    request::Request,
    rewrite::rewrite,
};
use smallvec::SmallVec;
use std::borrow::Cow;

/// What a program found for a request.
#[derive(Clone, Debug)]
pub struct Found<'p, 'r> {
    program: &'p Program,
    request: Request<'r>,
    path: Cow<'r, str>,
    route: Option<RouteId>,
    rules: SmallVec<[RuleId; 8]>,
}

impl<'p, 'r> Found<'p, 'r> {
    pub(super) fn new(
        program: &'p Program,
        request: Request<'r>,
        path: Cow<'r, str>,
        route: Option<RouteId>,
        rules: SmallVec<[RuleId; 8]>,
    ) -> Self {
        Self { program, request, path, route, rules }
    }

    /// Who found it.
    #[must_use]
    pub fn program(&self) -> &'p Program {
        self.program
    }

    /// What it was found for.
    #[must_use]
    pub fn request(&self) -> &Request<'r> {
        &self.request
    }

    /// The path as rules saw it.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The route that takes the request, if one does.
    #[must_use]
    pub fn route(&self) -> Option<RouteId> {
        self.route
    }

    /// The rules that apply: those of every route, then the route's own, in file order. Without a route these are the
    /// rules of every route alone.
    #[must_use]
    pub fn rules(&self) -> &[RuleId] {
        &self.rules
    }

    /// The rules that apply, with what they say.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = RuleEntry<'p>> {
        self.rules.iter().map(|id| self.program.rule(*id))
    }

    /// What the route captured from the path, by name.
    pub fn captures(&self) -> impl Iterator<Item = (&'p str, &str)> {
        let shapes = self.route_shapes();
        (0..shapes.len()).flat_map(move |place| {
            let shape = self.program.questions.paths.shape(shapes[place]);
            let names = shape.into_iter().flat_map(|shape| shape.names());
            names.filter_map(move |name| {
                // What an earlier shape captured by that name counts instead.
                let earlier = self.captured(&shapes[..place], name);
                let value = self.captured(&shapes[place..=place], name)?;
                earlier.is_none().then_some((name, value))
            })
        })
    }

    /// Whose bucket a rule's charge is on.
    #[must_use]
    pub fn key(&self, charge: &RuleCharge) -> Keyed<'_> {
        let Terms { key, missing, .. } = self.terms(charge);
        let mut values = KeyValues::default();
        for wanted in key {
            let value = self.attribute(charge, wanted);
            match (value, missing) {
                (None, Missing::Skip) => return Keyed::Skip,
                (None, Missing::Deny) => return Keyed::Deny { missing: wanted },
                (value, _) => values.push(value),
            }
        }
        Keyed::Key(values)
    }

    /// How many units a rule's charge costs.
    #[must_use]
    pub fn units(&self, charge: &RuleCharge) -> Units {
        units(&self.terms(charge).cost, self.request.headers)
    }

    /// Which of its limit's overrides holds for a charge with this key, by its place.
    #[must_use]
    pub fn override_of(&self, charge: &RuleCharge, key: &KeyValues<'_>) -> Option<usize> {
        match charge.limit {
            ChargedLimit::Named(named) => {
                let overrides = &self.program.overrides[named];
                if overrides.is_empty() { None } else { overrides.find(key.texts().key()) }
            }
            ChargedLimit::Inline(_) => None,
        }
    }

    /// The path and query that upstream sees, of those that were sent.
    #[must_use]
    pub fn forwarded<'x>(&self, path_and_query: &'x str) -> Cow<'x, str> {
        match self.route {
            Some(route) => rewrite(self.program.route(route), path_and_query),
            None => Cow::Borrowed(path_and_query),
        }
    }

    fn terms(&self, charge: &RuleCharge) -> &'p Terms {
        &self.program.terms[charge.terms as usize]
    }

    /// What the request has of an attribute of a charge's key.
    pub(crate) fn attribute(&self, charge: &RuleCharge, wanted: &Attribute) -> Option<Text<'_>> {
        match wanted {
            Attribute::Capture(name) => self
                .captured(&charge.shapes, name)
                .or_else(|| self.captured(self.route_shapes(), name))
                .map(Text::from),
            Attribute::Route => self.route.map(|route| self.program.route(route).name.as_str().into()),
            Attribute::Rule => Some(self.program.rule(charge.rule).rule.name.as_str().into()),
            wanted => attribute(&self.request, &self.path, wanted, Reader::Key),
        }
    }

    fn route_shapes(&self) -> &'p [Fact] {
        self.route.map_or(&[], |route| &self.program.of_route[route.0].shapes)
    }

    fn captured(&self, shapes: &[Fact], name: &str) -> Option<&str> {
        if shapes.is_empty() {
            return None;
        }
        let path = segments(&self.path);
        let mut shapes = shapes.iter().filter_map(|fact| self.program.questions.paths.shape(*fact));
        shapes.find_map(|shape| shape.capture(&path, name))
    }
}
