//! Rules in force on a store: one set, in file order, all or nothing, through changes of the file.

use http::HeaderMap;
use std::{net::IpAddr, sync::Arc, time::Duration};
use tollgate::{Bounds, Charge, Key, ManualClock, MemoryStore, Retry};
use tollgate_rules::{
    DecisionService, Request, RuleFile,
    decision::{Api, Body, Outcome, Shadow, Why},
    parse_rules,
};

type Store = MemoryStore<ManualClock>;

struct Bench {
    clock: ManualClock,
    decisions: DecisionService<Store>,
}

fn file(rules: &str) -> RuleFile {
    let text = format!(
        "version: 1\nupstreams: {{ up: {{ servers: [ \"http://127.0.0.1:9\" ] }}, spare: {{ servers: [ \"http://127.0.0.1:9\" ] }} }}\n{rules}"
    );
    parse_rules(&text, |_| None).unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"))
}

impl Bench {
    fn new(rules: &str) -> Self {
        let clock = ManualClock::new();
        let store = Arc::new(MemoryStore::with_clock(Bounds::default(), clock.clone()));
        Self {
            decisions: DecisionService::new(store, file(rules)).expect("a store in memory keeps it"),
            clock,
        }
    }

    async fn ask(&self, path: &str, headers: &[(&str, &str)]) -> (Outcome, Vec<Shadow>) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = http::HeaderName::from_bytes(name.as_bytes()).expect("a name");
            map.append(name, value.parse().expect("a value"));
        }
        let request = Request {
            method: "GET",
            path,
            query: None,
            host: Some("example.org"),
            headers: &map,
            ip: IpAddr::from([192, 0, 2, 1]),
            at: 0,
        };
        let session = self.decisions.session(Api::Gateway);
        let found = session.rules().program().find(&request);
        assert!(found.route().is_some(), "{path} has a route");
        let decision = session.decide_request(&found, Body::Known).await;
        (decision.outcome, decision.shadows.to_vec())
    }

    async fn passes(&self, path: &str, headers: &[(&str, &str)]) -> bool {
        !matches!(self.ask(path, headers).await.0, Outcome::Refused { .. })
    }

    fn name_of(&self, outcome: &Outcome) -> String {
        let Outcome::Refused { by, .. } = outcome else { return "passed".to_owned() };
        self.decisions.rules().program().rule(*by).rule().name.clone()
    }

    /// What is left of a named limit for a key.
    fn left(&self, limit: usize, key: &str) -> u32 {
        let rules = self.decisions.rules();
        let handle = rules.at(limit, Key::Text(key));
        let status = self.decisions.store().peek(&[Charge::new(handle, key).cost(0)]).expect("an answer");
        status.statuses()[0].remaining()
    }
}

const TWO_RULES: &str = "
limits:
  wide: { token_bucket: { rate: 1/s, burst: 10 } }
  tight: { token_bucket: { rate: 1/s, burst: 2 } }
