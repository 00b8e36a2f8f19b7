//! Sets whose keys lie with different nodes of a cluster: all or nothing, as on one server.

use crate::{
    Case,
    figures::{Latency, millis, say},
    is_soak,
    load::{Passed, Sample, ends, runtime},
    places::{Places, must, patient, remaining, three_keys, until_remaining},
};
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};
use testkit::{Random, slot_of};
use tokio::task::JoinSet;
use tollgate::{
    Charge, DecidedBy, Decision, FixedWindow, ManualClock, OnFailure, Rate, SetStatus, SlidingLog,
    StoreError, TokenBucket,
};
use tollgate_redis::{RedisLimit, RedisStore};

pub(crate) const CASES: &[Case] = &[
    ("sets as on one", as_on_one),
    ("sets that cross", that_cross),
    ("sets given up", given_up),
    ("sets of the dead", of_the_dead),
    ("sets and a frozen node", frozen_node),
    ("sets and a later format", later_format),
];

/// The same sets at the same times on a cluster and on one server.
fn as_on_one(places: &Places) -> Result<(), String> {
    let runtime = runtime();
    runtime.block_on(async {
        let clock = ManualClock::new();
        let open = |url: &str| {
            let store = patient(url).clock(clock.clone()).open().expect("an address");
            let bucket = TokenBucket::new(Rate::per_second(2).expect("a rate"), 5).expect("a limit");
            let log = SlidingLog::new(6, Duration::from_secs(4)).expect("a limit");
            let limits = [store.add("bucket", bucket), store.add("log", log)].map(|it| it.expect("a limit"));
            (store, limits)
        };
        let (cluster, one) = (open(&places.cluster().url()), open(&places.server().url()));
        let (keys, mut random) = (three_keys(), Random::new(1));
        let (mut refused, sets) = (0, if is_soak() { 5_000 } else { 300 });
        for number in 0..sets {
            clock.advance(Duration::from_millis(random.below(400) as u64));
            let parts: Vec<(usize, usize, u32)> = (0..=random.below(4))
                .map(|_| (random.below(2), random.below(3), random.below(4) as u32))
                .collect();
            let told = async |(store, limits): &(RedisStore, [RedisLimit; 2])| {
                let charge = |(limit, key, cost): &(usize, usize, u32)| {
                    Charge::new(&limits[*limit], keys[*key].as_str()).cost(*cost)
                };
                let charges: Vec<_> = parts.iter().map(charge).collect();
                let set = store.check(&charges).await.map_err(|error| error.to_string())?;
                Ok::<_, String>(shown(&set))
            };
            let (here, there) = (told(&cluster).await?, told(&one).await?);
            refused += u32::from(matches!(there.0, Decision::Deny(_)));
            must(here == there, || {
                format!("set {number} {parts:?}: {here:?} on a cluster, {there:?} on one")
            })?;
        }
        must(refused > sets / 10, || format!("only {refused} were refused"))?;
        say("sets as on one", &format!("{sets} sets, {refused} refused: the same statuses as on one server"));
        Ok::<_, String>(())
    })?;
    ends(&runtime)
}

type Shown = (Decision, Option<usize>, Vec<(Decision, u32, u32, Option<Duration>)>);

fn shown(set: &SetStatus) -> Shown {
    let part = |it: &tollgate::Status| (it.decision(), it.limit(), it.remaining(), it.reset_after());
    (set.decision(), set.denied_by(), set.statuses().iter().map(part).collect())
}

