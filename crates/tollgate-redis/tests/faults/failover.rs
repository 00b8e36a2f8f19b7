//! Another server takes over: by sentinels, in a cluster, or because its slot moves there.

use crate::{
    Case,
    figures::{Latency, millis, say},
    load::{ends, runtime},
    outage::Outage,
    places::{Places, must, patient, remaining, three_keys},
    script::{callers, heard},
    seconds,
    servers::leaves_no_key_behind,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};
use testkit::{Sentinels, slot_of};
use tollgate::{Charge, FixedWindow};

pub(crate) const CASES: &[Case] = &[
    ("slot moves", slot_moves),
    ("cluster failover", cluster_failover),
    ("sentinel switch", sentinel_switch),
    ("sentinel failover", sentinel_failover),
];

/// A slot and its keys move to another node under load: before, in between and after, every charge is counted once.
fn slot_moves(places: &Places) -> Result<(), String> {
    const QUOTA: u32 = 10_000_000;
    let cluster = places.cluster();
    let runtime = runtime();
    let [key, _, elsewhere] = three_keys();
    let slot = slot_of(&key);
    let (store, limit) = runtime.block_on(async {
        let store = patient(&cluster.url()).open().expect("an address");
        let limit = store.add("quota", FixedWindow::forever(QUOTA).expect("a limit")).expect("a limit");
        let _ = store.check(&[Charge::new(&limit, key.as_str())]).await.map_err(|e| e.to_string())?;
        Ok::<_, String>((store, limit))
    })?;
    let over = Arc::new(AtomicBool::new(false));
    let calling = {
        let _here = runtime.enter();
        callers(&store, &limit, &key, &over)
    };
    // Calls are made at every stage of the move.
    let pause = || thread::sleep(seconds(0.15, 1.0));
    let (from, to) = (cluster.primary_of(slot), cluster.primary_of(slot_of(&elsewhere)));
    pause();
    let migration = cluster.begin_migration(slot, to);
    pause();
    migration.move_keys();
    // The key is there, the slot is not: everybody is sent on, call by call.
    pause();
    migration.finish();
    pause();
    over.store(true, Relaxed);
    let told = runtime.block_on(async {
        let samples = heard(calling).await?;
        let admitted = samples.iter().filter(|sample| sample.is_allow()).count() as u32 + 1;
        let used = QUOTA - remaining(&store, &limit, &key).await?;
        let Latency { p50, p99, max } = Latency::of(samples.iter());
        let (p50, p99, max) = (millis(p50), millis(p99), millis(max));
        say("slot moves", &format!("{admitted} admitted, {used} charged; ms {p50} / {p99} / {max}"));
        must(admitted == used && admitted as usize == samples.len() + 1, || {
            format!("{} calls, {admitted} admitted, {used} charged", samples.len())
        })?;
        must(store.health().failed == 0, || format!("{:?}", store.health()))
    });
    cluster.migrate_slot(slot, from);
    drop((store, limit));
    told?;
    ends(&runtime)
}

/// A primary dies, and its replica takes over. Keys with other nodes do not notice.
fn cluster_failover(places: &Places) -> Result<(), String> {
    let cluster = places.cluster();
    let [key, _, other] = three_keys();
    let slot = slot_of(&key);
    let dead = cluster.primary_of(slot);
    let runtime = runtime();
    let store = patient(&cluster.url()).open().expect("an address");
    let limit = store.add("quota", FixedWindow::forever(10_000_000).expect("a limit")).expect("a limit");
    let over = Arc::new(AtomicBool::new(false));
    let elsewhere = runtime.spawn({
        let (store, limit, over) = (store.clone(), limit.clone(), Arc::clone(&over));
        async move {
            let mut calls = 0_u32;
            while !over.load(Relaxed) {
                let told = store.check(&[Charge::new(&limit, other.as_str())]).await;
                let _ = told.map_err(|error| format!("a key with another node: {error}"))?;
                calls += 1;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            Ok::<_, String>(calls)
        }
    });
    let outage =
        Outage::total("cluster failover", Duration::from_millis(500)).at_key(&key).losing(1).elsewhere();
    let told = outage.run(
        &cluster.url(),
        || dead.kill(),
        || {
            cluster.primary_of(slot);
        },
    );
    over.store(true, Relaxed);
    let calls = runtime.block_on(elsewhere).map_err(|error| error.to_string())?;
    dead.restart();
    told?;
    say("cluster failover", &format!("{} calls on a key with another node, all answered", calls?));
    drop((store, limit));
    ends(&runtime)?;
    leaves_no_key_behind(cluster.primary_of(slot))
}

/// The sentinels make the replica the primary while both live: the old one is a replica with our connections still up.
fn sentinel_switch(_: &Places) -> Result<(), String> {
    let sentinels = Sentinels::start();
    // Long enough to be noticed by whoever asks the sentinels once a second.
    let outage = Outage::partial("sentinel switch", Duration::from_millis(1_500)).losing(1);
    outage.run(&sentinels.url(), || sentinels.failover(), || ())?;
    let charged = sentinels.primary().command(&["EXISTS", "open:{k}:bucket"]).integer();
    must(charged == 1, || "nobody went over to the new primary".to_owned())?;
    leaves_no_key_behind(sentinels.primary())
}

/// The primary dies, and the sentinels make the replica the primary.
fn sentinel_failover(_: &Places) -> Result<(), String> {
    let sentinels = Sentinels::start();
    let old = sentinels.primary_port_now();
    let outage = Outage::total("sentinel failover", Duration::from_millis(500)).losing(1);
    outage.run(
        &sentinels.url(),
        || {
            sentinels.kill_primary();
        },
        || {
            sentinels.wait_for_primary_other_than(old);
        },
    )?;
    leaves_no_key_behind(sentinels.primary())
}
