//! The table `t_ratelimite_conf`, read as it stands: a row an interface.
//!
//! A row that is enabled is a limit called like its `interfaceUrl`, a token bucket of `rateLimit` a second that holds as many,
//! and a rule of every route for paths that end so, which lets the excess wait for `cache` seconds, half a second where that is
//! NULL. Where a row is disabled its limit lets everything pass: doors that are asked for it by name must not begin to fail
//! because somebody turned a limit off. Nothing is ever written there.

use super::database::{Database, Failed, maybe};
use crate::{
    Asking, Book, BookError, Change, Changed, Entry, Judge, Keeper, Kind, NodeSeen, Piece, PieceId, Source,
    Wrong, hash,
    remembered::{Remembered, plain},
};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Reads a book from a table of somebody else's.
pub struct ConfKeeper {
    database: Database,
    remembered: Mutex<Remembered>,
}

impl ConfKeeper {
    /// In the database at this address. Nothing is asked yet.
    ///
    /// # Errors
    /// It is no address of a database.
    pub fn at(url: &str) -> Result<Self, BookError> {
        Ok(Self { database: Database::at(url)?, remembered: Mutex::default() })
    }

    fn remembered(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn rows(&self) -> Result<Vec<Row>, Failed> {
        use super::dialect::Dialect;
        // As texts: what the columns are made of differs from database to database, and a person is shown what is there.
        let asked = match self.database.dialect() {
            Dialect::MySql => {
                "SELECT CAST(configId AS CHAR) AS id, interfaceUrl AS url, CAST(rateLimit AS CHAR) AS rate, \
                 CAST(cache AS CHAR) AS patience, CAST(status AS CHAR) AS state FROM t_ratelimite_conf ORDER BY configId"
            }
            Dialect::Postgres | Dialect::Sqlite => {
                "SELECT CAST(configId AS TEXT) AS id, CAST(interfaceUrl AS TEXT) AS url, CAST(rateLimit AS TEXT) AS rate, \
                 CAST(cache AS TEXT) AS patience, CAST(status AS TEXT) AS state FROM t_ratelimite_conf ORDER BY configId"
            }
        };
        let rows = self.database.query(asked).fetch_all(&self.database.pool()?).await?;
        let read = |row| {
            Ok(Row {
                id: maybe(row, "id")?.unwrap_or_default(),
                url: maybe(row, "url")?,
                rate: maybe(row, "rate")?,
                patience: maybe(row, "patience")?,
                state: maybe(row, "state")?,
            })
        };
        rows.iter().map(read).collect()
    }
}

/// A row, as it is written there.
#[derive(Clone, Debug, Default)]
struct Row {
    id: String,
    url: Option<String>,
    rate: Option<String>,
    patience: Option<String>,
    state: Option<String>,
}

impl Row {
    fn about(&self) -> String {
        let url = self.url.as_deref().unwrap_or("NULL").escape_debug().to_string();
        format!("row {} of t_ratelimite_conf ({url})", self.id)
    }

    fn wrong(&self, column: &str, message: impl Into<String>) -> Wrong {
        Wrong {
            piece: self.id.parse().ok().map(|id: i64| PieceId(id.saturating_mul(2))),
            about: self.about(),
            line: 1,
            column: 1,
            path: column.to_owned(),
            message: message.into(),
        }
    }

    fn is_on(&self) -> Result<bool, Wrong> {
        match self.state.as_deref() {
            Some("0") => Ok(false),
            Some("1") => Ok(true),
            other => Err(self.wrong("status", format!("must be 0 or 1; read {}", other.unwrap_or("NULL")))),
        }
    }

    fn url(&self) -> Result<&str, Wrong> {
        match self.url.as_deref() {
            None | Some("") => {
                Err(self.wrong("interfaceUrl", "must be the end of a path, such as /AirAvail"))
            }
            Some(url) => Ok(url),
        }
    }

    fn rate(&self) -> Result<u32, Wrong> {
        let rate = self.rate.as_deref();
        let read = rate.and_then(|rate| rate.parse::<u32>().ok()).filter(|rate| *rate > 0);
        read.ok_or_else(|| {
            let read = rate.unwrap_or("NULL");
            self.wrong("rateLimit", format!("must be a whole number a second above 0; read {read}"))
        })
    }

