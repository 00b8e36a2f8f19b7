//! Ten thousand tasks whose turns lie far ahead: what they cost while next to nobody goes.
//!
//! At one a second a task sleeps for up to three hours. Ours queue, and each task has a timer for when it expects its turn;
//! leaky-bucket has a queue of which one task sleeps; governor's tasks all wake when the next turn comes, every second. Ours
//! at a log, which is full for a minute, queue in the same way, without and with a deadline.
//!
//! Bytes are resident ones, over what as many tasks take that wait for nothing. Processor time to come includes that of
//! making the task.

use super::turns::{Numbers, Outcome, Patient, Turns, full_log};
use crate::{
    child::{self, processor_time, resident_bytes},
    effort::{Effort, short},
    report::Report,
    rows::{self, Row},
};
use std::{
    future::{Future, pending},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tokio::{runtime::Builder, time::sleep};

pub(crate) const CHILD: &str = "ahead";

const GOVERNOR: &str = "governor";
const LEAKY_BUCKET: &str = "leaky-bucket";
const AT_BUCKET: &str = "at a bucket";
const AT_LOG: &str = "at a log";
const AT_LOG_BY: &str = "at a log by a deadline";

const NUMBERS: Numbers = Numbers { rate: 1, per: Duration::from_secs(1), burst: 1 };
const A_MINUTE: Numbers = Numbers { rate: 1, per: Duration::from_secs(60), burst: 1 };
/// Further than anybody's turn.
const PATIENCE: Duration = Duration::from_secs(30 * 86_400);
/// For whoever was just about to sleep.
const SETTLING: Duration = Duration::from_millis(50);
/// Resident memory and the first tasks' pages come with these.
const FIRST: usize = 64;

const FIGURES: [(&str, &str); 3] =
    [("CPU while waiting", "us/s"), ("bytes a waiter", "bytes"), ("CPU to come", "ns/task")];

pub(crate) fn run(report: &mut Report, effort: &Effort) {
    let sides =
        [(AT_BUCKET, LEAKY_BUCKET), (AT_BUCKET, GOVERNOR), (AT_LOG, LEAKY_BUCKET), (AT_LOG_BY, LEAKY_BUCKET)];
    let mut rows = Vec::new();
    for (ours, peer) in sides {
        for (figure, (what, unit)) in FIGURES.into_iter().enumerate() {
            rows.push(Row {
                name: format!("turns ahead, {} {ours}, {what}, {peer}", short(effort.waiters)),
                unit,
                ours: ours.to_owned(),
                peer: peer.to_owned(),
                figure,
                target: None,
            });
        }
    }
    rows::measure(report, effort.waiters_rounds, rows, |subject| child::run(CHILD, subject, effort.waiters));
}

/// In the child: the figures of so many tasks.
pub(crate) fn child(subject: &str, waiters: usize) -> Vec<f64> {
    match subject {
        AT_BUCKET => watch(waiters, || NUMBERS.ours()),
        AT_LOG => watch(waiters, || full_log(A_MINUTE)),
        AT_LOG_BY => watch(waiters, || Patient { limiter: full_log(A_MINUTE), up_to: PATIENCE }),
        LEAKY_BUCKET => watch(waiters, || NUMBERS.leaky_buckets(NUMBERS.per)),
        GOVERNOR => watch(waiters, || NUMBERS.governors()),
        _ => panic!("no subject is called {subject}"),
    }
}

fn watch<T: Turns>(waiters: usize, limiter: impl Fn() -> T) -> Vec<f64> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let first = Arc::new(limiter());
        begin(FIRST, nothing).await;
        begin(FIRST, |begun| turn(Arc::clone(&first), begun)).await;
        let empty = resident().await;
        begin(waiters, nothing).await;
        let idle = resident().await;

        let (limiter, before) = (Arc::new(limiter()), processor_time());
        begin(waiters, |begun| turn(Arc::clone(&limiter), begun)).await;
        let came = processor_time();
        let bytes = (resident().await - idle) - (idle - empty);

        // A fifth of a second for every thousand: two seconds for ten thousand.
        let (begun, busy) = (Instant::now(), processor_time());
        sleep(Duration::from_micros(200) * waiters as u32).await;
        let (lasted, busy) = (begun.elapsed(), processor_time() - busy);
        vec![
            busy.as_secs_f64() * 1e6 / lasted.as_secs_f64(),
            bytes / waiters as f64,
            (came - before).as_nanos() as f64 / waiters as f64,
        ]
    })
}

/// Resident bytes. To count them takes a while, which is on this thread's account only after it slept.
async fn resident() -> f64 {
    let bytes = resident_bytes();
    sleep(SETTLING).await;
    bytes
}

/// The wait is awaited where it is made: kept in a variable, it would take its place in the task twice.
async fn turn<T: Turns>(limiter: Arc<T>, begun: Begun) {
    begun.fetch_add(1, Relaxed);
    assert!(limiter.turn().await.is_granted());
}

async fn nothing(begun: Begun) {
    begun.fetch_add(1, Relaxed);
    pending::<()>().await;
}

/// How many tasks have begun.
type Begun = Arc<AtomicUsize>;

/// Spawns so many tasks, and is ready when all of them sleep.
async fn begin<F: Future<Output = ()> + Send + 'static>(count: usize, task: impl Fn(Begun) -> F) {
    let begun = Begun::default();
    for _ in 0..count {
        tokio::spawn(task(Arc::clone(&begun)));
    }
    while begun.load(Relaxed) < count {
        sleep(Duration::from_millis(1)).await;
    }
    sleep(SETTLING).await;
}
