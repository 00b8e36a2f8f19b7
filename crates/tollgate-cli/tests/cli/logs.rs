//! What a served process says: lines that machines read, refusals at a level of their own, and no secrets.

use crate::{folder::Folder, serving::Serving};
use serde_json::Value;
use std::{fs, net::TcpListener, process::Command};
use testkit::{Arrival, Arrivals, Upstream, eventually};

fn rules(upstream: &Upstream, settings: &str) -> String {
    format!(
        r#"
version: 1
listen: {{ gateway: "127.0.0.1:0", admin: "127.0.0.1:0" }}
{settings}
upstreams: {{ app: {{ servers: [ "{}" ] }} }}
routes:
  - name: app
    when: {{ path: /** }}
    upstream: app
    rules: [ {{ name: few, limits: [ {{ fixed_window: {{ limit: 1, window: forever }}, key: [] }} ] }} ]
"#,
        upstream.url()
    )
}

/// The lines that are JSON.
fn lines(serving: &Serving) -> Vec<Value> {
    serving.log().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn told<'a>(lines: &'a [Value], target: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["target"] == target).collect()
}

#[test]
fn refusals_have_a_level_of_their_own_and_those_left_out_are_counted() {
    let (upstream, folder) = (Upstream::ok(), Folder::new());
    let settings = "log: { level: error, format: json, refusals_level: warn }";
    let serving = Serving::start(&folder.file("tollgate.yaml", rules(&upstream, settings)), &[]);
    let arrivals = Arrivals::new((0..41).map(|_| Arrival::at_ms(0).path("/a?b=c").on(1)));
    arrivals.play(serving.gateway);
    let lines = eventually("all refusals to be told of", || {
        let lines = lines(&serving);
        let refused = told(&lines, "refused");
        let shown = refused.iter().filter(|line| line["message"] == "refused").count() as u64;
        let left_out: u64 = refused.iter().map(|line| line["left_out"].as_u64().unwrap()).sum();
        (shown + left_out == 40).then_some(lines)
    });
    let first = told(&lines, "refused")[0];
    assert_eq!(
        (&first["level"], &first["rule"], &first["path"]),
        (&"WARN".into(), &"few".into(), &"/a".into())
    );
    assert!(told(&lines, "refused").len() < 40, "a sample is shown");
    assert!(lines.iter().all(|line| line["target"] == "refused"), "the rest is at level error");
}

#[test]
fn the_log_follows_the_file_but_for_its_format() {
    let (upstream, folder) = (Upstream::ok(), Folder::new());
    let quiet = rules(&upstream, "log: { level: error, format: json, refusals: off }");
    let file = folder.file("tollgate.yaml", quiet);
    let serving = Serving::start(&file, &[]);
    for _ in 0..3 {
        serving.get("/quiet?zq");
    }
    fs::write(&file, rules(&upstream, "log: { level: info, format: json, refusals: all, access: on }"))
        .unwrap();
    serving.generation(2);
    for _ in 0..3 {
        serving.get("/loud?zq");
    }
    let lines = eventually("three requests in the log", || {
        let lines = lines(&serving);
        (told(&lines, "access").len() == 3).then_some(lines)
    });
    assert_eq!(told(&lines, "refused").len(), 3);
    assert!(lines.iter().any(|line| line["message"] == "rules reloaded"), "{lines:?}");
    assert!(!serving.log().contains("quiet") && !serving.log().contains("zq"), "{}", serving.log());

    fs::write(&file, rules(&upstream, "log: { format: text }")).unwrap();
    eventually("the change to be refused", || {
        serving.log().contains("log.format: was changed").then_some(())
    });
}

#[test]
fn a_redis_that_is_not_there_is_told_of_before_anybody_asks() {
    let folder = Folder::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let file = folder.file(
        "tollgate.yaml",
        format!(
            "version: 1\nlisten: {{ gateway: \"127.0.0.1:0\", admin: \"127.0.0.1:0\" }}\nstore: {{ url: \"redis://{closed}\" }}\n"
        ),
    );
    let serving = Serving::start(&file, &[]);
    eventually("a line on Redis", || serving.log().contains("Redis cannot be reached").then_some(()));
    eventually("the same in the state of the node", || {
        let store = serving.ready().1["components"]["store"].clone();
        (store["mode"] == "degraded" && store.to_string().contains("refused")).then_some(())
    });
}

#[test]
fn no_line_holds_a_secret() {
    let (upstream, folder) = (Upstream::ok(), Folder::new());
    let settings = r#"
log: { level: trace, refusals: all, access: on }
store: { url: "redis://me:zq-password@127.0.0.1:1/0" }
telemetry: { otlp: "http://127.0.0.1:1/zq-path", sample: 1, headers: { authorization: "Bearer zq-collector" } }"#;
    let text = rules(&upstream, settings).replace(
        "admin: \"127.0.0.1:0\" }",
        "admin: \"127.0.0.1:0\", http: { address: \"127.0.0.1:0\", tokens: [ zq-token ] } }",
    );
    let file = folder.file("tollgate.yaml", &text);
    let serving = Serving::start(&file, &[]);
    let arrival = |path| {
        let arrival = Arrival::at_ms(0).path(path).on(1).header("authorization", "Bearer zq-client");
        arrival.header("cookie", "session=zq-cookie").header("x-api-key", "zq-key")
    };
    let arrivals = Arrivals::new([arrival("/a?token=zq-query"), arrival("/b?token=zq-query"), arrival("/c")]);
    for address in [serving.gateway, serving.admin, serving.door("http")] {
        arrivals.play(address);
    }
    fs::write(&file, text.replace("zq-password", "zq-other")).unwrap();
    eventually("the change to be refused", || serving.log().contains("store: was changed").then_some(()));
    eventually("the collector to be missed", || serving.log().contains("takes no spans").then_some(()));
    let log = serving.log();
    assert!(log.contains("few") && log.contains("/a") && log.contains("Redis"), "{log}");
    assert!(!log.contains("zq-"), "{log}");
}

/// What a server that does not start says, and what `check` says.
#[test]
fn no_mistake_holds_a_secret() {
    let folder = Folder::new();
    for wrong in [
        "store: { url: \"redis://:zq-password@127.0.0.1:no/0\" }",
        "store: { url: \"redis://:zq-password@127.0.0.1/zq-database\" }",
        "store: { url: \"postgres://:zq-password@127.0.0.1\" }",
        "telemetry: { otlp: \"http://me:zq-password@127.0.0.1\" }",
        "telemetry: { otlp: \"http://127.0.0.1/?key=zq-password\" }",
    ] {
        let file =
            folder.file("wrong.yaml", format!("version: 1\nlisten: {{ admin: \"127.0.0.1:0\" }}\n{wrong}\n"));
        let serve =
            Command::new(env!("CARGO_BIN_EXE_tollgate")).args(["serve", "-c", &file]).output().unwrap();
        assert_eq!(serve.status.code(), Some(1), "{wrong}");
        let check = Command::new(env!("CARGO_BIN_EXE_tollgate")).args(["check", &file]).output().unwrap();
        for output in [serve, check] {
            let told = String::from_utf8_lossy(&output.stderr).into_owned()
                + &String::from_utf8_lossy(&output.stdout);
            assert!(!told.contains("zq-"), "{told}");
        }
    }
}
