//! The database that has the rules.

use std::{fmt, path::PathBuf, time::Duration};

/// Where rules are kept that are not in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesFrom {
    /// Which database.
    pub source: SourceUrl,
    /// How often it is asked for changes.
    pub poll: Duration,
    /// Which of its tables.
    pub table: RuleTable,
    /// A file that keeps the last good rules, for when the database is away at the start.
    pub cache: Option<PathBuf>,
}

/// The address of a database. It may hold a password, and is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct SourceUrl(pub String);

impl fmt::Debug for SourceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SourceUrl")
    }
}

/// Which tables have the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleTable {
    /// Our own.
    Native,
    /// `t_ratelimite_conf`, read as it stands.
    RateLimitConf,
}
