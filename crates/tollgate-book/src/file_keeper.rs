//! The rule file as a book: one piece, its text.
//!
//! A change is written to a file beside it, which then takes its name, so that nobody ever reads half of it; permissions stay.
//! The version of the piece is told from the text, so that an edit on a text that was changed by hand meanwhile is stale,
//! also after a restart. What was done is remembered until the process ends, the last thousand entries of it.

use crate::{
    Asking, Book, BookError, Change, Changed, Entry, Judge, Keeper, Kind, NodeSeen, Piece, PieceId, Source,
    SourceKind, Stale,
    apply::{Versions, apply},
    now_ms,
    remembered::{Remembered, plain},
};
use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    process,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::UNIX_EPOCH,
};
use tollgate_rules::pieces::is_on;

/// Keeps a book in a file.
pub struct FileKeeper {
    path: PathBuf,
    written: Mutex<Written>,
}

/// What was done from here.
#[derive(Default)]
struct Written {
    remembered: Remembered,
    /// The version that was written last, and by whom.
    last: Option<(i64, Changed)>,
}

impl FileKeeper {
    /// Keeps the file at this path, which is read when somebody asks.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path, written: Mutex::default() }
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn book(&self, written: &Written) -> Result<Book, BookError> {
        let mut book = self.document(self.text()?);
        let written = written.last.iter();
        for piece in &mut book.pieces {
            piece.changed = match written.clone().find(|(version, _)| *version == piece.version) {
                Some((_, changed)) => changed.clone(),
                None => Changed { at_ms: modified(&self.path), by: String::new() },
            };
        }
        Ok(book)
    }

    fn text(&self) -> Result<String, BookError> {
        let name = self.path.display();
        let unread = |error: io::Error| BookError::Unreachable(format!("cannot read {name}: {error}"));
        fs::read_to_string(&self.path).map_err(unread)
    }

    /// The book that the file is with this text; whose work it is is not known.
    #[must_use]
    pub fn document(&self, text: String) -> Book {
        let piece = Piece {
            id: PieceId(1),
            kind: Kind::File,
            route: None,
            name: self.path.display().to_string(),
            enabled: true,
            version: version_of(&text),
            changed: Changed::default(),
            text,
        };
        Book {
            revision: Self::revision_of(&piece.text),
            enabled: is_on(&piece.text).unwrap_or(true),
            pieces: vec![piece],
            ..Book::default()
        }
    }

    /// The revision of the book that a file with this text is.
    #[must_use]
    pub fn revision_of(text: &str) -> String {
        format!("{:x}", version_of(text))
    }

    fn changed(&self, changes: &[Change], by: &str, judge: Judge<'_>) -> Result<Book, BookError> {
        // Held meanwhile: changes from here come one after the other.
        let mut written = self.written();
        let before = self.book(&written)?;
        let changed = Changed { at_ms: now_ms(), by: by.to_owned() };
        let applied = apply(&before, changes, &changed, Versions::Asked)?;
        if !changes.iter().all(Change::is_switch) {
            judge(&applied.book).map_err(BookError::Wrong)?;
        }
        let (was, after) = (text_of(&before), text_of(&applied.book));
        if after != was {
            let is_as_read = || fs::read_to_string(&self.path).is_ok_and(|now| now == was);
            let replaced = replace_if(&self.path, after, is_as_read).map_err(|error| {
                BookError::Refused(format!("cannot write {}: {error}", self.path.display()))
            })?;
            if !replaced {
                let now = self.book(&written)?;
                let there_is = now.pieces.first().map(|piece| piece.version);
                let stale = Stale { id: PieceId(1), made_on: version_of(was), there_is, by: None };
                return Err(BookError::Stale(vec![stale]));
            }
            written.last = Some((version_of(after), changed.clone()));
        }
        for done in applied.done {
            let entry = plain(by, done.action, &done.about);
            written.remembered.note(Entry { before: done.before, after: done.after, ..entry });
        }
        self.book(&written)
    }
}

impl Keeper for FileKeeper {
    fn source(&self) -> Source {
        Source { kind: SourceKind::File, name: self.path.display().to_string(), read_only: None }
    }

    fn read(&self) -> Asking<'_, Book> {
        Box::pin(async { self.book(&self.written()) })
    }

    fn revision(&self) -> Asking<'_, String> {
        Box::pin(async { Ok(Self::revision_of(&self.text()?)) })
    }

    fn change<'a>(&'a self, changes: &'a [Change], by: &'a str, judge: Judge<'a>) -> Asking<'a, Book> {
        Box::pin(async move { self.changed(changes, by, judge) })
    }

    fn note<'a>(&'a self, by: &'a str, action: &'a str, about: &'a str) -> Asking<'a, ()> {
        Box::pin(async move {
            self.written().remembered.note(plain(by, action, about));
            Ok(())
        })
    }

    fn history(&self, before: Option<i64>, most: usize) -> Asking<'_, Vec<Entry>> {
        Box::pin(async move { Ok(self.written().remembered.history(before, most)) })
    }

    fn seen<'a>(&'a self, node: &'a NodeSeen) -> Asking<'a, ()> {
        Box::pin(async move {
            self.written().remembered.node = Some(node.clone());
            Ok(())
        })
    }

    fn nodes(&self) -> Asking<'_, Vec<NodeSeen>> {
        Box::pin(async { Ok(self.written().remembered.node.iter().cloned().collect()) })
    }
}

fn text_of(book: &Book) -> &str {
    book.pieces.first().map_or("", |piece| &piece.text)
}

/// Tells texts apart: a hash of 53 bits, so that every program of a console counts it exactly.
fn version_of(text: &str) -> i64 {
    let hash = crate::hash(text.as_bytes()) >> 11;
    i64::try_from(hash).unwrap_or(i64::MAX)
}

fn modified(path: &Path) -> i64 {
    let since = fs::metadata(path).and_then(|about| about.modified()).ok();
    let since = since.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    since.and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or(0)
}

/// Puts a text in the place of a file's: all of it at once, with the file's own permissions.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    replace_if(path, text, || true).map(|_| ())
}

/// The same, where `is_wanted` still says so once all that takes time is done; whether it was.
fn replace_if(path: &Path, text: &str, is_wanted: impl FnOnce() -> bool) -> io::Result<bool> {
    // A link stays one; what it names is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let nth = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let beside = path.with_file_name(format!(".{name}.{}-{nth}.new", process::id()));
    let written = (|| {
        let mut file = fs::File::create(&beside)?;
        if let Ok(about) = fs::metadata(&path) {
            file.set_permissions(about.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        if !is_wanted() {
            return Ok(false);
        }
        fs::rename(&beside, &path).map(|()| true)
    })();
    if !matches!(written, Ok(true)) {
        let _ = fs::remove_file(&beside);
    }
    written
}
