//! The body of an answer on its way to the client: frames are slices of what was read, one at a time, and only when asked
//! for. At its end the connection rests for the next request.

use super::{exchange::Exchange, exchange::Failed, head::Framing};
use crate::{
    body::BodyError,
    chunks::{self, Chunks, Piece},
    upstream::server::Server,
};
use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use std::{
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::Instant;

pub(crate) struct Download {
    /// Gone when the body has ended or failed.
    exchange: Option<Exchange>,
    framing: Left,
    /// Read and not decoded yet.
    rest: Bytes,
    keep: Option<Duration>,
    server: Arc<Server>,
    silence: Duration,
}

enum Left {
    Length(u64),
    Chunked { chunks: Chunks, trailers: BytesMut },
    UntilClose,
}

impl Download {
    pub(super) fn new(
        exchange: Exchange,
        framing: Framing,
        rest: Bytes,
        keep: Option<Duration>,
        server: Arc<Server>,
        silence: Duration,
    ) -> Self {
        let framing = match framing {
            Framing::None => Left::Length(0),
            Framing::Length(length) => Left::Length(length),
            Framing::Chunked => Left::Chunked { chunks: Chunks::new(), trailers: BytesMut::new() },
            Framing::UntilClose => Left::UntilClose,
        };
        Self { exchange: Some(exchange), framing, rest, keep, server, silence }
    }

    pub(crate) fn ended(&self) -> bool {
        self.exchange.is_none() || matches!(self.framing, Left::Length(0))
    }

    /// For how long the exchange goes on if the client is gone; none if it has ended.
    pub(crate) fn grace(&self) -> Option<Duration> {
        self.exchange.is_some().then(|| self.server.abort_grace())
    }

    /// The client is gone: nothing more is sent, and the server may be silent for as long as its grace.
    pub(crate) fn discard(&mut self) {
        self.silence = self.server.abort_grace();
        if let Some(exchange) = &mut self.exchange {
            exchange.upload.give_up();
            exchange.connection.deadline.set(Instant::now() + self.silence);
        }
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        match self.framing {
            Left::Length(left) => SizeHint::with_exact(left),
            _ => SizeHint::default(),
        }
    }

    pub(crate) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = match ready!(self.poll_step(context)) {
            Ok(frame) => frame.map(Ok),
            Err(error) => {
                // An exchange that the client broke off is still on; see `discard`.
                if !error.is_by_client() {
                    self.exchange = None;
                }
                Some(Err(error))
            }
        };
        Poll::Ready(frame)
    }

    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, BodyError>> {
        let Some(exchange) = &mut self.exchange else { return Poll::Ready(Ok(None)) };
        if !exchange.upload.is_done() {
            match exchange.poll_upload(context) {
                Ok(()) | Err(Failed::Unsent(_)) => {}
                Err(Failed::Client(error)) => return Poll::Ready(Err(error)),
                Err(_) => return Poll::Ready(Err(BodyError::Client)),
            }
        }
        loop {
            if let Some(step) = self.decode()? {
                return Poll::Ready(Ok(step));
            }
            match ready!(self.poll_fill(context))? {
                0 => return Poll::Ready(self.closed()),
                _ => continue,
            }
        }
    }

    /// The next frame from what was read: none where more must be read, `Some(None)` at the end.
    #[expect(clippy::option_option, reason = "no frame yet, and no frame any more, are two things")]
    fn decode(&mut self) -> Result<Option<Option<Frame<Bytes>>>, BodyError> {
        loop {
            match &mut self.framing {
                Left::Length(0) => {
                    self.finish();
                    return Ok(Some(None));
                }
                _ if self.rest.is_empty() => return Ok(None),
                Left::Length(left) => {
                    let here = usize::try_from(*left).unwrap_or(usize::MAX).min(self.rest.len());
                    *left -= here as u64;
                    let data = self.rest.split_to(here);
                    if *left == 0 {
                        self.finish();
                    }
                    return Ok(Some(Some(Frame::data(data))));
                }
                Left::UntilClose => return Ok(Some(Some(Frame::data(std::mem::take(&mut self.rest))))),
                Left::Chunked { chunks, trailers } => {
                    let piece = chunks.next(&self.rest);
                    match piece.map_err(|_| BodyError::Upstream { reason: "its chunks are malformed" })? {
                        Piece::Framing(n) => drop(self.rest.split_to(n)),
                        Piece::Data(n) => return Ok(Some(Some(Frame::data(self.rest.split_to(n))))),
                        Piece::Trailers(n) => trailers.extend_from_slice(&self.rest.split_to(n)),
                        Piece::End(n) => {
                            trailers.extend_from_slice(&self.rest.split_to(n));
                            let trailers = chunks::trailers(trailers)
                                .map_err(|_| BodyError::Upstream { reason: "its trailers are malformed" })?;
                            self.finish();
                            return Ok(Some(trailers.map(Frame::trailers)));
                        }
                    }
                }
            }
        }
    }

    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<usize, BodyError>> {
        let Some(exchange) = &mut self.exchange else { return Poll::Ready(Ok(0)) };
        let connection = &mut exchange.connection;
        match connection.poll_read(context) {
            Poll::Ready(Ok(read)) => {
                connection.deadline.set(Instant::now() + self.silence);
                self.rest = connection.read.split().freeze();
                Poll::Ready(Ok(read))
            }
            Poll::Ready(Err(_)) => Poll::Ready(Err(BodyError::Upstream { reason: "the connection broke" })),
            Poll::Pending => {
                ready!(connection.deadline.poll(context));
                Poll::Ready(Err(BodyError::UpstreamTimeout))
            }
        }
    }

    fn closed(&mut self) -> Result<Option<Frame<Bytes>>, BodyError> {
        if !matches!(self.framing, Left::UntilClose) {
            return Err(BodyError::Upstream { reason: "the connection was closed too early" });
        }
        self.exchange = None;
        Ok(None)
    }

    fn finish(&mut self) {
        let Some(exchange) = self.exchange.take() else { return };
        if self.rest.is_empty() {
            exchange.finish(self.keep, &self.server);
        } else {
            self.server.ban_reuse();
        }
    }
}
