//! Where requests go: servers with weights, connections that are kept, and who is well.
//!
//! An upstream is replaced, never changed: requests under way keep the old one until they are done. A server that stays
//! the same goes over to the new one with its connections and what requests found of it; and with what checks found, if they
//! ask the same as before.

mod balance;
pub(crate) mod connect;
mod error;
pub(crate) mod h1;
pub(crate) mod h2;
mod health;
mod reuse;
pub(crate) mod server;
pub(crate) mod shard;
pub(crate) mod stream;
mod url;

pub use error::UpstreamError;

use balance::Turns;
use connect::Tls;
use server::Server;
use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::task::AbortHandle;
use tollgate_rules::model;
use url::ServerUrl;
pub(crate) use url::Speaks;

/// A named list of servers that all answer the same requests.
pub struct Upstream {
    settings: model::Upstream,
    servers: Box<[Arc<Server>]>,
    /// Which of them the checks found not to be well. No part of a server: it is said by this upstream's checks, and a late
    /// word of those before it is to reach nobody.
    unwell: Box<[AtomicBool]>,
    turns: Turns,
    /// Roots of one's own; the system's otherwise.
    tls: Option<Tls>,
    checks: Mutex<Vec<AbortHandle>>,
}

/// A server as it is now, for whoever looks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerState {
    /// As in the settings.
    pub url: String,
    /// As in the settings.
    pub weight: u32,
    /// Whether it gets requests.
    pub healthy: bool,
    /// How many HTTP/1.1 connections rest.
    pub idle: usize,
}

impl Upstream {
    /// An upstream of these settings.
    ///
    /// # Errors
    /// Where the settings cannot be used.
    pub fn new(settings: model::Upstream) -> Result<Arc<Self>, UpstreamError> {
        Self::build(settings, None, None)
    }

    /// As `new`, with TLS trusting `roots` alone (DER), for servers with certificates of one's own.
    ///
    /// # Errors
    /// Where the settings cannot be used.
    pub fn with_roots(
        settings: model::Upstream,
        roots: impl IntoIterator<Item = Vec<u8>>,
    ) -> Result<Arc<Self>, UpstreamError> {
        let mut store = rustls::RootCertStore::empty();
        for root in roots {
            store.add(root.into()).map_err(|error| UpstreamError::Tls { reason: error.to_string() })?;
        }
        let tls = Tls::with_roots(store).map_err(|reason| UpstreamError::Tls { reason })?;
        Self::build(settings, None, Some(tls))
    }

    /// The upstream that takes the place of `old`: servers that stay keep their connections and their health; what checks
    /// found only if they stay as they are.
    ///
    /// # Errors
    /// Where the settings cannot be used; `old` goes on then.
    pub fn replace(old: &Self, settings: model::Upstream) -> Result<Arc<Self>, UpstreamError> {
        Self::build(settings, Some(old), old.tls.clone())
    }

    fn build(
        settings: model::Upstream,
        old: Option<&Self>,
        tls: Option<Tls>,
    ) -> Result<Arc<Self>, UpstreamError> {
        let mut servers = Vec::with_capacity(settings.servers.len());
        let mut unwell = Vec::with_capacity(settings.servers.len());
        for server in &settings.servers {
            let url = ServerUrl::parse(&server.url)
                .map_err(|reason| UpstreamError::Url { url: server.url.clone(), reason })?;
            let same = |old: &Self| old.servers.iter().position(|server| server.fits(&url, &settings));
            if let Some((old, at)) = old.and_then(|old| Some((old, same(old)?))) {
                servers.push(old.servers[at].clone());
                let checked_alike = old.settings.health == settings.health;
                unwell.push(AtomicBool::new(checked_alike && old.unwell[at].load(Relaxed)));
                continue;
            }
            let tls = match (&tls, url.speaks) {
                (_, Speaks::Http1 | Speaks::Http2) => None,
                (Some(tls), Speaks::Tls) => Some(tls.clone()),
                (None, Speaks::Tls) => Some(Tls::system().map_err(|reason| UpstreamError::Tls { reason })?),
            };
            servers.push(Server::new(url, tls, &settings));
            unwell.push(AtomicBool::new(false));
        }
        let turns = Turns::new(settings.servers.iter().map(|server| server.weight));
        let (servers, unwell) = (servers.into(), unwell.into());
        Ok(Arc::new(Self { settings, servers, unwell, turns, tls, checks: Mutex::default() }))
    }

    /// Asks the servers if they are well, as the settings say, until this upstream is dropped. Once is enough.
    pub fn start_checks(self: &Arc<Self>, runtime: &tokio::runtime::Handle) {
        let Some(settings) = &self.settings.health else { return };
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        if !checks.is_empty() {
            return;
        }
        for index in 0..self.servers.len() {
            let check = health::check(Arc::downgrade(self), index, settings.clone());
            checks.push(runtime.spawn(check).abort_handle());
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// What it was made of.
    #[must_use]
    pub const fn settings(&self) -> &model::Upstream {
        &self.settings
    }

    /// Its servers as they are now.
    pub fn servers(&self) -> impl Iterator<Item = ServerState> + '_ {
        self.servers.iter().zip(&self.settings.servers).enumerate().map(|(i, (server, settings))| {
            ServerState {
                url: settings.url.clone(),
                weight: settings.weight,
                healthy: self.may_be_tried(i) && server.health.is_reached(),
                idle: server.idle(),
            }
        })
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.settings.timeout
    }

    /// The server whose turn it is, apart from those `tried` already: of those that are well, else of those that are
    /// only set aside.
    pub(crate) fn choose(&self, tried: &[usize]) -> Option<(usize, &Arc<Server>)> {
        let may = |i: usize| !tried.contains(&i) && self.may_be_tried(i);
        let chosen = self
            .turns
            .next(|i| may(i) && !self.servers[i].health.is_aside())
            .or_else(|| self.turns.next(may))?;
        Some((chosen, &self.servers[chosen]))
    }

    /// Whether a server may get requests if no other can.
    fn may_be_tried(&self, server: usize) -> bool {
        !self.unwell[server].load(Relaxed)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        for check in self.checks.get_mut().unwrap_or_else(PoisonError::into_inner) {
            check.abort();
        }
    }
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("settings", &self.settings).finish_non_exhaustive()
    }
}
