//! The clock steps forward and back. Time before the stored one counts as the stored one, key by key: a step back freezes a
//! bucket that was charged in between until the time comes again, and does nothing to others; a step forward is time passed.

use crate::{
    Case,
    figures::say,
    load::{ends, runtime},
    places::{Places, must, patient},
};
use std::time::Duration;
use tollgate::{
    Charge, FixedWindow, Limit, ManualClock, Rate, SlidingCounter, SlidingLog, Time, TokenBucket,
};

pub(crate) const CASES: &[Case] = &[("clock steps", steps)];

fn steps(places: &Places) -> Result<(), String> {
    let runtime = runtime();
    runtime.block_on(async {
        let second = Duration::from_secs(1);
        let limits: [(&str, Limit); 4] = [
            ("bucket", TokenBucket::new(Rate::per_second(10).expect("a rate"), 10).expect("a limit").into()),
            ("window", FixedWindow::new(10, second).expect("a limit").into()),
            ("log", SlidingLog::new(10, second).expect("a limit").into()),
            ("counter", SlidingCounter::new(10, second).expect("a limit").into()),
        ];
        for (name, numbers) in limits {
            let clock = ManualClock::new();
            let store = patient(&places.server().url()).clock(clock.clone()).open().expect("an address");
            let limit = store.add(name, numbers).expect("a limit");
            let at = |seconds: u64| clock.set(Time::ZERO + Duration::from_secs(seconds));
            let drain = async |key: &str| {
                let mut admitted = 0;
                for _ in 0..50 {
                    let told = store.check(&[Charge::new(&limit, key)]).await.map_err(|e| e.to_string())?;
                    admitted += u32::from(told.is_allow());
                }
                Ok::<_, String>(admitted)
            };
            let mut admitted = Vec::new();
            at(1_000);
            admitted.push(drain("k").await?);
            // Back by ten minutes, and to and fro: no unit is given twice.
            at(400);
            admitted.push(drain("k").await?);
            for step in 0..10 {
                at(1_000 - step % 2);
                admitted.push(drain("k").await?);
            }
            must(admitted.iter().sum::<u32>() == 10, || {
                format!("{name}: admitted {admitted:?} by a step back")
            })?;
            // Somebody who was not charged meanwhile knows nothing of it.
            at(400);
            must(drain("other").await? == 10, || format!("{name}: another key is frozen too"))?;
            // What is told meanwhile is how long until the stored time and then some, and it holds.
            at(1_000);
            let told = store.check(&[Charge::new(&limit, "k")]).await.map_err(|e| e.to_string())?;
            let after = told.retry_after().ok_or("no time was told")?;
            clock.advance(after);
            let told = store.check(&[Charge::new(&limit, "k")]).await.map_err(|e| e.to_string())?;
            must(told.is_allow(), || format!("{name}: told {after:?}, and refused then"))?;
            // Forward by a year: full, and not fuller.
            at(1_000 + 365 * 86_400);
            must(drain("k").await? == 10, || format!("{name}: not full after a year"))?;
        }
        say(
            "clock steps",
            "4 kinds of limit: back 600 s and to and fro, 0 more admitted; forward a year, 1 burst",
        );
        Ok::<_, String>(())
    })?;
    ends(&runtime)
}
