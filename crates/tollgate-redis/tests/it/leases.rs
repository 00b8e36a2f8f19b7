//! Units taken ahead: most decisions need no round trip, and no more is admitted.

use crate::server::server;
use std::time::{Duration, Instant};
use tollgate::{Charge, DecidedBy, Rate, TokenBucket};
use tollgate_redis::{RedisLimit, RedisStore};

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    admitted: u64,
    asked: u64,
    local: u64,
}

/// Asks as often as it can for a second.
async fn hammer(store: RedisStore, limit: RedisLimit) -> Tally {
    let mut tally = Tally::default();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(1) {
        let told = store.check(&[Charge::new(&limit, "hot")]).await.expect("an answer");
        tally.asked += 1;
        tally.admitted += u64::from(told.is_allow());
        tally.local += u64::from(told.statuses()[0].decided_by() == DecidedBy::Lease);
        tokio::task::yield_now().await;
    }
    tally
}

/// Four nodes that say that they are two.
fn four_nodes(name: &str, numbers: TokenBucket) -> Tally {
    server().block_on(async {
        let prefix = format!("tg-{name}-{}", std::process::id());
        let node = || server().builder().prefix(&prefix).nodes(2).lease(Duration::from_millis(100)).open();
        let nodes = (0..4).map(|_| {
            let store = node().expect("an address");
            let limit = store.add("limit", numbers).expect("a limit");
            tokio::spawn(hammer(store, limit))
        });
        let mut all = Tally::default();
        for node in nodes.collect::<Vec<_>>() {
            let one = node.await.expect("a tally");
            all.admitted += one.admitted;
            all.asked += one.asked;
            all.local += one.local;
        }
        all
    })
}

#[test]
fn a_hot_key_is_decided_here_and_never_above_its_limit() {
    let plenty =
        TokenBucket::new(Rate::per_second(10_000_000).expect("a rate"), 10_000_000).expect("a limit");
    let tally = four_nodes("plenty", plenty);
    assert_eq!(tally.admitted, tally.asked);
    assert!(tally.local * 10 > tally.asked * 9, "{tally:?}");

    let scarce = TokenBucket::new(Rate::per_second(1_000).expect("a rate"), 1_000).expect("a limit");
    let began = Instant::now();
    let tally = four_nodes("scarce", scarce);
    let most = 1_000.0 + 1_000.0 * began.elapsed().as_secs_f64();
    assert!((tally.admitted as f64) <= most, "{tally:?} of {most}");
    assert!((tally.admitted as f64) > 0.8 * most, "{tally:?} of {most}");
}
