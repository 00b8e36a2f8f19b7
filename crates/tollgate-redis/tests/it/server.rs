//! The server that tests share, each under a prefix of its own.

use std::{
    future::Future,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use testkit::RedisServer;
use tokio::runtime::{Builder, Runtime};
use tollgate::ManualClock;
use tollgate_redis::{RedisStore, RedisStoreBuilder};

pub(crate) struct Server {
    pub(crate) redis: RedisServer,
    runtime: Runtime,
}

pub(crate) fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server {
        redis: RedisServer::start(),
        runtime: Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime"),
    })
}

impl Server {
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// A store that nobody else uses, on a clock that is passed in.
    pub(crate) fn store_at(&self, clock: ManualClock) -> RedisStore {
        self.builder().clock(clock).open().expect("an address")
    }

    /// A store that nobody else uses, on the server's clock.
    pub(crate) fn store(&self) -> RedisStore {
        self.builder().open().expect("an address")
    }

    /// A store that nobody else uses, patient with a busy machine.
    pub(crate) fn builder(&self) -> RedisStoreBuilder {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let prefix = format!("tg-{}-{}", std::process::id(), RUNS.fetch_add(1, Relaxed));
        RedisStore::builder(&self.redis.url()).prefix(&prefix).timeout(Duration::from_secs(5))
    }
}
