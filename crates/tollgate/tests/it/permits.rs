//! Permits: they come back from wherever they go, once.

use crate::tasks::Tasks;
use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::Poll,
    time::Duration,
};
use tollgate::{
    Bounds, Charge, Clock, Concurrency, FixedWindow, KeyedLimiter, Limiter, ManualClock, MemoryStore, Permit,
    Rate, Reason, Refused, TokenBucket,
};

const SECOND: Duration = Duration::from_secs(1);

fn slots(limit: u32, queue: u32) -> (Arc<Limiter<ManualClock>>, ManualClock) {
    let clock = ManualClock::new();
    let numbers = Concurrency::new(limit, 30 * SECOND).unwrap().with_queue(queue);
    (Arc::new(Limiter::with_clock(numbers, clock.clone())), clock)
}

fn free(limiter: &Limiter<ManualClock>) -> u32 {
    limiter.peek(0).remaining()
}

#[test]
fn a_permit_comes_back_when_it_is_dropped() {
    let (limiter, _clock) = slots(3, 0);
    let one = limiter.enter().blocking().unwrap();
    let two = limiter.enter().cost(2).blocking().unwrap();
    assert_eq!(free(&limiter), 0);
    drop(one);
    assert_eq!(free(&limiter), 1);
    drop(two);
    assert_eq!(free(&limiter), 3);
}

#[test]
fn a_permit_comes_back_from_a_panic() {
    let (limiter, _clock) = slots(1, 0);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _permit = limiter.enter().blocking().unwrap();
        panic!("the work failed");
    }));
    assert!(panicked.is_err());
    assert_eq!(free(&limiter), 1);
}

#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn a_permit_comes_back_from_an_aborted_task() {
    let limiter = Arc::new(Limiter::with_clock(
        Concurrency::new(1, 30 * SECOND).unwrap().with_queue(5),
        tollgate::TokioClock::new(),
    ));
    let holder = tokio::spawn({
        let limiter = Arc::clone(&limiter);
        async move {
            let _permit = limiter.enter().await.unwrap();
            std::future::pending::<()>().await;
        }
    });
    tokio::task::yield_now().await;
    assert!(limiter.enter().up_to(SECOND).await.is_err(), "it is held");
    let waiting = tokio::spawn({
        let limiter = Arc::clone(&limiter);
        async move { limiter.enter_owned().await }
    });
    tokio::task::yield_now().await;
    holder.abort();
    let permit = waiting.await.unwrap().expect("the slot went to who waited");
    drop(permit);
    assert_eq!(limiter.peek(0).remaining(), 1);
}

#[test]
fn a_place_in_the_queue_that_is_given_up_holds_nothing() {
    let (limiter, clock) = slots(1, 10);
    let held = limiter.enter().blocking().unwrap();
    let mut tasks = Tasks::on(&clock);
    let (one, two, three) =
        (tasks.start(limiter.enter()), tasks.start(limiter.enter()), tasks.start(limiter.enter()));
    tasks.abort(one);
    tasks.abort(three);
    drop(held);
    tasks.run();
    assert_eq!(tasks.order(), [two]);
    tasks.done.clear();
    assert_eq!(free(&limiter), 1);
    assert_eq!(clock.next_sleeper(), None);
}

/// The slot was offered to somebody who gives up at that very moment: it goes to the next.
#[test]
fn a_slot_offered_to_somebody_who_gives_up_goes_to_the_next() {
    let (limiter, clock) = slots(1, 10);
    let held = limiter.enter().blocking().unwrap();
    let mut tasks = Tasks::on(&clock);
    let one = tasks.start(limiter.enter());
    let two = tasks.start(limiter.enter());
    drop(held); // wakes the first, which is not polled any more
    tasks.abort(one);
    assert_eq!(tasks.order(), [two]);
}

