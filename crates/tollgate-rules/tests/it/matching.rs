//! Which route takes a request, and which rules apply.

use crate::build::{charge, exact, file, get, is, not, path, route, rule};
use http::HeaderMap;
use std::time::{Duration, Instant};
use tollgate_rules::{
    ChargedLimit, Program, RouteId,
    model::{Matcher, When},
};

fn taken(program: &Program, path: &str) -> Option<usize> {
    program.find(&get(path).request()).route().map(|route| route.0)
}

#[test]
fn the_first_route_in_the_file_takes_the_request() {
    let shapes =
        ["/a/*/c", "/a/b/c", "/**/z", "/{x}/b/**", "/a/**/c/**/d", "/*.json", "/", "/a/", "/x?y/**", "/**"];
    let program = Program::new(file(shapes.iter().map(|it| route(it, path(it), vec![])).collect(), vec![]));
    for (sent, wanted) in [
        ("/a/b/c", "/a/*/c"),
        ("/a/x/c", "/a/*/c"),
        ("/z", "/**/z"),
        ("/a/b/z", "/**/z"),
        ("/q/b", "/{x}/b/**"),
        ("/q/b/", "/{x}/b/**"),
        ("/a/c/d", "/a/**/c/**/d"),
        ("/a/1/c/2/3/d", "/a/**/c/**/d"),
        ("/a/1/c/2/3/d/e", "/**"),
        ("/o.json", "/*.json"),
        ("/.json", "/*.json"),
        ("/", "/"),
        ("//", "/"),
        ("/a/..", "/"),
        ("/a/", "/a/"),
        ("/a", "/**"),
        ("/xay/1", "/x?y/**"),
        ("/xy", "/**"),
        ("/a//c", "/**"),
        ("/a/%62/c", "/a/*/c"),
        ("/a/b%40b/c", "/a/*/c"),
    ] {
        assert_eq!(taken(&program, sent).map(|place| shapes[place]), Some(wanted), "{sent}");
    }
    assert_eq!(taken(&program, "*"), None, "what is no path has no shape");
}

#[test]
fn routes_and_rules_that_are_not_enabled_are_skipped() {
    let mut routes = vec![
        route("off", When::Always, vec![]),
        route("on", When::Always, vec![rule("off", When::Always, vec![]), rule("on", When::Always, vec![])]),
    ];
    routes[0].enabled = false;
    routes[1].rules[0].enabled = false;
    let program = Program::new(file(routes, vec![rule("all", When::Always, vec![])]));
    let sent = get("/");
    let request = sent.request();
    let found = program.find(&request);
    assert_eq!(found.route(), Some(RouteId(1)));
    let names: Vec<_> = found.entries().map(|entry| entry.rule().name.as_str()).collect();
    assert_eq!(names, ["all", "on"]);
    assert_eq!(program.rules().len(), 3, "they keep their numbers");
}

#[test]
fn without_a_route_only_the_rules_of_every_route_apply() {
    let routes = vec![route("a", path("/a"), vec![rule("own", When::Always, vec![])])];
    let program = Program::new(file(routes, vec![rule("all", When::Always, vec![])]));
    let sent = get("/b");
    let request = sent.request();
    let found = program.find(&request);
    assert_eq!(found.route(), None);
    assert_eq!(found.entries().map(|entry| entry.rule().name.as_str()).collect::<Vec<_>>(), ["all"]);
    assert_eq!(found.forwarded("/b?c"), "/b?c");
}

/// A cache of matches by path answered the second request with what was found for the first.
#[test]
fn one_path_and_another_header_is_another_match() {
    let rules = |name: &str| vec![rule(name, exact("header.x-plan", "gold"), vec![])];
    let routes = vec![
        route("b", When::All(vec![path("/a"), exact("header.x-b", "1")]), rules("gold-b")),
        route("a", path("/a"), rules("gold-a")),
    ];
    let program = Program::new(file(routes, vec![]));
    let asked = |sent: crate::build::Sent| {
        let request = sent.request();
        let found = program.find(&request);
        (found.route().map(|route| route.0), found.rules().len())
    };
    for _ in 0..3 {
        assert_eq!(asked(get("/a")), (Some(1), 0));
        assert_eq!(asked(get("/a").header("x-plan", "gold")), (Some(1), 1));
        assert_eq!(asked(get("/a").header("x-b", "1")), (Some(0), 0));
        assert_eq!(asked(get("/a").header("x-b", "1").header("x-plan", "gold")), (Some(0), 1));
        assert_eq!(asked(get("/a").header("x-plan", "silver")), (Some(1), 0));
    }
}

