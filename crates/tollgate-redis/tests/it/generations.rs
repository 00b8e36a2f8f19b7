//! Numbers that change while nodes with old and new ones run side by side.

use crate::server::server;
use std::time::Duration;
use tollgate::{Charge, ManualClock, Rate, TokenBucket};

/// The older node keeps the bucket so empty that the newer one is only refused: its numbers hold all the same.
#[test]
fn a_newer_generation_that_is_only_refused_still_takes_over() {
    server().block_on(async {
        let clock = ManualClock::new();
        let builder = server().builder().clock(clock.clone());
        let (old, new) = (builder.clone().open().expect("a store"), builder.open().expect("a store"));
        let bucket =
            |rate, burst| TokenBucket::new(Rate::per_second(rate).expect("a rate"), burst).expect("a limit");
        let greater = old.add_generation("l", bucket(1_000, 180), 1).expect("a limit");
        let lesser = new.add_generation("l", bucket(400, 60), 2).expect("a limit");
        assert!(old.check(&[Charge::new(&greater, "k").cost(180)]).await.expect("an answer").is_allow());
        let (mut by_old, mut by_new) = (0, 0);
        for _ in 0..3_000 {
            clock.advance(Duration::from_millis(1));
            let told = old.check(&[Charge::new(&greater, "k")]).await.expect("an answer");
            by_old += u32::from(told.is_allow());
            let told = new.check(&[Charge::new(&lesser, "k")]).await.expect("an answer");
            by_new += u32::from(told.is_allow());
        }
        // Three seconds at 400 a second.
        assert!(by_old + by_new <= 1_260, "old {by_old}, new {by_new}");
    });
}