/// Many sets over the same keys in every order: nobody waits for anybody, and no key gives more than it has.
fn that_cross(places: &Places) -> Result<(), String> {
    const QUOTA: u32 = 150;
    let runtime = runtime();
    runtime.block_on(async {
        let store = patient(&places.cluster().url()).open().expect("an address");
        let limit = store.add("quota", FixedWindow::forever(QUOTA).expect("a limit")).expect("a limit");
        let keys = three_keys();
        let mut callers = JoinSet::new();
        let begun = Instant::now();
        for caller in 0..16 {
            let (store, limit, keys) = (store.clone(), limit.clone(), keys.clone());
            callers.spawn(async move {
                let (mut random, mut samples, mut admitted) =
                    (Random::new(caller), Vec::new(), HashMap::new());
                for _ in 0..40 {
                    let (first, count) = (random.below(3), 2 + random.below(2));
                    let backwards = random.below(2) == 0;
                    let mut set: Vec<&str> = (0..count).map(|it| keys[(first + it) % 3].as_str()).collect();
                    if backwards {
                        set.reverse();
                    }
                    let charges: Vec<_> = set.iter().map(|key| Charge::new(&limit, *key)).collect();
                    let (at, asked) = (begun.elapsed(), Instant::now());
                    let told = store.check(&charges).await.map_err(|error| error.to_string())?;
                    let passed = if told.is_allow() { Passed::Yes } else { Passed::No };
                    samples.push(Sample { at, took: asked.elapsed(), told: Ok((passed, DecidedBy::Store)) });
                    for key in set.iter().filter(|_| told.is_allow()) {
                        *admitted.entry((*key).to_owned()).or_insert(0_u32) += 1;
                    }
                }
                Ok::<_, String>((samples, admitted))
            });
        }
        let (mut samples, mut admitted) = (Vec::new(), HashMap::new());
        loop {
            match tokio::time::timeout(Duration::from_secs(20), callers.join_next()).await {
                Err(_) => return Err("a set is stuck".to_owned()),
                Ok(None) => break,
                Ok(Some(done)) => {
                    let (more, by_key) = done.map_err(|error| error.to_string())??;
                    samples.extend(more);
                    by_key.into_iter().for_each(|(key, units)| *admitted.entry(key).or_insert(0) += units);
                }
            }
        }
        let mut used = Vec::new();
        for key in &keys {
            let units = admitted.get(key).copied().unwrap_or(0);
            must(units <= QUOTA, || format!("{key}: {units} admitted of {QUOTA}"))?;
            // Holds of refused sets are given back, by time at the latest.
            until_remaining(&store, &limit, key, QUOTA - units).await?;
            used.push(units);
        }
        let Latency { p50, p99, max } = Latency::of(samples.iter());
        let (p50, p99, max) = (millis(p50), millis(p99), millis(max));
        say(
            "sets that cross",
            &format!("640 sets: {used:?} admitted of {QUOTA} a key; ms {p50} / {p99} / {max}"),
        );
        Ok(())
    })?;
    ends(&runtime)
}

/// Whoever drops a set in the middle, wherever that is, has what was held back soon.
fn given_up(places: &Places) -> Result<(), String> {
    const QUOTA: u32 = 100_000;
    let runtime = runtime();
    runtime.block_on(async {
        let store = patient(&places.cluster().url()).open().expect("an address");
        let limit = store.add("quota", FixedWindow::forever(QUOTA).expect("a limit")).expect("a limit");
        let keys = three_keys();
        let charges: Vec<_> = keys.iter().map(|key| Charge::new(&limit, key.as_str())).collect();
        let asked = Instant::now();
        must(store.check(&charges).await.map_err(|e| e.to_string())?.is_allow(), || "refused".to_owned())?;
        let usual = asked.elapsed();
        let (mut finished, mut dropped) = (1, 0);
        for round in 0..300 {
            let patience = usual.mul_f64(f64::from(round % 60) / 40.0);
            match tokio::time::timeout(patience, store.check(&charges)).await {
                Ok(told) => {
                    let _ = told.map_err(|error| error.to_string())?;
                    finished += 1;
                }
                Err(_) => dropped += 1,
            }
        }
        let begun = Instant::now();
        // Holds last a second.
        tokio::time::sleep(Duration::from_millis(1_300)).await;
        let mut used = Vec::new();
        for key in &keys {
            used.push(QUOTA - remaining(&store, &limit, key).await?);
        }
        let over = used[0].abs_diff(finished);
        say(
            "sets given up",
            &format!(
                "{finished} finished, {dropped} dropped: {used:?} charged after {:.1?}",
                begun.elapsed()
            ),
        );
        must(used.iter().all(|it| *it == used[0]), || format!("charged in part: {used:?}"))?;
        must(dropped > 10, || format!("only {dropped} were dropped"))?;
        must(over == 0, || format!("{finished} finished, {used:?} charged"))
    })?;
    ends(&runtime)
}

