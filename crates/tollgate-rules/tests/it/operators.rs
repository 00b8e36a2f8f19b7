//! Every operator and every parameter that Soul's selectors and rules know has a counterpart, here a row each, and `and`
//! and `or` hold over lists as they do there. Where Soul is at odds with itself the row says what holds instead.

use crate::build::{Sent, exact, file, get, is, net, not, path, regex, route};
use tollgate_rules::{
    Program,
    model::{DailyTime, Instant, Matcher, TimeSpan, When},
};

fn holds(when: &When, sent: &Sent) -> bool {
    let program = Program::new(file(vec![route("r", when.clone(), vec![])], vec![]));
    let request = sent.request();
    let found = program.find(&request).route().is_some();
    // What explains a request agrees with what matches it.
    assert_eq!(program.explain(&request).route.is_some(), found);
    assert_eq!(program.explain(&request).passed_over.len(), usize::from(!found));
    found
}

fn text(matcher: fn(String) -> Matcher, text: &str) -> Matcher {
    matcher(text.to_owned())
}

fn header(value: &str) -> Sent {
    get("/").header("x-a", value)
}

/// What Soul calls it, its counterpart, a request for which it holds, one for which it does not.
#[test]
fn every_operator() {
    let x = |matcher| is("header.x-a", matcher);
    let daily = |second| Some(Instant::Daily(DailyTime { second, time_zone: "UTC".to_owned() }));
    let time = |after, before| When::Time(TimeSpan { after, before });
    let rows = [
        ("match, uri", path("/orders/**"), get("/orders/1/2"), get("/order")),
        ("match, uri, one letter", path("/o?ders"), get("/orders"), get("/oders")),
        ("match, uri, within a segment", path("/*.json"), get("/a.json"), get("/a/b.json")),
        ("match, uri, captured", path("/orders/{id}"), get("/orders/7"), get("/orders/7/items")),
        ("match, others", x(text(Matcher::Contains, "b")), header("abc"), header("ac")),
        ("=", x(text(Matcher::Exact, "abc")), header("abc"), header("Abc")),
        ("regex, the whole text", x(regex("a.c")), header("abc"), header("abcd")),
        ("regEx, alternatives", x(regex("a|ab")), header("ab"), header("abc")),
        ("like", x(text(Matcher::Contains, "bc")), header("abcd"), header("acbd")),
        ("contains", x(text(Matcher::Contains, "abcd")), header("abcd"), get("/")),
        ("TimeBefore", time(None, Some(Instant::Once(10))), get("/").at(9), get("/").at(10)),
        ("TimeAfter", time(Some(Instant::Once(10)), None), get("/").at(10), get("/").at(9)),
        ("TimeAfter, every day", time(daily(60), None), get("/").at(60_000_000), get("/").at(59_999_999)),
        ("exclude, uri", not(path("/orders/**")), get("/x"), get("/orders/1")),
        ("exclude, others", not(x(text(Matcher::Contains, "b"))), header("ac"), header("abc")),
        ("startsWith", x(text(Matcher::Prefix, "ab")), header("abc"), header("cab")),
        ("endsWith", x(text(Matcher::Suffix, "bc")), header("abc"), header("bca")),
        ("pathPattern", path("/orders/{id}/**"), get("/orders/1"), get("/orders")),
        ("isBlank, missing", x(Matcher::Blank(true)), get("/"), header("a")),
        ("isBlank, blanks", x(Matcher::Blank(true)), header("  "), header(" a")),
        ("not isBlank", x(Matcher::Blank(false)), header("a"), header(" ")),
        ("is there", x(Matcher::Exists(true)), header(""), get("/")),
        ("is not there", x(Matcher::Exists(false)), get("/"), header("")),
        // There a blank value fails every test but isBlank, so that nothing can be compared with it.
        ("= on nothing", x(text(Matcher::Exact, "")), header(""), get("/")),
    ];
    for (operator, when, right, wrong) in rows {
        assert!(holds(&when, &right), "{operator}: {right:?}");
        assert!(!holds(&when, &wrong), "{operator}: {wrong:?}");
        assert!(!holds(&not(when.clone()), &right), "not {operator}: {right:?}");
        assert!(holds(&not(when), &wrong), "not {operator}: {wrong:?}");
    }
}

