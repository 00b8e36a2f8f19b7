//! What a person sees when a rule file is wrong.

use insta::assert_snapshot;
use tollgate_rules::{parse_rules, read_rules};

/// What is wrong with a file, after its version.
pub(crate) fn mistakes(text: &str) -> String {
    let text = format!("version: 1\n{text}");
    parse_rules(&text, |_| None).map(|_| ()).expect_err(&text).to_string()
}

/// What is wrong with a rule's one limit, cost and all, and with its excess.
fn in_rule(limit: &str, excess: &str) -> String {
    let limits = "limits:\n  login: { sliding_log: { limit: 5, window: 1m } }\n  \
                  work: { concurrency: { limit: 5 } }\n  api: { token_bucket: { rate: 1/s, burst: 5 } }\n";
    mistakes(&format!("{limits}everywhere: [{{ name: a, limits: [{limit}], excess: {excess} }}]"))
}

#[test]
fn a_terrible_file_is_told_in_one_go() {
    let bad = read_rules("tollgate.yaml", include_str!("terrible.yaml"), |_| None).unwrap_err();
    assert!(bad.mistakes().iter().count() >= 25);
    assert_snapshot!(bad, @r#"
    tollgate.yaml:1:10: version: must be 1, the only version there is; read "2"
    tollgate.yaml:2:10: enabled: must be `true` or `false`; read "yes"
    tollgate.yaml:3:1: listn: is not a known key; did you mean `listen`?
    tollgate.yaml:5:12: listen.gateway: must be an IP address and a port such as 127.0.0.1:8080; read ":8080"; for all addresses use `0.0.0.0:8080` or `[::]:8080`
    tollgate.yaml:6:41: listen.grpc.tls.key: is missing, such as `key: key.pem`
    tollgate.yaml:6:49: listen.grpc.tls.cert: must not be empty: the path of a file in PEM
    tollgate.yaml:6:64: listen.grpc.backlog: must be greater than zero; read "0", expected a whole number such as 100
    tollgate.yaml:8:10: listen.admin: must be an IP address and a port such as 127.0.0.1:8080; read "localhost:9090"; for this machine only use `127.0.0.1:9090`
    tollgate.yaml:10:8: store.url: must be `memory:`, or begin with `redis://`, `rediss://`, `redis-cluster://`, `rediss-cluster://`, `redis-sentinel://` or `rediss-sentinel://`; it is not shown, because it can contain a password
    tollgate.yaml:11:10: store.nodes: must be greater than zero; read "0", expected a whole number such as 100
    tollgate.yaml:12:12: store.timeout: must be greater than zero; read "0s", expected a duration such as 500ms, 1m30s or 7d
    tollgate.yaml:13:14: store.when_full: must be one of `evict`, `deny`; read "evcit"; did you mean `evict`?
    tollgate.yaml:14:19: trusted_proxies[0]: has bits beyond its prefix; read "10.0.0.1/8", did you mean `10.0.0.0/8` or `10.0.0.1`?
    tollgate.yaml:14:31: trusted_proxies[1]: must be an address or a network such as 10.0.0.0/8; read "nonsense"
    tollgate.yaml:15:10: headers: must be one of `draft-10`, `x-ratelimit`, `none`; read "draft-11"; did you mean `draft-10`?
    tollgate.yaml:16:15: log.level: must be one of `error`, `warn`, `info`, `debug`, `trace`; read "verbose"
    tollgate.yaml:19:27: limits.per-client.token_bucket.rate: must be greater than zero; read "0/s", expected a rate such as 10/s, 0.5/s or 100/30s
    tollgate.yaml:20:33: limits.per-client.overrides.vip.rate: a number must come first; read "fast", expected a rate such as 10/s, 0.5/s or 100/30s
    tollgate.yaml:20:39: limits.per-client.overrides.vip.brust: is not a known key; did you mean `burst`?
    tollgate.yaml:21:80: limits.login.overrides.vip.limit: must be greater than zero; read "0", expected a whole number such as 100
    tollgate.yaml:22:11: limits.slow.bandwidth: cannot be a named limit, because it paces one response; put it into the limits of a rule
    tollgate.yaml:23:3: limits.: must not be empty
    tollgate.yaml:25:23: upstreams.orders.servers[0]: must not contain a user name or password
    tollgate.yaml:25:63: upstreams.orders.servers[1].url: must end with the host or its port: the path comes from the request
    tollgate.yaml:25:85: upstreams.orders.servers[1].weight: must be greater than zero; read "0", expected a whole number such as 100
    tollgate.yaml:25:90: upstreams.orders.servers[2]: must begin with `http://`, `https://` or `h2c://`; did you mean `http`?
    tollgate.yaml:26:21: upstreams.empty.servers: must have at least one server
    tollgate.yaml:29:21: everywhere[0].limits[0].use: there is no limit called "per-cleint"; did you mean `per-client`?
    tollgate.yaml:32:19: routes[0].when.path: must begin with `/`, such as "/orders/**"
    tollgate.yaml:32:40: routes[0].when.method: must be in upper case, as methods are sent: `POST`
    tollgate.yaml:32:46: routes[0].when.heder.x-a: is not a known key; did you mean `header.x-a`?
    tollgate.yaml:32:64: routes[0].when.ip: must be an address or a network such as 10.0.0.0/8; read "10.0.0.300"
    tollgate.yaml:33:19: routes[0].strip_prefix: must begin with `/`, such as /orders
    tollgate.yaml:34:15: routes[0].upstream: there is no upstream called "ordes"; did you mean `orders`?
    tollgate.yaml:36:15: routes[0].rules[0].name: is given twice: every rule of a route, and of `everywhere`, needs a name of its own
    tollgate.yaml:37:38: routes[0].rules[0].when.header.x-a.regex: is not a valid regular expression: unclosed group, at character 2; read "a(b"
    tollgate.yaml:37:52: routes[0].rules[0].when.any: must not be empty
    tollgate.yaml:37:61: routes[0].rules[0].when.not: must not be empty: name an attribute, such as `method: POST`
    tollgate.yaml:39:33: routes[0].rules[0].limits[0].key[0]: there is no attribute "ipp"; did you mean `ip`?
    tollgate.yaml:39:38: routes[0].rules[0].limits[0].key[1]: is not captured: every path of the route or the rule must have `{id}`
    tollgate.yaml:39:47: routes[0].rules[0].limits[0].key[2]: "bad name" is not a valid header name
    tollgate.yaml:39:71: routes[0].rules[0].limits[0].cost: exceeds what the limit allows at once (5): every request would be denied
    tollgate.yaml:40:47: routes[0].rules[0].limits[1].missing: has no effect: no attribute of the key can be missing
    tollgate.yaml:40:59: routes[0].rules[0].limits[1].cost: must be greater than zero; read "0", expected a whole number such as 100
    tollgate.yaml:41:13: routes[0].rules[0].limits[2].key: is missing, such as `key: [ip]`; `key: []` is one bucket for all
    tollgate.yaml:42:49: routes[0].rules[0].limits[3].key: has no effect with `bandwidth`, which paces one response and charges nothing
    tollgate.yaml:43:17: routes[0].rules[0].excess: cannot wait for `limits[0]`: a `sliding_log` cannot queue requests; `token_bucket`, `leaky_bucket`, `smooth_bursty` and `smooth_warming_up` can
    tollgate.yaml:43:17: routes[0].rules[0].excess: cannot wait for `limits[1]`: a `sliding_log` cannot queue requests; `token_bucket`, `leaky_bucket`, `smooth_bursty` and `smooth_warming_up` can
    tollgate.yaml:43:17: routes[0].rules[0].excess: cannot wait for `limits[2]`: a `sliding_log` cannot queue requests; `token_bucket`, `leaky_bucket`, `smooth_bursty` and `smooth_warming_up` can
    tollgate.yaml:45:17: routes[0].rules[1].limits: must not be empty: a rule without limits does nothing
    tollgate.yaml:46:37: routes[0].rules[1].excess.reject.status: must be a status from 200 to 599; read 1000
    tollgate.yaml:46:57: routes[0].rules[1].excess.reject.content_type: must be a media type such as text/plain
    tollgate.yaml:47:9: routes[0].rules[2].name: is missing, such as `name: orders`
    tollgate.yaml:47:20: routes[0].rules[2].limits[0]: names no limit, such as `use: per-client` or an algorithm with its numbers
    tollgate.yaml:47:44: routes[0].rules[2].excess: needs a time: `{ wait: 500ms }`
    tollgate.yaml:47:62: routes[0].rules[2].on_failure: must be one of `open`, `closed`, `local`; read "maybe"
    tollgate.yaml:48:11: routes[1].name: is given twice: every route needs a name of its own
    tollgate.yaml:49:28: routes[1].when.time.after: must be a point in time such as 2026-11-15T10:00:00Z, 2026-11-15 10:00:00 or, every day, 09:00; read "25:00"
    tollgate.yaml:49:46: routes[1].when.time.time_zone: no time zone is called "Mars/Olympus"; names look like Europe/Paris
    tollgate.yaml:51:79: routes[1].rules[0].excess.divert: there is no upstream called "nowhere"; known are `orders`, `empty`
    tollgate.yaml:51:94: routes[1].rules[0].excess.wait: cannot be combined with `divert`: a rule has one action on denied requests
    "#);
}

#[test]
fn the_file_as_a_whole() {
    let told = ["", "{}", "[]", "version: one", "version: 1\nversion: 1", "version: 1\n---\nversion: 1"]
        .map(|text| parse_rules(text, |_| None).map(|_| ()).unwrap_err().to_string());
    assert_snapshot!(told.join("\n"), @r#"
    1:1: is empty
    1:1: version: is missing, such as `version: 1`
    1:1: must be a mapping such as `version: 1`; read a list
    1:10: version: must be 1, the only version there is; read "one"
    2:1: version: is given twice, first on line 1
    2:1: must be one document: remove the `---`
    "#);
}

#[test]
fn waiting_needs_limits_that_can_book() {
    let told = [
        in_rule("{ use: login, key: [ip] }", "{ wait: 1s }"),
        in_rule("{ use: work, key: [ip] }", "{ wait: 1s }"),
        in_rule("{ fixed_window: { limit: 5, window: 1m }, key: [ip] }", "{ wait: 1s }"),
        in_rule(
            "{ use: api, key: [] }, { sliding_counter: { limit: 5, window: 1m }, key: [ip] }",
            "{ wait: 1s }",
        ),
        in_rule("{ use: api, key: [] }", "{ wait: 0s }"),
    ];
    assert_snapshot!(told.join("\n"), @r#"
    6:70: everywhere[0].excess: cannot wait for `limits[0]`: a `sliding_log` cannot queue requests; `token_bucket`, `leaky_bucket`, `smooth_bursty` and `smooth_warming_up` can
    6:69: everywhere[0].excess: cannot wait for `limits[0]`: a `concurrency` limit queues requests only with a `queue` above 0
    6:98: everywhere[0].excess: cannot wait for `limits[0]`: a `fixed_window` cannot queue requests; `token_bucket`, `leaky_bucket`, `smooth_bursty` and `smooth_warming_up` can
    6:124: everywhere[0].excess: cannot wait for `limits[1]`: a `sliding_counter` cannot queue requests; `token_bucket`, `leaky_bucket`, `smooth_bursty` and `smooth_warming_up` can
    6:74: everywhere[0].excess.wait: must be greater than zero; read "0s", expected a duration such as 500ms, 1m30s or 7d
    "#);
}

#[test]
fn excesses() {
    let limit = "{ use: api, key: [ip] }";
    let told = [
        "wait",
        "rejcet",
        "{}",
        "[]",
        "{ divert: nowhere }",
        "{ reject: {}, wait: 1s }",
        "{ reject: { status: 99 } }",
        "{ degrade: { status: 204, body: x } }",
        "{ degrade: { content_type: text/plain } }",
        "{ reject: { body: x, content_type: \"a\\nb/c\" } }",
        "{ shadow: true }",
    ]
    .map(|excess| in_rule(limit, excess));
    assert_snapshot!(told.join("\n"), @r#"
    6:68: everywhere[0].excess: needs a time: `{ wait: 500ms }`
    6:68: everywhere[0].excess: must be `reject`, `shadow`, or a mapping such as `{ wait: 500ms }`; read "rejcet"; did you mean `reject`?
    6:68: everywhere[0].excess: must say one of `reject`, `wait`, `divert` or `degrade`, such as `{ wait: 500ms }`
    6:68: everywhere[0].excess: must be `reject`, `shadow`, or a mapping such as `{ wait: 500ms }`; read a list
    6:78: everywhere[0].excess.divert: there is no upstream called "nowhere"; the file has no `upstreams`
    6:88: everywhere[0].excess.wait: cannot be combined with `reject`: a rule has one action on denied requests
    6:88: everywhere[0].excess.reject.status: must be a status from 200 to 599; read 99
    6:100: everywhere[0].excess.degrade.body: must be left out: a response with this status has no body
    6:95: everywhere[0].excess.degrade.content_type: has no effect without a `body`
    6:103: everywhere[0].excess.reject.content_type: must be a media type such as text/plain
    6:70: everywhere[0].excess.shadow: is not a known key; known here: `reject`, `wait`, `divert`, `degrade`
    "#);
    assert_snapshot!(in_rule("{ bandwidth: { rate: 1KiB/s } }", "reject"), @"6:76: everywhere[0].excess: has no effect: the rule charges nothing, so it denies no request");
}

#[test]
fn charges() {
    let told = [
        "{ use: api }",
        "{ use: apy, key: [ip] }",
        "{ key: [ip] }",
        "{ use: api, token_bucket: { rate: 1/s, burst: 1 }, key: [ip] }",
        "{ sliding_log: { limit: 1, window: 1s }, token_bucket: { rate: 1/s, burst: 1 }, key: [ip] }",
        "{ use: api, key: [ip, ip] }",
        "{ use: api, key: [ip/0, ip/129, ip/x, header., heador.x, path.id, colour] }",
        "{ use: api, key: [ip, method], missing: deny }",
        "{ use: api, key: [host], missing: den }",
        "{ use: api, key: [ip], cost: 6 }",
        "{ use: api, key: [ip], cost: 0 }",
        "{ use: api, key: [ip], cost: content_length }",
        "{ use: api, key: [ip], cost: { header: \"x y\", default: 7, max: 6 } }",
        "{ use: api, key: [ip], cost: { header: x, default: 6 } }",
        "{ use: api, key: [ip], cost: { header: x, min: 3, max: 2 } }",
        "{ use: api, key: [ip], cost: { header: x, default: 0 } }",
        "{ use: api, key: [ip], cost: { header: x, min: 6 } }",
        "{ bandwidth: { rate: 1KiB/s }, cost: 1 }, { bandwidth: { rate: 1KiB/s } }, { bandwidth: { rate: 2KiB/s } }",
    ]
    .map(|limit| in_rule(limit, "reject"));
    assert_snapshot!(told.join("\n"), @r#"
    6:34: everywhere[0].limits[0].key: is missing, such as `key: [ip]`; `key: []` is one bucket for all
    6:41: everywhere[0].limits[0].use: there is no limit called "apy"; did you mean `api`?
    6:34: everywhere[0].limits[0]: names no limit, such as `use: per-client` or an algorithm with its numbers
    6:60: everywhere[0].limits[0].token_bucket: cannot be combined with `use`, which names a limit
    6:49: everywhere[0].limits[0].sliding_log: cannot be combined with `token_bucket`: a limit has one algorithm
    6:56: everywhere[0].limits[0].key[1]: is repeated in the key
    6:52: everywhere[0].limits[0].key[0]: must have a prefix of 1 to 128 bits, such as ip/24 (up to 32 it is of IPv4, above of IPv6)
    6:58: everywhere[0].limits[0].key[1]: must have a prefix of 1 to 128 bits, such as ip/24 (up to 32 it is of IPv4, above of IPv6)
    6:66: everywhere[0].limits[0].key[2]: must have a prefix of 1 to 128 bits, such as ip/24 (up to 32 it is of IPv4, above of IPv6)
    6:72: everywhere[0].limits[0].key[3]: must name a header, such as header.x-api-key
    6:81: everywhere[0].limits[0].key[4]: there is no attribute "heador.x"; did you mean `header.x`?
    6:91: everywhere[0].limits[0].key[5]: is not captured: every path of the route or the rule must have `{id}`
    6:100: everywhere[0].limits[0].key[6]: there is no attribute "colour"; known are `ip`, `ip/24`, `header.NAME`, `query.NAME`, `cookie.NAME`, `path.NAME`, `host`, `method`, `path`, `route`, `rule`
    6:74: everywhere[0].limits[0].missing: has no effect: no attribute of the key can be missing
    6:68: everywhere[0].limits[0].missing: must be one of `share`, `skip`, `deny`; read "den"; did you mean `deny`?
    6:63: everywhere[0].limits[0].cost: exceeds what the limit allows at once (5): every request would be denied
    6:63: everywhere[0].limits[0].cost: must be greater than zero; read "0", expected a whole number such as 100
    6:63: everywhere[0].limits[0].cost: must be a number, `content-length`, or `{ header: x-cost, default: 1, max: 100 }`; read "content_length"; did you mean `content-length`?
    6:73: everywhere[0].limits[0].cost.header: "x y" is not a valid header name
    6:89: everywhere[0].limits[0].cost.default: must not be above `max`, 6
    6:63: everywhere[0].limits[0].cost: exceeds what the limit allows at once (5): every request would be denied
    6:81: everywhere[0].limits[0].cost.min: must not be above `max`, 2
    6:85: everywhere[0].limits[0].cost.default: must not be below `min`, 1
    6:63: everywhere[0].limits[0].cost: exceeds what the limit allows at once (5): every request would be denied
    6:71: everywhere[0].limits[0].cost: has no effect with `bandwidth`, which paces one response and charges nothing
    6:109: everywhere[0].limits[2]: must be the only `bandwidth` of its rule
    "#);
}

#[test]
fn a_cost_that_an_override_never_gives() {
    assert_snapshot!(
        mistakes(
            "limits: { a: { token_bucket: { rate: 1/s, burst: 9 }, overrides: { x: { burst: 3 } } } }\n\
             everywhere: [{ name: a, limits: [{ use: a, key: [ip], cost: 4 }] }]"
        ),
        @"3:61: everywhere[0].limits[0].cost: exceeds what the limit allows at once (3): every request would be denied"
    );
}

#[test]
fn overrides() {
    let told = [
        "{ x: 5 }",
        "{ x: { rat: 5/s } }",
        "{ x: { burst: 3 } }",
        "{ x: { sliding_log: { limit: 5 } } }",
        "{ x: {}, x: {} }",
        "{ [a, b]: {}, [a, b]: {}, []: {}, [[a]]: {} }",
        "[]",
    ]
    .map(|overrides| {
        mistakes(&format!(
            "limits: {{ a: {{ token_bucket: {{ rate: 1/s, burst: 9, initial: 9 }}, overrides: {overrides} }} }}"
        ))
    });
    assert_snapshot!(told.join("\n"), @r#"
    2:83: limits.a.overrides.x: must be a mapping such as `{ rate: 100/s }`; read a single value
    2:85: limits.a.overrides.x.rat: is not a known key; did you mean `rate`?
    2:83: limits.a.overrides.x.initial: must not be above the burst, 3
    2:85: limits.a.overrides.x.sliding_log: is not a known key; known here: `rate`, `burst`, `initial`, `refill`
    2:87: limits.a.overrides.x: is given twice
    2:92: limits.a.overrides.[a, b]: is given twice
    2:104: limits.a.overrides.[]: must name a key: `[]` is the one bucket for all, which has the parameters of the limit itself
    2:113: limits.a.overrides.[[a]][0]: must be a key, or the list of a key's values; read a list
    2:78: limits.a.overrides: must be a mapping such as `{ vip-7: { rate: 100/s } }`; read a list
    "#);
    // What the limit hands down wrong is told once.
    assert_snapshot!(
        mistakes("limits: { a: { token_bucket: { rate: 0/s }, overrides: { x: { burst: 0 }, y: {} } } }"),
        @r#"
        2:30: limits.a.token_bucket.burst: is missing, such as `burst: 100`
        2:38: limits.a.token_bucket.rate: must be greater than zero; read "0/s", expected a rate such as 10/s, 0.5/s or 100/30s
        2:70: limits.a.overrides.x.burst: must be greater than zero; read "0", expected a whole number such as 100
        "#
    );
}

#[test]
fn doors_that_would_be_open_to_the_world() {
    let told = [
        "listen: { resp: 0.0.0.0:6380, http: { address: \"[::]:8082\", tokens: [ \"\" ] } }",
        "listen: { gateway: { address: 127.0.0.1:8080, tokens: [ word ] }, admin: { address: 127.0.0.1:9090, open: true } }",
    ]
    .map(mistakes);
    assert_snapshot!(told.join("\n"), @r#"
    2:17: listen.resp: listens beyond loopback: set `tokens: [ "${NAME}" ]`, or `open: true` to accept every client
    2:71: listen.http.tokens[0]: must not be empty: every client would be accepted
    2:20: listen.gateway: does not ask for tokens: only `grpc`, `http` and `resp` do
    2:74: listen.admin: does not ask for tokens: only `grpc`, `http` and `resp` do
    "#);
    let fine = "version: 1\nlisten: { resp: { address: 0.0.0.0:6380, tokens: [ word ] }, grpc: { address: 0.0.0.0:8081, open: true }, http: 127.0.0.2:8082 }";
    assert!(parse_rules(fine, |_| None).is_ok());
}

#[test]
fn an_admin_listener_that_would_be_open_to_the_world() {
    let hash = "sha256:".to_owned() + &"0a".repeat(32);
    let ann = format!("{{ name: ann, role: admin, token: \"{hash}\" }}");
    let told = [
        "listen: { admin: 0.0.0.0:9090 }".to_owned(),
        format!("listen: {{ admin: {{ address: 10.0.0.1:9090, users: [ {ann} ] }} }}"),
        format!("listen: {{ admin: {{ address: 127.0.0.1:9090, users: [ {ann}, {ann} ] }} }}"),
        "listen: { admin: { address: 127.0.0.1:9090, users: [ { name: \"\", role: root, token: hunter2 } ] } }"
            .to_owned(),
        "listen: { gateway: { address: 127.0.0.1:8080, proxied: true } }".to_owned(),
    ]
    .map(|text| mistakes(&text));
    assert_snapshot!(told.join("\n"), @r#"
    2:18: listen.admin: listens beyond loopback: set `users`, each with a token (`tollgate token` creates one), or use a loopback address without `proxied`
    2:18: listen.admin: listens beyond loopback without TLS: set `tls: { cert: ..., key: ... }`, or `proxied: true` if a proxy in front of it provides TLS
    2:164: listen.admin.users[1]: has the same name as another user
    2:62: listen.admin.users[0].name: must be a name of at most 64 characters
    2:72: listen.admin.users[0].role: must be one of `viewer`, `operator`, `admin`; read "root"
    2:85: listen.admin.users[0].token: must be `sha256:` and 64 hexadecimal digits; `tollgate token` prints a token and this line for it
    2:20: listen.gateway: cannot have `users`: only `admin` can
    "#);
    let tls = "tls: { cert: c, key: k }";
    for settings in [
        "address: 127.0.0.1:9090".to_owned(),
        format!("address: 0.0.0.0:9090, users: [ {ann} ], {tls}"),
        format!("address: 0.0.0.0:9090, users: [ {ann} ], proxied: true"),
        format!("address: \"[::1]:9090\", users: [ {ann} ]"),
    ] {
        let text = format!("version: 1\nlisten: {{ admin: {{ {settings} }} }}");
        parse_rules(&text, |_| None).unwrap();
    }
}

#[test]
fn names_and_places() {
    let long = "x".repeat(129);
    let told = [
        format!("limits: {{ {long}: {{ sliding_log: {{ limit: 1, window: 1s }} }} }}"),
        "limits: { \"a\\nb\": { sliding_log: { limit: 1, window: 1s } } }".to_owned(),
        "limits:\n  a: { sliding_log: { limit: 1, window: 1s } }\n  a: { sliding_log: { limit: 1, window: 1s } }".to_owned(),
        "limits: { <<: { a: 1 } }".to_owned(),
        "<<: { enabled: false }".to_owned(),
        "upstreams: { a: { servers: [\"http://b\", \"http://B\"] }, a: { servers: [x], health: { path: ok } } }".to_owned(),
        "upstreams: { a: {} }\nroutes: [{ name: \" a\", upstream: b, strip_prefix: / }, { upstream: a, strip_prefix: \"/a*\" }]".to_owned(),
        "routes: [{ name: a, upstream: a }]".to_owned(),
        "routes: { name: a }".to_owned(),
        "routes: [~]".to_owned(),
        "limits:".to_owned(),
    ]
    .map(|text| mistakes(&text));
    assert_snapshot!(told.join("\n"), @r#"
    2:11: limits.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...: must be at most 128 bytes long
    2:11: limits.a\nb: must not contain control characters, such as line breaks
    4:3: limits.a: is given twice: every limit needs a name of its own
    2:11: limits.<<: is not supported: write the keys out instead of a merge key (`<<`)
    2:1: <<: is not supported: write the keys out instead of a merge key (`<<`)
    2:41: upstreams.a.servers[1]: is given twice; a `weight` gives a server a larger share
    2:56: upstreams.a: is given twice: every upstream needs a name of its own
    2:71: upstreams.a.servers[0]: must begin with `http://`, `https://` or `h2c://`, such as http://127.0.0.1:9001
    2:91: upstreams.a.health.path: must begin with `/` and contain only ASCII without spaces, such as /ok
    2:17: upstreams.a.servers: is missing, such as `servers: [ "http://127.0.0.1:9001" ]`
    3:18: routes[0].name: must not begin or end with a space
    3:34: routes[0].upstream: there is no upstream called "b"; known are `a`
    3:51: routes[0].strip_prefix: must not end with `/`: the rest of the path starts with it
    3:56: routes[1].name: is missing, such as `name: orders`
    3:85: routes[1].strip_prefix: must be a path prefix without wildcards
    2:31: routes[0].upstream: there is no upstream called "a"; the file has no `upstreams`
    2:9: routes: must be a list such as `[ { name: orders, upstream: orders } ]`; read a mapping
    2:10: routes[0]: must be a mapping such as `{ name: orders, upstream: orders }`; read nothing
    2:7: limits: must be a mapping such as `{ per-client: { token_bucket: { rate: 10/s, burst: 100 } } }`; read nothing
    "#);
}

#[test]
fn what_does_nothing_is_a_warning() {
    let text = "version: 1\nupstreams: { u: { servers: [\"http://a\"] }, spare: { servers: [\"http://b\"] } }\n\
                routes: [{ name: off, enabled: false, upstream: u }, { name: all, upstream: u }, { name: late, upstream: u }]";
    let warnings: Vec<_> =
        parse_rules(text, |_| None).unwrap().warnings().iter().map(ToString::to_string).collect();
    assert_snapshot!(warnings.join("\n"), @r#"
    routes[2]: is never reached: routes[1] takes every request
    upstreams.spare: is not used: no route and no `divert` names it
    "#);
}

#[test]
fn what_is_not_enabled_is_checked_all_the_same() {
    assert_snapshot!(
        mistakes("everywhere: [{ name: a, enabled: false, limits: [{ use: gone, key: [ip] }] }]"),
        @r#"2:57: everywhere[0].limits[0].use: there is no limit called "gone"; the file has no `limits`"#
    );
}

/// The same keys as in YAML's other dress: a JSON file is a rule file too.
#[test]
fn json_is_yaml() {
    let text = r#"{"version": 1, "limits": {"a": {"token_bucket": {"rate": "10/s", "burst": 5}}}}"#;
    assert_eq!(parse_rules(text, |_| None).unwrap().limits.len(), 1);
}
