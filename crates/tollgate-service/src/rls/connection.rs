//! One connection, from its first bytes to its last.

use super::{Rls, call, plain};
use bytes::Bytes;
use h2::{
    Ping, RecvStream,
    server::{Builder, Connection as Http2, SendResponse},
};
use http::Request;
use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::time::{Instant, interval_at, timeout};
use tollgate::Store;
use tollgate_net::{
    ActivityStream, Connection, ConnectionActivity, ConnectionTimeouts, HttpVersion, RequestGuard, supervise,
};

/// How long after a ping a connection without calls is not idle yet: an answer may be on its way.
const PONG_TIMEOUT: Duration = Duration::from_secs(20);

/// Streams that a client may open and reset before they were looked at: more, and it is not served any longer.
const RESETS: usize = 50;

/// Calls that are answered before anything is written: all that came together, within reason.
const TOGETHER: usize = 64;

/// Serves a connection until it ends.
pub(super) async fn serve<S: Store + 'static>(door: Arc<Rls<S>>, mut connection: Connection) {
    let Some(version) = connection.detect_http(door.settings.patience).await else { return };
    let activity = Arc::new(ConnectionActivity::new(connection.guard));
    let stream = ActivityStream::new(connection.stream, version, Arc::clone(&activity));
    match version {
        HttpVersion::Http1 => plain::serve(door, stream, activity).await,
        HttpVersion::Http2 => serve_two(door, stream, activity).await,
    }
}

/// HTTP/2. A client that is silent stays as long as it answers pings, each before the next one is sent.
async fn serve_two<S: Store + 'static>(
    door: Arc<Rls<S>>,
    stream: ActivityStream,
    activity: Arc<ConnectionActivity>,
) {
    let settings = &door.settings;
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(settings.max_streams)
        .max_header_list_size(settings.max_header)
        .max_pending_accept_reset_streams(RESETS)
        .max_concurrent_reset_streams(RESETS)
        // Room for one long message a stream, and for many short ones a connection.
        .initial_window_size(u32::try_from(settings.max_message).unwrap_or(u32::MAX).clamp(65_535, 1 << 20))
        .initial_connection_window_size(1 << 20);
    let Ok(Ok(connection)) = timeout(settings.patience, builder.handshake(stream)).await else { return };
    let timeouts = ConnectionTimeouts::new(settings.patience, settings.idle + PONG_TIMEOUT);
    let ping_every = settings.idle;
    let session = Session { door: Arc::clone(&door), connection, activity: Arc::clone(&activity) };
    supervise(pin!(session.run(ping_every)), |_| activity.finish(), &activity, &timeouts).await;
}

struct Session<S: Store> {
    door: Arc<Rls<S>>,
    connection: Http2<ActivityStream, Bytes>,
    activity: Arc<ConnectionActivity>,
}

/// A call, before anything was read of it but its head.
type Call = (Request<RecvStream>, SendResponse<Bytes>);

/// What ends a wait for the next calls.
enum Next {
    Calls,
    Ended,
    Finish,
}

impl<S: Store + 'static> Session<S> {
    async fn run(mut self, ping_every: Duration) {
        let mut pings = self.connection.ping_pong();
        let mut ping = interval_at(Instant::now() + ping_every, ping_every);
        let (mut is_finishing, mut is_unanswered) = (false, false);
        let mut calls: Vec<Call> = Vec::new();
        loop {
            let next = poll_fn(|context| {
                if !is_finishing && self.activity.is_finishing() {
                    return Poll::Ready(Next::Finish);
                }
                if let Some(pings) = &mut pings
                    && ping.poll_tick(context).is_ready()
                {
                    // A client that has not answered by the time of the next ping is gone, whatever streams it has open.
                    if is_unanswered && pings.poll_pong(context).is_pending() {
                        return Poll::Ready(Next::Ended);
                    }
                    is_unanswered = pings.send_ping(Ping::opaque()).is_ok();
                    context.waker().wake_by_ref();
                }
                // To look for a call is also to write what there is to write. So those that came together are taken
                // together, and their answers leave in one piece.
                while calls.len() < TOGETHER {
                    match self.connection.poll_accept(context) {
                        Poll::Ready(Some(Ok(call))) => calls.push(call),
                        Poll::Ready(Some(Err(_)) | None) if calls.is_empty() => {
                            return Poll::Ready(Next::Ended);
                        }
                        // What came before the end is answered first; the end is told again.
                        Poll::Ready(Some(Err(_)) | None) | Poll::Pending => break,
                    }
                }
                if calls.is_empty() { Poll::Pending } else { Poll::Ready(Next::Calls) }
            });
            match next.await {
                Next::Calls => calls.drain(..).for_each(|(request, respond)| self.answer(request, respond)),
                Next::Ended => return,
                Next::Finish => {
                    is_finishing = true;
                    self.connection.graceful_shutdown();
                }
            }
        }
    }

    /// Answers at once where nothing has to be waited for; else a task does.
    fn answer(&self, request: Request<RecvStream>, respond: SendResponse<Bytes>) {
        let mut call: Pin<Box<dyn Future<Output = ()> + Send>> =
            Box::pin(call::answer(Arc::clone(&self.door), request, respond));
        if call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            let under_way = RequestGuard::new(Arc::clone(&self.activity));
            // Polled again there, which wakes whom it must.
            tokio::spawn(async move {
                call.await;
                drop(under_way);
            });
        }
    }
}
