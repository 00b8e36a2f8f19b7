//! The queues of a store, one for each bucket at which somebody waits on this node.
//!
//! All of them are behind one lock, which is held for as long as it takes to join, leave, or look at one of them, and not taken
//! while nobody waits anywhere. A queue is made with its first waiter and goes with its task.

use super::{
    queue::{Handed, WaitQueue, take},
    request::{Answer, Request},
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};
use tokio::sync::oneshot;
use tollgate::Time;

#[derive(Default)]
pub(crate) struct WaitQueues {
    queues: Mutex<HashMap<Arc<[u8]>, WaitQueue>>,
    /// How many there are.
    count: AtomicUsize,
    arrivals: AtomicU64,
}

impl WaitQueues {
    /// The place in the order of arrival.
    pub(super) fn arrive(&self) -> u64 {
        self.arrivals.fetch_add(1, Relaxed)
    }

    /// The first of the request's buckets at which somebody waits.
    pub(super) fn occupied(&self, request: &Request) -> Option<usize> {
        if self.count.load(Relaxed) == 0 {
            return None;
        }
        let queues = self.lock();
        request.buckets().position(|bucket| queues.get(bucket).is_some_and(WaitQueue::has_waiters))
    }

    /// Joins the queue of one of the request's buckets, as [`WaitQueue::join`]. The second value is whether the queue is
    /// new, and needs a task.
    pub(super) fn join(
        &self,
        arrival: u64,
        request: &Arc<Request>,
        part: usize,
        known: Option<Answer>,
        now: Time,
    ) -> Result<(oneshot::Receiver<Handed>, bool), Option<Time>> {
        let mut queues = self.lock();
        let bucket = request.bucket(part);
        let is_new = !queues.contains_key(bucket);
        let queue = queues.entry(Arc::clone(bucket)).or_insert_with(|| WaitQueue::new(now));
        let handed = queue.join(arrival, request, part, known, now)?;
        self.count.store(queues.len(), Relaxed);
        Ok((handed, is_new))
    }

    /// Leaves a queue. A turn that was handed over and not taken is the next one's, or spent.
    pub(super) fn leave(&self, bucket: &[u8], arrival: u64, handed: &mut oneshot::Receiver<Handed>) {
        handed.close();
        let mut queues = self.lock();
        let turn = match handed.try_recv() {
            Ok(Handed::Turn(turn)) => take(&turn),
            _ => None,
        };
        let turn = match queues.get_mut(bucket) {
            Some(queue) => queue.leave(arrival, turn),
            None => turn,
        };
        drop(queues);
        if let Some(turn) = turn {
            drop(turn.spend());
        }
    }

    /// Whether a turn in hand is that waiter's, and due in time.
    pub(super) fn covers(&self, bucket: &[u8], arrival: u64, deadline: Time) -> bool {
        self.lock().get(bucket).is_some_and(|queue| queue.covers(arrival, deadline))
    }

    /// How many wait, at all buckets together.
    pub(crate) fn waiting(&self) -> usize {
        self.lock().values().map(WaitQueue::len).sum()
    }

    /// Says that there may be room at a bucket.
    pub(crate) fn look_again(&self, bucket: &[u8]) {
        if self.count.load(Relaxed) > 0 {
            self.with(bucket, WaitQueue::look_again);
        }
    }

    /// Says that numbers have changed.
    pub(crate) fn judge_again(&self) {
        self.lock().values_mut().for_each(WaitQueue::judge_again);
    }

    /// Does something with a queue.
    pub(super) fn with<T>(&self, bucket: &[u8], with: impl FnOnce(&mut WaitQueue) -> T) -> Option<T> {
        self.lock().get_mut(bucket).map(with)
    }

    /// Ends a queue, if it is over.
    pub(super) fn end(&self, bucket: &[u8], is_over: impl FnOnce(&WaitQueue) -> bool) -> Option<WaitQueue> {
        let mut queues = self.lock();
        if !queues.get(bucket).is_some_and(is_over) {
            return None;
        }
        let ended = queues.remove(bucket);
        self.count.store(queues.len(), Relaxed);
        ended
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<[u8]>, WaitQueue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
