//! What a person sees who asks why.

use crate::build::{charge, exact, file, get, is, named, net, not, path, regex, route, rule};
use insta::assert_snapshot;
use std::time::Duration;
use tollgate::OnFailure;
use tollgate_rules::{
    Program,
    model::{Cost, Excess, Instant, LimitSource, Matcher, Missing, Route, RuleLimit, TimeSpan, When},
};

fn program() -> Program {
    let mut create = rule(
        "create",
        When::All(vec![exact("method", "POST"), not(net("10.9.0.0/16"))]),
        vec![
            RuleLimit { limit: LimitSource::Named(0), ..charge(&["header.x-api-key"]) },
            RuleLimit { cost: Cost::Units(2), ..charge(&["ip", "path.id"]) },
            charge(&[]),
            RuleLimit { missing: Missing::Skip, cost: Cost::ContentLength, ..charge(&["cookie.session"]) },
            RuleLimit { missing: Missing::Deny, ..charge(&["query.tenant"]) },
            RuleLimit { cost: Cost::ContentLength, ..charge(&["header.x-team"]) },
        ],
    );
    create.on_failure = Some(OnFailure::Closed);
    let mut slow = rule("slow", exact("header.x-plan", "free"), vec![]);
    slow.excess = Excess::Wait(Duration::from_millis(500));
    let mut off = rule("off", When::Always, vec![]);
    off.enabled = false;
    let mut retired = route("retired", path("/orders/**"), vec![]);
    retired.enabled = false;
    let routes = vec![
        route("admin", When::All(vec![path("/admin/**"), exact("host", "admin.example")]), vec![]),
        route("beta", When::All(vec![path("/orders/**"), exact("header.x-beta", "1")]), vec![]),
        retired,
        route("archive", path("/orders/{id}/archive/**"), vec![]),
        route("orders", path("/orders/{id}/**"), vec![create, slow, off]),
        route("rest", When::Always, vec![]),
    ];
    let mut made = file(routes, vec![rule("per-ip", When::Always, vec![charge(&["ip"])])]);
    made.limits = vec![named("per-client", &[&["vip-7"]])];
    Program::new(made)
}

