//! Real tasks on several threads that are aborted, time out and panic at random. Afterwards all slots are back, nothing stays
//! booked, and the releases are within the bound.

use crate::by_hand::{SECOND, bucket, log};
use std::{
    future::{Future, poll_fn},
    panic::resume_unwind,
    pin::pin,
    sync::{
        Arc, Mutex, RwLock,
        atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinHandle,
    time::{sleep, timeout},
};
use tollgate::{
    Bounds, Charge, Clock, Concurrency, KeyedLimiter, LimitHandle, Limiter, ManualClock, MemoryStore, Permit,
};

const TASKS: u32 = 300;
const ROUNDS: u32 = 20;
const SLOTS: u32 = 7;
const BURST: u32 = 5;

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap()
}

fn slots() -> Concurrency {
    Concurrency::new(SLOTS, 1_000_000 * SECOND).unwrap().with_queue(TASKS)
}

/// A pseudo-random sequence per task.
struct Random(u64);

impl Random {
    fn new(task: u32) -> Self {
        Self(u64::from(task) * 0x9E37_79B9 + 1)
    }

    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(self.0 >> 33).unwrap() % end
    }

    fn micros(&mut self, end: u32) -> Duration {
        Duration::from_micros(self.below(end).into())
    }
}

/// Aborts two of three tasks at random times, and waits until all have ended.
async fn abort_some(tasks: Vec<JoinHandle<()>>) {
    let mut random = Random::new(0);
    for task in &tasks {
        if random.below(3) > 0 {
            sleep(random.micros(2_000)).await;
            task.abort();
        }
    }
    for task in tasks {
        let _ = task.await;
    }
}

/// A limit with slots.
#[derive(Clone)]
enum Gate {
    Limiter(Arc<Limiter>),
    Keyed(Arc<KeyedLimiter>),
    /// A bucket, a log and slots.
    Store(Arc<MemoryStore>, [LimitHandle; 3]),
}

impl Gate {
    async fn enter(&self, units: u32) -> Option<Permit<'static>> {
        match self {
            Self::Limiter(it) => it.enter_owned().cost(units).await.ok(),
            Self::Keyed(it) => it.enter_owned("k").cost(units).await.ok(),
            Self::Store(it, limits) => {
                let costs = [1, 1, units];
                let set = [0, 1, 2].map(|limit| Charge::new(&limits[limit], "k").cost(costs[limit]));
                it.enter_owned(&set).await.ok()
            }
        }
    }

    fn left(&self) -> u32 {
        match self {
            Self::Limiter(it) => it.peek(0).remaining(),
            Self::Keyed(it) => it.peek("k", 0).remaining(),
            Self::Store(it, limits) => {
                let peeked = it.peek(&[Charge::new(&limits[2], "k").cost(0)]).unwrap();
                peeked.statuses()[0].remaining()
            }
        }
    }
}

/// Counts held units until it is dropped.
struct HeldUnits(Arc<AtomicU32>, u32);

impl Drop for HeldUnits {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, SeqCst);
    }
}

/// Enters repeatedly, and leaves by a return, a panic, a timeout or an abort.
async fn enter_and_leave(number: u32, gate: Gate, held: Arc<AtomicU32>, most: Arc<AtomicU32>) {
    let mut random = Random::new(number + 1);
    for _ in 0..ROUNDS {
        let units = 1 + random.below(3);
        let work = async {
            let Some(permit) = gate.enter(units).await else { return };
            most.fetch_max(held.fetch_add(units, SeqCst) + units, SeqCst);
            // Dropped in this order: the units leave the count before the permit is returned.
            let _both = (HeldUnits(Arc::clone(&held), units), permit);
            match random.below(40) {
                0 => resume_unwind(Box::new("on purpose")),
                1..20 => sleep(Duration::from_micros(50)).await,
                20..30 => tokio::task::yield_now().await,
                _ => {}
            }
        };
        let _ = timeout(Duration::from_millis(u64::from(number % 40)), work).await;
    }
}

