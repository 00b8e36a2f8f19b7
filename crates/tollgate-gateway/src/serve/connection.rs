//! One client's connection from its first byte to its last: which HTTP, requests, and its end.

use super::{
    h1,
    handler::{Flight, Handler},
    settings::{Limits, MOST_HEADERS, Settings},
    taking::{Streams, Telling},
};
use crate::{
    body::Body,
    client::{ClientInfo, Scheme},
    error::problem,
    forward::unpacked,
    interim::InterimQueue,
    request::RequestBody,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version, header};
use hyper::{
    body::{Body as _, Incoming},
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};
use tollgate_net::{
    ActivityStream, Connection, ConnectionActivity, ConnectionTimeouts, HeadError, HttpVersion, check_head,
    supervise,
};

/// What `Allow` says.
const ALLOWED: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");

/// Requests at the same time on one connection of HTTP/2.
const STREAMS: u32 = 128;

/// Streams that a client may reset before they were looked at; more end the connection (rapid reset).
const RESETS: usize = 20;

/// A client of HTTP/2 that is silent for so long is asked for a sign of life.
const ALIVE: Duration = Duration::from_secs(30);

/// The longest method that is taken.
const LONGEST_METHOD: usize = 32;

/// What all connections of a server share.
pub(super) struct Serving<H> {
    pub(super) settings: Settings,
    pub(super) handler: H,
}

/// What the requests of one connection share.
pub(super) struct Visit<H> {
    pub(super) serving: Arc<Serving<H>>,
    client: ClientInfo,
    pub(super) activity: Arc<ConnectionActivity>,
    pub(super) interim: Arc<InterimQueue>,
}

/// Serves a connection to its end. Errors end it and concern nobody else.
pub(super) async fn serve<H: Handler>(serving: Arc<Serving<H>>, mut connection: Connection) {
    let limits = &serving.settings.limits;
    let Some(version) = connection.detect_http(limits.head_timeout).await else { return };
    let Connection { stream, peer, guard } = connection;
    let activity = Arc::new(ConnectionActivity::new(guard));
    let scheme = if stream.is_tls() { Scheme::Https } else { Scheme::Http };
    let client = ClientInfo::new(peer, scheme);
    let interim = Arc::default();
    let visit = Visit { client, activity: activity.clone(), serving: serving.clone(), interim };
    let io = ActivityStream::without_reads(stream, activity.clone());
    let timeouts = ConnectionTimeouts {
        write: limits.write_timeout,
        ..ConnectionTimeouts::new(limits.head_timeout, limits.idle_timeout)
    };
    if version == HttpVersion::Http2 {
        let visit = Arc::new(visit);
        let service = service_fn(move |request: Request<Incoming>| {
            let visit = visit.clone();
            async move {
                let limits = &visit.serving.settings.limits;
                let mut request =
                    request.map(|body| RequestBody::http2(body, limits.body, limits.body_timeout));
                join_cookies(request.headers_mut());
                Ok::<_, Infallible>(unpacked(answer(&visit, request).await).map(Telling::new))
            }
        });
        let builder = http2_builder(limits);
        let connection = pin!(builder.serve_connection(TokioIo::new(io), service));
        supervise(connection, http2::Connection::graceful_shutdown, &activity, &timeouts).await;
    } else {
        // It looks at the activity itself.
        supervise(pin!(h1::serve(visit, io)), |_| activity.finish(), &activity, &timeouts).await;
    }
}

fn http2_builder(limits: &Limits) -> http2::Builder<Streams> {
    let mut builder = http2::Builder::new(Streams(limits.write_timeout));
    let head = u32::try_from(limits.head).unwrap_or(u32::MAX);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(RESETS)
        .max_header_list_size(head)
        .max_send_buf_size(64 << 10)
        .initial_stream_window_size(256 << 10)
        .initial_connection_window_size(1 << 20)
        .keep_alive_interval(ALIVE)
        .keep_alive_timeout(Duration::from_secs(20));
    builder
}

