//! Connections are accepted in one place and handed to the worker that has the fewest.
//!
//! A listener for every worker (`SO_REUSEPORT`) would leave it to chance how connections are spread, and lose those that
//! wait at a listener that is closed. One acceptor spreads them evenly, stops at `max_connections`, and empties the
//! backlog before it closes.

use super::presence::{Everyone, Presence};
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    time::{Instant, timeout_at},
};

/// How long those are taken who were waiting to be accepted when the listener closes.
const LAST_CALL: Duration = Duration::from_millis(50);

/// A connection on its way to a worker, away from the runtime that accepted it.
pub(super) struct Arrival {
    pub(super) socket: std::net::TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) presence: Arc<Presence>,
}

pub(super) struct Acceptor {
    pub(super) listener: TcpListener,
    pub(super) workers: Vec<mpsc::UnboundedSender<Arrival>>,
    pub(super) everyone: Arc<Everyone>,
    pub(super) max_connections: usize,
}

impl Acceptor {
    /// Accepts until told to stop; then takes what waits already, and closes the listener.
    pub(super) async fn run(self, mut stop: oneshot::Receiver<()>) {
        let mut id = 0;
        loop {
            let accepted = tokio::select! {
                biased;
                _ = &mut stop => break,
                accepted = self.accept() => accepted,
            };
            self.take(accepted, &mut id).await;
        }
        // Not for ever, should new ones keep coming.
        let by = Instant::now() + LAST_CALL;
        while self.has_room() {
            // A moment for the runtime to hear of what the kernel has finished.
            let moment = by.min(Instant::now() + Duration::from_millis(5));
            match timeout_at(moment, self.listener.accept()).await {
                Ok(accepted @ Ok(_)) => self.take(accepted, &mut id).await,
                _ => break,
            }
        }
    }

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        while !self.has_room() {
            let left = self.everyone.left.notified();
            self.everyone.set_full(true);
            // Somebody may have left before the flag was set.
            if !self.has_room() {
                left.await;
            }
            self.everyone.set_full(false);
        }
        self.listener.accept().await
    }

    fn has_room(&self) -> bool {
        self.everyone.gauges().connections < self.max_connections
    }

    async fn take(&self, accepted: io::Result<(TcpStream, SocketAddr)>, id: &mut u64) {
        let (socket, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if !is_of_one_connection(&error) {
                    tracing::warn!(%error, "no connection can be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                return;
            }
        };
        // It may be gone already.
        let Ok(socket) = prepare(socket) else { return };
        *id += 1;
        let worker = self.everyone.least_busy();
        let presence = self.everyone.enter(worker, *id);
        // A worker that ended takes nobody.
        let _ = self.workers[worker].send(Arrival { socket, peer, presence });
    }
}

/// Errors of `accept` that are about the connection, which is gone, and not about the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

fn prepare(socket: TcpStream) -> io::Result<std::net::TcpStream> {
    socket.set_nodelay(true)?;
    // A tunnel has no other way to notice that its client is gone.
    let keep_alive = socket2::TcpKeepalive::new().with_time(Duration::from_secs(120));
    socket2::SockRef::from(&socket).set_tcp_keepalive(&keep_alive)?;
    socket.into_std()
}
