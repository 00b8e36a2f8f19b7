//! What was found for a request: its route, the rules that apply, and from there keys and costs.

use super::{
    Program, RouteId, RuleCharge, RuleEntry, RuleId,
    entries::{Charged, Terms},
    paths::ShapeId,
};
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
        let everywhere = self.program.file.everywhere.len();
        self.rules.iter().map(move |id| self.program.entry(*id, self.route.filter(|_| id.0 >= everywhere)))
    }

    /// What the route captured from the path, by name.
    pub fn captures(&self) -> impl Iterator<Item = (&'p str, &str)> {
        let shapes = self.program.shapes_of(self.route);
        (0..shapes.len()).flat_map(move |place| {
            let names = self.program.questions.paths.shape(shapes[place]).names();
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
            Charged::Named(named) => {
                let overrides = &self.program.overrides[named as usize];
                if overrides.is_empty() { None } else { overrides.find(key.texts().key()) }
            }
            Charged::Inline(_) => None,
        }
    }

    /// The path and query that upstream sees, of those that were sent.
    #[must_use]
    pub fn forwarded<'x>(&self, path_and_query: &'x str) -> Cow<'x, str> {
        let Some(route) = self.route else { return Cow::Borrowed(path_and_query) };
        let route = self.program.route(route);
        // It was normal when the route was looked for.
        let as_matched = || {
            path_and_query
                .strip_prefix(&*self.path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('?'))
        };
        if route.strip_prefix.is_none() && matches!(self.path, Cow::Borrowed(_)) && as_matched() {
            return Cow::Borrowed(path_and_query);
        }
        rewrite(route, path_and_query)
    }

    fn terms(&self, charge: &RuleCharge) -> &'p Terms {
        &self.program.terms[charge.terms as usize]
    }

    /// What the request has of an attribute of a charge's key.
    pub(crate) fn attribute(&self, charge: &RuleCharge, wanted: &Attribute) -> Option<Text<'_>> {
        match wanted {
            Attribute::Capture(name) => self
                .captured(&self.terms(charge).shapes, name)
                .or_else(|| self.captured(self.program.shapes_of(self.route), name))
                .map(Text::from),
            Attribute::Route => self.route.map(|route| self.program.route_name(route).into()),
            Attribute::Rule => Some(self.program.rule(charge.rule()).rule().name.as_str().into()),
            wanted => attribute(&self.request, &self.path, wanted, Reader::Key),
        }
    }

    fn captured(&self, shapes: &[ShapeId], name: &str) -> Option<&str> {
        if shapes.is_empty() {
            return None;
        }
        let path = segments(&self.path);
        let mut shapes = shapes.iter().map(|shape| self.program.questions.paths.shape(*shape));
        shapes.find_map(|shape| shape.capture(&path, name))
    }
}
