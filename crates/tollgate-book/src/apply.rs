//! What a book is after some changes: worked out, not written.
//!
//! One place says what every change means, for files and tables, for a trial and for good. Whoever keeps the book writes down
//! the difference.

use crate::{Book, BookError, Change, Changed, Kind, Piece, PieceId, Stale};
use tollgate_rules::pieces::{SwitchError, WhichSwitch, is_on, switch_text};

/// A book with changes made, and what the audit is told.
#[derive(Clone, Debug)]
pub(crate) struct Applied {
    pub(crate) book: Book,
    pub(crate) done: Vec<Done<'static>>,
}

/// One thing that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done<'a> {
    pub(crate) action: &'a str,
    pub(crate) about: String,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
}

/// Whether changes must have been made on the versions that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versions {
    /// One that was not is refused.
    Asked,
    /// For a trial: what would it be?
    Waived,
}

/// The book as it would be after these changes; nothing is written. New pieces have numbers below zero.
///
/// # Errors
/// A change is stale, or cannot be made. Whether the outcome is good rules is another question: [`compose`](crate::compose).
pub fn applied(book: &Book, changes: &[Change], versions: Versions) -> Result<Book, BookError> {
    apply(book, changes, &Changed::default(), versions).map(|applied| applied.book)
}

pub(crate) fn apply(
    book: &Book,
    changes: &[Change],
    changed: &Changed,
    versions: Versions,
) -> Result<Applied, BookError> {
    if versions == Versions::Asked {
        let stale = stale(book, changes);
        if !stale.is_empty() {
            return Err(BookError::Stale(stale));
        }
    }
    let mut making = Making { book: book.clone(), done: Vec::new(), changed, created: 0 };
    for change in changes {
        making.make(change)?;
    }
    let Making { mut book, done, .. } = making;
    book.sort();
    Ok(Applied { book, done })
}

/// The changes that were made on other versions than there are.
fn stale(book: &Book, changes: &[Change]) -> Vec<Stale> {
    let named = changes.iter().filter_map(|change| match change {
        Change::Edit { id, version, .. }
        | Change::Enable { id, version, .. }
        | Change::Move { id, version, .. }
        | Change::Delete { id, version } => Some((*id, *version)),
        Change::Create { .. } | Change::Switch { .. } | Change::SwitchRule { .. } => None,
    });
    let is_stale = |(id, made_on): (PieceId, i64)| {
        let piece = book.piece(id);
        let there_is = piece.map(|piece| piece.version);
        let by = piece.map(|piece| piece.changed.by.clone()).filter(|by| !by.is_empty());
        (there_is != Some(made_on)).then_some(Stale { id, made_on, there_is, by })
    };
    named.filter_map(is_stale).collect()
}

struct Making<'a> {
    book: Book,
    done: Vec<Done<'static>>,
    changed: &'a Changed,
    created: i64,
}

