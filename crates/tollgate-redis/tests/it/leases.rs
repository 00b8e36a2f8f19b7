//! Units taken ahead: most decisions need no round trip, and no more is admitted.

use crate::server::server;
use std::time::{Duration, Instant};
use tollgate::{Charge, DecidedBy, Decision, ManualClock, Rate, Retry, SlidingWindow, Store, TokenBucket};
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

/// A refusal that is remembered blames the limit that refused, as Redis did.
#[test]
fn of_a_refused_set_each_limit_says_for_itself_whether_it_has_room() {
    server().block_on(async {
        let clock = ManualClock::new();
        clock.advance(Duration::from_secs(1_000));
        let builder = server().builder().prefix("tg-blame").clock(clock.clone());
        let store = builder.lease(Duration::from_secs(1)).open().expect("a store");
        let numbers = |burst| TokenBucket::new(Rate::per_minute(1).expect("a rate"), burst).expect("a limit");
        let wide = store.add("wide", numbers(100)).expect("a limit");
        let narrow = store.add("narrow", numbers(1)).expect("a limit");
        let set = |cost| [Charge::new(&wide, "k").cost(cost), Charge::new(&narrow, "k").cost(cost)];
        assert!(store.check(&set(1)).await.expect("an answer").is_allow());
        let mut remembered = 0;
        for _ in 0..5 {
            let told = store.check(&set(1)).await.expect("an answer");
            remembered += u32::from(told.statuses()[0].decided_by() == DecidedBy::Lease);
            let verdicts: Vec<_> = told.statuses().iter().map(|status| status.is_deny()).collect();
            assert_eq!(verdicts, [false, true], "{told:?}");
            assert!(!told.is_allow());
        }
        assert!(remembered > 0, "every refusal was asked for");
        let told = store.check(&[Charge::new(&narrow, "k").cost(2)]).await.expect("an answer");
        assert_eq!(told.decision(), Decision::Deny(Retry::Never), "more than there ever is");
    });
}

/// What other nodes have taken ahead stays counted through a reset, and the key stays readable.
#[test]
fn a_reset_leaves_what_is_leased_elsewhere() {
    server().block_on(async {
        let clock = ManualClock::new();
        clock.advance(Duration::from_secs(1_000));
        let builder = server().builder().prefix("tg-reset").clock(clock.clone());
        let exact = builder.clone().open().expect("a store");
        let leased = builder.lease(Duration::from_secs(5)).open().expect("a store");
        let numbers =
            SlidingWindow::new(1_000, Duration::from_secs(100), Duration::from_secs(1)).expect("a limit");
        let of_all = exact.add("l", numbers).expect("a limit");
        let here = leased.add("l", numbers).expect("a limit");
        let mut by_lease = 0;
        for _ in 0..200 {
            let told = leased.check(&[Charge::new(&here, "k")]).await.expect("an answer");
            by_lease += u32::from(told.statuses()[0].decided_by() == DecidedBy::Lease);
            clock.advance(Duration::from_millis(5));
        }
        assert!(by_lease > 0, "nothing was taken ahead");
        Store::reset(&exact, &of_all, "k".into()).await.expect("a reset");
        let told = exact.peek(&[Charge::new(&of_all, "k").cost(0)]).await.expect("a readable key");
        let left = told.statuses()[0].remaining();
        assert!(left < 1_000, "what is out is forgotten");
        assert!(leased.check(&[Charge::new(&here, "k")]).await.expect("an answer").is_allow());
    });
}