/// What Soul calls it, its counterpart, a request that has it, one that does not.
#[test]
fn every_parameter() {
    let utf8 = "caf\u{e9}";
    let rows = [
        ("uri", exact("path", "/a"), get("/a"), get("/b")),
        ("uri, in another spelling", exact("path", "/a"), get("//%61"), get("/A")),
        ("header", exact("header.x-a", "1"), header("1"), header("2")),
        (
            "header, a list in several lines",
            exact("header.accept", "1, 2"),
            get("/").header("accept", "1").header("accept", "2"),
            get("/").header("accept", "1"),
        ),
        (
            "header, credentials",
            exact("header.authorization", "bearer K"),
            get("/").header("authorization", "BEARER  K"),
            get("/").header("authorization", "bearer k"),
        ),
        ("header, UTF-8", exact("header.x-a", utf8), header(utf8), header("cafe")),
        ("header, Latin-1", exact("header.x-a", utf8), get("/").header("x-a", b"caf\xe9"), header("caf")),
        ("query", exact("query.q", "1"), get("/").query("p&q=1&r=2"), get("/").query("q=2&r=1")),
        ("query, decoded", exact("query.a b", "x y/"), get("/").query("a+b=x+y%2f"), get("/").query("ab=x")),
        ("query, odd encodings", exact("query.q", "%zz%"), get("/").query("q=%zz%"), get("/").query("q")),
        ("query, not UTF-8", exact("query.q", "\u{e9}"), get("/").query("q=%e9"), get("/").query("q=e")),
        ("query, without a value", exact("query.q", ""), get("/").query("q"), get("/")),
        (
            "cookie",
            exact("cookie.c", "1"),
            get("/").header("cookie", "a=2; c=1; d=2"),
            get("/").header("cookie", "cc=1"),
        ),
        (
            "cookie, several lines",
            exact("cookie.c", "1"),
            get("/").header("cookie", "a").header("cookie", "c=1"),
            get("/"),
        ),
        ("domain", exact("host", "api.example"), get("/").host("API.example.:80"), get("/").host("example")),
        ("domain, IPv6", exact("host", "[::1]"), get("/").host("[0::1]:80"), get("/").host("::2")),
        (
            "domain, its end",
            is("host", text(Matcher::Suffix, ".Example")),
            get("/").host("a.example"),
            get("/"),
        ),
        // There `host` is the client's address too.
        ("ip", net("192.0.2.7/32"), get("/"), get("/").ip("192.0.2.8")),
        ("ip, a network", net("10.0.0.0/8"), get("/").ip("10.1.2.3"), get("/").ip("11.1.2.3")),
        ("ip, mapped", net("10.0.0.0/8"), get("/").ip("::ffff:10.1.2.3"), get("/").ip("::10.1.2.3")),
        ("ip, a mapped network", net("::ffff:10.0.0.0/104"), get("/").ip("10.1.2.3"), get("/")),
        ("ip, IPv6", net("2001:db8::1/128"), get("/").ip("2001:db8::1"), get("/").ip("2001:db8::2")),
        ("ip, as text", exact("ip", "192.0.2.7"), get("/"), get("/").ip("192.0.2.70")),
        ("ip, a part", is("ip", text(Matcher::Prefix, "192.0.")), get("/"), get("/").ip("10.0.0.1")),
        ("ip, by its group", exact("ip/24", "192.0.2.0/24"), get("/"), get("/").ip("192.0.3.7")),
        ("req_method", exact("method", "POST"), get("/").method("POST"), get("/").method("post")),
    ];
    for (parameter, when, right, wrong) in rows {
        assert!(holds(&when, &right), "{parameter}: {right:?}");
        assert!(!holds(&when, &wrong), "{parameter}: {wrong:?}");
    }
}

