//! Envoy's rate limit service.

mod abuse;
mod deciding;
mod fuzzing;
mod lifetime;
mod protos;
mod records;
mod reference;
mod shared;
pub(crate) mod stage;
mod talking;
