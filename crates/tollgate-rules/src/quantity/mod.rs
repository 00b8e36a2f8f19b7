//! Quantities as people write them: rates, durations and sizes.
//!
//! A quantity is read exactly or not at all. Decimals are rationals from the first digit on and never pass through
//! floating point; what would have to be rounded is refused.

mod duration;
mod number;
mod rate;
mod size;

pub use duration::parse_duration;
pub use rate::parse_rate;
pub use size::parse_size;

use crate::decode::shorten;
use std::fmt;
use thiserror::Error;

/// Why a text is no quantity: what was wrong, what was read, and what is expected.
///
/// ```
/// use tollgate_rules::{Problem, parse_rate};
///
/// let error = parse_rate("0/s").unwrap_err();
/// assert_eq!(error.problem(), &Problem::Zero);
/// assert_eq!(
///     error.to_string(),
///     "must be greater than zero; read \"0/s\", expected a rate such as 10/s, 0.5/s or 100/30s"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{problem}; read {:?}, expected {quantity}", shorten(read))]
pub struct QuantityError {
    quantity: Quantity,
    read: String,
    problem: Problem,
}

impl QuantityError {
    /// What was expected.
    #[must_use]
    pub const fn quantity(&self) -> Quantity {
        self.quantity
    }

    /// What was read instead.
    #[must_use]
    pub fn read(&self) -> &str {
        &self.read
    }

    /// What is wrong with it.
    #[must_use]
    pub const fn problem(&self) -> &Problem {
        &self.problem
    }
}

/// What can be written as a number with units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Quantity {
    /// An amount per duration.
    Rate,
    /// A length of time.
    Duration,
    /// A number of bytes.
    Size,
}

impl Quantity {
    fn parse<T>(self, text: &str, read: impl FnOnce(&str) -> Result<T, Problem>) -> Result<T, QuantityError> {
        let refused = |problem| QuantityError { quantity: self, read: text.to_owned(), problem };
        match text {
            "" => Err(refused(Problem::Empty)),
            _ if text.contains(char::is_whitespace) => Err(refused(Problem::Space)),
            _ => read(text).map_err(refused),
        }
    }
}

/// With examples.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rate => "a rate such as 10/s, 0.5/s or 100/30s",
            Self::Duration => "a duration such as 500ms, 1m30s or 7d",
            Self::Size => "a size such as 512KiB, 10MB or 4096",
        })
    }
}

/// What is wrong with a quantity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// There is nothing to read.
    #[error("must not be empty")]
    Empty,
    /// A space, which no quantity has.
    #[error("must not contain spaces")]
    Space,
    /// Zero, which is never read as unlimited.
    #[error("must be greater than zero")]
    Zero,
    /// Below zero.
    #[error("must not be negative")]
    Negative,
    /// Infinite, or not a number at all.
    #[error("must be a finite number")]
    NotFinite,
    /// No number where one must stand.
    #[error("a number must come first")]
    NoNumber,
    /// A number without a unit.
    #[error("a unit is missing")]
    NoUnit,
    /// A rate without the time that its amount is for.
    #[error("a `/` and a time are missing")]
    NoPeriod,
    /// A unit that does not exist.
    #[error("there is no unit `{}`{}", unit.escape_debug(), meant(nearest))]
    UnknownUnit {
        /// What stands where a unit should.
        unit: String,
        /// The unit that was probably meant.
        nearest: Option<&'static str>,
    },
    /// Units that do not go from large to small, each once.
    #[error("units must go from large to small, each once")]
    UnitOrder,
    /// More than can be held.
    #[error("must be at most {max}")]
    TooLarge {
        /// The most that can be held, as a person would write it.
        max: &'static str,
    },
    /// Less than one unit in the longest time that can be told.
    #[error("must be at least one in 146 years")]
    TooSlow,
    /// Finer than what is counted in.
    #[error("must be a whole number of {counted_in}")]
    TooFine {
        /// What the quantity is counted in.
        counted_in: &'static str,
    },
}

fn meant(nearest: &Option<&'static str>) -> String {
    nearest.map(|unit| format!("; did you mean `{unit}`?")).unwrap_or_default()
}
