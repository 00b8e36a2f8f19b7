//! One client's connection from its first byte to its last: TLS, which HTTP, requests, and its end.

use super::{
    gate::{ClientStream, Gate, with_shared},
    h1,
    handler::{Flight, Handler},
    presence::{Presence, Verdict},
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
    timer::Deadline,
};
use bytes::BytesMut;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version, header};
use hyper::{
    body::{Body as _, Incoming},
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    convert::Infallible,
    future::poll_fn,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::ReadBuf,
    net::TcpStream,
    time::{Instant, Sleep, sleep_until},
};
use tollgate_net::{HeadError, TlsAcceptor, check_head};

/// What an HTTP/2 client begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What `Allow` says.
const ALLOWED: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");

/// The longest method that is taken.
const LONGEST_METHOD: usize = 32;

/// How long a connection that rests may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

/// What all connections of a server share.
pub(super) struct Serving<H> {
    pub(super) settings: Settings,
    pub(super) handler: H,
    pub(super) tls: Option<TlsAcceptor>,
}

/// What the requests of one connection share.
pub(super) struct Visit<H> {
    pub(super) serving: Arc<Serving<H>>,
    client: ClientInfo,
    pub(super) presence: Arc<Presence>,
    pub(super) interim: Arc<InterimQueue>,
}

/// Serves a connection to its end. Errors end it and concern nobody else.
pub(super) async fn serve<H: Handler>(
    serving: Arc<Serving<H>>,
    socket: TcpStream,
    peer: SocketAddr,
    presence: Arc<Presence>,
) {
    let limits = &serving.settings.limits;
    let Some((stream, ahead, version)) = in_time(begin(&serving, socket), &presence, limits).await else {
        return;
    };
    let scheme = if matches!(stream, ClientStream::Tls(_)) { Scheme::Https } else { Scheme::Http };
    let client = ClientInfo::new(peer, scheme);
    let interim = Arc::default();
    let visit = Visit { client, presence: presence.clone(), serving: serving.clone(), interim };
    let gate = Gate::new(stream, ahead.freeze(), presence.clone());
    if version == Version::HTTP_2 {
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
        let builder = http2_builder(&serving.settings);
        let connection = pin!(builder.serve_connection(TokioIo::new(gate), service));
        watch(connection, http2::Connection::graceful_shutdown, &presence, limits).await;
    } else {
        // It looks at the presence itself.
        watch(pin!(h1::serve(visit, gate)), |_| presence.finish(), &presence, limits).await;
    }
}

