//! One client's connection: which HTTP it speaks, how long it is put up with, and its end.

use super::{
    Json, JsonSettings,
    patience::{Heard, Patience},
    routes,
};
use hyper::{rt::Executor, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use std::{convert::Infallible, pin::pin, rc::Rc, sync::Arc, time::Duration};
use tollgate::Enter;
use tollgate_net::{Guard, Stream};

/// Requests at once on one connection of HTTP/2.
const STREAMS: u32 = 256;

/// Streams that a client may take back before they are looked at.
const RESETS: usize = 128;

/// How often a silent HTTP/2 client is asked whether it is there, and how long it may take to say so.
const ALIVE: Duration = Duration::from_secs(30);

/// What the requests of one connection share.
pub(super) struct Visit<S: Enter> {
    pub(super) door: Arc<Json<S>>,
    pub(super) guard: Guard,
    pub(super) patience: Patience,
}

/// Serves a connection to its end. What goes wrong with it is the peer's affair.
pub(super) async fn serve<S: Enter + 'static>(door: Arc<Json<S>>, stream: Stream, guard: Guard) {
    let patience = Patience::new(door.settings.header_timeout, door.settings.idle_timeout);
    let io = TokioIo::new(Heard::new(stream, patience.clone()));
    let builder = builder(&door.settings);
    let visit = Rc::new(Visit { door, guard: guard.clone(), patience: patience.clone() });
    let service = service_fn(move |request| {
        let visit = Rc::clone(&visit);
        // From now on, and not only once it is polled: hyper may read on before that.
        let busy = visit.patience.busy();
        async move {
            let _busy = busy;
            Ok::<_, Infallible>(routes::answer(&visit, request).await)
        }
    });
    let mut connection = pin!(builder.serve_connection(io, service));
    let mut over = pin!(patience.over());
    tokio::select! {
        _ = connection.as_mut() => return,
        () = over.as_mut() => return,
        () = guard.closing() => connection.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        _ = connection => {}
        () = over => {}
    }
}

fn builder(settings: &JsonSettings) -> Builder<OnThisThread> {
    let mut builder = Builder::new(OnThisThread);
    builder
        .http1()
        .timer(TokioTimer::new())
        // Patience watches; a timer of hyper's would be set for every request.
        .header_read_timeout(None)
        // No `pipeline_flush`: with it the 400 for a head that hyper cannot read is never written.
        .max_buf_size(settings.max_header.max(8 << 10));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(RESETS)
        .max_header_list_size(u32::try_from(settings.max_header).unwrap_or(u32::MAX))
        .max_send_buf_size(64 << 10)
        .keep_alive_interval(ALIVE)
        .keep_alive_timeout(ALIVE);
    builder
}

/// What hyper spawns stays with the connection.
#[derive(Clone, Copy, Debug)]
struct OnThisThread;

impl<F: Future<Output: 'static> + 'static> Executor<F> for OnThisThread {
    fn execute(&self, work: F) {
        tokio::task::spawn_local(work);
    }
}
