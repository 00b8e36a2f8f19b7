//! The bytes to a server and back: in clear or over TLS.

use socket2::SockRef;
use std::io::{self, Read as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

/// How often a look at an idle TLS connection reads at most. A server sends a few session tickets, which fit into one.
const MOST_TLS_READS: usize = 8;

/// In clear or over TLS; the latter boxed, since a TLS session is a kilobyte and most servers are spoken to in clear.
pub(crate) type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

impl IdleState {
    /// What an idle connection has received. Unless the connection is quiet it must be closed, because bytes were consumed.
    ///
    /// Over TLS it always reads from the socket; records without data (session tickets) are processed and do not count.
    pub(crate) fn look_at(stream: &mut Stream, look: Look) -> Self {
        let mut start = [0; TIMEOUT_NOTICE.len()];
        match stream {
            Either::Left(stream) => {
                let read = match look {
                    Look::Runtime => stream.try_read(&mut start),
                    Look::Socket => (&*SockRef::from(&*stream)).read(&mut start),
                };
                Self::of(&read, &start)
            }
            Either::Right(stream) => {
                let (socket, session) = stream.get_mut();
                let socket = SockRef::from(&*socket);
                for _ in 0..MOST_TLS_READS {
                    let received = session.read_tls(&mut &*socket);
                    let Ok(state) = session.process_new_packets() else { return Self::Closed };
                    if state.plaintext_bytes_to_read() > 0 || state.peer_has_closed() {
                        return Self::of(&session.reader().read(&mut start), &start);
                    }
                    if !matches!(received, Ok(1..)) {
                        return Self::of(&received, &start);
                    }
                }
                Self::Unasked
            }
        }
    }
}

/// Where a look at an idle connection finds out what was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// What the runtime knows, at no cost. It learns of new bytes when it polls the system for events.
    Runtime,
    /// A read from the socket: everything up to now, for one system call.
    Socket,
}

/// What a look at an idle connection found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdleState {
    /// Nothing: it may be used again.
    Quiet,
    /// The server has closed it, perhaps with a notice that it was idle for too long.
    Closed,
    /// Bytes that no request asked for.
    Unasked,
}

impl IdleState {
    /// Of a read that put its bytes at the beginning of `start`.
    fn of(read: &io::Result<usize>, start: &[u8; TIMEOUT_NOTICE.len()]) -> Self {
        match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Self::Quiet,
            Err(_) | Ok(0) => Self::Closed,
            Ok(_) if is_timeout_notice(start) => Self::Closed,
            Ok(_) => Self::Unasked,
        }
    }
}

/// Some servers announce with this response that they close an idle connection.
const TIMEOUT_NOTICE: [u8; 12] = *b"HTTP/1.1 408";

fn is_timeout_notice(start: &[u8; TIMEOUT_NOTICE.len()]) -> bool {
    start[..7] == TIMEOUT_NOTICE[..7] && start[8..] == TIMEOUT_NOTICE[8..]
}