routes:
  - name: all
    when: { path: /** }
    upstream: up
    rules:
      - { name: first, limits: [ { use: wide, key: [header.k] } ] }
      - { name: second, limits: [ { use: tight, key: [header.k] } ], excess: { divert: spare } }
";

#[tokio::test]
async fn one_limit_that_denies_leaves_the_others_as_they_were() {
    let bench = Bench::new(TWO_RULES);
    let alice = [("k", "alice")];
    assert!(bench.passes("/", &alice).await);
    assert!(bench.passes("/", &alice).await);
    let (outcome, _) = bench.ask("/", &alice).await;
    assert_eq!(bench.name_of(&outcome), "second");
    assert!(
        matches!(outcome, Outcome::Refused { why: Why::Limit { retry: Retry::After(after), .. }, .. } if after == Duration::from_secs(1))
    );
    assert_eq!(bench.left(0, "alice"), 8, "the wide limit was not charged by the refused request");
    assert!(bench.passes("/", &[("k", "bob")]).await, "another key has its own buckets");
}

#[tokio::test]
async fn the_first_rule_in_the_file_that_refuses_says_what_the_excess_gets() {
    let bench = Bench::new(&TWO_RULES.replace("burst: 10", "burst: 2"));
    let alice = [("k", "alice")];
    assert!(bench.passes("/", &alice).await && bench.passes("/", &alice).await);
    let (outcome, _) = bench.ask("/", &alice).await;
    assert_eq!(bench.name_of(&outcome), "first");
}

#[tokio::test]
async fn a_key_with_numbers_of_its_own_has_them_and_nobody_else_has() {
    let bench = Bench::new(
        "
limits:
  per: { fixed_window: { limit: 1, window: 1m }, overrides: { vip: { limit: 3 } } }
routes:
  - name: all
    when: { path: /** }
    upstream: up
    rules: [ { name: r, limits: [ { use: per, key: [header.k] } ] } ]
",
    );
    let mut passed = Vec::new();
    for name in ["vip", "vip", "vip", "vip", "other", "other"] {
        passed.push(bench.passes("/", &[("k", name)]).await);
    }
    assert_eq!(passed, [true, true, true, false, true, false]);
}

#[tokio::test]
async fn who_lacks_the_key_shares_a_bucket_is_let_by_or_is_refused() {
    let rules = |missing: &str| {
        format!(
            "
routes:
  - name: all
    when: {{ path: /** }}
    upstream: up
    rules: [ {{ name: r, limits: [ {{ fixed_window: {{ limit: 1, window: 1m }}, key: [header.k], missing: {missing} }} ] }} ]
"
        )
    };
    let share = Bench::new(&rules("share"));
    assert!(share.passes("/", &[]).await && !share.passes("/", &[]).await);
    assert!(share.passes("/", &[("k", "")]).await, "an empty value is not a missing one");
    let skip = Bench::new(&rules("skip"));
    assert!(skip.passes("/", &[]).await && skip.passes("/", &[]).await);
    let deny = Bench::new(&rules("deny"));
    assert!(matches!(deny.ask("/", &[]).await.0, Outcome::Refused { why: Why::Missing(_), .. }));
}

#[tokio::test]
async fn shadow_rules_charge_only_what_passes_and_refuse_nobody() {
    let bench = Bench::new(
        "
limits:
  dark: { fixed_window: { limit: 1, window: 1m } }
  real: { fixed_window: { limit: 3, window: 1m } }
routes:
  - name: all
    when: { path: /** }
    upstream: up
    rules:
      - { name: shadow, limits: [ { use: dark, key: [header.k] } ], excess: shadow }
      - { name: real, limits: [ { use: real, key: [header.k] } ] }
",
    );
    let alice = [("k", "alice")];
    let mut told = Vec::new();
    for _ in 0..4 {
        let (outcome, shadows) = bench.ask("/", &alice).await;
        let shadow = shadows.first().map(|shadow| shadow.refused_by.is_some());
        told.push((matches!(outcome, Outcome::Pass { .. }), shadow));
    }
    assert_eq!(told, [(true, Some(false)), (true, Some(true)), (true, Some(true)), (false, None)]);
}

#[tokio::test]
async fn the_global_switch_refuses_nothing_and_touches_nothing() {
    let bench = Bench::new(TWO_RULES);
    bench.decisions.reload(file(&format!("enabled: false\n{TWO_RULES}"))).expect("rules");
    for _ in 0..5 {
        assert_eq!(bench.ask("/", &[("k", "alice")]).await.0, Outcome::Skipped);
    }
    assert_eq!(bench.left(1, "alice"), 2);
}

#[tokio::test]
async fn a_changed_file_keeps_what_was_consumed_and_a_bad_one_changes_nothing() {
    let bench = Bench::new(TWO_RULES);
    let alice = [("k", "alice")];
    assert!(bench.passes("/", &alice).await && bench.passes("/", &alice).await);
    // The tight bucket doubles: what was consumed of it, all, stays consumed.
    bench.decisions.reload(file(&TWO_RULES.replace("burst: 2 ", "burst: 4 "))).expect("rules");
    assert!(!bench.passes("/", &alice).await);
    assert_eq!(bench.left(0, "alice"), 8);
    // A limit that is gone and comes back is a new one.
    bench
        .decisions
        .reload(file("routes: [ { name: all, when: { path: /** }, upstream: up } ]"))
        .expect("rules");
    assert!(bench.passes("/", &alice).await);
    bench.decisions.reload(file(TWO_RULES)).expect("rules");
    assert!(bench.passes("/", &alice).await);
}

#[tokio::test]
async fn requests_under_way_end_by_the_rules_they_began_with() {
    let bench = Bench::new(TWO_RULES);
    let old = bench.decisions.session(Api::Gateway);
    bench
        .decisions
        .reload(file("routes: [ { name: all, when: { path: /** }, upstream: up } ]"))
        .expect("rules");
    let headers = HeaderMap::new();
    let ip = IpAddr::from([192, 0, 2, 1]);
    let request = Request { method: "GET", path: "/", query: None, host: None, headers: &headers, ip, at: 0 };
    let found = old.rules().program().find(&request);
    let decision = old.decide_request(&found, Body::Known).await;
    assert_eq!(decision.stands.len(), 2, "its limits are still there: {:?}", decision.outcome);
}

/// Freeing many rules takes a while, which no request that ends should pay for.
#[test]
fn the_last_session_leaves_freeing_replaced_rules_to_another_thread() {
    let bench = Bench::new(TWO_RULES);
    let old = bench.decisions.session(Api::Gateway);
    let rules = Arc::downgrade(&bench.decisions.rules());
    bench.decisions.reload(file(&TWO_RULES.replace("burst: 2 ", "burst: 4 "))).expect("rules");
    assert!(bench.decisions.free_retired(), "a session decides by them");
    drop(old);
    assert!(rules.upgrade().is_some(), "the session's thread has freed nothing");
    assert!(!bench.decisions.free_retired());
    assert!(rules.upgrade().is_none());
}

#[tokio::test]
async fn whoever_may_wait_is_held_in_order_and_whoever_leaves_gives_the_turn_back() {
    let bench = Arc::new(Bench::new(
        "
routes:
  - name: all
    when: { path: /** }
    upstream: up
    rules: [ { name: r, limits: [ { token_bucket: { rate: 10/s, burst: 1 }, key: [] } ], excess: { wait: 250ms } } ]
",
    ));
    assert!(bench.passes("/", &[]).await);
    let waiting = |bench: &Arc<Bench>| {
        let bench = Arc::clone(bench);
        tokio::spawn(async move { bench.ask("/", &[]).await.0 })
    };
    let first = waiting(&bench);
    tokio::task::yield_now().await;
    let second = waiting(&bench);
    tokio::task::yield_now().await;
    // The third would wait 300 ms.
    assert!(!bench.passes("/", &[]).await);
    second.abort();
    assert!(second.await.is_err());
    let third = waiting(&bench);
    tokio::task::yield_now().await;
    bench.clock.advance(Duration::from_millis(100));
    assert_eq!(first.await.expect("no panic"), Outcome::Pass { waited: Duration::from_millis(100) });
    bench.clock.advance(Duration::from_millis(100));
    assert_eq!(third.await.expect("no panic"), Outcome::Pass { waited: Duration::from_millis(200) });
}

#[tokio::test]
async fn slots_are_held_as_long_as_the_decision_is() {
    let bench = Bench::new(
        "
routes:
  - name: all
    when: { path: /** }
    upstream: up
    rules: [ { name: r, limits: [ { concurrency: { limit: 1, max_hold: 1m }, key: [] } ] } ]
",
    );
    let headers = HeaderMap::new();
    let ip = IpAddr::from([192, 0, 2, 1]);
    let request = Request { method: "GET", path: "/", query: None, host: None, headers: &headers, ip, at: 0 };
    let session = bench.decisions.session(Api::Gateway);
    let found = session.rules().program().find(&request);
    let held = session.decide_request(&found, Body::Known).await;
    assert_eq!(held.permits.len(), 1);
    let refused = session.decide_request(&found, Body::Known).await;
    assert!(matches!(
        refused.outcome,
        Outcome::Refused { why: Why::Limit { retry: Retry::WhenReleased, .. }, .. }
    ));
    drop(held);
    assert!(matches!(session.decide_request(&found, Body::Known).await.outcome, Outcome::Pass { .. }));
}

/// Between a limit's change and its rules' coming into force, requests are still ruled on by those before: what they get of
/// a limit that is one of slots by now, none of them holds.
#[tokio::test]
async fn slots_of_a_limit_that_had_none_are_not_lost() {
    let rules = |limit: &str| {
        format!(
            "
limits: {{ some: {{ {limit} }} }}
routes:
  - {{ name: all, when: {{ path: /** }}, upstream: up, rules: [ {{ name: r, limits: [ {{ use: some, key: [] }} ] }} ] }}
"
        )
    };
    let bench = Bench::new(&rules("token_bucket: { rate: 1/s, burst: 100 }"));
    let before = bench.decisions.session(Api::Gateway);
    bench.decisions.reload(file(&rules("concurrency: { limit: 1, max_hold: 1h }"))).expect("rules");
    let headers = HeaderMap::new();
    let ip = IpAddr::from([192, 0, 2, 1]);
    let request = Request { method: "GET", path: "/", query: None, host: None, headers: &headers, ip, at: 0 };
    for _ in 0..3 {
        let found = before.rules().program().find(&request);
        let decision = before.decide_request(&found, Body::Known).await;
        assert!(matches!(decision.outcome, Outcome::Pass { .. }), "{:?}", decision.outcome);
    }
    assert!(bench.passes("/", &[]).await);
}

/// Keys in memory are kept where there is room for them, so another room is another limit.
#[tokio::test]
async fn a_limit_with_other_room_begins_anew() {
    let rules = |room: u32| TWO_RULES.replace("burst: 2 } }", &format!("burst: 2 }}, max_keys: {room} }}"));
    let bench = Bench::new(&rules(10));
    let alice = [("k", "alice")];
    assert!(bench.passes("/", &alice).await && bench.passes("/", &alice).await);
    bench.decisions.reload(file(&rules(10))).expect("rules");
    assert!(!bench.passes("/", &alice).await);
    bench.decisions.reload(file(&rules(20))).expect("rules");
    assert_eq!((bench.left(0, "alice"), bench.left(1, "alice")), (8, 2));
}

#[tokio::test]
async fn a_body_of_unknown_length_cannot_slip_by_a_limit_on_lengths() {
    let bench = Bench::new(
        "
routes:
  - name: all
    when: { path: /** }
    upstream: up
    rules: [ { name: r, limits: [ { token_bucket: { rate: 10/s, burst: 1000 }, key: [], cost: content-length } ] } ]
",
    );
    let ask = async |length: Option<&str>, body: Body| {
        let mut headers = HeaderMap::new();
        if let Some(length) = length {
            headers.insert("content-length", length.parse().expect("a value"));
        }
        let ip = IpAddr::from([192, 0, 2, 1]);
        let request =
            Request { method: "POST", path: "/", query: None, host: None, headers: &headers, ip, at: 0 };
        let session = bench.decisions.session(Api::Gateway);
        let found = session.rules().program().find(&request);
        session.decide_request(&found, body).await.outcome
    };
    assert!(matches!(ask(Some("900"), Body::Known).await, Outcome::Pass { .. }));
    assert!(matches!(ask(Some("900"), Body::Known).await, Outcome::Refused { why: Why::Limit { .. }, .. }));
    assert!(matches!(ask(None, Body::Known).await, Outcome::Pass { .. }), "no body costs nothing");
    assert!(matches!(ask(None, Body::Open).await, Outcome::Refused { why: Why::Length, .. }));
    assert!(matches!(
        ask(Some("5000"), Body::Known).await,
        Outcome::Refused { why: Why::Limit { retry: Retry::Never, .. }, .. }
    ));
}
