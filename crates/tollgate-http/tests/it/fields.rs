//! The fields are well formed whatever the names and numbers, and say what the statuses say.

use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;
use sfv::{BareItem, Item, List, ListEntry, Parser};
use std::time::Duration;
use tollgate::{
    Concurrency, DecidedBy, Decision, FixedWindow, LeakyBucket, Limit, Rate, Refill, Retry, SlidingCounter,
    SlidingLog, SmoothBursty, SmoothWarmingUp, Status, TokenBucket,
};
use tollgate_http::{HeaderStyle, Policies, Policy, Unit};

/// The items of a list field, over all its lines, as a client reads them.
fn items(headers: &HeaderMap, name: &str) -> Vec<Item> {
    let lines: Vec<_> = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
    let list: List = Parser::new(&lines.join(&b","[..])).parse().expect("a list of structured fields");
    let item = |entry| match entry {
        ListEntry::Item(item) => item,
        ListEntry::InnerList(list) => panic!("an item, not {list:?}"),
    };
    list.into_iter().map(item).collect()
}

fn name_of(item: &Item) -> &str {
    item.bare_item.as_string().expect("a quoted name").as_str()
}

fn number(item: &Item, parameter: &str) -> Option<i64> {
    item.params.get(parameter).map(|it| i64::from(it.as_integer().expect("an integer")))
}

fn told(policies: &Policies, statuses: &[Status]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    policies.allow(policies.all(statuses), &mut headers);
    headers
}

fn in_lines(policies: &Policies, statuses: &[Status]) -> String {
    let mut lines = Vec::new();
    policies.allow_in_lines(policies.all(statuses), None, &mut lines);
    String::from_utf8(lines).unwrap()
}

fn lines_of(headers: &HeaderMap) -> String {
    headers.iter().map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap())).collect()
}

fn policy(limit: impl Into<Limit>) -> String {
    Policy::of("x", &limit.into()).field().to_str().unwrap().to_owned()
}