#[test]
fn aborted_and_panicking_tasks_return_all_slots() {
    let store = Arc::new(MemoryStore::new());
    let limits = [
        store.add("limit", bucket(20_000, 10)).unwrap(),
        store.add("limit", log(1_000_000)).unwrap(),
        store.add("limit", slots()).unwrap(),
    ];
    let gates = [
        Gate::Limiter(Arc::new(Limiter::new(slots()))),
        Gate::Keyed(Arc::new(KeyedLimiter::new(slots()))),
        Gate::Store(store, limits),
    ];
    for gate in gates {
        let (held, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let runtime = runtime();
        runtime.block_on(async {
            let tasks = (0..TASKS).map(|number| {
                tokio::spawn(enter_and_leave(number, gate.clone(), Arc::clone(&held), Arc::clone(&most)))
            });
            abort_some(tasks.collect()).await;
            assert_eq!(gate.left(), SLOTS, "slots were lost");
            assert!(most.load(SeqCst) <= SLOTS, "{} slots were held at once", most.load(SeqCst));
            let all = timeout(Duration::from_secs(10), gate.enter(SLOTS)).await;
            assert!(all.is_ok_and(|permit| permit.is_some()), "the slots are free and cannot be entered");
        });
    }
}

/// Limits on a clock that a thread moves, and the release times.
struct SharedStore {
    clock: ManualClock,
    store: MemoryStore<ManualClock>,
    limits: [LimitHandle; 2],
    /// Read-locked during an arrival, so that the clock does not move meanwhile.
    stands: RwLock<()>,
    released: Mutex<Vec<u64>>,
}

impl SharedStore {
    fn new() -> Arc<Self> {
        let clock = ManualClock::new();
        let store = MemoryStore::with_clock(Bounds { max_keys: 10, ..Bounds::default() }, clock.clone());
        let limits =
            [store.add("limits", bucket(1_000, BURST)).unwrap(), store.add("limits", log(900)).unwrap()];
        Arc::new(Self { clock, store, limits, stands: RwLock::new(()), released: Mutex::default() })
    }

    fn set(&self) -> [Charge<'_>; 2] {
        self.limits.each_ref().map(|limit| Charge::new(limit, "k"))
    }

    /// Waits for a release and records its time.
    async fn wait(&self) {
        let mut wait = pin!(self.store.wait(&self.set()));
        let mut came = None;
        let passed = poll_fn(|context| {
            let stands = came.is_none().then(|| self.stands.read().unwrap());
            came.get_or_insert_with(|| self.clock.now());
            let polled = wait.as_mut().poll(context);
            drop(stands);
            polled
        });
        let passed = passed.await.unwrap();
        let released = came.unwrap() + passed.waited();
        self.released.lock().unwrap().push(released.as_nanos());
    }

    /// Moves the clock by up to 4 ms at a time until `is_over`.
    fn go_on(&self, is_over: &AtomicBool) {
        let mut random = Random::new(TASKS);
        while !is_over.load(SeqCst) {
            let stands = self.stands.write().unwrap();
            self.clock.advance(random.micros(4_000));
            drop(stands);
            thread::yield_now();
        }
    }
}

async fn wait_and_give_up(number: u32, turns: Arc<SharedStore>) {
    let mut random = Random::new(number + 1);
    for _ in 0..ROUNDS {
        if timeout(random.micros(3_000), turns.wait()).await.is_ok() && random.below(40) == 0 {
            resume_unwind(Box::new("on purpose"));
        }
    }
}

#[test]
fn aborted_and_panicking_tasks_keep_the_bound() {
    let (turns, is_over) = (SharedStore::new(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| turns.go_on(&is_over));
        let runtime = runtime();
        runtime.block_on(async {
            let tasks = (0..TASKS).map(|number| tokio::spawn(wait_and_give_up(number, Arc::clone(&turns))));
            abort_some(tasks.collect()).await;
        });
        is_over.store(true, SeqCst);
    });
    let mut released = std::mem::take(&mut *turns.released.lock().unwrap());
    assert!(!released.is_empty());
    released.sort_unstable();
    for (first, from) in released.iter().enumerate() {
        // One unit a millisecond, beyond the burst.
        for (to, turns) in released[first..].iter().zip(1_u64..) {
            let most = u64::from(BURST) + (to - from) / 1_000_000;
            assert!(turns <= most, "{turns} turns within {} ns, from {from}", to - from);
        }
        if let Some(after) = released.get(first + 900) {
            assert!(after - from >= 1_000_000_000, "more than 900 in a second, from {from}");
        }
    }
    // Nothing stays booked: at most the burst is in use, which refills in 5 ms.
    turns.clock.advance(Duration::from_millis(BURST.into()));
    let left = turns.store.peek(&turns.set().map(|charge| charge.cost(0))).unwrap();
    assert_eq!(left.statuses()[0].remaining(), BURST);
    turns.clock.advance(SECOND);
    let left = turns.store.peek(&turns.set().map(|charge| charge.cost(0))).unwrap();
    assert_eq!(left.statuses()[1].remaining(), 900);
    assert_eq!(turns.clock.next_sleeper(), None, "a timer is left behind");
}
