//! Waiting in queues: the bound and the order over times of release, and what is left behind by those who give up.

use crate::{crowd::join_all, server::server};
use std::{
    cell::RefCell,
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};
use testkit::{Random, eventually_async};
use tollgate::{
    Align, Charge, Concurrency, FixedWindow, Limit, ManualClock, Passed, Rate, Reason, SlidingLog, Status,
    TokenBucket, WaitError,
};
use tollgate_redis::{RedisLimit, RedisStore};

const SECOND: Duration = Duration::from_secs(1);
/// Timers and a busy machine may be this late.
const LATE: Duration = Duration::from_millis(60);

fn bucket(a_second: u32, burst: u32) -> TokenBucket {
    TokenBucket::new(Rate::per_second(a_second).expect("a rate"), burst).expect("a limit")
}

async fn peek(store: &RedisStore, limit: &RedisLimit, cost: u32) -> Status {
    let told = store.peek(&[Charge::new(limit, "k").cost(cost)]).await.expect("an answer");
    told.statuses()[0]
}

/// Polls a waiter until it stands in its queue, behind those that stood there before.
async fn stands(store: &RedisStore, mut waiting: Pin<&mut impl Future>) {
    let before = store.health().waiting;
    let is_there = || async { (store.health().waiting > before).then_some(()) };
    tokio::select! {
        biased;
        _ = waiting.as_mut() => panic!("its turn is yet to come"),
        () = eventually_async("a place in the queue", is_there) => {}
    }
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// A waiter of the random runs.
#[derive(Clone, Copy)]
struct Plan {
    arrives: Duration,
    cost: u32,
    up_to: Duration,
    gives_up: Option<Duration>,
}

/// What became of it.
enum Fate {
    Released { arrived: usize, at: Duration, cost: u32 },
    Refused { up_to: Duration, after: Duration },
    TimedOut,
    GaveUp,
}

fn plans(seed: u64, dearest: u32) -> Vec<Plan> {
    let mut random = Random::new(seed);
    let mut arrives = Duration::ZERO;
    let plan = |_| {
        arrives += Duration::from_micros(random.below(10_000) as u64);
        Plan {
            arrives,
            cost: 1 + random.below(dearest as usize) as u32,
            up_to: [5 * SECOND, Duration::from_millis(random.below(500) as u64)][random.below(2)],
            gives_up: (random.below(2) == 0).then(|| Duration::from_micros(random.below(300_000) as u64)),
        }
    };
    (0..200).map(plan).collect()
}

const A_SECOND: u32 = 200;
const BURST: u32 = 3;

/// Random arrivals, costs, deadlines and drops at one bucket of one node.
async fn random_run(seed: u64, dearest: u32) {
    let store = server().store();
    let limit = store.add("limit", bucket(A_SECOND, BURST)).expect("a limit");
    assert!(peek(&store, &limit, 0).await.is_allow());
    let began = Instant::now();
    let arrivals = RefCell::new(0);
    let waiter = async |plan: Plan| {
        tokio::time::sleep(plan.arrives.saturating_sub(began.elapsed())).await;
        let arrived = arrivals.replace_with(|arrivals| *arrivals + 1);
        let charge = [Charge::new(&limit, "k").cost(plan.cost)];
        let asked = Instant::now();
        let waiting = store.wait(&charge).up_to(plan.up_to);
        let waited = match plan.gives_up {
            Some(gives_up) => match tokio::time::timeout(gives_up, waiting).await {
                Ok(waited) => waited,
                Err(_) => return Fate::GaveUp,
            },
            None => waiting.await,
        };
        match waited {
            Ok(_) => Fate::Released { arrived, at: began.elapsed(), cost: plan.cost },
            Err(WaitError::Refused(refused)) if matches!(refused.reason(), Reason::TimedOut { .. }) => {
                Fate::TimedOut
            }
            Err(WaitError::Refused(refused)) => {
                assert!(refused.retry_after().is_some(), "seed {seed}: {refused:?}");
                Fate::Refused { up_to: plan.up_to, after: asked.elapsed() }
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    };
    let fates = join_all(plans(seed, dearest).into_iter().map(waiter).collect()).await;
    let mut released: Vec<(usize, Duration, u32)> = Vec::new();
    for fate in &fates {
        match fate {
            Fate::Released { arrived, at, cost } => released.push((*arrived, *at, *cost)),
            Fate::Refused { up_to, after } => assert!(*after <= *up_to + LATE, "seed {seed}: told late"),
            Fate::TimedOut | Fate::GaveUp => {}
        }
    }
    released.sort_by_key(|(_, at, _)| *at);
    assert!(released.len() > 50, "seed {seed}: {} were released", released.len());
    // First come, first served: nobody is released much later than somebody who came after.
    let mut latest = (0, Duration::ZERO);
    for (arrived, at, _) in &released {
        assert!(*arrived > latest.0 || *at <= latest.1 + LATE, "seed {seed}: overtaken");
        if *arrived > latest.0 {
            latest = (*arrived, *at);
        }
    }
    // The bucket's level over times of release, which a late timer may raise.
    let (mut level, mut last) = (0.0_f64, Duration::ZERO);
    let a_second = f64::from(A_SECOND);
    for (_, at, cost) in &released {
        level = (level - (*at - last).as_secs_f64() * a_second).max(0.0) + f64::from(*cost);
        last = *at;
        let most = f64::from(BURST) + LATE.as_secs_f64() * a_second;
        assert!(level <= most, "seed {seed}: {level:.1} units used at {at:?}");
    }
    // Nothing is left behind by those who gave up: what is used is explained by those who were released.
    let level = (level - (began.elapsed() - last).as_secs_f64() * a_second).max(0.0);
    let explained = Duration::from_secs_f64((level + f64::from(dearest)) / a_second) + LATE;
    let reset = peek(&store, &limit, 0).await.reset_after().expect("a bucket fills");
    assert!(reset <= explained, "seed {seed}: full in {reset:?}, which only {explained:?} explain");
}

#[test]
fn random_waiters_keep_the_bound_and_their_order() {
    server().block_on(async {
        join_all((1..=6).map(|seed| random_run(seed * 0x9E37_79B9, 1 + (seed % 3) as u32)).collect()).await;
    });
}

/// One unit in ten seconds, used; a second one is waited for.
struct Slow {
    clock: ManualClock,
    store: RedisStore,
    limit: RedisLimit,
}

const TEN: Duration = Duration::from_secs(10);

impl Slow {
    async fn new() -> Self {
        let clock = ManualClock::new();
        let store = server().store_at(clock.clone());
        let limit =
            store.add("slow", TokenBucket::new(Rate::new(1, TEN).expect("a rate"), 1).expect("a limit"));
        let limit = limit.expect("a limit");
        let told = store.check(&[Charge::new(&limit, "k")]).await.expect("an answer");
        assert!(told.is_allow());
        Self { clock, store, limit }
    }

    fn charge(&self) -> [Charge<'_, RedisLimit>; 1] {
        [Charge::new(&self.limit, "k")]
    }

    /// Until the bucket is full again.
    async fn fills_in(&self) -> Duration {
        peek(&self.store, &self.limit, 0).await.reset_after().expect("a bucket fills")
    }

    async fn eventually_fills_in(&self, what: &str, time: Duration) {
        eventually_async(what, || async { (self.fills_in().await == time).then_some(()) }).await;
    }

    /// Polls a waiter until it stands in its queue, and a while longer, in which nothing comes of it.
    async fn stands(&self, mut waiting: Pin<&mut impl Future<Output = Result<Passed, WaitError>>>) {
        stands(&self.store, waiting.as_mut()).await;
        let is_over = tokio::time::timeout(Duration::from_millis(60), waiting.as_mut()).await;
        assert!(is_over.is_err(), "its turn is seconds away");
    }
}

#[test]
fn a_waiter_dropped_before_its_first_poll_or_in_the_queue_touches_nothing() {
    server().block_on(async {
        let slow = Slow::new().await;
        let charge = slow.charge();
        drop(slow.store.wait(&charge));
        assert_eq!(slow.fills_in().await, TEN);
        {
            let mut waiting = pin!(slow.store.wait(&charge));
            slow.stands(waiting.as_mut()).await;
            assert_eq!(slow.fills_in().await, TEN, "nothing is booked so far ahead");
        }
        assert_eq!(slow.fills_in().await, TEN);
    });
}

#[test]
fn a_waiter_dropped_while_its_question_is_on_its_way_leaves_nothing_charged() {
    server().block_on(async {
        let slow = Slow::new().await;
        let charge = slow.charge();
        // Within the horizon, so that it is booked at once.
        slow.clock.advance(TEN - Duration::from_millis(10));
        for round in 0..300_u32 {
            let mut waiting = Box::pin(slow.store.wait(&charge));
            assert!(poll_once(waiting.as_mut()).is_pending());
            for _ in 0..round % 5 {
                tokio::task::yield_now().await;
            }
            let _ = tokio::time::timeout(Duration::from_micros(u64::from(round) * 5), waiting.as_mut()).await;
            drop(waiting);
        }
        slow.eventually_fills_in("all is given back", Duration::from_millis(10)).await;
    });
}

#[test]
fn a_booked_turn_passes_to_the_next_and_the_last_one_is_given_back() {
    server().block_on(async {
        let slow = Slow::new().await;
        let charge = slow.charge();
        let mut first = Box::pin(slow.store.wait(&charge));
        slow.stands(first.as_mut()).await;
        let mut second = Box::pin(slow.store.wait(&charge));
        slow.stands(second.as_mut()).await;
        slow.clock.advance(TEN - Duration::from_millis(1));
        slow.eventually_fills_in("a turn is booked just before it is due", TEN + Duration::from_millis(1))
            .await;

        drop(first);
        assert_eq!(slow.fills_in().await, TEN + Duration::from_millis(1), "it is the second one's");
        drop(second);
        slow.eventually_fills_in("nobody is left for it", Duration::from_millis(1)).await;

        // As it was: the next one is booked at the same time, and goes then.
        let mut third = Box::pin(slow.store.wait(&charge));
        slow.stands(third.as_mut()).await;
        slow.clock.advance(Duration::from_millis(1));
        tokio::time::timeout(TEN, third).await.expect("in time").expect("its turn");
        assert_eq!(slow.fills_in().await, TEN);
    });
}

#[test]
fn a_turn_that_came_and_was_not_taken_is_the_next_ones_or_spent() {
    server().block_on(async {
        let slow = Slow::new().await;
        let charge = slow.charge();
        let mut first = Box::pin(slow.store.wait(&charge));
        slow.stands(first.as_mut()).await;
        let mut second = Box::pin(slow.store.wait(&charge));
        slow.stands(second.as_mut()).await;
        slow.clock.advance(TEN);
        slow.eventually_fills_in("the turn has come", TEN).await;
        drop(first);
        tokio::time::timeout(TEN, second).await.expect("in time").expect("the first one's turn");
        assert_eq!(slow.fills_in().await, TEN);

        let mut third = Box::pin(slow.store.wait(&charge));
        slow.stands(third.as_mut()).await;
        slow.clock.advance(TEN);
        slow.eventually_fills_in("the turn has come", TEN).await;
        // Handed over by now, or about to be.
        tokio::time::sleep(LATE).await;
        drop(third);
        // Nothing comes back meanwhile.
        tokio::time::sleep(LATE).await;
        assert_eq!(slow.fills_in().await, TEN, "once it is due it is spent");
    });
}

#[test]
fn deadlines_are_judged_on_arrival_by_the_queue_in_front() {
    server().block_on(async {
        let slow = Slow::new().await;
        let charge = slow.charge();
        let mut first = pin!(slow.store.wait(&charge));
        slow.stands(first.as_mut()).await;
        let mut second = Box::pin(slow.store.wait(&charge).up_to(Duration::from_secs(20)));
        slow.stands(second.as_mut()).await;
        let refused = slow.store.wait(&charge).up_to(Duration::from_secs(25)).await;
        let Err(WaitError::Refused(refused)) = refused else { panic!("two are in front: {refused:?}") };
        assert_eq!(refused.retry_after(), Some(Duration::from_secs(5)));
        // The same wait would be long enough once one of them has given up.
        drop(second);
        let mut third = pin!(slow.store.wait(&charge).up_to(Duration::from_secs(20)));
        slow.stands(third.as_mut()).await;
    });
}

#[test]
fn changed_numbers_hold_for_everybody_who_waits() {
    server().block_on(async {
        let store = server().store();
        let hourly = TokenBucket::new(Rate::per_hour(1).expect("a rate"), 1).expect("a limit");
        let limit = store.add("limit", hourly).expect("a limit");
        let charge = [Charge::new(&limit, "k")];
        assert!(store.check(&charge).await.expect("an answer").is_allow());
        let all = join_all((0..20).map(|_| store.wait(&charge)).collect::<Vec<_>>());
        let mut all = pin!(all);
        assert!(tokio::time::timeout(LATE, all.as_mut()).await.is_err(), "an hour has not passed");
        store.change(&limit, bucket(1_000, 1)).expect("numbers");
        let released = tokio::time::timeout(SECOND, all).await.expect("all go at the new rate");
        assert!(released.iter().all(Result::is_ok));

        // Lowered, whoever can no longer be in time is told. The last of them took the unit of this millisecond.
        store.wait(&charge).await.expect("a turn");
        store.change(&limit, bucket(1, 1)).expect("numbers");
        store.reset(&limit, "k").await.expect("an answer");
        assert!(store.check(&charge).await.expect("an answer").is_allow());
        let mut impatient = pin!(store.wait(&charge).up_to(20 * SECOND));
        assert!(tokio::time::timeout(LATE, impatient.as_mut()).await.is_err());
        store
            .change(&limit, TokenBucket::new(Rate::per_hour(1).expect("a rate"), 1).expect("a limit"))
            .expect("numbers");
        let told = tokio::time::timeout(3 * SECOND, impatient).await.expect("it is told");
        assert!(matches!(told, Err(WaitError::Refused(_))), "{told:?}");
    });
}

#[test]
fn a_set_of_a_bucket_and_a_log_keeps_both_bounds() {
    server().block_on(async {
        let store = server().store();
        let log = store.add("log", SlidingLog::new(5, SECOND).expect("a limit")).expect("a limit");
        let rate = store.add("rate", bucket(20, 2)).expect("a limit");
        let set = [Charge::new(&rate, "k"), Charge::new(&log, "k")];
        let began = Instant::now();
        let waiter = async || {
            store.wait(&set).up_to(20 * SECOND).await.expect("its turn");
            began.elapsed()
        };
        // Some come, some give up meanwhile.
        let impatient =
            async || drop(tokio::time::timeout(SECOND / 2, store.wait(&set).up_to(20 * SECOND)).await);
        let (mut released, _) = tokio::join!(
            join_all((0..14).map(|_| waiter()).collect()),
            join_all((0..6).map(|_| impatient()).collect::<Vec<_>>()),
        );
        released.sort_unstable();
        for six in released.windows(6) {
            assert!(six[5] - six[0] >= SECOND - LATE, "six uses within {:?}: {released:?}", six[5] - six[0]);
        }
        for eight in released.windows(8) {
            // Six of them had to come first.
            assert!(eight[7] - eight[0] >= Duration::from_millis(300) - LATE, "{released:?}");
        }
        assert!(released[13] < 4 * SECOND, "{released:?}");
    });
}

/// Windows, logs and slots are waited for in the same queues.
#[test]
fn whoever_is_not_polled_holds_up_nobody() {
    server().block_on(async {
        let store = server().store();
        let limits: [(&str, Limit); 3] = [
            ("slots", Concurrency::new(1, 600 * SECOND).expect("a limit").into()),
            ("window", FixedWindow::new(1, SECOND / 5).expect("a limit").with_align(Align::FirstHit).into()),
            ("bucket", bucket(10, 1).into()),
        ];
        for (name, limit) in limits {
            let limit = store.add(name, limit).expect("a limit");
            let charge = [Charge::new(&limit, "k")];
            let held = store.enter(&charge).up_to(Duration::ZERO).await.expect("it is free");
            let mut forgotten = Box::pin(store.enter(&charge).up_to(20 * SECOND));
            stands(&store, forgotten.as_mut()).await;
            let mut next = Box::pin(store.enter(&charge).up_to(20 * SECOND));
            stands(&store, next.as_mut()).await;
            drop(held);
            let began = Instant::now();
            let entered = next.await.expect("the forgotten one's turn");
            assert!(began.elapsed() < SECOND, "{name}: {:?}", began.elapsed());
            drop(entered);
            // It has kept its place, should it come back.
            drop(tokio::time::timeout(2 * SECOND, forgotten).await.expect("in time").expect("its turn"));
        }
    });
}

#[test]
fn slots_go_to_those_who_wait_in_their_order() {
    server().block_on(async {
        let store = server().store();
        let slots = store.add("slots", Concurrency::new(1, 600 * SECOND).expect("a limit")).expect("a limit");
        let charge = [Charge::new(&slots, "k")];
        let held = store.enter(&charge).up_to(Duration::ZERO).await.expect("a slot");
        let order = RefCell::new(Vec::new());
        let standing = async |count: usize| {
            let is_so = || async { (store.health().waiting == count).then_some(()) };
            eventually_async("so many to stand in the queue", is_so).await;
        };
        let waiter = async |place: usize| {
            // One after the other, since questions that are asked at once may be answered in any order.
            standing(place).await;
            let permit = store.enter(&charge).up_to(20 * SECOND).await.expect("a slot");
            order.borrow_mut().push(place);
            permit.leave().await.expect("an answer");
        };
        let releasing = async {
            standing(10).await;
            held.leave().await.expect("an answer");
        };
        tokio::join!(join_all((0..10).map(waiter).collect()), releasing);
        assert_eq!(order.into_inner(), (0..10).collect::<Vec<_>>());
    });
}

/// A large cost in front goes first, and the small ones behind it wait.
#[test]
fn a_large_cost_is_not_overtaken() {
    server().block_on(async {
        let store = server().store();
        let limit = store.add("limit", bucket(20, 5)).expect("a limit");
        let charge = |cost| [Charge::new(&limit, "k").cost(cost)];
        assert!(store.check(&charge(5)).await.expect("an answer").is_allow());
        let order = RefCell::new(Vec::new());
        let waiter = async |place: usize, cost: u32| {
            let came = || store.health().waiting + order.borrow().len();
            let is_next = || async { (came() >= place).then_some(()) };
            eventually_async("those in front to have come", is_next).await;
            store.wait(&charge(cost)).up_to(20 * SECOND).await.expect("its turn");
            order.borrow_mut().push(place);
        };
        join_all(vec![waiter(0, 5), waiter(1, 1), waiter(2, 1), waiter(3, 3)]).await;
        assert_eq!(order.into_inner(), [0, 1, 2, 3]);
    });
}

/// Many turns are asked for in one call, so that a fast limit is used.
#[test]
fn thousands_who_wait_at_a_fast_limit_are_released_at_its_rate() {
    server().block_on(async {
        let store = server().store();
        let limit = store.add("limit", bucket(20_000, 1)).expect("a limit");
        let charge = [Charge::new(&limit, "k")];
        let began = Instant::now();
        let all = join_all((0..4_000).map(|_| store.wait(&charge).up_to(20 * SECOND)).collect()).await;
        let took = began.elapsed();
        assert!(all.iter().all(Result::is_ok));
        assert!(took >= SECOND / 5 - Duration::from_millis(1), "above the rate: {took:?}");
        assert!(took < SECOND, "the rate gives that in 0.2 s: {took:?}");
        println!("4,000 at 20,000 a second took {took:?}");
    });
}