/// The slot is offered to somebody who is no longer polled: after a moment it goes to the next.
#[test]
fn a_slot_offered_to_a_forgotten_future_goes_to_the_next() {
    let (limiter, clock) = slots(1, 10);
    let held = limiter.enter().blocking().unwrap();
    let mut forgotten = std::pin::pin!(limiter.enter());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(forgotten.as_mut().poll(&mut context).is_pending());
    let mut tasks = Tasks::on(&clock);
    tasks.start(limiter.enter());
    tasks.start(limiter.enter());
    drop(held);
    tasks.run();
    assert!(tasks.done.is_empty());
    tasks.pass(SECOND / 5);
    assert_eq!(tasks.order(), [0]);
    tasks.done.clear();
    tasks.run();
    assert_eq!(tasks.order(), [1]);
    tasks.done.clear();
    assert!(forgotten.as_mut().poll(&mut context).is_ready());
}

/// Nobody comes by for longer than a slot is kept for one who does not fetch it, and the set of that one has a window besides.
#[test]
fn a_slot_that_was_not_fetched_goes_to_the_next_also_after_a_long_silence() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(Bounds { max_keys: 10, ..Bounds::default() }, clock.clone());
    let slots = store.add("slots", Concurrency::new(1, 30 * SECOND).unwrap().with_queue(10)).unwrap();
    let window = store.add("window", FixedWindow::new(1, 20 * SECOND).unwrap()).unwrap();
    let (slot, unit) = (Charge::new(&slots, "k"), Charge::new(&window, "k"));
    let held = store.enter(&[slot]).blocking().unwrap();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut first = std::pin::pin!(store.enter(&[slot, unit]));
    let mut second = std::pin::pin!(store.enter(&[slot]));
    let mut third = std::pin::pin!(store.wait(&[unit]));
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert!(second.as_mut().poll(&mut context).is_pending());
    drop(held); // the first has slot and unit, and fetches neither
    assert!(third.as_mut().poll(&mut context).is_pending());
    clock.advance(SECOND);
    let Poll::Ready(Ok(permit)) = second.as_mut().poll(&mut context) else {
        panic!("the slot is the second's")
    };
    drop(permit);
    assert!(third.as_mut().poll(&mut context).is_ready(), "the unit has come back");
    assert!(first.as_mut().poll(&mut context).is_pending(), "it waits anew");
}

#[test]
fn a_queue_is_served_in_order_and_bounded() {
    let (limiter, clock) = slots(1, 3);
    let mut held: Option<Permit<'_>> = Some(limiter.enter().blocking().unwrap());
    let mut tasks = Tasks::on(&clock);
    for _ in 0..3 {
        tasks.start(limiter.enter());
    }
    tasks.start(limiter.enter());
    let refused = tasks.done.pop().unwrap().2.unwrap_err();
    assert_eq!(refused.reason(), Reason::QueueFull { queue: 3 });
    assert_eq!(refused.to_string(), "every slot is held, and 3 wait already, which is all that may");
    for expected in 0..3 {
        drop(held.take());
        tasks.run();
        let (task, _, permit) = tasks.done.pop().expect("the next one");
        assert_eq!(task, expected);
        assert!(tasks.done.is_empty(), "one slot, one permit");
        held = Some(permit.unwrap());
    }
}

#[test]
fn whoever_waits_for_a_slot_gives_up_when_told_to() {
    let (limiter, clock) = slots(1, 10);
    let _held = limiter.enter().blocking().unwrap();
    let mut tasks = Tasks::on(&clock);
    tasks.start(limiter.enter().up_to(2 * SECOND));
    tasks.start(limiter.enter().up_to(SECOND));
    tasks.pass(10 * SECOND);
    assert_eq!(tasks.order(), [1, 0]);
    assert_eq!(tasks.millis(), [1_000, 2_000]);
    let refused: &Refused = tasks.done[0].2.as_ref().unwrap_err();
    assert_eq!(refused.reason(), Reason::TimedOut { waited: SECOND });
    assert_eq!(refused.to_string(), "the turn did not come within 1.000s");
}

#[test]
fn a_check_does_not_take_a_slot_that_somebody_waits_for() {
    let (limiter, clock) = slots(2, 10);
    let one = limiter.enter().blocking().unwrap();
    let mut tasks = Tasks::on(&clock);
    let both = tasks.start(limiter.enter().cost(2));
    assert!(limiter.check().is_deny(), "one slot is free, but the one who waits came first");
    assert_eq!(free(&limiter), 1);
    drop(one);
    assert!(limiter.check().is_deny(), "nor now that it is about to enter");
    tasks.run();
    assert_eq!(tasks.order(), [both]);
    tasks.done.clear();
    assert!(limiter.check().is_allow());
}

