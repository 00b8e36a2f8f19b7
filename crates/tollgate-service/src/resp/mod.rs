//! Redis clients: `CL.THROTTLE` as redis-cell has it, and the limits of the rule file as `TG.*`.
//!
//! Everything that stock clients say when they connect is understood. Requests in one packet are answered in one, in order;
//! whoever does not read its answers is not listened to any more. A line of HTTP ends the connection, as Redis does: browsers
//! can be made to send one to where nobody else can.
//!
//! Where redis-cell errs this does not: rates above a million a second are exact, no debt is lost to an early expiry, hints
//! are rounded up, a quantity of 0 writes nothing, one below 0 gives back up to a full bucket, and a key may be any bytes.

mod answer;
mod cells;
mod command;
mod connection;
mod described;
mod limits;
mod parse;
mod reply;
mod session;
mod talk;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tollgate::{Cells, Enter};
use tollgate_net::{Connection, ConnectionHandler, Tokens};
use tollgate_rules::DecisionService;

/// How a door for Redis clients is kept.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RespSettings {
    /// Words of which a client has to know one; everybody may ask where there are none.
    pub tokens: Tokens,
    /// How long a connection may lie idle. It is looked at that often, so it may be twice as long.
    pub idle_timeout: Duration,
}

impl Default for RespSettings {
    /// No tokens, and 75 seconds.
    fn default() -> Self {
        Self { tokens: Tokens::default(), idle_timeout: Duration::from_secs(75) }
    }
}

/// The door for Redis clients.
#[derive(Debug)]
pub struct Resp<S: Enter + Cells> {
    decisions: DecisionService<S>,
    settings: RespSettings,
    /// When somebody was last told that HTTP came.
    told_of_http: Mutex<Option<Instant>>,
}

/// Whoever sends HTTP again and again does not fill the log.
const TELL_EVERY: Duration = Duration::from_secs(60);

impl<S: Enter + Cells> Resp<S> {
    /// A door that asks this service.
    #[must_use]
    pub const fn new(decisions: DecisionService<S>, settings: RespSettings) -> Self {
        Self { decisions, settings, told_of_http: Mutex::new(None) }
    }

    fn tell_of_http(&self) {
        let mut told = self.told_of_http.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            *told = Some(Instant::now());
            tracing::warn!(
                target: "tollgate::resp",
                "HTTP came to the listener for Redis clients, perhaps from a page that was made to send commands; it was closed"
            );
        }
    }
}

impl<S: Enter + Cells + 'static> ConnectionHandler for Resp<S> {
    async fn serve(self: Arc<Self>, connection: Connection) {
        connection::serve(&self, connection).await;
    }
}
