//! Why rules cannot be put in force, and why a charge was not decided.

use crate::Mistakes;
use thiserror::Error;
use tollgate::StoreError;

/// Rules that a store cannot keep; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the store cannot keep the limit {limit:?}: {source}")]
pub struct BindError {
    limit: String,
    source: StoreError,
}

impl BindError {
    pub(super) fn new(limit: &str, source: StoreError) -> Self {
        Self { limit: limit.to_owned(), source }
    }
}

/// Nothing was decided, and nothing was charged.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum DecisionError {
    /// No limit has this name.
    #[error("there is no limit {name:?}{}", .nearest.as_ref().map_or_else(String::new, |name| format!("; did you mean {name:?}?")))]
    UnknownLimit {
        /// The name in the request.
        name: String,
        /// A limit with a similar name.
        nearest: Option<String>,
    },
    /// A definition that came with the request is wrong.
    #[error("the limit is not defined well: {0}")]
    Definition(Mistakes),
    /// More definitions come with requests than are kept.
    #[error(
        "too many limits are defined in questions at once; name this one in the rule file and ask for its name"
    )]
    TooManyDefinitions,
    /// A bandwidth paces bytes; it cannot be charged.
    #[error("bandwidth paces a body and cannot be checked; name a limit on requests")]
    Bandwidth,
    /// The limit has no slots that could be held.
    #[error("the limit {name:?} is not a concurrency limit: it has no slots to hold")]
    NothingToHold {
        /// The name in the request.
        name: String,
    },
    /// The store did not answer, and no failure policy decides instead.
    #[error("the store cannot answer: {0}")]
    Store(#[from] StoreError),
}
