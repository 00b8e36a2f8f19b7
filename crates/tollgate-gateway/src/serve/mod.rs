//! Accepting requests: connections, what they carry, and their end.
//!
//! Every worker of the [pool](WorkerPool) is a thread with a runtime of its own. A connection stays with its worker, and so do
//! the connections to upstreams that its requests use: nothing on a request's way is shared with another thread or handed to
//! one.

mod connection;
mod h1;
mod handler;
mod settings;
mod taking;

pub(crate) use h1::{Inlet, Switching};
pub(crate) use handler::Flight;
pub use handler::{Access, Handler, Observer};
pub use settings::{Limits, Settings};

use crate::upstream::shard;
use connection::Serving;
use std::{io, sync::Arc};
use tollgate_net::{Connection, ConnectionHandler, Drain, Listener, PoolSettings, WorkerPool};

/// What is agreed on in a TLS handshake, best first.
pub const ALPN: [&str; 2] = ["h2", "http/1.1"];

/// Serves the requests that come to `listener`, on threads of its own, until the drain is over or the pool dropped.
///
/// When the drain closes, connections at rest are given a second for a last request, whose answer closes them; HTTP/2 clients
/// are told to go (GOAWAY).
///
/// # Errors
/// If the listener or a thread cannot be used.
pub fn serve<H: Handler>(
    listener: Listener,
    settings: Settings,
    drain: &Drain,
    handler: H,
) -> io::Result<WorkerPool> {
    let mut pool = PoolSettings::default();
    pool.workers = settings.workers;
    pool.max_connections = settings.max_connections;
    pool.tls = settings.tls.clone();
    WorkerPool::start("gateway", listener, pool, drain, Arc::new(Serving { settings, handler }))
}

impl<H: Handler> ConnectionHandler for Serving<H> {
    fn serve(self: Arc<Self>, connection: Connection) -> impl Future<Output = ()> + Send + 'static {
        connection::serve(self, connection)
    }

    fn enter_worker(&self, worker: usize) {
        shard::enter(worker);
    }
}
