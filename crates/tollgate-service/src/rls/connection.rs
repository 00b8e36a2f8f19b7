//! One connection, from its first bytes to its last.

use super::{
    Rls, call, plain,
    preface::{self, Begun, Version},
};
use bytes::Bytes;
use h2::server::{Builder, Connection};
use std::{future::Future, pin::Pin, sync::Arc, task::Poll, time::Duration};
use tokio::time::{Instant, sleep_until, timeout};
use tollgate::Store;
use tollgate_net::{Guard, Stream};

/// How long a client may take to say that it is still there.
const STILL_THERE: Duration = Duration::from_secs(20);

/// Streams that a client may open and reset before they were looked at: more, and it is not served any longer.
const RESETS: usize = 50;

/// Serves a connection until it ends.
pub(super) async fn serve<S: Store + 'static>(door: Arc<Rls<S>>, stream: Stream, guard: Guard) {
    if let Stream::Plain(stream) = &stream {
        // An answer is written whole; to hold it back for another helps nobody.
        let _ = stream.set_nodelay(true);
    }
    let patience = door.settings.patience;
    let begun = tokio::select! {
        begun = timeout(patience, preface::begin(stream)) => begun,
        () = guard.closing() => return,
    };
    match begun {
        Ok(Ok((Version::Two, stream))) => serve_two(door, stream, guard).await,
        Ok(Ok((Version::One, stream))) => plain::serve(door, stream, guard).await,
        // It said nothing, or nothing in time.
        Ok(Err(_)) | Err(_) => {}
    }
}

async fn serve_two<S: Store + 'static>(door: Arc<Rls<S>>, stream: Begun, guard: Guard) {
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
    Session { door, connection }.run(guard).await;
}

struct Session<S: Store> {
    door: Arc<Rls<S>>,
    connection: Connection<Begun, Bytes>,
}

/// A call, before anything was read of it but its head.
type Call = (http::Request<h2::RecvStream>, h2::server::SendResponse<Bytes>);

/// Calls that are answered before anything is written: all that came together, within reason.
const TOGETHER: usize = 64;

/// What ends a wait for the next calls.
enum Next {
    Calls,
    Ended,
    Closing,
    Idle,
}

impl<S: Store + 'static> Session<S> {
    async fn run(mut self, guard: Guard) {
        let mut pings = self.connection.ping_pong();
        let (mut is_closing, mut asked) = (false, false);
        let idle = self.door.settings.idle;
        let mut quiet = std::pin::pin!(sleep_until(Instant::now() + idle));
        let mut heard = Instant::now();
        let mut closing = std::pin::pin!(guard.closing());
        let mut calls: Vec<Call> = Vec::new();
        loop {
            let next = std::future::poll_fn(|context| {
                if !is_closing && closing.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Next::Closing);
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
                        Poll::Ready(Some(Err(_)) | None) => break,
                        Poll::Pending => break,
                    }
                }
                if !calls.is_empty() {
                    return Poll::Ready(Next::Calls);
                }
                if asked
                    && let Some(pings) = &mut pings
                    && pings.poll_pong(context).is_ready()
                {
                    (asked, heard) = (false, Instant::now());
                    quiet.as_mut().reset(heard + idle);
                }
                quiet.as_mut().poll(context).map(|()| Next::Idle)
            });
            match next.await {
                Next::Calls => {
                    heard = Instant::now();
                    calls.drain(..).for_each(|(request, respond)| self.answer(request, respond));
                }
                Next::Ended => return,
                Next::Closing => {
                    is_closing = true;
                    self.connection.graceful_shutdown();
                }
                Next::Idle if asked && heard.elapsed() >= idle => return,
                // The timer is put off only when it goes off: calls come more often than that.
                Next::Idle if heard.elapsed() < idle => quiet.as_mut().reset(heard + idle),
                Next::Idle => {
                    let ping = pings.as_mut().map(|pings| pings.send_ping(h2::Ping::opaque()));
                    if !matches!(ping, Some(Ok(()))) {
                        return;
                    }
                    asked = true;
                    quiet.as_mut().reset(Instant::now() + STILL_THERE);
                }
            }
        }
    }

    /// Answers at once where nothing has to be waited for; else a task does.
    fn answer(&self, request: http::Request<h2::RecvStream>, respond: h2::server::SendResponse<Bytes>) {
        let mut call: Pin<Box<dyn Future<Output = ()>>> =
            Box::pin(call::answer(Arc::clone(&self.door), request, respond));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        if call.as_mut().poll(&mut context).is_pending() {
            // Polled again there, which wakes whom it must.
            tokio::task::spawn_local(call);
        }
    }
}
