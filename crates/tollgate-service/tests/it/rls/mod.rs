//! Envoy's rate limit service.

mod abuse;
mod books;
mod deciding;
mod fuzzing;
mod lifetime;
mod protos;
mod reference;
mod shared;
pub(crate) mod stage;
mod talking;
