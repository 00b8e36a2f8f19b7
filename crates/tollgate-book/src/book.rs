//! What is kept.

use crate::Wrong;
use serde::{Deserialize, Serialize};

/// Everything that is kept, as it was at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Book {
    /// Another one whenever anything is different.
    pub revision: String,
    /// The global switch.
    pub enabled: bool,
    /// In the order in which a rule file would have them: limits, upstreams, rules of every route, then every route with its
    /// rules behind it.
    pub pieces: Vec<Piece>,
    /// What is kept there and is no piece, such as a row that a hand wrote: with any of it a book is no rules.
    #[serde(skip)]
    pub odd: Vec<Wrong>,
    /// Whether nothing is kept there, and nobody ever changed anything through a keeper: as in a database that was just made, or made
    /// anew in the place of another. One whose rows were written and deleted by hand alone cannot be told from that.
    #[serde(skip)]
    pub is_new: bool,
}

/// A part of the rules that is changed by itself: a row of a table; the whole file where rules are kept in one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// Names it.
    pub id: PieceId,
    /// What it is.
    pub kind: Kind,
    /// Of a rule: whose rule it is; `None` for a rule of every route, and for whatever is no rule.
    pub route: Option<String>,
    /// Its name; of a file its path.
    pub name: String,
    /// What it says, in YAML: what a rule file has under its name, without `name`, `enabled` and a route's `rules`.
    pub text: String,
    /// A limit and an upstream are always.
    pub enabled: bool,
    /// Another one with every change of the piece: it grows in a database, and is told from the text in a file.
    pub version: i64,
    /// Whose work it is.
    pub changed: Changed,
}

/// Whose work it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Milliseconds since 1970 began.
    pub at_ms: i64,
    /// Who; empty where nobody said.
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
    /// A limit with a name.
    Limit,
    /// Where requests go.
    Upstream,
    /// Which requests go where.
    Route,
    /// Of a route, or of every route.
    Rule,
    /// All of it, as text.
    File,
}

impl Piece {
    /// Its name for people: `rule orders/create`.
    #[must_use]
    pub fn about(&self) -> String {
        let name = self.name.escape_debug();
        match (self.kind, &self.route) {
            (Kind::Limit, _) => format!("limit {name}"),
            (Kind::Upstream, _) => format!("upstream {name}"),
            (Kind::Route, _) => format!("route {name}"),
            (Kind::Rule, Some(route)) => format!("rule {}/{name}", route.escape_debug()),
            (Kind::Rule, None) => format!("rule {name}"),
            (Kind::File, _) => format!("file {name}"),
        }
    }
}

impl Book {
    /// The piece of this name.
    #[must_use]
    pub fn piece(&self, id: PieceId) -> Option<&Piece> {
        self.pieces.iter().find(|piece| piece.id == id)
    }

    /// Puts pieces of equal standing in the order they have, and everything else as a rule file would have it. A rule whose
    /// route is not there stands last.
    pub(crate) fn sort(&mut self) {
        let mut rest = std::mem::take(&mut self.pieces);
        let mut take = |is: &dyn Fn(&Piece) -> bool| {
            let (taken, left): (Vec<_>, Vec<_>) = std::mem::take(&mut rest).into_iter().partition(is);
            rest = left;
            taken
        };
        let mut sorted = take(&|piece| piece.kind == Kind::File);
        sorted.extend(take(&|piece| piece.kind == Kind::Limit));
        sorted.extend(take(&|piece| piece.kind == Kind::Upstream));
        sorted.extend(take(&|piece| piece.kind == Kind::Rule && piece.route.is_none()));
        for route in take(&|piece| piece.kind == Kind::Route) {
            let name = route.name.clone();
            sorted.push(route);
            sorted.extend(take(&|piece| piece.route.as_ref() == Some(&name)));
        }
        sorted.append(&mut rest);
        self.pieces = sorted;
    }
}
