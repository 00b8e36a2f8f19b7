//! One connection: two directions, each a reader that notes when bytes are due and a writer that lets them go then.
//!
//! Reader and writer are apart so that a delay is a latency and no traffic jam: bytes that come while others wait have
//! begun to wait themselves. What the fault does to bytes is decided when they go.

use super::{Fault, Shared};
use std::{
    convert::Infallible,
    future::pending,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

/// Chunks on their way in one direction; past that the sender has to wait, as with a real network.
const UNDER_WAY: usize = 256;

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Requests,
    Replies,
}

/// Why nothing goes in a direction any more.
enum End {
    /// One side has closed, or cannot be written to.
    Closed,
    /// The answer came whose request was to be the last.
    Answered,
}

/// Carries one connection until an end closes it or the era ends.
pub(super) async fn carry(shared: Arc<Shared>, client: TcpStream, mut era: watch::Receiver<()>) {
    shared.open.fetch_add(1, Relaxed);
    tokio::select! {
        biased;
        _ = era.changed() => {}
        () = connection(&shared, client) => {}
    }
    shared.open.fetch_sub(1, Relaxed);
    // Its sockets are closed by now, so whoever waits for that may go on.
    drop(era);
}

async fn connection(shared: &Shared, mut client: TcpStream) {
    let Ok(mut server) = TcpStream::connect((Ipv4Addr::LOCALHOST, shared.target)).await else { return };
    if client.set_nodelay(true).is_err() || server.set_nodelay(true).is_err() {
        return;
    }
    let last = AtomicBool::new(false);
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let lane = |direction| Lane { shared, direction, last: &last, silent: false };
    let end = tokio::select! {
        end = lane(Direction::Requests).run(from_client, to_server) => end,
        end = lane(Direction::Replies).run(from_server, to_client) => end,
    };
    drop(client);
    if let End::Answered = end {
        // A server that is told politely first does what it has been sent.
        let _ = server.shutdown().await;
        let mut rest = [0; 4096];
        while server.read(&mut rest).await.is_ok_and(|read| read > 0) {}
    }
}

struct Lane<'a> {
    shared: &'a Shared,
    direction: Direction,
    /// Whether the request was sent after whose answer the connection ends.
    last: &'a AtomicBool,
    /// Whether bytes were swallowed.
    silent: bool,
}

impl Lane<'_> {
    async fn run(mut self, from: ReadHalf<'_>, to: WriteHalf<'_>) -> End {
        let (arrived, due) = mpsc::channel(UNDER_WAY);
        let shared = self.shared;
        match tokio::try_join!(read(shared, from, arrived), self.write(due, to)) {
            Err(end) => end,
            Ok((_, never)) => match never {},
        }
    }

    /// Lets bytes go when they are due, until there is a reason to stop.
    async fn write(
        &mut self,
        mut due: mpsc::Receiver<(Instant, Vec<u8>)>,
        mut to: WriteHalf<'_>,
    ) -> Result<Infallible, End> {
        while let Some((when, bytes)) = due.recv().await {
            sleep_until(when).await;
            let Some(bytes) = self.suffer(bytes)? else { continue };
            to.write_all(&bytes).await.map_err(|_| End::Closed)?;
            self.passed().fetch_add(bytes.len() as u64, Relaxed);
        }
        let hidden = self.silent || matches!(self.shared.fault(), Fault::BlackHole);
        if hidden && self.direction == Direction::Replies {
            // The client is not told that the server is gone; it closes, or is cut.
            pending::<()>().await;
        }
        Err(End::Closed)
    }

    /// What becomes of bytes. None: they are swallowed.
    fn suffer(&mut self, bytes: Vec<u8>) -> Result<Option<Vec<u8>>, End> {
        let mut state = self.shared.state();
        let bytes = match (&state.fault, self.direction) {
            (Fault::BlackHole, _) | (Fault::DropReplies, Direction::Replies) => {
                self.silent = true;
                bytes
            }
            (Fault::CutAfterRequest, Direction::Requests) => {
                self.last.store(true, Relaxed);
                state.fault = Fault::Pass;
                bytes
            }
            (_, Direction::Replies) if self.last.load(Relaxed) => return Err(End::Answered),
            (Fault::Garble, Direction::Replies) => garbage(bytes.len()),
            (Fault::AnswerWith(instead), Direction::Replies) => instead.to_vec(),
            _ => bytes,
        };
        Ok((!self.silent).then_some(bytes))
    }

    const fn passed(&self) -> &AtomicU64 {
        match self.direction {
            Direction::Requests => &self.shared.to_server,
            Direction::Replies => &self.shared.to_client,
        }
    }
}

/// Notes what arrives, and when it is due, until there is no more.
async fn read(
    shared: &Shared,
    mut from: ReadHalf<'_>,
    arrived: mpsc::Sender<(Instant, Vec<u8>)>,
) -> Result<(), End> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let Ok(count @ 1..) = from.read(&mut buffer).await else { return Ok(()) };
        let delay = match shared.fault() {
            Fault::Delay(by) => by,
            _ => Duration::ZERO,
        };
        if arrived.send((Instant::now() + delay, buffer[..count].to_vec())).await.is_err() {
            return Ok(());
        }
    }
}

/// Bytes with which no answer begins and no line ends, never the same twice in a row.
fn garbage(length: usize) -> Vec<u8> {
    (0_u8..128).map(|n| 0x80 | n.wrapping_mul(37)).cycle().take(length).collect()
}
