//! Threads that serve connections: each with a runtime of its own, and every connection stays with one of them.
//!
//! Nothing on a question's way is handed to another thread. One place accepts and gives each connection to the worker that
//! has the fewest, so that they are spread evenly and none is lost at a listener that closes. A connection above the most
//! there may be waits in the system's backlog; nobody is accepted only to be turned away.

use crate::{Drain, Guard, Listener, Stream, TlsAcceptor};
use std::{
    io,
    net::SocketAddr,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Builder,
    sync::{Notify, mpsc},
    task::LocalSet,
    time::{self, Instant},
};

/// How long those are taken who were waiting to be accepted when the listener closes.
const LAST_CALL: Duration = Duration::from_millis(50);

/// One protocol, spoken on one connection at a time.
pub trait Door: Send + Sync + 'static {
    /// Serves a connection until it ends. What it does stays on the thread it began on.
    fn serve(
        self: Arc<Self>,
        stream: Stream,
        peer: SocketAddr,
        guard: Guard,
    ) -> impl Future<Output = ()> + 'static;
}

/// How many serve, and how many are served.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CrewSettings {
    /// Threads.
    pub workers: NonZeroUsize,
    /// Connections at once; more wait to be accepted.
    pub max_connections: NonZeroUsize,
    /// With TLS.
    pub tls: Option<TlsAcceptor>,
}

impl Default for CrewSettings {
    /// A worker for every core, ten thousand connections, no TLS.
    fn default() -> Self {
        let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Self { workers: cores, max_connections: NonZeroUsize::MIN.saturating_add(9_999), tls: None }
    }
}

/// Threads that serve a listener, until the drain they were given is over.
#[derive(Debug)]
pub struct Crew {
    address: SocketAddr,
    counts: Arc<Counts>,
    threads: Vec<thread::JoinHandle<()>>,
}

/// Who is inside, by worker.
#[derive(Debug)]
struct Counts {
    by_worker: Box<[AtomicUsize]>,
    left: Notify,
}

/// A connection on its way to its worker, away from the runtime that accepted it.
struct Arrival {
    socket: std::net::TcpStream,
    peer: SocketAddr,
    place: Place,
    /// From the acceptor's own, so that it is never seen to be nobody's.
    guard: Guard,
}

/// Counts a connection until it is dropped.
struct Place {
    worker: usize,
    counts: Arc<Counts>,
}

impl Crew {
    /// Serves what comes to `listener` through `door`. Stops accepting when the drain closes, waits for those inside as the
    /// drain does, and ends with it.
    ///
    /// # Errors
    /// Where a thread or a runtime cannot be had.
    pub fn start<D: Door>(
        name: &str,
        listener: Listener,
        settings: CrewSettings,
        drain: &Drain,
        door: Arc<D>,
    ) -> io::Result<Self> {
        let address = listener.address();
        let listener = listener.into_std()?;
        let workers = settings.workers.get();
        let counts = Arc::new(Counts {
            by_worker: (0..workers).map(|_| AtomicUsize::new(0)).collect(),
            left: Notify::new(),
        });
        let mut crew = Self { address, counts: counts.clone(), threads: Vec::new() };
        let mut senders = Vec::new();
        for worker in 0..workers {
            let (sender, arrivals) = mpsc::unbounded_channel();
            senders.push(sender);
            let work = Work { door: door.clone(), tls: settings.tls.clone() };
            crew.run(format!("{name}-{worker}"), drain, move || work.run(arrivals))?;
        }
        // Held from here on, so that the drain cannot see nobody before the acceptor has begun.
        let guard = drain.guard();
        let max_connections = settings.max_connections.get();
        let acceptor = Acceptor { senders, counts, max_connections, address };
        crew.run(format!("{name}-accept"), drain, move || acceptor.run(listener, guard))?;
        Ok(crew)
    }

