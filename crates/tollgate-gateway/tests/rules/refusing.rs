//! What the excess gets: a refusal in every style, an answer of the file's own, another upstream; and what headers tell.

use crate::stage::{Stage, get, one_rule};
use serde_json::Value;
use sfv::{BareItem, ListEntry, Parser};
use std::time::Duration;
use testkit::{Canned, Seen, Upstream};
use tollgate::{Bounds, Key, ManualClock, MemoryStore};

/// One a minute, for everybody together.
const ONE: &str = "limits: [ { fixed_window: { limit: 1, window: 1m }, key: [] } ]";

/// The second answer of two.
fn refused(rules: &str) -> Seen {
    let (stage, _) = Stage::still(rules);
    assert_eq!(stage.get("/").status(), 200);
    let seen = stage.get("/");
    assert_eq!(stage.up.asked().len(), 1, "what is refused does not reach the upstream");
    seen
}

fn json(seen: &Seen) -> Value {
    serde_json::from_str(&seen.text()).unwrap_or_else(|error| panic!("{error}: {}", seen.text()))
}

/// A list of texts with whole numbers beside them, by the rules of structured fields.
fn listed(seen: &Seen, name: &str) -> Vec<(String, Vec<(String, i64)>)> {
    let lines = seen.answered().headers.iter().filter(|(it, _)| it.eq_ignore_ascii_case(name));
    let value = lines.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", ");
    let list: sfv::List =
        Parser::new(&value).parse().unwrap_or_else(|error| panic!("{name}: {value}: {error}"));
    let entry = |entry: ListEntry| {
        let ListEntry::Item(item) = entry else { panic!("{value}") };
        let BareItem::String(name) = item.bare_item else { panic!("{value}") };
        let numbers = item.params.into_iter().filter_map(|(key, value)| match value {
            BareItem::Integer(number) => Some((key.as_str().to_owned(), i64::from(number))),
            _ => None,
        });
        (name.as_str().to_owned(), numbers.collect())
    };
    list.into_iter().map(entry).collect()
}

fn number(seen: &Seen, name: &str) -> u64 {
    let text = seen.header(name).unwrap_or_else(|| panic!("no {name}: {:?}", seen.answered().headers));
    text.parse().unwrap_or_else(|_| panic!("{name}: {text}"))
}

#[test]
fn a_refusal_is_a_problem_that_says_what_and_when() {
    let seen = refused(&one_rule(ONE));
    assert_eq!(seen.status(), 429);
    assert_eq!(seen.header("content-type"), Some("application/problem+json"));
    assert_eq!(number(&seen, "retry-after"), 60);
    let body = json(&seen);
    assert_eq!(body["status"], 429);
    assert_eq!(body["retry_after"], 60);
    assert_eq!(body["violated-policies"], serde_json::json!(["only"]));
    assert!(body["type"].as_str().is_some_and(|kind| kind.ends_with("#quota-exceeded")), "{body}");
}

#[test]
fn a_refusal_reads_as_soul_or_plainly_where_the_file_says_so() {
    let seen = refused(&format!("refusal: soul\n{}", one_rule(ONE)));
    assert_eq!((seen.status(), seen.header("content-type")), (429, Some("application/json")));
    let message = "You have been restricted, please try again later!";
    assert_eq!(json(&seen), serde_json::json!({ "code": 429, "message": message, "data": null }));
    let seen = refused(&format!("refusal: plain\n{}", one_rule(ONE)));
    assert_eq!((seen.status(), seen.header("content-type")), (429, Some("text/plain; charset=utf-8")));
    assert_eq!(seen.text(), "Too many requests (only). Please try again in 60 seconds.\n");
    assert_eq!(number(&seen, "retry-after"), 60);
}

#[test]
fn a_refusal_is_what_the_rule_spells_out() {
    let own = "excess: { reject: { status: 509, body: \"<p>Later</p>\", content_type: text/html } }";
    let seen = refused(&one_rule(&format!("{ONE}, {own}")));
    assert_eq!((seen.status(), seen.header("content-type")), (509, Some("text/html")));
    assert_eq!(seen.text(), "<p>Later</p>");
    assert_eq!(number(&seen, "retry-after"), 60, "when to come back is told in any case");

    let seen = refused(&one_rule(&format!("{ONE}, excess: {{ reject: {{ body: Later }} }}")));
    assert_eq!((seen.status(), seen.header("content-type")), (429, Some("text/plain; charset=utf-8")));
    assert_eq!(seen.text(), "Later");
}

/// As nginx's `limit_req_status 503`: the body agrees with the status.
#[test]
fn another_status_alone_is_in_the_body_too() {
    let seen = refused(&one_rule(&format!("{ONE}, excess: {{ reject: {{ status: 503 }} }}")));
    assert_eq!((seen.status(), seen.header("content-type")), (503, Some("application/problem+json")));
    assert_eq!(json(&seen)["status"], 503);
    let soul =
        format!("refusal: soul\n{}", one_rule(&format!("{ONE}, excess: {{ reject: {{ status: 503 }} }}")));
    let seen = refused(&soul);
    assert_eq!((seen.status(), &json(&seen)["code"]), (503, &Value::from(503)));
}

