//! The rows of a book, read and written.

use super::{
    batch::{batches, times},
    database::{Database, Failed, Held, maybe, number, text},
};
use crate::{Book, BookError, Changed, Kind, Piece, PieceId, Stale, Wrong, hash};
use std::{
    collections::{HashMap, HashSet},
    fmt::Write,
};

/// A book, and where its rows stand.
pub(super) struct Rows {
    pub(super) book: Book,
    /// By piece.
    places: HashMap<PieceId, i64>,
}

/// Which book a database has.
pub(super) struct Counted {
    pub(super) revision: String,
    /// Its switch.
    enabled: bool,
    /// How many were made through a keeper.
    changes: i64,
}

impl Database {
    /// All rows, in a transaction.
    pub(super) async fn rows(&self, held: Held<'_>) -> Result<Rows, Failed> {
        let Counted { revision, enabled, changes } = self.revision_in(held).await?;
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
        rows.book.is_new = changes == 0 && rows.book.pieces.is_empty() && rows.book.odd.is_empty();
        Ok(rows)
    }

    /// Which book it is, and its switch: the counter that every change of ours moves, and what all rows come to.
    pub(super) async fn revision_in(&self, held: Held<'_>) -> Result<Counted, Failed> {
        let asked = "SELECT revision, enabled FROM tollgate_book WHERE id = 1";
        let (changes, enabled) = match self.query(asked).fetch_optional(&mut *held).await? {
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
        let revision = format!("{changes}{}-{print}", if enabled { "" } else { "-off" });
        Ok(Counted { revision, enabled, changes })
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
        let was: HashMap<PieceId, &Piece> =
            before.book.pieces.iter().map(|piece| (piece.id, piece)).collect();
        let stays: HashSet<PieceId> = after.pieces.iter().map(|piece| piece.id).collect();
        let (left, gone): (Vec<&Piece>, Vec<&Piece>) =
            before.book.pieces.iter().partition(|piece| stays.contains(&piece.id));
        self.delete(held, &gone).await?;
        if before.book.enabled != after.enabled {
            let switch = self.query("UPDATE tollgate_book SET enabled = ? WHERE id = 1");
            switch.bind(i64::from(after.enabled)).execute(&mut *held).await?;
        }
        // Rows stand in another order, or new ones among them.
        let is_moved = !left.iter().map(|piece| piece.id).eq(after.pieces.iter().map(|piece| piece.id));
        let (mut new, mut moved) = (Vec::new(), Vec::new());
        for (place, piece) in (1..).map(|nth: i64| 10 * nth).zip(&after.pieces) {
            match was.get(&piece.id) {
                None => new.push((piece, place)),
                Some(was) => {
                    if *was != piece {
                        self.update(held, was, piece).await?;
                    }
                    if is_moved && before.places.get(&piece.id) != Some(&place) {
                        moved.push((piece.id, place));
                    }
                }
            }
        }
        self.insert(held, &new).await?;
        self.put(held, &moved).await
    }

    async fn delete(&self, held: Held<'_>, gone: &[&Piece]) -> Result<(), Failed> {
        for some in batches(gone, |_| 0) {
            let these =
                some.iter().map(|piece| format!("(id = {} AND version = {})", piece.id.0, piece.version));
            let these = these.collect::<Vec<_>>().join(" OR ");
            let delete = self.composed(&format!("DELETE FROM tollgate_pieces WHERE {these}"));
            let met = delete.execute(&mut *held).await?.rows_affected();
            if met != some.len() as u64 {
                return Err(stale(some));
            }
        }
        Ok(())
    }

    async fn insert(&self, held: Held<'_>, new: &[(&Piece, i64)]) -> Result<(), Failed> {
        for some in batches(new, |(piece, _)| piece.text.len()) {
            let mut insert = self.composed(&format!(
                "INSERT INTO tollgate_pieces (kind, route, name, text, enabled, place, version, changed_at_ms, changed_by) \
                 VALUES {}",
                times("(?, ?, ?, ?, ?, ?, ?, ?, ?)", some.len())
            ));
            for (piece, place) in some {
                insert = insert.bind(word_of(piece.kind)).bind(piece.route.clone()).bind(piece.name.clone());
                insert = insert.bind(piece.text.clone()).bind(i64::from(piece.enabled)).bind(*place);
                insert = insert.bind(piece.version).bind(piece.changed.at_ms).bind(short(&piece.changed.by));
            }
            insert.execute(&mut *held).await?;
        }
        Ok(())
    }

    /// Puts rows in other places.
    async fn put(&self, held: Held<'_>, moved: &[(PieceId, i64)]) -> Result<(), Failed> {
        for some in batches(moved, |_| 0) {
            let cases = some.iter().map(|(id, place)| format!("WHEN {} THEN {place}", id.0));
            let cases = cases.collect::<Vec<_>>().join(" ");
            let ids = some.iter().map(|(id, _)| id.0.to_string()).collect::<Vec<_>>().join(", ");
            let put = self.composed(&format!(
                "UPDATE tollgate_pieces SET place = CASE id {cases} ELSE place END WHERE id IN ({ids})"
            ));
            put.execute(&mut *held).await?;
        }
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
        // None is met where somebody was faster.
        if update.execute(held).await?.rows_affected() == 0 {
            return Err(stale(&[was]));
        }
        Ok(())
    }
}

/// That somebody was faster with one of these.
fn stale(pieces: &[&Piece]) -> Failed {
    let stale =
        pieces.iter().map(|piece| Stale { id: piece.id, made_on: piece.version, there_is: None, by: None });
    BookError::Stale(stale.collect()).into()
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
