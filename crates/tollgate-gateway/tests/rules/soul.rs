//! Every parameter and operator of Soul's selectors and rules, through the whole gateway: as what a route takes, and as what a
//! rule is for.

use crate::stage::{Stage, get};
use testkit::Arrival;

fn header(value: &str) -> Arrival {
    get("/").header("x-a", value)
}

fn from(last: u8) -> Arrival {
    get("/").from([127, 0, 0, last])
}

fn host(name: &str) -> Arrival {
    get("/").header("host", name)
}

fn cookie(value: &str) -> Arrival {
    get("/").header("cookie", value)
}

/// What Soul calls it, its counterpart, a request for which it holds, one for which it does not.
fn rows() -> Vec<(&'static str, &'static str, Arrival, Arrival)> {
    vec![
        ("uri match", "path: \"/orders/**\"", get("/orders/1/2"), get("/order")),
        ("uri match, one letter", "path: \"/o?ders\"", get("/orders"), get("/oders")),
        ("uri match, in a segment", "path: \"/*.json\"", get("/a.json"), get("/a/b.json")),
        ("uri match, a variable", "path: \"/orders/{id}\"", get("/orders/7"), get("/orders/7/items")),
        ("uri =", "path: { exact: /orders }", get("/orders?a=1"), get("/orders/1")),
        ("uri regex", "path: { regex: \"/o[a-z]+/[0-9]+\" }", get("/orders/17"), get("/orders/17/x")),
        ("uri contains", "path: { contains: rder }", get("/orders"), get("/odres")),
        ("uri startsWith", "path: { prefix: /ord }", get("/orders"), get("/x/orders")),
        ("uri endsWith", "path: { suffix: .json }", get("/a/b.json"), get("/a/b.json/c")),
        ("uri pathPattern", "path: \"/orders/{id}/**\"", get("/orders/1/a/b"), get("/orders")),
        ("uri exclude", "not: { path: \"/orders/**\" }", get("/x"), get("/orders/1")),
        ("header match", "header.x-a: { contains: b }", header("abc"), header("ac")),
        ("header =", "header.x-a: abc", header("abc"), header("ABC")),
        ("header regex", "header.x-a: { regex: \"a.c\" }", header("abc"), header("abcd")),
        ("header contains", "header.x-a: { contains: bc }", header("abcd"), get("/")),
        ("header startsWith", "header.x-a: { prefix: ab }", header("abc"), header("cab")),
        ("header endsWith", "header.x-a: { suffix: bc }", header("abc"), header("bca")),
        ("header exclude", "not: { header.x-a: { contains: b } }", header("ac"), header("abc")),
        ("header isBlank", "header.x-a: { blank: true }", get("/"), header("a")),
        ("header not isBlank", "header.x-a: { blank: false }", header("a"), get("/")),
        ("query =", "query.q: \"1 2\"", get("/?q=1+2&size=1"), get("/?q=12&size=1")),
        ("query contains", "query.q: { contains: b }", get("/?a=b&q=abc"), get("/?a=b&q=c")),
        ("query regex", "query.q: { regex: \"[0-9]+\" }", get("/?q=17"), get("/?q=17x")),
        ("query isBlank", "query.q: { blank: true }", get("/?q="), get("/?q=1")),
        ("cookie =", "cookie.c: \"1\"", cookie("a=2; c=1"), cookie("cc=1; c=2")),
        ("cookie startsWith", "cookie.c: { prefix: ab }", cookie("c=abc"), cookie("c=cab")),
        ("cookie isBlank", "cookie.c: { blank: true }", cookie("d=1"), cookie("c=1")),
        ("domain =", "host: api.example", host("API.example:8080"), host("www.example")),
        ("domain endsWith", "host: { suffix: .example }", host("api.example"), host("api.example.org")),
        (
            "domain regex",
            "host: { regex: \"api[0-9]\\\\.example\" }",
            host("api7.example"),
            host("api.example"),
        ),
        ("ip =", "ip: 127.0.0.7", from(7), from(8)),
        ("ip, a network", "ip: 127.0.0.0/29", from(6), from(8)),
        ("ip startsWith", "ip: { prefix: 127.0.0.2 }", from(23), from(32)),
        ("host =, the client's address", "ip: { exact: 127.0.0.7 }", from(7), from(77)),
        ("ip exclude", "not: { ip: 127.0.0.7 }", from(8), from(7)),
        ("req_method =", "method: POST", get("/").method("POST").body("x"), get("/")),
        ("req_method, any of", "method: [ PUT, DELETE ]", get("/").method("DELETE"), get("/")),
        (
            "and",
            "method: GET, path: /a, header.x-a: \"1\"",
            get("/a").header("x-a", "1"),
            get("/a").header("x-a", "2"),
        ),
        ("or", "any: [ { path: /a }, { header.x-a: \"1\" } ]", header("1"), header("2")),
        (
            "or of ands",
            "any: [ { path: /a, method: GET }, { all: [ { path: /b }, { method: POST } ] } ]",
            get("/b").method("POST"),
            get("/b"),
        ),
    ]
}

