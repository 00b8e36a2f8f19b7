//! Accepting requests: listeners, workers, connections, and their end.
//!
//! Every worker is a thread with a runtime of its own. A connection stays with its worker, and so do the connections to
//! upstreams that its requests use: nothing on a request's way is shared with another thread or handed to one.

mod accept;
mod connection;
mod gate;
mod h1;
mod handler;
mod presence;
mod settings;
mod taking;
mod tls;

pub(crate) use gate::Gate;
pub(crate) use h1::{Inlet, Switching};
pub(crate) use handler::Flight;
pub use handler::{Access, Handler, Observer};
pub use presence::Gauges;
pub use settings::{Http2Settings, Limits, ServeError, Settings};

use crate::upstream::shard;
use accept::{Acceptor, Arrival};
use connection::Serving;
use presence::Everyone;
use std::{fmt, net::SocketAddr, sync::Arc, thread, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
    sync::{mpsc, oneshot, watch},
    time::{Instant, timeout_at},
};

/// A server that runs. Dropped, it ends at once; [`drain`](Self::drain) lets it finish.
pub struct Server {
    address: SocketAddr,
    everyone: Arc<Everyone>,
    /// Ends the acceptor, after which it answers here.
    acceptor: Option<(oneshot::Sender<()>, oneshot::Receiver<()>)>,
    /// Dropped, it ends the workers.
    end: watch::Sender<()>,
    threads: Vec<thread::JoinHandle<()>>,
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// Connections that were cut off because they were not done in time.
    pub cut: usize,
}

impl Server {
    /// Serves what comes to `listener`, on threads of its own, until dropped or drained.
    ///
    /// # Errors
    /// Where the listener, a thread or the certificate cannot be used.
    pub fn start<H: Handler>(
        listener: std::net::TcpListener,
        settings: Settings,
        handler: H,
    ) -> Result<Self, ServeError> {
        let listening = |error: std::io::Error| ServeError::Listener { reason: error.to_string() };
        let address = listener.local_addr().map_err(listening)?;
        listener.set_nonblocking(true).map_err(listening)?;
        let patience = settings.limits.head_timeout;
        let tls = settings.tls.as_ref().map(|files| tls::acceptor(files, patience)).transpose()?;
        let workers = settings.workers.max(1);
        let everyone = Everyone::new(workers);
        let (end, ended) = watch::channel(());
        let mut server = Self { address, everyone, acceptor: None, end, threads: Vec::new() };
        let (follow, reload) = (tls.clone().zip(settings.tls.clone()), settings.reload.clone());
        let max_connections = settings.max_connections.max(1);
        let serving = Arc::new(Serving { settings, handler, tls });
        let mut senders = Vec::new();
        for worker in 0..workers {
            let (sender, arrivals) = mpsc::unbounded_channel();
            senders.push(sender);
            let (serving, ended) = (serving.clone(), ended.clone());
            server.run(format!("gateway-{worker}"), move |runtime| {
                shard::enter(worker);
                runtime.block_on(work(arrivals, serving, ended));
            })?;
        }
        let everyone = server.everyone.clone();
        let (stop, stopped) = oneshot::channel();
        let (gone, closed) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        server.run("gateway-accept".to_owned(), move |runtime| {
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener);
                let _ = tell.send(listener.as_ref().err().map(ToString::to_string));
                let Ok(listener) = listener else { return };
                if let Some((acceptor, files)) = follow {
                    tokio::spawn(tls::follow(acceptor, files, reload));
                }
                let mut ended = ended;
                let acceptor = Acceptor { listener, workers: senders, everyone, max_connections };
                tokio::select! {
                    biased;
                    _ = ended.changed() => return,
                    () = acceptor.run(stopped) => {}
                }
                let _ = gone.send(());
                let _ = ended.changed().await;
            });
        })?;
        if let Ok(Some(reason)) = told.recv() {
            return Err(ServeError::Listener { reason });
        }
        server.acceptor = Some((stop, closed));
        Ok(server)
    }

    fn run(&mut self, name: String, work: impl FnOnce(&Runtime) + Send + 'static) -> Result<(), ServeError> {
        let failed = |error: std::io::Error| ServeError::Worker { reason: error.to_string() };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let thread = thread::Builder::new().name(name).spawn(move || {
            work(&runtime);
            // Does not wait for a name that is still looked up.
            runtime.shutdown_background();
        });
        self.threads.push(thread.map_err(failed)?);
        Ok(())
    }

    /// Where it listens.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// What is open and under way.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        self.everyone.gauges()
    }

    /// Accepts no more, lets everything under way finish, and ends; at the latest `within` that time. Connections that
    /// rest are given a second for a last request, whose answer closes them; HTTP/2 clients are told to go (GOAWAY).
    pub async fn drain(mut self, within: Duration) -> Drained {
        let by = Instant::now() + within;
        if let Some((stop, closed)) = self.acceptor.take() {
            let _ = stop.send(());
            let _ = timeout_at(by, closed).await;
        }
        self.everyone.drain();
        loop {
            let left = self.everyone.left.notified();
            if self.gauges().connections == 0 || timeout_at(by, left).await.is_err() {
                break;
            }
        }
        Drained { cut: self.gauges().connections }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let (none, _) = watch::channel(());
        drop(std::mem::replace(&mut self.end, none));
        self.acceptor = None;
        for thread in self.threads.drain(..) {
            // A worker ends between two polls; one that panicked has ended.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A worker: serves what arrives until the server ends, and what is under way ends with it.
async fn work<H: Handler>(
    mut arrivals: mpsc::UnboundedReceiver<Arrival>,
    serving: Arc<Serving<H>>,
    mut ended: watch::Receiver<()>,
) {
    loop {
        let arrival = tokio::select! {
            biased;
            // The sender is gone: nothing else is ever sent.
            _ = ended.changed() => return,
            arrival = arrivals.recv() => arrival,
        };
        let Some(Arrival { socket, peer, presence }) = arrival else {
            let _ = ended.changed().await;
            return;
        };
        let Ok(socket) = TcpStream::from_std(socket) else { continue };
        tokio::spawn(connection::serve(serving.clone(), socket, peer, presence));
    }
}
