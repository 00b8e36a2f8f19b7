//! Whose bucket a request is charged on.

use crate::build::{Sent, attribute, charge, file, get, named, path, route, rule};
use tollgate::Key;
use tollgate_rules::{
    Keyed, Program,
    model::{LimitSource, Missing, RuleLimit, When},
};

fn program(charges: Vec<RuleLimit>) -> Program {
    let rules = vec![rule("create", When::Always, charges)];
    let mut made = file(vec![route("orders", path("/orders/{id}/**"), rules)], vec![]);
    made.limits =
        vec![named("shared", &[&["vip-7"], &["a", "b"], &["a", "b"], &["192.0.2.7"]]), named("plain", &[])];
    Program::new(made)
}

/// The values of the first charge's key, as text; `-` is a missing one.
fn key(names: &[&str], missing: Missing, sent: &Sent) -> String {
    let program = program(vec![RuleLimit { missing, ..charge(names) }]);
    let request = sent.request();
    let found = program.find(&request);
    match found.key(&program.charges()[0]) {
        Keyed::Key(values) => {
            values.iter().map(|value| value.map_or("-".to_owned(), |it| format!("[{it}]"))).collect()
        }
        Keyed::Skip => "skip".to_owned(),
        Keyed::Deny { missing } => format!("deny without {missing:?}"),
        Keyed::Repeated { attribute } => format!("{attribute:?} is repeated"),
    }
}

#[test]
fn values_of_every_attribute_in_order() {
    let sent = get("/orders/7//x/")
        .method("PUT")
        .host("API.Example:80")
        .query("q=a%20b&p=1&p=2")
        .header("x-a", "1")
        .header("x-twice", "1")
        .header("x-twice", "2")
        .header("accept", "a")
        .header("accept", "b")
        .header("authorization", "bearer  K")
        .header("cookie", "s=\"secret\"");
    for (name, value) in [
        ("path", "[/orders/7/x/]"),
        ("path.id", "[7]"),
        ("method", "[PUT]"),
        ("host", "[api.example]"),
        ("header.x-a", "[1]"),
        ("header.x-twice", "Header(\"x-twice\") is repeated"),
        ("header.accept", "[a, b]"),
        ("header.authorization", "[Bearer K]"),
        ("header.x-b", "-"),
        ("query.q", "[a b]"),
        ("query.p", "Query(\"p\") is repeated"),
        ("query.r", "-"),
        ("cookie.s", "[secret]"),
        ("cookie.t", "-"),
        ("ip", "[192.0.2.7]"),
        ("ip/24", "[192.0.2.0/24]"),
        ("ip/56", "[192.0.2.7]"),
        ("route", "[orders]"),
        ("rule", "[create]"),
    ] {
        assert_eq!(key(&[name], Missing::Share, &sent), value, "{name}");
    }
    assert_eq!(key(&[], Missing::Share, &sent), "");
    assert_eq!(
        key(&["rule", "ip", "header.x-b", "method"], Missing::Share, &sent),
        "[create][192.0.2.7]-[PUT]"
    );
}

#[test]
fn an_ipv6_client_is_its_64() {
    let of = |name: &str, ip: &str| key(&[name], Missing::Share, &get("/orders/1").ip(ip));
    assert_eq!(of("ip", "2001:db8:1:2:3:4:5:6"), "[2001:db8:1:2::/64]");
    assert_eq!(of("ip", "2001:db8:1:2::"), "[2001:db8:1:2::/64]");
    assert_eq!(of("ip", "::ffff:192.0.2.7"), "[192.0.2.7]");
    assert_eq!(of("ip/24", "2001:db8:1:2::9"), "[2001:db8:1:2::/64]");
    assert_eq!(of("ip/48", "2001:db8:1:2::9"), "[2001:db8:1::/48]");
}

