//! One request and the head of its answer.
//!
//! Request and answer go at the same time: a server may answer before it has read the whole body, and then the rest of
//! the body goes along with the answer's. While the body goes, the server's time to answer does not run.

use super::{
    connection::Connection,
    download::Download,
    encode,
    head::{self, Head},
    upload::{Stopped, Upload},
};
use crate::{
    body::{Body, BodyError},
    chunks,
    forward::Told,
    framing::Framing,
    guards::Guards,
    interim::InterimSender,
    request::RequestBody,
    upstream::{server::Server, stream::Stream},
};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Response, StatusCode, header};
use http_body::Body as _;
use std::{
    future::poll_fn,
    io,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{io::AsyncWriteExt, time::Instant};

/// For how long a body is held back for a server that does not say `100 Continue`.
const CONTINUE_WITHIN: Duration = Duration::from_secs(1);

/// How many interim responses a server may send to a request.
const MOST_INTERIM: u32 = 16;

/// What a server answered.
pub(crate) enum Answer {
    Response(Response<Body>),
    /// It switched protocols: the head, the bytes from here on, and those that were read ahead.
    Switched(Response<()>, Stream, BytesMut),
}

/// Why there is no answer.
pub(crate) enum Failed {
    /// The request may be sent again on a new connection: not a byte of it was sent, or it is safe (GET, HEAD, OPTIONS
    /// without a body) and a pooled connection was closed before any byte of the response.
    Unsent(RequestBody),
    /// The client's doing.
    Client(BodyError),
    Protocol(&'static str),
    Timeout,
}

/// The request, as the server is to see it.
pub(crate) struct Outbound<'a> {
    pub(crate) method: &'a Method,
    pub(crate) target: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) told: Option<&'a Told>,
    /// Where interim responses go; without it they are dropped.
    pub(crate) interim: Option<&'a InterimSender>,
}

pub(super) struct Exchange {
    pub(super) connection: Box<Connection>,
    pub(super) upload: Upload,
    timeout: Duration,
    /// How many interim responses have come.
    interim: u32,
}

/// An exchange until its response begins.
struct Pending<'a> {
    /// Taken out when it has ended.
    exchange: Option<Exchange>,
    method: &'a Method,
    server: &'a Arc<Server>,
    guards: &'a mut Guards,
}

impl Drop for Pending<'_> {
    /// The client aborted the request. What was written of it has reached the server, which works on it.
    fn drop(&mut self) {
        if let Some(exchange) = self.exchange.take_if(|exchange| exchange.upload.written > 0) {
            let grace = self.server.abort_grace();
            let discarded = exchange.discard(self.method.clone(), self.server.clone(), grace);
            self.guards.keep_during(discarded, grace);
        }
    }
}

/// Sends a request on `connection`, which rests, and waits for the head of the answer. If this future is dropped while
/// the server works on the request, `guards` are kept for as long as that takes.
pub(crate) async fn exchange(
    mut connection: Box<Connection>,
    request: Outbound<'_>,
    body: RequestBody,
    server: &Arc<Server>,
    timeout: Duration,
    guards: &mut Guards,
) -> Result<Answer, Failed> {
    let framing = framing(&body);
    let mut buffer = std::mem::take(&mut connection.write);
    buffer.clear();
    encode::request(&mut buffer, &request, framing);
    let expecting = framing != Framing::None && request.headers.contains_key(header::EXPECT);
    let upload = Upload::new(buffer, body, framing, expecting);
    let first = if expecting { CONTINUE_WITHIN.min(timeout) } else { timeout };
    // It was taken for this request, a moment ago.
    connection.deadline.set(connection.taken + first);
    let exchange = Some(Exchange { connection, upload, timeout, interim: 0 });
    let mut pending = Pending { exchange, method: request.method, server, guards };
    let head = poll_fn(|context| match &mut pending.exchange {
        Some(exchange) => exchange.poll_head(&request, context),
        None => Poll::Pending,
    })
    .await;
    if let Err(Failed::Client(error)) = head {
        return Err(Failed::Client(error));
    }
    match (head, pending.exchange.take()) {
        (Ok((head, rest)), Some(exchange)) => Ok(exchange.answer(head, rest, server)),
        (Err(Failed::Unsent(_)), Some(exchange)) => Err(Failed::Unsent(exchange.upload.into_body())),
        (Ok(_), None) => Err(Failed::Protocol("broke off without an answer")),
        (Err(failed), _) => Err(failed),
    }
}

