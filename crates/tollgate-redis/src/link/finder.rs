//! Where the server is that takes the writes: at a fixed address, or where the sentinels say.
//!
//! Sentinels are asked one after the other until one names a primary that says of itself that it is one. While a connection
//! to it is up, one of them is asked again every second. Errors alone would not do: a primary that was cut off from its
//! sentinels stays reachable for us, takes charges, and forgets them all when it is demoted. Nor would a subscription to
//! `+switch-master`: it has to be polled as well, for a sentinel that vanished, and then the poll is enough.

use super::{
    error::LinkError,
    request::{Manner, Request},
    wire::{Dialling, Pump, Wire},
};
use crate::address::Host;
use redis::{FromRedisValue, Value};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::{sleep, timeout};

#[derive(Debug)]
pub(super) enum Finder {
    Fixed { host: Host, dialling: Arc<Dialling>, patience: Duration },
    Sentinels(Box<Sentinels>),
}

/// The sentinels, and how to speak to them and to the servers they watch.
#[derive(Debug)]
pub(super) struct Sentinels {
    pub(super) hosts: Vec<Host>,
    pub(super) primary: String,
    pub(super) to_sentinels: Dialling,
    pub(super) to_servers: Dialling,
    pub(super) ask_every: Duration,
    /// How long one sentinel and the server it named may take, before the next is asked.
    pub(super) patience: Duration,
    /// The one that answered last: asked first, so that one that is gone costs its patience once.
    pub(super) first: AtomicUsize,
}

impl Finder {
    pub(super) async fn dial(&self) -> Result<(Wire, Pump), String> {
        match self {
            Self::Fixed { host, dialling, patience } => match timeout(*patience, dialling.dial(host)).await {
                Ok(dialled) => dialled,
                Err(_) => Err(format!("{host}: no connection in time")),
            },
            Self::Sentinels(sentinels) => sentinels.dial().await,
        }
    }

    /// Returns once the primary is another than `current`, with a connection to it. For a fixed address, never.
    pub(super) async fn elsewhere(&self, current: &Host) -> (Wire, Pump) {
        match self {
            Self::Fixed { .. } => std::future::pending().await,
            Self::Sentinels(sentinels) => sentinels.elsewhere(current).await,
        }
    }
}

impl Sentinels {
    async fn dial(&self) -> Result<(Wire, Pump), String> {
        let mut mistakes = Vec::new();
        let first = self.first.load(Relaxed);
        for (i, host) in self.hosts.iter().enumerate().cycle().skip(first).take(self.hosts.len()) {
            match timeout(self.patience, self.dial_by(host)).await {
                Ok(Ok(found)) => {
                    self.first.store(i, Relaxed);
                    return Ok(found);
                }
                Ok(Err(mistake)) => mistakes.push(mistake),
                Err(_) => mistakes.push(format!("sentinel {host}: no answer in time")),
            }
        }
        Err(mistakes.join("; "))
    }

    async fn dial_by(&self, sentinel: &Host) -> Result<(Wire, Pump), String> {
        let (asked, _pump) =
            self.to_sentinels.dial(sentinel).await.map_err(|why| format!("sentinel {why}"))?;
        let primary = self.named_by(&asked).await.map_err(|why| format!("sentinel {sentinel}: {why}"))?;
        self.dial_primary(&primary).await
    }

    async fn dial_primary(&self, primary: &Host) -> Result<(Wire, Pump), String> {
        let (wire, pump) = self.to_servers.dial(primary).await?;
        let role = Request::plain(redis::cmd("ROLE")).over(&wire, Manner::Plain).await;
        match role {
            Ok(Value::Array(parts)) if is_text(parts.first(), "master") => Ok((wire, pump)),
            // A user that may not ask takes the sentinel's word; READONLY would tell otherwise.
            Err(error) if error.code() == Some("NOPERM") => Ok((wire, pump)),
            Ok(_) => Err(format!("{primary} was named primary, but is a replica")),
            Err(error) => Err(format!("{primary}: {error}")),
        }
    }

    async fn elsewhere(&self, current: &Host) -> (Wire, Pump) {
        let mut asked = None;
        let mut turn = self.first.load(Relaxed);
        loop {
            sleep(self.ask_every).await;
            if let Some(found) =
                timeout(self.patience, self.look_up(&mut asked, &mut turn, current)).await.ok().flatten()
            {
                return found;
            }
        }
    }

    /// One look, at one sentinel: the one asked before as long as it answers.
    async fn look_up(
        &self,
        asked: &mut Option<(Wire, Pump)>,
        turn: &mut usize,
        current: &Host,
    ) -> Option<(Wire, Pump)> {
        // Taken out, so that one that does not answer in time is not asked again.
        let sentinel = match asked.take() {
            Some(sentinel) => sentinel,
            None => {
                let host = self.hosts.get(*turn % self.hosts.len().max(1))?;
                *turn += 1;
                self.to_sentinels.dial(host).await.ok()?
            }
        };
        let named = self.named_by(&sentinel.0).await.ok()?;
        *asked = Some(sentinel);
        if named == *current {
            return None;
        }
        self.dial_primary(&named).await.ok()
    }

    async fn named_by(&self, sentinel: &Wire) -> Result<Host, String> {
        let mut question = redis::cmd("SENTINEL");
        question.arg("get-master-addr-by-name").arg(&self.primary);
        match sentinel.send(&question).await {
            Ok(Value::Nil) => Err(format!("it watches no `{}`", self.primary)),
            Ok(answer) => match <(String, u16)>::from_redis_value(answer) {
                Ok((name, port)) => Ok(Host { name, port }),
                Err(_) => Err("it named no address".to_owned()),
            },
            Err(LinkError::Refused { code, message }) => Err(format!("{code} {message}")),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn is_text(value: Option<&Value>, expected: &str) -> bool {
    match value {
        Some(Value::BulkString(bytes)) => bytes == expected.as_bytes(),
        Some(Value::SimpleString(text)) => text == expected,
        _ => false,
    }
}
