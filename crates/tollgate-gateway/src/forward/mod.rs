//! One request to one upstream, and its answer back.
//!
//! The client's `Host` is kept. No `Via` is written: the gateway stands for the servers behind it, as nginx does, and
//! loops show in `X-Forwarded-For`.
//!
//! A request is sent a second time in two cases. Not a byte of the first attempt was sent: the connection could not be made,
//! or a pooled one turned out to be closed before anything was written to it. Or it is a GET, HEAD or OPTIONS without a
//! body, and the server closed a pooled connection before any byte of the response; this is tried once more, on a new
//! connection. Every other failure is reported to the client, who knows whether the request may be repeated.

mod headers;
mod tunnel;

pub(crate) use headers::{Told, host, may_trail};
pub(crate) use tunnel::Tunnelled;

use crate::{
    body::Body,
    client::ClientInfo,
    error::ForwardError,
    guards::Guards,
    interim::InterimSender,
    request::RequestBody,
    upstream::{
        Upstream,
        connect::{ConnectError, Offer},
        h1::{Answer, Connection, Failed, Outbound, exchange},
        h2::Sender,
        server::{Line, Server},
    },
};
use http::{
    HeaderValue, Method, Request, Response, StatusCode, Uri, header, request::Parts, uri::PathAndQuery,
};
use hyper::{body::Incoming, client::conn::TrySendError};
use std::{
    pin::Pin,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};
use tollgate_rules::model;
use tunnel::Tunnel;

/// How often a request is tried again after connections that were found closed.
const MOST_UNSENT: u32 = 3;

/// Sends `request` to a server of `upstream` and gives its answer, headers put right on both ways. The body of the answer
/// comes as it is read; dropping the answer, or this future, ends the exchange.
///
/// # Errors
/// Where there is no answer; [`ForwardError::into_response`] is what to tell the client.
pub async fn forward(
    request: Request<RequestBody>,
    client: &ClientInfo,
    upstream: &Upstream,
) -> Result<Response<Body>, ForwardError> {
    forward_lines(request, client, upstream, &mut Guards::new()).await.map(unpacked)
}

/// An answer with all its headers in the map.
pub(crate) fn unpacked(mut response: Response<Body>) -> Response<Body> {
    if let Some(passed) = response.body_mut().take_passed() {
        passed.unpack(response.headers_mut());
    }
    response
}

/// As [`forward`], with headers that nobody here looks at left as lines. Those that tell of limits are in the map. If the
/// future is dropped while a server works on the request, `guards` are kept for as long as that takes.
#[expect(
    clippy::manual_async_fn,
    reason = "a request is large, and an async fn moves what it is given once more"
)]
pub(crate) fn forward_lines(
    mut request: Request<RequestBody>,
    client: &ClientInfo,
    upstream: &Upstream,
    guards: &mut Guards,
) -> impl Future<Output = Result<Response<Body>, ForwardError>> + Send {
    async move {
        if request.method() == Method::CONNECT {
            let reason = "CONNECT is not for a gateway";
            return Err(ForwardError::Refused { status: StatusCode::METHOD_NOT_ALLOWED, reason });
        }
        let hop = headers::request(&mut request, client);
        let tunnel = hop.upgrade.then(|| Tunnel::new(&mut request));
        let (mut parts, body) = request.into_parts();
        let uri = std::mem::take(&mut parts.uri);
        let target = uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let headers::Hop { told, trailers, .. } = hop;
        let interim = client.interim.as_ref();
        let mut sending = Sending { parts, target, told, body: Some(body), trailers, tunnel, interim };
        let offer = if sending.tunnel.is_some() { Offer::Http1 } else { Offer::Both };
        let (mut tried, mut unsent, mut last) = (Vec::new(), 0, None);
        loop {
            let Some((index, server)) = upstream.choose(&tried) else {
                let nobody = || ForwardError::NoServer { upstream: upstream.name().to_owned() };
                return Err(last.unwrap_or_else(nobody));
            };
            let line =
                if unsent == 0 { server.line(offer).await } else { Box::pin(server.fresh(offer)).await };
            let sent = match line {
                Ok(Line::Http1(connection)) => {
                    sending.http1(connection, server, upstream.settings(), guards).await
                }
                Ok(Line::Http2(sender)) => {
                    Box::pin(sending.http2(sender, server, upstream.timeout(), guards)).await
                }
                // Another server may do it; that this one does not says nothing of its health.
                Err(ConnectError::NoUpgrades) => {
                    tried.push(index);
                    last.get_or_insert(no_connection(server, ConnectError::NoUpgrades));
                    continue;
                }
                Err(error) => {
                    let error = no_connection(server, error);
                    server.health.not_connected(&server.url.text, &error);
                    tried.push(index);
                    last = Some(error);
                    continue;
                }
            };
            match sent {
                Ok(response) => {
                    server.health.connected(&server.url.text);
                    return Ok(response);
                }
                Err(Unsent::Failed(error)) => return Err(error),
                Err(Unsent::Again) if unsent < MOST_UNSENT => unsent += 1,
                Err(Unsent::Again) => return Err(protocol(server, "connections are closed at once")),
            }
        }
    }
}

