//! Several gateways on one Redis: one limit between them, and what becomes of requests when Redis goes away.

use crate::stage::{Stage, get, one_rule};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};
use testkit::{Arrivals, RedisServer, Seen, eventually};
use tollgate_redis::{HealthState, RedisStore};

/// How long Redis may take here: more than a busy machine needs.
const TIMEOUT: Duration = Duration::from_millis(150);

fn gateway(redis: &RedisServer, rules: &str) -> Stage<RedisStore> {
    gateway_with(redis, rules, TIMEOUT)
}

/// One whose Redis never takes too long: what is shared is looked at, not what happens when it cannot be.
fn patient(redis: &RedisServer, rules: &str) -> Stage<RedisStore> {
    gateway_with(redis, rules, Duration::from_secs(10))
}

fn gateway_with(redis: &RedisServer, rules: &str, timeout: Duration) -> Stage<RedisStore> {
    let store = RedisStore::builder(&redis.url()).timeout(timeout).nodes(2).open().expect("a store");
    Stage::open(Arc::new(store), rules)
}

fn passed(seen: &[Seen]) -> usize {
    seen.iter().filter(|seen| seen.status() == 200).count()
}

#[test]
fn two_gateways_admit_the_limit_between_them() {
    let redis = RedisServer::start();
    let rules = one_rule(
        "limits: [ { fixed_window: { limit: 120, window: 5000d, align: epoch }, key: [] }, { fixed_window: { limit: 1000, window: 5000d }, key: [ip] } ], on_failure: closed",
    );
    let (one, other) = (patient(&redis, &rules), patient(&redis, &rules));
    let crowd = Arrivals::at_ms((0..150).map(|number| number * 2));
    let (here, there) = thread::scope(|scope| {
        let here = scope.spawn(|| crowd.play(one.address()));
        let there = scope.spawn(|| crowd.play(other.address()));
        (here.join().expect("a play"), there.join().expect("a play"))
    });
    assert_eq!(passed(&here) + passed(&there), 120);
    assert!(passed(&here) > 0 && passed(&there) > 0);
    assert_eq!(one.up.asked().len() + other.up.asked().len(), 120);
    let refused = here.iter().find(|seen| seen.status() != 200).expect("some are refused");
    assert_eq!(refused.status(), 429);
    assert!(refused.header("retry-after").is_some());
    // A third that comes later knows what the others let in.
    assert_eq!(patient(&redis, &rules).get("/").status(), 429);
}

/// Slots are the fleet's, and come back from whichever gateway held them.
#[test]
fn two_gateways_share_slots() {
    let redis = RedisServer::start();
    let rules = one_rule("limits: [ { concurrency: { limit: 3 }, key: [] } ], on_failure: closed");
    let (one, other) = (patient(&redis, &rules), patient(&redis, &rules));
    let address = one.address();
    let held = thread::spawn(move || Arrivals::at_once(3).each(|it| it.path("/?delay=1500")).play(address));
    eventually("three in flight", || (one.up.in_flight() == 3).then_some(()));
    assert_eq!(other.get("/").status(), 429);
    assert_eq!(passed(&held.join().expect("a play")), 3);
    one.rests();
    eventually("a slot to be back", || (other.get("/").status() == 200).then_some(()));
}

/// A limit on Redis is known by its name: whatever else becomes of it, it keeps what was consumed.
#[test]
fn a_limit_is_the_same_through_changes_of_the_file() {
    let redis = RedisServer::start();
    let rules = |limit: u32, room: &str| {
        format!("limits: {{ all: {{ fixed_window: {{ limit: {limit}, window: 5000d }}{room} }} }}\n")
            + &one_rule("limits: [ { use: all, key: [] } ], on_failure: closed")
    };
    let stage = patient(&redis, &rules(3, ""));
    assert_eq!(stage.times(2, &get("/")), [200, 200]);
    // Room is for keys in memory, which there are none of.
    stage.reload(&rules(4, ", max_keys: 10"));
    stage.reload(&rules(5, ", max_keys: 10"));
    stage.reload(&rules(5, ", max_keys: 20"));
    assert_eq!(stage.times(2, &get("/")), [200, 200]);
    // It goes and comes back while somebody is still held by the rules that had it.
    let held = stage.decisions.rules();
    stage.reload("routes: [ { name: all, upstream: up } ]");
    stage.reload(&rules(6, ""));
    assert_eq!(stage.times(3, &get("/")), [200, 200, 429]);
    drop(held);
    assert_eq!(stage.get("/").status(), 429);
}

