//! Keys expire, but not before what they owe is paid: a key that expired would be a fresh bucket.

use crate::server::server;
use std::time::Duration;
use tollgate::{Charge, Rate, TokenBucket};

/// Charges that find a key which lives long enough leave its time alone; those that owe more than that move it.
#[test]
fn a_key_outlives_what_it_owes_and_not_by_much() {
    let store = server().builder().prefix("expiry").open().expect("a store");
    let rate = Rate::per_second(10).expect("a rate");
    let limit = store.add("l", TokenBucket::new(rate, 1_000_000).expect("a limit")).expect("a limit");
    let lives = |key: &str| {
        let name = format!("expiry:{{{key}}}:l");
        Duration::from_millis(server().redis.command(&["PTTL", &name]).integer().unsigned_abs())
    };
    server().block_on(async {
        for cost in [1, 1, 1, 50, 1, 2_000, 1, 20, 400, 1, 100_000, 1] {
            // One key, a set of two, and one that was written the long way before.
            let two = [Charge::new(&limit, "b").cost(cost), Charge::new(&limit, "c").cost(1)];
            let one = store.check(&[Charge::new(&limit, "a").cost(cost)]).await.expect("an answer");
            let two = store.check(&two).await.expect("an answer");
            store.refund(&limit, "d", 1).await.expect("an answer");
            let last = store.check(&[Charge::new(&limit, "d").cost(cost)]).await.expect("an answer");
            for (key, set, charge) in [("a", &one, 0), ("b", &two, 0), ("c", &two, 1), ("d", &last, 0)] {
                assert!(set.is_allow());
                let (owes, lives) = (set.statuses()[charge].reset_after().expect("an end"), lives(key));
                assert!(lives > owes, "{key}: gone in {lives:?}, owes for {owes:?}");
                let most = owes * 5 / 4 + Duration::from_secs(6);
                assert!(lives < most, "{key}: gone in {lives:?}, owes for {owes:?}");
            }
        }
    });
}
