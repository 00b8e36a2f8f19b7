//! Envoy's rate limit service, v3: `ShouldRateLimit`, with health, reflection and the same question in JSON on one listener.
//!
//! ```text
//! connection ── HTTP/2 ──┬─ application/grpc ── method ─┬─ ShouldRateLimit ─┐
//!      │                 └─ anything else ─┐            ├─ Health           ├─> DecisionService
//!      └─── HTTP/1.1 ── GET /healthcheck, POST /json ───┴─ Reflection       ┘
//! ```
//!
//! A call is answered by the task of its connection where that needs no waiting, which in memory is always: no task, no
//! channel and no timer is made for it. The h2 crate does HTTP/2; the five bytes in front of a message and the trailers
//! behind it are ours. What clients can make it hold is bounded: streams, heads, messages, long ones among them, and the time
//! for each; and who has no token is not read at all.

mod answer;
mod call;
mod connection;
mod decide;
mod entry;
mod grpc;
mod health;
mod json;
pub mod messages;
mod plain;
mod reflection;
mod units;

pub use decide::AskError;

use messages::{RateLimitRequest, RateLimitResponse};
use std::{fmt, num::NonZeroUsize, sync::Arc, time::Duration};
use tollgate::Store;
use tollgate_net::{Ceiling, Connection, ConnectionHandler, Drain, Tokens};
use tollgate_rules::{DecisionService, decision::Api};

/// How the door serves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RlsSettings {
    /// Who may ask; everybody where there are none. Whether it is well may be asked by anybody.
    pub tokens: Tokens,
    /// The longest message, in bytes.
    pub max_message: usize,
    /// The longest head, in bytes.
    pub max_header: u32,
    /// Calls of one connection at once.
    pub max_streams: u32,
    /// Requests that are being decided at once, over all connections; more are told to come again.
    pub max_in_flight: NonZeroUsize,
    /// How long a client may take to send a head, or a message.
    pub patience: Duration,
    /// After how long without a call a client is asked whether it is still there.
    pub idle: Duration,
}

impl Default for RlsSettings {
    fn default() -> Self {
        Self {
            tokens: Tokens::default(),
            max_message: 1 << 20,
            max_header: 32 << 10,
            max_streams: 1_024,
            max_in_flight: NonZeroUsize::MIN.saturating_add(1_999),
            patience: Duration::from_secs(10),
            idle: Duration::from_secs(75),
        }
    }
}

/// Long messages that are read at once, over all connections: what clients that never end them can make this hold.
const LONG_AT_ONCE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);

/// Envoy's rate limit service as a door.
pub struct Rls<S: Store> {
    decisions: DecisionService<S>,
    settings: RlsSettings,
    in_flight: Ceiling,
    /// Long messages that are being read.
    long: Ceiling,
    /// Health says no as soon as the way out begins.
    drain: Drain,
}

impl<S: Store> Rls<S> {
    /// A door that asks this service.
    #[must_use]
    pub fn new(decisions: DecisionService<S>, settings: RlsSettings, drain: Drain) -> Self {
        let in_flight = Ceiling::new(settings.max_in_flight);
        Self { decisions, settings, in_flight, long: Ceiling::new(LONG_AT_ONCE), drain }
    }

    /// How many requests are being decided, for whoever counts.
    pub fn in_flight(&self) -> impl Fn() -> usize + Send + Sync + 'static {
        let in_flight = self.in_flight.clone();
        move || in_flight.inside()
    }

    /// What a request is told.
    ///
    /// # Errors
    /// Where it makes no sense, there are too many, or the store does not answer and no policy decides instead.
    pub async fn decide(&self, request: &RateLimitRequest) -> Result<RateLimitResponse, AskError> {
        let most = self.settings.max_in_flight.get();
        let _inside = self.in_flight.enter().ok_or(AskError::Full { most })?;
        decide::decide(&self.decisions.session(Api::Grpc), request).await
    }
}

impl<S: Store + 'static> ConnectionHandler for Rls<S> {
    async fn serve(self: Arc<Self>, connection: Connection) {
        connection::serve(self, connection).await;
    }
}

impl<S: Store> fmt::Debug for Rls<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rls").field("settings", &self.settings).finish_non_exhaustive()
    }
}
