//! Reading a request: what its attributes are, as text.
//!
//! Conditions, keys, costs and explanations all read through here, so that a rule's condition and the same rule's key
//! never disagree about what a header says. Nothing is remembered here, and nothing is copied that can be borrowed.

mod address;
mod credentials;
mod fields;
mod host;
mod path;
mod shape;
mod text;

pub(crate) use address::{address_text, key_text, network_text};
pub(crate) use credentials::{credentials, is_credentials};
pub(crate) use fields::{Repeated, cookie, cookies, header, header_lines, pair_value, query, query_pairs};
pub(crate) use host::normal_host;
pub use path::{PathError, decode_path, encode_path};
pub(crate) use path::{decode_rule_text, segments};
pub(crate) use shape::{Shape, wild_fits};
pub(crate) use text::{Reader, Text, attribute};
