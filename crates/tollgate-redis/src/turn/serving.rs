//! The task of a queue: asks Redis for its head, hands turns over when they are due, and ends when nobody waits.
//!
//! There is one for each bucket of a node at which somebody waits, and none otherwise. It runs where the first waiter was
//! polled; should that runtime end before the queue does, those who are left are told, stand in line again, and start
//! another.

use super::{
    queue::{Step, WaitQueue},
    request::{Answer, Request},
};
use crate::store::RedisStore;
use std::{pin::Pin, sync::Arc};
use tollgate::{StoreError, Time};

/// Questions on their way: by arrival, what was asked and what was answered.
type Asking<'a> =
    Pin<Box<dyn Future<Output = Vec<(u64, Arc<Request>, Result<Answer, StoreError>)>> + Send + 'a>>;

/// Ends a queue with its task.
struct Serving {
    store: RedisStore,
    bucket: Arc<[u8]>,
    is_over: bool,
}

impl Drop for Serving {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // Dropped with their senders, those who still wait know that they have to stand in line again.
        let ended = self.store.shared.queues.end(&self.bucket, |_| true);
        ended.into_iter().flat_map(WaitQueue::into_turns).for_each(|turn| turn.cancel_unused());
    }
}

pub(super) fn start(store: &RedisStore, bucket: &Arc<[u8]>) {
    let serving = Serving { store: store.clone(), bucket: Arc::clone(bucket), is_over: false };
    tokio::spawn(serve(serving));
}

async fn serve(mut serving: Serving) {
    let (store, bucket) = (serving.store.clone(), Arc::clone(&serving.bucket));
    let (store, bucket) = (&store, &*bucket);
    let queues = &store.shared.queues;
    let Some(changed) = queues.with(bucket, |queue| Arc::clone(&queue.changed)) else { return };
    let mut asking: Option<Asking<'_>> = None;
    loop {
        let (now, lead, horizon) = (store.now(), store.lead(), store.horizon());
        let step = queues.with(bucket, |queue| queue.next_step(now, lead, horizon));
        let Some((step, unused)) = step else { return };
        unused.into_iter().for_each(|turn| turn.cancel_unused());
        let until = match step {
            Step::Ask(requests) => {
                asking = Some(Box::pin(ask(store, requests)));
                continue;
            }
            Step::End if queues.end(bucket, WaitQueue::is_empty).is_some() => {
                // Another may be there by now, with a task of its own.
                serving.is_over = true;
                return;
            }
            Step::End => continue,
            Step::Rest(until) => until,
        };
        let answered = async {
            match &mut asking {
                Some(asking) => asking.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            answers = answered => {
                asking = None;
                let now = store.now();
                let unused = queues.with(bucket, |queue| {
                    queue.is_asking = false;
                    let hear = |(arrival, request, answer): (u64, Arc<Request>, _)| {
                        queue.hear(bucket, arrival, &request, answer, now)
                    };
                    answers.into_iter().filter_map(hear).collect::<Vec<_>>()
                });
                unused.into_iter().flatten().for_each(|turn| turn.cancel_unused());
            }
            () = changed.notified() => {}
            () = sleep_until(store, until) => {}
        }
    }
}

async fn sleep_until(store: &RedisStore, until: Option<Time>) {
    match until {
        Some(until) => store.sleep(until).await,
        None => std::future::pending().await,
    }
}

async fn ask(
    store: &RedisStore,
    requests: Vec<(u64, Arc<Request>)>,
) -> Vec<(u64, Arc<Request>, Result<Answer, StoreError>)> {
    let (arrivals, requests): (Vec<u64>, Vec<Arc<Request>>) = requests.into_iter().unzip();
    let answers = match &requests[..] {
        [request] => vec![store.ask_for(request, store.horizon()).await],
        requests => store.ask_for_each(requests, store.horizon()).await,
    };
    arrivals
        .into_iter()
        .zip(requests)
        .zip(answers)
        .map(|((arrival, request), answer)| (arrival, request, answer))
        .collect()
}