fn http2_builder(settings: &Settings) -> http2::Builder<Streams> {
    let mut builder = http2::Builder::new(Streams(settings.limits.write_timeout));
    let head = u32::try_from(settings.limits.head).unwrap_or(u32::MAX);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(settings.http2.max_streams)
        .max_pending_accept_reset_streams(settings.http2.max_resets)
        .max_local_error_reset_streams(settings.http2.max_resets)
        .max_header_list_size(head)
        .max_send_buf_size(64 << 10)
        .initial_stream_window_size(256 << 10)
        .initial_connection_window_size(1 << 20)
        .keep_alive_interval(settings.http2.keep_alive)
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

/// TLS, and the first bytes in clear, which say which HTTP it is.
async fn begin<H>(serving: &Serving<H>, socket: TcpStream) -> Option<(ClientStream, BytesMut, Version)> {
    if let Some(tls) = &serving.tls {
        let stream = Box::pin(tls.accept(socket)).await.ok()?;
        let agreed = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let version = if agreed { Version::HTTP_2 } else { Version::HTTP_11 };
        return Some((ClientStream::Tls(Box::new(stream)), BytesMut::new(), version));
    }
    let mut stream = ClientStream::Plain(socket);
    let mut ahead = BytesMut::new();
    loop {
        let read = poll_fn(|context| {
            with_shared(|space| {
                let mut buffer = ReadBuf::new(space);
                ready!(stream.poll_read(context, &mut buffer))?;
                ahead.extend_from_slice(buffer.filled());
                Poll::Ready(Ok::<_, io::Error>(buffer.filled().len()))
            })
        });
        if read.await.ok()? == 0 {
            return None;
        }
        let shared = ahead.len().min(PREFACE.len());
        if ahead[..shared] != PREFACE[..shared] {
            return Some((stream, ahead, Version::HTTP_11));
        }
        if shared == PREFACE.len() {
            return Some((stream, ahead, Version::HTTP_2));
        }
    }
}

/// Gives a connection the time of a head to begin, and less when the server is to end.
async fn in_time<T>(
    begin: impl Future<Output = Option<T>>,
    presence: &Presence,
    limits: &Limits,
) -> Option<T> {
    let (mut begin, mut known, mut going) = (pin!(begin), false, false);
    let mut deadline = Deadline::new(Instant::now() + limits.head_timeout);
    poll_fn(|context| {
        if let Poll::Ready(begun) = begin.as_mut().poll(context) {
            return Poll::Ready(begun);
        }
        if !known {
            presence.set_waker(context.waker());
            known = true;
        }
        if presence.is_going() && !going {
            going = true;
            deadline.set(Instant::now() + GOODBYE.min(limits.head_timeout));
        }
        deadline.poll(context).map(|()| None)
    })
    .await
}

/// Runs a connection, ends it when it is too slow, and lets it finish when the server is to end.
async fn watch<C: Future>(
    mut connection: Pin<&mut C>,
    finish: impl Fn(Pin<&mut C>),
    presence: &Presence,
    limits: &Limits,
) {
    let mut watch = Watch { sleep: Box::pin(sleep_until(Instant::now())), known: false, finish_by: None };
    poll_fn(|context| {
        loop {
            if connection.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            match watch.poll(presence, limits, context) {
                Step::Wait => return Poll::Pending,
                Step::Finish => finish(connection.as_mut()),
                Step::Cut => return Poll::Ready(()),
            }
        }
    })
    .await;
}

struct Watch {
    sleep: Pin<Box<Sleep>>,
    /// The presence knows whom to wake.
    known: bool,
    /// Told to finish, and by when it is to be gone if it rests.
    finish_by: Option<Instant>,
}

enum Step {
    Wait,
    Finish,
    Cut,
}

impl Watch {
    /// What to do now. Costs three loads unless the timer fired or a time was marked.
    fn poll(&mut self, presence: &Presence, limits: &Limits, context: &mut Context<'_>) -> Step {
        let going = presence.is_going() && self.finish_by.is_none();
        if going && presence.is_busy() {
            // The answer under way is marked as the last one. What rests is given a moment for a last request: to close
            // it now would lose one that is on its way.
            return self.finish();
        }
        if !self.known {
            presence.set_waker(context.waker());
        }
        // A timer that was never polled does not fire.
        let due = self.sleep.is_elapsed() || presence.is_look_due() || going || !self.known;
        self.known = true;
        if !due {
            return Step::Wait;
        }
        loop {
            let next = match (presence.look(limits), self.finish_by) {
                (Verdict::LookAt(next), _) => next,
                (Verdict::Idle, None) => return self.finish(),
                (Verdict::Idle, Some(by)) if Instant::now() < by => by,
                _ => return Step::Cut,
            };
            self.sleep.as_mut().reset(next);
            if self.sleep.as_mut().poll(context).is_pending() {
                return Step::Wait;
            }
        }
    }

    fn finish(&mut self) -> Step {
        self.finish_by = Some(Instant::now() + GOODBYE);
        Step::Finish
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
        let Visit { serving, client, presence, interim } = visit;
        let Settings { limits, observer, .. } = &serving.settings;
        let mut flight = Flight::start(presence.clone(), observer.as_ref(), &request, client.peer.ip());
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