/// HTTP/2 lets a client send each cookie by itself. Whoever comes after is to find one line of them (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let lines: Vec<_> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if lines.len() > 1
        && let Ok(line) = HeaderValue::from_bytes(&lines.join(&b"; "[..]))
    {
        headers.insert(header::COOKIE, line);
    }
}

/// One request: checked, handled, its answer made to hold what must be held.
#[expect(
    clippy::manual_async_fn,
    reason = "a request is large, and an async fn moves what it is given once more"
)]
pub(super) fn answer<H: Handler>(
    visit: &Visit<H>,
    request: Request<RequestBody>,
) -> impl Future<Output = Response<Body>> + Send {
    async move {
        let Visit { serving, client, activity, interim } = visit;
        let Settings { limits, observer, .. } = &serving.settings;
        let mut flight = Flight::start(activity.clone(), observer.as_ref(), &request, client.peer.ip());
        let interim = interim.begin();
        let mut response = match check(&request, limits) {
            Ok(()) if is_for_the_server(&request) => allowed_methods(),
            Ok(()) => {
                let mut client = client.clone();
                // HTTP/1.0 does not know interim responses, and hyper does not send them over HTTP/2.
                client.interim = (request.version() == Version::HTTP_11).then_some(interim);
                serving.handler.handle(request, client).await
            }
            Err((status, why)) => refuse(request.version(), status, why),
        };
        flight.answered(response.status());
        response.body_mut().fly(flight);
        response
    }
}

/// Refuses a request before anybody has looked at it. What else comes on its connection is not to be trusted.
pub(super) fn refuse(version: Version, status: StatusCode, why: &'static str) -> Response<Body> {
    let mut response = problem(status, why);
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(header::ALLOW, ALLOWED);
    }
    if version < Version::HTTP_2 {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Whether a request asks about the server itself (`OPTIONS *`), and not about anything behind it.
fn is_for_the_server(request: &Request<RequestBody>) -> bool {
    request.uri().path() == "*"
}

fn allowed_methods() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(header::ALLOW, ALLOWED);
    response
}

/// What can be said of a request before anybody looks at it.
fn check(request: &Request<RequestBody>, limits: &Limits) -> Result<(), (StatusCode, &'static str)> {
    check_target(request.method(), request.uri())?;
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if target > limits.target {
        return Err((StatusCode::URI_TOO_LONG, "the request's target is longer than allowed"));
    }
    // A head of HTTP/1.1 has been refused before.
    if request.headers().len() > MOST_HEADERS {
        let why = "the request has more headers than allowed";
        return Err((StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, why));
    }
    check_head(request.uri(), request.version(), request.headers())
        .map_err(|error| (StatusCode::BAD_REQUEST, error.reason()))?;
    if request.body().size_hint().lower() > limits.body {
        return Err((StatusCode::PAYLOAD_TOO_LARGE, "the request's body is larger than allowed"));
    }
    Ok(())
}

/// Methods that are not for a gateway, and `*` where it names no resource.
fn check_target(method: &Method, uri: &Uri) -> Result<(), (StatusCode, &'static str)> {
    match *method {
        Method::GET | Method::POST => {}
        Method::CONNECT | Method::TRACE => {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "CONNECT and TRACE are not for a gateway"));
        }
        _ if method.as_str().len() > LONGEST_METHOD => {
            return Err((
                StatusCode::NOT_IMPLEMENTED,
                "the request's method is longer than any that is known",
            ));
        }
        // Some servers read `post` as `POST`, and rules do not.
        _ if method.as_str().bytes().any(|byte| byte.is_ascii_lowercase()) => {
            return Err((StatusCode::NOT_IMPLEMENTED, "methods are written in capital letters"));
        }
        _ => {}
    }
    if uri.path() == "*" && *method != Method::OPTIONS {
        return Err((StatusCode::BAD_REQUEST, HeadError::Target.reason()));
    }
    Ok(())
}
