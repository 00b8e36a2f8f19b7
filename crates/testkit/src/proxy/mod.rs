//! What happens to bytes between a client and a server.
//!
//! A TCP proxy on 127.0.0.1 with faults that are switched while it runs. It reads no protocol: it sees bytes that come
//! and go. It runs on a thread of its own, so that blocking tests can use it, and tests on paused time do not pause it.
//!
//! TCP loses no bytes from the middle of a stream, and no client is ready for that. So a connection of which bytes were
//! swallowed stays silent in that direction, also when the fault has passed: the client must give it up by itself.

mod carry;

use crate::backstage::Backstage;
use carry::carry;
use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{net::TcpListener, sync::watch};

/// A proxy to a port of 127.0.0.1. It begins by passing everything, and does one thing at a time; every verb replaces
/// what was said before, and holds for connections there are and those to come. Dropping it closes all of them.
pub struct Proxy {
    backstage: Backstage,
    shared: Arc<Shared>,
}

struct Shared {
    target: u16,
    state: Mutex<State>,
    accepted: AtomicU64,
    open: AtomicU64,
    to_server: AtomicU64,
    to_client: AtomicU64,
}

struct State {
    fault: Fault,
    /// Ends, and is replaced, when connections are cut. Each holds a receiver until it is closed.
    era: watch::Sender<()>,
}

#[derive(Clone)]
enum Fault {
    Pass,
    Delay(Duration),
    Cut,
    BlackHole,
    Garble,
    AnswerWith(Arc<[u8]>),
    CutAfterRequest,
    DropReplies,
}

impl Proxy {
    /// Starts one to this port, whether somebody listens there yet or not.
    pub fn start(target: u16) -> Self {
        let state = State { fault: Fault::Pass, era: watch::Sender::new(()) };
        let none = || AtomicU64::new(0);
        let shared = Arc::new(Shared {
            target,
            state: Mutex::new(state),
            accepted: none(),
            open: none(),
            to_server: none(),
            to_client: none(),
        });
        let backstage = Backstage::start("proxy", {
            let shared = Arc::clone(&shared);
            async move |listener| accept(&listener, &shared).await
        });
        Self { backstage, shared }
    }

    /// Where a client connects.
    pub const fn port(&self) -> u16 {
        self.backstage.address.port()
    }

    /// Where a client connects, as a URL.
    pub fn url(&self) -> String {
        format!("redis://{}", self.backstage.address)
    }

    /// Everything passes.
    pub fn pass(&self) {
        self.set(Fault::Pass);
    }

    /// Bytes arrive this much later, in each direction: an answer, twice this. Bandwidth stays what it is.
    pub fn delay(&self, by: Duration) {
        self.set(Fault::Delay(by));
    }

    /// Closes every connection, and new ones as they come. When it returns they are closed.
    pub fn cut(&self) {
        self.set(Fault::Cut);
        self.end_era();
    }

    /// Closes the connections there are. New ones are treated as was said before. When it returns they are closed.
    pub fn cut_once(&self) {
        self.end_era();
    }

    /// Takes everything, connections too, and passes nothing on, not even that the other end has closed.
    pub fn black_hole(&self) {
        self.set(Fault::BlackHole);
    }

    /// Instead of answers come as many bytes that are no answer.
    pub fn garble(&self) {
        self.set(Fault::Garble);
    }

    /// Instead of answers come these bytes; once for what the server writes at once, which for one request at a time is
    /// once an answer.
    pub fn answer_with(&self, bytes: impl AsRef<[u8]>) {
        self.set(Fault::AnswerWith(bytes.as_ref().into()));
    }

    /// Passes the next request on, and closes its connection when the answer comes, which is thrown away: the write has
    /// landed, and the client does not know. Everything else passes, and so does what comes later.
    pub fn cut_after_request(&self) {
        self.set(Fault::CutAfterRequest);
    }

    /// Requests arrive, answers do not.
    pub fn drop_replies(&self) {
        self.set(Fault::DropReplies);
    }

    /// Connections accepted so far, those closed at once included.
    pub fn connections(&self) -> u64 {
        self.shared.accepted.load(Relaxed)
    }

    /// Connections that are open.
    pub fn open_connections(&self) -> u64 {
        self.shared.open.load(Relaxed)
    }

    /// Bytes passed on to the server.
    pub fn bytes_to_server(&self) -> u64 {
        self.shared.to_server.load(Relaxed)
    }

    /// Bytes passed on to clients, garbage included.
    pub fn bytes_to_client(&self) -> u64 {
        self.shared.to_client.load(Relaxed)
    }

    fn set(&self, fault: Fault) {
        self.shared.state().fault = fault;
    }

    fn end_era(&self) {
        let old = std::mem::replace(&mut self.shared.state().era, watch::Sender::new(()));
        old.send_replace(());
        crate::eventually("connections to close", || (old.receiver_count() == 0).then_some(()));
    }
}

impl Shared {
    /// Nobody panics under this lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fault(&self) -> Fault {
        self.state().fault.clone()
    }
}

async fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        shared.accepted.fetch_add(1, Relaxed);
        let state = shared.state();
        if !matches!(state.fault, Fault::Cut) {
            tokio::spawn(carry(Arc::clone(shared), client, state.era.subscribe()));
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("port", &self.port())
            .field("target", &self.shared.target)
            .finish_non_exhaustive()
    }
}
