//! What is kept.

use serde::{Deserialize, Serialize};

/// Everything that is kept, as it was at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Book {
    /// Another one whenever anything is different.
    pub revision: String,
    /// The global switch.
    pub enabled: bool,
    /// In the order in which a rule file would have them: limits, upstreams, rules of every route, routes, their rules.
    pub pieces: Vec<Piece>,
}

/// A part of the rules that is changed by itself: a row of a table; the whole file where rules are kept in one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Piece {
    pub id: PieceId,
    pub kind: Kind,
    /// Of a rule: whose rule it is; `None` for a rule of every route, and for whatever is no rule.
    pub route: Option<String>,
    pub name: String,
    /// What it says, in YAML: what a rule file has under its name, without `name`, `enabled` and a route's `rules`.
    pub text: String,
    /// A limit and an upstream are always.
    pub enabled: bool,
    /// Grows with every change of the piece.
    pub version: i64,
    pub changed: Changed,
}

/// Whose work it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Milliseconds since 1970 began.
    pub at_ms: i64,
    pub by: String,
}

/// Names a piece for as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PieceId(pub i64);

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Limit,
    Upstream,
    Route,
    /// Of a route, or of every route.
    Rule,
    /// All of it, as text.
    File,
}
