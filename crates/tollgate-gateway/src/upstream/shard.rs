//! Which worker this thread is: connections to upstreams are kept by the worker that made them, so that a request never
//! waits for another thread's runtime, and the locks around them are not contended.

use std::cell::Cell;

/// How many workers keep connections apart; with more, some share.
pub(crate) const SHARDS: usize = 32;

thread_local! {
    static SHARD: Cell<usize> = const { Cell::new(0) };
}

/// Says that this thread is worker number `worker`.
pub(crate) fn enter(worker: usize) {
    SHARD.set(worker % SHARDS);
}

pub(crate) fn current() -> usize {
    SHARD.get()
}
