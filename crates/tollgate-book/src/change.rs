//! What may be changed.

use crate::{Kind, PieceId};
use serde::{Deserialize, Serialize};

/// One change of a book.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// A new piece, in front of another of its kind, or last.
    Create {
        kind: Kind,
        #[serde(default)]
        route: Option<String>,
        name: String,
        text: String,
        #[serde(default = "on")]
        enabled: bool,
        #[serde(default)]
        before: Option<PieceId>,
    },
    /// Another text, and another name where one is given. A route takes its rules along.
    Edit {
        id: PieceId,
        version: i64,
        #[serde(default)]
        name: Option<String>,
        text: String,
    },
    /// On or off.
    Enable { id: PieceId, version: i64, enabled: bool },
    /// In front of another of its kind, or last.
    Move {
        id: PieceId,
        version: i64,
        #[serde(default)]
        before: Option<PieceId>,
    },
    /// Gone; a route takes its rules along.
    Delete { id: PieceId, version: i64 },
    /// The global switch. It has no version: whoever turns it off wants it off.
    Switch { enabled: bool },
    /// The switch of one rule, by its name; of a rule of every route where no route is named.
    SwitchRule {
        #[serde(default)]
        route: Option<String>,
        rule: String,
        enabled: bool,
    },
}

/// A piece that somebody else has changed meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stale {
    pub id: PieceId,
    /// The version that the change was made on.
    pub made_on: i64,
    /// The version that there is; `None` where the piece is gone.
    pub there_is: Option<i64>,
    /// Who changed it last, where that is known.
    pub by: Option<String>,
}

const fn on() -> bool {
    true
}
