//! The write has landed, and the answer does not come, or comes late: charged at most once, never asked again; and what is
//! heard of too late is taken back.

use crate::{
    Case,
    figures::say,
    load::{POLICIES, ends, name_of, runtime},
    places::{Places, must, patient, remaining, until_remaining},
};
use std::{
    thread,
    time::{Duration, Instant},
};
use testkit::{Proxy, RedisServer};
use tollgate::{
    Charge, Concurrency, DecidedBy, FixedWindow, Limit, ManualClock, OnFailure, Rate, TokenBucket,
};
use tollgate_redis::{RedisLimit, RedisStore};

pub(crate) const CASES: &[Case] =
    &[("landed, then cut", cut), ("landed, never heard", never_heard), ("heard too late", too_late)];

const PATIENCE: Duration = Duration::from_millis(100);
const QUOTA: u32 = 1_000;

/// A node behind a proxy, and one that sees what really happened.
struct Pair {
    server: RedisServer,
    proxy: Proxy,
    policy: OnFailure,
}

impl Pair {
    fn new(policy: OnFailure) -> Self {
        let server = RedisServer::start();
        let proxy = Proxy::start(server.port());
        Self { server, proxy, policy }
    }

    /// The node and the witness, with the same limit.
    fn stores(&self, numbers: impl Into<Limit>, clock: Option<ManualClock>) -> [(RedisStore, RedisLimit); 2] {
        let numbers = numbers.into();
        let node = RedisStore::builder(&self.proxy.url()).on_failure(self.policy).timeout(PATIENCE);
        [node, patient(&self.server.url()).prefix("tg")].map(|builder| {
            let builder = match clock.clone() {
                Some(clock) => builder.clock(clock),
                None => builder,
            };
            let store = builder.open().expect("an address");
            let limit = store.add("limit", numbers.clone()).expect("a limit");
            (store, limit)
        })
    }
}

fn quota() -> FixedWindow {
    FixedWindow::forever(QUOTA).expect("a limit")
}

/// One charge, and who decided it.
async fn charge((store, limit): &(RedisStore, RedisLimit)) -> Result<(bool, DecidedBy), String> {
    let told = store.check(&[Charge::new(limit, "k")]).await.map_err(|error| error.to_string())?;
    Ok((told.is_allow(), told.statuses()[0].decided_by()))
}

/// Under every policy, each with servers of its own, at the same time.
fn each_policy(run: impl Fn(OnFailure) -> Result<(), String> + Sync) -> Result<(), String> {
    thread::scope(|scope| {
        let running = POLICIES.map(|policy| {
            (policy, {
                let run = &run;
                scope.spawn(move || run(policy))
            })
        });
        running.into_iter().try_for_each(|(policy, it)| {
            let told = it.join().unwrap_or_else(|_| Err("panicked".to_owned()));
            told.map_err(|why| format!("{}: {why}", name_of(policy)))
        })
    })
}