    fn run<F: Future<Output = ()> + 'static>(
        &mut self,
        name: String,
        drain: &Drain,
        work: impl FnOnce() -> F + Send + 'static,
    ) -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let drain = drain.clone();
        let thread = thread::Builder::new().name(name).spawn(move || {
            let all = LocalSet::new();
            all.block_on(&runtime, async {
                tokio::select! {
                    () = drain.reached(crate::Phase::Over) => {}
                    () = work() => {}
                }
            });
            drop(all);
            runtime.shutdown_background();
        })?;
        self.threads.push(thread);
        Ok(())
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// A view of how many connections are open, for whoever counts.
    pub fn connections(&self) -> impl Fn() -> usize + Send + Sync + 'static {
        let counts = self.counts.clone();
        move || counts.inside()
    }

    /// Waits for the threads, which end when the drain is over.
    pub fn join(self) {
        for thread in self.threads {
            // One that panicked has ended.
            let _ = thread.join();
        }
    }
}

struct Acceptor {
    senders: Vec<mpsc::UnboundedSender<Arrival>>,
    counts: Arc<Counts>,
    max_connections: usize,
    address: SocketAddr,
}

impl Acceptor {
    async fn run(self, listener: std::net::TcpListener, guard: Guard) {
        // A socket that a runtime had already is one that this one takes.
        let Ok(listener) = TcpListener::from_std(listener) else { return };
        let listener = Listener::adopt(listener, self.address);
        loop {
            let accepted = tokio::select! {
                biased;
                () = guard.closing() => break,
                accepted = self.accept(&listener) => accepted,
            };
            self.hand_over(accepted, &guard);
        }
        // Those that the system has accepted already are not reset: they get their word, too. Not for ever, should new ones
        // keep coming.
        let by = Instant::now() + LAST_CALL;
        while self.has_room() {
            let moment = by.min(Instant::now() + Duration::from_millis(5));
            match time::timeout_at(moment, listener.accept()).await {
                Ok(accepted) => self.hand_over(accepted, &guard),
                Err(_) => break,
            }
        }
    }

    async fn accept(&self, listener: &Listener) -> (TcpStream, SocketAddr) {
        loop {
            let left = self.counts.left.notified();
            if self.has_room() {
                return listener.accept().await;
            }
            left.await;
        }
    }

    fn has_room(&self) -> bool {
        self.counts.inside() < self.max_connections
    }

    fn hand_over(&self, (stream, peer): (TcpStream, SocketAddr), guard: &Guard) {
        // It may be gone already.
        let Ok(socket) = stream.into_std() else { return };
        let worker = self.counts.least_busy();
        let place = Place::take(worker, &self.counts);
        // A worker that ended takes nobody.
        let _ = self.senders[worker].send(Arrival { socket, peer, place, guard: guard.clone() });
    }
}

struct Work<D> {
    door: Arc<D>,
    tls: Option<TlsAcceptor>,
}

impl<D: Door> Work<D> {
    async fn run(self, mut arrivals: mpsc::UnboundedReceiver<Arrival>) {
        while let Some(Arrival { socket, peer, place, guard }) = arrivals.recv().await {
            let (door, tls) = (self.door.clone(), self.tls.clone());
            tokio::task::spawn_local(async move {
                let _place = place;
                let Ok(socket) = TcpStream::from_std(socket) else { return };
                let stream = match tls {
                    None => Stream::Plain(socket),
                    // A handshake that fails is the peer's affair.
                    Some(tls) => match tls.accept(socket).await {
                        Ok(stream) => Stream::Tls(Box::new(stream)),
                        Err(_) => return,
                    },
                };
                door.serve(stream, peer, guard).await;
            });
        }
        // Nobody comes any more; those who are here are served until the drain is over.
        std::future::pending::<()>().await;
    }
}

impl Counts {
    fn inside(&self) -> usize {
        self.by_worker.iter().map(|count| count.load(Relaxed)).sum()
    }

    fn least_busy(&self) -> usize {
        let counted = self.by_worker.iter().enumerate();
        counted.min_by_key(|(_, count)| count.load(Relaxed)).map_or(0, |(worker, _)| worker)
    }
}

impl Place {
    fn take(worker: usize, counts: &Arc<Counts>) -> Self {
        counts.by_worker[worker].fetch_add(1, Relaxed);
        Self { worker, counts: counts.clone() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.counts.by_worker[self.worker].fetch_sub(1, Relaxed);
        self.counts.left.notify_one();
    }
}