#[test]
fn and_or_and_lists() {
    let (a, b) = (exact("header.x-a", "1"), exact("header.x-b", "1"));
    let with = |first: bool, second: bool| {
        let sent = if first { get("/").header("x-a", "1") } else { get("/") };
        if second { sent.header("x-b", "1") } else { sent }
    };
    for (first, second) in [(false, false), (false, true), (true, false), (true, true)] {
        let sent = with(first, second);
        assert_eq!(holds(&When::All(vec![a.clone(), b.clone()]), &sent), first && second);
        assert_eq!(holds(&When::Any(vec![a.clone(), b.clone()]), &sent), first || second);
        let neither = not(When::Any(vec![a.clone(), b.clone()]));
        assert_eq!(holds(&neither, &sent), !first && !second);
        let nested = When::All(vec![When::Any(vec![a.clone(), b.clone()]), not(b.clone())]);
        assert_eq!(holds(&nested, &sent), first && !second);
    }
    assert!(holds(&When::All(vec![]), &get("/")), "and of nothing holds");
    assert!(!holds(&When::Any(vec![]), &get("/")), "or of nothing does not");
    assert!(holds(&When::Always, &get("/")), "full flow");
}

#[test]
fn long_lists_are_searched() {
    let nets: Vec<_> = (0..=255).map(|it| net(&format!("10.{it}.4.0/22"))).collect();
    let values: Vec<_> = (0..500).map(|it| exact("header.x-a", &it.to_string())).collect();
    let (nets, values) = (When::Any(nets), When::Any(values));
    for (ip, wanted) in
        [("10.0.4.0", true), ("10.255.7.255", true), ("10.9.8.0", false), ("10.9.3.255", false)]
    {
        assert_eq!(holds(&nets, &get("/").ip(ip)), wanted, "{ip}");
    }
    for (value, wanted) in [("0", true), ("499", true), ("500", false), ("", false)] {
        assert_eq!(holds(&values, &header(value)), wanted, "{value}");
    }
}

#[test]
fn times_of_day_hang_on_a_wall_somewhere() {
    let end = |hour: u32, zone: &str| {
        Some(Instant::Daily(DailyTime { second: hour * 3600, time_zone: zone.to_owned() }))
    };
    let at = |hour: i64, minute: i64| get("/").at((hour * 60 + minute) * 60 * 1_000_000);
    let span = |after, before| When::Time(TimeSpan { after, before });

    let office = span(end(9, "UTC"), end(17, "UTC"));
    assert!(holds(&office, &at(9, 0)) && holds(&office, &at(16, 59)));
    assert!(!holds(&office, &at(8, 59)) && !holds(&office, &at(17, 0)));

    let night = span(end(22, "UTC"), end(6, "UTC"));
    assert!(holds(&night, &at(22, 0)) && holds(&night, &at(0, 0)) && holds(&night, &at(5, 59)));
    assert!(!holds(&night, &at(6, 0)) && !holds(&night, &at(21, 59)));

    // Eight hours ahead: nine o'clock there is one o'clock here.
    let shanghai = span(end(9, "Asia/Shanghai"), end(17, "Asia/Shanghai"));
    assert!(holds(&shanghai, &at(1, 0)) && holds(&shanghai, &at(8, 59)));
    assert!(!holds(&shanghai, &at(0, 59)) && !holds(&shanghai, &at(9, 0)));

    // From a day on, every morning.
    let mornings = span(Some(Instant::Once(86_400_000_000)), end(12, "UTC"));
    assert!(
        !holds(&mornings, &at(8, 0))
            && holds(&mornings, &at(24 + 8, 0))
            && !holds(&mornings, &at(24 + 13, 0))
    );
}