impl Making<'_> {
    fn make(&mut self, change: &Change) -> Result<(), BookError> {
        match change {
            Change::Create { kind, route, name, text, enabled, before } => {
                self.create(*kind, route.as_deref(), name, text, *enabled, *before)
            }
            Change::Edit { id, name, text, .. } => self.edit(*id, name.as_deref(), text),
            Change::Enable { id, enabled, .. } => self.enable(*id, *enabled),
            Change::Move { id, before, .. } => self.move_to(*id, *before),
            Change::Delete { id, .. } => self.delete(*id),
            Change::Switch { enabled } => self.switch(*enabled),
            Change::SwitchRule { route, rule, enabled } => self.switch_rule(route.as_deref(), rule, *enabled),
        }
    }

    fn create(
        &mut self,
        kind: Kind,
        route: Option<&str>,
        name: &str,
        text: &str,
        enabled: bool,
        before: Option<PieceId>,
    ) -> Result<(), BookError> {
        if self.file().is_some() || kind == Kind::File {
            return Err(BookError::Refused(
                "the rules are one file here: a piece is created by editing its text".to_owned(),
            ));
        }
        if route.is_some() && kind != Kind::Rule {
            return Err(BookError::Refused("only a rule belongs to a route".to_owned()));
        }
        let is_switched = matches!(kind, Kind::Route | Kind::Rule);
        if !enabled && !is_switched {
            return Err(always_on(kind));
        }
        self.created += 1;
        let piece = Piece {
            id: PieceId(-self.created),
            kind,
            route: route.map(str::to_owned),
            name: name.to_owned(),
            text: text.to_owned(),
            enabled,
            version: 1,
            changed: self.changed.clone(),
        };
        let about = piece.about();
        self.put(piece, before)?;
        self.done.push(Done { action: "create", about, before: None, after: Some(text.to_owned()) });
        Ok(())
    }

    fn edit(&mut self, id: PieceId, name: Option<&str>, text: &str) -> Result<(), BookError> {
        let changed = self.changed.clone();
        let piece = self.piece(id)?;
        if piece.kind == Kind::File && name.is_some_and(|name| name != piece.name) {
            return Err(BookError::Refused("the file cannot be renamed from here".to_owned()));
        }
        let (about, before) = (piece.about(), piece.text.clone());
        let old = piece.name.clone();
        text.clone_into(&mut piece.text);
        if let Some(name) = name {
            name.clone_into(&mut piece.name);
        }
        touch(piece, &changed);
        let (kind, new) = (piece.kind, piece.name.clone());
        if kind == Kind::Route && new != old {
            for rule in self.book.pieces.iter_mut().filter(|piece| piece.route.as_deref() == Some(&old)) {
                rule.route = Some(new.clone());
                touch(rule, &changed);
            }
        }
        if kind == Kind::File {
            self.book.enabled = is_on(text).unwrap_or(self.book.enabled);
        }
        let after = if new == old { text.to_owned() } else { format!("# now called {new}\n{text}") };
        self.done.push(Done { action: "edit", about, before: Some(before), after: Some(after) });
        Ok(())
    }

    fn enable(&mut self, id: PieceId, enabled: bool) -> Result<(), BookError> {
        let changed = self.changed.clone();
        let piece = self.piece(id)?;
        match piece.kind {
            Kind::Limit | Kind::Upstream if !enabled => return Err(always_on(piece.kind)),
            Kind::File => {
                return Err(BookError::Refused(
                    "a file is not switched off: the global switch is, or a rule".to_owned(),
                ));
            }
            _ => {}
        }
        let was = std::mem::replace(&mut piece.enabled, enabled);
        touch(piece, &changed);
        let about = piece.about();
        self.note_switch("enable", about, was, enabled);
        Ok(())
    }

    fn move_to(&mut self, id: PieceId, before: Option<PieceId>) -> Result<(), BookError> {
        let changed = self.changed.clone();
        let place = self.place(id)?;
        if self.book.pieces[place].kind == Kind::File {
            return Err(BookError::Refused("a file has no place among others".to_owned()));
        }
        if before == Some(id) {
            return Ok(());
        }
        let mut piece = self.book.pieces.remove(place);
        touch(&mut piece, &changed);
        let about = piece.about();
        let after = match before.and_then(|before| self.book.piece(before)) {
            Some(next) => format!("in front of {}", next.about()),
            None => "last".to_owned(),
        };
        self.put(piece, before)?;
        self.done.push(Done { action: "move", about, before: None, after: Some(after) });
        Ok(())
    }

    fn delete(&mut self, id: PieceId) -> Result<(), BookError> {
        let place = self.place(id)?;
        if self.book.pieces[place].kind == Kind::File {
            return Err(BookError::Refused("the file is not deleted from here".to_owned()));
        }
        let piece = self.book.pieces.remove(place);
        let mut gone = vec![piece.clone()];
        let is_last = !self.book.pieces.iter().any(|it| it.kind == Kind::Route && it.name == piece.name);
        if piece.kind == Kind::Route && is_last {
            let of_it = |rule: &Piece| rule.route.as_ref() == Some(&piece.name);
            let (rules, kept) = std::mem::take(&mut self.book.pieces).into_iter().partition(of_it);
            self.book.pieces = kept;
            gone.extend::<Vec<_>>(rules);
        }
        for piece in gone {
            let about = piece.about();
            self.done.push(Done { action: "delete", about, before: Some(piece.text), after: None });
        }
        Ok(())
    }

    fn switch(&mut self, enabled: bool) -> Result<(), BookError> {
        let changed = self.changed.clone();
        let was = self.book.enabled;
        if let Some(file) = self.file() {
            let text = switch_text(&file.text, WhichSwitch::Global, enabled).map_err(unturned)?;
            if text != file.text {
                file.text = text;
                touch(file, &changed);
            }
        }
        self.book.enabled = enabled;
        self.note_switch("switch", "everything".to_owned(), was, enabled);
        Ok(())
    }

    fn switch_rule(&mut self, route: Option<&str>, rule: &str, enabled: bool) -> Result<(), BookError> {
        let changed = self.changed.clone();
        let about = match route {
            Some(route) => format!("rule {}/{}", route.escape_debug(), rule.escape_debug()),
            None => format!("rule {}", rule.escape_debug()),
        };
        let was = if let Some(file) = self.file() {
            let text =
                switch_text(&file.text, WhichSwitch::Rule { route, rule }, enabled).map_err(unturned)?;
            let was = if text == file.text { enabled } else { !enabled };
            if text != file.text {
                file.text = text;
                touch(file, &changed);
            }
            was
        } else {
            let is_it = |piece: &&mut Piece| {
                piece.kind == Kind::Rule && piece.name == rule && piece.route.as_deref() == route
            };
            let Some(piece) = self.book.pieces.iter_mut().find(is_it) else {
                return Err(BookError::Missing(format!("there is no {about}")));
            };
            let was = std::mem::replace(&mut piece.enabled, enabled);
            if was != enabled {
                touch(piece, &changed);
            }
            was
        };
        self.note_switch("enable", about, was, enabled);
        Ok(())
    }

    fn note_switch(&mut self, action: &'static str, about: String, was: bool, is: bool) {
        let word = |on: bool| Some(if on { "on" } else { "off" }.to_owned());
        self.done.push(Done { action, about, before: word(was), after: word(is) });
    }

    /// Puts a piece in front of another of its standing, or last.
    fn put(&mut self, piece: Piece, before: Option<PieceId>) -> Result<(), BookError> {
        let at = match before {
            None => self.book.pieces.len(),
            Some(before) => {
                let place = self.place(before)?;
                let next = &self.book.pieces[place];
                if next.kind != piece.kind || next.route != piece.route {
                    return Err(BookError::Refused(format!(
                        "{} cannot stand in front of {}: they are not in one list",
                        piece.about(),
                        next.about()
                    )));
                }
                place
            }
        };
        self.book.pieces.insert(at, piece);
        Ok(())
    }

    fn file(&mut self) -> Option<&mut Piece> {
        self.book.pieces.iter_mut().find(|piece| piece.kind == Kind::File)
    }

    fn place(&self, id: PieceId) -> Result<usize, BookError> {
        let place = self.book.pieces.iter().position(|piece| piece.id == id);
        // Named twice in one go, and gone after the first.
        place.ok_or_else(|| BookError::Missing(format!("there is no piece {}", id.0)))
    }

    fn piece(&mut self, id: PieceId) -> Result<&mut Piece, BookError> {
        let place = self.place(id)?;
        Ok(&mut self.book.pieces[place])
    }
}

/// Notes that a piece was changed. Of a file the keeper tells the version from its text.
fn touch(piece: &mut Piece, changed: &Changed) {
    if piece.id.0 > 0 && piece.kind != Kind::File {
        piece.version = piece.version.saturating_add(1);
    }
    piece.changed = changed.clone();
}

fn always_on(kind: Kind) -> BookError {
    let what = if kind == Kind::Limit { "a limit" } else { "an upstream" };
    BookError::Refused(format!("{what} is not switched off: the rules and routes that use it are"))
}

fn unturned(error: SwitchError) -> BookError {
    match error {
        SwitchError::Unknown(why) => BookError::Missing(why),
        error => BookError::Refused(error.to_string()),
    }
}