struct Sending<'a> {
    parts: Parts,
    target: &'a str,
    told: Told,
    /// There until it was sent.
    body: Option<RequestBody>,
    /// The client takes trailers.
    trailers: bool,
    tunnel: Option<Tunnel>,
    interim: Option<&'a InterimSender>,
}

enum Unsent {
    /// Nothing was sent: once more.
    Again,
    Failed(ForwardError),
}

impl Sending<'_> {
    async fn http1(
        &mut self,
        connection: Box<Connection>,
        server: &Arc<Server>,
        settings: &model::Upstream,
        guards: &mut Guards,
    ) -> Result<Response<Body>, Unsent> {
        // HTTP/1.0 clients need not say which host they mean.
        if host(&self.parts.headers).is_none() {
            self.parts.headers.insert(header::HOST, server.url.host_header.clone());
        }
        let (method, headers) = (&self.parts.method, &self.parts.headers);
        let (target, interim) = (self.target, self.interim);
        let outbound = Outbound { method, target, headers, told: Some(&self.told), interim };
        let body = self.body.take().unwrap_or_else(RequestBody::empty);
        match exchange(connection, outbound, body, server, settings.timeout, guards).await {
            Ok(Answer::Response(response)) => Ok(response),
            Ok(Answer::Switched(head, stream, ahead)) => match self.tunnel.take() {
                Some(tunnel) => {
                    Ok(head.map(|()| Body::tunnel(tunnel.open(stream, ahead, settings.tunnel_timeout))))
                }
                None => Err(Unsent::Failed(protocol(server, "switched protocols unasked"))),
            },
            Err(Failed::Unsent(body)) => {
                self.body = Some(body);
                Err(Unsent::Again)
            }
            Err(Failed::Client(error)) => Err(Unsent::Failed(error.into())),
            Err(Failed::Protocol(reason)) => Err(Unsent::Failed(protocol(server, reason))),
            Err(Failed::Timeout) => Err(Unsent::Failed(timed_out(server))),
        }
    }

    async fn http2(
        &mut self,
        mut sender: Sender,
        server: &Arc<Server>,
        timeout: Duration,
        guards: &mut Guards,
    ) -> Result<Response<Body>, Unsent> {
        let mut body = self.body.take().unwrap_or_else(RequestBody::empty);
        let progress = body.progress();
        let request = self.http2_request(server, body).map_err(Unsent::Failed)?;
        let grace = server.abort_grace();
        let mut pending = Pending { answer: Some(Box::pin(sender.try_send_request(request))), guards, grace };
        // While the body goes, the server's time to answer does not run.
        let answer = loop {
            let before = progress.load(Relaxed);
            let answer = tokio::time::timeout(timeout, pending.answer()).await;
            if answer.is_ok() || progress.load(Relaxed) == before {
                break answer;
            }
        };
        pending.answer = None;
        match answer {
            Ok(Ok(response)) => {
                let (mut head, body) = response.into_parts();
                head.version = http::Version::HTTP_11;
                headers::response_from_http2(&mut head.headers);
                Ok(Response::from_parts(head, Body::http2(body, timeout, grace)))
            }
            Ok(Err(mut error)) => match error.take_message() {
                Some(request) => {
                    self.body = Some(request.into_body());
                    Err(Unsent::Again)
                }
                None => Err(Unsent::Failed(protocol(server, "the stream failed without an answer"))),
            },
            Err(_) => Err(Unsent::Failed(timed_out(server))),
        }
    }

    fn http2_request(
        &self,
        server: &Arc<Server>,
        body: RequestBody,
    ) -> Result<Request<RequestBody>, ForwardError> {
        let mut headers = self.parts.headers.clone();
        let host = headers.remove(header::HOST);
        let authority = host.as_ref().map_or(server.url.authority.as_str().as_bytes(), HeaderValue::as_bytes);
        let scheme = if server.url.speaks == crate::upstream::Speaks::Tls { "https" } else { "http" };
        let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(self.target).build();
        let uri = uri.map_err(|_| ForwardError::Refused {
            status: StatusCode::BAD_REQUEST,
            reason: "the request's host or path is malformed",
        })?;
        if self.trailers {
            headers.insert(header::TE, HeaderValue::from_static("trailers"));
        }
        headers.remove(header::EXPECT);
        for (name, value) in self.told.lines() {
            headers.insert(name, value.clone());
        }
        let mut request = Request::new(body);
        *request.method_mut() = self.parts.method.clone();
        *request.uri_mut() = uri;
        *request.version_mut() = http::Version::HTTP_2;
        *request.headers_mut() = headers;
        Ok(request)
    }
}

