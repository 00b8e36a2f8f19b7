//! The last good book, in a file of the node: a start does not depend on the database.
//!
//! It is a rule file of its own, so that a person can read it; only its owner may. A book that came from it says so in its
//! revision.

use crate::{Book, Changed, Kind, Piece, PieceId, file_keeper::replace, texts};
use std::{fs, io, path::PathBuf};
use tollgate_rules::pieces::{PieceKind, split_rules, whole_text};

/// What the text of a cache begins with; `whole_text` puts the pieces behind it.
const OWN: &str = "version: 1";

/// Keeps the last good book.
#[derive(Clone, Debug)]
pub struct Cache {
    path: PathBuf,
}

impl Cache {
    /// In this file.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Writes a book down.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, book: &Book) -> io::Result<()> {
        let text = whole_text(OWN, book.enabled, &texts(&book.pieces))
            .map_err(|wrong| io::Error::other(wrong.first().map(ToString::to_string).unwrap_or_default()))?;
        let text = format!(
            "# The last good rules of {}, kept by tollgate: written anew whenever they change.\n{text}",
            book.revision
        );
        if !self.path.exists() {
            private(&self.path)?;
        }
        replace(&self.path, &text)
    }

    /// The book that was written down, if there is one that can be read.
    ///
    /// # Errors
    /// There is none, or it was spoiled.
    pub fn read(&self, environment: impl Fn(&str) -> Option<String>) -> io::Result<Book> {
        let text = fs::read_to_string(&self.path)?;
        let split = split_rules(&text, environment).map_err(io::Error::other)?;
        let piece = |(index, text): (usize, tollgate_rules::pieces::PieceText)| Piece {
            id: PieceId(i64::try_from(index + 1).unwrap_or(i64::MAX)),
            kind: match text.kind {
                PieceKind::Limit => Kind::Limit,
                PieceKind::Upstream => Kind::Upstream,
                PieceKind::Route => Kind::Route,
                PieceKind::Rule => Kind::Rule,
            },
            route: text.route,
            name: text.name,
            text: text.text,
            enabled: text.enabled,
            version: 0,
            changed: Changed::default(),
        };
        let pieces = split.pieces.into_iter().enumerate().map(piece).collect();
        Ok(Book { revision: "cached".to_owned(), enabled: split.enabled, pieces, ..Book::default() })
    }
}

/// Makes an empty file that only its owner may read.
fn private(path: &std::path::Path) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(|_| ())
}
