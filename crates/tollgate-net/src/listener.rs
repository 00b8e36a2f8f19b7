//! A socket that goes on accepting.
//!
//! `accept` fails for two kinds of reasons. Something happened to one connection before it was accepted (reset, aborted, a
//! network error that Linux reports here): the next one is fine, so it is asked for. Or the process has run out of something
//! (descriptors, memory): the connection stays in the backlog and asking at once would fail again in a busy loop, so it
//! waits a moment. Such an error is counted, and logged once a second at most. Neither kind ends a listener.

use std::{
    io,
    net::SocketAddr,
    num::NonZeroU32,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    time::{self, Instant},
};

/// How long to wait for descriptors or memory: others have to let go first.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// How often running out of descriptors or memory is logged, at most.
const LOG_EVERY: Duration = Duration::from_secs(1);

/// A bound address.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    errors: Arc<AtomicU64>,
    logged: Mutex<Option<Instant>>,
}

/// An address could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct BindError {
    address: SocketAddr,
    source: io::Error,
}

impl Listener {
    /// Binds, with room for `backlog` connections that nobody has accepted yet (the system may allow fewer).
    ///
    /// # Errors
    ///
    /// If the address is taken, is not this machine's, or needs a privilege.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O enabled.
    pub fn bind(address: SocketAddr, backlog: NonZeroU32) -> Result<Self, BindError> {
        let bound = || {
            let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            // A restart must not wait for connections of the last run that linger.
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            let socket = socket.listen(backlog.get())?;
            Ok(Self::new(socket.local_addr()?, socket))
        };
        bound().map_err(|source| BindError { address, source })
    }

    fn new(address: SocketAddr, socket: TcpListener) -> Self {
        Self { socket, address, errors: Arc::default(), logged: Mutex::default() }
    }

    /// The same listener on the current runtime.
    pub(crate) fn rebind_to_runtime(self) -> io::Result<Self> {
        let socket = TcpListener::from_std(self.socket.into_std()?)?;
        Ok(Self { socket, ..self })
    }

    /// Where it listens; the port is a real one, also where 0 was asked for.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// How often nothing could be accepted because the process had run out of descriptors or memory.
    #[must_use]
    pub fn accept_errors(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.errors)
    }

    /// The next connection. Small writes are sent at once (`TCP_NODELAY`).
    pub async fn accept(&self) -> (TcpStream, SocketAddr) {
        loop {
            match self.socket.accept().await {
                Ok((stream, peer)) => {
                    // Fails where the peer is gone already, which whoever reads will notice.
                    let _ = stream.set_nodelay(true);
                    return (stream, peer);
                }
                Err(error) if is_about_one_connection(&error) => {}
                Err(error) => {
                    self.report(&error);
                    time::sleep(EXHAUSTED).await;
                }
            }
        }
    }

    #[cold]
    fn report(&self, error: &io::Error) {
        let count = self.errors.fetch_add(1, Relaxed) + 1;
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
            *logged = Some(Instant::now());
            let address = self.address;
            tracing::error!(
                %address, %error, count,
                "cannot accept connections; they wait in the backlog until descriptors or memory are free"
            );
        }
    }
}

fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionAborted, ConnectionRefused, ConnectionReset, HostUnreachable, Interrupted, NetworkDown,
        NetworkUnreachable, TimedOut,
    };
    matches!(
        error.kind(),
        ConnectionAborted
            | ConnectionRefused
            | ConnectionReset
            | HostUnreachable
            | Interrupted
            | NetworkDown
            | NetworkUnreachable
            | TimedOut
    )
}
