//! Envoy's rate limit service.

mod abuse;
mod deciding;
mod fuzzing;
mod lifetime;
mod protos;
mod shared;
mod stage;
mod talking;
