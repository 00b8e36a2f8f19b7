//! All or nothing: a refused request is charged nowhere, whichever rule refuses it.

use crate::stage::{Stage, get};
use testkit::{Arrival, Arrivals};
use tollgate::Key;

const LIMITS: &str = "
limits:
  everyone: { fixed_window: { limit: 100, window: 1h } }
  wide: { token_bucket: { rate: 1/h, burst: 100 } }
  log: { sliding_log: { limit: 100, window: 1h } }
  leaky: { leaky_bucket: { rate: 1/h, capacity: 100 } }
  smooth: { smooth_bursty: { rate: 1/s, max_burst: 100s, initial: 100 } }
  counter: { sliding_counter: { limit: 100, window: 1h } }
  tight: { fixed_window: { limit: 2, window: 1h } }
  slots: { concurrency: { limit: 5 } }
";

const OTHERS: [(&str, u32); 7] = [
    ("everyone", 100),
    ("wide", 100),
    ("log", 100),
    ("leaky", 100),
    ("smooth", 100),
    ("counter", 100),
    ("slots", 5),
];

/// What is left of each but the tight one.
fn left(stage: &Stage) -> Vec<u32> {
    OTHERS.iter().map(|(name, _)| stage.left(name, Key::All)).collect()
}

#[test]
fn a_refused_request_is_charged_nowhere() {
    let all = "{ use: wide, key: [] }, { use: log, key: [] }, { use: leaky, key: [] }, { use: smooth, key: [] }, { use: counter, key: [] }, { use: slots, key: [] }";
    let tight = "{ use: tight, key: [] }";
    let everywhere = "everywhere: [ { name: all, limits: [ { use: everyone, key: [] } ] } ]";
    let route =
        |rules: &str| format!("{everywhere}\nroutes: [ {{ name: r, upstream: up, rules: [ {rules} ] }} ]");
    let ways = [
        ("in one rule, first", route(&format!("{{ name: a, limits: [ {tight}, {all} ] }}"))),
        ("in one rule, last", route(&format!("{{ name: a, limits: [ {all}, {tight} ] }}"))),
        (
            "a rule before",
            route(&format!("{{ name: a, limits: [ {tight} ] }}, {{ name: b, limits: [ {all} ] }}")),
        ),
        (
            "a rule behind",
            route(&format!("{{ name: a, limits: [ {all} ] }}, {{ name: b, limits: [ {tight} ] }}")),
        ),
        (
            "a rule that diverts",
            route(&format!(
                "{{ name: a, limits: [ {all} ] }}, {{ name: b, limits: [ {tight} ], excess: {{ divert: spare }} }}"
            )),
        ),
        (
            "a rule that degrades",
            route(&format!(
                "{{ name: a, limits: [ {all} ] }}, {{ name: b, limits: [ {tight} ], excess: {{ degrade: {{}} }} }}"
            )),
        ),
        (
            "everywhere",
            format!(
                "everywhere: [ {{ name: t, limits: [ {tight} ] }} , {{ name: all, limits: [ {{ use: everyone, key: [] }} ] }} ]\nroutes: [ {{ name: r, upstream: up, rules: [ {{ name: a, limits: [ {all} ] }} ] }} ]"
            ),
        ),
        (
            "an attribute that is missing",
            route(&format!(
                "{{ name: a, limits: [ {all} ] }}, {{ name: b, limits: [ {{ use: tight, key: [header.k], missing: deny }} ] }}"
            )),
        ),
    ];
    for (way, rules) in ways {
        let (stage, _) = Stage::still(&format!("{LIMITS}{rules}"));
        let good = get("/").header("k", "");
        assert_eq!(stage.ask(good.clone()).status(), 200, "{way}");
        assert_eq!(stage.ask(good.clone()).status(), 200, "{way}");
        stage.rests();
        let before = left(&stage);
        assert_eq!(before, OTHERS.map(|(name, most)| if name == "slots" { most } else { most - 2 }), "{way}");
        let bad = if way.contains("missing") { get("/") } else { good };
        for _ in 0..3 {
            assert_ne!(stage.ask(bad.clone()).text(), "ok\n", "{way}");
        }
        stage.rests();
        assert_eq!(left(&stage), before, "{way}");
        assert_eq!(stage.up.asked().len(), 2, "{way}");
    }
}

/// The first in the file that refuses says what the excess gets, whichever would refuse for longer.
#[test]
fn the_first_rule_that_refuses_says_how() {
    let rules = "
everywhere: [ { name: e, limits: [ { fixed_window: { limit: 3, window: 10h }, key: [] } ], excess: { degrade: { status: 203, body: e } } } ]
routes:
  - name: r
    upstream: up
    rules:
      - { name: a, limits: [ { fixed_window: { limit: 2, window: 1m }, key: [] } ], excess: { degrade: { status: 201, body: a } } }
      - { name: b, limits: [ { fixed_window: { limit: 1, window: 2h }, key: [header.k], missing: skip } ], excess: { degrade: { status: 202, body: b } } }
";
    let (stage, clock) = Stage::still(rules);
    let keyed = get("/").header("k", "1");
    assert_eq!(stage.ask(keyed.clone()).status(), 200);
    assert_eq!(stage.ask(keyed.clone()).status(), 202, "only the last rule refuses");
    assert_eq!(stage.get("/").status(), 200);
    assert_eq!(stage.ask(keyed.clone()).status(), 201, "two rules refuse, the one before speaks");
    clock.advance(std::time::Duration::from_secs(60));
    assert_eq!(stage.get("/").status(), 200);
    assert_eq!(stage.ask(keyed).status(), 203);
}

/// Whatever comes at once, exactly so many pass.
#[test]
fn a_crowd_is_admitted_to_the_last_unit() {
    let rules = "
limits: { most: { fixed_window: { limit: 40, window: 1h } } }
everywhere: [ { name: e, limits: [ { use: most, key: [] } ] } ]
routes: [ { name: r, upstream: up, rules: [ { name: a, limits: [ { fixed_window: { limit: 25, window: 1h }, key: [header.k] } ] } ] } ]
";
    let (stage, _) = Stage::still(rules);
    let crowd = (0..200).map(|number| Arrival::at_ms(0).header("k", if number % 4 == 0 { "a" } else { "b" }));
    let seen = Arrivals::new(crowd).play(stage.address());
    let passed = seen.iter().filter(|seen| seen.status() == 200).count();
    assert_eq!(passed, 40);
    assert_eq!(stage.up.asked().len(), 40);
    assert_eq!(stage.left("most", Key::All), 0);
}