/// The connection goes when the answer is on its way.
fn cut(_: &Places) -> Result<(), String> {
    each_policy(|policy| {
        let pair = Pair::new(policy);
        let runtime = runtime();
        let figures = runtime.block_on(async {
            let [node, witness] = pair.stores(quota(), None);
            let (mut by_store, mut by_policy) = (0, 0);
            for _ in 0..5 {
                // What is told no because there is no connection yet was not sent, and so not charged.
                while charge(&node).await?.1 != DecidedBy::Store {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                pair.proxy.cut_after_request();
                let (_, by) = charge(&node).await?;
                must(by == DecidedBy::Failure(policy), || format!("decided by {by:?}"))?;
                (by_store, by_policy) = (by_store + 1, by_policy + 1);
            }
            let used = QUOTA - remaining(&witness.0, &witness.1, "k").await?;
            must(used >= by_store && used <= by_store + by_policy, || format!("{used} charged of 10"))?;
            Ok::<_, String>(format!(
                "{used} charged: {by_store} answered, {by_policy} cut off after the write"
            ))
        })?;
        ends(&runtime)?;
        say("landed, then cut", &format!("{:7} {figures}", name_of(policy)));
        Ok(())
    })
}

/// Requests arrive, answers do not, and the connection stays.
fn never_heard(_: &Places) -> Result<(), String> {
    each_policy(|policy| {
        let pair = Pair::new(policy);
        let runtime = runtime();
        let figures = runtime.block_on(async {
            let [node, witness] = pair.stores(quota(), None);
            must(charge(&node).await?.0, || "refused a full quota".to_owned())?;
            pair.proxy.drop_replies();
            let begun = Instant::now();
            for _ in 0..3 {
                must(charge(&node).await?.1 == DecidedBy::Failure(policy), || {
                    "not by the policy".to_owned()
                })?;
            }
            let took = begun.elapsed();
            // Long enough for the connection to be given up, and for whoever would ask again to do so.
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            pair.proxy.pass();
            let used = QUOTA - remaining(&witness.0, &witness.1, "k").await?;
            must((1..=4).contains(&used), || format!("{used} charged by 4 calls"))?;
            Ok::<_, String>(format!("{used} charged by 4 calls, 3 of them unheard, in {took:.0?}"))
        })?;
        ends(&runtime)?;
        say("landed, never heard", &format!("{:7} {figures}", name_of(policy)));
        Ok(())
    })
}

/// The answer comes when the caller has gone on without it.
fn too_late(_: &Places) -> Result<(), String> {
    each_policy(|policy| {
        let pair = Pair::new(policy);
        let runtime = runtime();
        let figures = runtime.block_on(async {
            let [node, witness] = pair.stores(quota(), None);
            must(charge(&node).await?.0, || "refused a full quota".to_owned())?;
            pair.proxy.delay(Duration::from_millis(150));
            must(charge(&node).await?.1 == DecidedBy::Failure(policy), || "not by the policy".to_owned())?;
            let landed = until_remaining(&witness.0, &witness.1, "k", QUOTA - 2).await?;
            let back = until_remaining(&witness.0, &witness.1, "k", QUOTA - 1).await?;
            Ok::<_, String>(format!("landed after {landed:.0?} more, taken back {back:.0?} later"))
        })?;
        ends(&runtime)?;
        say("heard too late", &format!("{:7} {figures}", name_of(policy)));
        Ok(())
    })?;
    slot_comes_back()?;
    over_admitted()
}

/// A slot that was taken for nobody does not wait for its `max_hold`.
fn slot_comes_back() -> Result<(), String> {
    let pair = Pair::new(OnFailure::Closed);
    let runtime = runtime();
    runtime.block_on(async {
        let slots = Concurrency::new(3, Duration::from_secs(60)).expect("a limit");
        let [node, witness] = pair.stores(slots, None);
        // Connected before it is slow.
        remaining(&node.0, &node.1, "k").await?;
        pair.proxy.delay(Duration::from_millis(150));
        charge(&node).await?;
        until_remaining(&witness.0, &witness.1, "k", 2).await?;
        let back = until_remaining(&witness.0, &witness.1, "k", 3).await?;
        say("heard too late", &format!("a slot was given back {back:.0?} after it was taken"));
        Ok::<_, String>(())
    })?;
    ends(&runtime)
}

/// What is taken back late may have been paid by time meanwhile: then somebody else's unit comes back in its place, one for
/// every answer that was late.
fn over_admitted() -> Result<(), String> {
    let pair = Pair::new(OnFailure::Closed);
    let runtime = runtime();
    runtime.block_on(async {
        let clock = ManualClock::new();
        let bucket = TokenBucket::new(Rate::per_second(1).expect("a rate"), 1).expect("a limit");
        let [node, witness] = pair.stores(bucket, Some(clock.clone()));
        remaining(&node.0, &node.1, "k").await?;
        pair.proxy.delay(Duration::from_millis(300));
        must(!charge(&node).await?.0, || "admitted, though closed".to_owned())?;
        until_remaining(&witness.0, &witness.1, "k", 0).await?;
        // Time pays for the late one, and another goes.
        clock.advance(Duration::from_secs(1));
        must(charge(&witness).await?.0, || "refused a full bucket".to_owned())?;
        // By then the late answer was heard, and its charge taken back if it ever is.
        tokio::time::sleep(Duration::from_millis(1_000)).await;
        let again = u32::from(charge(&witness).await?.0);
        say(
            "heard too late",
            &format!("{again} above the limit after a late answer whose unit time had paid for"),
        );
        must(again == 0, || format!("{again} above the limit"))
    })?;
    ends(&runtime)
}
