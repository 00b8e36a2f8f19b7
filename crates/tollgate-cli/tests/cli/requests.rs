//! Requests replayed through a rule file.

use crate::{
    folder::Folder,
    replay::{redis, tollgate},
};
use insta::assert_snapshot;

const RULES: &str = r#"
version: 1
trusted_proxies: [10.0.0.0/8]
limits:
  per-client:
    token_bucket: { rate: 1/s, burst: 2 }
    overrides: { vip: { burst: 5 } }
upstreams: { app: { servers: [ "http://127.0.0.1:9" ] } }
everywhere:
  - { name: per-ip, limits: [ { sliding_log: { limit: 3, window: 1m }, key: [ip] } ] }
routes:
  - name: orders
    when: { path: "/orders/**" }
    upstream: app
    rules:
      - name: create
        when: { method: POST }
        limits: [ { use: per-client, key: [header.x-api-key], missing: deny } ]
        on_failure: open
      - name: tried-out
        when: { query.try: { exists: true } }
        limits: [ { fixed_window: { limit: 1, window: 1m }, key: [] } ]
        excess: shadow
  - name: slow
    when: { path: /slow }
    upstream: app
    rules:
      - name: paced
        limits: [ { token_bucket: { rate: 2/s, burst: 1 }, key: [] } ]
        excess: { wait: 600ms }
  - name: busy
    when: { path: /busy }
    upstream: app
    rules:
      - name: in-flight
        limits: [ { concurrency: { limit: 1, max_hold: 10s }, key: [] } ]
  - name: at-night
    when: { path: /night, time: { after: "22:00", time_zone: UTC } }
    upstream: app
    rules:
      - { name: big, limits: [ { token_bucket: { rate: 1/s, burst: 2 }, key: [], cost: content-length } ] }
"#;