#[test]
fn what_a_missing_attribute_does() {
    let names = ["ip", "header.x-a"];
    assert_eq!(key(&names, Missing::Share, &get("/orders/1")), "[192.0.2.7]-");
    assert_eq!(key(&names, Missing::Skip, &get("/orders/1")), "skip");
    let refused = format!("deny without {:?}", attribute("header.x-a"));
    assert_eq!(key(&names, Missing::Deny, &get("/orders/1")), refused);
    // An empty value is not a missing one.
    let empty = get("/orders/1").header("x-a", "");
    for missing in [Missing::Share, Missing::Skip, Missing::Deny] {
        assert_eq!(key(&names, missing, &empty), "[192.0.2.7][]");
    }
}

/// Values joined to one text let callers share a bucket by where they put the joint.
#[test]
fn values_are_never_joined() {
    let hash = |a: &str, b: &str| {
        let program = program(vec![charge(&["header.x-a", "header.x-b"])]);
        let sent = get("/orders/1").header("x-a", a).header("x-b", b);
        let request = sent.request();
        let found = program.find(&request);
        let Keyed::Key(values) = found.key(&program.charges()[0]) else { panic!("it has a key") };
        values.texts().key().hash([1, 2], 3)
    };
    assert_ne!(hash("a", "b_c"), hash("a_b", "c"));
    assert_ne!(hash("a, b", ""), hash("a", "b"));
    assert_eq!(hash("a", "b"), hash("a", "b"));
}

#[test]
fn one_text_is_a_text_and_none_is_all() {
    let program =
        program(vec![charge(&[]), charge(&["ip"]), charge(&["header.x-a"]), charge(&["ip", "rule"])]);
    let sent = get("/orders/1");
    let request = sent.request();
    let found = program.find(&request);
    let shape = |place: usize| {
        let Keyed::Key(values) = found.key(&program.charges()[place]) else { panic!("it has a key") };
        match values.texts().key() {
            Key::All => "all".to_owned(),
            Key::Text(text) => text.to_owned(),
            Key::List(list) => format!("{list:?}"),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(shape(0), "all");
    assert_eq!(shape(1), "192.0.2.7");
    assert_eq!(shape(2), "[None]");
    assert_eq!(shape(3), r#"[Some("192.0.2.7"), Some("create")]"#);
}

#[test]
fn overrides_are_found_by_the_whole_key() {
    let on = |names: &[&str], limit| RuleLimit { limit: LimitSource::Named(limit), ..charge(names) };
    let program = program(vec![
        on(&["header.x-a"], 0),
        on(&["header.x-a", "header.x-b"], 0),
        on(&["ip"], 0),
        on(&["ip"], 1),
        on(&[], 0),
    ]);
    let found_for = |sent: Sent, place: usize| {
        let request = sent.request();
        let found = program.find(&request);
        let charge = &program.charges()[place];
        let Keyed::Key(values) = found.key(charge) else { panic!("it has a key") };
        found.override_of(charge, &values)
    };
    let with = |a: &str, b: &str| get("/orders/1").header("x-a", a).header("x-b", b);
    assert_eq!(found_for(with("vip-7", ""), 0), Some(0));
    assert_eq!(found_for(with("vip-8", ""), 0), None);
    assert_eq!(found_for(get("/orders/1"), 0), None);
    assert_eq!(found_for(with("a", "b"), 1), Some(1), "the first of two for one key");
    assert_eq!(found_for(with("ab", ""), 1), None);
    assert_eq!(found_for(with("b", "a"), 1), None);
    assert_eq!(found_for(with("a", "b"), 0), None);
    assert_eq!(found_for(get("/orders/1"), 2), Some(3));
    assert_eq!(found_for(get("/orders/1"), 3), None, "a limit without overrides");
    assert_eq!(found_for(get("/orders/1"), 4), None);

    // Doors ask with keys of their own.
    assert_eq!(program.override_of(0, Key::Text("vip-7")), Some(0));
    assert_eq!(program.override_of(0, Key::Bytes(b"vip-7")), Some(0));
    assert_eq!(program.override_of(0, Key::List(&[Some("a"), Some("b")])), Some(1));
    assert_eq!(program.override_of(0, Key::List(&[Some("a"), None])), None);
    assert_eq!(program.override_of(0, Key::All), None);
    assert_eq!(program.override_of(9, Key::All), None);
}
