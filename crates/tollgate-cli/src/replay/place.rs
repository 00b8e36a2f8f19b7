//! Where a replay keeps what was used: the one place in the program that knows which stores there are.

use super::Misuse;
use anyhow::anyhow;
use std::{
    hash::{BuildHasher, RandomState},
    process,
    time::Duration,
};
use tollgate::{Bounds, ManualClock, MemoryStore, StoreError};
use tollgate_redis::RedisStore;

/// A store, as `--store` names it.
pub(super) enum Place {
    Memory,
    Redis(Redis),
}

/// The address of a Redis. Whether anybody answers there shows at the first line.
pub(super) struct Redis {
    url: String,
}

/// A replay would rather wait than end for a hiccup.
const PATIENCE: Duration = Duration::from_secs(2);

impl Place {
    /// Nothing of an address is shown that may be a password: what is wrong with it has to do.
    pub(super) fn parse(text: &str) -> Result<Self, Misuse> {
        if text == "memory:" {
            return Ok(Self::Memory);
        }
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        if !scheme.is_some_and(|scheme| scheme.starts_with("redis")) {
            return Err(Misuse::new(
                "--store must be memory: or an address such as redis://127.0.0.1:6379/0",
            ));
        }
        Ok(Self::Redis(Redis { url: text.to_owned() }))
    }
}

/// Questions on their way at once when everything is forgotten: a remote store answers many in one round trip.
pub(super) const ABREAST: usize = 128;

/// Says so where keys had to make room: answers may depend on it.
pub(super) fn note_evictions(store: &MemoryStore<ManualClock>) {
    let evicted = store.evictions();
    if evicted > 0 {
        eprintln!(
            "note: more keys were live at once than fit; {evicted} were forgotten, and answers may differ"
        );
    }
}

/// A store of this run's own.
pub(super) fn memory(clock: ManualClock) -> MemoryStore<ManualClock> {
    MemoryStore::with_clock(Bounds::default(), clock)
}

impl Redis {
    /// A store that nobody else looks at, whose every answer is Redis's own: where there is none the line fails, and nothing
    /// is decided in its stead.
    pub(super) fn open(&self, clock: ManualClock) -> Result<RedisStore, Misuse> {
        let run = RandomState::new().hash_one(process::id());
        RedisStore::builder(&self.url)
            .prefix(&format!("tg-replay-{run:016x}"))
            .timeout(PATIENCE)
            .errors_on_failure()
            .clock(clock)
            .open()
            .map_err(|error| Misuse::new(format!("--store is not the address of a Redis: {error}")))
    }

    /// The error, and what to do about it where it is Redis that failed.
    pub(super) fn advise(&self, error: anyhow::Error) -> anyhow::Error {
        if !is_store_down(&error) {
            return error;
        }
        let asked = self.without_login();
        // What redis-cli can be asked without a login, and without a scheme that it does not know.
        let tells = match self.url.starts_with("redis://") && !self.url.contains('@') {
            true => format!(" `redis-cli -u {asked} ping` tells;"),
            false => String::new(),
        };
        anyhow!(
            "{error:#}\n  \
             is there a Redis at {asked}, and may we use it?{tells}\n  \
             without --store the lines are run in memory, with the same answers"
        )
    }

    fn without_login(&self) -> String {
        let (scheme, rest) = self.url.split_once("://").unwrap_or(("redis", &self.url));
        let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
        let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
        format!("{scheme}://{rest}")
    }
}

/// Whether the store did not answer, as opposed to a line that asks for what cannot be.
pub(super) fn is_store_down(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<StoreError>(),
        Some(StoreError::Unavailable { .. } | StoreError::Unanswered { .. })
    )
}
