//! Words that let somebody in.
//!
//! Compared in constant time: how long a refusal takes tells nothing of how much of a word was right, or which of the words
//! was nearly it. That a word has the wrong length can be timed.

use std::{fmt, sync::Arc};
use subtle::ConstantTimeEq;

/// The tokens of a listener; one that has none lets everybody in.
///
/// ```
/// use tollgate_net::Tokens;
///
/// let tokens = Tokens::new(["open sesame".to_owned()]);
/// assert!(tokens.admits(b"open sesame") && !tokens.admits(b"open barley"));
/// ```
#[derive(Clone, Default)]
pub struct Tokens(Arc<[String]>);

impl Tokens {
    /// Those who know one of these words are let in.
    #[must_use]
    pub fn new(words: impl IntoIterator<Item = String>) -> Self {
        Self(words.into_iter().collect())
    }

    /// Whether there are none, so that nobody is asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this word is one of them. Where there are none, no word is.
    #[must_use]
    pub fn admits(&self, word: &[u8]) -> bool {
        // Every token is looked at, whichever fits.
        self.0.iter().fold(false, |found, token| found | bool::from(token.as_bytes().ct_eq(word)))
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("count", &self.0.len()).finish()
    }
}
