//! How requests are accepted: plain values.

use super::handler::Observer;
use std::{fmt, num::NonZeroUsize, sync::Arc, time::Duration};
use tollgate_net::{PoolSettings, TlsAcceptor};

/// How requests are accepted.
#[derive(Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Threads that serve, each with a runtime of its own; by default one a core.
    pub workers: NonZeroUsize,
    /// How many connections may be open. At so many no more are accepted until one closes; the others wait in the
    /// listener's backlog.
    pub max_connections: NonZeroUsize,
    /// TLS that offers the protocols of [`ALPN`](super::ALPN); in clear without.
    pub tls: Option<TlsAcceptor>,
    /// What clients may send, and how slowly.
    pub limits: Limits,
    /// Who hears of requests that are done.
    pub observer: Option<Arc<dyn Observer>>,
}

impl Default for Settings {
    fn default() -> Self {
        let PoolSettings { workers, max_connections, .. } = PoolSettings::default();
        Self { workers, max_connections, tls: None, limits: Limits::default(), observer: None }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("workers", &self.workers)
            .field("max_connections", &self.max_connections)
            .field("tls", &self.tls)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Headers of a request.
pub(super) const MOST_HEADERS: usize = 100;

/// What a client may send, and how slowly.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of a request's head (431 beyond). There may be 100 headers (431).
    pub head: usize,
    /// Bytes of a request's target (414 beyond).
    pub target: usize,
    /// Bytes of a request's body (413 beyond).
    pub body: u64,
    /// From the first byte of a head to its last, and for the TLS handshake; then the connection is closed.
    pub head_timeout: Duration,
    /// How long a connection may rest between requests.
    pub idle_timeout: Duration,
    /// How long a client may be silent in the middle of a body that is waited for (408).
    pub body_timeout: Duration,
    /// How long a client may take nothing of an answer; then the connection is closed, or over HTTP/2 the answer's stream
    /// reset.
    pub write_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: 32 << 10,
            target: 8 << 10,
            body: u64::MAX,
            head_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            body_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
        }
    }
}
