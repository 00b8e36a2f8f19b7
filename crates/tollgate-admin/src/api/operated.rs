//! What the API asks of the program, beyond the [`State`](crate::State) that its pages show.
//!
//! The program implements it; nothing here knows a gateway, a store or a database.

use std::{pin::Pin, sync::Arc, time::SystemTime};
use thiserror::Error;
use tollgate::{Key, Status};
use tollgate_book::{Book, Keeper, Wrong};
use tollgate_rules::{Program, RuleFile};

/// Something that takes a while.
pub type Doing<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A program that is looked at and acted upon.
pub trait Operated: Send + Sync + 'static {
    /// This node.
    fn node(&self) -> Node;

    /// What is open.
    fn listeners(&self) -> Vec<OpenListener>;

    /// Where requests go, and how that is.
    fn upstreams(&self) -> Vec<UpstreamState>;

    /// Shows the rules in force, and which revision of the book they are.
    fn in_force(&self, look: &mut dyn FnMut(&Program, &str));

    /// What a key holds of a limit, after this was done to it.
    fn key<'a>(&'a self, limit: &'a str, key: Key<'a>, act: KeyAct) -> Doing<'a, Result<Held, KeyError>>;

    /// Who keeps the rules.
    fn keeper(&self) -> Arc<dyn Keeper>;

    /// The rules that a book would be, with what this node has of its own, or everything that is wrong with it. Nothing is
    /// put in force.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    fn judge(&self, book: &Book) -> Result<RuleFile, Vec<Wrong>>;

    /// Puts a book in force here, now; says why not where it cannot.
    fn take<'a>(&'a self, book: &'a Book) -> Doing<'a, Result<(), String>>;
}

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it calls itself.
    pub name: String,
    /// Since when it is there.
    pub started: SystemTime,
}

/// A listener that is open.
#[derive(Clone, Debug, serde::Serialize)]
pub struct OpenListener {
    /// Which.
    pub name: String,
    /// Where.
    pub address: String,
    /// How many connections it has, where that is counted.
    pub connections: Option<usize>,
    /// How many requests are not answered yet, where that is counted.
    pub in_flight: Option<usize>,
}

/// An upstream, and how its servers are.
#[derive(Clone, Debug, serde::Serialize)]
pub struct UpstreamState {
    /// Its name.
    pub name: String,
    /// Who answers.
    pub servers: Vec<UpstreamServer>,
}

/// One server of an upstream.
#[derive(Clone, Debug, serde::Serialize)]
pub struct UpstreamServer {
    /// Where it is.
    pub url: String,
    /// Its share.
    pub weight: u32,
    /// Whether it gets requests.
    pub healthy: bool,
}

/// What is done to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAct {
    /// Nothing: it is looked at.
    Look,
    /// What it has used is forgotten.
    Reset,
    /// It gets so many units above its limit.
    Grant(u32),
    /// It is refused for so long; zero lifts that.
    Ban(std::time::Duration),
}

/// What a key holds.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// What one unit would be told now.
    pub asked: Status,
    /// How it stands without that one.
    pub now: Status,
}

/// Why a key is not told about.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// There is no such limit.
    #[error("there is no limit of that name{}", .nearest.as_ref().map(|it| format!("; did you mean {it:?}?")).unwrap_or_default())]
    UnknownLimit {
        /// The nearest name there is.
        nearest: Option<String>,
    },
    /// The store did not answer.
    #[error("{0}")]
    Store(String),
}
