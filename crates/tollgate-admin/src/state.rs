//! What the program tells about itself.
//!
//! [`State`] is asked whenever somebody looks; the program implements it, and so does a test. Readiness is decided here and
//! nowhere else, by one principle: **not ready** is for what another node would do better. A rule file with a mistake in it,
//! or a store that does not answer, hits every node at once; sending traffic elsewhere would turn a warning into an outage.
//! Old rules and the failure policy are at work then, so the node is ready, and says what is wrong.

use std::{path::PathBuf, pin::Pin, time::SystemTime};
use tollgate_net::Phase;

/// What the program tells about itself. Asked on requests: it must not block.
pub trait State: Send + Sync + 'static {
    /// The rules in use.
    fn rules(&self) -> RulesState;
    /// The store in use.
    fn store(&self) -> StoreState;
    /// How far on the way out.
    fn phase(&self) -> Phase;
    /// Whatever else there is: upstreams, listeners, certificates.
    fn others(&self) -> Vec<Component> {
        Vec::new()
    }
    /// What would become of a request, and what the buckets hold that it would be charged on. Question and answer are JSON
    /// objects; what is in them is the rules' business. Nothing is charged.
    fn explain(&self, question: &str) -> Explaining<'_> {
        let _ = question;
        Box::pin(async { Err(Unexplained::NotHere) })
    }
}

/// An explanation that is being put together.
pub type Explaining<'a> = Pin<Box<dyn Future<Output = Result<String, Unexplained>> + Send + 'a>>;

/// Why a request is not explained.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unexplained {
    /// The program has no rules to explain.
    #[error("there are no rules here to explain")]
    NotHere,
    /// The question makes no sense.
    #[error("{0}")]
    Question(String),
    /// The store did not tell what it holds.
    #[error("{0}")]
    Store(String),
}

/// The rules in use.
#[derive(Clone, Debug)]
pub struct RulesState {
    /// Where they come from.
    pub file: PathBuf,
    /// How often rules were put to use: 1 for those the program began with.
    pub generation: u64,
    /// When these were put to use.
    pub loaded: SystemTime,
    /// What came of a later change, if it could not be put to use. None once one could.
    pub failure: Option<ReloadFailure>,
}

/// A changed file that could not be put to use.
#[derive(Clone, Debug)]
pub struct ReloadFailure {
    /// When it was tried.
    pub at: SystemTime,
    /// Which file: rules may come from several.
    pub file: PathBuf,
    /// What is wrong, in a sentence.
    pub why: String,
    /// Every mistake in it, if it could be read.
    pub mistakes: Vec<RuleMistake>,
}

/// One mistake in a rule file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct RuleMistake {
    /// The line, counted from 1.
    pub line: usize,
    /// The character on it, counted from 1.
    pub column: usize,
    /// The setting: `routes[3].rules[0].limits[1].rate`.
    pub path: String,
    /// What is wrong, and what is expected.
    pub message: String,
}

/// The store in use.
#[derive(Clone, Debug)]
pub struct StoreState {
    /// Who decides now.
    pub mode: StoreMode,
    /// Why a shared store did not answer last, if it did not.
    pub last_error: Option<String>,
    /// Keys in the memory of this process.
    pub keys: u64,
    /// Live keys that had to make room, since the start.
    pub evictions: u64,
}

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreMode {
    /// This process, by itself: no store is shared.
    Memory,
    /// The shared store, each time.
    Exact,
    /// The shared store, which hands out leases.
    Leased,
    /// The shared store again, for more and more questions.
    Recovering,
    /// The failure policy: the shared store does not answer.
    Degraded,
}

/// Something that can be well or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// What it is: `upstream orders`.
    pub name: String,
    /// How it is.
    pub condition: Condition,
}

/// How something is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Well.
    Well,
    /// Not well, and another node would do no better: the node is ready all the same.
    Ailing(String),
    /// It cannot serve: the node is not ready.
    Down(String),
}

impl StoreMode {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Memory, Self::Exact, Self::Leased, Self::Recovering, Self::Degraded];

    /// As it is called in labels and answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Exact => "exact",
            Self::Leased => "leased",
            Self::Recovering => "recovering",
            Self::Degraded => "degraded",
        }
    }
}
