//! Routes, rules and what they charge.

use super::condition::{Attribute, When};
use http::{HeaderName, StatusCode};
use std::time::Duration;
use tollgate::{Bandwidth, Limit, OnFailure};

/// A limit with a name: one budget wherever it is used with the same key.
#[derive(Clone, Debug)]
pub struct NamedLimit {
    /// Its name.
    pub name: String,
    /// Its numbers.
    pub limit: Limit,
    /// Other numbers for some keys.
    pub overrides: Vec<Override>,
    /// Its own bound on keys in memory.
    pub max_keys: Option<u32>,
}

/// Other numbers for one key.
#[derive(Clone, Debug)]
pub struct Override {
    /// The key's values.
    pub key: Vec<String>,
    /// The numbers, of the same algorithm.
    pub limit: Limit,
}

/// Which requests go where, and what they pay.
#[derive(Clone, Debug)]
pub struct Route {
    /// Its name; no other route has it.
    pub name: String,
    /// A route that is not enabled is as if not there.
    pub enabled: bool,
    /// Which requests.
    pub when: When,
    /// What is cut off the path's front before upstream sees it.
    pub strip_prefix: Option<String>,
    /// Which upstream, by its place in the file.
    pub upstream: usize,
    /// All that match apply.
    pub rules: Vec<Rule>,
}

/// Conditions, charges, and what the excess gets.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name; no other rule of its route has it.
    pub name: String,
    /// A rule that is not enabled is as if not there.
    pub enabled: bool,
    /// Which of the route's requests.
    pub when: When,
    /// What is charged.
    pub limits: Vec<RuleLimit>,
    /// The pace of response bodies.
    pub bandwidth: Option<Bandwidth>,
    /// What becomes of requests that find no room.
    pub excess: Excess,
    /// What is decided while the store does not answer; the store's own policy where `None`.
    pub on_failure: Option<OnFailure>,
}

/// One charge of a rule.
#[derive(Clone, Debug)]
pub struct RuleLimit {
    /// Which limit.
    pub limit: LimitSource,
    /// Whose bucket; empty is one for all.
    pub key: Vec<Attribute>,
    /// What becomes of a request that lacks an attribute of the key.
    pub missing: Missing,
    /// How many units.
    pub cost: Cost,
}

/// Which limit a rule charges.
#[derive(Clone, Debug)]
pub enum LimitSource {
    /// One with a name, by its place in the file.
    Named(usize),
    /// The rule's own.
    Inline(Limit),
}

/// What becomes of a request that lacks an attribute of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// It shares the bucket of all that lack it.
    #[default]
    Share,
    /// It is not charged here.
    Skip,
    /// It is refused.
    Deny,
}

/// How many units a request costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Always so many.
    Units(u32),
    /// The bytes of its body, as announced.
    ContentLength,
    /// As a header says.
    Header(HeaderCost),
}

impl Default for Cost {
    fn default() -> Self {
        Self::Units(1)
    }
}

/// A cost that a header tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderCost {
    /// Which header.
    pub header: HeaderName,
    /// Where there is none, or no number in it.
    pub default: u32,
    /// At least.
    pub min: u32,
    /// At most.
    pub max: u32,
}

/// What becomes of requests that find no room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Excess {
    /// Refused, in the file's style, or with an answer of the rule's own.
    Reject(Option<Reply>),
    /// Held in order, up to this long.
    Wait(Duration),
    /// Sent to another upstream, by its place in the file.
    Divert(usize),
    /// Answered with this instead.
    Degrade(Reply),
    /// Counted, logged, and let pass.
    Shadow,
}

/// An answer that a file spells out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// Its body; the style's own where `None`.
    pub body: Option<String>,
    /// What the body is.
    pub content_type: Option<String>,
}
