//! The shape of a path: `/orders/{id}/**`.
//!
//! What follows the first slash is split at slashes, and every part is a segment: `/` has one empty segment, `/orders/` ends
//! with one. A request's path, split the same way, is compared segment by segment.

use crate::model::{Matcher, PathPattern, Segment, When};
use std::{collections::BTreeSet, str::FromStr};
use thiserror::Error;

/// Why a text is no shape of a path.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PatternError {
    /// It does not begin as every path does.
    #[error("must begin with `/`, such as \"/orders/**\"")]
    NoSlash,
    /// Two slashes with nothing between, which a normalised path never has.
    #[error("must not have two slashes in a row: paths are compared without them")]
    EmptySegment,
    /// `.` or `..`, which a normalised path never has.
    #[error("must not have `.` or `..` between slashes: paths are compared without them")]
    DotSegment,
    /// `**` beside other letters.
    #[error("must have `**` alone between slashes; `*` is any text within one segment")]
    RestInSegment,
    /// A brace that is no capture.
    #[error("must have `{{name}}` alone between slashes, the name of letters, digits, `_` and `-`")]
    BadCapture,
    /// The same name twice.
    #[error("must not capture the same name twice")]
    CapturedTwice,
    /// A question mark that seems to begin a query.
    #[error("must not contain a query: match it by `query.NAME`; `?` matches any one character")]
    Query,
}

impl FromStr for PathPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let rest = text.strip_prefix('/').ok_or(PatternError::NoSlash)?;
        let mut segments = Vec::new();
        let mut parts = rest.split('/').peekable();
        while let Some(part) = parts.next() {
            if part.is_empty() && parts.peek().is_some() {
                return Err(PatternError::EmptySegment);
            }
            let segment = segment(part)?;
            if matches!(&segment, Segment::Capture(_)) && segments.contains(&segment) {
                return Err(PatternError::CapturedTwice);
            }
            segments.push(segment);
        }
        Ok(Self { text: text.to_owned(), segments })
    }
}

fn segment(part: &str) -> Result<Segment, PatternError> {
    if part.contains(['{', '}']) {
        let name = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
        return match name {
            Some(name) if !name.is_empty() && name.chars().all(is_letter) => {
                Ok(Segment::Capture(name.to_owned()))
            }
            _ => Err(PatternError::BadCapture),
        };
    }
    match part {
        "*" => Ok(Segment::Any),
        "**" => Ok(Segment::Rest),
        "." | ".." => Err(PatternError::DotSegment),
        _ if part.contains("**") => Err(PatternError::RestInSegment),
        _ if part.split_once('?').is_some_and(|(_, query)| query.contains('=')) => Err(PatternError::Query),
        _ if part.contains(['*', '?']) => Ok(Segment::Wild(part.to_owned())),
        _ => Ok(Segment::Literal(part.to_owned())),
    }
}

/// The names that are captured whenever the condition holds.
pub(super) fn captured(when: &When) -> BTreeSet<&str> {
    match when {
        When::Always | When::Not(_) | When::Time(_) => BTreeSet::new(),
        When::All(all) => all.iter().flat_map(captured).collect(),
        When::Any(any) => {
            let mut each = any.iter().map(captured);
            let first = each.next().unwrap_or_default();
            each.fold(first, |common, names| common.intersection(&names).copied().collect())
        }
        When::Is(_, Matcher::Glob(pattern)) => {
            let names = pattern.segments.iter().filter_map(|segment| match segment {
                Segment::Capture(name) => Some(name.as_str()),
                _ => None,
            });
            names.collect()
        }
        When::Is(..) => BTreeSet::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        let literal = |text: &str| Segment::Literal(text.to_owned());
        let capture = |text: &str| Segment::Capture(text.to_owned());
        for (text, segments) in [
            ("/", vec![literal("")]),
            ("/orders", vec![literal("orders")]),
            ("/orders/", vec![literal("orders"), literal("")]),
            ("/orders/**", vec![literal("orders"), Segment::Rest]),
            ("/**/x", vec![Segment::Rest, literal("x")]),
            ("/{a}/*/{b-1}", vec![capture("a"), Segment::Any, capture("b-1")]),
            ("/*.json", vec![Segment::Wild("*.json".to_owned())]),
            ("/a?c", vec![Segment::Wild("a?c".to_owned())]),
        ] {
            assert_eq!(text.parse(), Ok(PathPattern { text: text.to_owned(), segments }), "{text}");
        }
    }

    #[test]
    fn what_is_no_shape() {
        use PatternError::*;
        for (text, error) in [
            ("", NoSlash),
            ("orders/**", NoSlash),
            ("*", NoSlash),
            ("//", EmptySegment),
            ("/a//b", EmptySegment),
            ("/a/../b", DotSegment),
            ("/a**", RestInSegment),
            ("/***", RestInSegment),
            ("/{}", BadCapture),
            ("/{a", BadCapture),
            ("/x{a}", BadCapture),
            ("/{a b}", BadCapture),
            ("/{a}/{a}", CapturedTwice),
            ("/search?q=1", Query),
        ] {
            assert_eq!(text.parse::<PathPattern>(), Err(error), "{text}");
        }
    }
}