#[test]
fn captures_come_from_the_first_shape_that_fits() {
    let shapes = When::Any(vec![path("/a/{x}"), path("/{y}/{x}/**"), path("/**/{last}")]);
    let program = Program::new(file(vec![route("r", shapes, vec![])], vec![]));
    let captured = |sent: &str| {
        let sent = get(sent);
        let request = sent.request();
        let found = program.find(&request);
        let captures = found.captures().map(|(name, value)| format!("{name}={value}"));
        captures.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(captured("/a/1"), "x=1 y=a last=1");
    assert_eq!(captured("/b/2/3"), "y=b x=2 last=3");
    assert_eq!(captured("/b"), "last=b");
    assert_eq!(captured("/%61/%40"), "x=@ y=a last=@");
}

#[test]
fn rules_of_every_route_see_what_the_route_captured() {
    let of_seven = rule("of-7", exact("path.id", "7"), vec![]);
    let without = rule("without", is("path.id", Matcher::Exists(false)), vec![]);
    let routes = vec![
        route("orders", path("/orders/{id}"), vec![rule("own", exact("path.id", "7"), vec![])]),
        route("other", path("/**"), vec![]),
    ];
    let program = Program::new(file(routes, vec![of_seven, without]));
    let applying = |sent: &str| {
        let sent = get(sent);
        let request = sent.request();
        program.find(&request).entries().map(|entry| entry.rule().name.as_str()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(applying("/orders/7"), "of-7 own");
    assert_eq!(applying("/orders/8"), "");
    assert_eq!(applying("/else"), "without");
}

#[test]
fn numbers_are_flat_and_in_file_order() {
    let inline = || vec![charge(&["ip"]), charge(&[])];
    let mut own = rule("own", When::Always, inline());
    own.limits.insert(1, named_charge());
    let mut made = file(vec![route("r", When::Always, vec![own])], vec![rule("all", When::Always, inline())]);
    made.limits = vec![crate::build::named("shared", &[])];
    let program = Program::new(made);
    let numbers: Vec<_> = program.charges().iter().map(|it| (it.id().0, it.rule().0, it.place())).collect();
    assert_eq!(numbers, [(0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 1), (4, 1, 2)]);
    assert_eq!(program.charges()[3].limit(), ChargedLimit::Named(0));
    assert_eq!(program.charges()[4].limit(), ChargedLimit::Inline(3));
    let names: Vec<_> = program.inline_limits().iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["everywhere/all[0]", "everywhere/all[1]", "r/own[0]", "r/own[2]"]);
    assert_eq!(program.rules().map(|entry| entry.charges.len()).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(program.inline_limits()[3].charge, program.charges()[4].id());
}

fn named_charge() -> tollgate_rules::model::RuleLimit {
    tollgate_rules::model::RuleLimit {
        limit: tollgate_rules::model::LimitSource::Named(0),
        ..charge(&["ip"])
    }
}

/// Files and requests made to be slow. A walk that tried every way would not end.
#[test]
fn hostile_shapes_and_paths_take_no_time() {
    let many_rests = format!("/{}b", "**/a/".repeat(40));
    let wild = format!("/{}b", "*a".repeat(40));
    let routes = vec![route("rests", path(&many_rests), vec![]), route("wild", path(&wild), vec![])];
    let program = Program::new(file(routes, vec![]));
    let began = Instant::now();
    assert_eq!(taken(&program, &"/a".repeat(1000)), None);
    assert_eq!(taken(&program, &format!("/{}", "a".repeat(4000))), None);
    assert_eq!(taken(&program, &format!("{}/b", "/a".repeat(1000))), Some(0));

    // Shapes that all hold, headers that all are asked for, texts that all begin alike.
    let routes = (0..2000).map(|it| {
        let shape = format!("/{}x-{it}", "**/".repeat(it % 7 + 1));
        let prefix = is("path", Matcher::Prefix(format!("/{}", "a".repeat(it))));
        let header = not(exact(&format!("header.x-{it}"), "1"));
        route(&it.to_string(), When::All(vec![When::Any(vec![path(&shape), prefix]), not(header)]), vec![])
    });
    let program = Program::new(file(routes.collect(), vec![]));
    let mut sent = get(&format!("/{}", "a".repeat(2000)));
    sent.headers = (0..2000).fold(HeaderMap::new(), |mut headers, it| {
        headers.insert(
            http::HeaderName::try_from(format!("x-{it}")).expect("a name"),
            "2".parse().expect("a value"),
        );
        headers
    });
    assert_eq!(program.find(&sent.request()).route(), None);
    assert!(began.elapsed() < Duration::from_secs(20), "took {:?}", began.elapsed());
}
