//! A book as rules.

use crate::{Book, Kind, Piece, PieceId, Wrong};
use tollgate_rules::{
    Mistake, RuleFile, parse_rules,
    pieces::{PieceKind, PieceText, compose_rules},
};

/// The rules that a book is, together with what the node has of its own: its file, which is the book itself where that is kept
/// in one.
///
/// # Errors
/// Everything that is wrong, each with its piece.
pub fn compose(
    own: &str,
    book: &Book,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<RuleFile, Vec<Wrong>> {
    if let Some(file) = book.pieces.iter().find(|piece| piece.kind == Kind::File) {
        let told = |mistake: &Mistake| wrong(mistake, Some(file));
        return parse_rules(&file.text, environment).map_err(|mistakes| mistakes.iter().map(told).collect());
    }
    let texts = texts(&book.pieces);
    let composed = compose_rules(own, book.enabled, &texts, environment).map_err(|mistakes| {
        let piece = |index: Option<usize>| index.and_then(|index| book.pieces.get(index));
        mistakes.iter().map(|mistake| wrong(&mistake.mistake, piece(mistake.piece))).collect::<Vec<_>>()
    });
    if book.odd.is_empty() {
        return composed;
    }
    Err(book.odd.iter().cloned().chain(composed.err().into_iter().flatten()).collect())
}

/// Pieces as the reader of rules has them.
#[must_use]
pub fn texts(pieces: &[Piece]) -> Vec<PieceText> {
    let text = |piece: &Piece| PieceText {
        kind: match piece.kind {
            Kind::Limit => PieceKind::Limit,
            Kind::Upstream => PieceKind::Upstream,
            Kind::Route => PieceKind::Route,
            // A file is no piece among others, and is read by itself.
            Kind::Rule | Kind::File => PieceKind::Rule,
        },
        route: piece.route.clone(),
        name: piece.name.clone(),
        enabled: piece.enabled,
        text: piece.text.clone(),
    };
    pieces.iter().map(text).collect()
}

fn wrong(mistake: &Mistake, piece: Option<&Piece>) -> Wrong {
    Wrong {
        // One that is not written yet has no number that anybody knows.
        piece: piece.map(|piece| piece.id).filter(|PieceId(id)| *id > 0),
        about: piece.map_or_else(|| "the node's own file".to_owned(), Piece::about),
        line: mistake.line(),
        column: mistake.column(),
        path: mistake.path().to_owned(),
        message: mistake.message().to_owned(),
    }
}
