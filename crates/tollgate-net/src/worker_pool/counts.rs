//! Counts of open connections and requests in flight, by worker.

use std::sync::{
    Arc,
    atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{Acquire, Relaxed, Release, SeqCst},
    },
};
use tokio::sync::Notify;

/// Open connections and requests in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Gauges {
    /// Connections that are open, tunnels among them.
    pub connections: usize,
    /// Requests whose response has not ended, where the handler [counts](crate::ConnectionActivity) them.
    pub in_flight: usize,
}

/// The counts of all workers.
#[derive(Debug)]
pub(super) struct ConnectionCounts {
    workers: Box<[WorkerCounts]>,
    /// Somebody waits for a connection to end. SeqCst, together with the counts: either the last connection sees the
    /// waiter, or the waiter sees the connection gone.
    has_waiter: AtomicBool,
    ended: Notify,
}

/// Two cache lines of its own: the worker writes here for every request.
#[derive(Debug, Default)]
#[repr(align(128))]
struct WorkerCounts {
    connections: AtomicUsize,
    in_flight: AtomicUsize,
}

/// Counts one connection of one worker until it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    worker: usize,
    counts: Arc<ConnectionCounts>,
}

impl ConnectionCounts {
    pub(super) fn new(workers: usize) -> Arc<Self> {
        let workers = (0..workers).map(|_| WorkerCounts::default()).collect();
        Arc::new(Self { workers, has_waiter: AtomicBool::new(false), ended: Notify::new() })
    }

    pub(super) fn gauges(&self) -> Gauges {
        let sum = |of: fn(&WorkerCounts) -> &AtomicUsize| {
            self.workers.iter().map(|worker| of(worker).load(Acquire)).sum()
        };
        Gauges { connections: self.connections(), in_flight: sum(|worker| &worker.in_flight) }
    }

    pub(super) fn connections(&self) -> usize {
        self.workers.iter().map(|worker| worker.connections.load(SeqCst)).sum()
    }

    /// Counts a connection on the worker that has the fewest.
    pub(super) fn enter(self: &Arc<Self>) -> ConnectionSlot {
        let connections = |worker: &usize| self.workers[*worker].connections.load(Relaxed);
        let worker = (0..self.workers.len()).min_by_key(connections).unwrap_or(0);
        self.workers[worker].connections.fetch_add(1, SeqCst);
        ConnectionSlot { worker, counts: Arc::clone(self) }
    }

    /// Waits until at most `most` connections are open. One caller at a time.
    pub(super) async fn at_most(&self, most: usize) {
        while self.connections() > most {
            let ended = self.ended.notified();
            self.has_waiter.store(true, SeqCst);
            // The last may have ended before it could see the waiter.
            if self.connections() > most {
                ended.await;
            }
            self.has_waiter.store(false, SeqCst);
        }
    }
}

impl ConnectionSlot {
    /// The slot of the only connection of a pool.
    #[cfg(test)]
    pub(crate) fn lone() -> Self {
        ConnectionCounts::new(1).enter()
    }

    pub(super) const fn worker(&self) -> usize {
        self.worker
    }

    pub(crate) fn begin_request(&self) {
        self.counts.workers[self.worker].in_flight.fetch_add(1, Relaxed);
    }

    /// Whoever sees the request gone sees everything it held given back.
    pub(crate) fn end_request(&self) {
        self.counts.workers[self.worker].in_flight.fetch_sub(1, Release);
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.counts.workers[self.worker].connections.fetch_sub(1, SeqCst);
        if self.counts.has_waiter.load(SeqCst) {
            self.counts.ended.notify_one();
        }
    }
}
