//! Questions and answers in JSON over HTTP/1.1 and HTTP/2, for whoever has an HTTP client.
//!
//! ```text
//! POST /v1/check    {"limit":"per-client","key":"alice","cost":1}   200 or 429
//!                   {"charges":[...]}                               one set, all or nothing
//!                   {"checks":[...]}                                several questions, each by itself
//! POST /v1/peek     the same, charging nothing
//! POST /v1/refund   {"limit":..,"key":..,"units":1}
//! POST /v1/reset    {"limit":..,"key":..}
//! POST /v1/wait     {..., "up_to_ms":1000}                          answered when its turn has come
//! POST /v1/permits  {..., "up_to_ms":1000}                          201, a slot to be renewed and given back by its name
//! PUT, DELETE /v1/permits/{name}
//! GET  /v1/limits, /healthz, /openapi.json
//! ```
//!
//! - `connection.rs` speaks HTTP, `half_close.rs` answers clients that have ended their side, `routes.rs` which path is what;
//! - `asked.rs` reads a body, with [`tollgate_rules::json`], and says what is wrong with it and where;
//! - `asking.rs`, `permits.rs` ask the decision service; `known.rs` remembers those that have an `id`; `name.rs` is what permits are called;
//! - `answer.rs`, `reply.rs` write what goes back; `limits.rs`, `openapi.rs` tell what can be asked.

mod answer;
mod asked;
mod asking;
mod connection;
mod half_close;
mod known;
mod limits;
mod name;
mod openapi;
mod permits;
mod reply;
mod routes;
mod settings;

pub use openapi::openapi;
pub use settings::JsonSettings;

use known::Known;
use std::{fmt, num::NonZeroUsize, sync::Arc};
use tollgate::Enter;
use tollgate_net::{Ceiling, Connection, ConnectionHandler};
use tollgate_rules::{
    DecisionService,
    decision::{Api, Session},
};

/// The door for questions in JSON.
pub struct Json<S: Enter> {
    decisions: DecisionService<S>,
    settings: JsonSettings,
    in_flight: Ceiling,
    /// Those who wait for their turn, so that they leave room for those who do not.
    waiting: Ceiling,
    known: Known,
}

impl<S: Enter + 'static> Json<S> {
    /// A door that asks this service.
    #[must_use]
    pub fn new(decisions: DecisionService<S>, settings: JsonSettings) -> Self {
        let half = NonZeroUsize::new(settings.max_in_flight.get() / 2).unwrap_or(NonZeroUsize::MIN);
        Self {
            decisions,
            in_flight: Ceiling::new(settings.max_in_flight),
            waiting: Ceiling::new(half),
            known: Known::new(settings.remember, settings.remembered_bytes),
            settings,
        }
    }

    /// Decides for one request.
    fn session(&self) -> Session<S> {
        self.decisions.session(Api::Http)
    }

    /// How many requests are not answered yet, for whoever counts.
    pub fn in_flight(&self) -> impl Fn() -> usize + Send + Sync + 'static {
        let in_flight = self.in_flight.clone();
        move || in_flight.inside()
    }
}

impl<S: Enter + 'static> ConnectionHandler for Json<S> {
    async fn serve(self: Arc<Self>, connection: Connection) {
        connection::serve(self, connection).await;
    }
}

impl<S: Enter> fmt::Debug for Json<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Json").field("settings", &self.settings).finish_non_exhaustive()
    }
}
