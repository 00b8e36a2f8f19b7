//! Where rules are kept, for whoever follows them and whoever changes them.
//!
//! A [`Book`] is everything that is kept at one moment; a [`Keeper`] has it, in a file or in the tables of a database. Changes
//! are made several at a time, all or none; each says which version it was made on, so that a stale one is refused and
//! nobody's work is lost. What would not be a rule file any more is refused too, before anything is written.

mod book;
mod change;
mod keeper;

pub use book::{Book, Changed, Kind, Piece, PieceId};
pub use change::{Change, Stale};
pub use keeper::{Asking, BookError, Entry, Judge, Keeper, NodeSeen, Source, SourceKind, Wrong};