/// A node that dies in the middle of a set: what it held comes back by time. What it had begun to confirm may stay, in part:
/// nobody is left to give it back.
fn of_the_dead(places: &Places) -> Result<(), String> {
    const QUOTA: u32 = 1_000;
    let url = places.cluster().url();
    let open = || {
        let store = patient(&url).prefix("dead").open().expect("an address");
        let limit = store.add("quota", FixedWindow::forever(QUOTA).expect("a limit")).expect("a limit");
        (store, limit)
    };
    let lives = if is_soak() { 300 } else { 40 };
    for life in 0..lives {
        let runtime = runtime();
        let (store, limit) = open();
        let (ready, is_ready) = std::sync::mpsc::channel();
        runtime.spawn(async move {
            let keys = three_keys();
            let set: Vec<_> = keys.iter().map(|key| Charge::new(&limit, key.as_str())).collect();
            let _ = store.peek(&set).await;
            let _ = ready.send(());
            let _ = store.check(&set).await;
            std::future::pending::<()>().await;
        });
        is_ready.recv().map_err(|error| error.to_string())?;
        // Each dies at another moment of its set.
        std::thread::sleep(Duration::from_micros(50 * life));
        runtime.shutdown_background();
    }
    let runtime = runtime();
    runtime.block_on(async {
        let (store, limit) = open();
        // Holds last a second.
        tokio::time::sleep(Duration::from_millis(1_300)).await;
        let mut used = Vec::new();
        for key in &three_keys() {
            used.push(QUOTA - remaining(&store, &limit, key).await?);
        }
        let most = used.iter().max().copied().unwrap_or(0);
        say("sets of the dead", &format!("{lives} nodes died within a set each: {used:?} charged for good"));
        must(u64::from(most) <= lives, || format!("{used:?} charged by {lives} sets"))
    })?;
    ends(&runtime)
}

/// One of three nodes is frozen: the set is decided by the policy in time, and the others' keys are untouched.
fn frozen_node(places: &Places) -> Result<(), String> {
    const PATIENCE: Duration = Duration::from_millis(100);
    let runtime = runtime();
    runtime.block_on(async {
        let url = places.cluster().url();
        let witness = patient(&url).prefix("frozen").open().expect("an address");
        let node = RedisStore::builder(&url).prefix("frozen").on_failure(OnFailure::Closed).timeout(PATIENCE);
        let node = node.open().expect("an address");
        let [seen, limit] = [&witness, &node]
            .map(|store| store.add("quota", FixedWindow::forever(9).expect("a limit")).expect("a limit"));
        let keys = three_keys();
        let charges: Vec<_> = keys.iter().map(|key| Charge::new(&limit, key.as_str())).collect();
        must(node.check(&charges).await.map_err(|e| e.to_string())?.is_allow(), || "refused".to_owned())?;
        let primary = places.cluster().primary_of(slot_of(&keys[2]));
        let mut took = Vec::new();
        primary.pause();
        for _ in 0..3 {
            let asked = Instant::now();
            let told = node.check(&charges).await.map_err(|error| error.to_string())?;
            took.push(asked.elapsed());
            must(told.is_deny(), || format!("admitted, though closed: {told:?}"))?;
        }
        primary.resume();
        let mut back = Vec::new();
        for key in &keys {
            back.push(until_remaining(&witness, &seen, key, 8).await?);
        }
        let slowest = took.iter().max().copied().unwrap_or_default();
        say(
            "sets and a frozen node",
            &format!("refused after {took:.0?}; all untouched {:.1?} later", back.iter().sum::<Duration>()),
        );
        must(slowest <= PATIENCE + Duration::from_millis(80), || format!("a set took {slowest:?}"))
    })?;
    ends(&runtime)
}

/// A key that a later version wrote stands in the way of its set, is left alone, and nothing else of the set is charged.
fn later_format(places: &Places) -> Result<(), String> {
    let cluster = places.cluster();
    let runtime = runtime();
    runtime.block_on(async {
        let store = patient(&cluster.url()).prefix("later").open().expect("an address");
        let limit = store.add("quota", FixedWindow::forever(9).expect("a limit")).expect("a limit");
        let keys = three_keys();
        let name = format!("later:{{{}}}:quota", keys[1]);
        let node = cluster.primary_of(slot_of(&keys[1]));
        let put =
            [b"SET".as_slice(), name.as_bytes(), b"\xa3tg9 and so on", b"EX", b"60"].map(<[u8]>::to_vec);
        node.command(&put).done();
        let charges: Vec<_> = keys.iter().map(|key| Charge::new(&limit, key.as_str())).collect();
        for _ in 0..3 {
            let told = store.check(&charges).await;
            let is_named = matches!(&told, Err(StoreError::TooNew { key }) if *key == name);
            must(is_named, || format!("{told:?}"))?;
        }
        let mut back = Duration::ZERO;
        for key in [&keys[0], &keys[2]] {
            back += until_remaining(&store, &limit, key, 9).await?;
        }
        let kept = node.command(&["GET", &name]);
        must(kept == testkit::Reply::Bulk(put[2].clone()), || format!("a later format became {kept:?}"))?;
        say(
            "sets and a later format",
            &format!("3 sets told so; left alone, all else untouched after {back:.1?}"),
        );
        Ok::<_, String>(())
    })?;
    ends(&runtime)
}