#[test]
fn every_limit_is_told_as_quota_and_window() {
    let second = Duration::from_secs(1);
    let ten = Rate::per_second(10).unwrap();
    let bucket = TokenBucket::new(ten, 100).unwrap();
    assert_eq!(policy(bucket), r#""x";q=100;w=10"#);
    assert_eq!(policy(TokenBucket::new(Rate::per_second(7).unwrap(), 8).unwrap()), r#""x";q=8;w=2"#);
    let by_steps = TokenBucket::new(Rate::per_minute(40).unwrap(), 100).unwrap();
    assert_eq!(policy(by_steps.with_refill(Refill::Interval)), r#""x";q=100;w=180"#);
    assert_eq!(policy(LeakyBucket::new(Rate::per_minute(1).unwrap(), 3).unwrap()), r#""x";q=3;w=180"#);
    assert_eq!(policy(SmoothBursty::new(Rate::per_second(5).unwrap())), r#""x";q=5;w=1"#);
    assert_eq!(policy(SmoothBursty::new(Rate::per_minute(6).unwrap())), r#""x";q=1;w=10"#);
    let warming =
        Limit::from(SmoothWarmingUp::new(Rate::per_second(2).unwrap(), Duration::from_secs(4)).unwrap());
    let permits = warming.most();
    assert_eq!(policy(warming), format!(r#""x";q={permits};w={}"#, permits.div_ceil(2)));
    assert_eq!(policy(FixedWindow::new(5, second / 1000).unwrap()), r#""x";q=5;w=1"#);
    assert_eq!(policy(FixedWindow::forever(5).unwrap()), r#""x";q=5"#);
    assert_eq!(policy(SlidingLog::new(5, 60 * second).unwrap()), r#""x";q=5;w=60"#);
    assert_eq!(policy(SlidingCounter::new(5, second + second / 2).unwrap()), r#""x";q=5;w=2"#);
    assert_eq!(policy(Concurrency::new(20, second).unwrap()), r#""x";q=20;qu="concurrent-requests""#);
}

#[test]
fn a_set_that_applies_in_part_is_told_in_part() {
    let policies = Policies::new(HeaderStyle::Draft10, [Policy::new("a", 1), Policy::new("b", 2)]);
    let status = Status::new(Decision::Allow, 2, 1, Some(Duration::from_secs(3)));
    let mut headers = HeaderMap::new();
    policies.allow([(1, &status)].into_iter(), &mut headers);
    assert_eq!(headers["ratelimit-policy"], r#""b";q=2"#);
    assert_eq!(headers["ratelimit"], r#""b";r=1;t=3"#);
    // A service behind has limits of its own: both are told.
    policies.allow([(0, &status)].into_iter(), &mut headers);
    assert_eq!(items(&headers, "ratelimit").len(), 2);
    assert_eq!(items(&headers, "ratelimit-policy").len(), 2);
}

#[test]
fn a_layer_in_front_of_one_that_refuses_names_no_later_time() {
    let policies = Policies::new(HeaderStyle::Draft10, [Policy::new("day", 9), Policy::new("burst", 9)]);
    let status = |secs| Status::new(Decision::Allow, 9, 1, Some(Duration::from_secs(secs)));
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", 5.into());
    policies.allow(policies.all(&[status(36_000), status(5)]), &mut headers);
    assert_eq!(headers["ratelimit"], r#""day";r=1, "burst";r=1;t=5"#);
    assert_eq!(headers["retry-after"], "5");
    let mut lines = Vec::new();
    let statuses = [status(36_000), status(5)];
    policies.allow_in_lines(policies.all(&statuses), headers.get("retry-after"), &mut lines);
    assert!(String::from_utf8(lines).unwrap().ends_with("ratelimit: \"day\";r=1, \"burst\";r=1;t=5\r\n"));
}

#[test]
fn nothing_charged_tells_nothing() {
    for style in [HeaderStyle::Draft10, HeaderStyle::XRateLimit, HeaderStyle::None] {
        assert!(told(&Policies::new(style, []), &[]).is_empty());
        assert!(told(&Policies::new(style, [Policy::new("a", 1)]), &[]).is_empty());
        assert!(in_lines(&Policies::new(style, [Policy::new("a", 1)]), &[]).is_empty());
    }
}

#[test]
fn the_tightest_is_told_in_the_older_dialect() {
    let policies = Policies::new(HeaderStyle::XRateLimit, [Policy::new("a", 100), Policy::new("b", 20)]);
    let status =
        |remaining, millis| Status::new(Decision::Allow, 100, remaining, Some(Duration::from_millis(millis)));
    let mut headers = told(&policies, &[status(50, 10_000), status(19, 1_001)]);
    assert_eq!(headers["x-ratelimit-limit"], "20");
    assert_eq!(headers["x-ratelimit-remaining"], "19");
    assert_eq!(headers["x-ratelimit-reset"], "2");
    assert!(!headers.contains_key("ratelimit") && !headers.contains_key("retry-after"));
    // What a service behind has said stays where it is nearer to its end.
    headers.insert("x-ratelimit-remaining", 3.into());
    policies.allow(policies.all(&[status(50, 1), status(19, 1)]), &mut headers);
    assert_eq!(headers["x-ratelimit-remaining"], "3");
    policies.allow(policies.all(&[status(50, 1), status(2, 1)]), &mut headers);
    assert_eq!(headers["x-ratelimit-remaining"], "2");
}

#[test]
fn a_refusal_tells_of_those_that_refuse() {
    let policies = Policies::new(HeaderStyle::Draft10, [Policy::new("day", 1000), Policy::new("login", 5)]);
    let statuses = [
        Status::new(Decision::Allow, 1000, 10, Some(Duration::from_secs(36_000))),
        Status::new(
            Decision::Deny(Retry::After(Duration::from_millis(1_500))),
            5,
            0,
            Some(Duration::from_secs(60)),
        ),
    ];
    let mut headers = HeaderMap::new();
    let retry = Retry::After(Duration::from_millis(1_500));
    policies.refuse(policies.all(&statuses), retry, &mut headers);
    assert_eq!(headers["ratelimit"], r#""login";r=0;t=2"#);
    assert_eq!(headers["retry-after"], "2");
    assert_eq!(headers["ratelimit-policy"], *policies.field());
    assert_eq!(policies.violated(policies.all(&statuses)).collect::<Vec<_>>(), ["login"]);
}

#[test]
fn retry_after_is_there_in_every_style_except_for_never() {
    for style in [HeaderStyle::Draft10, HeaderStyle::XRateLimit, HeaderStyle::None] {
        let policies = Policies::new(style, [Policy::new("a", 1)]);
        let refuse = |retry| {
            let mut headers = HeaderMap::new();
            let statuses = [Status::new(Decision::Deny(retry), 1, 0, None)];
            policies.refuse(policies.all(&statuses), retry, &mut headers);
            headers.get("retry-after").map(|it| it.to_str().unwrap().to_owned())
        };
        assert_eq!(refuse(Retry::After(Duration::from_nanos(1))).as_deref(), Some("1"));
        assert_eq!(refuse(Retry::After(Duration::ZERO)).as_deref(), Some("1"));
        assert_eq!(refuse(Retry::WhenReleased).as_deref(), Some("1"));
        assert_eq!(refuse(Retry::Never), None);
    }
}

#[test]
fn a_banned_key_has_nothing_until_the_ban_ends() {
    let policies = Policies::new(HeaderStyle::Draft10, [Policy::new("a", 10)]);
    let retry = Retry::After(Duration::from_secs(5));
    let status = Status::new(Decision::Deny(retry), 10, 7, Some(Duration::from_secs(3600)));
    let statuses = [status.said_by(DecidedBy::Ban)];
    let mut headers = HeaderMap::new();
    policies.refuse(policies.all(&statuses), retry, &mut headers);
    assert_eq!(headers["ratelimit"], r#""a";r=0;t=5"#);
    assert_eq!(headers["retry-after"], "5");
}

fn retry() -> impl Strategy<Value = Retry> {
    prop_oneof![
        any::<Duration>().prop_map(Retry::After),
        (0..100_000_000_u64).prop_map(|micros| Retry::After(Duration::from_micros(micros))),
        Just(Retry::WhenReleased),
        Just(Retry::Never)
    ]
}

fn decision() -> impl Strategy<Value = Decision> {
    prop_oneof![
        Just(Decision::Allow),
        any::<Duration>().prop_map(Decision::Wait),
        retry().prop_map(Decision::Deny)
    ]
}

fn status() -> impl Strategy<Value = Status> {
    (decision(), any::<u32>(), any::<u32>(), any::<Option<Duration>>())
        .prop_map(|(decision, limit, remaining, reset)| Status::new(decision, limit, remaining, reset))
}

/// Any name there is, and now and then one with what a field must escape.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[ -~]{0,12}", r#"["\\%é\n]{0,6}"#]
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let unit = prop_oneof![Just(Unit::Requests), Just(Unit::ContentBytes), Just(Unit::ConcurrentRequests)];
    (name(), any::<u64>(), any::<Option<Duration>>(), unit).prop_map(|(name, quota, window, unit)| {
        let policy = Policy::new(name, quota).with_unit(unit);
        window.map_or(policy.clone(), |window| policy.with_window(window))
    })
}

proptest! {
    #[test]
    fn any_names_and_numbers_make_valid_fields(
        set in prop::collection::vec((any_policy(), status()), 1..5),
        retry in retry(),
    ) {
        let (policies, statuses): (Vec<_>, Vec<_>) = set.into_iter().unzip();
        let policies = Policies::new(HeaderStyle::Draft10, policies);
        let headers = told(&policies, &statuses);
        prop_assert_eq!(in_lines(&policies, &statuses), lines_of(&headers));

        let written = items(&headers, "ratelimit-policy");
        prop_assert_eq!(written.len(), policies.policies().len());
        for (item, policy) in written.iter().zip(policies.policies()) {
            prop_assert_eq!(number(item, "q"), Some(policy.quota().min(999_999_999_999_999) as i64));
            prop_assert_eq!(number(item, "w"), policy.window().map(|window| window.get() as i64));
            prop_assert!(policy.window().is_none_or(|window| window.get() > 0));
            let unit = item.params.get("qu").map(|it| it.as_string().unwrap().as_str());
            prop_assert_eq!(unit.is_none(), policy.unit() == Unit::Requests);
            if policy.name().bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
                prop_assert_eq!(name_of(item), policy.name());
            }
        }
        let written_of = items(&headers, "ratelimit");
        prop_assert_eq!(written_of.len(), statuses.len());
        for ((item, status), policy) in written_of.iter().zip(&statuses).zip(&written) {
            prop_assert_eq!(number(item, "r"), Some(status.remaining().into()));
            prop_assert_eq!(name_of(item), name_of(policy));
            prop_assert!(number(item, "t").is_none_or(|seconds| seconds >= 0));
            prop_assert!(matches!(item.bare_item, BareItem::String(_)));
        }

        let mut refused = HeaderMap::new();
        policies.refuse(policies.all(&statuses), retry, &mut refused);
        let after = refused.get("retry-after").map(|it| it.to_str().unwrap().parse::<u64>().unwrap());
        prop_assert_eq!(after.is_none(), retry == Retry::Never);
        let Some(after) = after else { return Ok(()) };
        prop_assert!(after >= 1);
        let refusing = statuses.iter().filter(|status| status.is_deny()).count();
        let lines = if refusing == 0 { Vec::new() } else { items(&refused, "ratelimit") };
        prop_assert_eq!(lines.len(), refusing);
        for (item, status) in lines.iter().zip(statuses.iter().filter(|status| status.is_deny())) {
            // Of a cost that never passes, and of slots, nobody says when.
            if status.retry_after().is_some() {
                let next = number(item, "t").expect("a time");
                prop_assert!(next as u64 <= after, "t={next} is later than Retry-After: {after}");
            }
        }
    }
}
