//! Questions in JSON to the running program: curl, Python, the gateway beside it, a Redis behind it.

use crate::{folder::Folder, opened::Opened, served::curl};
use serde_json::Value;
use std::{
    fs,
    net::SocketAddr,
    process::{Command, Stdio},
};
use testkit::{RedisServer, TlsFiles, Upstream, eventually};

const LIMITS: &str = "
limits:
  per-client: { token_bucket: { rate: 1/h, burst: 100 } }
  login:      { sliding_log: { limit: 5, window: 1h } }
  checkout:   { concurrency: { limit: 2, max_hold: 1m, queue: 10 } }
";

fn doors(folder: &Folder, more: &str) -> Opened {
    let listen = "version: 1\nlisten: { http: 127.0.0.1:0, admin: 127.0.0.1:0 }";
    Opened::start(&folder.file("tollgate.yaml", format!("{listen}\n{more}{LIMITS}")), &["http", "admin"])
}

/// The status, and what came with it.
fn ask(address: SocketAddr, path: &str, body: &str) -> (u16, Value) {
    let url = format!("http://{address}/v1/{path}");
    let told = curl(&["-s", "-w", "\n%{http_code}", "--json", body, &url]);
    let (body, status) = told.rsplit_once('\n').unwrap();
    (status.parse().unwrap(), serde_json::from_str(body).unwrap_or_default())
}

fn metric(opened: &Opened, series: &str) -> f64 {
    let page = curl(&["-s", &format!("http://{}/metrics", opened.address("admin"))]);
    let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in {page}")).parse().unwrap()
}

