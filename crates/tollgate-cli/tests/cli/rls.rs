//! Envoy's rate limit service, asked by the real Envoy and by a Python client with Envoy's own messages.

use crate::{
    folder::Folder,
    serving::{self, Serving},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::fs::symlink,
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    thread,
};
use testkit::{Arrival, Arrivals, Envoy, Seen, Upstream, envoy_clients, eventually};

const RULES: &str = "
version: 1
listen: { gateway: 127.0.0.1:0, grpc: 127.0.0.1:0, admin: 127.0.0.1:0 }
domains: { files: [ domains/*.yaml ], headers: true }
";

fn shop(requests: u32) -> String {
    format!(
        "domain: shop
descriptors:
- key: user
  rate_limit: {{ unit: year, requests_per_unit: {requests}, name: per-user }}
"
    )
}

/// A folder with a rule file, and one domain in a folder beside it.
fn folder(domain: &str) -> (Folder, String) {
    let folder = Folder::new();
    fs::create_dir(folder.path().join("domains")).unwrap();
    folder.file("domains/shop.yaml", domain);
    let rules = folder.file("tollgate.yaml", RULES);
    (folder, rules)
}

/// The Python client. Ended when dropped.
pub(crate) struct Client {
    child: Child,
    told: BufReader<ChildStdout>,
}

impl Client {
    fn start(serving: &Serving) -> Self {
        Self::to(serving.door("grpc"), &[])
    }

    /// One that asks there, told more as its script says.
    pub(crate) fn to(address: SocketAddr, more: &[&str]) -> Self {
        let python = envoy_clients().join("bin/python");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/envoy/ask.py");
        let mut child = Command::new(&python)
            .arg(script)
            .arg(address.to_string())
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}; please run scripts/setup test", python.display()));
        let told = BufReader::new(child.stdout.take().unwrap());
        Self { child, told }
    }

    fn say(&mut self, line: &str) -> Value {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
        let mut told = String::new();
        self.told.read_line(&mut told).unwrap();
        serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told:?}"))
    }

    fn ask(&mut self, request: &Value) -> Value {
        self.say(&request.to_string())
    }

    /// One hit of a user.
    pub(crate) fn hit(&mut self, user: &str) -> Value {
        self.ask(
            &json!({ "domain": "shop", "descriptors": [{ "entries": [{ "key": "user", "value": user }] }] }),
        )
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_client_with_envoys_own_messages() {
    let (_folder, rules) = folder(&shop(2));
    let serving = Serving::start(&rules, &[]);
    let mut client = Client::start(&serving);
    let first = client.hit("alice");
    assert_eq!(first["overallCode"], "OK");
    let status = &first["statuses"][0];
    assert_eq!(status["currentLimit"], json!({ "requestsPerUnit": 2, "unit": "YEAR", "name": "per-user" }));
    assert_eq!(status["limitRemaining"], 1);
    assert_eq!(first["responseHeadersToAdd"][0], json!({ "key": "RateLimit-Limit", "value": "2" }));
    client.hit("alice");
    assert_eq!(client.hit("alice")["overallCode"], "OVER_LIMIT");
    assert_eq!(client.hit("bob")["overallCode"], "OK");
    let carol = json!({ "entries": [{ "key": "user", "value": "carol" }], "hitsAddend": "2" });
    assert_eq!(client.ask(&json!({ "domain": "shop", "descriptors": [carol] }))["overallCode"], "OK");

    let counted = serving::get(serving.admin, "/metrics").text();
    let answers = |outcome: &str, count: u32| {
        counted.contains(&format!(
            "tollgate_answers_total{{door=\"grpc\",limit=\"shop.user\",outcome=\"{outcome}\"}} {count}\n"
        ))
    };
    assert!(
        answers("allow", 4) && answers("reject", 1),
        "descriptors are counted, not their hits: {counted}"
    );
    assert!(!counted.contains("alice"), "no label is made of what a client sent");
    assert!(serving::get(serving.admin, "/v1/top").text().contains("alice"));

    let told = client.ask(&json!({ "domain": "", "descriptors": [{}] }));
    assert_eq!(
        told,
        json!({ "error": "INVALID_ARGUMENT", "details": "rate limit domain must not be empty" })
    );
    let several = json!({ "domain": "shop", "descriptors": [
        { "entries": [{ "key": "user", "value": "bob" }], "hitsAddend": "0" },
        { "entries": [{ "key": "x", "value": "" }], "limit": { "requestsPerUnit": 5, "unit": "MINUTE" } },
    ]});
    let told = client.ask(&several);
    let left = |at: usize| told["statuses"][at]["limitRemaining"].clone();
    assert_eq!([left(0), left(1)], [1, 4], "a peek, and a limit that comes with the question");
    assert_eq!(client.say("-"), json!({ "health": 1 }));
    assert_eq!(client.say("ratelimit"), json!({ "health": 1 }));
    assert_eq!(client.say("other")["error"], "NOT_FOUND");
}

fn get(envoy: &Envoy, user: &str) -> Seen {
    Arrivals::new([Arrival::at_ms(0).path("/").header("x-user", user)]).play(envoy.address()).remove(0)
}

#[test]
fn the_real_envoy_asks_and_does_as_it_is_told() {
    let (_folder, rules) = folder(&shop(2));
    let serving = Serving::start(&rules, &[]);
    let upstream = Upstream::ok();
    let settings = ["enable_x_ratelimit_headers: DRAFT_VERSION_03"];
    let envoy = Envoy::start(upstream.address(), serving.door("grpc"), &settings);
    for left in ["1", "0"] {
        let seen = get(&envoy, "alice");
        assert_eq!(seen.status(), 200);
        assert_eq!(seen.header("x-ratelimit-limit"), Some("2, 2;w=31536000;name=\"per-user\""));
        assert_eq!(seen.header("x-ratelimit-remaining"), Some(left));
        assert_eq!(seen.header("ratelimit-remaining"), Some(left), "ours");
        assert!(seen.header("x-ratelimit-reset").unwrap().parse::<u64>().unwrap() > 0);
    }
    let seen = get(&envoy, "alice");
    assert_eq!(seen.status(), 429);
    assert_eq!(seen.header("x-envoy-ratelimited"), Some("true"));
    assert_eq!(seen.header("x-ratelimit-remaining"), Some("0"));
    assert_eq!(seen.header("ratelimit-limit"), Some("2"));
    assert_eq!(get(&envoy, "bob").status(), 200);
    assert_eq!(upstream.asked().len(), 3, "what was refused went nowhere");
}

/// A header may hold any bytes, and a call that fails lets pass: such bytes must not make it fail.
#[test]
fn the_real_envoy_asks_about_bytes_that_are_no_text() {
    let (_folder, rules) = folder(&shop(2));
    let serving = Serving::start(&rules, &[]);
    let upstream = Upstream::ok();
    let envoy = Envoy::start(upstream.address(), serving.door("grpc"), &["failure_mode_deny: true"]);
    let get = |user: u8| {
        let mut stream = TcpStream::connect(envoy.address()).unwrap();
        let request =
            [b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx-user: ", &[user][..], b"\r\n\r\n"];
        stream.write_all(&request.concat()).unwrap();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).unwrap();
        String::from_utf8_lossy(&heard[..12]).into_owned()
    };
    assert_eq!([0xff; 3].map(get), ["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 429"]);
    assert_eq!(get(0xfe), "HTTP/1.1 200", "somebody else");
}

#[test]
fn with_the_switch_off_descriptors_are_counted_as_skipped() {
    let (folder, _) = folder(&shop(0));
    let rules = folder.file("tollgate.yaml", format!("{RULES}enabled: false\n"));
    let serving = Serving::start(&rules, &[]);
    assert_eq!(Client::start(&serving).hit("alice")["overallCode"], "OK");
    let counted = serving::get(serving.admin, "/metrics").text();
    let series = r#"tollgate_answers_total{door="grpc",limit="shop.user",outcome="skip"} 1"#;
    assert!(counted.lines().any(|line| line == series), "{counted}");
}

#[test]
fn a_service_that_is_gone_lets_pass_or_not_as_envoy_is_told() {
    for (setting, status) in [("failure_mode_deny: false", 200), ("failure_mode_deny: true", 500)] {
        let (_folder, rules) = folder(&shop(1));
        let serving = Serving::start(&rules, &[]);
        let upstream = Upstream::ok();
        let envoy = Envoy::start(upstream.address(), serving.door("grpc"), &[setting]);
        assert_eq!([get(&envoy, "a").status(), get(&envoy, "a").status()], [200, 429], "{setting}");
        drop(serving);
        assert_eq!(get(&envoy, "a").status(), status, "{setting}");
    }
}

/// The reason that `/readyz` gives for rules that were not taken.
fn refused(serving: &Serving) -> String {
    eventually("a refusal of the files", || {
        let (_, told) = serving.ready();
        told["components"]["rules"]["last_failure"]["why"].as_str().map(str::to_owned)
    })
}

#[test]
fn domain_files_that_change_come_and_go_are_followed() {
    let (folder, rules) = folder(&shop(5));
    let serving = Serving::start(&rules, &[]);
    let mut client = Client::start(&serving);
    let left = |client: &mut Client, user| client.hit(user)["statuses"][0]["limitRemaining"].clone();
    assert_eq!(left(&mut client, "a"), 4);

    folder.file("domains/shop.yaml", shop(9));
    serving.generation(2);
    assert_eq!(left(&mut client, "a"), 7, "what was counted stays");

    folder.file("domains/more.yaml", shop(1).replace("shop", "more"));
    serving.generation(3);
    let more = json!({ "domain": "more", "descriptors": [{ "entries": [{ "key": "user", "value": "a" }] }] });
    assert_eq!(client.ask(&more)["overallCode"], "OK");
    assert_eq!(client.ask(&more)["overallCode"], "OVER_LIMIT");

    fs::remove_file(folder.path().join("domains/more.yaml")).unwrap();
    serving.generation(4);
    assert_eq!(client.ask(&more)["overallCode"], "OK", "nothing limits it any more");

    folder.file("domains/shop.yaml", shop(9).replace("year", "yearn"));
    let why = refused(&serving);
    assert!(
        why.contains("shop.yaml:4:23: descriptors[0].rate_limit.unit: invalid rate limit unit 'yearn'"),
        "{why}"
    );
    assert!(serving.log().contains("invalid rate limit unit 'yearn'"));
    assert_eq!(left(&mut client, "a"), 6, "the old files are in force");
    folder.file("domains/shop.yaml", shop(8));
    serving.generation(5);
    assert_eq!(left(&mut client, "a"), 4);
}

/// As Kubernetes mounts a ConfigMap: the files are links through `..data`, and that is re-pointed.
#[test]
fn domain_files_behind_a_link_that_points_elsewhere() {
    let folder = Folder::new();
    let mount = folder.path().join("domains");
    for (name, requests) in [("..one", 5), ("..two", 9)] {
        fs::create_dir_all(mount.join(name)).unwrap();
        folder.file(&format!("domains/{name}/shop.yaml"), shop(requests));
    }
    symlink("..one", mount.join("..data")).unwrap();
    symlink("..data/shop.yaml", mount.join("shop.yaml")).unwrap();
    let rules = folder.file("tollgate.yaml", RULES);
    let serving = Serving::start(&rules, &[]);
    let mut client = Client::start(&serving);
    assert_eq!(client.hit("a")["statuses"][0]["limitRemaining"], 4);
    symlink("..two", mount.join("..data_tmp")).unwrap();
    fs::rename(mount.join("..data_tmp"), mount.join("..data")).unwrap();
    serving.generation(2);
    assert_eq!(client.hit("a")["statuses"][0]["limitRemaining"], 7);
}

#[test]
fn files_that_change_under_load_drop_nobody_and_lose_no_count() {
    let (folder, rules) = folder(&shop(1_000_000));
    let serving = Serving::start(&rules, &[]);
    let (is_over, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = Client::start(&serving);
                while !is_over.load(SeqCst) {
                    assert_eq!(client.hit("a")["overallCode"], "OK");
                    asked.fetch_add(1, SeqCst);
                }
            });
        }
        for generation in 2..6 {
            folder.file("domains/shop.yaml", shop(1_000_000 + generation as u32));
            serving.generation(generation);
            let before = asked.load(SeqCst);
            eventually("questions about the new limit", || (asked.load(SeqCst) >= before + 20).then_some(()));
        }
        is_over.store(true, SeqCst);
    });
    let left = Client::start(&serving).hit("a")["statuses"][0]["limitRemaining"].as_u64().unwrap();
    assert_eq!(left, 1_000_005 - asked.load(SeqCst) as u64 - 1);
}

#[test]
fn check_reads_the_domain_files_too() {
    let (folder, rules) = folder(&shop(1).replace("unit: year", "unit: never"));
    folder.file("domains/other.yaml", "domain: shop\ndescriptors: [ { kex: a } ]");
    let check = |rules: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_tollgate")).args(["check", rules]).output().unwrap();
        (
            output.status.success(),
            String::from_utf8(output.stderr).unwrap(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let (good, told, _) = check(&rules);
    assert!(!good);
    for line in [
        "other.yaml:2:18: descriptors[0].kex: config error, unknown key 'kex'; did you mean `key`?",
        "shop.yaml:1:9: domain: duplicate domain 'shop' in config file",
        "shop.yaml:4:23: descriptors[0].rate_limit.unit: invalid rate limit unit 'never'",
    ] {
        assert!(told.contains(line), "{line}:\n{told}");
    }
    fs::remove_file(folder.path().join("domains/other.yaml")).unwrap();
    folder.file("domains/shop.yaml", shop(1));
    let (good, told, output) = check(&rules);
    assert!(good, "{told}");
    assert!(output.ends_with("1 domain with 1 descriptor limit\n"), "{output}");
    fs::remove_file(folder.path().join("domains/shop.yaml")).unwrap();
    let (good, told, _) = check(&rules);
    assert!(!good && told.contains("no file matches"), "{told}");
}
