//! N threads against a limit of L admit exactly L, whatever the limit's kind and the way in.

use std::{
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    thread,
    time::Duration,
};
use tollgate::{
    Bounds, Charge, Concurrency, FixedWindow, Key, KeyedLimiter, LeakyBucket, Limit, Limiter, ManualClock,
    MemoryStore, Rate, Refill, SlidingCounter, SlidingLog, SlidingWindow, TokenBucket,
};

const THREADS: u32 = 4;
const TRIES: u32 = 4_000;
const LIMIT: u32 = 1_000;

fn limits() -> Vec<Limit> {
    let rate = Rate::per_second(1).unwrap();
    let odd = Rate::per_second(999_999_937).unwrap();
    let hour = Duration::from_secs(3600);
    vec![
        TokenBucket::new(rate, LIMIT).unwrap().into(),
        TokenBucket::new(odd, LIMIT).unwrap().into(),
        TokenBucket::new(rate, LIMIT).unwrap().with_refill(Refill::Interval).into(),
        LeakyBucket::new(rate, LIMIT).unwrap().into(),
        FixedWindow::new(LIMIT, hour).unwrap().into(),
        SlidingLog::new(LIMIT, hour).unwrap().into(),
        SlidingWindow::new(LIMIT, hour, hour / 60).unwrap().into(),
        SlidingCounter::new(LIMIT, hour).unwrap().into(),
        Concurrency::new(LIMIT, hour).unwrap().into(),
    ]
}

/// How many of all threads' tries were admitted.
fn admitted(attempt: impl Fn(u32) -> bool + Sync) -> u32 {
    let admitted = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for attempt_number in 0..TRIES {
                    if attempt(attempt_number) {
                        admitted.fetch_add(1, Relaxed);
                    }
                }
            });
        }
    });
    admitted.into_inner()
}

#[test]
fn one_bucket_admits_exactly_its_limit() {
    for limit in limits() {
        let limiter = Limiter::with_clock(limit.clone(), ManualClock::new());
        assert_eq!(admitted(|_| limiter.check().is_allow()), LIMIT, "{limit:?}");
    }
}

#[test]
fn a_keyed_bucket_admits_exactly_its_limit() {
    for limit in limits() {
        // A new limiter, so that the threads also race to enter the key.
        let bounds = Bounds { max_keys: 100, ..Bounds::default() };
        let limiter = KeyedLimiter::with_clock(limit.clone(), bounds, ManualClock::new());
        assert_eq!(admitted(|_| limiter.check("hot").is_allow()), LIMIT, "{limit:?}");
    }
}

#[test]
fn racing_threads_enter_a_key_once() {
    for round in 0..200 {
        let limit = TokenBucket::new(Rate::per_second(1).unwrap(), 1).unwrap();
        let bounds = Bounds { max_keys: 64, ..Bounds::default() };
        let limiter = KeyedLimiter::with_clock(limit, bounds, ManualClock::new());
        let admitted = admitted_in(20, |key| limiter.check(u64::from(key)).is_allow());
        assert_eq!(admitted, 20, "round {round}: a key was in the table twice");
    }
}

fn admitted_in(tries: u32, attempt: impl Fn(u32) -> bool + Sync) -> u32 {
    let admitted = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| admitted.fetch_add((0..tries).map(|n| u32::from(attempt(n))).sum(), Relaxed));
        }
    });
    admitted.into_inner()
}

#[test]
fn sets_and_single_charges_admit_exactly_the_limit_together() {
    for limit in limits() {
        let store =
            MemoryStore::with_clock(Bounds { max_keys: 100, ..Bounds::default() }, ManualClock::new());
        let shared = store.add("shared", limit.clone()).unwrap();
        let roomy =
            store.add("roomy", TokenBucket::new(Rate::per_second(1).unwrap(), u32::MAX).unwrap()).unwrap();
        let count = admitted(|n| {
            let (all, own) = (Charge::new(&shared, ()), Charge::new(&roomy, Key::Number(u64::from(n % 7))));
            match n % 3 {
                0 => store.check_one(&all).unwrap().is_allow(),
                1 => store.check(&[all, own]).unwrap().is_allow(),
                _ => store.check(&[own, all]).unwrap().is_allow(),
            }
        });
        assert_eq!(count, LIMIT, "{limit:?}");
        let left: u32 = (0..7)
            .map(|key| store.peek(&[Charge::new(&roomy, key)]).unwrap().statuses()[0].remaining())
            .fold(0, |used, left| used + (u32::MAX - left));
        assert!(left <= LIMIT, "refused sets cost their other limit {left} units for {LIMIT} admitted");
    }
}