#[test]
fn a_file_with_doors_and_nothing_else_is_served() {
    let folder = Folder::new();
    let opened = doors(&folder, "");
    let http = opened.address("http");
    let (status, told) = ask(http, "check", r#"{"limit":"per-client","key":"alice"}"#);
    assert_eq!((status, &told["remaining"], &told["decided_by"]), (200, &99.into(), &"store".into()));
    let (status, _) = ask(http, "check", r#"{"limit":"login","key":"alice","cost":6}"#);
    assert_eq!(status, 429);
    let (status, _) = ask(http, "check", r#"{"limit":{"fixed_window":{"limit":3,"window":"1h"}},"key":"a"}"#);
    assert_eq!(status, 200);
    let url = format!("http://{http}/v1/check");
    let two = curl(&[
        "-s",
        "--http2-prior-knowledge",
        "-w",
        " by %{http_version}",
        "--json",
        r#"{"limit":"login"}"#,
        &url,
    ]);
    assert!(two.starts_with(r#"{"allow":true"#) && two.ends_with(" by 2"), "{two}");
    let head = curl(&["-si", "--json", r#"{"limit":"login","key":"b","cost":6}"#, &url]);
    assert!(head.starts_with("HTTP/1.1 429 Too Many Requests") && !head.contains("retry-after"), "{head}");

    let answers = |limit: &str, outcome: &str| {
        metric(
            &opened,
            &format!("tollgate_answers_total{{door=\"http\",limit=\"{limit}\",outcome=\"{outcome}\"}}"),
        )
    };
    assert_eq!((answers("per-client", "allow"), answers("login", "reject")), (1.0, 2.0));
    assert_eq!((answers("(defined)", "allow"), answers("login", "allow")), (1.0, 1.0));
    let page = curl(&["-s", &format!("http://{}/metrics", opened.address("admin"))]);
    assert!(!page.contains("alice"), "no label is made of a key");
    assert_eq!(metric(&opened, "tollgate_in_flight{listener=\"http\"}"), 0.0);
}

#[test]
fn the_gateway_and_the_door_charge_the_same_buckets() {
    let (folder, upstream) = (Folder::new(), Upstream::ok());
    let rules = format!(
        "version: 1
listen: {{ gateway: 127.0.0.1:0, http: 127.0.0.1:0 }}
upstreams: {{ app: {{ servers: [ \"{}\" ] }} }}
routes:
  - name: app
    when: {{ path: /** }}
    upstream: app
    rules: [ {{ name: r, limits: [ {{ use: login, key: [header.x-api-key, header.x-tenant] }} ] }} ]
{LIMITS}",
        upstream.url()
    );
    let opened = Opened::start(&folder.file("tollgate.yaml", rules), &["gateway", "http"]);
    let url = format!("http://{}/", opened.address("gateway"));
    let get = || curl(&["-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", "x-api-key: alice", &url]);
    assert_eq!((get().as_str(), get().as_str()), ("200", "200"));
    let key = r#"{"limit":"login","key":["alice",null]}"#;
    assert_eq!(ask(opened.address("http"), "check", key).1["remaining"], 2);
    assert_eq!(get(), "200");
    assert_eq!(ask(opened.address("http"), "check", key).1["remaining"], 0);
    assert_eq!(get(), "429");
    assert_eq!(ask(opened.address("http"), "reset", key).0, 204);
    assert_eq!(get(), "200");
}

/// The lines of the book, as they stand there.
#[test]
fn python_asks_with_what_comes_with_it() {
    let folder = Folder::new();
    let opened = doors(&folder, "");
    let book = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/asking.md")).unwrap();
    let (_, program) = book.split_once("```python\n").unwrap();
    let (program, _) = program.split_once("```").unwrap();
    let program = program.replace("127.0.0.1:8082", &opened.address("http").to_string());
    let more = r#"
assert answer == {"allow": True, "wait_ms": 0, "limit": 100, "remaining": 99, "reset_after_ms": 3600000,
                  "retry_after_ms": 0, "decided_by": "store"}, answer
refused = check("login", ["alice", None], cost=6)
assert not refused["allow"] and refused["retry"] == "never", refused

import http.client
from urllib.parse import urlparse
connection = http.client.HTTPConnection(urlparse("http://ADDRESS").netloc, timeout=30)

def ask(method, path, body=None):
    text = None if body is None else json.dumps(body)
    connection.request(method, path, text, {} if body is None else {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    return answer.status, json.loads(text) if text else None

status, batch = ask("POST", "/v1/check", {"checks": [{"limit": "login", "key": "k", "id": "1"}] * 3})
assert status == 200 and [one["remaining"] for one in batch["answers"]] == [4, 4, 4], batch
status, held = ask("POST", "/v1/permits", {"limit": "checkout", "key": "é\u0000\n", "cost": 2})
assert status == 201, held
path = "/v1/permits/" + held["permit"]
assert ask("POST", "/v1/permits", {"limit": "checkout", "key": "é\u0000\n"})[0] == 429
assert ask("PUT", path)[0] == 200 and ask("DELETE", path) == (204, None) and ask("DELETE", path)[0] == 410
status, waited = ask("POST", "/v1/wait", {"limit": "login", "key": "w", "up_to_ms": 1000})
assert status == 200 and waited["waited_ms"] == 0, waited
assert ask("POST", "/v1/check", {"limit": "nobody"})[0] == 404
print("all is well")
"#;
    let file =
        folder.file("client.py", program + &more.replace("ADDRESS", &opened.address("http").to_string()));
    let ran = Command::new("python3")
        .arg(file)
        .stdin(Stdio::null())
        .output()
        .expect("python3 is installed by the set-up");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(said.contains("all is well"), "{said}{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn words_and_certificates_are_asked_for_and_followed() {
    let folder = Folder::new();
    let make = |name: &str| {
        let directory = folder.path().join(name);
        fs::create_dir(&directory).unwrap();
        TlsFiles::make(&directory)
    };
    let (old, new) = (make("old"), make("new"));
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let install = |files: &TlsFiles| {
        fs::copy(&files.certificate, &cert).unwrap();
        fs::copy(&files.key, &key).unwrap();
    };
    install(&old);
    let tls = format!("tls: {{ cert: {}, key: {} }}", cert.display(), key.display());
    let listen = format!(
        "version: 1\nlisten:\n  http: {{ address: 127.0.0.1:0, tokens: [ sesame-sesame-sesame ], {tls} }}\n  admin: {{ address: 127.0.0.1:0, {tls} }}\n"
    );
    let opened = Opened::start(&folder.file("tollgate.yaml", listen + LIMITS), &["http", "admin"]);
    let url = format!("https://{}/v1/check", opened.address("http"));
    let admin = format!("https://{}/healthz", opened.address("admin"));
    let ask = |trusted: &TlsFiles, word: &str| {
        let (trusted, word) = (trusted.authority.to_str().unwrap(), format!("authorization: Bearer {word}"));
        let body = r#"{"limit":"login","cost":0}"#;
        let how = "%{http_code} by %{http_version}";
        curl(&["-s", "-o", "/dev/null", "-w", how, "--cacert", trusted, "-H", &word, "--json", body, &url])
    };
    let greets = |trusted: &TlsFiles| {
        let trusted = trusted.authority.to_str().unwrap();
        curl(&["-s", "-o", "/dev/null", "-w", "%{http_code}", "--cacert", trusted, &admin]) == "200"
    };
    assert_eq!(ask(&old, "sesame-sesame-sesame"), "200 by 2");
    assert_eq!(ask(&old, "sesame-sesame-sesamE"), "401 by 2");
    assert!(ask(&new, "sesame-sesame-sesame").starts_with("000") && greets(&old) && !greets(&new));

    // Half of a pair.
    fs::copy(&new.certificate, &cert).unwrap();
    opened.says("certificate not reloaded; the previous one stays in use");
    assert_eq!(ask(&old, "sesame-sesame-sesame"), "200 by 2");
    install(&new);
    eventually("the new certificate", || (ask(&new, "sesame-sesame-sesame") == "200 by 2").then_some(()));
    eventually("the new certificate for admin", || greets(&new).then_some(()));
    assert!(ask(&old, "sesame-sesame-sesame").starts_with("000"));
}

#[test]
fn other_rules_are_asked_for_as_soon_as_they_are_in_force() {
    let folder = Folder::new();
    let opened = doors(&folder, "");
    let http = opened.address("http");
    ask(http, "check", r#"{"limit":"login","key":"a","cost":2}"#);
    assert_eq!(ask(http, "check", r#"{"limit":"later"}"#).0, 404);
    let listen = "version: 1\nlisten: { http: 127.0.0.1:0, admin: 127.0.0.1:0 }";
    let more = "  first: { fixed_window: { limit: 9, window: 1h } }\n  later: { fixed_window: { limit: 1, window: 1h } }\n";
    let limits = LIMITS.replace("limits:\n", &format!("limits:\n{more}")).replace("limit: 5", "limit: 7");
    folder.file("tollgate.yaml", format!("{listen}\n{limits}"));
    eventually("other rules", || (ask(http, "peek", r#"{"limit":"later"}"#).0 == 200).then_some(()));
    assert_eq!(
        ask(http, "check", r#"{"limit":"login","key":"a"}"#).1["remaining"],
        4,
        "two of seven were used"
    );
    assert_eq!(ask(http, "check", r#"{"limit":"later"}"#).0, 200);
    let series =
        |limit: &str| format!("tollgate_answers_total{{door=\"http\",limit=\"{limit}\",outcome=\"allow\"}}");
    assert_eq!((metric(&opened, &series("login")), metric(&opened, &series("later"))), (2.0, 1.0));
}

#[test]
fn told_to_stop_it_lets_nobody_wait() {
    let folder = Folder::new();
    let mut opened = doors(&folder, "");
    let http = opened.address("http");
    ask(http, "check", r#"{"limit":{"sliding_log":{"limit":1,"window":"5m"}}}"#);
    let url = format!("http://{http}/v1/wait");
    let waiting = Command::new("curl")
        .args([
            "-s",
            "-w",
            "%{http_code}",
            "--json",
            r#"{"limit":{"sliding_log":{"limit":1,"window":"5m"}},"up_to_ms":600000}"#,
            &url,
        ])
        .stdout(Stdio::piped())
        .spawn()
        .expect("curl is installed by the set-up");
    eventually("it waits", || {
        (metric(&opened, "tollgate_in_flight{listener=\"http\"}") == 1.0).then_some(())
    });
    opened.stop();
    let told = waiting.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&told.stdout);
    assert!(told.contains("this node is shutting down; ask another") && told.ends_with("503"), "{told}");
    assert!(opened.ended().success());
}

#[test]
fn two_programs_on_one_redis_share_limits_and_permits() {
    let (folder, redis) = (Folder::new(), RedisServer::start());
    let rules = format!(
        "version: 1\nlisten: {{ http: 127.0.0.1:0 }}\nstore: {{ url: \"{}\", timeout: 500ms, on_failure: open }}\n{LIMITS}",
        redis.url()
    );
    let file = folder.file("tollgate.yaml", rules);
    let (one, mut two) = (Opened::start(&file, &["http"]), Opened::start(&file, &["http"]));
    let login = r#"{"limit":"login","key":"a","cost":2}"#;
    assert_eq!(ask(one.address("http"), "check", login).1["remaining"], 3);
    assert_eq!(ask(two.address("http"), "check", login).1["remaining"], 1);
    let (status, held) =
        ask(two.address("http"), "permits", r#"{"limit":"checkout","key":"a","cost":2,"up_to_ms":100}"#);
    assert_eq!(status, 201, "{held}");
    // The node that gave it is gone; it is held still, and any other knows it.
    two.stop();
    assert!(two.ended().success());
    assert_eq!(ask(one.address("http"), "permits", r#"{"limit":"checkout","key":"a"}"#).0, 429);
    let request = |opened: &Opened, method: &str| {
        let url =
            format!("http://{}/v1/permits/{}", opened.address("http"), held["permit"].as_str().unwrap());
        curl(&["-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", method, &url])
    };
    let two = Opened::start(&file, &["http"]);
    assert_eq!(request(&two, "PUT"), "200");
    assert_eq!(request(&one, "DELETE"), "204");
    assert_eq!(request(&two, "DELETE"), "410");

    redis.kill();
    let (status, told) = ask(one.address("http"), "check", login);
    assert_eq!((status, &told["decided_by"]), (200, &"failure: open".into()));
    assert_eq!(ask(one.address("http"), "reset", login.replace(",\"cost\":2", "").as_str()).0, 503);
}
