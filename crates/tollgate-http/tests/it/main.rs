//! What a client is told, judged by a parser of structured fields, a parser of JSON, and the limits themselves.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod client;
mod fields;
mod refusals;
mod times;
