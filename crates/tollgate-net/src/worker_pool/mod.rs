//! Worker pool: accepts the connections of one listener and serves them on threads of its own.
//!
//! One acceptor gives each connection to the worker that has the fewest, stops at the maximum number of connections, and
//! empties the backlog before it closes. With a listener a worker (`SO_REUSEPORT`), chance would decide how connections are
//! spread, and those in the backlog of a listener that closes would be lost.
//!
//! By default every worker is a thread with a runtime of its own, and a connection stays with its worker: nothing on a
//! request's way is handed to another thread. A [shared](Scheduling::Shared) pool has one runtime whose threads take ready
//! connections from each other. [`serve_here`] has no threads: it serves on the runtime that calls it.

mod acceptor;
mod counts;

pub(crate) use counts::ConnectionSlot;
pub use counts::Gauges;

use crate::{Connection, Drain, Guard, Listener, Phase, TlsAcceptor};
use acceptor::Acceptor;
use counts::ConnectionCounts;
use std::{
    fmt, io,
    net::SocketAddr,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};
use tokio::{
    runtime::{Builder, Handle, Runtime, RuntimeFlavor},
    sync::watch,
};

/// How long the threads of a shared runtime may take to end what they are polling. A runtime of one thread waits for
/// nothing, not for a name that is still looked up either.
const SHARED_SHUTDOWN: Duration = Duration::from_secs(1);

/// Serves connections by one protocol.
pub trait ConnectionHandler: Send + Sync + 'static {
    /// Serves a connection until it ends. When [`Guard::closing`] says so, it finishes the request it is on and ends.
    fn serve(self: Arc<Self>, connection: Connection) -> impl Future<Output = ()> + Send + 'static;

    /// Called on the thread of every worker, before its first connection. Not called in a shared pool.
    fn enter_worker(&self, worker: usize) {
        let _ = worker;
    }
}

/// Settings of a [`WorkerPool`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PoolSettings {
    /// Number of threads.
    pub workers: NonZeroUsize,
    /// How connections are spread over the threads.
    pub scheduling: Scheduling,
    /// Maximum number of open connections.
    pub max_connections: NonZeroUsize,
    /// What happens to a connection above that.
    pub when_full: WhenFull,
    /// TLS; plain text without.
    pub tls: Option<TlsAcceptor>,
}

/// How the connections of a pool are spread over its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// A runtime for each thread. A connection stays with the thread that got it.
    PerWorker,
    /// One runtime for all threads. A thread without work takes over connections that wait for another: one that the system
    /// has suspended delays nobody. Costs more where connections touch each other's caches.
    Shared,
}

/// What happens to a connection above the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It waits in the system's backlog until another one ends.
    Wait,
    /// It is closed.
    Close,
}

impl Default for PoolSettings {
    /// A worker a core, each with its own connections, at most 10,000 of them, no TLS.
    fn default() -> Self {
        Self {
            workers: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            scheduling: Scheduling::PerWorker,
            max_connections: NonZeroUsize::MIN.saturating_add(9_999),
            when_full: WhenFull::Wait,
            tls: None,
        }
    }
}

impl PoolSettings {
    /// One runtime that all threads share, and a thread for every second core. For clients that keep few connections with
    /// many short requests on each: with as many threads as cores, the system suspends one of them for milliseconds while
    /// its connections wait; and threads that have little to do wake each other, which costs a sixth of the CPU.
    #[must_use]
    pub fn shared() -> Self {
        let own = Self::default();
        let half = NonZeroUsize::new(own.workers.get() / 2).unwrap_or(NonZeroUsize::MIN);
        Self { workers: half, scheduling: Scheduling::Shared, ..own }
    }
}

