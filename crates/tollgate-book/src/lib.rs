//! Where rules are kept, for whoever follows them and whoever changes them.
//!
//! A [`Book`] is everything that is kept at one moment; a [`Keeper`] has it, in a file ([`FileKeeper`]) or in the tables of a
//! database ([`SqlKeeper`]). Changes are made several at a time, all or none; each says which version it was made on, so that a
//! stale one is refused and nobody's work is lost. What would not be a rule file any more is refused too, before anything is
//! written.
//!
//! - [`compose`] makes rules of a book and a node's own file; [`judge`] is that as a question.
//! - [`applied`] says what a book would be after some changes, for trying them out.
//! - [`Cache`] keeps the last good book on a node, for a start while the database is away.

mod apply;
mod book;
mod cache;
mod change;
mod compose;
mod file_keeper;
mod keeper;
mod remembered;
mod sql;

pub use apply::{Versions, applied};
pub use book::{Book, Changed, Kind, Piece, PieceId};
pub use cache::Cache;
pub use change::{Change, Stale};
pub use compose::{compose, texts};
pub use file_keeper::FileKeeper;
pub use keeper::{Asking, BookError, Entry, Judge, Keeper, NodeSeen, Source, SourceKind, Wrong};
pub use sql::{ConfKeeper, SqlKeeper, keeper_of};

use std::time::{SystemTime, UNIX_EPOCH};

/// Judges a book by whether it can be composed with a node's own file.
pub fn judge(
    own: &str,
    environment: impl Fn(&str) -> Option<String> + Send + Sync,
) -> impl Fn(&Book) -> Result<(), Vec<Wrong>> + Send + Sync {
    let own = own.to_owned();
    move |book| compose(&own, book, &environment).map(|_| ())
}

/// Milliseconds since 1970 began.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Tells texts apart (FNV-1a).
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
