//! A thousand tasks that want more than the rate, each waiting for its next turn as soon as it had one; and the same crowd
//! with half of the waits given up at random.
//!
//! Every subject waits in a child, so that its processor time is its own. The figures are of a stretch of time after
//! everybody has begun:
//!
//! - the share of the rate that was granted. Here more is better;
//! - processor time a grant, of the whole process: limiter, timer and runtime;
//! - wake-ups a grant: how often a wait was polled after the first time, but for the poll that ends one that is given up;
//! - what the luckiest of the tasks, which are all alike, got over what the unluckiest did; one that got nothing counts as
//!   if it got one;
//! - the share of the tasks that got anything. Here, too, more is better;
//! - the worst window: by how many units it exceeds rate · t, over the times of release. The bound is kept where that is at
//!   most the burst, 20. Ours tells when it released a wait; a peer does not, so there it is the time at which the task
//!   went on, a timer's lateness included. (Ours is off by as long as a task was interrupted between looking at the clock
//!   and its first poll.);
//! - the most that went on within any 10 ms, of all sides by when tasks went on. The rate gives 200 and the burst 20;
//! - resident bytes a task, over a task that waits for nothing.
//!
//! Of the crowd that gives up, every other wait at random has a patience, drawn evenly from the 50 ms that the rate takes to
//! serve everybody once. When that is over the wait is dropped, and the task begins another one at once.
//!
//! The burst is what the rate gives in a millisecond, the grain of tokio's timer. leaky-bucket refills that much every
//! millisecond; and once more by its side with ten times the interval, refill and burst, which suits it better: it then
//! wakes a crowd at a time, and less often. What is the timer's and the runtime's own shows next to bare timers.