/// Threads that serve a listener until the drain they were given is over. Dropped, the pool ends at once.
pub struct WorkerPool {
    address: SocketAddr,
    counts: Arc<ConnectionCounts>,
    accept_errors: Arc<AtomicU64>,
    /// Dropped, it ends the threads.
    stop: watch::Sender<()>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl WorkerPool {
    /// Serves the connections of `listener` with `handler`. Stops accepting when the drain closes, lets open connections
    /// finish, and ends with the drain.
    ///
    /// # Errors
    /// If a thread or a runtime cannot be started, or the socket cannot be used.
    pub fn start<H: ConnectionHandler>(
        name: &str,
        listener: Listener,
        settings: PoolSettings,
        drain: &Drain,
        handler: Arc<H>,
    ) -> io::Result<Self> {
        let workers = settings.workers.get();
        let runtimes = match settings.scheduling {
            Scheduling::PerWorker => workers,
            Scheduling::Shared => 1,
        };
        let mut pool = Self {
            address: listener.address(),
            counts: ConnectionCounts::new(runtimes),
            accept_errors: listener.accept_errors(),
            stop: watch::Sender::new(()),
            threads: Vec::new(),
        };
        let (accepting, handles) = match settings.scheduling {
            Scheduling::PerWorker => {
                let mut handles = Vec::new();
                for worker in 0..workers {
                    let runtime = Builder::new_current_thread().enable_all().build()?;
                    handles.push(runtime.handle().clone());
                    let handler = Arc::clone(&handler);
                    let work = async move {
                        handler.enter_worker(worker);
                        std::future::pending::<()>().await;
                    };
                    pool.run(format!("{name}-{worker}"), runtime, drain, work)?;
                }
                (Builder::new_current_thread().enable_all().build()?, handles)
            }
            Scheduling::Shared => {
                let mut builder = Builder::new_multi_thread();
                let runtime = builder.worker_threads(workers).thread_name(name).enable_all().build()?;
                let handles = vec![runtime.handle().clone()];
                (runtime, handles)
            }
        };
        let listener = {
            let _entered = accepting.enter();
            listener.rebind_to_runtime()?
        };
        let acceptor = Acceptor::new(handler, handles, &pool.counts, settings);
        // Held from here on, so that the drain cannot see nobody before the acceptor has begun.
        let guard = drain.guard();
        let accept = async move {
            acceptor.run(listener, guard).await;
            std::future::pending::<()>().await;
        };
        pool.run(format!("{name}-accept"), accepting, drain, accept)?;
        Ok(pool)
    }

    /// Runs `work` on a thread of its own, until the drain is over or the pool is dropped.
    fn run(
        &mut self,
        name: String,
        runtime: Runtime,
        drain: &Drain,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let (drain, mut stopped) = (drain.clone(), self.stop.subscribe());
        let thread = thread::Builder::new().name(name).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    biased;
                    // The sender is gone: nothing is ever sent.
                    _ = stopped.changed() => {}
                    () = drain.reached(Phase::Over) => {}
                    () = work => {}
                }
            });
            match runtime.handle().runtime_flavor() {
                RuntimeFlavor::CurrentThread => runtime.shutdown_background(),
                _ => runtime.shutdown_timeout(SHARED_SHUTDOWN),
            }
        })?;
        self.threads.push(thread);
        Ok(())
    }

    /// The address it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Open connections and requests in flight.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        self.counts.gauges()
    }

    /// A view of how many connections are open.
    pub fn connections(&self) -> impl Fn() -> usize + Send + Sync + 'static + use<> {
        let counts = Arc::clone(&self.counts);
        move || counts.connections()
    }

    /// A view of how often no connection could be accepted because the process had run out of descriptors or memory.
    pub fn accept_errors(&self) -> impl Fn() -> u64 + Send + Sync + 'static + use<> {
        let errors = Arc::clone(&self.accept_errors);
        move || errors.load(Relaxed)
    }

    /// Waits for the threads, which end when the drain is over.
    pub fn join(mut self) {
        self.join_threads();
    }

    fn join_threads(&mut self) {
        for thread in self.threads.drain(..) {
            // One that panicked has ended.
            let _ = thread.join();
        }
    }
}

/// Ends at once: what is under way is dropped.
impl Drop for WorkerPool {
    fn drop(&mut self) {
        drop(std::mem::replace(&mut self.stop, watch::Sender::new(())));
        self.join_threads();
    }
}

impl fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerPool").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Serves the connections of `listener` on the runtime that calls this, without threads: [`PoolSettings::workers`] and
/// [`PoolSettings::scheduling`] mean nothing. Stops accepting when `guard` closes, and returns when all connections have
/// ended, at most `within` later.
pub async fn serve_here<H: ConnectionHandler>(
    listener: Listener,
    settings: PoolSettings,
    guard: Guard,
    within: Duration,
    handler: Arc<H>,
) {
    let counts = ConnectionCounts::new(1);
    Acceptor::new(handler, vec![Handle::current()], &counts, settings).run(listener, guard).await;
    let _ = tokio::time::timeout(within, counts.at_most(0)).await;
}
