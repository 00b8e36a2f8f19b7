//! No stored bytes make the script fail: a script that fails takes everybody in its call with it, and is taken for an outage.
//!
//! Real states of every kind of limit, damaged at random or with care, and random bytes. Whatever stands there, a charge
//! is answered or told that the key is damaged; then the other verbs are, and the key keeps its TTL.

use crate::{
    Case,
    figures::say,
    is_soak,
    load::{ends, runtime},
    msgpack,
    places::{Places, patient},
};
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use std::{collections::BTreeMap, time::Duration};
use testkit::{Connection, RedisServer};
use tollgate::{
    Charge, Concurrency, FixedWindow, Key, Limit, ManualClock, Rate, Refill, SlidingCounter, SlidingLog,
    SlidingWindow, SmoothBursty, SmoothWarmingUp, StoreError, TokenBucket,
};
use tollgate_redis::{RedisLimit, RedisStore};

pub(crate) const CASES: &[Case] = &[("any bytes", any_bytes)];

const PREFIX: &str = "fuzz";
/// Distinct ways to fail that are shown.
const SHOWN: usize = 20;

#[derive(Clone, Debug)]
enum Damage {
    Anything(Vec<u8>),
    /// Bytes changed, at these places.
    Flipped(Vec<(prop::sample::Index, u8)>),
    Cut(prop::sample::Index),
    Inserted(prop::sample::Index, Vec<u8>),
    /// Values replaced, at these places.
    Replaced(Vec<(prop::sample::Index, Vec<u8>)>),
    /// The same among the limit's numbers that the state carries.
    Renumbered(prop::sample::Index, Vec<u8>),
}

impl Damage {
    fn done_to(&self, state: &[u8]) -> Vec<u8> {
        let mut bytes = state.to_vec();
        match self {
            Self::Anything(bytes) => return bytes.clone(),
            Self::Flipped(places) => {
                for (place, by) in places {
                    let place = place.index(bytes.len());
                    bytes[place] ^= by;
                }
            }
            Self::Cut(at) => bytes.truncate(at.index(state.len())),
            Self::Inserted(at, more) => {
                let at = at.index(state.len());
                bytes.splice(at..at, more.iter().copied());
            }
            Self::Replaced(values) => {
                let mut parts = msgpack::split(state).expect("a state is a row of values");
                for (place, value) in values {
                    // What it begins with is left, or nobody would read on.
                    let place = 1 + place.index(parts.len() - 1);
                    parts[place].clone_from(value);
                }
                bytes = parts.concat();
            }
            Self::Renumbered(place, value) => {
                let mut parts = msgpack::split(state).expect("a state is a row of values");
                // Plain buckets have them nearer to the front.
                let at = if parts[0] == msgpack::string(b"tg2") { 2 } else { 4 };
                let mut numbers = msgpack::payload(&parts[at]).and_then(msgpack::split).expect("numbers");
                let place = place.index(numbers.len());
                numbers[place].clone_from(value);
                parts[at] = msgpack::string(&numbers.concat());
                bytes = parts.concat();
            }
        }
        bytes
    }
}

/// Values that a state does not have, or not there.
fn values() -> impl Strategy<Value = Vec<u8>> {
    let numbers = prop_oneof![
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(0.0),
        Just(-1.0),
        Just(0.5),
        Just(1e300),
        Just(9_007_199_254_740_993.0),
        any::<f64>(),
    ];
    let held = (any::<i64>(), any::<i64>(), prop::collection::vec(any::<u8>(), 0..12)).prop_map(
        |(id, until, trace)| {
            msgpack::array(&[msgpack::integer(id), msgpack::integer(until), msgpack::string(&trace)])
        },
    );
    prop_oneof![
        4 => numbers.prop_map(msgpack::double),
        2 => any::<i64>().prop_map(msgpack::integer),
        2 => (-3_i64..12).prop_map(msgpack::integer),
        2 => prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| msgpack::string(&bytes)),
        1 => Just(vec![0xc0]),
        1 => Just(vec![0xc3]),
        1 => Just(vec![0x80]),
        1 => held,
        1 => prop::collection::vec(any::<i64>(), 0..7)
            .prop_map(|it| msgpack::array(&it.into_iter().map(msgpack::integer).collect::<Vec<_>>())),
        1 => Just(Vec::new()),
    ]
}

fn damages() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        1 => prop::collection::vec(any::<u8>(), 0..120).prop_map(Damage::Anything),
        3 => prop::collection::vec((at(), 1_u8..), 1..4).prop_map(Damage::Flipped),
        1 => at().prop_map(Damage::Cut),
        1 => (at(), prop::collection::vec(any::<u8>(), 1..20)).prop_map(|(at, more)| Damage::Inserted(at, more)),
        6 => prop::collection::vec((at(), values()), 1..3).prop_map(Damage::Replaced),
        4 => (at(), values()).prop_map(|(at, value)| Damage::Renumbered(at, value)),
    ]
}

