//! A plain HTTP/1.1 server that answers what a test tells it to, to stand behind whatever is tested.
//!
//! It keeps what it was asked and how many it was busy with at once, so that a test can say what came through. It runs on
//! a thread of its own, as the [`Proxy`](crate::Proxy) does. It speaks no TLS, no HTTP/2 and upgrades nothing.

mod canned;
mod serve;

pub use canned::Canned;

use crate::{backstage::Backstage, http};
use std::{
    fmt,
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

/// An upstream on a free port of 127.0.0.1. Dropping it closes its connections.
///
/// ```
/// use testkit::{Canned, Upstream};
///
/// let upstream = Upstream::start(|asked| match asked.target.as_str() {
///     "/slow" => Canned::text("at last").after(std::time::Duration::from_millis(20)),
///     _ => Canned::echo(asked),
/// });
/// let seen = testkit::Arrivals::at_ms([0]).play(upstream.address());
/// assert!(seen[0].text().starts_with("GET / HTTP/1.1\r\n"));
/// assert_eq!(upstream.asked().len(), 1);
/// ```
pub struct Upstream {
    backstage: Backstage,
    shared: Arc<Shared>,
}

/// A request as it came in.
#[derive(Clone, Debug)]
pub struct Asked {
    /// How many came before it.
    pub number: usize,
    /// When its head had come, since the upstream was started.
    pub at: Duration,
    /// As in `GET`.
    pub method: String,
    /// Path and query, as they were written.
    pub target: String,
    /// As they were written, in order.
    pub headers: Vec<(String, String)>,
    /// Without what frames it.
    pub body: Vec<u8>,
    /// The connection it came on, counted from 0.
    pub connection: u64,
}

struct Shared {
    handler: Box<Handler>,
    sleep: Box<Sleep>,
    started: Instant,
    asked: Mutex<Vec<Asked>>,
    connections: AtomicU64,
    in_flight: AtomicUsize,
    most_in_flight: AtomicUsize,
}

type Handler = dyn Fn(&Asked) -> Canned + Send + Sync;

type Sleep = dyn Fn(Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync;

impl Upstream {
    /// Starts one that answers by this. A handler that panics closes the connection, and the upstream goes on.
    pub fn start(handler: impl Fn(&Asked) -> Canned + Send + Sync + 'static) -> Self {
        Self::start_by(handler, |time| Box::pin(tokio::time::sleep(time)))
    }

    /// Starts one whose delays and pauses last as long as `sleep` does: by the clock of a test, for example. It is called
    /// where a delay or pause begins.
    pub fn start_by(
        handler: impl Fn(&Asked) -> Canned + Send + Sync + 'static,
        sleep: impl Fn(Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync + 'static,
    ) -> Self {
        let shared = Arc::new(Shared {
            handler: Box::new(handler),
            sleep: Box::new(sleep),
            started: Instant::now(),
            asked: Mutex::default(),
            connections: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
            most_in_flight: AtomicUsize::new(0),
        });
        let backstage = Backstage::start("upstream", {
            let shared = Arc::clone(&shared);
            async move |listener| serve::accept(listener, &shared).await
        });
        Self { backstage, shared }
    }

    /// Starts one that answers 200 and `ok` to everything, at once.
    pub fn ok() -> Self {
        Self::start(|_| Canned::text("ok\n"))
    }

    /// Starts one that does what each request's query asks for: see [`Canned::by_query`].
    pub fn by_query() -> Self {
        Self::start(Canned::by_query)
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.backstage.address
    }

    /// Where it listens.
    pub const fn port(&self) -> u16 {
        self.backstage.address.port()
    }

    /// Where it listens, as a URL without a slash at its end.
    pub fn url(&self) -> String {
        format!("http://{}", self.backstage.address)
    }

    /// What it was asked so far, in order.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked().clone()
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(SeqCst)
    }

    /// Requests whose answer has not ended, nor been given up.
    pub fn in_flight(&self) -> usize {
        self.shared.in_flight.load(SeqCst)
    }

    /// The most there ever were of those at once.
    pub fn most_in_flight(&self) -> usize {
        self.shared.most_in_flight.load(SeqCst)
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("address", &self.address()).finish_non_exhaustive()
    }
}

impl Asked {
    /// The first header of this name, in whatever case.
    pub fn header(&self, name: &str) -> Option<&str> {
        http::header(&self.headers, name)
    }

    /// Its head, as it came.
    pub fn head(&self) -> String {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head + "\r\n"
    }
}

impl Shared {
    /// Nobody panics under this lock.
    fn asked(&self) -> MutexGuard<'_, Vec<Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
