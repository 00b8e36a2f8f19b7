//! Wakers: the newest is called, and called or dropped under no lock, whatever they do then.

use crate::by_hand::{SECOND, bucket, by_nobody, limiter, log, store};
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Context, Wake, Waker},
    thread,
    time::Duration,
};
use tollgate::{Charge, Clock, Concurrency, Limiter, ManualClock, MemoryStore, Sleep, Time, Timer};

/// Fails where `work` never ends: a lock that its own thread waits for.
fn ends(work: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    let worker = thread::spawn(move || {
        work();
        let _ = done.send(());
    });
    match is_done.recv_timeout(Duration::from_secs(20)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it waits for itself"),
        _ => worker.join().unwrap(),
    }
}

/// A clock that stands still, and whose timer keeps no wakers: only the line does.
#[derive(Clone, Copy)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Time {
        Time::ZERO
    }

    fn unix(&self, _: Time) -> u64 {
        0
    }
}

impl Timer for Still {
    fn sleep_until(&self, _: Time) -> Sleep {
        Box::pin(std::future::pending())
    }
}

/// Two futures in front, so that one behind them is neither first nor second.
fn two_in_front(limiter: &Arc<Limiter<Still>>) -> [Pin<Box<impl Future + use<>>>; 2] {
    assert!(limiter.check().is_allow());
    let mut front = [Box::pin(limiter.wait_owned()), Box::pin(limiter.wait_owned())];
    for wait in &mut front {
        assert!(wait.as_mut().poll(&mut by_nobody()).is_pending());
    }
    front
}