use super::turns::{Numbers, Outcome, Turns};
use crate::{
    child::{self, processor_time, resident_bytes},
    effort::{Effort, short},
    report::Report,
    rows::{self, Row},
    subject::Random,
};
use std::{
    future::{Future, pending, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tokio::{
    runtime::{Builder, Runtime},
    time::{sleep, timeout},
};

pub(crate) const CHILD: &str = "crowd";

const OURS: &str = "ours";
const GOVERNOR: &str = "governor";
const LEAKY_BUCKET: &str = "leaky-bucket";
const COARSE_LEAKY_BUCKET: &str = "leaky-bucket, 10 ms";
const TIMERS: &str = "bare timers";
/// What half of the waits do at random.
const GIVE_UP: &str = " given up";

/// Two workers; and a runtime of the current thread.
const TWO_THREADS: &str = "2 thr";
const ONE_THREAD: &str = "1 thr";

const TASKS: usize = 1_000;
const NUMBERS: Numbers = Numbers { rate: 20_000, per: Duration::from_secs(1), burst: 20 };
/// In which the rate serves everybody once.
const ROUND: Duration = Duration::from_millis(50);
/// Long enough for everybody to have had a turn.
const WARM_UP: Duration = Duration::from_millis(150);
/// For tasks that were just about to sleep.
const SETTLING: Duration = Duration::from_millis(20);
/// In which the most that go on is looked for.
const INSTANT: Duration = Duration::from_millis(10);

const CPU: &str = "CPU a grant";
const FIGURES: [(&str, &str); 8] = [
    ("share of the rate", "of rate"),
    (CPU, "ns"),
    ("wake-ups a grant", "wake-ups"),
    ("most over least", "times"),
    ("tasks served", "of tasks"),
    ("worst window above rate · t", "units"),
    ("most in 10 ms", "units"),
    ("bytes a waiter", "bytes"),
];

pub(crate) fn run(report: &mut Report, effort: &Effort) {
    let sides = [
        ("", TWO_THREADS, LEAKY_BUCKET),
        ("", TWO_THREADS, COARSE_LEAKY_BUCKET),
        ("", TWO_THREADS, GOVERNOR),
        ("", TWO_THREADS, TIMERS),
        ("", ONE_THREAD, LEAKY_BUCKET),
        ("", ONE_THREAD, GOVERNOR),
        (GIVE_UP, TWO_THREADS, LEAKY_BUCKET),
        (GIVE_UP, TWO_THREADS, GOVERNOR),
        (GIVE_UP, ONE_THREAD, LEAKY_BUCKET),
    ];
    let mut rows = Vec::new();
    for (give_up, runtime, peer) in sides {
        for (figure, (what, unit)) in FIGURES.into_iter().enumerate() {
            // Of timers there is only the cost to tell.
            if peer == TIMERS && what != CPU {
                continue;
            }
            rows.push(Row {
                name: format!(
                    "turns of {} at {}/s{}, {runtime}, {what}, {peer}",
                    short(TASKS),
                    short(NUMBERS.rate as usize),
                    if give_up.is_empty() { "" } else { ", half given up" },
                ),
                unit,
                ours: format!("{OURS}{give_up}, {runtime}"),
                peer: format!("{peer}{give_up}, {runtime}"),
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
    let (limiter, give_up) =
        limiter.strip_suffix(GIVE_UP).map_or((limiter, false), |limiter| (limiter, true));
    let crowd = Crowd { lasting, give_up };
    let millisecond = Duration::from_millis(1);
    match limiter {
        OURS => crowd.watch(&runtime, NUMBERS.ours()),
        GOVERNOR => crowd.watch(&runtime, NUMBERS.governors()),
        LEAKY_BUCKET => crowd.watch(&runtime, NUMBERS.leaky_buckets(millisecond)),
        COARSE_LEAKY_BUCKET => crowd.watch(&runtime, NUMBERS.leaky_buckets(10 * millisecond)),
        TIMERS => crowd.watch(&runtime, NUMBERS.timers()),
        _ => panic!("no limiter is called {limiter}"),
    }
}

#[derive(Clone, Copy)]
struct Crowd {
    lasting: Duration,
    give_up: bool,
}

impl Crowd {
    fn watch(self, runtime: &Runtime, limiter: impl Turns) -> Vec<f64> {
        // Twice what the rate gives: what is above that no longer matters.
        let most =
            2 * TASKS + (2.0 * f64::from(NUMBERS.rate) * (WARM_UP + self.lasting).as_secs_f64()) as usize;
        let record = Arc::new(Record::new(most));
        let limiter = Arc::new(limiter);
        let (figures, bytes) = runtime.block_on(async {
            let empty = resident().await;
            for _ in 0..TASKS {
                tokio::spawn(pending::<()>());
            }
            let idle = resident().await;
            for task in 0..TASKS {
                let (limiter, record) = (Arc::clone(&limiter), Arc::clone(&record));
                tokio::spawn(async move {
                    match self.give_up {
                        true => wait_or_give_up(&*limiter, &record, task).await,
                        false => wait_on_and_on(&*limiter, &record, task).await,
                    }
                });
            }
            sleep(WARM_UP).await;
            let before = Seen::now(&record.tallies);
            sleep(self.lasting).await;
            let figures = Seen::now(&record.tallies).since(&before);
            (figures, resident_bytes() - idle - (idle - empty))
        });
        let mut goes = record.times(|grant| &grant.went);
        let mut releases = record.times(|grant| &grant.released);
        goes.sort_unstable();
        releases.sort_unstable();
        let own = [above_rate(&releases), most_within(&goes, INSTANT), bytes / TASKS as f64];
        figures.into_iter().chain(own).collect()
    }
}

/// Resident bytes. To count them takes a while, which is on this thread's account only after it slept.
async fn resident() -> f64 {
    sleep(SETTLING).await;
    let bytes = resident_bytes();
    sleep(SETTLING).await;
    bytes
}

async fn wait_on_and_on(limiter: &impl Turns, record: &Record, task: usize) {
    let tally = &record.tallies[task];
    loop {
        tally.waits.fetch_add(1, Relaxed);
        let begun = record.now();
        let outcome = counted(limiter.turn(), tally).await;
        record.granted(tally, begun, &outcome);
    }
}

async fn wait_or_give_up(limiter: &impl Turns, record: &Record, task: usize) {
    let (tally, mut random) = (&record.tallies[task], Random(0x7011_6a7e ^ task as u64));
    loop {
        tally.waits.fetch_add(1, Relaxed);
        let begun = record.now();
        // Whatever the patience, both kinds have a timeout of their own.
        let patience = match random.below(2) {
            0 => 1_000 * ROUND,
            _ => Duration::from_micros(random.below(ROUND.as_micros() as usize) as u64),
        };
        match timeout(patience, counted(limiter.turn(), tally)).await {
            Ok(outcome) => record.granted(tally, begun, &outcome),
            // Its last poll was the timeout's.
            Err(_) => drop(tally.waits.fetch_add(1, Relaxed)),
        }
    }
}

async fn counted<T>(turn: impl Future<Output = T>, tally: &Tally) -> T {
    let mut turn = pin!(turn);
    poll_fn(|context| {
        tally.polls.fetch_add(1, Relaxed);
        turn.as_mut().poll(context)
    })
    .await
}

/// What the tasks got.
struct Record {
    begun: Instant,
    tallies: [Tally; TASKS],
    grants: Vec<Grant>,
    next: AtomicUsize,
}

/// When a wait was released and its task went on, in nanoseconds.
struct Grant {
    released: AtomicU64,
    went: AtomicU64,
}

impl Record {
    fn new(most: usize) -> Self {
        // Written to, so that its pages are there before any are counted.
        let grant = |_| Grant { released: AtomicU64::new(1), went: AtomicU64::new(1) };
        Self {
            begun: Instant::now(),
            tallies: [const { Tally::new() }; TASKS],
            grants: (0..most).map(grant).collect(),
            next: AtomicUsize::new(0),
        }
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    fn granted(&self, tally: &Tally, begun: Duration, outcome: &impl Outcome) {
        assert!(outcome.is_granted());
        tally.grants.fetch_add(1, Relaxed);
        let went = self.now();
        let released = outcome.waited().map_or(went, |waited| begun + waited);
        if let Some(grant) = self.grants.get(self.next.fetch_add(1, Relaxed)) {
            grant.released.store(released.as_nanos() as u64, Relaxed);
            grant.went.store(went.as_nanos() as u64, Relaxed);
        }
    }

    fn times(&self, of: impl Fn(&Grant) -> &AtomicU64) -> Vec<u64> {
        let made = self.next.load(Relaxed).min(self.grants.len());
        self.grants[..made].iter().map(|grant| of(grant).load(Relaxed)).collect()
    }
}

/// By how many units the worst window exceeds rate · t, of sorted times.
fn above_rate(times: &[u64]) -> f64 {
    let rate = f64::from(NUMBERS.rate) / NUMBERS.per.as_nanos() as f64;
    let (mut worst, mut lowest) = (0.0_f64, f64::INFINITY);
    for (count, time) in times.iter().enumerate() {
        let above = count as f64 - rate * *time as f64;
        lowest = lowest.min(above);
        worst = worst.max(above - lowest + 1.0);
    }
    worst
}

/// The most of these sorted times within any so long.
fn most_within(times: &[u64], long: Duration) -> f64 {
    let (mut first, mut most) = (0, 0);
    for (last, time) in times.iter().enumerate() {
        while time - times[first] >= long.as_nanos() as u64 {
            first += 1;
        }
        most = most.max(last + 1 - first);
    }
    most as f64
}

/// What one task got, on a cache line of its own.
#[repr(align(64))]
struct Tally {
    grants: AtomicU64,
    polls: AtomicU64,
    /// Waits that were begun, and once more each that was given up.
    waits: AtomicU64,
}

impl Tally {
    const fn new() -> Self {
        Self { grants: AtomicU64::new(0), polls: AtomicU64::new(0), waits: AtomicU64::new(0) }
    }
}

/// All tallies at one time.
struct Seen {
    at: Instant,
    processor: Duration,
    grants: Vec<u64>,
    /// Polls but the first of each wait.
    wake_ups: u64,
}

impl Seen {
    fn now(tallies: &[Tally]) -> Self {
        let sum =
            |of: fn(&Tally) -> &AtomicU64| tallies.iter().map(|tally| of(tally).load(Relaxed)).sum::<u64>();
        Self {
            at: Instant::now(),
            processor: processor_time(),
            grants: tallies.iter().map(|tally| tally.grants.load(Relaxed)).collect(),
            wake_ups: sum(|tally| &tally.polls).saturating_sub(sum(|tally| &tally.waits)),
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
            self.wake_ups.saturating_sub(before.wake_ups) as f64 / grants,
            most.unwrap_or(0) as f64 / least.unwrap_or(0).max(1) as f64,
            got.iter().filter(|got| **got > 0).count() as f64 / TASKS as f64,
        ]
    }
}
