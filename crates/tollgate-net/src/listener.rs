//! A socket that goes on accepting.
//!
//! `accept` fails for two kinds of reasons. Something happened to one connection before it was accepted (reset, aborted, a
//! network error that Linux reports here): the next one is fine, so it is asked for. Or the process has run out of something
//! (descriptors, memory): the connection stays in the backlog and asking at once would fail again in a busy loop, so it
//! waits a moment. Neither ends a listener.

use std::{io, net::SocketAddr, num::NonZeroU32, time::Duration};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    time,
};

/// How long to wait for descriptors or memory: others have to let go first.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// A bound address.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
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
            Ok(Self { address: socket.local_addr()?, socket })
        };
        bound().map_err(|source| BindError { address, source })
    }

    /// A socket that this runtime has taken over.
    pub(crate) fn adopt(socket: TcpListener, address: SocketAddr) -> Self {
        Self { socket, address }
    }

    /// Where it listens; the port is a real one, also where 0 was asked for.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The socket, for whoever accepts by other means.
    ///
    /// # Errors
    ///
    /// Where the runtime cannot let go of it.
    pub fn into_std(self) -> std::io::Result<std::net::TcpListener> {
        self.socket.into_std()
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
                Err(_) => time::sleep(EXHAUSTED).await,
            }
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
