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
    /// As [`is_quiet`](Self::is_quiet), as far as the runtime knows: bytes that came since it last polled are not seen.
    /// Costs no system call in clear.
    pub(crate) fn seems_quiet(&mut self) -> bool {
        match self {
            Self::Plain(stream) => would_block(&stream.try_read(&mut [0])),
            Self::Tls(_) => self.is_quiet(),
        }
    }

    /// Whether the server has sent nothing, not even the end of the stream. Reads from the socket itself: the runtime
    /// learns of new bytes only when it polls, and until then its own read functions report that there are none. If this
    /// returns false the connection must be closed, because a byte may have been consumed.
    ///
    /// Costs one system call. Over TLS, records without data (session tickets) are processed and do not count.
    pub(crate) fn is_quiet(&mut self) -> bool {
        match self {
            Self::Plain(stream) => {
                let mut byte = [0];
                would_block(&(&*SockRef::from(&*stream)).read(&mut byte))
            }
            Self::Tls(stream) => {
                let (socket, session) = stream.get_mut();
                let socket = SockRef::from(&*socket);
                for _ in 0..MOST_TLS_READS {
                    let read = session.read_tls(&mut &*socket);
                    let Ok(state) = session.process_new_packets() else { return false };
                    if state.plaintext_bytes_to_read() > 0 || state.peer_has_closed() {
                        return false;
                    }
                    if !matches!(read, Ok(1..)) {
                        return would_block(&read);
                    }
                }
                false
            }
        }
    }
}

fn would_block(read: &io::Result<usize>) -> bool {
    read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
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