#[test]
fn on_a_terminal() {
    let sent = get("/orders/7/items").method("POST").header("x-api-key", "vip-7");
    assert_snapshot!(program().explain(&sent.request()), @r#"
    POST /orders/7/items
    route orders
      path.id = 7
    earlier routes that do not match, closest first
      retired: it is not enabled
      beta: header.x-beta is missing, wanted 1
      archive: path /orders/7/items does not have the shape /orders/{id}/archive/**
      admin: path /orders/7/items does not have the shape /admin/**
    rules
      per-ip (everywhere) applies
        everywhere/per-ip[0] (token_bucket): 1 unit for ip 192.0.2.7
        excess: reject
      create applies
        per-client (token_bucket): 1 unit for header.x-api-key vip-7; by the override for vip-7
        orders/create[1] (token_bucket): 2 units for ip 192.0.2.7, path.id 7
        orders/create[2] (token_bucket): 1 unit of the one bucket for all
        orders/create[3] (token_bucket): not charged, because cookie.session is missing
        orders/create[4] (token_bucket): denied, because query.tenant is missing
        orders/create[5] (token_bucket): one unit for each byte of its body, whose length is not announced, for header.x-team missing (shared by all that lack it)
        excess: reject; on failure: closed
      slow does not apply: header.x-plan is missing, wanted free
      off does not apply: it is not enabled
    "#);
}

#[test]
fn as_json() {
    let sent = get("/orders/7").header("x-plan", "free");
    assert_snapshot!(program().explain(&sent.request()).to_json(), @r#"{"method":"GET","path":"/orders/7","enabled":true,"route":"orders","captures":{"id":"7"},"passed_over":[{"route":"retired","place":2,"why":"it is not enabled"},{"route":"beta","place":1,"why":"header.x-beta is missing, wanted 1"},{"route":"archive","place":3,"why":"path /orders/7 does not have the shape /orders/{id}/archive/**"},{"route":"admin","place":0,"why":"path /orders/7 does not have the shape /admin/**"}],"not_listed":0,"rules":[{"rule":"per-ip","route":null,"applies":true,"charges":[{"limit":"everywhere/per-ip[0]","algorithm":"token_bucket","key":[{"attribute":"ip","value":"192.0.2.7"}],"cost":1,"override_for":null}],"excess":"reject","on_failure":null},{"rule":"create","route":"orders","applies":false,"why":"method is GET, wanted POST"},{"rule":"slow","route":"orders","applies":true,"charges":[],"excess":"wait up to 500ms","on_failure":null},{"rule":"off","route":"orders","applies":false,"why":"it is not enabled"}]}"#);
}

#[test]
fn every_condition_says_what_it_missed() {
    let x = |matcher| is("header.x-a", matcher);
    let sent = get("/a").header("x-a", "1").query("odd=%1b[31m+%22red%22+caf%e9").host("a.example");
    let once = |at| Some(Instant::Once(at));
    let rows = [
        path("/orders/**"),
        exact("path", "/b"),
        exact("method", "POST"),
        When::Any(vec![exact("method", "POST"), exact("method", "PUT")]),
        When::Any((0..9).map(|it| exact("host", &format!("{it}.example"))).collect()),
        When::Any(vec![exact("method", "POST"), path("/b/**")]),
        x(Matcher::Prefix("2".to_owned())),
        x(Matcher::Suffix("2".to_owned())),
        x(Matcher::Contains("2".to_owned())),
        x(regex("2+")),
        x(Matcher::Exists(false)),
        x(Matcher::Blank(true)),
        exact("header.x-b", "1"),
        is("header.x-b", Matcher::Exists(true)),
        is("header.x-b", Matcher::Blank(false)),
        exact("query.odd", "red"),
        exact("query.q", ""),
        exact("cookie.c", "1"),
        exact("path.id", "7"),
        net("10.0.0.0/8"),
        net("10.0.0.1/32"),
        not(net("192.0.2.0/24")),
        not(When::Any(vec![exact("method", "POST"), exact("header.x-a", "1")])),
        not(When::All(vec![exact("method", "GET"), path("/a")])),
        When::Time(TimeSpan { after: once(86_400_000_000), before: once(90_000_000_000) }),
        When::Any(vec![]),
    ];
    let whys = rows.into_iter().map(|when| {
        let program = Program::new(file(vec![route("r", when, vec![])], vec![]));
        let mut explanation = program.explain(&sent.request());
        explanation.passed_over.remove(0).why
    });
    assert_snapshot!(whys.collect::<Vec<_>>().join("\n"), @r#"
    path /a does not have the shape /orders/**
    path is /a, wanted /b
    method is GET, wanted POST
    method is GET, wanted POST or PUT
    host is a.example, wanted 0.example or 1.example or 2.example or one of 6 more
    none of 2 alternatives holds: method is GET, wanted POST; path /a does not have the shape /b/**
    header.x-a is 1, wanted one that begins with 2
    header.x-a is 1, wanted one that ends with 2
    header.x-a is 1, wanted one with 2 in it
    header.x-a is 1, wanted one that matches 2+
    header.x-a is 1, wanted none
    header.x-a is 1, wanted none, or a blank one
    header.x-b is missing, wanted 1
    header.x-b is missing
    header.x-b is missing, wanted one that is not blank
    query.odd is "\u{1b}[31m \"red\" café", wanted red
    query.q is missing, wanted ""
    cookie.c is missing, wanted 1
    path.id is missing, wanted 7
    ip is 192.0.2.7, wanted one in 10.0.0.0/8
    ip is 192.0.2.7, wanted 10.0.0.1
    ip is 192.0.2.7, and that is excluded (one in 192.0.2.0/24)
    header.x-a is 1, and that is excluded (1)
    excluded: method: GET and path: the shape /a
    time is 1970-01-01T00:00:00Z, wanted after 1970-01-02T00:00:00Z and before 1970-01-02T01:00:00Z
    there is no alternative that could hold
    "#);
}

#[test]
fn the_nearest_of_many_routes_are_listed_first() {
    let mut routes: Vec<Route> =
        (0..100).map(|it| route(&format!("svc-{it}"), path(&format!("/svc-{it}/**")), vec![])).collect();
    routes.push(route("same-path", When::All(vec![path("/a/b/**"), exact("method", "PUT")]), vec![]));
    routes.push(route("half-path", path("/a/c/**"), vec![]));
    let program = Program::new(file(routes, vec![]));
    let explanation = program.explain(&get("/a/b/c").request());
    let names: Vec<_> = explanation.passed_over.iter().map(|over| over.route.as_str()).collect();
    assert_eq!(names[..4], ["same-path", "half-path", "svc-0", "svc-1"]);
    assert_eq!((names.len(), explanation.not_listed), (20, 82));
    assert!(explanation.to_string().contains("and 82 more"));
}
