//! Interleavings of two threads, explored by loom: the word, the slot, the set, the numbers, the queue, the permit. A thread is interrupted as often as
//! `LOOM_MAX_PREEMPTIONS` says.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p tollgate --lib interleavings`

use crate::{
    Bounds, Charge, Concurrency, KeyedLimiter, Limit, Limiter, ManualClock, MemoryStore, Rate, SlidingLog,
    TokenBucket,
};
use loom::{
    future::block_on,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    thread,
};
use std::{
    future::Future,
    pin::pin,
    task::{Context, Waker},
    time::Duration,
};

/// As `loom::model`, with room for a table's many loads.
fn explore(game: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 50_000;
    builder.check(game);
}

fn bucket(burst: u32) -> Limit {
    TokenBucket::new(Rate::per_second(1).unwrap(), burst).unwrap().into()
}

/// A limiter whose word has been given back, so that the threads meet there and not at the mutex.
fn unparked(burst: u32) -> Limiter<ManualClock> {
    let limiter = Limiter::with_clock(bucket(burst), ManualClock::new());
    let _ = limiter.peek(0);
    limiter
}

fn few() -> Bounds {
    Bounds { max_keys: 1, ..Bounds::default() }
}

/// Runs both on two threads; how many of their tries were admitted.
fn both(
    first: impl FnOnce() -> bool + Send + 'static,
    second: impl FnOnce() -> bool + Send + 'static,
) -> u32 {
    let other = thread::spawn(first);
    let here = second();
    u32::from(other.join().unwrap()) + u32::from(here)
}

#[test]
fn the_word_admits_one_of_two() {
    explore(|| {
        let one = Arc::new(unparked(1));
        let two = Arc::clone(&one);
        assert_eq!(both(move || one.check().is_allow(), move || two.check().is_allow()), 1);
    });
}

#[test]
fn the_word_keeps_a_charge_through_a_change() {
    explore(|| {
        let one = Arc::new(unparked(2));
        let two = Arc::clone(&one);
        let charging = thread::spawn(move || two.check().is_allow());
        // A thousand times the rate: a word written under the old numbers would be read as all used up.
        one.change(TokenBucket::new(Rate::per_second(1_000).unwrap(), 4).unwrap());
        assert!(charging.join().unwrap());
        let left = one.peek(0).remaining();
        assert!(left == 2 || left == 3, "half of two is half of four, or one of four: {left} left");
    });
}

#[test]
fn the_slot_is_entered_once_by_two() {
    explore(|| {
        let one = Arc::new(KeyedLimiter::with_clock(bucket(1), few(), ManualClock::new()));
        let two = Arc::clone(&one);
        let _ = one.peek("k", 0);
        assert_eq!(both(move || one.check("k").is_allow(), move || two.check("k").is_allow()), 1);
    });
}

#[test]
fn the_slot_keeps_apart_two_keys_that_enter_at_once() {
    explore(|| {
        let one = Arc::new(KeyedLimiter::with_clock(bucket(1), few(), ManualClock::new()));
        let (two, after) = (Arc::clone(&one), Arc::clone(&one));
        let _ = one.peek("k", 0);
        assert_eq!(both(move || one.check("a").is_allow(), move || two.check("b").is_allow()), 2);
        assert!(after.check("a").is_deny() && after.check("b").is_deny());
    });
}

/// One key is charged while another takes over idle slots: the charge is never booked on the newcomer.
#[test]
fn the_slot_changes_hands_between_charges() {
    explore(|| {
        let clock = ManualClock::new();
        let one = Arc::new(KeyedLimiter::with_clock(bucket(2), few(), clock.clone()));
        for key in 0..8_u64 {
            assert!(one.check(key).is_allow());
        }
        clock.advance(std::time::Duration::from_secs(100));
        let (two, after) = (Arc::clone(&one), Arc::clone(&one));
        assert_eq!(both(move || one.check(0).is_allow(), move || two.check("new").is_allow()), 2);
        let newcomer = after.peek("new", 0).remaining();
        assert!(newcomer >= 1, "the newcomer paid for another: {newcomer} left");
    });
}

