//! The body of an answer on its way to the client: frames are slices of what was read, one at a time, and only when asked
//! for. At its end the connection rests for the next request.

use super::exchange::{Exchange, Failed};
use crate::{
    body::BodyError,
    framing::{BodyReader, DecodeStep, Framing},
    upstream::server::Server,
};
use bytes::Bytes;
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
    body: BodyReader,
    /// Read and not decoded yet.
    rest: Bytes,
    keep: Option<Duration>,
    server: Arc<Server>,
    silence: Duration,
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
        Self { exchange: Some(exchange), body: BodyReader::new(framing), rest, keep, server, silence }
    }

    pub(crate) fn ended(&self) -> bool {
        self.exchange.is_none() || self.body.is_done()
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
        self.body.size_hint()
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
            let next = self.body.next(&mut self.rest);
            match next.map_err(|_| BodyError::Upstream { reason: "its chunks or trailers are malformed" })? {
                DecodeStep::Frame(frame) => {
                    if self.body.is_done() {
                        self.finish();
                    }
                    return Poll::Ready(Ok(Some(frame)));
                }
                DecodeStep::End(trailers) => {
                    self.finish();
                    return Poll::Ready(Ok(trailers.map(Frame::trailers)));
                }
                DecodeStep::More => {}
            }
            match ready!(self.poll_fill(context))? {
                0 => return Poll::Ready(self.closed()),
                _ => continue,
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
        if !self.body.ends_with_connection() {
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
