//! The rows of a book, read and written.

use super::database::{Database, Failed, Held, maybe, number, text};
use crate::{Book, BookError, Changed, Kind, Piece, PieceId, Stale, Wrong, hash};
use std::{collections::HashMap, fmt::Write};

/// A book, and where its rows stand.
pub(super) struct Rows {
    pub(super) book: Book,
    /// By piece.
    places: HashMap<PieceId, i64>,
}

impl Database {
    /// All rows, in a transaction.
    pub(super) async fn rows(&self, held: Held<'_>) -> Result<Rows, Failed> {
        let (revision, enabled) = self.revision_in(held).await?;
        let asked = "SELECT id, kind, route, name, text, enabled, place, version, changed_at_ms, changed_by \
                     FROM tollgate_pieces ORDER BY place, id";
        let book = Book { revision, enabled, ..Book::default() };
        let mut rows = Rows { book, places: HashMap::new() };
        for row in self.query(asked).fetch_all(held).await? {
            let id = PieceId(number(&row, "id")?);
            let kind = text(&row, "kind")?;
            let name = text(&row, "name")?;
            rows.places.insert(id, number(&row, "place")?);
            let Some(kind) = kind_of(&kind) else {
                rows.book.odd.push(odd(id, &name, &kind));
                continue;
            };
            rows.book.pieces.push(Piece {
                id,
                kind,
                // A hand may write an empty text for nothing.
                route: maybe(&row, "route")?.filter(|route| !route.is_empty()),
                name,
                text: text(&row, "text")?,
                enabled: number(&row, "enabled")? != 0,
                version: number(&row, "version")?,
                changed: Changed { at_ms: number(&row, "changed_at_ms")?, by: text(&row, "changed_by")? },
            });
        }
        rows.book.sort();
        Ok(rows)
    }

    /// Which book it is, and its switch: the counter that every change of ours moves, and what all rows come to.
    pub(super) async fn revision_in(&self, held: Held<'_>) -> Result<(String, bool), Failed> {
        let asked = "SELECT revision, enabled FROM tollgate_book WHERE id = 1";
        let (count, enabled) = match self.query(asked).fetch_optional(&mut *held).await? {
            Some(row) => (number(&row, "revision")?, number(&row, "enabled")? != 0),
            None => {
                let why = "the table tollgate_book has lost its row; put it back: INSERT INTO tollgate_book (id) VALUES (1)";
                return Err(BookError::Refused(why.to_owned()).into());
            }
        };
        let print = match self.dialect().fingerprint() {
            Some(asked) => {
                let row = sqlx::query(asked).fetch_one(held).await?;
                text(&row, "print")?
            }
            None => self.print_of_rows(held).await?,
        };
        Ok((format!("{count}{}-{print}", if enabled { "" } else { "-off" }), enabled))
    }

    /// What all rows come to, where the database cannot say it.
    async fn print_of_rows(&self, held: Held<'_>) -> Result<String, Failed> {
        let asked =
            "SELECT id, kind, route, name, text, enabled, place, version FROM tollgate_pieces ORDER BY id";
        let mut all = String::new();
        let rows = self.query(asked).fetch_all(held).await?;
        for row in &rows {
            let numbers =
                [number(row, "id")?, number(row, "enabled")?, number(row, "place")?, number(row, "version")?];
            let texts = (text(row, "kind")?, maybe(row, "route")?, text(row, "name")?, text(row, "text")?);
            // Writing to a text does not fail.
            let _ = write!(all, "{numbers:?}{texts:?}");
        }
        Ok(format!("{}-{:016x}", rows.len(), hash(all.as_bytes())))
    }

