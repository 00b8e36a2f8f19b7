//! Who keeps it.

use crate::{Book, Change, PieceId, Stale};
use serde::Serialize;
use std::{fmt, pin::Pin};
use thiserror::Error;

/// An answer that may take a while.
pub type Asking<'a, T> = Pin<Box<dyn Future<Output = Result<T, BookError>> + Send + 'a>>;

/// Says whether a book would be rules that can be put in force: everything that is wrong with it, each with its piece.
pub type Judge<'a> = &'a (dyn Fn(&Book) -> Result<(), Vec<Wrong>> + Send + Sync);

/// Keeps a book.
pub trait Keeper: Send + Sync + 'static {
    /// Where it is kept.
    fn source(&self) -> Source;

    /// All of it, as it is now.
    fn read(&self) -> Asking<'_, Book>;

    /// Which book it is now: as [`Book::revision`], for whoever follows it and asks often.
    fn revision(&self) -> Asking<'_, String> {
        Box::pin(async { Ok(self.read().await?.revision) })
    }

    /// Makes all of these changes, or none. What `judge` refuses is not written.
    fn change<'a>(&'a self, changes: &'a [Change], by: &'a str, judge: Judge<'a>) -> Asking<'a, Book>;

    /// Notes something that was done besides: a key that was reset, somebody let in.
    fn note<'a>(&'a self, by: &'a str, action: &'a str, about: &'a str) -> Asking<'a, ()>;

    /// What was done, the newest first: at most `most` that came before the one with this number.
    fn history(&self, before: Option<i64>, most: usize) -> Asking<'_, Vec<Entry>>;

    /// This node is there, and which revision it has in force, or why not the newest.
    fn seen<'a>(&'a self, node: &'a NodeSeen) -> Asking<'a, ()>;

    /// The nodes that follow this book, as far as anybody knows.
    fn nodes(&self) -> Asking<'_, Vec<NodeSeen>>;
}

/// Where a book is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Source {
    /// What it is kept in.
    pub kind: SourceKind,
    /// For people: a path, or an address without its password.
    pub name: String,
    /// Why nothing can be changed there, where that is so.
    pub read_only: Option<String>,
}

/// What a book is kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// The rule file itself.
    File,
    /// MySQL or MariaDB.
    Mysql,
    /// PostgreSQL.
    Postgres,
    /// SQLite.
    Sqlite,
}

/// Something that was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its number; a newer entry has a higher one.
    pub number: i64,
    /// Milliseconds since 1970 began.
    pub at_ms: i64,
    /// Who did it.
    pub by: String,
    /// `create`, `edit`, `enable`, `move`, `delete`, `switch`, `reset`, `grant`, `ban`, ...
    pub action: String,
    /// What it was done to: `rule orders/create`, `limit per-client key alice`.
    pub about: String,
    /// The text before, where it is a change of text.
    pub before: Option<String>,
    /// The text after, likewise.
    pub after: Option<String>,
}

/// A node that follows a book.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeSeen {
    /// What it calls itself.
    pub node: String,
    /// What it has in force.
    pub revision: String,
    /// Why it does not have the newest in force, where that is so.
    pub failure: Option<String>,
    /// Milliseconds since 1970 began.
    pub at_ms: i64,
}

/// One thing that is wrong with a book.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wrong {
    /// The piece it is in; `None` where it is in what every node has of its own.
    pub piece: Option<PieceId>,
    /// Its name for people: `rule orders/create`.
    pub about: String,
    /// The line of the piece's text, counted from 1.
    pub line: usize,
    /// The character on that line, counted from 1.
    pub column: usize,
    /// Which setting.
    pub path: String,
    /// What is wrong, and what is expected.
    pub message: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.about, self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// Why a book was not read, or not changed; nothing was.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BookError {
    /// Somebody else was faster.
    #[error("somebody else has changed it meanwhile")]
    Stale(Vec<Stale>),
    /// It would not be a rule file any more.
    #[error("{}", lines(.0))]
    Wrong(Vec<Wrong>),
    /// What is to be changed is not there.
    #[error("{0}")]
    Missing(String),
    /// It cannot be done here, or not to this.
    #[error("{0}")]
    Refused(String),
    /// Whoever keeps it does not answer. Holds no password.
    #[error("{0}")]
    Unreachable(String),
}

/// One line each.
fn lines(wrong: &[Wrong]) -> String {
    wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