/// A request over HTTP/2 until its response begins.
struct Pending<'a, A: Future<Output = Http2Answer> + Send + 'static> {
    /// Taken out when it has ended.
    answer: Option<Pin<Box<A>>>,
    guards: &'a mut Guards,
    grace: Duration,
}

type Http2Answer = Result<Response<Incoming>, TrySendError<Request<RequestBody>>>;

impl<A: Future<Output = Http2Answer> + Send + 'static> Pending<'_, A> {
    async fn answer(&mut self) -> Http2Answer {
        match &mut self.answer {
            Some(answer) => answer.await,
            None => std::future::pending().await,
        }
    }
}

impl<A: Future<Output = Http2Answer> + Send + 'static> Drop for Pending<'_, A> {
    /// The client aborted the request. The stream stays open, since a reset would end the response but not the work. A
    /// stream that fails now, because the request is incomplete, does not tell when the server is done.
    fn drop(&mut self) {
        let (Some(answer), grace) = (self.answer.take(), self.grace) else { return };
        let discarded = async move {
            match answer.await {
                Ok(response) => Body::http2(response.into_body(), grace, grace).discard().await,
                Err(_) => std::future::pending().await,
            }
        };
        self.guards.keep_during(discarded, grace);
    }
}

fn no_connection(server: &Server, error: ConnectError) -> ForwardError {
    let server = server.url.text.clone();
    match error {
        ConnectError::Timeout => ForwardError::ConnectTimeout { server },
        ConnectError::Failed(reason) => ForwardError::Connect { server, reason },
        ConnectError::NoUpgrades => ForwardError::Refused {
            status: StatusCode::NOT_IMPLEMENTED,
            reason: "the server for this request takes no upgrades",
        },
    }
}

fn protocol(server: &Server, reason: &'static str) -> ForwardError {
    ForwardError::Protocol { server: server.url.text.clone(), reason }
}

fn timed_out(server: &Server) -> ForwardError {
    ForwardError::Timeout { server: server.url.text.clone() }
}
