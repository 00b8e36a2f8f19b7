//! What can be switched off, and what stops a gateway that has too much to do.

use crate::stage::{Stage, get, one_rule};
use std::{num::NonZeroUsize, thread, time::Duration};
use testkit::{Arrivals, Upstream, eventually};
use tollgate::{Bounds, Key, ManualClock, MemoryStore};

const LIMITED: &str = "
limits: { one: { fixed_window: { limit: 1, window: 1h } } }
everywhere: [ { name: e, limits: [ { use: one, key: [ip] } ] } ]
routes:
  - name: r
    upstream: up
    rules: [ { name: a, limits: [ { use: one, key: [] }, { bandwidth: { rate: 100/s } } ] } ]
";

/// The global switch: nothing is refused, paced or told, and no store is touched.
#[test]
fn all_rules_can_be_switched_off() {
    let (stage, _) = Stage::still(&format!("enabled: false\n{LIMITED}"));
    for _ in 0..3 {
        let seen = stage.get("/?size=5000");
        assert_eq!((seen.status(), seen.answered().body.len()), (200, 5_000));
        assert!(seen.took() < Duration::from_secs(10));
        assert_eq!((seen.header("ratelimit"), seen.header("ratelimit-policy")), (None, None));
    }
    assert_eq!(stage.left("one", Key::All), 1);
    assert_eq!(stage.decisions.store().keys(), 0);
    stage.reload(LIMITED);
    assert_eq!((stage.get("/").status(), stage.get("/").status()), (200, 429));
    stage.reload(&format!("enabled: false\n{LIMITED}"));
    assert_eq!(stage.get("/").status(), 200);
    stage.reload(LIMITED);
    assert_eq!(stage.get("/").status(), 429, "what was consumed is not forgotten");
}

#[test]
fn a_rule_or_route_that_is_switched_off_is_skipped() {
    let rules = |switch: &str| {
        "limits: { one: { fixed_window: { limit: 1, window: 1h } } }\n".to_owned()
            + &one_rule(&format!("limits: [ {{ use: one, key: [] }} ], enabled: {switch}"))
    };
    let (stage, _) = Stage::still(&rules("false"));
    assert_eq!(stage.times(3, &get("/")), [200, 200, 200]);
    assert_eq!(stage.left("one", Key::All), 1);
    stage.reload(&rules("true"));
    assert_eq!(stage.times(2, &get("/")), [200, 429]);
    let routes = "routes: [ { name: off, enabled: false, upstream: up }, { name: on, when: { path: /on }, upstream: spare } ]";
    stage.reload(routes);
    assert_eq!((stage.get("/").status(), stage.get("/on").text().as_str()), (404, "spare\n"));
}

#[test]
fn no_route_is_a_clear_404_and_costs_nothing() {
    let rules = "
limits: { one: { fixed_window: { limit: 1, window: 1h } } }
everywhere: [ { name: e, limits: [ { use: one, key: [] } ] } ]
routes: [ { name: r, when: { path: /here }, upstream: up } ]
";
    let (stage, _) = Stage::still(rules);
    let seen = stage.get("/there");
    assert_eq!((seen.status(), seen.header("content-type")), (404, Some("application/problem+json")));
    assert!(seen.text().contains("no route takes this request"), "{}", seen.text());
    assert_eq!(stage.left("one", Key::All), 1);
    assert_eq!(stage.times(2, &get("/here")), [200, 429]);
}

/// More at once than the gateway is allowed: 503, with a time to come back at; those under way are not disturbed.
#[test]
fn too_many_in_flight_are_told_to_come_back() {
    let store = MemoryStore::with_clock(Bounds::default(), ManualClock::new());
    let rules = format!(
        "limits: {{ one: {{ fixed_window: {{ limit: 9, window: 1h }} }} }}\n{}",
        one_rule("limits: [ { use: one, key: [] } ]")
    );
    let stage = Stage::with(store.into(), &rules, NonZeroUsize::new(3).expect("three"), Upstream::by_query());
    let address = stage.address();
    let under_way =
        thread::spawn(move || Arrivals::at_once(3).each(|it| it.path("/?delay=700")).play(address));
    eventually("three in flight", || (stage.up.in_flight() == 3).then_some(()));
    let seen = stage.get("/");
    assert_eq!(seen.status(), 503);
    assert_eq!(
        (seen.header("content-type"), seen.header("retry-after")),
        (Some("application/problem+json"), Some("1"))
    );
    assert!(seen.text().contains("temporary-reduced-capacity"), "{}", seen.text());
    assert_eq!(stage.left("one", Key::All), 6, "whoever is turned away at the door pays nothing");
    assert!(under_way.join().expect("a play").iter().all(|seen| seen.status() == 200));
    stage.rests();
    assert_eq!(stage.get("/").status(), 200);
    assert_eq!(stage.gateway.in_flight().refused(), 1);
}
