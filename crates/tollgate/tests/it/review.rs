//! Review scenarios.
use crate::tasks::Tasks;
use std::{
    future::Future,
    sync::{Arc, Mutex, mpsc},
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};
use tollgate::*;
const SECOND: Duration = Duration::from_secs(1);
fn bucket(r: u32, b: u32) -> TokenBucket {
    TokenBucket::new(Rate::per_second(r).unwrap(), b).unwrap()
}
fn limiter(limit: impl Into<Limit>) -> (Limiter<ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    (Limiter::with_clock(limit, clock.clone()), clock)
}
fn store() -> (MemoryStore<ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    (MemoryStore::with_clock(Bounds { max_keys: 100, ..Bounds::default() }, clock.clone()), clock)
}
fn noop() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// R1: a kept, unpolled future alone in a line: checks are refused for ever.
#[test]
fn r01_forgotten_alone_blocks_checks() {
    let (limiter, clock) = limiter(SlidingLog::new(1, SECOND).unwrap());
    assert!(limiter.check().is_allow());
    let mut forgotten = Box::pin(limiter.wait());
    assert!(forgotten.as_mut().poll(&mut noop()).is_pending());
    clock.advance(3600 * SECOND);
    let status = limiter.check();
    println!("{status:?} {:?}", status.retry_after());
    assert!(status.is_allow(), "an hour later the window is empty");
}
/// R1b: leaked.
#[test]
fn r01b_forgotten_alone_blocks_reserve() {
    let (limiter, clock) = limiter(SlidingLog::new(1, SECOND).unwrap());
    assert!(limiter.check().is_allow());
    let mut f = Box::pin(limiter.wait());
    assert!(f.as_mut().poll(&mut noop()).is_pending());
    std::mem::forget(f);
    clock.advance(3600 * SECOND);
    assert!(limiter.reserve(1, SECOND).is_ok(), "an hour later the window is empty");
}
/// R2: two forgotten in a row.
#[test]
fn r02_two_forgotten_block_everyone() {
    let (limiter, clock) = limiter(SlidingLog::new(1, SECOND).unwrap());
    assert!(limiter.check().is_allow());
    let mut one = Box::pin(limiter.wait());
    let mut two = Box::pin(limiter.wait());
    assert!(one.as_mut().poll(&mut noop()).is_pending());
    assert!(two.as_mut().poll(&mut noop()).is_pending());
    let mut tasks = Tasks::on(&clock);
    let third = tasks.start(limiter.wait());
    tasks.pass(3600 * SECOND);
    assert!(!tasks.is_running(third), "an hour, and nobody else wants it");
}
/// R3: cancel after the window passed takes from others.
#[test]
fn r03_cancel_after_window_passed() {
    let (store, clock) = store();
    let window = store.add(FixedWindow::new(5, SECOND).unwrap()).unwrap();
    let rate = store.add(bucket(1, 1)).unwrap();
    assert!(store.check_one(&Charge::new(&rate, ())).unwrap().is_allow());
    store.reserve(&[Charge::new(&rate, ())], 10 * SECOND).unwrap().keep();
    let turn =
        store.reserve(&[Charge::new(&window, ()).cost(3), Charge::new(&rate, ())], 10 * SECOND).unwrap();
    assert_eq!(turn.due_in(), 2 * SECOND);
    clock.advance(SECOND + SECOND / 2);
    assert!(store.check_one(&Charge::new(&window, ()).cost(5)).unwrap().is_allow());
    assert!(turn.cancel());
    let more = store.check_one(&Charge::new(&window, ()).cost(3)).unwrap();
    assert!(more.is_deny(), "8 in a window of 5");
}
#[test]
fn r03b_settle_after_window_passed() {
    for limit in [
        Limit::from(FixedWindow::new(10, SECOND).unwrap()),
        SlidingLog::new(10, SECOND).unwrap().into(),
        SlidingCounter::new(10, SECOND).unwrap().into(),
    ] {
        let (limiter, clock) = limiter(limit.clone());
        let turn = limiter.reserve(10, SECOND).unwrap();
        clock.advance(5 * SECOND / 2);
        assert!(limiter.check_n(10).is_allow());
        turn.settle(2);
        println!("{limit:?}: {:?}", limiter.check_n(8).decision());
    }
    let (limiter, clock) = limiter(FixedWindow::new(10, SECOND).unwrap());
    let turn = limiter.reserve(10, SECOND).unwrap();
    clock.advance(5 * SECOND / 2);
    assert!(limiter.check_n(10).is_allow());
    turn.settle(2);
    assert!(limiter.check_n(8).is_deny(), "18 in a window of 10");
}
#[test]
fn r03c_cancel_in_a_log_shifts_times() {
    let (store, clock) = store();
    let log = store.add(SlidingLog::new(6, SECOND).unwrap()).unwrap();
    let rate = store.add(bucket(1, 1)).unwrap();
    assert!(store.check_one(&Charge::new(&rate, ())).unwrap().is_allow());
    store.reserve(&[Charge::new(&rate, ())], 10 * SECOND).unwrap().keep();
    let turn = store.reserve(&[Charge::new(&log, ()).cost(3), Charge::new(&rate, ())], 10 * SECOND).unwrap();
    clock.advance(9 * SECOND / 10);
    assert!(store.check_one(&Charge::new(&log, ()).cost(3)).unwrap().is_allow());
    assert!(turn.cancel());
    clock.advance(SECOND / 10);
    // 3 real ones at 0.9; at 1.0 at most 3 more fit into (0.9, 1.9].
    assert!(
        store.check_one(&Charge::new(&log, ()).cost(6)).unwrap().is_deny(),
        "9 in a tenth of a second, of 6 a second"
    );
}
/// R4: settle for less, long after: a token bucket gives more than burst.
#[test]
fn r04_settle_late_on_a_bucket() {
    let (limiter, clock) = limiter(bucket(1000, 60_000));
    let turn = limiter.reserve(50_000, SECOND).unwrap();
    clock.advance(100 * SECOND);
    assert!(limiter.check_n(60_000).is_allow());
    turn.settle(10_000);
    assert!(limiter.check_n(40_000).is_deny(), "100000 at one instant, burst 60000");
}
/// R5: give back after reset / change of kind.
#[test]
fn r05_cancel_after_reset() {
    let (limiter, _clock) = limiter(bucket(1, 5));
    assert!(limiter.check_n(5).is_allow());
    let turn = limiter.reserve(5, 10 * SECOND).unwrap();
    limiter.reset();
    assert!(limiter.check_n(5).is_allow());
    assert!(turn.cancel());
    assert!(limiter.check_n(5).is_deny(), "ten of burst five");
}
#[test]
fn r05b_cancel_after_change_of_kind() {
    let (limiter, _clock) = limiter(bucket(1, 5));
    assert!(limiter.check_n(5).is_allow());
    let turn = limiter.reserve(5, 10 * SECOND).unwrap();
    limiter.change(FixedWindow::new(5, 60 * SECOND).unwrap());
    assert!(limiter.check_n(5).is_allow());
    turn.cancel();
    assert!(limiter.check_n(5).is_deny(), "ten in a window of five");
}
#[test]
fn r05c_cancel_after_change_of_numbers() {
    let (limiter, _clock) = limiter(bucket(1, 100));
    assert!(limiter.check_n(100).is_allow());
    let turn = limiter.reserve(100, 1000 * SECOND).unwrap();
    limiter.change(bucket(1, 10));
    // 200% consumed: level 20 of 10.
    println!("{:?}", limiter.peek(10).retry_after());
    assert!(turn.cancel());
    println!("{:?}", limiter.peek(10).retry_after());
    assert!(limiter.check_n(10).is_deny(), "100 of 100 were used and kept as 10 of 10");
}
/// R6: slots in a set whose wait is longer than max_hold.
#[test]
fn r06_slots_expire_during_the_wait() {
    let (store, clock) = store();
    let rate = store.add(TokenBucket::new(Rate::per_minute(1).unwrap(), 1).unwrap()).unwrap();
    let slots = store.add(Concurrency::new(1, 30 * SECOND).unwrap().with_queue(10)).unwrap();
    let set = [Charge::new(&rate, ()), Charge::new(&slots, ())];
    assert!(store.check_one(&Charge::new(&rate, ())).unwrap().is_allow());
    let mut tasks = Tasks::on(&clock);
    tasks.start(store.enter(&set));
    tasks.start(store.enter(&[Charge::new(&slots, ())]));
    let mut held = Vec::new();
    for _ in 0..7 {
        tasks.pass(10 * SECOND);
        // Whoever is in stays in, renewing.
        held.extend(tasks.done.drain(..).map(|(task, at, p)| (task, at, p.unwrap())));
        for (task, _, permit) in &held {
            println!("{:?} {task} renewed {}", clock.now(), permit.renew());
        }
    }
    assert!(
        held.len() < 2,
        "two are in, of one: {:?}",
        held.iter().map(|(t, at, _)| (*t, *at)).collect::<Vec<_>>()
    );
}
#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn r06b_hold_while_renews_too_late() {
    let limiter = Limiter::with_clock(Concurrency::new(1, 30 * SECOND).unwrap(), TokioClock::new());
    let permit = limiter.enter().await.unwrap();
    tokio::time::sleep(25 * SECOND).await;
    permit.hold_while(tokio::time::sleep(20 * SECOND)).await;
    assert!(limiter.check().is_deny(), "it was held from beginning to end");
}
/// R7: cost 0.
#[test]
fn r07_cost_zero_in_a_line() {
    let (limiter, clock) = limiter(SlidingLog::new(1, SECOND).unwrap());
    assert!(limiter.check().is_allow());
    let mut tasks = Tasks::on(&clock);
    tasks.start(limiter.wait());
    assert!(limiter.check_n(0).is_allow());
    println!("reserve 0: {:?}", limiter.reserve(0, Duration::ZERO).map(|_| ()).map_err(|e| e.to_string()));
    println!(
        "wait 0 up_to 0: {:?}",
        limiter.wait().cost(0).up_to(Duration::ZERO).blocking().map(|_| ()).map_err(|e| e.to_string())
    );
    let zero = tasks.start(limiter.wait().cost(0));
    assert!(!tasks.is_running(zero), "cost 0 is a peek: it always passes");
}
#[test]
fn r07b_cost_zero_at_a_full_queue() {
    let (limiter, clock) = limiter(Concurrency::new(1, 30 * SECOND).unwrap().with_queue(1));
    let _held = limiter.enter().blocking().unwrap();
    let mut tasks = Tasks::on(&clock);
    tasks.start(limiter.enter());
    let none = limiter.enter().cost(0).blocking();
    assert!(none.is_ok(), "{none:?}");
}
/// R8: starvation of a set.
#[test]
fn r08_a_set_starves() {
    let (store, clock) = store();
    let first_hit = |n| FixedWindow::new(n, SECOND).unwrap().with_align(Align::FirstHit);
    let (a, b) = (store.add(first_hit(1)).unwrap(), store.add(first_hit(1)).unwrap());
    let (on_a, on_b) = (Charge::new(&a, ()), Charge::new(&b, ()));
    assert!(store.check_one(&on_a).unwrap().is_allow());
    clock.advance(SECOND / 2);
    assert!(store.check_one(&on_b).unwrap().is_allow());
    let mut tasks = Tasks::on(&clock);
    let both = tasks.start(store.wait(&[on_a, on_b]));
    for _ in 0..200 {
        tasks.start(store.wait(&[on_a]));
        tasks.start(store.wait(&[on_b]));
    }
    tasks.pass(100 * SECOND);
    println!("{} younger ones went", tasks.done.len());
    assert!(!tasks.is_running(both), "it came first of all and has waited for 100 s");
}
/// R9: polled after Ready.
#[test]
fn r09_polled_after_ready_charges_again() {
    let (limiter, _clock) = limiter(bucket(1, 5));
    let _ = limiter.peek(0);
    let mut wait = Box::pin(limiter.wait());
    assert!(wait.as_mut().poll(&mut noop()).is_ready());
    let again = wait.as_mut().poll(&mut noop());
    println!("{again:?}");
    assert_eq!(limiter.peek(0).remaining(), 4, "charged twice");
}
fn in_time(f: impl FnOnce() + Send + 'static) -> bool {
    let (tx, rx) = mpsc::channel();
    thread::spawn(move || {
        f();
        let _ = tx.send(());
    });
    rx.recv_timeout(Duration::from_secs(20)).is_ok()
}
/// R10: a waker dropped under the room's lock.
struct DropsLimiter(Arc<Limiter<ManualClock>>);
impl Wake for DropsLimiter {
    fn wake(self: Arc<Self>) {}
}
impl Drop for DropsLimiter {
    fn drop(&mut self) {
        let _ = self.0.peek(1);
    }
}
#[test]
fn r10_waker_dropped_under_the_rooms_lock() {
    assert!(
        in_time(|| {
            let limiter = Arc::new(limiter(SlidingLog::new(1, SECOND).unwrap()).0);
            assert!(limiter.check().is_allow());
            let mut front = [Box::pin(limiter.wait()), Box::pin(limiter.wait())];
            for f in &mut front {
                assert!(f.as_mut().poll(&mut noop()).is_pending());
            }
            let mut wait = Box::pin(limiter.wait());
            {
                let waker = Waker::from(Arc::new(DropsLimiter(Arc::clone(&limiter))));
                assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            }
            // Moved to another task.
            assert!(wait.as_mut().poll(&mut noop()).is_pending());
        }),
        "deadlock"
    );
}
/// R10b: tasks as in a textbook executor: the waker owns the task, the task owns the future.
#[test]
fn r10b_waker_owns_its_task_on_leave() {
    assert!(
        in_time(|| {
            let limiter = Arc::new(limiter(SlidingLog::new(1, SECOND).unwrap()).0);
            assert!(limiter.check().is_allow());
            struct Task(
                #[allow(dead_code)] Mutex<Option<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>>>,
            );
            impl Wake for Task {
                fn wake(self: Arc<Self>) {}
            }
            let mut front = [Box::pin(limiter.wait()), Box::pin(limiter.wait())];
            for f in &mut front {
                assert!(f.as_mut().poll(&mut noop()).is_pending());
            }
            // The task owns another wait at the same limiter.
            let l = Arc::clone(&limiter);
            let mut inner: std::pin::Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
                let _ = l.wait().await;
            });
            assert!(inner.as_mut().poll(&mut noop()).is_pending());
            let mut wait = Box::pin(limiter.wait());
            {
                let waker = Waker::from(Arc::new(Task(Mutex::new(Some(inner)))));
                assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            }
            drop(wait); // the room drops the last waker, which drops the task, which steps out of the line
        }),
        "deadlock"
    );
}
/// R11: wakers called under `changing`.
struct Adds(Arc<MemoryStore<ManualClock>>);
impl Wake for Adds {
    fn wake(self: Arc<Self>) {
        let _ = self.0.add(bucket(1, 1));
    }
}
#[test]
fn r11_waker_called_under_changing() {
    assert!(
        in_time(|| {
            let store = Arc::new(store().0);
            let limit = store.add(SlidingLog::new(1, SECOND).unwrap()).unwrap();
            let charge = [Charge::new(&limit, "k")];
            assert!(store.check(&charge).unwrap().is_allow());
            let waker = Waker::from(Arc::new(Adds(Arc::clone(&store))));
            let mut wait = Box::pin(store.wait(&charge));
            assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            store.change(&limit, SlidingLog::new(1, SECOND).unwrap()).unwrap();
        }),
        "deadlock"
    );
}
/// R12: room -> changing, and changing -> room.
#[test]
fn r12_change_and_rebase_deadlock() {
    assert!(
        in_time(|| {
            let clock = ManualClock::new();
            let store = Arc::new(MemoryStore::with_clock(
                Bounds { max_keys: 100, ..Bounds::default() },
                clock.clone(),
            ));
            let fast = store.add(bucket(999, 10)).unwrap();
            let big = store.add_bounded(bucket(1, 1), 1_000_000).unwrap();
            assert!(store.check_one(&Charge::new(&big, 1)).unwrap().is_allow());
            assert!(store.check_one(&Charge::new(&fast, "k")).unwrap().is_allow());
            store.ban(&fast, "k", Duration::from_secs(86_400 * 365 * 100)).unwrap();
            let charge = [Charge::new(&fast, "k")];
            let mut wait = Box::pin(store.wait(&charge));
            assert!(wait.as_mut().poll(&mut noop()).is_pending());
            let (s, l) = (Arc::clone(&store), big.clone());
            let changing = thread::spawn(move || {
                for i in 0..400 {
                    s.change(&l, bucket(1, 1)).unwrap();
                    println!("change {i}");
                }
            });
            for i in 0..300 {
                println!("check {i}");
                clock.advance(Duration::from_secs(86_400 * 30));
                assert!(store.check_one(&Charge::new(&fast, "k")).unwrap().is_deny());
                thread::sleep(Duration::from_micros(300));
            }
            changing.join().unwrap();
        }),
        "deadlock"
    );
}
/// R13: granted units of a concurrency charge in a cancelled set.
#[test]
fn r13_granted_slots_lost() {
    let (store, _clock) = store();
    let rate = store.add(bucket(1, 1)).unwrap();
    let slots = store.add(Concurrency::new(1, 30 * SECOND).unwrap()).unwrap();
    assert!(store.check_one(&Charge::new(&rate, ())).unwrap().is_allow());
    store.grant(&slots, (), 1).unwrap();
    let free = || store.peek(&[Charge::new(&slots, ()).cost(0)]).unwrap().statuses()[0].remaining();
    assert_eq!(free(), 2);
    let turn = store.reserve(&[Charge::new(&rate, ()), Charge::new(&slots, ())], 10 * SECOND).unwrap();
    assert!(turn.cancel());
    assert_eq!(free(), 2, "the granted one is lost");
}
/// R14: debt of a forgotten key that is banned.
#[test]
fn r14_debt_of_a_banned_key_lost() {
    let clock = ManualClock::new();
    let keyed =
        KeyedLimiter::with_clock(bucket(10, 10), Bounds { max_keys: 8, ..Bounds::default() }, clock.clone());
    let turn = keyed.reserve("k", 1, SECOND).unwrap();
    clock.advance(SECOND);
    for other in 0..100_u64 {
        let _ = keyed.check(other);
    }
    keyed.ban("k", SECOND);
    turn.settle(41);
    clock.advance(SECOND);
    assert!(keyed.peek("k", 1).is_deny(), "4 s of debt less the second that went by");
}
/// R15: FIFO after a stall: both due when somebody looks.
#[test]
fn r15_a_stall_inverts_the_order() {
    let (limiter, clock) = limiter(SlidingLog::new(1, SECOND).unwrap());
    assert!(limiter.check().is_allow());
    let mut one = Box::pin(limiter.wait());
    let mut two = Box::pin(limiter.wait());
    assert!(one.as_mut().poll(&mut noop()).is_pending());
    assert!(two.as_mut().poll(&mut noop()).is_pending());
    clock.advance(SECOND + SECOND / 5); // the process was stopped for 200 ms
    assert!(two.as_mut().poll(&mut noop()).is_pending(), "the second went first");
    assert!(one.as_mut().poll(&mut noop()).is_ready());
}
/// R16: cost of a refused check while somebody waits for a slot.
#[test]
fn r16_refused_checks_copy_everything() {
    for limit in [100_u32, 10_000, 100_000] {
        let limiter = limiter(Concurrency::new(limit, 3600 * SECOND).unwrap().with_queue(5)).0;
        let held: Vec<_> = (0..limit).map(|_| limiter.check()).collect();
        let time = |limiter: &Limiter<ManualClock>| {
            let t = std::time::Instant::now();
            for _ in 0..20 {
                let _ = limiter.check();
            }
            t.elapsed() / 20
        };
        let before = time(&limiter);
        let mut wait = Box::pin(limiter.enter());
        assert!(wait.as_mut().poll(&mut noop()).is_pending());
        println!("limit {limit}: a refused check {before:?} without a line, {:?} with one", time(&limiter));
        drop(held);
    }
    for n in [100, 10_000] {
        let (limiter, _clock) = limiter(SlidingLog::new(1, SECOND).unwrap());
        assert!(limiter.check().is_allow());
        let mut waits: Vec<_> = (0..n).map(|_| Box::pin(limiter.wait())).collect();
        for w in &mut waits {
            assert!(w.as_mut().poll(&mut noop()).is_pending());
        }
        let t = std::time::Instant::now();
        for _ in 0..20 {
            let mut w = Box::pin(limiter.wait().up_to(Duration::MAX / 2));
            assert!(w.as_mut().poll(&mut noop()).is_pending());
        }
        println!("line of {n}: come and give up {:?}", t.elapsed() / 20);
        let t = std::time::Instant::now();
        for _ in 0..20 {
            let mut w = Box::pin(limiter.wait().up_to(SECOND));
            assert!(w.as_mut().poll(&mut noop()).is_ready());
        }
        println!("line of {n}: refused newcomer {:?}", t.elapsed() / 20);
    }
}
/// R17: what is Send.
#[test]
fn r17_send() {
    fn send<T: Send>(_: &T) {}
    fn sync<T: Sync>(_: &T) {}
    let limiter = Arc::new(Limiter::new(Concurrency::new(1, SECOND).unwrap()));
    let w = limiter.wait();
    send(&w);
    drop(w);
    let p = limiter.enter_owned();
    send(&p);
    let p = p.blocking().unwrap();
    send(&p);
    sync(&p);
    drop(p);
    let r = limiter.reserve_owned(1, SECOND).unwrap();
    send(&r);
    sync(&r);
    let st = Arc::new(MemoryStore::new());
    let w = st.enter_owned(&[]);
    send(&w);
    assert!(w.blocking().is_ok());
}
/// R18: wait for a key in a table that is full, deadline.
#[test]
fn r18_full_table() {
    let clock = ManualClock::new();
    let keyed = KeyedLimiter::with_clock(
        SlidingLog::new(1, 100 * SECOND).unwrap(),
        Bounds { max_keys: 1, when_full: WhenFull::Deny },
        clock.clone(),
    );
    for key in 0..1000_u64 {
        let _ = keyed.check(key);
    }
    let mut tasks = Tasks::on(&clock);
    let w = tasks.start(keyed.wait("new").up_to(SECOND));
    println!("running {}", tasks.is_running(w));
    println!("next {:?}", clock.next_sleeper());
    assert!(!tasks.is_running(w), "a hundred seconds is more than one: refused at once");
}
#[test]
fn r18b_full_of_permits_is_polled_how_often() {
    let clock = ManualClock::new();
    let keyed = KeyedLimiter::with_clock(
        Concurrency::new(1, 100 * SECOND).unwrap().with_queue(5),
        Bounds { max_keys: 1, when_full: WhenFull::Evict },
        clock.clone(),
    );
    for key in 0..1000_u64 {
        let _ = keyed.check(key);
    }
    let mut tasks = Tasks::on(&clock);
    let w = tasks.start(keyed.enter("new"));
    println!("running {} next {:?}", tasks.is_running(w), clock.next_sleeper());
    tasks.pass(SECOND);
    println!("polls {}", tasks.polls);
}
/// R19: retry hint of a reserve behind a line counts up_to?
#[test]
fn r19_reserve_behind_a_line_hint() {
    let limit =
        LeakyBucket::new(Rate::per_second(1).unwrap(), 3).unwrap().with_delay(Delay::After(1)).unwrap();
    let (limiter, clock) = limiter(limit);
    let mut tasks = Tasks::on(&clock);
    for _ in 0..5 {
        tasks.start(limiter.wait());
    }
    let refused = limiter.reserve(1, 10 * SECOND).map(|_| ()).unwrap_err();
    println!("{refused} {:?}", refused.retry_after());
    let short = limiter.reserve(1, SECOND).map(|_| ()).unwrap_err();
    println!("{short} {:?}", short.retry_after());
    tasks.pass(short.retry_after().unwrap());
    let at_hint = limiter.reserve(1, SECOND).map(|t| t.due_in());
    assert!(at_hint.is_ok(), "told to come then: {:?}", at_hint.map_err(|e| e.to_string()));
}
/// R20: permit whose limit changes kind and back while the set waits.
#[test]
fn r20_kind_there_and_back() {
    let (store, clock) = store();
    let rate = store.add(bucket(1, 1)).unwrap();
    let slots = store.add(Concurrency::new(1, 30 * SECOND).unwrap()).unwrap();
    assert!(store.check_one(&Charge::new(&rate, ())).unwrap().is_allow());
    let mut wait = Box::pin(store.enter(&[Charge::new(&rate, ()), Charge::new(&slots, ())]));
    assert!(wait.as_mut().poll(&mut noop()).is_pending());
    store.change(&slots, bucket(1, 1)).unwrap();
    clock.advance(SECOND);
    let Poll::Ready(Ok(p)) = wait.as_mut().poll(&mut noop()) else { panic!() };
    store.change(&slots, Concurrency::new(1, 30 * SECOND).unwrap()).unwrap();
    drop(p);
    assert!(store.check_one(&Charge::new(&slots, ())).unwrap().is_allow());
}

