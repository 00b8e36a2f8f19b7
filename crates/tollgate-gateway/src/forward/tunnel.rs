//! After a switch of protocols (101): copies bytes in both directions until the tunnel ends.
//!
//! The tunnel is a task of its own, since the client's connection ends as HTTP with the response. Whatever the response
//! would hold until its end (permits, the slot among the requests in flight) is held by the tunnel instead.
//!
//! When one side closes or fails, everything read from it is passed on and the other side is shut down. The remaining
//! direction may then finish: the tunnel ends once no byte has moved for [`CLOSE_TIMEOUT`]. When the server has ended, it
//! ends after [`CLOSE_LIMIT`] in any case, since a client could send a byte now and then to a server that is done with it
//! but keeps its socket half open. So a side that keeps its socket open holds nothing for longer. A tunnel without a byte in
//! either direction for the upstream's `tunnel_timeout` ends too.
//!
//! Memory: one buffer of 8 KiB for each direction.

use crate::{request::RequestBody, serve::Switching, upstream::stream::Stream};
use bytes::BytesMut;
use http::Request;
use std::{
    any::Any,
    io,
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split},
    sync::oneshot,
    time::{Instant, sleep, sleep_until},
};
use tollgate_net::ActivityStream;

/// How long the remaining direction of a tunnel may be idle after the other one has ended.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a client may go on after the server has ended.
const CLOSE_LIMIT: Duration = Duration::from_secs(30);

/// Bytes copied at once in each direction.
const BUFFER: usize = 8 << 10;

type Guards = Vec<Box<dyn Any + Send>>;

/// The client's side of a tunnel that may be.
pub(super) struct Tunnel {
    /// None where the client cannot switch.
    client: Option<oneshot::Receiver<ActivityStream>>,
}

/// A tunnel that is: the answer's handle on it.
pub(crate) struct Tunnelled {
    held: Arc<Mutex<Option<Guards>>>,
}

impl Tunnel {
    pub(super) fn new(request: &mut Request<RequestBody>) -> Self {
        let switching = request.extensions_mut().remove::<Switching>();
        Self { client: switching.and_then(|switching| switching.take()) }
    }

    /// Starts copying. `ahead` was read from the server already; `timeout` is the idle timeout.
    pub(super) fn open(self, server: Stream, ahead: BytesMut, timeout: Duration) -> Tunnelled {
        let held = Arc::new(Mutex::new(Some(Guards::new())));
        let end = End(held.clone());
        tokio::spawn(async move {
            let _end = end;
            let Some(client) = self.client else { return };
            let Ok(client) = client.await else { return };
            relay(client, server, &ahead, timeout).await;
        });
        Tunnelled { held }
    }
}

/// Copies in both directions until the tunnel has ended or is idle for too long.
async fn relay(
    client: impl AsyncRead + AsyncWrite,
    server: impl AsyncRead + AsyncWrite,
    ahead: &[u8],
    timeout: Duration,
) {
    let (from_client, to_client) = split(client);
    let (from_server, to_server) = split(server);
    let activity = Activity { start: Instant::now(), last: AtomicU64::new(0) };
    let mut up = pin!(copy(from_client, to_server, &[], &activity));
    let mut down = pin!(copy(from_server, to_client, ahead, &activity));
    tokio::select! {
        () = &mut up => tokio::select! { () = down => {}, () = activity.idle_for(CLOSE_TIMEOUT) => {} },
        () = &mut down => tokio::select! {
            () = up => {}
            () = activity.idle_for(CLOSE_TIMEOUT) => {}
            () = sleep(CLOSE_LIMIT) => {}
        },
        () = activity.idle_for(timeout) => {}
    }
}

/// Copies one direction, beginning with `ahead`, until either end closes or fails; then shuts `to` down.
async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    ahead: &[u8],
    activity: &Activity,
) {
    // Why a direction ended makes no difference: the other side is told that nothing more comes.
    let _: io::Result<()> = async {
        to.write_all(ahead).await?;
        let mut buffer = vec![0; BUFFER];
        loop {
            to.flush().await?;
            let count = from.read(&mut buffer).await?;
            activity.mark();
            if count == 0 {
                return Ok(());
            }
            to.write_all(&buffer[..count]).await?;
            activity.mark();
        }
    }
    .await;
    activity.mark();
    let _ = to.shutdown().await;
}

/// When a tunnel last moved a byte.
struct Activity {
    start: Instant,
    /// Milliseconds after the start.
    last: AtomicU64,
}

impl Activity {
    fn mark(&self) {
        self.last.store(self.start.elapsed().as_millis() as u64, Relaxed);
    }

    /// Waits until nothing has moved for so long.
    async fn idle_for(&self, timeout: Duration) {
        loop {
            let due = Duration::from_millis(self.last.load(Relaxed)).saturating_add(timeout);
            // A timeout beyond what a clock can tell never comes.
            let Some(due) = self.start.checked_add(due) else { return std::future::pending().await };
            if due <= Instant::now() {
                return;
            }
            sleep_until(due).await;
        }
    }
}

impl Tunnelled {
    /// Keeps `guard` until the tunnel ends; if that was already, not at all.
    pub(crate) fn hold(&self, guard: Box<dyn Any + Send>) {
        if let Some(held) = &mut *self.held.lock().unwrap_or_else(PoisonError::into_inner) {
            held.push(guard);
        }
    }
}

/// Lets go of what is held, however the task ends.
struct End(Arc<Mutex<Option<Guards>>>);

impl Drop for End {
    fn drop(&mut self) {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{
        io::{DuplexStream, duplex},
        task::JoinHandle,
        time::sleep,
    };

    /// A tunnel without an idle timeout: the client's end, the server's end, and the task between them.
    fn tunnel() -> (DuplexStream, DuplexStream, JoinHandle<()>) {
        let ((client, gate), (server, stream)) = (duplex(64), duplex(64));
        (client, server, tokio::spawn(relay(gate, stream, b"", Duration::MAX)))
    }

    /// One side sends a byte a second, which the other reads, until the tunnel ends; says how long that took.
    async fn drip(from: &mut DuplexStream, to: &mut DuplexStream, relay: &JoinHandle<()>, most: u64) -> u64 {
        let begun = Instant::now();
        while !relay.is_finished() && begun.elapsed().as_secs() < most {
            if from.write_all(b"x").await.is_err() || to.read_u8().await.is_err() {
                break;
            }
            sleep(Duration::from_secs(1)).await;
        }
        begun.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_drips_into_a_server_that_has_ended_is_cut_off() {
        let (mut client, mut server, relay) = tunnel();
        server.shutdown().await.expect("the server's end");
        let took = drip(&mut client, &mut server, &relay, 3_600).await;
        assert!((30..=31).contains(&took), "{took} s");
        relay.await.expect("an end");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_may_go_on_after_the_client_has_ended() {
        let (mut client, mut server, relay) = tunnel();
        client.shutdown().await.expect("the client's end");
        assert_eq!(drip(&mut server, &mut client, &relay, 600).await, 600);
        let quiet = Instant::now();
        relay.await.expect("an end");
        assert!(quiet.elapsed() <= CLOSE_TIMEOUT, "{:?}", quiet.elapsed());
    }
}