#[test]
fn a_permit_that_was_forgotten_comes_back_after_max_hold() {
    let (limiter, clock) = slots(1, 10);
    std::mem::forget(limiter.enter().blocking().unwrap());
    let mut tasks = Tasks::on(&clock);
    let waits = tasks.start(limiter.enter());
    tasks.pass(29 * SECOND);
    assert!(tasks.is_running(waits));
    tasks.pass(SECOND);
    assert_eq!(tasks.millis(), [30_000]);
}

#[test]
fn a_permit_that_is_renewed_is_held_on() {
    let (limiter, clock) = slots(1, 10);
    let held = limiter.enter().blocking().unwrap();
    assert_eq!(held.max_hold(), Some(30 * SECOND));
    let mut tasks = Tasks::on(&clock);
    let waits = tasks.start(limiter.enter());
    for _ in 0..5 {
        tasks.pass(20 * SECOND);
        assert!(held.renew());
    }
    assert!(tasks.is_running(waits));
    tasks.pass(30 * SECOND);
    assert!(!tasks.is_running(waits), "30 s after the last renewal");
    assert!(!held.renew(), "somebody else is in");
}

/// A permit that outlived `max_hold` gives nothing back: its slot is another's now.
#[test]
fn a_permit_comes_back_once() {
    let (limiter, clock) = slots(1, 0);
    let late = limiter.enter().blocking().unwrap();
    clock.advance(30 * SECOND);
    let other = limiter.enter().blocking().unwrap();
    drop(late);
    assert_eq!(free(&limiter), 0, "the other one's slot is its own");
    drop(other);
    assert_eq!(free(&limiter), 1);
}

/// Whoever only waits has no hand to hold a slot with, and does not.
#[test]
fn waiting_for_a_slot_does_not_hold_it() {
    let (limiter, clock) = slots(1, 10);
    limiter.wait().blocking().unwrap();
    assert_eq!(free(&limiter), 1);
    let held = limiter.enter().blocking().unwrap();
    let mut tasks = Tasks::on(&clock);
    tasks.start(limiter.wait());
    tasks.start(limiter.wait_owned());
    drop(held);
    tasks.run();
    assert_eq!(tasks.order(), [0, 1]);
    assert_eq!(free(&limiter), 1);
}

#[test]
fn a_permit_may_outlive_the_borrow() {
    let (limiter, _clock) = slots(1, 0);
    let permit: Permit<'static> = limiter.enter_owned().blocking().unwrap();
    let held = std::thread::spawn(move || drop(permit));
    held.join().unwrap();
    assert_eq!(free(&limiter), 1);
}

#[test]
fn every_key_has_its_own_slots_and_queue() {
    let clock = ManualClock::new();
    let keyed = KeyedLimiter::with_clock(
        Concurrency::new(1, SECOND).unwrap().with_queue(1),
        Bounds { max_keys: 10, ..Bounds::default() },
        clock.clone(),
    );
    let mut tasks = Tasks::on(&clock);
    let alice = keyed.enter("alice").blocking().unwrap();
    let second = tasks.start(keyed.enter("alice"));
    tasks.start(keyed.enter("bob"));
    assert_eq!(tasks.order(), [1]);
    drop(alice);
    tasks.run();
    assert_eq!(tasks.order(), [1, second]);
}

#[test]
fn a_set_enters_its_slots_when_it_is_released() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(Bounds { max_keys: 10, ..Bounds::default() }, clock.clone());
    let rate = store.add("rate", TokenBucket::new(Rate::per_second(1).unwrap(), 1).unwrap()).unwrap();
    let slots = store.add("slots", Concurrency::new(2, 30 * SECOND).unwrap().with_queue(10)).unwrap();
    let set = [Charge::new(&rate, ()), Charge::new(&slots, ())];
    let free = || store.peek(&[Charge::new(&slots, ()).cost(0)]).unwrap().statuses()[0].remaining();
    let mut tasks = Tasks::on(&clock);
    tasks.start(store.enter(&set));
    let two = tasks.start(store.enter(&set));
    assert!(tasks.is_running(two), "it waits for the rate");
    assert_eq!(free(), 1, "and holds no slot meanwhile");
    let three = tasks.start(store.enter(&set));
    tasks.abort(two);
    assert_eq!(tasks.running(), [three]);
    tasks.finish();
    assert_eq!(tasks.millis(), [0, 1_000], "it moved up");
    assert_eq!(free(), 0);
    tasks.done.clear();
    assert_eq!(free(), 2);
}

