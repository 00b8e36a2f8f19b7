//! Accepts the connections of a listener and spreads them over the workers.

use super::{
    ConnectionHandler, PoolSettings, WhenFull,
    counts::{ConnectionCounts, ConnectionSlot},
};
use crate::{Connection, ConnectionGuard, Guard, Listener, Stream, TlsAcceptor, connection::LAST_REQUEST};
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::TcpStream,
    runtime::Handle,
    time::{self, Instant},
};

/// How long connections are accepted that waited in the backlog when the listener is to close.
const LAST_ACCEPTS: Duration = Duration::from_millis(50);

/// A TCP connection that a tunnel or a silent client keeps open is probed after so long without a byte.
const KEEP_ALIVE: Duration = Duration::from_secs(120);

pub(super) struct Acceptor<H> {
    handler: Arc<H>,
    /// The runtimes of the workers, as [`ConnectionCounts`] numbers them.
    workers: Vec<Handle>,
    counts: Arc<ConnectionCounts>,
    max_connections: usize,
    when_full: WhenFull,
    tls: Option<TlsAcceptor>,
}

impl<H: ConnectionHandler> Acceptor<H> {
    pub(super) fn new(
        handler: Arc<H>,
        workers: Vec<Handle>,
        counts: &Arc<ConnectionCounts>,
        settings: PoolSettings,
    ) -> Self {
        let PoolSettings { max_connections, when_full, tls, .. } = settings;
        let (counts, max_connections) = (Arc::clone(counts), max_connections.get());
        Self { handler, workers, counts, max_connections, when_full, tls }
    }

    /// Accepts until the guard closes, then what the system has accepted already, and closes the listener.
    pub(super) async fn run(self, listener: Listener, guard: Guard) {
        loop {
            let (socket, peer) = tokio::select! {
                biased;
                () = guard.closing() => break,
                accepted = self.accept(&listener) => accepted,
            };
            self.assign(socket, peer, &guard);
        }
        // Clients in the backlog are not reset: they get a response, too. Not for ever, should more keep coming.
        let by = Instant::now() + LAST_ACCEPTS;
        while self.has_room() {
            // A moment for the runtime to hear of what the kernel has finished.
            let moment = by.min(Instant::now() + Duration::from_millis(5));
            match time::timeout_at(moment, listener.accept()).await {
                Ok((socket, peer)) => self.assign(socket, peer, &guard),
                Err(_) => break,
            }
        }
    }

    async fn accept(&self, listener: &Listener) -> (TcpStream, SocketAddr) {
        loop {
            if self.when_full == WhenFull::Wait {
                self.counts.at_most(self.max_connections - 1).await;
            }
            let accepted = listener.accept().await;
            if self.has_room() {
                return accepted;
            }
            // Only `WhenFull::Close` comes here: this is the only place that adds connections.
        }
    }

    fn has_room(&self) -> bool {
        self.counts.connections() < self.max_connections
    }

    /// Gives a connection to the worker with the fewest.
    fn assign(&self, socket: TcpStream, peer: SocketAddr, guard: &Guard) {
        // The client may be gone already.
        let Ok(socket) = prepare(socket) else { return };
        let slot = self.counts.enter();
        let worker = &self.workers[slot.worker()];
        worker.spawn(serve(Arc::clone(&self.handler), self.tls.clone(), socket, peer, slot, guard.clone()));
    }
}

/// Detaches the socket from the runtime that accepted it.
fn prepare(socket: TcpStream) -> io::Result<std::net::TcpStream> {
    let keep_alive = socket2::TcpKeepalive::new().with_time(KEEP_ALIVE);
    socket2::SockRef::from(&socket).set_tcp_keepalive(&keep_alive)?;
    socket.into_std()
}

/// Serves one connection, on its worker.
async fn serve<H: ConnectionHandler>(
    handler: Arc<H>,
    tls: Option<TlsAcceptor>,
    socket: std::net::TcpStream,
    peer: SocketAddr,
    slot: ConnectionSlot,
    guard: Guard,
) {
    let Ok(socket) = TcpStream::from_std(socket) else { return };
    let stream = match tls {
        None => Stream::plain(socket),
        // In a box, since most of a connection's life comes later. A handshake that fails is the client's concern.
        Some(tls) => {
            let shaken = tokio::select! {
                shaken = Box::pin(tls.accept(socket)) => shaken,
                () = guard.closing_for(LAST_REQUEST) => return,
            };
            let Ok(stream) = shaken else { return };
            Stream::tls(stream)
        }
    };
    handler.serve(Connection { stream, peer, guard: ConnectionGuard::new(slot, guard) }).await;
}
