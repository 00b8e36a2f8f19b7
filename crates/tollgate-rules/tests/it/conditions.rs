//! Conditions that are wrong, and what a person is told of them.

use crate::mistakes::mistakes;
use insta::assert_snapshot;
use tollgate_rules::parse_rules;

/// What is wrong with a condition.
fn in_when(when: &str) -> String {
    let limits = "[{ token_bucket: { rate: 1/s, burst: 1 }, key: [] }]";
    mistakes(&format!("everywhere: [{{ name: a, limits: {limits}, when: {when} }}]"))
}

#[test]
fn what_is_no_condition() {
    let told = [
        "[]",
        "{ path: orders }",
        "{ path: [/a//b, /a/../b, \"/a**\", \"/{a\", \"/{a}/{a}\", \"/a?b=c\"] }",
        "{ method: [post, \"a b\"] }",
        "{ host: [\"\", \"a:80\", \"[::1]:80\", \"*.example.com\", a/b] }",
        "{ ip: [10.0.0.1/8, 10.0.0, \"::ffff:10.0.0.0/104\"] }",
        "{ header.: x, \"header.a b\": x, cookie.a=b: x }",
        "{ hedaer.x: 1, methd: GET, route: x }",
        "{ path: {} }",
        "{ header.a: [] }",
        "{ header.a: { prefx: x } }",
        "{ header.a: { glob: /a } }",
        "{ header.a: { exists: maybe } }",
        "{ header.a: { regex: [\"(\", \"a{2,1}\", \"[z-a]\", \"x)|(y\", \"\\\\d{100000000}\", \"(?x)a # b\"] } }",
        "{ not: {} }",
        "{ any: [{}] }",
        "{ all: { method: GET } }",
        "{ time: {} }",
        "{ time: { time_zone: UTC } }",
        "{ time: { after: noon, before: 24:00 } }",
        "{ time: { after: 2026-11-15 } }",
        "{ time: { after: 2026-02-30T00:00:00Z } }",
        "{ time: { after: 2027-01-01T00:00:00Z, before: 2026-01-01T00:00:00Z } }",
        "{ time: { after: 09:00, before: 09:00:00 } }",
        "{ time: { after: 09:00, time_zone: Mars/Olympus } }",
    ]
    .map(in_when);
    assert_snapshot!(told.join("\n"), @r#"
    2:93: everywhere[0].when: must be a mapping such as `{ path: "/orders/**", method: POST }`; read a list
    2:101: everywhere[0].when.path: must begin with `/`, such as "/orders/**"
    2:102: everywhere[0].when.path[0]: must not have two slashes in a row: paths are compared without them
    2:109: everywhere[0].when.path[1]: must not have `.` or `..` between slashes: paths are compared without them
    2:118: everywhere[0].when.path[2]: must have `**` alone between slashes; `*` is any text within one segment
    2:126: everywhere[0].when.path[3]: must have `{name}` alone between slashes, the name of letters, digits, `_` and `-`
    2:133: everywhere[0].when.path[4]: must not capture the same name twice
    2:145: everywhere[0].when.path[5]: must not contain a query: match it by `query.NAME`; `?` matches any one character
    2:104: everywhere[0].when.method[0]: must be in upper case, as methods are sent: `POST`
    2:110: everywhere[0].when.method[1]: must be a method such as POST; read "a b"
    2:102: everywhere[0].when.host[0]: must not be empty; `{ exists: false }` matches requests without a host
    2:106: everywhere[0].when.host[1]: must be a host without a port, such as api.example.com
    2:114: everywhere[0].when.host[2]: must be a host without a port, such as api.example.com
    2:126: everywhere[0].when.host[3]: must be one host; its subdomains are `{ suffix: .example.com }`
    2:143: everywhere[0].when.host[4]: must be a host alone, such as api.example.com
    2:100: everywhere[0].when.ip[0]: has bits beyond its prefix; read "10.0.0.1/8", did you mean `10.0.0.0/8` or `10.0.0.1`?
    2:112: everywhere[0].when.ip[1]: must be an address or a network such as 10.0.0.0/8; read "10.0.0"
    2:120: everywhere[0].when.ip[2]: must be written as IPv4, which mapped addresses count as; read "::ffff:10.0.0.0/104"
    2:95: everywhere[0].when.header.: is not a known key; did you mean `header.NAME`?
    2:121: everywhere[0].when.header.a b: "a b" is not a valid header name
    2:136: everywhere[0].when.cookie.a=b: "a=b" is not a valid cookie name
    2:95: everywhere[0].when.hedaer.x: is not a known key; did you mean `header.x`?
    2:108: everywhere[0].when.methd: is not a known key; did you mean `method`?
    2:120: everywhere[0].when.route: is not a known key; known here: `path`, `method`, `host`, `header.NAME`, `query.NAME`, `cookie.NAME`, `ip`, `time`, `any`, `all`, `not`
    2:101: everywhere[0].when.path: must not be empty: name a comparison, such as `{ prefix: a }`
    2:105: everywhere[0].when.header.a: must not be empty: a list matches if one of its values does
    2:107: everywhere[0].when.header.a.prefx: is not a known key; did you mean `prefix`?
    2:113: everywhere[0].when.header.a.glob: is only for `path`; use `prefix`, `suffix` or `regex`
    2:115: everywhere[0].when.header.a.exists: must be `true` or `false`; read "maybe"
    2:115: everywhere[0].when.header.a.regex[0]: is not a valid regular expression: unclosed group, at character 1; read "("
    2:120: everywhere[0].when.header.a.regex[1]: is not a valid regular expression: invalid repetition count range, the start must be <= the end, at character 2; read "a{2,1}"
    2:130: everywhere[0].when.header.a.regex[2]: is not a valid regular expression: invalid character class range, the start must be <= the end, at character 2; read "[z-a]"
    2:139: everywhere[0].when.header.a.regex[3]: is not a valid regular expression: unopened group, at character 2; read "x)|(y"
    2:148: everywhere[0].when.header.a.regex[4]: is too large: repeat less, or name fewer classes of letters
    2:166: everywhere[0].when.header.a.regex[5]: must end a comment of `(?x)` with a line break, so that all of a text can be matched
    2:100: everywhere[0].when.not: must not be empty: name an attribute, such as `method: POST`
    2:101: everywhere[0].when.any[0]: must not be empty: name an attribute, such as `method: POST`
    2:100: everywhere[0].when.all: must be a list such as `[ { method: GET }, { ip: 10.0.0.0/8 } ]`; read a mapping
    2:101: everywhere[0].when.time: says no time: give `after`, `before`, or both
    2:101: everywhere[0].when.time: says no time: give `after`, `before`, or both
    2:110: everywhere[0].when.time.after: must be a point in time such as 2026-11-15T10:00:00Z, 2026-11-15 10:00:00 or, every day, 09:00; read "noon"
    2:124: everywhere[0].when.time.before: must be a point in time such as 2026-11-15T10:00:00Z, 2026-11-15 10:00:00 or, every day, 09:00; read "24:00"
    2:110: everywhere[0].when.time.after: must be a point in time such as 2026-11-15T10:00:00Z, 2026-11-15 10:00:00 or, every day, 09:00; read "2026-11-15"
    2:110: everywhere[0].when.time.after: must be a point in time such as 2026-11-15T10:00:00Z, 2026-11-15 10:00:00 or, every day, 09:00; read "2026-02-30T00:00:00Z"
    2:140: everywhere[0].when.time.before: must be later than `after`
    2:125: everywhere[0].when.time.before: must differ from `after`
    2:128: everywhere[0].when.time.time_zone: no time zone is called "Mars/Olympus"; names look like Europe/Paris
    "#);
}

#[test]
fn captures_must_be_certain() {
    let route = |when: &str, rule: &str| {
        format!(
            "upstreams: {{ u: {{ servers: [\"http://a\"] }} }}\n\
             routes: [{{ name: r, when: {when}, upstream: u, rules: [{{ name: a, when: {rule}, \
             limits: [{{ token_bucket: {{ rate: 1/s, burst: 1 }}, key: [path.id] }}] }}] }}]"
        )
    };
    for (when, rule) in [
        ("{ path: \"/{id}\" }", "{}"),
        ("{}", "{ path: \"/{id}/**\" }"),
        ("{ path: [\"/{id}\", \"/x/{id}\"] }", "{}"),
        ("{ all: [{ path: \"/{id}\" }, { method: GET }] }", "{}"),
        ("{ any: [{ path: \"/{id}\" }, { path: { glob: \"/a/{id}\" } }] }", "{}"),
    ] {
        let text = format!("version: 1\n{}", route(when, rule));
        assert!(parse_rules(&text, |_| None).is_ok(), "{text}");
    }
    let told = [
        ("{}", "{}"),
        ("{ path: [\"/{id}\", \"/x\"] }", "{}"),
        ("{ not: { path: \"/{id}\" } }", "{}"),
        ("{ any: [{ path: \"/{id}\" }, { method: GET }] }", "{}"),
        ("{ path: \"/{ID}\" }", "{ path: { prefix: /x } }"),
    ]
    .map(|(when, rule)| mistakes(&route(when, rule)));
    assert_snapshot!(told.join("\n"), @r#"
    3:129: routes[0].rules[0].limits[0].key[0]: is not captured: every path of the route or the rule must have `{id}`
    3:152: routes[0].rules[0].limits[0].key[0]: is not captured: every path of the route or the rule must have `{id}`
    3:153: routes[0].rules[0].limits[0].key[0]: is not captured: every path of the route or the rule must have `{id}`
    3:172: routes[0].rules[0].limits[0].key[0]: is not captured: every path of the route or the rule must have `{id}`
    3:166: routes[0].rules[0].limits[0].key[0]: is not captured: every path of the route or the rule must have `{id}`
    "#);
}
