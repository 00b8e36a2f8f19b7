//! One accepted connection: its bytes, which HTTP it speaks, what it is doing, and its end.

mod activity;
mod activity_stream;
mod http_version;
mod stream;
mod supervisor;

pub use activity::ConnectionActivity;
pub use activity_stream::{ActivityStream, RequestGuard};
pub use http_version::HttpVersion;
pub use stream::Stream;
pub use supervisor::{ConnectionTimeouts, supervise};

use crate::{Guard, worker_pool::ConnectionSlot};
use std::{net::SocketAddr, ops::Deref, time::Duration};

/// How long a connection that was not at rest for so long may begin a last request when the drain closes: one that is on its
/// way is not lost.
pub(crate) const LAST_REQUEST: Duration = Duration::from_secs(1);

/// An accepted connection, TLS handshake included.
#[derive(Debug)]
pub struct Connection {
    /// Its bytes.
    pub stream: Stream,
    /// The address of the other end.
    pub peer: SocketAddr,
    /// Keep it until the connection has ended.
    pub guard: ConnectionGuard,
}

/// Keeps a connection counted and its drain waiting, until it is dropped.
#[derive(Debug)]
pub struct ConnectionGuard {
    // First: whoever sees the drain empty sees no connection open.
    slot: ConnectionSlot,
    guard: Guard,
}

impl Connection {
    /// Finds out which HTTP the client speaks: by ALPN if that was negotiated, else by the first bytes. `None` if they do not come
    /// `within` this time, or within a second where the drain closes; the preface of HTTP/2 is waited for in any case.
    pub async fn detect_http(&mut self, within: Duration) -> Option<HttpVersion> {
        // In a box, since it is soon over and its memory would last as long as the connection.
        Box::pin(async {
            tokio::select! {
                biased;
                detected = tokio::time::timeout(within, self.stream.detect_http()) => detected.ok()?.ok(),
                () = self.guard.closing_for(LAST_REQUEST.min(within)) => None,
            }
        })
        .await
    }
}

impl ConnectionGuard {
    pub(crate) const fn new(slot: ConnectionSlot, guard: Guard) -> Self {
        Self { slot, guard }
    }
}

impl Deref for ConnectionGuard {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        &self.guard
    }
}
