//! What may be changed.

use crate::{Kind, PieceId};
use serde::{Deserialize, Serialize};

/// One change of a book.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// A new piece, in front of another of its kind, or last.
    Create {
        /// What it is.
        kind: Kind,
        /// Of a rule: whose; of every route where none is named.
        #[serde(default)]
        route: Option<String>,
        /// Its name.
        name: String,
        /// What it says, in YAML.
        text: String,
        /// Whether it is on.
        #[serde(default = "on")]
        enabled: bool,
        /// In front of which; last where none is named.
        #[serde(default)]
        before: Option<PieceId>,
    },
    /// Another text, and another name where one is given. A route takes its rules along.
    Edit {
        /// Which piece.
        id: PieceId,
        /// The version that the change was made on.
        version: i64,
        /// Its new name.
        #[serde(default)]
        name: Option<String>,
        /// Its new text.
        text: String,
    },
    /// On or off.
    Enable {
        /// Which piece.
        id: PieceId,
        /// The version that the change was made on.
        version: i64,
        /// Whether it is on from now.
        enabled: bool,
    },
    /// In front of another of its kind, or last.
    Move {
        /// Which piece.
        id: PieceId,
        /// The version that the change was made on.
        version: i64,
        /// In front of which; last where none is named.
        #[serde(default)]
        before: Option<PieceId>,
    },
    /// Gone; a route takes its rules along, the last one of its name where a hand has made several.
    Delete {
        /// Which piece.
        id: PieceId,
        /// The version that the change was made on.
        version: i64,
    },
    /// The global switch. It has no version: whoever turns it off wants it off.
    Switch {
        /// Whether limits are on from now.
        enabled: bool,
    },
    /// The switch of one rule, by its name; of a rule of every route where no route is named.
    SwitchRule {
        /// Whose rule.
        #[serde(default)]
        route: Option<String>,
        /// Its name.
        rule: String,
        /// Whether it is on from now.
        enabled: bool,
    },
}

impl Change {
    /// Whether it turns the global switch. Whoever turns everything off at night wants it off, also where somebody has broken
    /// something by hand: it is not judged.
    #[must_use]
    pub const fn is_switch(&self) -> bool {
        matches!(self, Self::Switch { .. })
    }
}

/// A piece that somebody else has changed meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stale {
    /// Which piece.
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
