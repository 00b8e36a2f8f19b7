//! What has to be done to a book so that it is what a file says.

use std::collections::{HashMap, HashSet};
use tollgate_book::{Book, Change, Kind, Piece};
use tollgate_rules::pieces::{PieceKind, PieceText, SplitRules, same_text};

/// The fewest changes that lead there: what is the same is not touched, and as many pieces as can stay where they stand.
pub(super) fn changes(book: &Book, wanted: &SplitRules) -> Vec<Change> {
    let mut changes = Vec::new();
    let (first, again) = by_name(book);
    let there: HashMap<Name<'_>, usize> =
        first.iter().enumerate().map(|(place, piece)| (name_of(piece), place)).collect();
    let named: HashSet<Name<'_>> = wanted.pieces.iter().map(name_in).collect();
    // Whatever a hand has written twice is kept once.
    let left_out = first.iter().filter(|piece| !named.contains(&name_of(piece)));
    for piece in left_out.copied().chain(again).filter(|piece| !is_taken(piece, &there, &named)) {
        changes.push(Change::Delete { id: piece.id, version: piece.version });
    }
    for list in lists(wanted) {
        let places: Vec<Option<usize>> = list.iter().map(|text| there.get(&name_in(text)).copied()).collect();
        let stays = longest_run(&places);
        // In front of which of those that stay each of the others goes: they go one after the other, in their order.
        let mut fronts = vec![None; list.len()];
        let mut next = None;
        for at in (0..list.len()).rev() {
            fronts[at] = next;
            if stays[at] {
                next = places[at].map(|place| first[place].id);
            }
        }
        for (at, text) in list.into_iter().enumerate() {
            let Some(piece) = places[at].map(|place| first[place]) else {
                changes.push(Change::Create {
                    kind: kind_of(text.kind),
                    route: text.route.clone(),
                    name: text.name.clone(),
                    text: text.text.clone(),
                    enabled: text.enabled,
                    before: fronts[at],
                });
                continue;
            };
            let (id, version) = (piece.id, piece.version);
            if !same_text(&piece.text, &text.text) {
                changes.push(Change::Edit { id, version, name: None, text: text.text.clone() });
            }
            if piece.enabled != text.enabled {
                changes.push(Change::Enable { id, version, enabled: text.enabled });
            }
            if !stays[at] {
                changes.push(Change::Move { id, version, before: fronts[at] });
            }
        }
    }
    if book.enabled != wanted.enabled {
        changes.push(Change::Switch { enabled: wanted.enabled });
    }
    changes
}

/// Which of these stand in order already: the most that do together.
fn longest_run(places: &[Option<usize>]) -> Vec<bool> {
    // By length, the run that ends lowest: where its last one stands here; and of each the one before it in its run.
    let mut ends: Vec<(usize, usize)> = Vec::new();
    let mut before = vec![None; places.len()];
    for (at, place) in places.iter().enumerate() {
        let Some(place) = *place else { continue };
        let length = ends.partition_point(|(end, _)| *end < place);
        before[at] = length.checked_sub(1).map(|shorter| ends[shorter].1);
        match ends.get_mut(length) {
            Some(end) => *end = (place, at),
            None => ends.push((place, at)),
        }
    }
    let mut stays = vec![false; places.len()];
    let mut last = ends.last().map(|(_, at)| *at);
    while let Some(at) = last {
        stays[at] = true;
        last = before[at];
    }
    stays
}

/// Pieces that stand in one list of a file, each list in its order.
fn lists(wanted: &SplitRules) -> Vec<Vec<&PieceText>> {
    let mut lists: Vec<Vec<&PieceText>> = Vec::new();
    let mut known = HashMap::new();
    for text in &wanted.pieces {
        let list = *known.entry((text.kind, &text.route)).or_insert(lists.len());
        match lists.get_mut(list) {
            Some(list) => list.push(text),
            None => lists.push(vec![text]),
        }
    }
    lists
}