/// The pace is waited for, room is not: as in memory.
#[test]
fn two_gateways_share_a_queue() {
    let redis = RedisServer::start();
    let rules = one_rule(
        "limits: [ { leaky_bucket: { rate: 2/s, capacity: 4, delay: 1 }, key: [] } ], on_failure: closed",
    );
    let (one, other) = (patient(&redis, &rules), patient(&redis, &rules));
    assert_eq!((one.get("/").status(), other.get("/").status()), (200, 200));
    // Redis has the clock: by then the bucket has drained.
    thread::sleep(Duration::from_millis(1_100));
    let (here, there) = thread::scope(|scope| {
        let here = scope.spawn(|| Arrivals::at_once(5).play(one.address()));
        let there = scope.spawn(|| Arrivals::at_once(5).play(other.address()));
        (here.join().expect("a play"), there.join().expect("a play"))
    });
    let all: Vec<_> = here.iter().chain(&there).collect();
    let mut waits: Vec<_> =
        all.iter().filter(|seen| seen.status() == 200).map(|seen| seen.waited().as_millis()).collect();
    waits.sort_unstable();
    assert_eq!(waits.len(), 4, "{waits:?}");
    for (wait, expected) in waits.iter().zip([0, 500, 1_000, 1_500]) {
        assert!(*wait >= expected.max(100) - 100 && *wait < expected + 400, "{waits:?}");
    }
    let refused: Vec<_> = all.iter().filter(|seen| seen.status() == 429).collect();
    assert_eq!(refused.len(), 6);
    assert!(refused.iter().all(|seen| seen.waited() < Duration::from_millis(400)), "at once");
}

const POLICIES: &str = "
routes:
  - { name: open, when: { path: /open }, upstream: up, rules: [ { name: a, on_failure: open, limits: [ { fixed_window: { limit: 100000, window: 5000d }, key: [] } ] } ] }
  - { name: closed, when: { path: /closed }, upstream: up, rules: [ { name: a, on_failure: closed, limits: [ { fixed_window: { limit: 100000, window: 5000d }, key: [] } ] } ] }
  - { name: local, when: { path: /local }, upstream: up, rules: [ { name: a, on_failure: local, limits: [ { fixed_window: { limit: 24, window: 5000d }, key: [header.k] } ] } ] }
  - { name: slots, when: { path: /slots }, upstream: up, rules: [ { name: a, on_failure: open, limits: [ { concurrency: { limit: 100000 }, key: [] } ] } ] }
";

/// What came of the requests of one phase.
#[derive(Default)]
struct Phase {
    statuses: BTreeMap<(&'static str, u16), usize>,
    slowest: Duration,
}

/// Clients that ask until this is dropped.
struct Load<'a> {
    stage: &'a Stage<RedisStore>,
    phase: Mutex<Phase>,
    /// How often each client has asked every path.
    rounds: [AtomicUsize; 4],
    stop: AtomicBool,
}

/// Ends the load however the test ends.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

impl Load<'_> {
    /// One client: asks each path in turn until told to stop.
    fn run(&self, rounds: &AtomicUsize) {
        while !self.stop.load(SeqCst) {
            for path in ["/open", "/closed", "/slots"] {
                let seen = self.stage.get(path);
                let (status, took) = (seen.status(), seen.took());
                let mut phase = self.phase.lock().expect("nobody panics");
                *phase.statuses.entry((path, status)).or_default() += 1;
                phase.slowest = phase.slowest.max(took);
            }
            rounds.fetch_add(1, SeqCst);
        }
    }

    /// Waits until every client has finished so many rounds more: after one, nothing is under way that began before.
    #[track_caller]
    fn goes_on(&self, count: usize) {
        let rounds = || self.rounds.each_ref().map(|rounds| rounds.load(SeqCst));
        let begun = rounds();
        eventually("every client to go on", || {
            rounds().iter().zip(begun).all(|(now, begun)| *now >= begun + count).then_some(())
        });
    }

    /// What came since the last time.
    fn take(&self) -> Phase {
        std::mem::take(&mut self.phase.lock().expect("nobody panics"))
    }
}