#[test]
fn every_parameter_and_operator_has_its_counterpart() {
    let (stage, _) = Stage::still("routes: []");
    for (called, when, right, wrong) in rows() {
        stage.reload(&format!("routes: [ {{ name: r, when: {{ {when} }}, upstream: spare }} ]"));
        let seen = stage.ask(right.clone());
        assert_eq!((seen.status(), seen.text().as_str()), (200, "spare\n"), "{called}, a route");
        assert_eq!(stage.ask(wrong.clone()).status(), 404, "{called}, a route");

        let rule = format!(
            "name: a, when: {{ {when} }}, limits: [ {{ fixed_window: {{ limit: 1, window: 1h }}, key: [] }} ]"
        );
        stage.reload(&format!(
            "routes: [ {{ name: {:?}, upstream: spare, rules: [ {{ {rule} }} ] }} ]",
            called.replace(' ', "-")
        ));
        assert_eq!(stage.times(3, &wrong), [200, 200, 200], "{called}, a rule that is not for it");
        assert_eq!(stage.times(2, &right), [200, 429], "{called}, a rule that is");
    }
}

/// `TimeBefore` and `TimeAfter`, by the clock of the machine.
#[test]
fn times_before_and_after() {
    let (stage, _) = Stage::still("routes: []");
    let rows = [
        ("{ before: \"2999-01-01 00:00:00\" }", 200),
        ("{ before: \"2001-01-01 00:00:00\" }", 404),
        ("{ after: \"2001-01-01 00:00:00\" }", 200),
        ("{ after: \"2999-01-01 00:00:00\", time_zone: Asia/Shanghai }", 404),
        ("{ after: \"2001-01-01T00:00:00Z\", before: \"2999-01-01T00:00:00Z\" }", 200),
        ("{ after: \"00:00\", before: \"23:59:59\" }", 200),
    ];
    for (time, status) in rows {
        stage.reload(&format!("routes: [ {{ name: r, when: {{ time: {time} }}, upstream: up }} ]"));
        assert_eq!(stage.get("/").status(), status, "{time}");
    }
}

/// A rule that looks at a header or an address is not hidden by a request for the same path that it was not for.
#[test]
fn one_request_that_does_not_match_hides_nothing_from_the_next() {
    let limits = "limits: [ { fixed_window: { limit: 1, window: 1h }, key: [] } ]";
    let rules = format!(
        "routes: [ {{ name: r, upstream: spare, rules: [ {{ name: by-header, when: {{ header.x-a: a }}, {limits} }}, {{ name: by-ip, when: {{ ip: 127.0.0.7 }}, {limits} }} ] }} ]"
    );
    let (stage, _) = Stage::still(&rules);
    let order = [get("/"), header("a"), get("/"), header("a"), from(7), get("/"), from(7), header("b")];
    assert_eq!(stage.statuses(order), [200, 200, 200, 429, 200, 200, 429, 200]);
}

/// Soul's refusal, to the letter, for a request limited by the client's address.
#[test]
fn a_limited_request_reads_as_souls() {
    let rules = "refusal: soul
headers: none
routes:
  - name: http
    when: { path: \"/http/**\" }
    upstream: up
    rules: [ { name: limit, limits: [ { token_bucket: { rate: 1/s, burst: 2 }, key: [ip] } ] } ]
";
    let (stage, clock) = Stage::still(rules);
    assert_eq!(stage.times(2, &get("/http/order/findById?size=3")), [200, 200]);
    let seen = stage.get("/http/order/findById?size=3");
    assert_eq!((seen.status(), seen.header("content-type")), (429, Some("application/json")));
    assert_eq!(
        seen.text(),
        r#"{"code":429,"message":"You have been restricted, please try again later!","data":null}"#
    );
    assert_eq!(stage.ask(get("/http/a").from([127, 0, 0, 9])).status(), 200);
    clock.advance(std::time::Duration::from_secs(1));
    assert_eq!(stage.times(2, &get("/http/a")), [200, 429]);
}
