//! What has to be done to a book so that it is what a file says.

use tollgate_book::{Book, Change, Kind, Piece};
use tollgate_rules::pieces::{PieceKind, PieceText, SplitRules, same_text};

/// The fewest changes that lead there: what is the same is not touched.
pub(super) fn changes(book: &Book, wanted: &SplitRules) -> Vec<Change> {
    let mut changes = Vec::new();
    for piece in &book.pieces {
        // A route takes its rules along.
        let is_taken = piece.route.is_some() && !wanted.pieces.iter().any(|text| is_route_of(text, piece));
        if wanted.pieces.iter().all(|text| !is_it(piece, text)) && !is_taken {
            changes.push(Change::Delete { id: piece.id, version: piece.version });
        }
    }
    for list in lists(wanted) {
        let there: Vec<&Piece> =
            book.pieces.iter().filter(|piece| list.iter().any(|text| is_it(piece, text))).collect();
        let mut in_place = there.iter();
        let mut is_in_order = true;
        for text in list {
            let found = there.iter().find(|piece| is_it(piece, text));
            is_in_order = is_in_order
                && found.is_some()
                && in_place.next().map(|piece| piece.id) == found.map(|piece| piece.id);
            match found {
                Some(piece) => {
                    if !same_text(&piece.text, &text.text) {
                        let (id, version, text) = (piece.id, piece.version, text.text.clone());
                        changes.push(Change::Edit { id, version, name: None, text });
                    }
                    if piece.enabled != text.enabled {
                        changes.push(Change::Enable {
                            id: piece.id,
                            version: piece.version,
                            enabled: text.enabled,
                        });
                    }
                    if !is_in_order {
                        changes.push(Change::Move { id: piece.id, version: piece.version, before: None });
                    }
                }
                None => changes.push(Change::Create {
                    kind: kind_of(text.kind),
                    route: text.route.clone(),
                    name: text.name.clone(),
                    text: text.text.clone(),
                    enabled: text.enabled,
                    before: None,
                }),
            }
        }
    }
    if book.enabled != wanted.enabled {
        changes.push(Change::Switch { enabled: wanted.enabled });
    }
    changes
}

/// Pieces that stand in one list of a file, each list in its order.
fn lists(wanted: &SplitRules) -> Vec<Vec<&PieceText>> {
    let mut lists: Vec<Vec<&PieceText>> = Vec::new();
    for text in &wanted.pieces {
        let of_it = |list: &&mut Vec<&PieceText>| {
            list.first().is_some_and(|first| first.kind == text.kind && first.route == text.route)
        };
        match lists.iter_mut().find(of_it) {
            Some(list) => list.push(text),
            None => lists.push(vec![text]),
        }
    }
    lists
}

/// Whether a piece is what a text is about.
pub(super) fn is_it(piece: &Piece, text: &PieceText) -> bool {
    piece.kind == kind_of(text.kind) && piece.route == text.route && piece.name == text.name
}

fn is_route_of(text: &PieceText, rule: &Piece) -> bool {
    text.kind == PieceKind::Route && rule.route.as_ref() == Some(&text.name)
}

const fn kind_of(kind: PieceKind) -> Kind {
    match kind {
        PieceKind::Limit => Kind::Limit,
        PieceKind::Upstream => Kind::Upstream,
        PieceKind::Route => Kind::Route,
        PieceKind::Rule => Kind::Rule,
    }
}
