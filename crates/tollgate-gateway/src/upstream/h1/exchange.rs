//! One request and the head of its answer.
//!
//! Request and answer go at the same time: a server may answer before it has read the whole body, and then the rest of
//! the body goes along with the answer's. While the body goes, the server's time to answer does not run.

use super::{
    connection::Connection,
    download::Download,
    encode::{self, Framing},
    head::{self, Head},
    upload::{Stopped, Upload},
};
use crate::{
    body::{Body, BodyError},
    forward::Told,
    request::RequestBody,
    upstream::{server::Server, stream::Stream},
};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Response, StatusCode, header};
use http_body::Body as _;
use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::Instant;

/// For how long a body is held back for a server that does not say `100 Continue`.
const CONTINUE_WITHIN: Duration = Duration::from_secs(1);

/// What a server answered.
pub(crate) enum Answer {
    Response(Response<Body>),
    /// It switched protocols: the head, the bytes from here on, and those that were read ahead.
    Switched(Response<()>, Stream, BytesMut),
}

/// Why there is no answer.
pub(crate) enum Failed {
    /// Not a byte was sent: the request may be sent again, on another connection.
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
}

pub(super) struct Exchange {
    pub(super) connection: Box<Connection>,
    pub(super) upload: Upload,
    timeout: Duration,
}

/// Sends a request on `connection`, which rests, and waits for the head of the answer.
pub(crate) async fn exchange(
    mut connection: Box<Connection>,
    request: Outbound<'_>,
    body: RequestBody,
    server: &Arc<Server>,
    timeout: Duration,
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
    let mut exchange = Exchange { connection, upload, timeout };
    match poll_fn(|context| exchange.poll_head(request.method, context)).await {
        Ok((head, rest)) => Ok(exchange.answer(head, rest, server)),
        Err(Failed::Unsent(_)) => Err(Failed::Unsent(exchange.upload.into_parts().0)),
        Err(failed) => Err(failed),
    }
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
        method: &Method,
        context: &mut Context<'_>,
    ) -> Poll<Result<(Head, Bytes), Failed>> {
        loop {
            if !self.upload.is_done() {
                self.poll_upload(context)?;
            }
            match self.connection.poll_read(context) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(self.closed("closed without an answer"))),
                Poll::Ready(Err(_)) => return Poll::Ready(Err(self.closed("broke off without an answer"))),
                Poll::Ready(Ok(_)) => match self.parse(method) {
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

    fn closed(&self, reason: &'static str) -> Failed {
        if self.upload.written == 0 { Failed::Unsent(RequestBody::empty()) } else { Failed::Protocol(reason) }
    }

    /// Reads the head off what was read, past any that only inform; gives it, and what follows it.
    fn parse(&mut self, method: &Method) -> Result<Option<(Head, Bytes)>, &'static str> {
        let mut bytes = self.connection.read.split().freeze();
        loop {
            let Some(head) = head::parse(&bytes, method)? else {
                // Seldom: a head in two packets. The next read goes behind its first part.
                self.connection.read = BytesMut::from(&bytes[..]);
                return Ok(None);
            };
            let rest = bytes.split_off(head.length);
            if !head.status.is_informational() || head.status == StatusCode::SWITCHING_PROTOCOLS {
                return Ok(Some((head, rest)));
            }
            if head.status == StatusCode::CONTINUE {
                self.upload.go_on();
            }
            if rest.is_empty() {
                return Ok(None);
            }
            bytes = rest;
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
            head::Framing::None => Some(0),
            head::Framing::Length(length) => Some(length),
            head::Framing::Chunked | head::Framing::UntilClose => None,
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
        if !self.upload.is_done() || !self.connection.read.is_empty() {
            return;
        }
        self.connection.write = self.upload.take_buffer();
        self.connection.rest(keep.min(server.idle_timeout()));
        server.keep(self.connection);
    }
}
