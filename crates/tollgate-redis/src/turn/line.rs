//! Who waits at which bucket, on this node: first come, first served.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{Notify, OwnedMutexGuard};

/// The lines of a store, one for each bucket that somebody waits at.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<HashMap<Vec<u8>, Arc<Line>>>);

#[derive(Debug, Default)]
struct Line {
    /// Fair: it is had in the order it was asked for.
    first: Arc<tokio::sync::Mutex<()>>,
    /// Somebody of this node left.
    left: Notify,
}

/// A place in a line.
pub(crate) struct Place<'a> {
    lines: &'a Lines,
    bucket: Vec<u8>,
    line: Arc<Line>,
}

impl Lines {
    pub(crate) fn join(&self, bucket: &[u8]) -> Place<'_> {
        let line = Arc::clone(self.lock().entry(bucket.to_vec()).or_default());
        Place { lines: self, bucket: bucket.to_vec(), line }
    }

    /// Says that there may be room at a bucket.
    pub(crate) fn nudge(&self, bucket: &[u8]) {
        if let Some(line) = self.lock().get(bucket) {
            line.left.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Arc<Line>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place<'_> {
    pub(crate) fn bucket(&self) -> &[u8] {
        &self.bucket
    }

    /// Ready when it is the first.
    pub(crate) async fn first(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.line.first).lock_owned().await
    }

    /// Ready when somebody of this node has left.
    pub(crate) async fn nudged(&self) {
        self.line.left.notified().await;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut lines = self.lines.lock();
        // Ours goes under the lock: two who leave at once would each count the other, and nobody would clear up.
        drop(std::mem::take(&mut self.line));
        if lines.get(&self.bucket).is_some_and(|line| Arc::strong_count(line) == 1) {
            lines.remove(&self.bucket);
        }
    }
}