#[test]
fn the_set_is_all_or_nothing_in_either_order() {
    explore(|| {
        let store = Arc::new(MemoryStore::with_clock(few(), ManualClock::new()));
        let (user, tenant) = (store.add("user", bucket(1)).unwrap(), store.add("tenant", bucket(1)).unwrap());
        for limit in [&user, &tenant] {
            // In the table already, so that loom spends its time on the locks.
            let _ = store.check_one(&Charge::new(limit, "k"));
            store.reset(limit, "k").unwrap();
        }
        let (there, one, other) = (Arc::clone(&store), user.clone(), tenant.clone());
        let admitted = both(
            move || there.check(&[Charge::new(&one, "k"), Charge::new(&other, "k")]).unwrap().is_allow(),
            {
                let (store, user, tenant) = (Arc::clone(&store), user.clone(), tenant.clone());
                move || store.check(&[Charge::new(&tenant, "k"), Charge::new(&user, "k")]).unwrap().is_allow()
            },
        );
        assert_eq!(admitted, 1);
    });
}

#[test]
fn the_set_and_a_single_charge_see_each_other_whole() {
    explore(|| {
        let store = Arc::new(MemoryStore::with_clock(few(), ManualClock::new()));
        let (user, tenant) = (store.add("user", bucket(1)).unwrap(), store.add("tenant", bucket(1)).unwrap());
        for limit in [&user, &tenant] {
            let _ = store.check_one(&Charge::new(limit, "k"));
            store.reset(limit, "k").unwrap();
        }
        let (there, one, other) = (Arc::clone(&store), user.clone(), tenant.clone());
        let set = thread::spawn(move || {
            there.check(&[Charge::new(&one, "k"), Charge::new(&other, "k")]).unwrap().is_allow()
        });
        let single = store.check_one(&Charge::new(&tenant, "k")).unwrap().is_allow();
        let set = set.join().unwrap();
        assert!(set != single, "one of them had the tenant's only unit");
        let left = store.check_one(&Charge::new(&user, "k")).unwrap().is_allow();
        assert_eq!(left, !set, "a refused set kept the user's unit");
    });
}

/// Numbers change under a keyed charge: it is made under the old ones and turned over, or under the new ones.
#[test]
fn the_slot_keeps_a_charge_through_a_change() {
    explore(|| {
        let one = Arc::new(KeyedLimiter::with_clock(bucket(2), few(), ManualClock::new()));
        assert!(one.check("k").is_allow());
        one.refund("k", 1);
        let two = Arc::clone(&one);
        let charging = thread::spawn(move || two.check("k").is_allow());
        one.change(TokenBucket::new(Rate::per_second(1_000).unwrap(), 4).unwrap());
        assert!(charging.join().unwrap());
        let left = one.peek("k", 0).remaining();
        assert!(left == 2 || left == 3, "half of two is half of four, or one of four: {left} left");
    });
}

/// A reservation made while numbers change is of the old ones, and nothing of it comes back, or of the new ones and all of it does.
#[test]
fn the_word_keeps_a_reservation_apart_from_a_change() {
    explore(|| {
        let one = Arc::new(unparked(4));
        assert!(one.check_n(4).is_allow());
        let two = Arc::clone(&one);
        let changing =
            thread::spawn(move || two.change(TokenBucket::new(Rate::per_second(1_000).unwrap(), 4).unwrap()));
        let turn = one.reserve(2, Duration::from_secs(9)).unwrap();
        changing.join().unwrap();
        let is_old = turn.due_in() == Duration::from_secs(2);
        assert_eq!(turn.cancel(), if is_old { 0 } else { 2 });
    });
}

#[test]
fn the_slot_keeps_a_reservation_apart_from_a_change() {
    explore(|| {
        let one = Arc::new(KeyedLimiter::with_clock(bucket(4), few(), ManualClock::new()));
        assert!(one.check_n("k", 4).is_allow());
        let two = Arc::clone(&one);
        let changing =
            thread::spawn(move || two.change(TokenBucket::new(Rate::per_second(1_000).unwrap(), 4).unwrap()));
        let turn = one.reserve("k", 2, Duration::from_secs(9)).unwrap();
        changing.join().unwrap();
        let is_old = turn.due_in() == Duration::from_secs(2);
        assert_eq!(turn.cancel(), if is_old { 0 } else { 2 });
    });
}

/// A slot, and room for others to wait for it.
fn one_slot() -> Arc<Limiter<ManualClock>> {
    let slots = Concurrency::new(1, Duration::from_secs(30)).unwrap().with_queue(5);
    Arc::new(Limiter::with_clock(slots, ManualClock::new()))
}

/// Given back while somebody comes to wait for it: the wake is not lost.
#[test]
fn the_permit_given_back_reaches_whoever_waits() {
    explore(|| {
        let limiter = one_slot();
        let held = limiter.check().permit().unwrap();
        let there = Arc::clone(&limiter);
        let leaving = thread::spawn(move || assert_eq!(there.leave(held), 1));
        drop(block_on(limiter.enter()).unwrap());
        leaving.join().unwrap();
        assert_eq!(limiter.peek(0).remaining(), 1);
    });
}

