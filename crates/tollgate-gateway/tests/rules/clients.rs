//! Whose bucket: addresses that are claimed and addresses that are known, and requests that lack what a key is made of.

use crate::stage::{Stage, get, one_rule};
use testkit::Arrival;

fn from(last: u8) -> Arrival {
    get("/").from([127, 0, 0, last])
}

#[test]
fn a_claimed_address_counts_for_nothing_unless_a_trusted_proxy_makes_the_claim() {
    let rule = one_rule("limits: [ { fixed_window: { limit: 1, window: 1h }, key: [ip] } ]");
    let claims = |claim: &str| {
        ["x-forwarded-for", "x-real-ip", "forwarded", "client-ip", "true-client-ip"]
            .into_iter()
            .fold(from(2), |arrival, name| arrival.header(name, claim))
    };
    let (stage, _) = Stage::still(&rule);
    assert_eq!(
        stage.statuses([claims("192.0.2.1"), claims("192.0.2.2"), claims("127.0.0.9, 192.0.2.3")]),
        [200, 429, 429]
    );
    assert_eq!(stage.ask(from(3)).status(), 200);
    let asked = stage.up.asked();
    assert_eq!(asked[0].header("x-forwarded-for"), Some("127.0.0.2"), "the claim is not passed on");

    let (stage, _) = Stage::still(&format!("trusted_proxies: [ 127.0.0.2/32, 10.0.0.0/8 ]\n{rule}"));
    let through = |proxy: u8, claim: &str| from(proxy).header("x-forwarded-for", claim);
    assert_eq!(
        stage.statuses([through(2, "192.0.2.1"), through(2, "192.0.2.2"), through(2, "192.0.2.1")]),
        [200, 200, 429]
    );
    // What the client wrote itself, in front of what the proxies saw.
    assert_eq!(stage.ask(through(2, "203.0.113.1, 192.0.2.1, 10.1.1.1")).status(), 429);
    assert_eq!(stage.ask(through(3, "203.0.113.7")).status(), 200);
    assert_eq!(stage.ask(through(3, "203.0.113.8")).status(), 429, "one that is not trusted");
    // Several lines are one list.
    let lines = from(2).header("x-forwarded-for", "203.0.113.1").header("x-forwarded-for", "192.0.2.1");
    assert_eq!(stage.ask(lines).status(), 429);
    // An entry that is no address: the last that is known is the proxy.
    assert_eq!(
        stage.statuses([through(2, "203.0.113.1, unknown"), through(2, "other, nonsense")]),
        [200, 429]
    );
}

/// IPv6 clients have a /64 to themselves, IPv4 in IPv6 is IPv4, and groups are groups.
#[test]
fn addresses_are_grouped_as_the_key_says() {
    let rule = |key: &str| {
        format!(
            "trusted_proxies: [ 127.0.0.0/8 ]\n{}",
            one_rule(&format!("limits: [ {{ fixed_window: {{ limit: 1, window: 1h }}, key: [{key}] }} ]"))
        )
    };
    let claim = |address: &str| get("/").header("x-forwarded-for", address);
    let (stage, _) = Stage::still(&rule("ip"));
    assert_eq!(stage.statuses(["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"].map(claim)), [200, 429, 200]);
    assert_eq!(
        stage.statuses(["192.0.2.1", "::ffff:192.0.2.1", "[::ffff:c000:201]:80"].map(claim)),
        [200, 429, 429]
    );
    let (stage, _) = Stage::still(&rule("ip/24"));
    assert_eq!(stage.statuses(["192.0.2.1", "192.0.2.200", "192.0.3.1"].map(claim)), [200, 429, 200]);
}

/// What a key may lack: the attribute, a request that has it, and how the answer calls it.
const LACKING: [(&str, &str, &str); 3] = [
    ("header.x-api-key", "/a/b", "header x-api-key"),
    ("query.user", "/a/b", "query parameter user"),
    ("cookie.session", "/a/b", "cookie session"),
];

fn has_it(value: &str) -> Arrival {
    get(&format!("/a?user={value}"))
        .header("x-api-key", value)
        .header("cookie", &format!("other=1; session={value}"))
}

