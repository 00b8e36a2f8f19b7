//! `rules_from`: the database that has the rules. What belongs to a node stays in its file.

use crate::{
    decode::{Cursor, Fields, record},
    limit::{defaulted, duration},
    model::{RuleTable, RulesFrom, SourceUrl},
    schema,
};
use std::{path::PathBuf, time::Duration};

/// The keys that a database has instead of the file.
pub(crate) const RULES_KEYS: [&str; 5] = ["enabled", "limits", "upstreams", "everywhere", "routes"];

/// What is said of one that stands in the file all the same.
pub(crate) const TO_MOVE: &str = "must not stand here, for the rules are in the database (`rules_from`); move it there with `tollgate rules push`";

const TABLES: [(&str, RuleTable); 2] =
    [("native", RuleTable::Native), ("t_ratelimite_conf", RuleTable::RateLimitConf)];

/// Reads `rules_from`.
pub(super) fn rules_from(from: &Cursor<'_>) -> Option<RulesFrom> {
    let mut fields = from.mapping(&schema::RULES_FROM)?;
    record!(fields => RulesFrom {
        source: fields.required("source").and_then(|source| self::source(&source)),
        poll: fields.defaulted("poll", self::poll),
        table: fields.defaulted("table", |table| table.choice(&TABLES)),
        cache: defaulted(fields.optional("cache"), None, |cache| path(cache).map(Some)),
    })
}

/// Notes what must not stand beside it.
pub(super) fn alone(fields: &Fields<'_>, from: &RulesFrom) {
    if from.table == RuleTable::Native {
        for name in RULES_KEYS {
            if !fields.among(&[name]).is_empty() {
                fields.mistake(name, TO_MOVE);
            }
        }
    }
}

/// The address of a database. Only its kind is looked at; never shown, since it may hold a password.
fn source(source: &Cursor<'_>) -> Option<SourceUrl> {
    const SCHEMES: [&str; 5] = ["mysql", "mariadb", "postgres", "postgresql", "sqlite"];
    const EXPECTED: &str = "must begin with `mysql://`, `mariadb://`, `postgres://`, `postgresql://` or `sqlite://`; it is not shown, \
        because it can contain a password";
    let text = source.text("the address of a database, such as mysql://user:password@127.0.0.1/rules")?;
    let message = match text.split_once("://") {
        Some((scheme, "")) if SCHEMES.contains(&scheme) => "names no database, such as sqlite://rules.db",
        Some((scheme, _)) if SCHEMES.contains(&scheme) => return Some(SourceUrl(text.to_owned())),
        _ => EXPECTED,
    };
    source.mistake(message);
    None
}

fn poll(poll: &Cursor<'_>) -> Option<Duration> {
    const LEAST: Duration = Duration::from_millis(50);
    const MOST: Duration = Duration::from_secs(3600);
    let read = duration(poll)?;
    if read < LEAST || read > MOST {
        poll.mistake("must be from 50ms to 1h, such as 2s");
        return None;
    }
    Some(read)
}

fn path(path: &Cursor<'_>) -> Option<PathBuf> {
    match path.text("a path such as /var/lib/tollgate/rules.yaml")? {
        "" => {
            path.mistake("must not be empty: a path such as /var/lib/tollgate/rules.yaml");
            None
        }
        text => Some(PathBuf::from(text)),
    }
}