#[test]
fn a_refused_set_costs_nothing_under_contention() {
    let store = MemoryStore::with_clock(Bounds { max_keys: 100, ..Bounds::default() }, ManualClock::new());
    let rate = Rate::per_second(1).unwrap();
    let first = store.add("first", TokenBucket::new(rate, LIMIT).unwrap()).unwrap();
    let second = store.add("second", SlidingLog::new(LIMIT / 2, Duration::from_secs(3600)).unwrap()).unwrap();
    let count = admitted(|n| {
        let set = [Charge::new(&first, "k"), Charge::new(&second, "k")];
        let set = if n % 2 == 0 { set } else { [set[1], set[0]] };
        store.check(&set).unwrap().is_allow()
    });
    assert_eq!(count, LIMIT / 2);
    let left = store.peek(&[Charge::new(&first, "k").cost(0)]).unwrap().statuses()[0].remaining();
    assert_eq!(left, LIMIT - LIMIT / 2, "the set's other limit lost units to refused sets");
}

#[test]
fn numbers_changed_under_load_lose_and_gain_nothing() {
    let rate = Rate::per_second(1).unwrap();
    let odd = Rate::per_second(999_999_937).unwrap();
    let forms: [Limit; 2] =
        [TokenBucket::new(rate, LIMIT).unwrap().into(), TokenBucket::new(odd, LIMIT).unwrap().into()];
    let bounds = Bounds { max_keys: 100, ..Bounds::default() };
    let limiter = KeyedLimiter::with_clock(forms[0].clone(), bounds, ManualClock::new());
    let one = Limiter::with_clock(forms[0].clone(), ManualClock::new());
    let count = admitted(|n| {
        if n % 100 == 50 {
            limiter.change(forms[(n as usize / 100) % 2].clone());
        }
        limiter.check("k").is_allow()
    });
    assert_eq!(count, LIMIT, "a keyed limiter");
    let count = admitted(|n| {
        if n % 100 == 50 {
            one.change(forms[(n as usize / 100) % 2].clone());
        }
        one.check().is_allow()
    });
    assert_eq!(count, LIMIT, "one bucket");
}

#[test]
fn grants_are_spent_once_under_contention() {
    let limiter = KeyedLimiter::with_clock(
        TokenBucket::new(Rate::per_second(1).unwrap(), LIMIT).unwrap(),
        Bounds { max_keys: 100, ..Bounds::default() },
        ManualClock::new(),
    );
    limiter.grant("k", 500);
    assert_eq!(admitted(|_| limiter.check("k").is_allow()), LIMIT + 500);
}

#[test]
fn permits_given_back_by_threads_leave_the_limit_empty() {
    let limiter = KeyedLimiter::with_clock(
        Concurrency::new(3, Duration::from_secs(60)).unwrap(),
        Bounds { max_keys: 100, ..Bounds::default() },
        ManualClock::new(),
    );
    let in_flight = AtomicU32::new(0);
    let entered = admitted(|n| {
        let key = u64::from(n % 2);
        let Some(permit) = limiter.check(key).permit() else { return false };
        assert!(in_flight.fetch_add(1, Relaxed) < 6, "three a key");
        in_flight.fetch_sub(1, Relaxed);
        limiter.leave(key, permit) == 1
    });
    assert!(entered > 0);
    assert_eq!(limiter.peek(0, 0).remaining(), 3);
    assert_eq!(limiter.peek(1, 0).remaining(), 3);
}

#[test]
fn evictions_under_a_flood_lose_no_charge_of_a_key_that_stays() {
    // The hot key is far from idle, the flood's keys are as good as idle: they evict each other, never the hot one.
    let hot = Limit::from(TokenBucket::new(Rate::per_second(1).unwrap(), LIMIT).unwrap());
    let store = MemoryStore::with_clock(Bounds { max_keys: 64, ..Bounds::default() }, ManualClock::new());
    let hot = store.add("hot", hot).unwrap();
    let flood =
        store.add("flood", TokenBucket::new(Rate::per_second(1_000_000).unwrap(), LIMIT).unwrap()).unwrap();
    let status = store.check_one(&Charge::new(&hot, "hot").cost(10)).unwrap();
    assert!(status.is_allow());
    let next = AtomicU32::new(0);
    let count = admitted(|n| {
        if n % 2 == 0 {
            let key = u64::from(next.fetch_add(1, Relaxed));
            assert!(store.check_one(&Charge::new(&flood, key)).unwrap().is_allow());
            return false;
        }
        store.check_one(&Charge::new(&hot, "hot")).unwrap().is_allow()
    });
    assert_eq!(count, LIMIT - 10);
    assert!(store.evictions() > 0, "the flood was no flood");
}
