//! Where cases are played: servers that take long to start are started once, by the first who needs them.

use std::{
    cell::OnceCell,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};
use testkit::{Cluster, RedisServer, slot_of};
use tollgate::Charge;
use tollgate_redis::{RedisLimit, RedisStore, RedisStoreBuilder};

#[derive(Default)]
pub(crate) struct Places {
    server: OnceCell<RedisServer>,
    cluster: OnceCell<Cluster>,
}

impl Places {
    /// A server for those who do it no harm.
    pub(crate) fn server(&self) -> &RedisServer {
        self.server.get_or_init(RedisServer::start)
    }

    /// A cluster that is whole, and serves what it has where it is not. Who hurts it comes last.
    pub(crate) fn cluster(&self) -> &Cluster {
        self.cluster.get_or_init(|| Cluster::start_with(&["--cluster-require-full-coverage", "no"]))
    }
}

/// A store that nobody else uses, patient with a busy machine.
pub(crate) fn patient(url: &str) -> RedisStoreBuilder {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let prefix = format!("run{}", RUNS.fetch_add(1, Relaxed));
    RedisStore::builder(url).prefix(&prefix).timeout(Duration::from_secs(5)).errors_on_failure()
}

/// Texts whose slots three different primaries of the cluster serve.
pub(crate) fn three_keys() -> [String; 3] {
    let third = |slot: u16| usize::from(slot) * 3 / usize::from(testkit::SLOTS);
    [0, 1, 2].map(|wanted| {
        let mut names = (0..1_000).map(|it| format!("key-{it}"));
        names.find(|name| third(slot_of(name)) == wanted).expect("a key of each third")
    })
}

pub(crate) async fn remaining(store: &RedisStore, limit: &RedisLimit, key: &str) -> Result<u32, String> {
    let told = store.peek(&[Charge::new(limit, key).cost(0)]).await.map_err(|error| error.to_string())?;
    Ok(told.statuses()[0].remaining())
}

/// Asks until so many remain; how long that took.
pub(crate) async fn until_remaining(
    store: &RedisStore,
    limit: &RedisLimit,
    key: &str,
    units: u32,
) -> Result<Duration, String> {
    let begun = Instant::now();
    loop {
        let left = remaining(store, limit, key).await?;
        if left == units {
            return Ok(begun.elapsed());
        }
        if begun.elapsed() > Duration::from_secs(5) {
            return Err(format!("{key}: {left} remain instead of {units}"));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// An error unless it holds.
pub(crate) fn must(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}