/// Whoever serves somebody elsewhere hands the slots over, and hears of them by name.
#[test]
fn a_permit_that_is_kept_is_in_other_hands() {
    let clock = ManualClock::new();
    let store =
        Arc::new(MemoryStore::with_clock(Bounds { max_keys: 10, ..Bounds::default() }, clock.clone()));
    let slots = store.add("slots", Concurrency::new(2, 30 * SECOND).unwrap()).unwrap();
    let rate = store.add("rate", TokenBucket::new(Rate::per_second(1).unwrap(), 9).unwrap()).unwrap();
    let free = || store.peek(&[Charge::new(&slots, ()).cost(0)]).unwrap().statuses()[0].remaining();
    let set = [Charge::new(&rate, ()), Charge::new(&slots, ())];
    let enter = || store.enter(&set).blocking().unwrap().keep();

    let (one, two) = (enter().expect("a name"), enter().expect("another"));
    assert_ne!(one, two);
    assert_eq!(free(), 0, "nothing was given back");
    clock.advance(20 * SECOND);
    assert!(store.renew(&set, one).unwrap());
    clock.advance(20 * SECOND);
    assert_eq!(free(), 1, "what nobody renews comes back by time");
    assert!(!store.renew(&set, two).unwrap());
    assert_eq!((store.leave(&set, one).unwrap(), free()), (1, 2));
    assert_eq!(store.leave(&set, one).unwrap(), 0, "once");

    assert_eq!(store.enter(&set[..1]).blocking().unwrap().keep(), None, "there was nothing to hold");
}

/// A name that somebody kept from before a restart must not give back what is another's.
#[test]
fn permits_of_different_stores_have_different_names() {
    let permit = || {
        let store = MemoryStore::new();
        let slots = store.add("slots", Concurrency::new(1, SECOND).unwrap()).unwrap();
        store.check(&[Charge::new(&slots, ())]).unwrap().permit().unwrap()
    };
    assert_ne!(permit(), permit());
}

#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn work_that_lasts_longer_than_max_hold_keeps_its_permit() {
    let limiter = Limiter::with_clock(Concurrency::new(1, SECOND).unwrap(), tollgate::TokioClock::new());
    let permit = limiter.enter().await.unwrap();
    permit.hold_while(tokio::time::sleep(10 * SECOND)).await;
    assert!(limiter.check().is_deny(), "it is held still");
    assert!(permit.renew());
    drop(permit);
    assert!(limiter.check().is_allow());
}

/// Threads come and go, some give up: at no time are more in than may be, and in the end all slots are free.
#[test]
fn no_slot_is_lost_or_shared_among_threads() {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    let limiter = Limiter::new(Concurrency::new(3, 30 * SECOND).unwrap().with_queue(100));
    let (inside, most, entered) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for thread in 0..8_u32 {
            let (limiter, inside, most, entered) = (&limiter, &inside, &most, &entered);
            scope.spawn(move || {
                for round in 0..500_u32 {
                    let patience = Duration::from_micros(u64::from((thread + round) % 5 * 20));
                    let wait = limiter.enter();
                    let wait = if round % 3 == 0 { wait.up_to(patience) } else { wait };
                    let Ok(permit) = wait.blocking() else { continue };
                    most.fetch_max(inside.fetch_add(1, SeqCst) + 1, SeqCst);
                    entered.fetch_add(1, SeqCst);
                    std::thread::yield_now();
                    inside.fetch_sub(1, SeqCst);
                    drop(permit);
                }
            });
        }
    });
    assert!(most.load(SeqCst) <= 3, "{} were in at once", most.load(SeqCst));
    assert!(entered.load(SeqCst) >= 8 * 333, "whoever waits for as long as it takes gets in");
    assert_eq!(limiter.peek(0).remaining(), 3);
    assert!(limiter.clock().now() > tollgate::Time::ZERO);
}