    /// Writes down how one book differs from another. What somebody changed meanwhile by hand makes it stale.
    pub(super) async fn write(&self, held: Held<'_>, before: &Rows, after: &Book) -> Result<(), Failed> {
        for gone in before.book.pieces.iter().filter(|piece| after.piece(piece.id).is_none()) {
            let delete = self.query("DELETE FROM tollgate_pieces WHERE id = ? AND version = ?");
            let done = delete.bind(gone.id.0).bind(gone.version).execute(&mut *held).await?;
            one(done.rows_affected(), gone)?;
        }
        if before.book.enabled != after.enabled {
            let switch = self.query("UPDATE tollgate_book SET enabled = ? WHERE id = 1");
            switch.bind(i64::from(after.enabled)).execute(&mut *held).await?;
        }
        let is_moved = self.is_moved(before, after);
        for (index, piece) in after.pieces.iter().enumerate() {
            let place = 10 * (i64::try_from(index).unwrap_or(i64::MAX / 20) + 1);
            match before.book.piece(piece.id) {
                None => self.insert(held, piece, place).await?,
                Some(was) => {
                    if was != piece {
                        self.update(held, was, piece).await?;
                    }
                    if is_moved && before.places.get(&piece.id) != Some(&place) {
                        let update = self.query("UPDATE tollgate_pieces SET place = ? WHERE id = ?");
                        update.bind(place).bind(piece.id.0).execute(&mut *held).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether rows stand in another order, or new ones among them.
    #[expect(clippy::unused_self, reason = "it reads as one of the verbs")]
    fn is_moved(&self, before: &Rows, after: &Book) -> bool {
        let left = before.book.pieces.iter().filter(|piece| after.piece(piece.id).is_some());
        !left.map(|piece| piece.id).eq(after.pieces.iter().map(|piece| piece.id))
    }

    async fn insert(&self, held: Held<'_>, piece: &Piece, place: i64) -> Result<(), Failed> {
        let insert = self.query(
            "INSERT INTO tollgate_pieces (kind, route, name, text, enabled, place, version, changed_at_ms, changed_by) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        );
        let insert = insert.bind(word_of(piece.kind)).bind(piece.route.clone()).bind(piece.name.clone());
        let insert =
            insert.bind(piece.text.clone()).bind(i64::from(piece.enabled)).bind(place).bind(piece.version);
        insert.bind(piece.changed.at_ms).bind(short(&piece.changed.by)).execute(held).await?;
        Ok(())
    }

    async fn update(&self, held: Held<'_>, was: &Piece, piece: &Piece) -> Result<(), Failed> {
        let update = self.query(
            "UPDATE tollgate_pieces SET route = ?, name = ?, text = ?, enabled = ?, version = ?, changed_at_ms = ?, \
             changed_by = ? WHERE id = ? AND version = ?",
        );
        let update = update.bind(piece.route.clone()).bind(piece.name.clone()).bind(piece.text.clone());
        let update = update.bind(i64::from(piece.enabled)).bind(piece.version).bind(piece.changed.at_ms);
        let update = update.bind(short(&piece.changed.by)).bind(piece.id.0).bind(was.version);
        one(update.execute(held).await?.rows_affected(), was)
    }
}

/// That one row was met; none is there where somebody was faster.
fn one(met: u64, piece: &Piece) -> Result<(), Failed> {
    match met {
        0 => {
            let stale = Stale { id: piece.id, made_on: piece.version, there_is: None, by: None };
            Err(BookError::Stale(vec![stale]).into())
        }
        _ => Ok(()),
    }
}

fn kind_of(word: &str) -> Option<Kind> {
    [Kind::Limit, Kind::Upstream, Kind::Route, Kind::Rule].into_iter().find(|kind| word_of(*kind) == word)
}

const fn word_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Limit => "limit",
        Kind::Upstream => "upstream",
        Kind::Route => "route",
        Kind::Rule => "rule",
        Kind::File => "file",
    }
}

fn odd(id: PieceId, name: &str, kind: &str) -> Wrong {
    Wrong {
        piece: Some(id),
        about: format!("row {} of tollgate_pieces ({})", id.0, name.escape_debug()),
        line: 1,
        column: 1,
        path: "kind".to_owned(),
        message: format!("must be one of `limit`, `upstream`, `route`, `rule`; read {kind:?}"),
    }
}

/// As long as a name may be.
pub(super) fn short(text: &str) -> String {
    text.chars().take(128).collect()
}