/// Whether the error says that the server closed the connection. A TLS failure is none: trying again would hide it.
fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

/// How a body is framed: by its length where that is known.
fn framing(body: &RequestBody) -> Framing {
    if body.is_end_stream() {
        return Framing::None;
    }
    body.size_hint().exact().map_or(Framing::Chunked, Framing::Length)
}

/// Made around its body, which is large and need not be moved again.
fn response<B>(status: StatusCode, headers: HeaderMap, body: B) -> Response<B> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

impl Exchange {
    fn poll_head(
        &mut self,
        request: &Outbound<'_>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(Head, Bytes), Failed>> {
        loop {
            if !self.upload.is_done() {
                self.poll_upload(context)?;
            }
            match self.connection.poll_read(context) {
                Poll::Ready(Ok(0)) => {
                    return Poll::Ready(Err(self.closed(request.method, "closed without an answer")));
                }
                Poll::Ready(Err(error)) if is_closed(&error) => {
                    return Poll::Ready(Err(self.closed(request.method, "broke off without an answer")));
                }
                Poll::Ready(Err(_)) => {
                    return Poll::Ready(Err(Failed::Protocol("broke off without an answer")));
                }
                Poll::Ready(Ok(_)) => match self.parse(request) {
                    Ok(Some(found)) => return Poll::Ready(Ok(found)),
                    Ok(None) => {}
                    Err(reason) => return Poll::Ready(Err(Failed::Protocol(reason))),
                },
                // The client's slowness is not the server's; the body has a timer of its own.
                Poll::Pending if self.upload.waits_for_client() => return Poll::Pending,
                Poll::Pending => match self.connection.deadline.poll(context) {
                    Poll::Ready(()) if self.upload.is_expecting() => {
                        self.upload.go_on();
                        self.connection.deadline.set(Instant::now() + self.timeout);
                    }
                    Poll::Ready(()) => return Poll::Ready(Err(Failed::Timeout)),
                    Poll::Pending => return Poll::Pending,
                },
            }
        }
    }

    /// Sends what can be sent. An error of the server's end is not one yet: its answer may still be there to read.
    pub(super) fn poll_upload(&mut self, context: &mut Context<'_>) -> Result<(), Failed> {
        let before = self.upload.written;
        let sent = self.upload.poll(&mut self.connection, context);
        match sent {
            Poll::Ready(Ok(())) if before == 0 => {}
            Poll::Ready(Err(Stopped::Client(error))) => return Err(Failed::Client(error)),
            Poll::Ready(Err(Stopped::Server)) if self.upload.written == 0 => {
                return Err(Failed::Unsent(RequestBody::empty()));
            }
            Poll::Ready(Err(Stopped::Server)) => self.upload.give_up(),
            Poll::Ready(Ok(())) | Poll::Pending => {
                if self.upload.written > before && !self.upload.is_expecting() {
                    self.connection.deadline.set(Instant::now() + self.timeout);
                }
            }
        }
        Ok(())
    }

    /// The server closed the connection before the head of its response was complete.
    fn closed(&self, method: &Method, reason: &'static str) -> Failed {
        let is_safe =
            self.upload.is_bodiless() && matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        let is_unanswered = self.connection.reused && self.interim == 0 && self.connection.read.is_empty();
        if self.upload.written == 0 || (is_safe && is_unanswered) {
            Failed::Unsent(RequestBody::empty())
        } else {
            Failed::Protocol(reason)
        }
    }

