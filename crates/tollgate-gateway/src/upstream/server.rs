//! One server of an upstream: its connections that rest, and how it is.
//!
//! Connections are kept apart by worker. The last one put down is the first taken up, so that those that are not needed
//! grow old and are closed: a task per worker looks after them while there are any.

use super::{
    connect::{self, ConnectError, Offer, Tls, Version},
    h1::Connection,
    h2::Http2,
    health::Health,
    reuse::Reuse,
    shard::{self, SHARDS},
    stream::IdleState,
    url::{ServerUrl, Speaks},
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};
use tokio::time::Instant;
use tollgate_rules::model;

/// How many connections rest at most, for every worker.
const MOST_IDLE: usize = 256;

/// How often resting connections are looked at.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

pub(crate) struct Server {
    pub(crate) url: ServerUrl,
    pub(crate) health: Health,
    tls: Option<Tls>,
    idle_timeout: Duration,
    abort_grace: Duration,
    connect_timeout: Duration,
    resting: [Mutex<Resting>; SHARDS],
    reuse: Reuse,
    http2: Http2,
}

#[derive(Default)]
struct Resting {
    connections: VecDeque<Box<Connection>>,
    swept: bool,
}

/// A connection to send a request on.
pub(crate) enum Line {
    /// Used before or not, at rest.
    Http1(Box<Connection>),
    Http2(super::h2::Sender),
}

impl Server {
    pub(super) fn new(url: ServerUrl, tls: Option<Tls>, settings: &model::Upstream) -> Arc<Self> {
        Arc::new(Self {
            url,
            health: Health::default(),
            tls,
            idle_timeout: settings.idle_timeout,
            abort_grace: settings.abort_grace,
            connect_timeout: settings.connect_timeout,
            resting: std::array::from_fn(|_| Mutex::default()),
            reuse: Reuse::default(),
            http2: Http2::default(),
        })
    }

    /// Whether a server made of `settings` would be the same, so that this one may go on.
    pub(super) fn fits(&self, url: &ServerUrl, settings: &model::Upstream) -> bool {
        self.url == *url
            && self.idle_timeout == settings.idle_timeout
            && self.abort_grace == settings.abort_grace
            && self.connect_timeout == settings.connect_timeout
    }

    pub(super) fn idle_timeout(&self) -> Duration {
        self.idle_timeout
    }

    pub(crate) fn abort_grace(&self) -> Duration {
        self.abort_grace
    }

    /// A connection that rests, if there is one that is still good.
    pub(crate) fn take(&self) -> Option<Box<Connection>> {
        let mut resting = self.resting(shard::current());
        loop {
            let mut connection = resting.connections.pop_back()?;
            let now = Instant::now();
            connection.taken = now;
            if connection.keep_until > now && self.is_usable(&mut connection, now) {
                return Some(connection);
            }
        }
    }

    /// Whether a pooled connection may be used again.
    fn is_usable(&self, connection: &mut Connection, now: Instant) -> bool {
        let state = connection.idle_state(now);
        if state == IdleState::Unasked {
            self.ban_reuse();
        }
        state == IdleState::Quiet && self.reuse.is_allowed()
    }

    /// The server sent bytes that no request asked for: connections to it are not reused for a while.
    pub(super) fn ban_reuse(&self) {
        self.reuse.ban(&self.url.text);
    }

    /// Keeps a connection for the next request of this worker.
    pub(super) fn keep(self: &Arc<Self>, connection: Box<Connection>) {
        if !self.reuse.is_allowed() {
            return;
        }
        let shard = shard::current();
        let mut resting = self.resting(shard);
        if resting.connections.len() < MOST_IDLE {
            resting.connections.push_back(connection);
        }
        if !resting.swept
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            resting.swept = true;
            runtime.spawn(sweep(Arc::downgrade(self), shard));
        }
    }

    /// A line to send a request on: one that is there, or a new one.
    pub(crate) async fn line(&self, offer: Offer) -> Result<Line, ConnectError> {
        if let Some(sender) = self.http2.ready()
            && offer == Offer::Both
        {
            return Ok(Line::Http2(sender));
        }
        match self.take() {
            Some(connection) => Ok(Line::Http1(connection)),
            // Seldom, and large: in a box, so that a request is no larger for it.
            None => Box::pin(self.fresh(offer)).await,
        }
    }

    /// A new connection, or the one for HTTP/2 that all share.
    pub(crate) async fn fresh(&self, offer: Offer) -> Result<Line, ConnectError> {
        match (self.url.speaks, &self.tls) {
            (Speaks::Http1, _) => {
                let stream = connect::plain(&self.url, self.connect_timeout).await?;
                Ok(Line::Http1(Connection::new(stream)))
            }
            (Speaks::Http2, _) if offer == Offer::Http1 => Err(ConnectError::NoUpgrades),
            (Speaks::Http2, _) => self.shared(None).await,
            (Speaks::Tls, Some(tls)) if offer == Offer::Both => self.shared(Some(tls)).await,
            (Speaks::Tls, Some(tls)) => {
                let (stream, _) = connect::tls(&self.url, tls, offer, self.connect_timeout).await?;
                Ok(Line::Http1(Connection::new(stream)))
            }
            (Speaks::Tls, None) => Err(ConnectError::Failed("TLS is not set up".to_owned())),
        }
    }

    /// One at a time makes the connection for HTTP/2; others find it made. Where TLS says HTTP/1.1 there is nothing to
    /// share, and later callers no longer wait for each other.
    async fn shared(&self, tls: Option<&Tls>) -> Result<Line, ConnectError> {
        let asked = Instant::now();
        let _turn = if self.http2.is_unlikely() { None } else { Some(self.http2.turn().await) };
        if let Some(sender) = self.http2.ready() {
            return Ok(Line::Http2(sender));
        }
        if let Some(error) = self.http2.failed_since(asked) {
            return Err(error);
        }
        let connected = match tls {
            None => {
                connect::plain(&self.url, self.connect_timeout).await.map(|stream| (stream, Version::Http2))
            }
            Some(tls) => connect::tls(&self.url, tls, Offer::Both, self.connect_timeout).await,
        };
        let (stream, version) = connected.inspect_err(|error| self.http2.note_failure(error))?;
        match version {
            Version::Http1 => {
                self.http2.set_unlikely();
                Ok(Line::Http1(Connection::new(stream)))
            }
            Version::Http2 => self.http2.start(stream).await.map(Line::Http2),
        }
    }

    /// How many connections rest, of all workers.
    pub(crate) fn idle(&self) -> usize {
        (0..SHARDS).map(|shard| self.resting(shard).connections.len()).sum()
    }

    fn resting(&self, shard: usize) -> MutexGuard<'_, Resting> {
        self.resting[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes what is too old or was closed by the server; says whether any are left.
    fn sweep(&self, shard: usize) -> bool {
        let mut resting = self.resting(shard);
        let now = Instant::now();
        resting
            .connections
            .retain_mut(|connection| connection.keep_until > now && self.is_usable(connection, now));
        resting.swept = !resting.connections.is_empty();
        resting.swept
    }
}

async fn sweep(server: Weak<Server>, shard: usize) {
    loop {
        let Some(every) = server.upgrade().map(|server| server.idle_timeout.min(SWEEP_EVERY)) else { return };
        tokio::time::sleep(every.max(Duration::from_millis(10))).await;
        match server.upgrade() {
            Some(server) if server.sweep(shard) => {}
            _ => return,
        }
    }
}