/// R12 control: the same without a line.
#[test]
fn r12c_control() {
    let t = std::time::Instant::now();
    let clock = ManualClock::new();
    let store =
        Arc::new(MemoryStore::with_clock(Bounds { max_keys: 100, ..Bounds::default() }, clock.clone()));
    let fast = store.add(bucket(999, 10)).unwrap();
    let big = store.add_bounded(bucket(1, 1), 1_000_000).unwrap();
    assert!(store.check_one(&Charge::new(&big, 1)).unwrap().is_allow());
    assert!(store.check_one(&Charge::new(&fast, "k")).unwrap().is_allow());
    store.ban(&fast, "k", Duration::from_secs(86_400 * 365 * 100)).unwrap();
    let (s, l) = (Arc::clone(&store), big.clone());
    let changing = thread::spawn(move || {
        for _ in 0..40 {
            s.change(&l, bucket(1, 1)).unwrap();
        }
    });
    for _ in 0..30 {
        clock.advance(Duration::from_secs(86_400 * 30));
        assert!(store.check_one(&Charge::new(&fast, "k")).unwrap().is_deny());
        thread::sleep(Duration::from_micros(300));
    }
    changing.join().unwrap();
    println!("control took {:?}", t.elapsed());
}
/// R21: a waiting set is dropped: a bucket at which it had room at once gives too much back.
#[test]
fn r21_dropping_a_waiting_set_overfills_its_other_buckets() {
    let (store, clock) = store();
    let slow = store.add(TokenBucket::new(Rate::per_minute(6).unwrap(), 1).unwrap()).unwrap();
    let quick = store.add(bucket(10, 10)).unwrap();
    assert!(store.check_one(&Charge::new(&slow, ())).unwrap().is_allow());
    let mut tasks = Tasks::on(&clock);
    let set = tasks.start(store.wait(&[Charge::new(&slow, ()), Charge::new(&quick, ()).cost(10)]));
    assert!(tasks.is_running(set));
    tasks.pass(9 * SECOND);
    assert!(store.check_one(&Charge::new(&quick, ()).cost(10)).unwrap().is_allow(), "it has filled up again");
    tasks.abort(set);
    assert!(
        store.check_one(&Charge::new(&quick, ()).cost(10)).unwrap().is_deny(),
        "twenty at one instant, burst ten"
    );
}
/// R22: settle_each on merged charges.
#[test]
fn r22_settle_each_of_merged_charges() {
    let (store, _clock) = store();
    let limit = store.add(bucket(1, 10)).unwrap();
    let turn =
        store.reserve(&[Charge::new(&limit, "k").cost(3), Charge::new(&limit, "k").cost(2)], SECOND).unwrap();
    turn.settle_each(&[0]);
    assert_eq!(
        store.peek(&[Charge::new(&limit, "k").cost(0)]).unwrap().statuses()[0].remaining(),
        8,
        "nothing for the first, two for the second"
    );
}
/// R23: a refused wait on a window says `when released`.
#[test]
fn r23_late_without_hint_says_when_released() {
    let (limiter, clock) = limiter(SlidingLog::new(1, SECOND).unwrap());
    assert!(limiter.check().is_allow());
    let mut one = Box::pin(limiter.wait());
    assert!(one.as_mut().poll(&mut noop()).is_pending());
    let mut tasks = Tasks::on(&clock);
    // Two in front keep still, so this one sleeps to its deadline.
    let mut two = Box::pin(limiter.wait());
    assert!(two.as_mut().poll(&mut noop()).is_pending());
    tasks.start(limiter.wait().up_to(4 * SECOND));
    tasks.pass(10 * SECOND);
    let refused = tasks.done.pop().unwrap().2.unwrap_err();
    println!("{refused}: {:?}", refused.retry());
    assert_ne!(refused.retry(), Retry::WhenReleased, "a log releases nothing");
}
/// R24: FIFO among real threads when the machine is busy for more than GRACE.
#[test]
fn r24_cancel_after_eviction() {
    let clock = ManualClock::new();
    let keyed =
        KeyedLimiter::with_clock(bucket(1, 10), Bounds { max_keys: 8, ..Bounds::default() }, clock.clone());
    assert!(keyed.check_n("k", 10).is_allow());
    let turn = keyed.reserve("k", 5, 100 * SECOND).unwrap();
    for other in 0..200_u64 {
        let _ = keyed.check_n(other, 10);
        let _ = keyed.reserve(other, 10, 1000 * SECOND).map(Reservation::keep);
    }
    println!("after eviction {:?}", keyed.peek("k", 0).remaining());
    if keyed.check_n("k", 10).is_allow() {
        assert!(turn.cancel());
        assert_eq!(keyed.peek("k", 0).remaining(), 0, "an evicted key got a fresh bucket, and five more");
    } else {
        println!("not evicted");
    }
}
/// R25: second is woken for every permit that comes back.
#[test]
fn r25_how_often_is_the_second_woken() {
    let (limiter, clock) = limiter(Concurrency::new(100, 3600 * SECOND).unwrap().with_queue(5));
    let mut held: Vec<_> = (0..100).map(|_| limiter.enter().blocking().unwrap()).collect();
    let mut tasks = Tasks::on(&clock);
    tasks.start(limiter.enter().cost(100));
    tasks.start(limiter.enter());
    let before = tasks.polls;
    for _ in 0..50 {
        held.pop();
        tasks.run();
    }
    println!("50 permits came back: {} polls", tasks.polls - before);
}
/// R26: reserve behind a line that has just gone: no hint, though there is room.
#[test]
fn r26_enter_on_a_rate() {
    let (limiter, _clock) = limiter(bucket(1, 2));
    let p = limiter.enter().blocking().unwrap();
    assert_eq!(p.max_hold(), None);
    assert!(p.renew());
    drop(p);
    assert_eq!(limiter.peek(0).remaining(), 1);
}