/// What tells pieces apart: kind, route and name.
type Name<'a> = (Kind, Option<&'a str>, &'a str);

fn name_of(piece: &Piece) -> Name<'_> {
    (piece.kind, piece.route.as_deref(), &piece.name)
}

fn name_in(text: &PieceText) -> Name<'_> {
    (kind_of(text.kind), text.route.as_deref(), &text.name)
}

/// Whether a piece is what a text is about.
pub(super) fn is_it(piece: &Piece, text: &PieceText) -> bool {
    name_of(piece) == name_in(text)
}

/// The first piece of every name, and those that have its name again.
pub(super) fn by_name(book: &Book) -> (Vec<&Piece>, Vec<&Piece>) {
    let mut seen = HashSet::new();
    book.pieces.iter().partition(|piece| seen.insert(name_of(piece)))
}

/// Whether a rule goes with its route, which takes its rules along. One that a hand has left without a route does not.
fn is_taken(rule: &Piece, there: &HashMap<Name<'_>, usize>, wanted: &HashSet<Name<'_>>) -> bool {
    let Some(route) = &rule.route else { return false };
    let route = (Kind::Route, None, route.as_str());
    !wanted.contains(&route) && there.contains_key(&route)
}

const fn kind_of(kind: PieceKind) -> Kind {
    match kind {
        PieceKind::Limit => Kind::Limit,
        PieceKind::Upstream => Kind::Upstream,
        PieceKind::Route => Kind::Route,
        PieceKind::Rule => Kind::Rule,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_book::{Changed, PieceId, Versions, applied};

    fn book(names: &str) -> Book {
        let pieces = names.chars().zip(1..).map(|(name, id)| Piece {
            id: PieceId(id),
            kind: Kind::Route,
            route: None,
            name: name.to_string(),
            text: format!("name: {name}"),
            enabled: true,
            version: 1,
            changed: Changed::default(),
        });
        Book { pieces: pieces.collect(), enabled: true, ..Book::default() }
    }

    fn wanted(names: &str) -> SplitRules {
        let pieces = names.chars().map(|name| PieceText {
            kind: PieceKind::Route,
            route: None,
            name: name.to_string(),
            enabled: true,
            text: format!("name: {name}"),
        });
        SplitRules { pieces: pieces.collect(), enabled: true, own: String::new() }
    }

    fn led(from: &str, to: &str) -> usize {
        let (book, wanted) = (book(from), wanted(to));
        let changes = changes(&book, &wanted);
        let led = applied(&book, &changes, Versions::Asked).expect("changes that can be made");
        let names: String = led.pieces.iter().map(|piece| piece.name.as_str()).collect();
        assert_eq!(names, to, "from {from} by {changes:?}");
        changes.len()
    }

    #[test]
    fn what_stands_in_order_stays() {
        assert_eq!(led("abcdef", "abcdef"), 0);
        assert_eq!(led("abcdef", "fabcde"), 1);
        assert_eq!(led("abcdef", "bcdefa"), 1);
        assert_eq!(led("abcdef", "xabcdef"), 1);
        assert_eq!(led("abcdef", "abxcyf"), 4);
        assert_eq!(led("abcdef", "fedcba"), 5);
        assert_eq!(led("", "cab"), 3);
        assert_eq!(led("abc", ""), 3);
    }

    #[test]
    fn every_order_is_reached() {
        for seed in 0..2_000_usize {
            let mut letters: Vec<char> = "abcdefgh".chars().collect();
            let mut rest = seed.wrapping_mul(0x9e37_79b9);
            let mut to = String::new();
            while !letters.is_empty() {
                let letter = letters.remove(rest % letters.len());
                rest /= 5;
                // Some are new, some go.
                if rest % 4 > 0 {
                    to.push(letter);
                }
            }
            led("abcxef", &to);
        }
    }
}
