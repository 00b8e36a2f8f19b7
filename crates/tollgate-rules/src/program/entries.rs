//! Routes, rules and charges by their numbers, and what is kept of each for a request.
//!
//! A program of ten thousand routes has more of them than a cache holds, and a request reads those of its own route. So they
//! are small, and what few requests look at stays in the file, where [`RuleEntry::rule`] goes for it.

use super::{Program, conditions::ListId, expr::Shapes, texts::Text};
use crate::model::{Attribute, Cost, Missing, Rule};
use tollgate::Limit;

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
    /// What it charges, one for each of its limits.
    pub charges: &'p [RuleCharge],
    pub(super) program: &'p Program,
}

impl<'p> RuleEntry<'p> {
    /// What it says.
    #[must_use]
    pub fn rule(&self) -> &'p Rule {
        let file = self.program.file();
        match self.route {
            Some(route) => {
                let first = self.program.of_route[route.0].first_rule as usize;
                &file.routes[route.0].rules[self.id.0 - first]
            }
            None => &file.everywhere[self.id.0],
        }
    }
}

/// What a rule charges, and where that stands.
#[derive(Clone, Debug)]
pub struct RuleCharge {
    pub(super) id: u32,
    pub(super) rule: u32,
    pub(super) place: u32,
    pub(super) limit: Charged,
    /// Its key and cost, among the program's.
    pub(super) terms: u32,
}

impl RuleCharge {
    /// Its number.
    #[must_use]
    pub fn id(&self) -> ChargeId {
        ChargeId(self.id as usize)
    }

    /// Whose charge it is.
    #[must_use]
    pub fn rule(&self) -> RuleId {
        RuleId(self.rule as usize)
    }

    /// Its place among the rule's limits.
    #[must_use]
    pub fn place(&self) -> usize {
        self.place as usize
    }

    /// Which limit.
    #[must_use]
    pub fn limit(&self) -> ChargedLimit {
        match self.limit {
            Charged::Named(place) => ChargedLimit::Named(place as usize),
            Charged::Inline(place) => ChargedLimit::Inline(place as usize),
        }
    }
}

/// [`ChargedLimit`] in half the space.
#[derive(Clone, Copy, Debug)]
pub(super) enum Charged {
    Named(u32),
    Inline(u32),
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

/// Key and cost of a charge. Equal ones are kept once, so that those of thousands of rules are near.
pub(super) struct Terms {
    pub(super) key: Vec<Attribute>,
    pub(super) missing: Missing,
    pub(super) cost: Cost,
    /// The rule's shapes, where the key names captures: theirs, or the route's.
    pub(super) shapes: Shapes,
}

/// Not each rule of the route has one charge.
pub(super) const UNEVEN: u32 = u32::MAX;

/// What is kept for a route. Two make a cache line, and none lies on two.
#[repr(align(32))]
pub(super) struct OfRoute {
    pub(super) first_rule: u32,
    /// Its first charge, where each of its rules has one and they are found by counting; else [`UNEVEN`].
    pub(super) first_charge: u32,
    /// The conditions of its rules, which are numbered from its first.
    pub(super) rules: ListId,
    /// The shapes whose captures its keys may name, among the program's.
    pub(super) shapes: u32,
    pub(super) name: Text,
}

// A byte more, and each would take a whole line.
const _: () = assert!(size_of::<OfRoute>() == 32);
