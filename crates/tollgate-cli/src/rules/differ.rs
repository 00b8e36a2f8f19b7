//! How a file and a database differ, for a person.

use super::changes::{by_name, is_it};
use tollgate_book::{Book, Piece};
use tollgate_rules::pieces::{PieceText, SplitRules, same_text};

/// What leads from the book to the file, a line each: `-` goes, `+` comes.
pub(super) fn lines(book: &Book, wanted: &SplitRules) -> Vec<String> {
    let mut out = Vec::new();
    if book.enabled != wanted.enabled {
        out.push(format!("everything is {}, was {}", on(wanted.enabled), on(book.enabled)));
    }
    let (first, again) = by_name(book);
    for piece in first.iter().filter(|piece| wanted.pieces.iter().all(|text| !is_it(piece, text))) {
        out.push(format!("- {}", piece.about()));
    }
    out.extend(again.iter().map(|piece| format!("- {}, which is there again", piece.about())));
    for text in &wanted.pieces {
        match first.iter().find(|piece| is_it(piece, text)) {
            None => {
                out.push(format!("+ {}{}", text.about(), if text.enabled { "" } else { " (off)" }));
                out.extend(text.text.lines().map(|line| format!("    + {line}")));
            }
            Some(piece) => changed(&mut out, piece, text),
        }
    }
    let common = |about: &String| wanted.pieces.iter().any(|text| text.about() == *about);
    let before: Vec<String> = first.iter().map(|piece| piece.about()).filter(common).collect();
    let after: Vec<String> =
        wanted.pieces.iter().map(PieceText::about).filter(|about| before.contains(about)).collect();
    if before != after {
        out.push(format!("in another order: {}", after.join(", ")));
    }
    out
}

fn changed(out: &mut Vec<String>, piece: &Piece, text: &PieceText) {
    if piece.enabled != text.enabled {
        out.push(format!("~ {} is {}, was {}", piece.about(), on(text.enabled), on(piece.enabled)));
    }
    if same_text(&piece.text, &text.text) {
        return;
    }
    out.push(format!("~ {}", piece.about()));
    let (old, new): (Vec<&str>, Vec<&str>) = (piece.text.lines().collect(), text.text.lines().collect());
    for (sign, line) in by_line(&old, &new) {
        out.push(format!("    {sign} {line}"));
    }
}

/// Which lines stay, go and come, by their longest common part.
fn by_line<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(char, &'a str)> {
    let mut longest = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for (i, one) in old.iter().enumerate().rev() {
        for (j, other) in new.iter().enumerate().rev() {
            longest[i][j] = match one == other {
                true => longest[i + 1][j + 1] + 1,
                false => longest[i + 1][j].max(longest[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            out.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && longest[i + 1][j] >= longest[i][j + 1]) {
            out.push(('-', old[i]));
            i += 1;
        } else {
            out.push(('+', new[j]));
            j += 1;
        }
    }
    out
}

const fn on(enabled: bool) -> &'static str {
    if enabled { "on" } else { "off" }
}