    /// In milliseconds.
    fn patience_ms(&self) -> Result<u64, Wrong> {
        let Some(text) = self.patience.as_deref() else { return Ok(500) };
        match text.parse::<f64>() {
            Ok(seconds) if (0.0..=86_400.0).contains(&seconds) =>
            {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "from 0 to a day"
                )]
                Ok((seconds * 1000.0).round() as u64)
            }
            _ => Err(self.wrong("cache", format!("must be seconds from 0 to 86400; read {text}"))),
        }
    }

    /// A limit, and the rule that charges it where it is on.
    fn pieces(&self) -> Result<Vec<Piece>, Vec<Wrong>> {
        let is_on = self.is_on().map_err(|wrong| vec![wrong])?;
        if !is_on {
            let Some(url) = self.url.as_deref().filter(|url| !url.is_empty()) else { return Ok(Vec::new()) };
            let most = u32::MAX;
            let text = format!("# disabled\ntoken_bucket: {{ rate: {most}/s, burst: {most} }}\n");
            return Ok(vec![self.piece(0, Kind::Limit, url, text)]);
        }
        match (self.url(), self.rate(), self.patience_ms()) {
            (Ok(url), Ok(rate), Ok(patience)) => {
                let excess =
                    if patience == 0 { "reject".to_owned() } else { format!("{{ wait: {patience}ms }}") };
                let quoted = quoted(url);
                let limit = format!("token_bucket: {{ rate: {rate}/s, burst: {rate} }}\n");
                let rule = format!(
                    "when: {{ path: {{ suffix: {quoted} }} }}\nlimits: [ {{ use: {quoted}, key: [] }} ]\nexcess: {excess}\n"
                );
                Ok(vec![self.piece(0, Kind::Limit, url, limit), self.piece(1, Kind::Rule, url, rule)])
            }
            (url, rate, patience) => {
                Err([url.err(), rate.err(), patience.err()].into_iter().flatten().collect())
            }
        }
    }

    fn piece(&self, nth: i64, kind: Kind, name: &str, text: String) -> Piece {
        let id = self.id.parse::<i64>().unwrap_or(0);
        Piece {
            id: PieceId(id.saturating_mul(2).saturating_add(nth)),
            kind,
            route: None,
            name: name.to_owned(),
            text,
            enabled: true,
            version: 1,
            changed: Changed::default(),
        }
    }
}

/// A text that YAML takes for itself, and nothing from the environment.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.replace("${", "$${").chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// The book that the rows are, or everything that is wrong with them.
fn book_of(rows: &[Row]) -> Result<Book, BookError> {
    let mut wrong = Vec::new();
    let mut on: HashMap<&str, &Row> = HashMap::new();
    for row in rows {
        let (Some(url), Ok(true)) = (row.url.as_deref(), row.is_on()) else { continue };
        if let Some(first) = on.insert(url, row) {
            let message =
                format!("is enabled for this URL, and so is {}; disable one of them", first.about());
            wrong.push(row.wrong("interfaceUrl", message));
        }
    }
    let mut pieces: Vec<Piece> = Vec::new();
    let mut off: Vec<Piece> = Vec::new();
    for row in rows {
        match row.pieces() {
            Ok(of_row) if of_row.len() == 1 => off.extend(of_row),
            Ok(of_row) => pieces.extend(of_row),
            Err(mistakes) => wrong.extend(mistakes),
        }
    }
    if !wrong.is_empty() {
        return Err(BookError::Wrong(wrong));
    }
    for limit in off {
        if !pieces.iter().any(|piece| piece.kind == Kind::Limit && piece.name == limit.name) {
            pieces.push(limit);
        }
    }
    let mut book = Book { revision: revision_of(rows), enabled: true, pieces, ..Book::default() };
    book.sort();
    Ok(book)
}

fn revision_of(rows: &[Row]) -> String {
    format!("{}-{:016x}", rows.len(), hash(format!("{rows:?}").as_bytes()))
}

impl Keeper for ConfKeeper {
    fn source(&self) -> Source {
        let why = "the table t_ratelimite_conf belongs to another program; change it there";
        self.database.source(Some(why.to_owned()))
    }

    fn read(&self) -> Asking<'_, Book> {
        Box::pin(async { book_of(&self.database.within(self.rows()).await?) })
    }

    fn revision(&self) -> Asking<'_, String> {
        Box::pin(async { Ok(revision_of(&self.database.within(self.rows()).await?)) })
    }

    fn change<'a>(&'a self, _: &'a [Change], _: &'a str, _: Judge<'a>) -> Asking<'a, Book> {
        let why = self.source().read_only.unwrap_or_default();
        Box::pin(async { Err(BookError::Refused(why)) })
    }

    fn note<'a>(&'a self, by: &'a str, action: &'a str, about: &'a str) -> Asking<'a, ()> {
        Box::pin(async move {
            self.remembered().note(plain(by, action, about));
            Ok(())
        })
    }

    fn history(&self, before: Option<i64>, most: usize) -> Asking<'_, Vec<Entry>> {
        Box::pin(async move { Ok(self.remembered().history(before, most)) })
    }

    fn seen<'a>(&'a self, node: &'a NodeSeen) -> Asking<'a, ()> {
        Box::pin(async move {
            self.remembered().node = Some(node.clone());
            Ok(())
        })
    }

    fn nodes(&self) -> Asking<'_, Vec<NodeSeen>> {
        Box::pin(async { Ok(self.remembered().node.iter().cloned().collect()) })
    }
}
