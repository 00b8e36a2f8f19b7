//! The bytes between a client and hyper: watched on the way in, timed on the way out.
//!
//! Where the [`Grammar`] finds a violation, hyper is given bytes that it refuses by itself, with 400 and after the
//! answers before it; then the connection ends. What the client still sends is read and thrown away for a moment, since
//! closing a socket with unread bytes would take the answer back.

use super::{grammar::Grammar, presence::Presence};
use bytes::{Buf, BytesMut};
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::server::TlsStream;

/// How much is thrown away after a violation.
const THROWN_AWAY: usize = 256 << 10;

pub(super) enum ClientStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

pub(super) struct Gate {
    stream: ClientStream,
    /// Read before hyper asked.
    ahead: BytesMut,
    /// HTTP/1.1 is watched; HTTP/2 has a framing of its own.
    grammar: Option<Grammar>,
    refused: Option<usize>,
    presence: Arc<Presence>,
}

impl Gate {
    pub(super) fn new(
        stream: ClientStream,
        ahead: BytesMut,
        grammar: Option<Grammar>,
        presence: Arc<Presence>,
    ) -> Self {
        Self { stream, ahead, grammar, refused: None, presence }
    }

    fn poll_bytes(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            if self.refused.is_some() {
                return Poll::Ready(Ok(()));
            }
            return self.stream.poll_read(context, buffer);
        }
        let count = self.ahead.len().min(buffer.remaining());
        buffer.put_slice(&self.ahead[..count]);
        self.ahead.advance(count);
        if self.ahead.is_empty() {
            self.ahead = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }

    /// Reads on after a violation until the client has nothing more to say, or has said enough.
    fn poll_throw_away(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(thrown) = &mut self.refused else { return Poll::Ready(()) };
        let mut scratch = [0; 4096];
        while *thrown < THROWN_AWAY {
            let mut buffer = ReadBuf::new(&mut scratch);
            match ready!(self.stream.poll_read(context, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => *thrown += buffer.filled().len(),
                _ => break,
            }
        }
        Poll::Ready(())
    }
}

impl AsyncRead for Gate {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        ready!(this.poll_bytes(context, buffer))?;
        let Some(grammar) = &mut this.grammar else { return Poll::Ready(Ok(())) };
        if this.refused.is_some() || this.presence.is_tunnel() {
            return Poll::Ready(Ok(()));
        }
        if let Err(violation) = grammar.read(&buffer.filled()[before..]) {
            buffer.set_filled(before + violation.at);
            this.ahead = BytesMut::from(violation.instead);
            this.refused = Some(0);
            // The time for a head is also the time to be gone.
            this.presence.head_is_partial();
            // There is room where the refused bytes were; the rest of it is read next.
            return this.poll_bytes(context, buffer);
        }
        if grammar.is_in_head() {
            this.presence.head_is_partial();
        } else {
            this.presence.head_is_whole();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Gate {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = match &mut self.stream {
            ClientStream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            ClientStream::Tls(stream) => Pin::new(&mut **stream).poll_write(context, bytes),
        };
        self.presence.took(written.is_ready());
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = match &mut self.stream {
            ClientStream::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            ClientStream::Tls(stream) => Pin::new(&mut **stream).poll_write_vectored(context, slices),
        };
        self.presence.took(written.is_ready());
        written
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            ClientStream::Plain(_) => Poll::Ready(Ok(())),
            ClientStream::Tls(stream) => {
                let flushed = Pin::new(&mut **stream).poll_flush(context);
                self.presence.took(flushed.is_ready());
                flushed
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        ready!(match &mut this.stream {
            ClientStream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            ClientStream::Tls(stream) => Pin::new(&mut **stream).poll_shutdown(context),
        })?;
        ready!(this.poll_throw_away(context));
        Poll::Ready(Ok(()))
    }
}

impl ClientStream {
    pub(super) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(&mut **stream).poll_read(context, buffer),
        }
    }
}
