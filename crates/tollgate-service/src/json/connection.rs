//! One client's connection: which HTTP it speaks, and its end.

use super::{
    Json, JsonSettings,
    half_close::{HalfClose, HalfCloseStream},
    routes,
};
use hyper::{
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};
use tollgate::Enter;
use tollgate_net::{
    ActivityStream, Connection, ConnectionActivity, ConnectionTimeouts, Guard, HttpVersion, supervise,
};

/// Requests at once on one connection of HTTP/2.
const STREAMS: u32 = 256;

/// Streams that a client may take back before they are looked at.
const RESETS: usize = 128;

/// How often a silent HTTP/2 client is asked whether it is there, and how long it may take to say so.
const ALIVE: Duration = Duration::from_secs(30);

/// What the requests of one connection share.
pub(super) struct Visit<S: Enter> {
    pub(super) door: Arc<Json<S>>,
    activity: Arc<ConnectionActivity>,
    pub(super) half_close: HalfClose,
}

impl<S: Enter> Visit<S> {
    /// Tells when the drain closes.
    pub(super) fn guard(&self) -> &Guard {
        self.activity.guard()
    }
}

/// Serves a connection to its end. What goes wrong with it is the peer's affair.
pub(super) async fn serve<S: Enter + 'static>(door: Arc<Json<S>>, mut connection: Connection) {
    let JsonSettings { header_timeout, idle_timeout, max_header, .. } = door.settings;
    let Some(version) = connection.detect_http(header_timeout).await else { return };
    let activity = Arc::new(ConnectionActivity::new(connection.guard));
    let stream = ActivityStream::new(connection.stream, version, Arc::clone(&activity));
    let half_close = HalfClose::new(Arc::clone(&activity));
    let timeouts = ConnectionTimeouts::new(header_timeout, idle_timeout);
    let visit = Arc::new(Visit { door, activity: Arc::clone(&activity), half_close: half_close.clone() });
    let service = service_fn(move |request| {
        let visit = Arc::clone(&visit);
        // From now on, and not only once it is polled: hyper may read on before that.
        let answering = visit.half_close.answering();
        async move {
            let _answering = answering;
            Ok::<_, Infallible>(routes::answer(&visit, request).await)
        }
    });
    match version {
        HttpVersion::Http1 => {
            let io = TokioIo::new(HalfCloseStream::new(stream, half_close));
            let serving = pin!(http1_builder(max_header).serve_connection(io, service));
            supervise(serving, http1::Connection::graceful_shutdown, &activity, &timeouts).await;
        }
        HttpVersion::Http2 => {
            let serving = pin!(http2_builder(max_header).serve_connection(TokioIo::new(stream), service));
            supervise(serving, http2::Connection::graceful_shutdown, &activity, &timeouts).await;
        }
    }
}

fn http1_builder(max_header: usize) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        // The connection is supervised; a timer of hyper's would be set for every request.
        .header_read_timeout(None)
        // No `pipeline_flush`: with it the 400 for a head that hyper cannot read is never written.
        .max_buf_size(max_header.max(8 << 10));
    builder
}

fn http2_builder(max_header: usize) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(RESETS)
        .max_header_list_size(u32::try_from(max_header).unwrap_or(u32::MAX))
        .max_send_buf_size(64 << 10)
        .keep_alive_interval(ALIVE)
        .keep_alive_timeout(ALIVE);
    builder
}