    /// Reads the head off what was read, and what follows it. Interim responses before it are passed on, but for
    /// `100 Continue`: the client was sent its own.
    fn parse(&mut self, request: &Outbound<'_>) -> Result<Option<(Head, Bytes)>, &'static str> {
        let mut bytes = self.connection.read.split().freeze();
        loop {
            let Some(head) = head::parse(&bytes, request.method)? else {
                // Seldom: a head in two packets. The next read goes behind its first part.
                self.connection.read = BytesMut::from(&bytes[..]);
                return Ok(None);
            };
            let rest = bytes.split_off(head.length);
            if !head.status.is_informational() || head.status == StatusCode::SWITCHING_PROTOCOLS {
                if head.framing == Framing::Chunked {
                    chunks::check_start(&rest).map_err(|_| "its chunks are malformed")?;
                }
                return Ok(Some((head, rest)));
            }
            self.interim += 1;
            if self.interim > MOST_INTERIM {
                return Err("it sends too many interim responses");
            }
            if head.status == StatusCode::CONTINUE {
                self.upload.go_on();
            } else if let Some(interim) = request.interim {
                interim.send(head.status, &head.passed, &head.headers);
            }
            if rest.is_empty() {
                return Ok(None);
            }
            bytes = rest;
        }
    }

    /// Reads the response and throws it away, for a client that is gone. The connection stays open meanwhile: many servers
    /// close theirs as soon as ours is closed, and work on, so that nobody could tell when they are done. Where the request
    /// is incomplete and will remain so, the server must be told. What it does then is not known unless it responds.
    async fn discard(mut self, method: Method, server: Arc<Server>, grace: Duration) {
        let is_complete = self.upload.is_done();
        if !is_complete {
            self.upload.give_up();
            let _ = self.connection.stream.shutdown().await;
        }
        self.timeout = grace;
        self.connection.deadline.set(Instant::now() + grace);
        let (target, headers, told, interim) = ("", &HeaderMap::new(), None, None);
        let request = Outbound { method: &method, target, headers, told, interim };
        match poll_fn(|context| self.poll_head(&request, context)).await {
            Ok((head, rest)) => {
                if let Answer::Response(response) = self.answer(head, rest, &server) {
                    response.into_body().discard().await;
                }
            }
            Err(_) if is_complete => {}
            Err(_) => std::future::pending().await,
        }
    }

    fn answer(mut self, head: Head, rest: Bytes, server: &Arc<Server>) -> Answer {
        let (status, headers) = (head.status, head.headers);
        if status == StatusCode::SWITCHING_PROTOCOLS {
            let (stream, _) = self.connection.into_stream();
            return Answer::Switched(response(status, headers, ()), stream, BytesMut::from(&rest[..]));
        }
        let keep = head.keep_alive.then(|| head.keep_for.unwrap_or(Duration::MAX));
        let whole = match head.framing {
            Framing::None => Some(0),
            Framing::Length(length) => Some(length),
            Framing::Chunked | Framing::UntilClose => None,
        };
        if self.upload.is_done() && whole == Some(rest.len() as u64) {
            self.finish(keep, server);
            return Answer::Response(response(status, headers, Body::full(rest).passing(head.passed)));
        }
        let silence = self.timeout;
        self.connection.deadline.set(Instant::now() + silence);
        let download = Download::new(self, head.framing, rest, keep, server.clone(), silence);
        Answer::Response(response(status, headers, Body::http1(Box::new(download)).passing(head.passed)))
    }

    /// Gives the connection back, if it may be used again.
    pub(super) fn finish(mut self, keep: Option<Duration>, server: &Arc<Server>) {
        let Some(keep) = keep else { return };
        if !self.upload.is_done() {
            return;
        }
        if !self.connection.read.is_empty() {
            server.ban_reuse();
            return;
        }
        self.connection.write = self.upload.take_buffer();
        self.connection.rest(keep.min(server.idle_timeout()));
        server.keep(self.connection);
    }
}
