//! What is wrong with a text, where, and in which setting.

use std::{error::Error, fmt};

/// One thing that is wrong: where it stands, which setting it is about, and what is expected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub(crate) at: Position,
    pub(crate) path: String,
    pub(crate) message: String,
}

/// A place in a text, line and column counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    /// Which of the texts that were put together: 0 is the file itself.
    pub(crate) source: usize,
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Mistake {
    /// The line it stands on, counted from 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.at.line
    }

    /// The character on that line, counted from 1.
    #[must_use]
    pub const fn column(&self) -> usize {
        self.at.column
    }

    /// The setting it is about, such as `token_bucket.rate`; empty for the whole text.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong, and what is expected.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// `line:column: path: message`.
impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.at.line, self.at.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// Everything that is wrong with a text, in the order it stands there; never empty.
///
/// ```
/// use tollgate_rules::parse_limit;
///
/// let mistakes = parse_limit("token_bucket: { rate: 0/s, brust: 5 }").unwrap_err();
/// let paths: Vec<_> = mistakes.iter().map(|mistake| mistake.path()).collect();
/// assert_eq!(paths, ["token_bucket.burst", "token_bucket.rate", "token_bucket.brust"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes(Vec<Mistake>);

impl Mistakes {
    /// The mistakes, first to last.
    pub fn iter(&self) -> std::slice::Iter<'_, Mistake> {
        self.0.iter()
    }

    /// `first`, and the others.
    pub(crate) fn new(first: Mistake, others: impl IntoIterator<Item = Mistake>) -> Self {
        let mut all: Vec<_> = std::iter::once(first).chain(others).collect();
        all.sort_by_key(|mistake| mistake.at);
        Self(all)
    }
}

impl<'a> IntoIterator for &'a Mistakes {
    type Item = &'a Mistake;
    type IntoIter = std::slice::Iter<'a, Mistake>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// One line a mistake.
impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            mistake.fmt(f)?;
        }
        Ok(())
    }
}

impl Error for Mistakes {}
