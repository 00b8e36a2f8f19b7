//! Why a question has no answer.

use thiserror::Error;
use tollgate::StoreError;
use tollgate_rules::Mistakes;

/// A question without an answer; nothing was charged.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum AskError {
    /// No limit has this name.
    #[error("there is no limit {name:?}{}", .nearest.as_ref().map_or_else(String::new, |name| format!("; did you mean {name:?}?")))]
    UnknownLimit {
        /// As it was asked for.
        name: String,
        /// One that is written nearly so.
        nearest: Option<String>,
    },
    /// A definition that came with the question is wrong.
    #[error("the limit is not defined well: {0}")]
    Definition(Mistakes),
    /// More definitions come with questions than are kept.
    #[error(
        "too many limits are defined in questions at once; name this one in the rule file and ask for its name"
    )]
    TooManyDefinitions,
    /// A pace for bytes is no limit that can be asked for.
    #[error("bandwidth paces a body and cannot be asked for; ask for a limit on requests")]
    Bandwidth,
    /// The limit has no slots that could be held.
    #[error("the limit {name:?} is no concurrency limit: there is nothing to hold")]
    NothingToHold {
        /// As it was asked for.
        name: String,
    },
    /// The store did not answer, and no policy decides instead.
    #[error("the store cannot answer: {0}")]
    Store(#[from] StoreError),
}
