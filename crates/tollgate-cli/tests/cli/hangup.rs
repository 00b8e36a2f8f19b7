//! SIGHUP to `tollgate serve`: rules and certificates are reloaded at once, and nothing ends.
//!
//! A file under [`Unquiet`] is touched all the time. The watcher waits for files to be quiet, so what is reloaded from
//! such a file was reloaded by the signal.

use crate::{
    folder::Folder,
    opened::Opened,
    serving::{Serving, get},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, SystemTime},
};
use testkit::{Canned, TlsFiles, Upstream, eventually};

/// Files that are never quiet; until dropped.
struct Unquiet {
    ends: Arc<AtomicBool>,
    touching: Option<JoinHandle<()>>,
}

impl Unquiet {
    fn new(files: &[&Path]) -> Self {
        let files: Vec<_> = files.iter().map(|file| (*file).to_owned()).collect();
        let ends = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&ends);
        let touching = thread::spawn(move || {
            for second in 0.. {
                if ended.load(Relaxed) {
                    return;
                }
                for file in &files {
                    let file = File::options().append(true).open(file).unwrap();
                    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(second)).unwrap();
                }
                thread::sleep(Duration::from_millis(20));
            }
        });
        Self { ends, touching: Some(touching) }
    }
}

impl Drop for Unquiet {
    fn drop(&mut self) {
        self.ends.store(true, Relaxed);
        let _ = self.touching.take().map(JoinHandle::join);
    }
}

fn rules(upstream: &Upstream, limit: u32) -> String {
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
    rules: [ {{ name: all, limits: [ {{ fixed_window: {{ limit: {limit}, window: forever }}, key: [] }} ] }} ]
"#,
        upstream.url()
    )
}

fn limit(serving: &Serving) -> String {
    let seen = serving.get("/");
    assert_eq!(seen.status(), 200);
    seen.header("x-ratelimit-limit").unwrap_or_default().to_owned()
}

/// How often the log has these words.
fn logged(serving: &Serving, words: &str) -> usize {
    serving.log().matches(words).count()
}

#[test]
fn rules_are_reloaded_changed_or_not_as_often_as_it_is_sent() {
    let upstream = Upstream::ok();
    let folder = Folder::new();
    let file = folder.file("tollgate.yaml", rules(&upstream, 100));
    let mut serving = Serving::start(&file, &[]);
    let _unquiet = Unquiet::new(&[Path::new(&file)]);
    for generation in 2..5 {
        serving.hang_up();
        serving.generation(generation);
    }
    assert_eq!(limit(&serving), "100");
    fs::write(&file, rules(&upstream, 101)).unwrap();
    serving.hang_up();
    serving.generation(5);
    assert_eq!(limit(&serving), "101");
    assert_eq!(serving.metric("tollgate_reloads_total{result=\"ok\"}"), 4);
    eventually("the log", || (logged(&serving, "reloading rules and certificates") == 4).then_some(()));
    eventually("the log", || (logged(&serving, "rules reloaded") == 4).then_some(()));

    for _ in 0..50 {
        serving.hang_up();
    }
    serving.generation(6);
    assert_eq!((limit(&serving).as_str(), serving.is_over()), ("101", None));
}

#[test]
fn a_broken_file_keeps_the_rules_and_the_log_says_why() {
    let upstream = Upstream::ok();
    let folder = Folder::new();
    let file = folder.file("tollgate.yaml", rules(&upstream, 100));
    let mut serving = Serving::start(&file, &[]);
    let _unquiet = Unquiet::new(&[Path::new(&file)]);
    fs::write(&file, rules(&upstream, 0)).unwrap();
    for times in 1..4 {
        serving.hang_up();
        let told = "rules not reloaded; the previous rules stay in force";
        eventually("the log", || (logged(&serving, told) == times).then_some(()));
    }
    assert!(serving.log().contains("limits[0].fixed_window.limit"), "{}", serving.log());
    assert_eq!((limit(&serving).as_str(), serving.is_over()), ("100", None));
    fs::write(&file, rules(&upstream, 102)).unwrap();
    serving.hang_up();
    serving.generation(2);
    assert_eq!(limit(&serving), "102");
}

#[test]
fn files_that_domains_name_are_read() {
    let folder = Folder::new();
    let descriptors = "descriptors: [ { key: user, rate_limit: { unit: year, requests_per_unit: 2 } } ]";
    let shop = folder.file("shop.yaml", format!("domain: shop\n{descriptors}"));
    let listen = "listen: { gateway: \"127.0.0.1:0\", admin: \"127.0.0.1:0\", grpc: \"127.0.0.1:0\" }";
    let file = folder.file("tollgate.yaml", format!("version: 1\n{listen}\ndomains: [ shop.yaml ]\n"));
    let serving = Serving::start(&file, &[]);
    let _unquiet = Unquiet::new(&[Path::new(&shop)]);
    fs::write(&shop, "domain: shop\ndescriptors: nonsense\n").unwrap();
    serving.hang_up();
    eventually("the failure", || (logged(&serving, "rules not reloaded") == 1).then_some(()));
    assert!(serving.log().contains("shop.yaml"), "{}", serving.log());
}