/// What these lines are answered, in memory and by a Redis in the same words.
fn answers(lines: &[&str]) -> String {
    let folder = Folder::new();
    let rules = folder.file("rules.yaml", RULES);
    let input = lines.join("\n");
    let ran = tollgate(&["replay", "--rules", &rules], &input);
    assert_eq!((String::from_utf8(ran.stderr).unwrap().as_str(), ran.status.code()), ("", Some(0)));
    let shared = tollgate(&["replay", "--rules", &rules, "--store", &redis().url()], &input);
    assert_eq!((String::from_utf8(shared.stderr).unwrap().as_str(), shared.status.code()), ("", Some(0)));
    assert_eq!(String::from_utf8(shared.stdout).unwrap(), String::from_utf8(ran.stdout.clone()).unwrap());
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn no_route_takes_it() {
    assert_snapshot!(answers(&[r#"{"at_us":0,"path":"/"}"#]), @r#"
    {"at_us":0,"route":null,"rules":[],"decision":"none","wait_us":0,"refused_by":null,"excess":null,"retry_after_us":null,"charges":[],"shadows":[]}
    "#);
}

#[test]
fn a_key_with_numbers_of_its_own() {
    let post = |key: &str, ip: &str| {
        format!(
            r#"{{"at_us":0,"method":"POST","path":"/orders/7","headers":{{"x-api-key":"{key}"}},"ip":"{ip}"}}"#
        )
    };
    let lines = [
        post("k", "192.0.2.1"),
        post("k", "192.0.2.2"),
        post("k", "192.0.2.3"),
        post("vip", "192.0.2.4"),
        post("vip", "192.0.2.5"),
        post("vip", "192.0.2.6"),
        r#"{"at_us":0,"method":"POST","path":"/orders/7","ip":"192.0.2.7"}"#.to_owned(),
    ];
    assert_snapshot!(answers(&lines.each_ref().map(String::as_str)), @r#"
    {"at_us":0,"route":"orders","rules":["per-ip","create"],"decision":"allow","wait_us":0,"refused_by":null,"excess":null,"retry_after_us":0,"charges":[{"rule":"per-ip","limit":"everywhere/per-ip[0]","key":["192.0.2.1"],"cost":1,"decision":"allow","wait_us":0,"remaining":2,"retry_after_us":0,"reset_after_us":60000000},{"rule":"create","limit":"per-client","key":["k"],"cost":1,"decision":"allow","wait_us":0,"remaining":1,"retry_after_us":0,"reset_after_us":1000000}],"shadows":[]}
    {"at_us":0,"route":"orders","rules":["per-ip","create"],"decision":"allow","wait_us":0,"refused_by":null,"excess":null,"retry_after_us":0,"charges":[{"rule":"per-ip","limit":"everywhere/per-ip[0]","key":["192.0.2.2"],"cost":1,"decision":"allow","wait_us":0,"remaining":2,"retry_after_us":0,"reset_after_us":60000000},{"rule":"create","limit":"per-client","key":["k"],"cost":1,"decision":"allow","wait_us":0,"remaining":0,"retry_after_us":0,"reset_after_us":2000000}],"shadows":[]}
    {"at_us":0,"route":"orders","rules":["per-ip","create"],"decision":"deny","wait_us":0,"refused_by":"create","excess":"reject","retry_after_us":1000000,"charges":[{"rule":"per-ip","limit":"everywhere/per-ip[0]","key":["192.0.2.3"],"cost":1,"decision":"allow","wait_us":0,"remaining":3,"retry_after_us":0,"reset_after_us":0},{"rule":"create","limit":"per-client","key":["k"],"cost":1,"decision":"deny","wait_us":0,"remaining":0,"retry_after_us":1000000,"reset_after_us":2000000}],"shadows":[]}
    {"at_us":0,"route":"orders","rules":["per-ip","create"],"decision":"allow","wait_us":0,"refused_by":null,"excess":null,"retry_after_us":0,"charges":[{"rule":"per-ip","limit":"everywhere/per-ip[0]","key":["192.0.2.4"],"cost":1,"decision":"allow","wait_us":0,"remaining":2,"retry_after_us":0,"reset_after_us":60000000},{"rule":"create","limit":"per-client","key":["vip"],"cost":1,"decision":"allow","wait_us":0,"remaining":4,"retry_after_us":0,"reset_after_us":1000000}],"shadows":[]}
    {"at_us":0,"route":"orders","rules":["per-ip","create"],"decision":"allow","wait_us":0,"refused_by":null,"excess":null,"retry_after_us":0,"charges":[{"rule":"per-ip","limit":"everywhere/per-ip[0]","key":["192.0.2.5"],"cost":1,"decision":"allow","wait_us":0,"remaining":2,"retry_after_us":0,"reset_after_us":60000000},{"rule":"create","limit":"per-client","key":["vip"],"cost":1,"decision":"allow","wait_us":0,"remaining":3,"retry_after_us":0,"reset_after_us":2000000}],"shadows":[]}
    {"at_us":0,"route":"orders","rules":["per-ip","create"],"decision":"allow","wait_us":0,"refused_by":null,"excess":null,"retry_after_us":0,"charges":[{"rule":"per-ip","limit":"everywhere/per-ip[0]","key":["192.0.2.6"],"cost":1,"decision":"allow","wait_us":0,"remaining":2,"retry_after_us":0,"reset_after_us":60000000},{"rule":"create","limit":"per-client","key":["vip"],"cost":1,"decision":"allow","wait_us":0,"remaining":2,"retry_after_us":0,"reset_after_us":3000000}],"shadows":[]}
    {"at_us":0,"route":"orders","rules":["per-ip","create"],"decision":"deny","wait_us":0,"refused_by":"create","excess":"reject","why":"header.x-api-key is missing","retry_after_us":null,"charges":[],"shadows":[]}
    "#);
}

#[test]
fn who_is_behind_a_proxy() {
    let lines = [
        r#"{"at_us":0,"path":"/orders/7","ip":"10.0.0.1","headers":{"x-forwarded-for":"192.0.2.1"}}"#,
        r#"{"at_us":0,"path":"/orders/7","ip":"172.16.0.1","headers":{"x-forwarded-for":["192.0.2.1"]}}"#,
    ];
    assert_snapshot!(answers(&lines), @r#"
    {"at_us":0,"route":"orders","rules":["per-ip"],"decision":"allow","wait_us":0,"refused_by":null,"excess":null,"retry_after_us":0,"charges":[{"rule":"per-ip","limit":"everywhere/per-ip[0]","key":["192.0.2.1"],"cost":1,"decision":"allow","wait_us":0,"remaining":2,"retry_after_us":0,"reset_after_us":60000000}],"shadows":[]}
    {"at_us":0,"route":"orders","rules":["per-ip"],"decision":"allow","wait_us":0,"refused_by":null,"excess":null,"retry_after_us":0,"charges":[{"rule":"per-ip","limit":"everywhere/per-ip[0]","key":["172.16.0.1"],"cost":1,"decision":"allow","wait_us":0,"remaining":2,"retry_after_us":0,"reset_after_us":60000000}],"shadows":[]}
    "#);
}

#[test]
fn waits_shadows_slots_and_times() {
    let shadowed = r#"{"at_us":0,"path":"/orders/7?try=1"}"#;
    assert_snapshot!(answers(&[shadowed, shadowed]), @r#"
    {"at_us":0,"route":"orders","rules":["per-ip","tried-out"],"decision":"allow","wait_us":0,"refused_by":null,"excess":null,"retry_after_us":0,"charges":[{"rule":"per-ip","limit":"everywhere/per-ip[0]","key":["127.0.0.1"],"cost":1,"decision":"allow","wait_us":0,"remaining":2,"retry_after_us":0,"reset_after_us":60000000}],"shadows":[{"rule":"tried-out","decision":"allow"}]}
    {"at_us":0,"route":"orders","rules":["per-ip","tried-out"],"decision":"allow","wait_us":0,"refused_by":null,"excess":null,"retry_after_us":0,"charges":[{"rule":"per-ip","limit":"everywhere/per-ip[0]","key":["127.0.0.1"],"cost":1,"decision":"allow","wait_us":0,"remaining":1,"retry_after_us":0,"reset_after_us":60000000}],"shadows":[{"rule":"tried-out","decision":"deny"}]}
    "#);
    let slow = r#"{"at_us":0,"path":"/slow","ip":"192.0.2.1"}"#;
    assert_snapshot!(answers(&[slow, slow, slow]), @r#"
    {"at_us":0,"route":"slow","rules":["per-ip","paced"],"decision":"allow","wait_us":0,"refused_by":null,"excess":null,"retry_after_us":0,"charges":[{"rule":"per-ip","limit":"everywhere/per-ip[0]","key":["192.0.2.1"],"cost":1,"decision":"allow","wait_us":0,"remaining":2,"retry_after_us":0,"reset_after_us":60000000},{"rule":"paced","limit":"slow/paced[0]","key":[],"cost":1,"decision":"allow","wait_us":0,"remaining":0,"retry_after_us":0,"reset_after_us":500000}],"shadows":[]}
    {"at_us":0,"route":"slow","rules":["per-ip","paced"],"decision":"wait","wait_us":500000,"refused_by":null,"excess":null,"retry_after_us":0,"charges":[{"rule":"per-ip","limit":"everywhere/per-ip[0]","key":["192.0.2.1"],"cost":1,"decision":"allow","wait_us":0,"remaining":1,"retry_after_us":0,"reset_after_us":60000000},{"rule":"paced","limit":"slow/paced[0]","key":[],"cost":1,"decision":"wait","wait_us":500000,"remaining":0,"retry_after_us":0,"reset_after_us":1000000}],"shadows":[]}
    {"at_us":0,"route":"slow","rules":["per-ip","paced"],"decision":"deny","wait_us":0,"refused_by":"paced","excess":"wait","retry_after_us":400000,"charges":[{"rule":"per-ip","limit":"everywhere/per-ip[0]","key":["192.0.2.1"],"cost":1,"decision":"allow","wait_us":0,"remaining":1,"retry_after_us":0,"reset_after_us":60000000},{"rule":"paced","limit":"slow/paced[0]","key":[],"cost":1,"decision":"deny","wait_us":0,"remaining":0,"retry_after_us":400000,"reset_after_us":1000000}],"shadows":[]}
    "#);
    let busy = r#"{"at_us":0,"path":"/busy"}"#;
    assert_snapshot!(answers(&[busy, busy, r#"{"at_us":10000000,"path":"/busy"}"#]), @r#"
    {"at_us":0,"route":"busy","rules":["per-ip","in-flight"],"decision":"allow","wait_us":0,"refused_by":null,"excess":null,"retry_after_us":0,"charges":[{"rule":"per-ip","limit":"everywhere/per-ip[0]","key":["127.0.0.1"],"cost":1,"decision":"allow","wait_us":0,"remaining":2,"retry_after_us":0,"reset_after_us":60000000},{"rule":"in-flight","limit":"busy/in-flight[0]","key":[],"cost":1,"decision":"allow","wait_us":0,"remaining":0,"retry_after_us":0,"reset_after_us":10000000}],"shadows":[]}
    {"at_us":0,"route":"busy","rules":["per-ip","in-flight"],"decision":"deny","wait_us":0,"refused_by":"in-flight","excess":"reject","retry_after_us":null,"charges":[{"rule":"per-ip","limit":"everywhere/per-ip[0]","key":["127.0.0.1"],"cost":1,"decision":"allow","wait_us":0,"remaining":2,"retry_after_us":0,"reset_after_us":60000000},{"rule":"in-flight","limit":"busy/in-flight[0]","key":[],"cost":1,"decision":"deny","wait_us":0,"remaining":0,"retry_after_us":null,"reset_after_us":10000000}],"shadows":[]}
    {"at_us":10000000,"route":"busy","rules":["per-ip","in-flight"],"decision":"allow","wait_us":0,"refused_by":null,"excess":null,"retry_after_us":0,"charges":[{"rule":"per-ip","limit":"everywhere/per-ip[0]","key":["127.0.0.1"],"cost":1,"decision":"allow","wait_us":0,"remaining":1,"retry_after_us":0,"reset_after_us":60000000},{"rule":"in-flight","limit":"busy/in-flight[0]","key":[],"cost":1,"decision":"allow","wait_us":0,"remaining":0,"retry_after_us":0,"reset_after_us":10000000}],"shadows":[]}
    "#);
    let (noon, night) = (43_200_000_000_u64, 79_200_000_000_u64);
    let at = |at: u64, more: &str| format!(r#"{{"at_us":{at},"path":"/night","headers":{{{more}}}}}"#);
    let lines = [
        at(noon, ""),
        at(night, r#""content-length":"2""#),
        at(night, r#""content-length":"3""#),
        at(night, r#""transfer-encoding":"chunked""#),
    ];
    assert_snapshot!(answers(&lines.each_ref().map(String::as_str)), @r#"
    {"at_us":43200000000,"route":null,"rules":[],"decision":"none","wait_us":0,"refused_by":null,"excess":null,"retry_after_us":null,"charges":[],"shadows":[]}
    {"at_us":79200000000,"route":"at-night","rules":["per-ip","big"],"decision":"allow","wait_us":0,"refused_by":null,"excess":null,"retry_after_us":0,"charges":[{"rule":"per-ip","limit":"everywhere/per-ip[0]","key":["127.0.0.1"],"cost":1,"decision":"allow","wait_us":0,"remaining":2,"retry_after_us":0,"reset_after_us":60000000},{"rule":"big","limit":"at-night/big[0]","key":[],"cost":2,"decision":"allow","wait_us":0,"remaining":0,"retry_after_us":0,"reset_after_us":2000000}],"shadows":[]}
    {"at_us":79200000000,"route":"at-night","rules":["per-ip","big"],"decision":"never","wait_us":0,"refused_by":"big","excess":"reject","retry_after_us":null,"charges":[{"rule":"per-ip","limit":"everywhere/per-ip[0]","key":["127.0.0.1"],"cost":1,"decision":"allow","wait_us":0,"remaining":2,"retry_after_us":0,"reset_after_us":60000000},{"rule":"big","limit":"at-night/big[0]","key":[],"cost":3,"decision":"never","wait_us":0,"remaining":0,"retry_after_us":null,"reset_after_us":2000000}],"shadows":[]}
    {"at_us":79200000000,"route":"at-night","rules":["per-ip","big"],"decision":"deny","wait_us":0,"refused_by":"big","excess":"reject","why":"it does not tell the length of its body","retry_after_us":null,"charges":[],"shadows":[]}
    "#);
}

#[test]
fn nothing_is_left_in_redis() {
    let server = testkit::RedisServer::start();
    let folder = Folder::new();
    let rules = folder.file("rules.yaml", RULES);
    let lines: String = (0..300)
        .map(|one| format!("{{\"at_us\":0,\"method\":\"POST\",\"path\":\"/orders/7?try\",\"ip\":\"192.0.{}.{}\",\"headers\":{{\"x-api-key\":\"{one}\"}}}}\n", one / 250, one % 250))
        .collect();
    let ran = tollgate(&["replay", "--rules", &rules, "--store", &server.url()], &lines);
    assert_eq!((String::from_utf8(ran.stderr).unwrap().as_str(), ran.status.code()), ("", Some(0)));
    assert_eq!(ran.stdout.iter().filter(|byte| **byte == b'\n').count(), 300);
    let kept = server.command(&["KEYS", "*"]);
    assert_eq!(kept.items().len(), 0, "{kept:?}");
}

/// A rule's own policy would let everything pass; a replay would rather end.
#[test]
fn no_policy_decides_for_a_redis_that_is_gone() {
    let server = testkit::RedisServer::start();
    server.kill();
    let folder = Folder::new();
    let rules = folder.file("rules.yaml", RULES);
    let line = r#"{"at_us":0,"method":"POST","path":"/orders/7","headers":{"x-api-key":"k"}}"#;
    let ran = tollgate(&["replay", "--rules", &rules, "--store", &server.url()], line);
    let told = String::from_utf8(ran.stderr).unwrap();
    assert_eq!((ran.status.code(), ran.stdout.len()), (Some(1), 0), "{told}");
    assert!(told.starts_with("error: line 1: the store does not answer: "), "{told}");
}

#[test]
fn bad_lines_and_bad_arguments() {
    let folder = Folder::new();
    let rules = folder.file("rules.yaml", RULES);
    let lines = [
        r#"{"at_us":0}"#,
        r#"{"path":"/"}"#,
        r#"{"at_us":0,"path":"orders"}"#,
        r#"{"at_us":0,"path":"/","key":"k"}"#,
        r#"{"at_us":0,"path":"/","header":{}}"#,
        r#"{"at_us":0,"path":"/","headers":["x"]}"#,
        r#"{"at_us":0,"path":"/","headers":{"x":7}}"#,
        r#"{"at_us":0,"path":"/","headers":{"x y":"1"}}"#,
        r#"{"at_us":0,"path":"/","headers":{"x":"\n"}}"#,
        r#"{"at_us":0,"path":"/","ip":"localhost"}"#,
        r#"{"at_us":0,"path":"/","method":""}"#,
        r#"{"at_us":0,"path":"/","path":"/x"}"#,
        r#"[]"#,
    ];
    let told = lines.map(|line| {
        let ran = tollgate(&["replay", "--rules", &rules], line);
        assert_eq!((ran.status.code(), ran.stdout.len()), (Some(1), 0), "{line}");
        format!("{line}\n  {}", String::from_utf8(ran.stderr).unwrap())
    });
    assert_snapshot!(told.concat(), @r#"
    {"at_us":0}
      error: line 1: path: is missing
    {"path":"/"}
      error: line 1: at_us: is missing; give microseconds since 1970, such as 0
    {"at_us":0,"path":"orders"}
      error: line 1: path must begin with /; read "orders"
    {"at_us":0,"path":"/","key":"k"}
      error: line 1: key: is not a known field; known are "at_us", "method", "path", "headers", "host", "ip"
    {"at_us":0,"path":"/","header":{}}
      error: line 1: header: is not a known field; did you mean "headers"?
    {"at_us":0,"path":"/","headers":["x"]}
      error: line 1: headers: must be an object of texts or lists of texts, such as {"x-api-key":"k"}; read ["x"]
    {"at_us":0,"path":"/","headers":{"x":7}}
      error: line 1: headers: must be an object of texts or lists of texts, such as {"x-api-key":"k"}; read {"x":7}
    {"at_us":0,"path":"/","headers":{"x y":"1"}}
      error: line 1: headers: "x y": not a valid header name: invalid HTTP header name
    {"at_us":0,"path":"/","headers":{"x":"\n"}}
      error: line 1: headers: "\n": not a valid header value: failed to parse header value
    {"at_us":0,"path":"/","ip":"localhost"}
      error: line 1: ip: must be an address such as 10.0.0.1 or 2001:db8::1; read "localhost"
    {"at_us":0,"path":"/","method":""}
      error: line 1: method must be a word such as GET; read ""
    {"at_us":0,"path":"/","path":"/x"}
      error: line 1: path: is given twice; leave one of them
    []
      error: line 1: the line must be an object such as {"at_us":0,"method":"GET","path":"/"}; read []
    "#);

    let both = tollgate(&["replay", "--rules", &rules, "--limit", "concurrency: { limit: 1 }"], "");
    assert_eq!(both.status.code(), Some(2));
    let stdin = tollgate(&["replay", "--rules", "-"], RULES);
    assert_eq!(stdin.status.code(), Some(2));
    assert_snapshot!(String::from_utf8(stdin.stderr).unwrap(), @"error: --rules - takes all of standard input; name the file of the lines");
    let piped =
        tollgate(&["replay", "--rules", "-", &folder.file("lines", r#"{"at_us":0,"path":"/"}"#)], RULES);
    assert_eq!(piped.status.code(), Some(0));
}
