//! Callers that ask for a time, each as soon as it was answered, and how long each answer took.
//!
//! A caller that waits asks nobody meanwhile, so that a server that stops stops its callers: latencies are those of a busy
//! client, not of a crowd that comes whatever happens.

use super::subject::{Decide, Request};
use crate::subject::Random;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    runtime::{Builder, Runtime},
    task::coop::consume_budget,
};

/// Where the callers live.
pub(super) struct Callers {
    pub(super) runtime: Runtime,
    random: Random,
    /// Lists of latencies, handed from round to round, so that few callers have to make one.
    lists: Vec<Vec<u32>>,
}

/// What a round came to.
pub(super) struct Round {
    pub(super) allowed: usize,
    pub(super) lasted: Duration,
    /// Nanoseconds until each answer.
    pub(super) latencies: Vec<u32>,
}

/// How many enter the keys.
const MOVERS: usize = 64;
/// Room for this many latencies, to begin with.
const LIST: usize = 1 << 14;

impl Callers {
    /// On so many threads.
    pub(super) fn new(threads: usize) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build();
        Self { runtime: runtime.expect("a runtime"), random: Random(0x5eed), lists: Vec::new() }
    }

    /// Has every request decided once, with this use.
    pub(super) fn enter<D: Decide>(&self, decider: &D, requests: &Arc<[Request]>, units: u32) {
        let movers = (0..MOVERS.min(requests.len())).map(|mover| {
            let (mut decider, requests) = (decider.clone(), Arc::clone(requests));
            self.runtime.spawn(async move {
                for request in requests.iter().skip(mover).step_by(MOVERS) {
                    assert!(decider.decide(request, units).await, "a key never seen before was refused");
                }
            })
        });
        let movers: Vec<_> = movers.collect();
        self.runtime.block_on(async {
            for mover in movers {
                mover.await.expect("a caller panicked");
            }
        });
    }

    /// Has so many callers ask for so long. Each goes through the requests from a place of its own.
    pub(super) fn ask<D: Decide>(
        &mut self,
        decider: &D,
        requests: &Arc<[Request]>,
        callers: usize,
        lasting: Duration,
    ) -> Round {
        let begun = Instant::now();
        let tasks: Vec<_> = (0..callers)
            .map(|_| {
                let list = self.lists.pop().unwrap_or_else(|| Vec::with_capacity(LIST));
                let first = self.random.below(requests.len());
                let ask = ask_until(begun + lasting, decider.clone(), Arc::clone(requests), first, list);
                self.runtime.spawn(ask)
            })
            .collect();
        let mut round = Round { allowed: 0, lasted: lasting, latencies: Vec::new() };
        self.runtime.block_on(async {
            for task in tasks {
                let (allowed, ended, mut list) = task.await.expect("a caller panicked");
                round.allowed += allowed;
                round.lasted = round.lasted.max(ended - begun);
                round.latencies.append(&mut list);
                self.lists.push(list);
            }
        });
        round
    }
}

/// How many passed, when the last answer came, and how long each took.
async fn ask_until<D: Decide>(
    until: Instant,
    mut decider: D,
    requests: Arc<[Request]>,
    first: usize,
    mut latencies: Vec<u32>,
) -> (usize, Instant, Vec<u32>) {
    let (mut place, mut allowed, mut asked) = (first, 0, Instant::now());
    while asked < until {
        allowed += usize::from(decider.decide(&requests[place], 1).await);
        // Answers out of this process's memory never wait; whoever gets nothing else would keep a core to itself.
        consume_budget().await;
        place = if place + 1 < requests.len() { place + 1 } else { 0 };
        let answered = Instant::now();
        latencies.push(u32::try_from((answered - asked).as_nanos()).unwrap_or(u32::MAX));
        asked = answered;
    }
    (allowed, asked, latencies)
}

impl Round {
    pub(super) const fn decisions(&self) -> usize {
        self.latencies.len()
    }

    /// The time in microseconds within which this share of the answers came.
    pub(super) fn within(&mut self, share: f64) -> f64 {
        let place = (self.latencies.len() as f64 * share).ceil() as usize;
        let place = place.clamp(1, self.latencies.len()) - 1;
        f64::from(*self.latencies.select_nth_unstable(place).1) / 1_000.0
    }
}
