//! How a call reaches Redis, on one server, behind sentinels or in a cluster.
//!
//! The law here: **a call that may have been executed is never made again.** What certainly was not (it was never sent, or the
//! server said so) is made again where that can help: with the script's text, at the node a redirection names, at the new
//! primary. The redis crate's own cluster and reconnecting clients repeat calls after I/O errors, so neither is used.
//!
//! From the outside in: [`Link`] finds the [`server::Server`], which has at most one [`wire::Wire`] up, over which a
//! [`request::Request`] goes. A call on a healthy connection looks up the wire, and that is all: no task, no lock that
//! anybody holds for longer than a copy. There are no timeouts for a call; whoever makes it drops it.

mod backoff;
mod cluster;
mod error;
mod finder;
mod pulse;
mod request;
mod server;
mod slot;
#[cfg(test)]
mod tests;
mod tls;
mod wire;

use crate::{
    address::{Address, Servers},
    script::CELL,
};
pub(crate) use backoff::random;
use cluster::Cluster;
pub(crate) use error::LinkError;
use finder::{Finder, Sentinels};
use redis::{Cmd, FromRedisValue, Value};
use request::{Manner, Request, Script};
use server::Server;
use std::{sync::Arc, time::Duration};
use tls::Trust;
use wire::Dialling;

/// A way to Redis.
#[derive(Debug)]
pub(crate) struct Link {
    script: Script,
    cell: Script,
    way: Way,
}

#[derive(Debug)]
enum Way {
    One(Server),
    Cluster(Cluster),
}

/// Times that a link keeps to.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// How long an attempt to connect may take, login and all.
    pub(crate) connect_within: Duration,
    /// How long an answer may be owed without anything coming in, before a connection is given up.
    pub(crate) silent_for: Duration,
    /// A connection that nothing was read from for so long is asked for a sign of life. Or else a peer that vanished while
    /// nobody called would be found out by the first who do.
    pub(crate) idle_for: Duration,
    /// The first pause between attempts to connect.
    pub(crate) pause_from: Duration,
    /// The longest pause between attempts to connect.
    pub(crate) pause_to: Duration,
    /// How often a sentinel is asked who the primary is.
    pub(crate) ask_sentinels_every: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connect_within: Duration::from_secs(1),
            silent_for: Duration::from_secs(1),
            idle_for: Duration::from_secs(5),
            pause_from: Duration::from_millis(10),
            pause_to: Duration::from_secs(1),
            ask_sentinels_every: Duration::from_secs(1),
        }
    }
}

/// What may go into one call: keys of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Group(u16);

/// A server, told from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Home(usize);

impl Link {
    /// A link that has done nothing yet: it connects on first use.
    pub(crate) fn open(address: Address, script: &'static str, settings: Settings) -> Self {
        let Address { servers, login, database, tls } = address;
        let dialling = |login| Dialling {
            login,
            database: 0,
            trust: tls.clone().map(Trust::new),
            silent_for: settings.silent_for,
        };
        let to_servers = Dialling { database, ..dialling(login) };
        let patience = settings.connect_within;
        let way = match servers {
            Servers::One(host) => {
                let finder = Finder::Fixed { host, dialling: Arc::new(to_servers), patience };
                Way::One(Server::new(finder, settings))
            }
            Servers::Sentinels { sentinels: hosts, primary, login } => {
                let (to_sentinels, ask_every) = (dialling(login), settings.ask_sentinels_every);
                let first = 0.into();
                let sentinels =
                    Sentinels { hosts, primary, to_sentinels, to_servers, ask_every, patience, first };
                Way::One(Server::new(Finder::Sentinels(Box::new(sentinels)), settings))
            }
            Servers::Cluster(seeds) => Way::Cluster(Cluster::new(seeds, Arc::new(to_servers), settings)),
        };
        Self { script: Script::new(script), cell: Script::new(CELL), way }
    }

    /// The group a key belongs to: its slot in a cluster, elsewhere always the same.
    pub(crate) fn group_of(&self, key: &[u8]) -> Group {
        match &self.way {
            Way::One(_) => Group(0),
            Way::Cluster(_) => Group(slot::slot_of(key)),
        }
    }

    /// Which server a group's calls go to, as far as is known: calls to one say nothing about another.
    pub(crate) fn home_of(&self, group: Group) -> Home {
        match &self.way {
            Way::One(_) => Home(0),
            Way::Cluster(cluster) => Home(cluster.home_of(group.0)),
        }
    }

    /// Runs the script.
    ///
    /// May be dropped at any time. Whether the script ran is then unknown.
    pub(crate) async fn call(
        &self,
        group: Group,
        keys: &[impl AsRef<[u8]>],
        argument: &[u8],
    ) -> Result<Value, LinkError> {
        self.ask(group, &self.script.call(keys, argument)).await
    }

    /// Runs the script of cells.
    ///
    /// May be dropped at any time. Whether the script ran is then unknown.
    pub(crate) async fn call_cell(
        &self,
        group: Group,
        keys: &[impl AsRef<[u8]>],
        argument: &[u8],
    ) -> Result<Value, LinkError> {
        self.ask(group, &self.cell.call(keys, argument)).await
    }

    /// Runs a command that is not the script.
    pub(crate) async fn plain(&self, group: Group, command: Cmd) -> Result<Value, LinkError> {
        self.ask(group, &Request::plain(command)).await
    }

    /// The time of the group's server, in microseconds.
    pub(crate) async fn time(&self, group: Group) -> Result<u64, LinkError> {
        let told = self.plain(group, redis::cmd("TIME")).await?;
        let (seconds, micros) = <(u64, u64)>::from_redis_value(told)
            .map_err(|_| LinkError::Unanswered { why: "the answer is no time".into() })?;
        Ok(seconds.saturating_mul(1_000_000).saturating_add(micros))
    }

    /// Closes the connection that the group's calls go over, and everything under way on it: for a caller that was given an
    /// answer of a shape that none can have. Answers can no longer be trusted to belong to their questions then.
    pub(crate) fn distrust(&self, group: Group) {
        self.cut(group, "the server gave an answer that made no sense");
    }

    /// Closes the connection that the group's calls go over, and everything under way on it.
    pub(crate) fn cut(&self, group: Group, why: &'static str) {
        match &self.way {
            Way::One(server) => server.cut(why),
            Way::Cluster(cluster) => cluster.cut(group.0, why),
        }
    }

    async fn ask(&self, group: Group, request: &Request<'_>) -> Result<Value, LinkError> {
        match &self.way {
            Way::Cluster(cluster) => cluster.ask(group.0, request).await,
            Way::One(server) => match server.ask(request, Manner::Plain).await {
                // The old primary, still up. Nothing ran; the new one is asked once, if it is found at once.
                Err(error) if matches!(error.code(), Some("READONLY" | "MASTERDOWN")) => {
                    server.ask(request, Manner::Plain).await
                }
                answer => answer,
            },
        }
    }
}
