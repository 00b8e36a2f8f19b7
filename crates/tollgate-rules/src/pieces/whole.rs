//! Pieces made into one file again.

use super::{PieceMistake, PieceText, compose::compose, emit::text_of, split::without};

/// A whole rule file: what a node has of its own, without `rules_from`, and the pieces.
///
/// # Errors
/// What cannot be put together. Whether it is good besides, the reader of rule files says.
pub fn whole_text(own: &str, enabled: bool, pieces: &[PieceText]) -> Result<String, Vec<PieceMistake>> {
    let composed = compose(own, enabled, pieces)?;
    Ok(text_of(&without(&composed.root, &["rules_from"])))
}