#[test]
fn a_status_without_a_body_has_none() {
    for status in [204, 304] {
        for excess in ["reject", "degrade"] {
            let excess = format!("excess: {{ {excess}: {{ status: {status} }} }}");
            let seen = refused(&one_rule(&format!("{ONE}, {excess}")));
            assert_eq!(seen.status(), status);
            assert_eq!((seen.text().as_str(), seen.header("content-type")), ("", None), "{status}");
        }
    }
}

#[test]
fn degraded_is_answered_as_if_all_were_well() {
    let own = "excess: { degrade: { body: \"[]\", content_type: application/json } }";
    let seen = refused(&one_rule(&format!("{ONE}, {own}")));
    assert_eq!((seen.status(), seen.header("content-type")), (200, Some("application/json")));
    assert_eq!(seen.text(), "[]");
    assert_eq!(seen.header("retry-after"), None);
}

#[test]
fn diverted_goes_to_the_other_upstream_and_is_charged_nothing() {
    let rules = "limits: { one: { token_bucket: { rate: 1/m, burst: 1 } }, many: { token_bucket: { rate: 1/m, burst: 9 } } }\n";
    let limits = "limits: [ { use: many, key: [] }, { use: one, key: [] } ], excess: { divert: spare }";
    let (stage, clock) = Stage::still(&format!("{rules}{}", one_rule(limits)));
    assert_eq!(stage.get("/a?echo").status(), 200);
    let seen = stage.get("/b?x=1");
    assert_eq!((seen.status(), seen.text().as_str()), (200, "spare\n"));
    assert_eq!(seen.header("ratelimit"), None, "nothing was charged");
    assert_eq!(stage.spare.asked()[0].target, "/b?x=1");
    assert_eq!(stage.left("many", Key::All), 8);
    clock.advance(Duration::from_secs(60));
    assert_eq!(stage.get("/").text(), "ok\n");
}

#[test]
fn grpc_is_refused_in_its_own_way_whatever_the_rule_spells_out() {
    let ways = ["reject", "{ reject: { status: 503, body: Later } }", "{ degrade: { body: \"[]\" } }"];
    for way in ways {
        let (stage, _) = Stage::still(&one_rule(&format!("{ONE}, excess: {way}")));
        let call =
            || get("/shop.Orders/List").method("POST").header("content-type", "application/grpc+proto");
        assert_eq!(stage.ask(call()).status(), 200);
        let seen = stage.ask(call());
        assert_eq!(seen.status(), 200, "{way}");
        assert_eq!(seen.header("grpc-status"), Some("8"), "{way}");
        assert_eq!(seen.header("content-type"), Some("application/grpc+proto"), "{way}");
        assert_eq!(number(&seen, "grpc-retry-pushback-ms"), 60_000, "{way}");
        assert_eq!(seen.text(), "", "{way}");
    }
}

/// What costs more than a limit can ever give is told so: there is no time to come back at.
#[test]
fn who_can_never_pass_is_not_told_to_come_back() {
    let rule = "limits: [ { token_bucket: { rate: 1/s, burst: 3 }, key: [], cost: { header: x-cost } } ]";
    let (stage, clock) = Stage::still(&one_rule(rule));
    let seen = stage.ask(get("/").header("x-cost", "4"));
    assert_eq!((seen.status(), seen.header("retry-after")), (429, None));
    assert!(seen.text().contains("never"), "{}", seen.text());
    clock.advance(Duration::from_secs(3_600));
    assert_eq!(stage.ask(get("/").header("x-cost", "4")).status(), 429);
    assert_eq!(stage.ask(get("/").header("x-cost", "3")).status(), 200);
}

/// Told to come back in so many seconds, one passes then, and not a second earlier.
#[test]
fn whoever_comes_back_when_told_passes() {
    let limits = [
        "token_bucket: { rate: 7/m, burst: 2 }",
        "token_bucket: { rate: 3/10s, burst: 3, refill: interval }",
        "leaky_bucket: { rate: 13/m, capacity: 2 }",
        "fixed_window: { limit: 2, window: 90s }",
        "fixed_window: { limit: 2, window: 90s, align: first_hit }",
        "sliding_log: { limit: 2, window: 17s }",
        "sliding_window: { limit: 2, window: 20s, precision: 2s }",
        "sliding_counter: { limit: 4, window: 30s }",
        "smooth_bursty: { rate: 4/m, max_burst: 30s }",
    ];
    for limit in limits {
        let (stage, clock) = Stage::still(&one_rule(&format!("limits: [ {{ {limit}, key: [] }} ]")));
        clock.advance(Duration::from_millis(33_333));
        for round in 0..3 {
            let mut seen = stage.get("/");
            for _ in 0..20 {
                if seen.status() == 429 {
                    break;
                }
                clock.advance(Duration::from_millis(700));
                seen = stage.get("/");
            }
            assert_eq!(seen.status(), 429, "{limit} never refuses");
            let after = Duration::from_secs(number(&seen, "retry-after"));
            clock.advance(after - Duration::from_secs(1));
            assert_eq!(stage.get("/").status(), 429, "{limit}: a second before {after:?} in round {round}");
            clock.advance(Duration::from_secs(1));
            assert_eq!(stage.get("/").status(), 200, "{limit}: {after:?} later in round {round}");
        }
    }
}

