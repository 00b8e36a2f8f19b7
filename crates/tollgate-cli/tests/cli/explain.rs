//! `tollgate explain`, by a file alone and by a running server.

use crate::{folder::Folder, replay::tollgate, serving::Serving};
use insta::assert_snapshot;
use serde_json::Value;
use std::net::TcpListener;
use testkit::Upstream;

fn rules(upstream: &str) -> String {
    format!(
        r#"
version: 1
listen: {{ gateway: "127.0.0.1:0", admin: "127.0.0.1:0" }}
trusted_proxies: [10.0.0.0/8]
limits:
  per-client: {{ fixed_window: {{ limit: 3, window: forever }} }}
upstreams: {{ app: {{ servers: [ "{upstream}" ] }} }}
routes:
  - {{ name: admin, when: {{ path: /admin/** }}, upstream: app }}
  - name: app
    when: {{ path: /** }}
    upstream: app
    rules:
      - name: per-ip
        limits: [ {{ use: per-client, key: [ip] }} ]
      - name: writes
        when: {{ method: POST }}
        limits: [ {{ concurrency: {{ limit: 5 }}, key: [] }} ]
"#
    )
}

/// What it prints, when all is well.
fn explain(args: &[&str]) -> String {
    let ran = tollgate(&[&["explain"], args].concat(), "");
    assert_eq!((String::from_utf8(ran.stderr).unwrap().as_str(), ran.status.code()), ("", Some(0)));
    String::from_utf8(ran.stdout).unwrap()
}

/// What it says and ends with, when not.
fn complaint(args: &[&str]) -> (String, Option<i32>) {
    let ran = tollgate(&[&["explain"], args].concat(), "");
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), "");
    (String::from_utf8(ran.stderr).unwrap(), ran.status.code())
}

#[test]
fn by_a_file() {
    let folder = Folder::new();
    let file = folder.file("rules.yaml", rules("http://127.0.0.1:9"));
    assert_snapshot!(explain(&[&file, "--path", "/x?y=1", "--ip", "192.0.2.1"]), @r#"
    GET /x
    route app
    earlier routes that do not match, closest first
      admin: path /x does not have the shape /admin/**
    rules
      per-ip applies
        per-client (fixed_window): 1 unit for ip 192.0.2.1
        excess: reject
      writes does not apply: method is GET, wanted POST
    "#);
    let forwarded = ["--ip", "10.1.2.3", "--header", "x-forwarded-for: 192.0.2.7"];
    assert_snapshot!(explain(&[&[&*file, "--path", "/x", "--json"], &forwarded[..]].concat()), @r#"
    {"method":"GET","path":"/x","enabled":true,"route":"app","captures":{},"passed_over":[{"route":"admin","place":0,"why":"path /x does not have the shape /admin/**"}],"not_listed":0,"rules":[{"rule":"per-ip","route":"app","applies":true,"charges":[{"limit":"per-client","algorithm":"fixed_window","key":[{"attribute":"ip","value":"192.0.2.7"}],"cost":1,"override_for":null}],"excess":"reject","on_failure":null},{"rule":"writes","route":"app","applies":false,"why":"method is GET, wanted POST"}]}
    "#);
}

#[test]
fn misuse() {
    let folder = Folder::new();
    let file = folder.file("rules.yaml", rules("http://127.0.0.1:9"));
    let cases: [&[&str]; 5] = [
        &["--path", "x"],
        &["--path", "/", "--header", "x"],
        &["--path", "/", "--header", "x y: z"],
        &["--path", "/", "--method", "GE T"],
        &["--path", "/", "--ask", "127.0.0.1:9090"],
    ];
    let told: String = cases
        .iter()
        .map(|case| {
            let (told, code) = complaint(&[&[&*file], *case].concat());
            assert_eq!(code, Some(2), "{told}");
            told
        })
        .collect();
    assert_snapshot!(told, @r#"
    error: path must begin with /; read "x"
    error: --header must be 'name: value'; read "x"
    error: --header: "x y": not a valid header name: invalid HTTP header name
    error: method must be a word such as GET; read "GE T"
    error: --ask must be an address such as http://127.0.0.1:9090; read "127.0.0.1:9090"
    "#);
}

#[test]
fn by_a_running_server() {
    let upstream = Upstream::ok();
    let folder = Folder::new();
    let file = folder.file("rules.yaml", rules(&upstream.url()));
    let serving = Serving::start(&file, &[]);
    let url = format!("http://{}", serving.admin);
    let ask = |more: &[&str]| explain(&[&[&*file, "--path", "/x", "--ask", &url], more].concat());

    assert_eq!(serving.get("/x").status(), 200);
    assert_snapshot!(ask(&["--method", "POST"]), @r#"
    POST /x
    route app
    earlier routes that do not match, closest first
      admin: path /x does not have the shape /admin/**
    rules
      per-ip applies
        per-client (fixed_window): 1 unit for ip 127.0.0.1
        excess: reject
      writes applies
        app/writes[0] (concurrency): 1 unit of the one bucket for all
        excess: reject
    buckets, by generation 1 of the rules
      per-ip: per-client for "127.0.0.1": allowed, leaving 1 of 3
      writes: app/writes[0] for all: allowed, leaving 4 of 5; as if unused in 60s
    "#);
    for _ in 0..2 {
        assert_eq!(serving.get("/x").status(), 200);
    }
    assert_eq!(serving.get("/x").status(), 429);
    assert_snapshot!(ask(&["--ip", "10.1.2.3", "--header", "X-Forwarded-For: 127.0.0.1"]), @r#"
    GET /x
    route app
    earlier routes that do not match, closest first
      admin: path /x does not have the shape /admin/**
    rules
      per-ip applies
        per-client (fixed_window): 1 unit for ip 127.0.0.1
        excess: reject
      writes does not apply: method is GET, wanted POST
    buckets, by generation 1 of the rules
      per-ip: per-client for "127.0.0.1": denied for good, 0 of 3 left
    "#);
    let told: Value = serde_json::from_str(&ask(&["--json"])).unwrap();
    assert_snapshot!(told["holds"].to_string(), @r#"
    [{"cost":1,"decided_by":"store","decision":"never","key":["127.0.0.1"],"limit":"per-client","limit_most":3,"remaining":0,"reset_after_ms":null,"retry_after_ms":null,"rule":"per-ip","wait_ms":0}]
    "#);
    assert_eq!((told["generation"].as_u64(), told["file"].as_str()), (Some(1), Some(file.as_str())));
    assert_eq!(told["route"], "app");
    // Asking charged nothing.
    assert_snapshot!(ask(&["--ip", "192.0.2.9"]).lines().last().unwrap().trim(), @r#"
    per-ip: per-client for "192.0.2.9": allowed, leaving 2 of 3
    "#);

    let same = folder.file("same.yaml", rules(&upstream.url()) + "# and a remark");
    assert_eq!(tollgate(&["explain", &same, "--path", "/x", "--ask", &url], "").status.code(), Some(0));
    let other = folder.file("other.yaml", rules(&upstream.url()).replace("limit: 3", "limit: 4"));
    let (told, code) = complaint(&[&other, "--path", "/x", "--ask", &url]);
    let told = told.replace(&url, "URL").replace(folder.path().to_str().unwrap(), "DIR");
    assert_eq!(code, Some(1));
    assert_snapshot!(told, @r#"
    error: URL goes by other rules than DIR/other.yaml: by DIR/rules.yaml, generation 1
      was the file changed a moment ago, or could the change not be used? URL/readyz tells
    "#);
}

#[test]
fn nobody_there_or_somebody_else() {
    let upstream = Upstream::ok();
    let folder = Folder::new();
    let file = folder.file("rules.yaml", rules(&upstream.url()));
    let (told, code) = complaint(&[&file, "--path", "/", "--ask", &upstream.url()]);
    assert_eq!(code, Some(1));
    assert_snapshot!(told.replace(&upstream.url(), "URL"), @"error: what answers at URL is no admin listener of this version (status 200); its address is in the server's file at `listen.admin`");

    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (told, code) = complaint(&[&file, "--path", "/", "--ask", &format!("http://{free}")]);
    assert_eq!(code, Some(1));
    assert_snapshot!(told.replace(&free.to_string(), "HOST:PORT"), @r#"
    error: no connection to http://HOST:PORT: Connection refused (os error 111)
      is a server there, with `listen: { admin: HOST:PORT }` in its file?
    "#);
}
