//! The bytes to a server and back: in clear or over TLS.

use socket2::SockRef;
use std::{
    io::{self, Read as _},
    pin::Pin,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

/// How often a look at an idle TLS connection reads at most. A server sends a few session tickets, which fit into one.
const MOST_TLS_READS: usize = 8;

pub(crate) enum Stream {
    Plain(TcpStream),
    /// Boxed: a TLS session is a kilobyte, and most servers are spoken to in clear.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// What an idle connection has received. Unless the connection is quiet it must be closed, because bytes were consumed.
    ///
    /// Over TLS it always reads from the socket; records without data (session tickets) are processed and do not count.
    pub(crate) fn idle_state(&mut self, look: Look) -> IdleState {
        let mut start = [0; TIMEOUT_NOTICE.len()];
        match self {
            Self::Plain(stream) => {
                let read = match look {
                    Look::Runtime => stream.try_read(&mut start),
                    Look::Socket => (&*SockRef::from(&*stream)).read(&mut start),
                };
                IdleState::of(&read, &start)
            }
            Self::Tls(stream) => {
                let (socket, session) = stream.get_mut();
                let socket = SockRef::from(&*socket);
                for _ in 0..MOST_TLS_READS {
                    let received = session.read_tls(&mut &*socket);
                    let Ok(state) = session.process_new_packets() else { return IdleState::Closed };
                    if state.plaintext_bytes_to_read() > 0 || state.peer_has_closed() {
                        return IdleState::of(&session.reader().read(&mut start), &start);
                    }
                    if !matches!(received, Ok(1..)) {
                        return IdleState::of(&received, &start);
                    }
                }
                IdleState::Unasked
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

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            // Nothing is held back by a socket.
            Self::Plain(_) => Poll::Ready(Ok(())),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_shutdown(context),
        }
    }
}