fn limits() -> Vec<Limit> {
    let second = Duration::from_secs(1);
    let rate = Rate::per_second(7).expect("a rate");
    let bucket = || TokenBucket::new(rate, 20).expect("a limit");
    vec![
        bucket().into(),
        bucket().with_refill(Refill::Interval).into(),
        SmoothBursty::new(rate).into(),
        SmoothWarmingUp::new(rate, second).expect("a limit").into(),
        FixedWindow::new(20, second).expect("a limit").into(),
        FixedWindow::forever(20).expect("a limit").into(),
        SlidingCounter::new(20, second).expect("a limit").into(),
        SlidingLog::new(20, second).expect("a limit").into(),
        SlidingWindow::new(20, second, second / 10).expect("a limit").into(),
        Concurrency::new(20, second).expect("a limit").into(),
    ]
}

struct Bench {
    server: RedisServer,
    store: RedisStore,
    clock: ManualClock,
    limits: Vec<RedisLimit>,
    states: Vec<Vec<u8>>,
}

impl Bench {
    async fn new() -> Self {
        let server = RedisServer::start_with(&["--busy-reply-threshold", "100"]);
        let clock = ManualClock::new();
        clock.advance(Duration::from_secs(1_000_000));
        let store =
            patient(&server.url()).prefix(PREFIX).clock(clock.clone()).timeout(Duration::from_secs(3));
        let store = store.open().expect("an address");
        let named = |(place, limit): (usize, Limit)| store.add(&format!("l{place}"), limit).expect("a limit");
        let limits: Vec<RedisLimit> = limits().into_iter().enumerate().map(named).collect();
        let mut states = Vec::new();
        for (place, limit) in limits.iter().enumerate() {
            for _ in 0..3 {
                let _ = store.check(&[Charge::new(limit, "k").cost(2)]).await.expect("an answer");
                clock.advance(Duration::from_millis(3));
            }
            let testkit::Reply::Bulk(state) = server.command(&["GET", &key(place)]) else {
                panic!("no state")
            };
            states.push(state);
        }
        Self { server, store, clock, limits, states }
    }

    /// What went wrong with these bytes, if anything did.
    async fn fails(&self, connection: &mut Connection, place: usize, bytes: &[u8]) -> Option<String> {
        let put = [b"SET".as_slice(), key(place).as_bytes(), bytes, b"PX", b"100000"].map(<[u8]>::to_vec);
        connection.command(&put).expect("an answer").done();
        let limit = &self.limits[place];
        let at = || Key::from("k");
        let charge = [Charge::new(limit, "k")];
        let permit = tollgate::PermitId::new(std::num::NonZeroU64::MIN);
        let (store, told) = (&self.store, |told: Result<(), StoreError>| told.err());
        let mut found = Vec::new();
        found.push(told(store.check(&charge).await.map(drop)));
        found.push(told(store.peek(&charge).await.map(drop)));
        found.push(told(store.refund(limit, at(), 1).await));
        found.push(told(store.grant(limit, at(), 1).await));
        found.push(told(store.leave(&charge, permit).await.map(drop)));
        self.clock.advance(Duration::from_millis(1));
        found.push(told(store.check(&charge).await.map(drop)));
        let is_fine =
            |error: &StoreError| matches!(error, StoreError::Damaged { .. } | StoreError::TooNew { .. });
        let failed = found.into_iter().flatten().find(|error| !is_fine(error)).map(|error| error.to_string());
        if failed.is_some() {
            // It may still run.
            self.server.command(&["SCRIPT", "KILL"]);
            // A breaker that opened would hide what comes next.
            let begun = std::time::Instant::now();
            while self.store.health().state != tollgate_redis::HealthState::Healthy
                && begun.elapsed() < Duration::from_secs(5)
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            return failed;
        }
        let ttl = connection.command(&["PTTL", &key(place)]).expect("an answer").integer();
        (ttl == -1).then(|| "the key lost its TTL".to_owned())
    }
}

fn any_bytes(_: &Places) -> Result<(), String> {
    let cases = match std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()) {
        Some(cases) => cases,
        None => {
            if is_soak() {
                50_000_u32
            } else {
                3_000
            }
        }
    };
    let runtime = runtime();
    let failures = runtime.block_on(async {
        let bench = Bench::new().await;
        let mut connection =
            Connection::open(bench.server.port(), Duration::from_secs(20)).expect("a connection");
        let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
        let plan = (0..bench.limits.len(), damages());
        // By what went wrong: the shortest bytes that do.
        let mut failures: BTreeMap<String, (usize, Vec<u8>)> = BTreeMap::new();
        for _ in 0..cases {
            let tree = plan.new_tree(&mut runner).expect("a case");
            let (place, damage) = tree.current();
            let bytes = damage.done_to(&bench.states[place]);
            let Some(why) = bench.fails(&mut connection, place, &bytes).await else { continue };
            let known = failures.entry(why).or_insert_with(|| (place, bytes.clone()));
            if bytes.len() < known.1.len() {
                *known = (place, bytes);
            }
            if failures.len() >= SHOWN {
                break;
            }
        }
        failures
    });
    ends(&runtime)?;
    if failures.is_empty() {
        say(
            "any bytes",
            &format!("{cases} damaged states of 10 kinds of limit: every one answered or named"),
        );
        return Ok(());
    }
    let shown = failures.iter().map(|(why, (place, bytes))| {
        format!("{why}\n      {:?}\n      under {}", limits()[*place], bytes.escape_ascii())
    });
    Err(shown.collect::<Vec<_>>().join("\n    "))
}

fn key(place: usize) -> String {
    format!("{PREFIX}:{{k}}:l{place}")
}
