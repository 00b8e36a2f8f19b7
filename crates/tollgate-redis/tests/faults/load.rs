//! Nodes under load: three stores, one for each policy, that charge the same server at the same time.
//!
//! Each has its own connection, breaker and bucket, so that what one does says nothing about another. Every call is noted
//! with when it began, how long it took, what it was told and by whom; what that should have been is judged afterwards.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinHandle,
};
use tollgate::{Charge, DecidedBy, OnFailure, Rate, TokenBucket};
use tollgate_redis::{Health, HealthState, RedisLimit, RedisStore};

/// Not the default of 20 ms: on a machine that is busy with other things that would be felt without a fault.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(100);
pub(crate) const POLICIES: [OnFailure; 3] = [OnFailure::Open, OnFailure::Closed, OnFailure::Local];
/// Calls that a node makes at a time.
pub(crate) const WORKERS: usize = 2;
/// Of the bucket that everybody charges: far less than is asked for, so that denials are seen as well.
pub(crate) const RATE: u32 = 100;
pub(crate) const BURST: u32 = 50;
/// Of how many nodes each believes to be one.
pub(crate) const NODES: u32 = 2;
/// Between two calls of a worker, so that a fault costs its load no more calls than it costs time.
const PAUSE: Duration = Duration::from_millis(2);

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// When it began, from the beginning of the load.
    pub(crate) at: Duration,
    pub(crate) took: Duration,
    pub(crate) told: Result<(Passed, DecidedBy), String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    Yes,
    No,
}

/// A store under load.
pub(crate) struct Node {
    pub(crate) policy: OnFailure,
    pub(crate) store: RedisStore,
    limit: RedisLimit,
    samples: Arc<Mutex<Vec<Sample>>>,
}

/// The nodes, and who charges at them.
pub(crate) struct Fleet {
    pub(crate) nodes: Vec<Node>,
    pub(crate) begun: Instant,
    runtime: Runtime,
    stop: Arc<AtomicBool>,
    workers: Vec<JoinHandle<()>>,
}

impl Fleet {
    /// Nodes at this address; nobody charges yet.
    pub(crate) fn new(url: &str) -> Self {
        let runtime = runtime();
        let node = |policy| {
            let store = RedisStore::builder(url)
                .prefix(name_of(policy))
                .on_failure(policy)
                .timeout(TIMEOUT)
                .nodes(NODES)
                .open()
                .expect("an address");
            let bucket = TokenBucket::new(Rate::per_second(RATE).expect("a rate"), BURST).expect("a limit");
            let limit = store.add("bucket", bucket).expect("a limit");
            Node { policy, store, limit, samples: Arc::default() }
        };
        Self {
            nodes: POLICIES.map(node).into(),
            begun: Instant::now(),
            runtime,
            stop: Arc::default(),
            workers: Vec::new(),
        }
    }

    /// Charges this key at every node, until [`stop`](Self::stop).
    pub(crate) fn charge(&mut self, key: &str) {
        self.begun = Instant::now();
        for node in &self.nodes {
            for _ in 0..WORKERS {
                let work = work(
                    (node.store.clone(), node.limit.clone()),
                    key.to_owned(),
                    self.begun,
                    Arc::clone(&self.stop),
                    Arc::clone(&node.samples),
                );
                self.workers.push(self.runtime.spawn(work));
            }
        }
    }

    pub(crate) fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Ends the load. Every call has returned then, or somebody is stuck.
    pub(crate) fn stop(&mut self) -> Result<(), String> {
        self.stop.store(true, Relaxed);
        let workers = std::mem::take(&mut self.workers);
        self.runtime.block_on(async {
            for worker in workers {
                match tokio::time::timeout(Duration::from_secs(10), worker).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => return Err(format!("a caller panicked: {error}")),
                    Err(_) => return Err("a caller is stuck: no answer within 10 s".to_owned()),
                }
            }
            Ok(())
        })
    }

    /// Drops the stores and waits until nothing of theirs runs any more.
    pub(crate) fn end(mut self) -> Result<(), String> {
        self.stop()?;
        self.nodes.clear();
        ends(&self.runtime)
    }
}

impl Node {
    pub(crate) fn samples(&self) -> Vec<Sample> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether all is as if nothing had happened: questions are asked, and the last was answered.
    pub(crate) fn is_well(&self, since: Duration) -> bool {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let last = samples.last().filter(|last| last.at >= since);
        self.store.health().state == HealthState::Healthy && last.is_some_and(Sample::is_by_store)
    }
}

impl Sample {
    pub(crate) fn is_by_store(&self) -> bool {
        matches!(self.told, Ok((_, DecidedBy::Store)))
    }

    pub(crate) fn is_by_policy(&self) -> bool {
        matches!(self.told, Ok((_, DecidedBy::Failure(_))))
    }

    pub(crate) fn is_allow(&self) -> bool {
        matches!(self.told, Ok((Passed::Yes, _)))
    }
}

/// Questions that were put to Redis so far, answered or not.
pub(crate) fn asked(health: &Health) -> u64 {
    health.answered + health.failed
}

pub(crate) const fn name_of(policy: OnFailure) -> &'static str {
    match policy {
        OnFailure::Open => "open",
        OnFailure::Closed => "closed",
        OnFailure::Local => "local",
    }
}

pub(crate) fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime can be made")
}

/// Waits until no task is left on a runtime whose stores were dropped.
pub(crate) fn ends(runtime: &Runtime) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        let alive = runtime.metrics().num_alive_tasks();
        if alive == 0 {
            return Ok(());
        }
        if begun.elapsed() > Duration::from_secs(5) {
            return Err(format!("{alive} tasks still run 5 s after their stores were dropped"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

async fn work(
    (store, limit): (RedisStore, RedisLimit),
    key: String,
    begun: Instant,
    stop: Arc<AtomicBool>,
    samples: Arc<Mutex<Vec<Sample>>>,
) {
    while !stop.load(Relaxed) {
        let (at, asked) = (begun.elapsed(), Instant::now());
        let told = store.check(&[Charge::new(&limit, key.as_str())]).await;
        let took = asked.elapsed();
        let told = match told {
            Ok(set) => {
                let passed = if set.is_allow() { Passed::Yes } else { Passed::No };
                Ok((passed, set.statuses()[0].decided_by()))
            }
            Err(error) => Err(error.to_string()),
        };
        samples.lock().unwrap_or_else(PoisonError::into_inner).push(Sample { at, took, told });
        tokio::time::sleep(PAUSE).await;
    }
}
