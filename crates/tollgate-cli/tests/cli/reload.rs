//! A server through its life: the file changes under it in every way that files do, and it leaves without dropping anybody.

use crate::{
    folder::Folder,
    serving::{Serving, get},
};
use std::{
    fs,
    os::unix::fs::symlink,
    thread,
    time::{Duration, Instant},
};
use testkit::{Canned, Upstream, eventually};

/// What is promised.
const SOON: Duration = Duration::from_secs(2);

/// Rules that answer requests for `/` with so many units left.
fn rules(upstream: &Upstream, burst: u32) -> String {
    format!(
        r#"
version: 1
listen: {{ gateway: "127.0.0.1:0", admin: "127.0.0.1:0" }}
headers: x-ratelimit
upstreams: {{ app: {{ servers: [ "{}" ] }} }}
routes:
  - name: app
    when: {{ path: /** }}
    upstream: app
    rules: [ {{ name: all, limits: [ {{ fixed_window: {{ limit: {burst}, window: forever }}, key: [] }} ] }} ]
"#,
        upstream.url()
    )
}

/// The limit that the gateway tells of.
fn limit(serving: &Serving) -> String {
    let seen = serving.get("/");
    assert_eq!(seen.status(), 200);
    seen.header("x-ratelimit-limit").unwrap_or_default().to_owned()
}

#[test]
fn every_way_to_save_a_file_is_noticed_soon() {
    let upstream = Upstream::ok();
    let folder = Folder::new();
    let file = folder.file("tollgate.yaml", rules(&upstream, 100));
    let serving = Serving::start(&file, &[]);
    assert_eq!(limit(&serving), "100");

    fs::write(&file, rules(&upstream, 101)).unwrap();
    let took = serving.generation(2);
    assert!(took < SOON, "written over: {took:?}");
    assert_eq!(limit(&serving), "101");

    let other = folder.file("other.yaml", rules(&upstream, 102));
    fs::rename(other, &file).unwrap();
    let took = serving.generation(3);
    assert!(took < SOON, "renamed over: {took:?}");
    let seen = serving.get("/");
    assert_eq!(seen.header("x-ratelimit-limit"), Some("102"));
    assert_eq!(seen.header("x-ratelimit-remaining"), Some("99"), "what was used before is used");
}

/// As Kubernetes mounts a ConfigMap: the file is a link through `..data`, and that is re-pointed.
#[test]
fn a_link_that_points_elsewhere() {
    let upstream = Upstream::ok();
    let folder = Folder::new();
    for (name, burst) in [("..one", 100), ("..two", 101)] {
        fs::create_dir(folder.path().join(name)).unwrap();
        folder.file(&format!("{name}/tollgate.yaml"), rules(&upstream, burst));
    }
    symlink("..one", folder.path().join("..data")).unwrap();
    symlink("..data/tollgate.yaml", folder.path().join("tollgate.yaml")).unwrap();
    let serving = Serving::start(folder.path().join("tollgate.yaml").to_str().unwrap(), &[]);
    assert_eq!(limit(&serving), "100");

    symlink("..two", folder.path().join("..data_tmp")).unwrap();
    fs::rename(folder.path().join("..data_tmp"), folder.path().join("..data")).unwrap();
    let took = serving.generation(2);
    assert!(took < SOON, "{took:?}");
    assert_eq!(limit(&serving), "101");
}

#[test]
fn a_bad_file_changes_nothing_and_is_told() {
    let upstream = Upstream::ok();
    let folder = Folder::new();
    let file = folder.file("tollgate.yaml", rules(&upstream, 100));
    let serving = Serving::start(&file, &[]);

    fs::write(&file, rules(&upstream, 0)).unwrap();
    let begun = Instant::now();
    let told = eventually("the failure", || {
        let (status, told) = serving.ready();
        assert_eq!(status, 200, "a mistake in a file takes no node out of service");
        Some(told["components"]["rules"].clone()).filter(|rules| rules["state"] == "ailing")
    });
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(told["generation"], 1);
    let mistake = &told["last_failure"]["mistakes"][0];
    assert_eq!(mistake["path"], "routes[0].rules[0].limits[0].fixed_window.limit", "{told}");
    assert_eq!(limit(&serving), "100");
    assert!(
        serving.log().contains("rules not reloaded; the previous rules stay in force"),
        "{}",
        serving.log()
    );

    let moved = rules(&upstream, 101).replace("admin: \"127.0.0.1:0\"", "admin: \"127.0.0.1:1\"");
    fs::write(&file, moved).unwrap();
    eventually("the other failure", || {
        let why = serving.ready().1["components"]["rules"]["last_failure"]["why"].clone();
        (why == "listen.admin: was changed, which takes a restart").then_some(())
    });

    fs::write(&file, rules(&upstream, 102)).unwrap();
    serving.generation(2);
    assert_eq!(limit(&serving), "102");
    assert_eq!(serving.ready().1["components"]["rules"]["state"], "well");
}

#[test]
fn who_is_inside_may_finish_and_others_are_told_first() {
    let upstream = Upstream::start(|asked| match asked.target.as_str() {
        "/slow" => Canned::text("at last").after(Duration::from_secs(4)),
        _ => Canned::text("here"),
    });
    let folder = Folder::new();
    let file = folder.file("tollgate.yaml", rules(&upstream, 100));
    let mut serving = Serving::start(&file, &["--drain-pause", "1500ms"]);
    assert_eq!(serving.ready().0, 200);

    let gateway = serving.gateway;
    let slow = thread::spawn(move || get(gateway, "/slow"));
    eventually("the slow request", || (upstream.in_flight() == 1).then_some(()));
    serving.stop();
    let told = eventually("not to be ready", || {
        let (status, told) = serving.ready();
        (status == 503).then_some(told)
    });
    // During the pause nobody is turned away: who balances load has yet to notice.
    assert_eq!(told["components"]["drain"]["phase"], "leaving", "{told}");
    assert_eq!(serving.get("/").status(), 200);

    eventually("the listener to close", || std::net::TcpStream::connect(gateway).is_err().then_some(()));
    assert!(serving.is_over().is_none(), "a request is under way");
    let slow = slow.join().unwrap();
    assert_eq!((slow.status(), slow.text().as_str()), (200, "at last"));
    let over = eventually("the end", || serving.is_over());
    assert_eq!(over.code(), Some(0), "{}", serving.log());
}