#[derive(Default)]
struct Counts(AtomicUsize);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_future_that_moves_to_another_task_wakes_that_one() {
    let limiter = limiter(log(1)).0;
    assert!(limiter.check().is_allow());
    let mut wait = std::pin::pin!(limiter.wait());
    let tasks = [Arc::new(Counts::default()), Arc::new(Counts::default())];
    for task in &tasks {
        let waker = Waker::from(Arc::clone(task));
        assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    limiter.reset();
    assert_eq!(tasks.map(|task| task.0.load(SeqCst)), [0, 1]);
    assert!(wait.as_mut().poll(&mut by_nobody()).is_ready());
}

#[test]
fn a_turn_that_moves_up_wakes_one_behind_the_head() {
    let (limiter, clock) = limiter(bucket(1, 1));
    assert!(limiter.check().is_allow());
    let mut waits: Vec<_> = (0..6).map(|_| Box::pin(limiter.wait())).collect();
    let tasks: Vec<_> = waits.iter().map(|_| Arc::new(Counts::default())).collect();
    let wakers: Vec<_> = tasks.iter().map(|task| Waker::from(Arc::clone(task))).collect();
    for (wait, waker) in waits.iter_mut().zip(&wakers) {
        assert!(wait.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    }
    let woken = || tasks.iter().map(|task| task.0.load(SeqCst)).collect::<Vec<_>>();
    drop(waits.remove(0));
    assert_eq!(woken(), [0, 1, 1, 0, 0, 0], "the new head, and one in case that is not polled");
    for (wait, waker) in waits.iter_mut().zip(&wakers[1..]).take(2) {
        assert!(wait.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    }
    clock.advance(SECOND);
    assert!(waits[0].as_mut().poll(&mut Context::from_waker(&wakers[1])).is_ready());
    assert_eq!(woken()[3..], [1, 0, 0], "the head is in time");
}

#[test]
fn a_future_polled_after_its_end_charges_nothing() {
    let limiter = limiter(bucket(1, 5)).0;
    let _ = limiter.peek(0);
    let mut wait = std::pin::pin!(limiter.wait());
    assert!(wait.as_mut().poll(&mut by_nobody()).is_ready());
    let _ = wait.as_mut().poll(&mut by_nobody());
    assert_eq!(limiter.peek(0).remaining(), 4);
}

/// What it drops looks at the limiter.
struct Looks(Arc<Limiter<Still>>);

impl Wake for Looks {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Looks {
    fn drop(&mut self) {
        let _ = self.0.peek(1);
    }
}

#[test]
fn a_waker_that_is_replaced_may_look_at_the_limiter() {
    ends(|| {
        let limiter = Arc::new(Limiter::with_clock(log(1), Still));
        let _front = two_in_front(&limiter);
        let mut wait = std::pin::pin!(limiter.wait());
        {
            let waker = Waker::from(Arc::new(Looks(Arc::clone(&limiter))));
            assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        assert!(wait.as_mut().poll(&mut by_nobody()).is_pending());
    });
}

/// As in a textbook executor: the waker owns its task, and the task a future.
struct Owns {
    _future: Mutex<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Wake for Owns {
    fn wake(self: Arc<Self>) {}
}

/// The last waker goes with the place in line, the task goes with the waker, and steps out of the same line.
#[test]
fn a_waker_may_own_another_who_stands_in_the_same_line() {
    ends(|| {
        let limiter = Arc::new(Limiter::with_clock(log(1), Still));
        let _front = two_in_front(&limiter);
        let inner = limiter.wait_owned();
        let mut inner: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
            let _ = inner.await;
        });
        assert!(inner.as_mut().poll(&mut by_nobody()).is_pending());
        let mut wait = Box::pin(limiter.wait());
        {
            let waker = Waker::from(Arc::new(Owns { _future: Mutex::new(inner) }));
            assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        drop(wait);
    });
}

/// When woken, adds a limit to the store.
struct Adds(Arc<MemoryStore<ManualClock>>);

impl Wake for Adds {
    fn wake(self: Arc<Self>) {
        self.0.add("limit", bucket(1, 1)).unwrap();
    }
}

#[test]
fn a_waker_may_change_the_store_that_woke_it() {
    ends(|| {
        let store = Arc::new(store().0);
        let limit = store.add("limit", log(1)).unwrap();
        let charge = [Charge::new(&limit, "k")];
        assert!(store.check(&charge).unwrap().is_allow());
        let waker = Waker::from(Arc::new(Adds(Arc::clone(&store))));
        let mut wait = std::pin::pin!(store.wait(&charge));
        assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        store.change(&limit, log(1)).unwrap();
        assert!(wait.as_mut().poll(&mut by_nobody()).is_pending());
    });
}

/// One thread changes a limit, another looks at a line whose bucket outgrows its word: neither waits for the other.
#[test]
fn a_line_may_be_looked_at_while_limits_change() {
    ends(|| {
        let (store, clock) = store();
        let store = Arc::new(store);
        let fast = store.add("fast", bucket(999, 10)).unwrap();
        let large = store.add_bounded("large", bucket(1, 1), 300_000).unwrap();
        assert!(store.check_one(&Charge::new(&large, 1)).unwrap().is_allow());
        let charge = [Charge::new(&fast, "k")];
        assert!(store.check(&charge).unwrap().is_allow());
        let century = Duration::from_secs(86_400 * 365 * 100);
        store.ban(&fast, "k", century).unwrap();
        let mut wait = std::pin::pin!(store.wait(&charge));
        assert!(wait.as_mut().poll(&mut by_nobody()).is_pending());
        let both = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..100 {
                    both.wait();
                    store.change(&large, bucket(1, 1)).unwrap();
                }
            });
            for _ in 0..100 {
                both.wait();
                clock.advance(Duration::from_secs(86_400 * 30));
                assert!(store.check(&charge).unwrap().is_deny());
            }
        });
    });
}

/// They go to other threads, with whatever they hold.
#[test]
fn waits_permits_and_reservations_can_be_sent() {
    fn send<T: Send>(it: T) -> T {
        it
    }
    fn sync<T: Sync>(it: T) -> T {
        it
    }
    let limiter = Arc::new(Limiter::new(Concurrency::new(1, SECOND).unwrap()));
    send(limiter.wait()).blocking().unwrap();
    drop(send(sync(send(limiter.enter_owned()).blocking().unwrap())));
    drop(send(sync(limiter.reserve_owned(1, SECOND).unwrap())));
    let store = Arc::new(MemoryStore::new());
    assert!(send(store.enter_owned(&[])).blocking().is_ok());
}
