//! The reader for JSON that others send: bodies of the decision APIs and of the admin API, and lines of a replay.
//!
//! [`read`] turns a document into a type that derives `Deserialize`, and is stricter than serde_json by itself: a name given
//! twice is an error in every object, an object is never read from a list, and an error says where it is
//! (`checks[1].cost`), what was expected and what was read. Types that refuse unknown fields say so with
//! `#[serde(deny_unknown_fields)]`. Text is borrowed from the document where it has no escapes. A document costs a tree of
//! its nodes, which may take thirty times its length: bound the length, the more so for clients that nobody knows.

mod error;
mod key;
mod node;

pub use error::{JsonError, expected};
pub use key::{KeyText, owned_key};
pub use node::Node;

use serde::{Deserialize, Deserializer};
use std::ops::RangeInclusive;

/// Reads one document.
///
/// # Errors
/// Where it is not JSON, or not of this type.
pub fn read<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, JsonError> {
    Node::parse(text)?.read()
}

/// Reads a field that may be left out, but not be null: for `#[serde(default, deserialize_with = "present")]`.
///
/// # Errors
/// Where it is not of this type.
pub fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// Reads a whole number within bounds.
///
/// # Errors
/// Where it is another, or none; `what` is what it counts, such as "a whole number of milliseconds".
pub fn whole<'de, D: Deserializer<'de>>(
    from: D,
    what: &str,
    bounds: RangeInclusive<u64>,
) -> Result<u64, D::Error> {
    match Node::deserialize(from)? {
        Node::Whole(number) if bounds.contains(&number) => Ok(number),
        _ => Err(expected(&format!("{what} from {} to {}", bounds.start(), bounds.end()))),
    }
}
