//! A thousand tasks that want more than the rate, each waiting for its next turn as soon as it had one.
//!
//! Every subject waits in a child, so that its processor time is its own. The figures are of a stretch of time after
//! everybody has begun:
//!
//! - the share of the rate that was granted. Here more is better;
//! - processor time a grant, of the whole process: limiter, timer and runtime;
//! - wake-ups a grant: how often a wait was polled after the first time;
//! - what the luckiest of the tasks, which are all alike, got over what the unluckiest did; one that got nothing counts as
//!   if it got one;
//! - the share of the tasks that got anything. Here, too, more is better.
//!
//! The burst is what the rate gives in a millisecond, the grain of tokio's timer. leaky-bucket refills that much every
//! millisecond; and once more by its side with ten times the interval, refill and burst, which suits it better: it then
//! wakes a crowd at a time, and less often. What is the timer's and the runtime's own shows next to bare timers.

use super::turns::{Numbers, Outcome, Turns};
use crate::{
    child::{self, processor_time},
    effort::{Effort, short},
    report::Report,
    rows::{self, Row},
};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tokio::{
    runtime::{Builder, Runtime},
    time::sleep,
};

pub(crate) const CHILD: &str = "crowd";

const OURS: &str = "ours";
const GOVERNOR: &str = "governor";
const LEAKY_BUCKET: &str = "leaky-bucket";
const COARSE_LEAKY_BUCKET: &str = "leaky-bucket, 10 ms";
const TIMERS: &str = "bare timers";

/// Two workers; and a runtime of the current thread.
const TWO_THREADS: &str = "2 thr";
const ONE_THREAD: &str = "1 thr";

const TASKS: usize = 1_000;
const NUMBERS: Numbers = Numbers { rate: 20_000, per: Duration::from_secs(1), burst: 20 };
/// Long enough for everybody to have had a turn.
const WARM_UP: Duration = Duration::from_millis(150);

const CPU: &str = "CPU a grant";
const FIGURES: [(&str, &str); 5] = [
    ("share of the rate", "of rate"),
    (CPU, "ns"),
    ("wake-ups a grant", "wake-ups"),
    ("most over least", "times"),
    ("tasks served", "of tasks"),
];

pub(crate) fn run(report: &mut Report, effort: &Effort) {
    let sides = [
        (TWO_THREADS, LEAKY_BUCKET),
        (TWO_THREADS, COARSE_LEAKY_BUCKET),
        (TWO_THREADS, GOVERNOR),
        (TWO_THREADS, TIMERS),
        (ONE_THREAD, LEAKY_BUCKET),
        (ONE_THREAD, GOVERNOR),
    ];
    let mut rows = Vec::new();
    for (runtime, peer) in sides {
        for (figure, (what, unit)) in FIGURES.into_iter().enumerate() {
            // Of timers there is only the cost to tell.
            if peer == TIMERS && what != CPU {
                continue;
            }
            rows.push(Row {
                name: format!(
                    "turns of {} at {}/s, {runtime}, {what}, {peer}",
                    short(TASKS),
                    short(NUMBERS.rate as usize)
                ),
                unit,
                ours: format!("{OURS}, {runtime}"),
                peer: format!("{peer}, {runtime}"),
                figure,
                target: None,
            });
        }
    }
    rows::measure(report, effort.crowd_rounds, rows, |subject| {
        child::run(CHILD, subject, effort.crowd_millis)
    });
}

/// In the child: the figures, over so many milliseconds.
pub(crate) fn child(subject: &str, millis: usize) -> Vec<f64> {
    let (limiter, runtime) = subject.rsplit_once(", ").expect("a limiter and a runtime");
    let runtime = match runtime {
        TWO_THREADS => Builder::new_multi_thread().worker_threads(2).enable_time().build(),
        _ => Builder::new_current_thread().enable_time().build(),
    };
    let (runtime, lasting) = (runtime.expect("a runtime"), Duration::from_millis(millis as u64));
    let millisecond = Duration::from_millis(1);
    match limiter {
        OURS => watch(&runtime, NUMBERS.ours(), lasting),
        GOVERNOR => watch(&runtime, NUMBERS.governors(), lasting),
        LEAKY_BUCKET => watch(&runtime, NUMBERS.leaky_buckets(millisecond), lasting),
        COARSE_LEAKY_BUCKET => watch(&runtime, NUMBERS.leaky_buckets(10 * millisecond), lasting),
        TIMERS => watch(&runtime, NUMBERS.timers(), lasting),
        _ => panic!("no limiter is called {limiter}"),
    }
}

fn watch(runtime: &Runtime, limiter: impl Turns, lasting: Duration) -> Vec<f64> {
    let (limiter, tallies) = (Arc::new(limiter), Arc::new([const { Tally::new() }; TASKS]));
    runtime.block_on(async {
        for task in 0..TASKS {
            let (limiter, tallies) = (Arc::clone(&limiter), Arc::clone(&tallies));
            tokio::spawn(async move { wait_on_and_on(&*limiter, &tallies[task]).await });
        }
        sleep(WARM_UP).await;
        let before = Seen::now(&*tallies);
        sleep(lasting).await;
        Seen::now(&*tallies).since(&before)
    })
}

async fn wait_on_and_on(limiter: &impl Turns, tally: &Tally) {
    loop {
        let mut turn = pin!(limiter.turn());
        let outcome = poll_fn(|context| {
            tally.polls.fetch_add(1, Relaxed);
            turn.as_mut().poll(context)
        });
        assert!(outcome.await.is_granted());
        tally.grants.fetch_add(1, Relaxed);
    }
}

/// What one task got, on a cache line of its own.
#[repr(align(64))]
struct Tally {
    grants: AtomicU64,
    polls: AtomicU64,
}

impl Tally {
    const fn new() -> Self {
        Self { grants: AtomicU64::new(0), polls: AtomicU64::new(0) }
    }
}

/// All tallies at one time.
struct Seen {
    at: Instant,
    processor: Duration,
    grants: Vec<u64>,
    polls: u64,
}

impl Seen {
    fn now(tallies: &[Tally]) -> Self {
        Self {
            at: Instant::now(),
            processor: processor_time(),
            grants: tallies.iter().map(|tally| tally.grants.load(Relaxed)).collect(),
            polls: tallies.iter().map(|tally| tally.polls.load(Relaxed)).sum(),
        }
    }

    fn since(&self, before: &Self) -> Vec<f64> {
        let got: Vec<u64> = self.grants.iter().zip(&before.grants).map(|(now, then)| now - then).collect();
        let grants = got.iter().sum::<u64>().max(1) as f64;
        let due = f64::from(NUMBERS.rate) * (self.at - before.at).as_secs_f64() / NUMBERS.per.as_secs_f64();
        let (most, least) = (got.iter().max().copied(), got.iter().min().copied());
        vec![
            grants / due,
            (self.processor - before.processor).as_nanos() as f64 / grants,
            (self.polls - before.polls) as f64 / grants - 1.0,
            most.unwrap_or(0) as f64 / least.unwrap_or(0).max(1) as f64,
            got.iter().filter(|got| **got > 0).count() as f64 / TASKS as f64,
        ]
    }
}
