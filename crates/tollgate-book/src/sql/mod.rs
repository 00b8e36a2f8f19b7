//! Books in databases: our own tables, and one of somebody else's.
//!
//! MySQL and MariaDB, PostgreSQL and SQLite are asked in the same words, with the few that differ in `dialect.rs`. Everything is
//! bounded: connections, how long one is waited for, how long an answer is. A connection that was lost is made anew for the
//! next question.
//!
//! **Revisions.** A book's revision is computed from the contents of all rows, by the server where there is one, beside a
//! counter that every change of ours increments. Triggers would need rights that few databases grant, and a version column
//! alone would miss edits by hand. The counter's row is also the lock that changes wait at for each other.
//!
//! **Changes.** Several changes are one transaction. Each names the version it was made on; the result is composed and
//! judged before the commit, and a stale or invalid change writes nothing. The two switches carry no version: an operator
//! who turns a limit off at night wants it off, whatever else was edited. Every change leaves an audit entry.

mod address;
mod batch;
mod conf;
mod database;
mod dialect;
mod keeper;
mod migrations;
mod rows;

pub use conf::ConfKeeper;
pub use keeper::SqlKeeper;

use crate::{BookError, Keeper};
use std::sync::Arc;
use tollgate_rules::model::{RuleTable, RulesFrom};

/// Whoever keeps the rules that a file says are in a database. Nothing is asked yet.
///
/// # Errors
/// The address is none.
pub fn keeper_of(from: &RulesFrom) -> Result<Arc<dyn Keeper>, BookError> {
    Ok(match from.table {
        RuleTable::Native => Arc::new(SqlKeeper::at(&from.source.0)?),
        RuleTable::RateLimitConf => Arc::new(ConfKeeper::at(&from.source.0)?),
    })
}
