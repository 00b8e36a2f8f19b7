//! A server that forgets the script under pipelined load: every charge is counted exactly once.

use crate::{
    Case,
    figures::{Latency, millis, say},
    load::{Passed, Sample, ends, runtime},
    places::{Places, must, patient, remaining},
    seconds,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use testkit::RedisServer;
use tokio::task::JoinSet;
use tollgate::{Charge, FixedWindow};
use tollgate_redis::{RedisLimit, RedisStore};

pub(crate) const CASES: &[Case] = &[("script flush", script_flush)];

fn script_flush(_: &Places) -> Result<(), String> {
    let server = RedisServer::start();
    let runtime = runtime();
    runtime.block_on(async {
        let store = patient(&server.url()).open().expect("an address");
        for (name, quota) in [("plenty", 10_000_000), ("scarce", 500)] {
            let limit = store.add(name, FixedWindow::forever(quota).expect("a limit")).expect("a limit");
            let (over, begun) = (Arc::new(AtomicBool::new(false)), Instant::now());
            let callers = callers(&store, &limit, "k", &over);
            let mut flushes = 0;
            while begun.elapsed() < seconds(0.5, 5.0) {
                server.command(&["SCRIPT", "FLUSH"]).done();
                flushes += 1;
                // Calls are made between two flushes.
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
            over.store(true, Relaxed);
            let samples = heard(callers).await?;
            let admitted = samples.iter().filter(|sample| sample.is_allow()).count() as u32;
            let used = quota - remaining(&store, &limit, "k").await?;
            must(admitted == used, || format!("{name}: {admitted} admitted, {used} charged"))?;
            must(samples.len() > 500, || format!("{name}: only {} calls", samples.len()))?;
            let Latency { p50, p99, max } = Latency::of(samples.iter());
            say(
                "script flush",
                &format!(
                    "{name:7} {} calls, {flushes} flushes: {admitted} admitted, {used} charged; ms {} / {} / {}",
                    samples.len(),
                    millis(p50),
                    millis(p99),
                    millis(max)
                ),
            );
        }
        must(store.health().failed == 0, || format!("{:?}", store.health()))
    })?;
    ends(&runtime)
}

/// Who charges as fast as they can, many at a time.
pub(crate) fn callers(
    store: &RedisStore,
    limit: &RedisLimit,
    key: &str,
    over: &Arc<AtomicBool>,
) -> JoinSet<Vec<Sample>> {
    let mut callers = JoinSet::new();
    let begun = Instant::now();
    for _ in 0..32 {
        let (store, limit, key, over) = (store.clone(), limit.clone(), key.to_owned(), Arc::clone(over));
        callers.spawn(async move {
            let mut samples = Vec::new();
            while !over.load(Relaxed) {
                let (at, asked) = (begun.elapsed(), Instant::now());
                let told = store.check(&[Charge::new(&limit, key.as_str())]).await;
                let told = told.map_err(|error| error.to_string()).map(|set| {
                    let passed = if set.is_allow() { Passed::Yes } else { Passed::No };
                    (passed, set.statuses()[0].decided_by())
                });
                samples.push(Sample { at, took: asked.elapsed(), told });
                // A refusal costs nothing, and nobody asks again at once.
                tokio::task::yield_now().await;
            }
            samples
        });
    }
    callers
}

/// What they were told: no errors.
pub(crate) async fn heard(mut callers: JoinSet<Vec<Sample>>) -> Result<Vec<Sample>, String> {
    let mut all = Vec::new();
    loop {
        match tokio::time::timeout(Duration::from_secs(20), callers.join_next()).await {
            Err(_) => return Err("a caller is stuck".to_owned()),
            Ok(None) => break,
            Ok(Some(samples)) => all.extend(samples.map_err(|error| error.to_string())?),
        }
    }
    match all.iter().find_map(|sample| sample.told.as_ref().err()) {
        Some(error) => Err(format!("a call failed: {error}")),
        None => Ok(all),
    }
}
