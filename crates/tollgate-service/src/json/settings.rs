//! How much of a client the door puts up with.

use std::{num::NonZeroUsize, time::Duration};
use tollgate_net::Tokens;

/// How the JSON door is set.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JsonSettings {
    /// The words that let a client in; with none, everybody is.
    pub tokens: Tokens,
    /// The longest head of a request, in bytes.
    pub max_header: usize,
    /// The longest body of a request, in bytes.
    pub max_body: usize,
    /// Requests at once; more are answered 503. Half as many may wait for their turn.
    pub max_in_flight: NonZeroUsize,
    /// How long a client may take to send a head, and then a body.
    pub header_timeout: Duration,
    /// How long a connection may lie idle.
    pub idle_timeout: Duration,
    /// How long a question with an `id` is known.
    pub remember: Duration,
    /// How much memory questions with an `id` may take, in bytes; the oldest are forgotten first.
    pub remembered_bytes: usize,
}

impl Default for JsonSettings {
    fn default() -> Self {
        Self {
            tokens: Tokens::default(),
            max_header: 32 << 10,
            max_body: 256 << 10,
            max_in_flight: NonZeroUsize::MIN.saturating_add(1_999),
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            remember: Duration::from_secs(60),
            remembered_bytes: 32 << 20,
        }
    }
}