impl Phase {
    fn count(&self, path: &str, status: u16) -> usize {
        self.statuses
            .iter()
            .filter(|((it, code), _)| *it == path && *code == status)
            .map(|(_, count)| count)
            .sum()
    }
}

/// Redis is killed under load and started again: nobody waits longer than the timeout, everybody is treated as their rule says,
/// and afterwards all is as before.
#[test]
fn an_outage_is_dealt_with_as_each_rule_says() {
    let redis = RedisServer::start();
    let stage = gateway(&redis, POLICIES);
    assert_eq!(stage.statuses([get("/open"), get("/closed"), get("/local"), get("/slots")]), [200; 4]);
    let (rounds, stop) = (Default::default(), AtomicBool::new(false));
    let load = Load { stage: &stage, phase: Mutex::default(), rounds, stop };
    let (well, out, back) = thread::scope(|scope| {
        let _stop = Stop(&load.stop);
        for rounds in &load.rounds {
            scope.spawn(|| load.run(rounds));
        }
        load.goes_on(20);
        let well = load.take();
        redis.kill();
        // Those that were asked while it went away are of neither phase.
        eventually("the outage to be noticed", || (stage.get("/closed").status() != 200).then_some(()));
        load.goes_on(1);
        let going = load.take();
        // It lasts: Redis is looked for meanwhile, again and again.
        thread::sleep(Duration::from_millis(700));
        let out = load.take();
        let local = (0..40).filter(|_| stage.ask(get("/local").header("k", "new")).status() == 200).count();
        assert_eq!(local, 12, "half of the limit, for there are two nodes");
        let refused = stage.get("/closed");
        assert_eq!((refused.status(), refused.header("retry-after")), (429, Some("1")), "{}", refused.text());
        assert!(going.slowest < TIMEOUT + Duration::from_secs(1), "{:?}", going.slowest);
        redis.restart();
        // More and more go to Redis again, and in the end all.
        let state = || stage.decisions.store().health().state;
        eventually("recovery", || (state() == HealthState::Healthy).then_some(()));
        load.goes_on(1);
        load.take();
        load.goes_on(20);
        (well, out, load.take())
    });
    for (phase, path) in
        ["/open", "/closed", "/slots"].into_iter().flat_map(|path| [(&well, path), (&back, path)])
    {
        assert!(phase.count(path, 200) > 0, "{path}");
        assert_eq!(phase.count(path, 429), 0, "{path}");
    }
    let both = |path| (out.count(path, 200) > 0, out.count(path, 429) > 0);
    assert_eq!(both("/open"), (true, false), "{:?}", out.statuses);
    assert_eq!(both("/slots"), (true, false), "{:?}", out.statuses);
    assert_eq!(both("/closed"), (false, true), "{:?}", out.statuses);
    let kinds: Vec<_> = out.statuses.keys().filter(|(_, status)| !matches!(status, 200 | 429)).collect();
    assert!(kinds.is_empty(), "{kinds:?}");
    assert!(out.slowest < TIMEOUT + Duration::from_secs(1), "{:?}", out.slowest);
}

/// A Redis that hangs costs a few requests its timeout, and the others nothing.
#[test]
fn a_redis_that_hangs_delays_nobody_for_longer_than_the_timeout() {
    let redis = RedisServer::start();
    let stage = gateway(&redis, POLICIES);
    assert_eq!(stage.statuses([get("/open"), get("/closed"), get("/slots")]), [200; 3]);
    redis.pause();
    let begun = Instant::now();
    let mut took = Vec::new();
    for _ in 0..30 {
        for path in ["/open", "/slots"] {
            let seen = stage.get(path);
            assert_eq!(seen.status(), 200);
            took.push(seen.took());
        }
    }
    took.sort_unstable();
    let slowest = took.last().copied().unwrap_or_default();
    assert!(slowest < TIMEOUT + Duration::from_secs(1), "{slowest:?}");
    assert!(took[took.len() / 2] < TIMEOUT / 2, "most wait for nothing: {took:?}");
    assert_eq!(stage.get("/closed").status(), 429);
    redis.resume();
    eventually("recovery", || (stage.get("/closed").status() == 200).then_some(()));
    println!("60 requests in {:?}, the slowest took {slowest:?}", begun.elapsed());
}