#[test]
fn certificates_of_every_listener_are_read() {
    let folder = Folder::new();
    let make = |name: &str| {
        let directory = folder.path().join(name);
        fs::create_dir(&directory).unwrap();
        TlsFiles::make(&directory)
    };
    let (files, next) = (make("now"), make("next"));
    let tls = format!("tls: {{ cert: {}, key: {} }}", files.certificate.display(), files.key.display());
    let names = ["gateway", "admin", "http", "grpc", "resp"];
    let listen = names.map(|name| format!("{name}: {{ address: 127.0.0.1:0, {tls} }}")).join(", ");
    let file = folder.file("tollgate.yaml", format!("version: 1\nlisten: {{ {listen} }}\n"));
    let opened = Opened::start(&file, &names);
    let _unquiet = Unquiet::new(&[&files.certificate, &files.key]);
    let trusts = |authority: &Path, listener: &str| {
        let address = opened.address(listener).to_string();
        let mut client = Command::new("openssl");
        client.args(["s_client", "-connect", &address, "-verify_return_error", "-CAfile"]).arg(authority);
        client.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    };
    fs::write(&files.key, fs::read(&next.key).unwrap()).unwrap();
    opened.hang_up();
    let told = "certificate not reloaded; the previous one stays in use";
    eventually("five refusals", || (opened.log().matches(told).count() == names.len()).then_some(()));
    assert!(names.iter().all(|name| trusts(&files.authority, name)), "the previous pair is served");

    fs::write(&files.certificate, fs::read(&next.certificate).unwrap()).unwrap();
    opened.hang_up();
    for name in names {
        eventually(name, || trusts(&next.authority, name).then_some(()));
        assert!(!trusts(&files.authority, name), "{name}");
    }
}

#[test]
fn no_request_is_lost_while_rules_are_reloaded_again_and_again() {
    let upstream = Upstream::ok();
    let folder = Folder::new();
    let file = folder.file("tollgate.yaml", rules(&upstream, 1_000_000));
    let serving = Serving::start(&file, &[]);
    let gateway = serving.gateway;
    let ends = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let ends = Arc::clone(&ends);
            thread::spawn(move || {
                let mut statuses = Vec::new();
                while !ends.load(Relaxed) {
                    statuses.push(get(gateway, "/").status());
                }
                statuses
            })
        })
        .collect();
    for generation in 2..12 {
        serving.hang_up();
        serving.generation(generation);
    }
    ends.store(true, Relaxed);
    let statuses: Vec<_> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    assert!(statuses.len() >= 10, "{}", statuses.len());
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    let used = serving.get("/").header("x-ratelimit-remaining").map(str::parse::<usize>);
    assert_eq!(used, Some(Ok(1_000_000 - statuses.len() - 1)), "what was used stays used");
}

#[test]
fn it_is_ignored_while_draining() {
    let upstream = Upstream::start(|asked| match asked.target.as_str() {
        "/slow" => Canned::text("at last").after(Duration::from_secs(2)),
        _ => Canned::text("here"),
    });
    let folder = Folder::new();
    let file = folder.file("tollgate.yaml", rules(&upstream, 100));
    let mut serving = Serving::start(&file, &[]);
    let gateway = serving.gateway;
    let slow = thread::spawn(move || get(gateway, "/slow"));
    eventually("the slow request", || (upstream.in_flight() == 1).then_some(()));
    serving.stop();
    eventually("not to be ready", || (serving.ready().0 == 503).then_some(()));
    serving.hang_up();
    assert_eq!(slow.join().unwrap().text(), "at last");
    let over = eventually("the end", || serving.is_over());
    assert_eq!((over.code(), logged(&serving, "rules reloaded")), (Some(0), 0), "{}", serving.log());
}

/// As when its terminal is closed, which sends the signal and takes the log away.
#[test]
fn a_log_that_nobody_reads_any_more_ends_nothing() {
    let upstream = Upstream::ok();
    let folder = Folder::new();
    let file = folder.file("tollgate.yaml", rules(&upstream, 100));
    let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["serve", "--workers", "1", "-c", &file])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let admin = log.find_map(|line| line.strip_prefix("admin ")?.trim().parse::<SocketAddr>().ok()).unwrap();
    drop(log);
    let generation = |wanted: u64| {
        eventually("other rules", || {
            let told: serde_json::Value = serde_json::from_str(&get(admin, "/readyz").text()).unwrap();
            (told["components"]["rules"]["generation"] == wanted).then_some(())
        });
    };
    generation(1);
    for wanted in 2..4 {
        kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
        generation(wanted);
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(eventually("the end", || child.try_wait().unwrap()).code(), Some(0));
}
