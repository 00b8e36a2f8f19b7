//! What was found for a request: its route, the rules that apply, and from there keys and costs.

use super::{
    Program, RouteId, RuleCharge, RuleEntry, RuleId,
    entries::{Charged, Terms},
    paths::ShapeId,
};
use crate::{
    keys::{KeyValues, Keyed, Units, units},
    model::{Attribute, Missing},
    reading::{PathError, Reader, Repeated, Text, attribute, segments},
    request::Request,
    rewrite::forwarded_path,
};
use smallvec::SmallVec;
use std::{borrow::Cow, fmt};

/// What a program found for a request.
#[derive(Clone, Debug)]
pub struct Found<'p, 'r> {
    program: &'p Program,
    request: Request<'r>,
    path: Cow<'r, str>,
    route: Option<RouteId>,
    rules: SmallVec<[RuleId; 8]>,
    /// Boxed: hardly any request is invalid.
    invalid: Option<Box<Invalid>>,
}

/// Why a request cannot be read in one way only. It is to be answered 400, and no rule is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Invalid {
    /// Its path cannot be decoded.
    Path(PathError),
    /// It has this more than once, and a condition looks at it.
    Repeated(Attribute),
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(error) => error.fmt(f),
            Self::Repeated(attribute) => write!(f, "the request has {attribute} more than once"),
        }
    }
}

impl<'p, 'r> Found<'p, 'r> {
    pub(super) fn new(
        program: &'p Program,
        request: Request<'r>,
        path: Cow<'r, str>,
        route: Option<RouteId>,
        rules: SmallVec<[RuleId; 8]>,
    ) -> Self {
        Self { program, request, path, route, rules, invalid: None }
    }

    pub(super) fn of_invalid(program: &'p Program, request: Request<'r>, invalid: Invalid) -> Self {
        let path = Cow::Borrowed(request.path);
        Self { program, request, path, route: None, rules: SmallVec::new(), invalid: Some(Box::new(invalid)) }
    }

    /// Why the request cannot be read in one way only, if it cannot.
    #[must_use]
    pub fn invalid(&self) -> Option<&Invalid> {
        self.invalid.as_deref()
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

    /// The path as rules saw it: decoded, or as sent where the request is invalid.
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
            let Ok(value) = self.attribute(charge, wanted) else {
                return Keyed::Repeated { attribute: wanted };
            };
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
        let prefix = self.route.and_then(|route| self.program.route(route).strip_prefix.as_deref());
        // It was in its canonical spelling already.
        if prefix.is_none()
            && matches!(self.path, Cow::Borrowed(_))
            && path_and_query.starts_with(&*self.path)
        {
            return Cow::Borrowed(path_and_query);
        }
        let query = path_and_query.find('?').map_or("", |at| &path_and_query[at..]);
        let path = forwarded_path(&self.path, prefix.unwrap_or_default(), self.program.file.encoded_slash);
        Cow::Owned(format!("{path}{query}"))
    }

    fn terms(&self, charge: &RuleCharge) -> &'p Terms {
        &self.program.terms[charge.terms as usize]
    }

    /// What the request has of an attribute of a charge's key.
    pub(crate) fn attribute(
        &self,
        charge: &RuleCharge,
        wanted: &Attribute,
    ) -> Result<Option<Text<'_>>, Repeated> {
        Ok(match wanted {
            Attribute::Capture(name) => self
                .captured(&self.terms(charge).shapes, name)
                .or_else(|| self.captured(self.program.shapes_of(self.route), name))
                .map(Text::from),
            Attribute::Route => self.route.map(|route| self.program.route_name(route).into()),
            Attribute::Rule => Some(self.program.rule(charge.rule()).rule().name.as_str().into()),
            wanted => {
                let on_repeat = self.program.file.on_repeat;
                return attribute(&self.request, &self.path, wanted, Reader::Key, on_repeat);
            }
        })
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