fn keyed(attribute: &str, missing: &str) -> String {
    format!(
        "routes:
  - name: r
    upstream: spare
    rules: [ {{ name: only, limits: [ {{ fixed_window: {{ limit: 1, window: 1h }}, key: [{attribute}], missing: {missing} }} ] }} ]
"
    )
}

#[test]
fn who_lacks_the_key_shares_or_is_let_by_or_is_told_what_is_missing() {
    for (attribute, path, called) in LACKING {
        let (stage, _) = Stage::still(&keyed(attribute, "share"));
        assert_eq!(stage.times(2, &get(path)), [200, 429], "{attribute}: all who lack it share a bucket");
        assert_eq!(stage.statuses([has_it("a"), has_it("a"), has_it("b")]), [200, 429, 200], "{attribute}");

        let (stage, _) = Stage::still(&keyed(attribute, "skip"));
        assert_eq!(stage.times(3, &get(path)), [200, 200, 200], "{attribute}");
        let seen = stage.get(path);
        assert_eq!(seen.header("ratelimit"), None, "{attribute}: nothing was charged, nothing is told");
        assert_eq!(stage.statuses([has_it("a"), has_it("a"), has_it("b")]), [200, 429, 200], "{attribute}");

        let (stage, _) = Stage::still(&keyed(attribute, "deny"));
        let seen = stage.get(path);
        assert_eq!(
            (seen.status(), seen.header("content-type")),
            (400, Some("application/problem+json")),
            "{attribute}"
        );
        assert!(
            seen.text().contains(&format!("the request has no {called}")),
            "{attribute}: {}",
            seen.text()
        );
        assert_eq!(stage.statuses([has_it("a"), has_it("a"), has_it("b")]), [200, 429, 200], "{attribute}");
    }
}

/// A request that is incomplete is not in excess of anything: what the excess gets is not for it.
#[test]
fn an_incomplete_request_is_told_so_whatever_the_excess_gets() {
    for excess in
        ["{ reject: { status: 503, body: Later } }", "{ divert: up }", "{ degrade: { body: \"[]\" } }"]
    {
        let (stage, _) = Stage::still(
            &keyed("header.k", "deny").replace("} ] } ]", &format!("}} ], excess: {excess} }} ]")),
        );
        let seen = stage.get("/a");
        assert_eq!(seen.status(), 400, "{excess}");
        assert!(seen.text().contains("the request has no header k"), "{excess}: {}", seen.text());
        assert_eq!(stage.up.asked().len() + stage.spare.asked().len(), 0, "{excess}");
    }
}

/// An empty value is a value, an absent one is not; nor do two keys meet by how their values are cut.
#[test]
fn keys_are_told_apart() {
    let rule = "limits: [ { fixed_window: { limit: 1, window: 1h }, key: [header.a, header.b] } ]";
    let (stage, _) = Stage::still(&one_rule(rule));
    let two = |a: &str, b: &str| get("/").header("a", a).header("b", b);
    let different = [
        two("x", "y_z"),
        two("x_y", "z"),
        two("", ""),
        two("", "x"),
        get("/").header("b", "x"),
        get("/"),
        get("/").header("a", ""),
    ];
    assert_eq!(stage.statuses(different.clone()), [200; 7]);
    assert_eq!(stage.statuses(different), [429; 7]);
}

/// The length of a body that does not tell it is not guessed.
#[test]
fn a_body_that_pays_by_its_length_must_tell_it() {
    let rule = "limits: [ { token_bucket: { rate: 1/h, burst: 100 }, key: [], cost: content-length } ]";
    let (stage, _) = Stage::still(&one_rule(rule));
    let post = |bytes: usize| get("/").method("POST").body(vec![b'x'; bytes]);
    assert_eq!(
        stage.statuses([post(60), post(41), post(40), post(1), post(0), get("/")]),
        [200, 429, 200, 429, 200, 200]
    );
    let chunked = get("/").method("POST").header("transfer-encoding", "chunked");
    let seen = stage.ask(chunked);
    assert_eq!(seen.status(), 411, "{}", seen.text());
    assert!(seen.text().contains("Content-Length"), "{}", seen.text());
}