const TWO_LIMITS: &str = "
limits: { per-key: { token_bucket: { rate: 10/m, burst: 5 }, overrides: { vip: { rate: 10/s, burst: 50 } } } }
routes:
  - name: all
    upstream: up
    rules:
      - { name: both, limits: [ { use: per-key, key: [header.k] }, { fixed_window: { limit: 3, window: 1h }, key: [header.k] } ] }
";

#[test]
fn headers_tell_of_every_limit_and_a_refusal_of_those_that_refuse() {
    let (stage, _) = Stage::still(TWO_LIMITS);
    let seen = stage.get("/");
    let numbers =
        |of: &[(&str, i64)]| of.iter().map(|(name, it)| ((*name).to_owned(), *it)).collect::<Vec<_>>();
    assert_eq!(
        listed(&seen, "ratelimit-policy"),
        [
            ("per-key".to_owned(), numbers(&[("q", 5), ("w", 30)])),
            ("both-2".to_owned(), numbers(&[("q", 3), ("w", 3_600)]))
        ]
    );
    assert_eq!(
        listed(&seen, "ratelimit"),
        [
            ("per-key".to_owned(), numbers(&[("r", 4), ("t", 6)])),
            ("both-2".to_owned(), numbers(&[("r", 2), ("t", 3_600)]))
        ]
    );
    assert_eq!(stage.times(2, &get("/")), [200, 200]);
    let seen = stage.get("/");
    assert_eq!(listed(&seen, "ratelimit"), [("both-2".to_owned(), numbers(&[("r", 0), ("t", 3_600)]))]);
    assert_eq!(number(&seen, "retry-after"), 3_600);
}

/// A key with numbers of its own is told those.
#[test]
fn an_override_is_told_with_its_own_numbers() {
    let vip = || get("/").header("k", "vip");
    let (stage, _) = Stage::still(TWO_LIMITS);
    let seen = stage.ask(vip());
    let policy = listed(&seen, "ratelimit-policy");
    assert_eq!(policy[0], ("per-key".to_owned(), vec![("q".to_owned(), 50), ("w".to_owned(), 5)]));
    assert_eq!(listed(&seen, "ratelimit")[0].1[0], ("r".to_owned(), 49));
    let only = "limits: { per: { fixed_window: { limit: 2, window: 1m }, overrides: { vip: { limit: 9 } } } }\nheaders: x-ratelimit\n";
    let (stage, _) =
        Stage::still(&format!("{only}{}", one_rule("limits: [ { use: per, key: [header.k] } ]")));
    let seen = stage.ask(vip());
    assert_eq!((number(&seen, "x-ratelimit-limit"), number(&seen, "x-ratelimit-remaining")), (9, 8));
    let seen = stage.get("/");
    assert_eq!((number(&seen, "x-ratelimit-limit"), number(&seen, "x-ratelimit-remaining")), (2, 1));
}

#[test]
fn headers_are_as_the_file_says() {
    let (stage, _) = Stage::still(&format!("headers: x-ratelimit\n{TWO_LIMITS}"));
    let seen = stage.get("/");
    assert_eq!(number(&seen, "x-ratelimit-limit"), 3);
    assert_eq!(number(&seen, "x-ratelimit-remaining"), 2);
    assert_eq!(number(&seen, "x-ratelimit-reset"), 3_600);
    assert_eq!(seen.header("ratelimit"), None);

    let (stage, _) = Stage::still(&format!("headers: none\n{TWO_LIMITS}"));
    let answers = [stage.get("/"), stage.get("/"), stage.get("/"), stage.get("/")];
    for seen in &answers {
        assert!(seen.answered().headers.iter().all(|(name, _)| !name.to_lowercase().contains("ratelimit")));
    }
    assert_eq!(number(&answers[3], "retry-after"), 3_600);
}

/// The service behind has limits too, and says so: both are told.
#[test]
fn what_the_upstream_tells_of_its_own_limits_stays() {
    let up = Upstream::start(|_| {
        Canned::text("ok")
            .header("ratelimit", "\"theirs\";r=1;t=1")
            .header("ratelimit-policy", "\"theirs\";q=1;w=1")
    });
    let store = MemoryStore::with_clock(Bounds::default(), ManualClock::new());
    let stage = Stage::with(store.into(), &one_rule(ONE), std::num::NonZeroUsize::MAX, up);
    let seen = stage.get("/");
    let names = |field| listed(&seen, field).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names("ratelimit"), ["theirs", "only"]);
    assert_eq!(names("ratelimit-policy"), ["theirs", "only"]);
}
