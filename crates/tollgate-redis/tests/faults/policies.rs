//! A refusal by Redis is an answer: no policy is asked about it, however many there are.

use crate::{
    Case,
    figures::say,
    load::{POLICIES, name_of, runtime},
    places::{Places, must, patient},
};
use tollgate::{Charge, Concurrency, DecidedBy, FixedWindow, Limit, OnFailure, Rate, TokenBucket};

pub(crate) const CASES: &[Case] = &[("denials", denials)];

/// The fallback of a peer was invoked on normal denials, and let everything pass.
fn denials(places: &Places) -> Result<(), String> {
    let hour = std::time::Duration::from_secs(3_600);
    for policy in POLICIES {
        let runtime = runtime();
        runtime.block_on(async {
            let store = patient(&places.server().url()).on_failure(policy).open().expect("an address");
            let limits: [Limit; 3] = [
                TokenBucket::new(Rate::new(1, hour).expect("a rate"), 5).expect("a limit").into(),
                FixedWindow::forever(5).expect("a limit").into(),
                Concurrency::new(5, hour).expect("a limit").into(),
            ];
            let mut admitted = 0;
            for (number, numbers) in limits.into_iter().enumerate() {
                let limit = store.add(&format!("limit-{number}"), numbers).expect("a limit");
                for cost in [1, 1, 1, 1, 1, 1, 1, 6, 1].into_iter().cycle().take(300) {
                    let told = store.check(&[Charge::new(&limit, "k").cost(cost)]).await;
                    let told = told.map_err(|error| error.to_string())?;
                    let by = told.statuses()[0].decided_by();
                    must(by == DecidedBy::Store, || format!("decided by {by:?}"))?;
                    admitted += u32::from(told.is_allow());
                }
            }
            must(admitted == 15, || format!("{admitted} admitted, not 15"))?;
            let health = store.health();
            must(health.without_redis == 0 && health.failed == 0, || format!("{health:?}"))?;
            say("denials", &format!("{:7} 885 of 900 refused, none of them by the policy", name_of(policy)));
            Ok::<_, String>(())
        })?;
        crate::load::ends(&runtime)?;
    }
    mixed(places)
}

/// A set of limits with different policies is one set: a closed one refuses it, and then a local one is not charged.
fn mixed(_: &Places) -> Result<(), String> {
    let server = testkit::RedisServer::start();
    let runtime = runtime();
    runtime.block_on(async {
        let store = patient(&server.url()).on_failure(OnFailure::Local).open().expect("an address");
        let quota = || FixedWindow::forever(3).expect("a limit");
        let local = store.add("local", quota()).expect("a limit");
        let closed = store.add("closed", quota()).expect("a limit").on_failure(OnFailure::Closed);
        let open = store.add("open", quota()).expect("a limit").on_failure(OnFailure::Open);
        server.kill();
        let sets = [(vec![&local, &closed], 0), (vec![&local, &open], 3), (vec![&open], 10)];
        for (limits, expected) in sets {
            let charges: Vec<_> = limits.iter().map(|limit| Charge::new(*limit, "k")).collect();
            let mut admitted = 0;
            for _ in 0..10 {
                let told = store.check(&charges).await.map_err(|error| error.to_string())?;
                admitted += u32::from(told.is_allow());
                let by_policy = |it: &tollgate::Status| matches!(it.decided_by(), DecidedBy::Failure(_));
                must(told.statuses().iter().all(by_policy), || format!("{told:?}"))?;
            }
            must(admitted == expected, || format!("{admitted} of 10 admitted, not {expected}: {limits:?}"))?;
        }
        Ok::<_, String>(())
    })?;
    say("denials", "mixed   a closed limit refuses the set, and then a local one is not charged");
    crate::load::ends(&runtime)
}