#[test]
fn the_permit_is_had_by_one_at_a_time() {
    explore(|| {
        let limiter = one_slot();
        let inside = Arc::new(AtomicU64::new(0));
        let visit = |limiter: Arc<Limiter<ManualClock>>, inside: Arc<AtomicU64>| {
            move || {
                let permit = block_on(limiter.enter()).unwrap();
                assert_eq!(inside.fetch_add(1, SeqCst), 0, "two were in at once");
                inside.fetch_sub(1, SeqCst);
                drop(permit);
            }
        };
        let other = thread::spawn(visit(Arc::clone(&limiter), Arc::clone(&inside)));
        visit(Arc::clone(&limiter), inside)();
        other.join().unwrap();
        assert_eq!(limiter.peek(0).remaining(), 1);
    });
}

/// The first in a queue gives up while the slot is given back: the next one has it.
#[test]
fn the_line_goes_on_when_its_first_gives_up() {
    explore(|| {
        let limiter = one_slot();
        let held = limiter.check().permit().unwrap();
        let there = Arc::clone(&limiter);
        {
            let mut first = pin!(limiter.enter());
            assert!(first.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            let leaving = thread::spawn(move || assert_eq!(there.leave(held), 1));
            // The future is moved out of its place by being replaced: that is the giving up.
            first.set(limiter.enter());
            drop(block_on(limiter.enter()).unwrap());
            leaving.join().unwrap();
        }
        assert_eq!(limiter.peek(0).remaining(), 1);
    });
}

/// A reservation is cancelled while somebody makes another: both count, and neither twice. Where the other came first, the
/// cancelled one keeps what it stands on.
#[test]
fn the_reservation_that_is_dropped_gives_back_what_it_took() {
    explore(|| {
        let limiter = Arc::new(unparked(4));
        assert!(limiter.check_n(4).is_allow());
        let turn = limiter.reserve(2, Duration::from_secs(9)).unwrap();
        let there = Arc::clone(&limiter);
        let booking = thread::spawn(move || {
            let _ = there.reserve(1, Duration::from_secs(9)).unwrap().keep();
        });
        drop(turn);
        booking.join().unwrap();
        let retry_after = limiter.peek(1).retry_after().unwrap().as_secs();
        assert!(
            retry_after == 2 || retry_after == 3,
            "one or two are booked, and one is asked for: {retry_after}"
        );
    });
}

/// A bucket is filled while somebody comes to wait at it: whoever does it releases the waiter, or the waiter sees it.
#[test]
fn the_turn_that_comes_meanwhile_reaches_its_waiter() {
    explore(|| {
        let limiter = Arc::new(unparked(1));
        assert!(limiter.check().is_allow());
        let there = Arc::clone(&limiter);
        let filling = thread::spawn(move || there.reset());
        assert!(block_on(limiter.wait()).is_ok());
        filling.join().unwrap();
        assert_eq!(limiter.peek(0).remaining(), 0);
    });
}

/// The first in the queue gives up while two units come: one of them is the next one's, whether the first had its own or not.
#[test]
fn the_turn_passes_to_the_next_when_the_first_gives_up() {
    explore(|| {
        let limiter = Arc::new(unparked(2));
        assert!(limiter.check_n(2).is_allow());
        let there = Arc::clone(&limiter);
        let mut first = Box::pin(limiter.wait());
        assert!(first.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let filling = thread::spawn(move || there.reset());
        drop(first);
        assert!(block_on(limiter.wait()).is_ok());
        filling.join().unwrap();
        let left = limiter.peek(0).remaining();
        assert!(left <= 1, "of two, one was used at least: {left} left");
    });
}

/// A check looks at a queue that forms and ends: it does not overtake, and nobody waits for anybody for ever.
#[test]
fn the_line_and_a_check_do_not_hold_each_other_up() {
    explore(|| {
        let log = SlidingLog::new(1, Duration::from_secs(1)).unwrap();
        let limiter = Arc::new(Limiter::with_clock(log, ManualClock::new()));
        assert!(limiter.check().is_allow());
        let there = Arc::clone(&limiter);
        let waiting = thread::spawn(move || block_on(there.wait()).is_ok());
        let _ = limiter.check();
        limiter.reset();
        let overtook = limiter.check().is_allow();
        if overtook {
            limiter.reset();
        }
        assert!(waiting.join().unwrap());
    });
}
