//! The rules change under load: no request is lost, none is decided wrongly, and changed numbers hold.
//!
//! Five seconds, or a minute with `TOLLGATE_SOAK=1`.

use crate::stage::{Stage, get, one_rule};
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};
use testkit::eventually;

const CONNECTIONS: usize = 16;

fn lasting() -> Duration {
    let soak = std::env::var_os("TOLLGATE_SOAK").is_some_and(|it| it == "1");
    Duration::from_secs(if soak { 60 } else { 5 })
}

/// A connection that is kept: whatever is lost on it is a panic.
struct Kept(BufReader<TcpStream>);

impl Kept {
    fn open(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("a connection");
        socket.set_nodelay(true).expect("nodelay");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        Self(BufReader::new(socket))
    }

    fn get(&mut self, path: &str) -> (u16, String) {
        let head = format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n");
        self.0.get_mut().write_all(head.as_bytes()).expect("sent");
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).expect("a line"), 0, "closed in the middle of {path}");
            let line = line.trim_end().to_lowercase();
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest[..3].parse().expect("a status");
            } else if let Some(rest) = line.strip_prefix("content-length: ") {
                length = rest.parse().expect("a length");
            } else if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).expect("a body");
        (status, String::from_utf8(body).expect("text"))
    }
}

/// Two editions by turns: one limit stays, one changes its number, one its kind, one comes and goes, and a route moves.
fn rules(odd: bool) -> String {
    let changes = if odd { 80 } else { 60 };
    let kind = if odd {
        "token_bucket: { rate: 1/h, burst: 1000000 }"
    } else {
        "fixed_window: { limit: 1000000, window: 1h }"
    };
    let moved = if odd { "spare" } else { "up" };
    let extra = if odd {
        "- { name: extra, limits: [ { sliding_log: { limit: 1000, window: 1h }, key: [header.nobody], missing: skip } ] }"
    } else {
        ""
    };
    format!(
        "
limits:
  stays: {{ fixed_window: {{ limit: 40, window: 1m }} }}
  changes: {{ fixed_window: {{ limit: {changes}, window: 100h }} }}
  kind: {{ {kind} }}
everywhere:
  - {{ name: all, limits: [ {{ use: kind, key: [] }} ] }}
  {extra}
routes:
  - {{ name: stays, when: {{ path: /stays }}, upstream: up, rules: [ {{ name: a, limits: [ {{ use: stays, key: [] }} ] }} ] }}
  - {{ name: changes, when: {{ path: /changes }}, upstream: up, rules: [ {{ name: a, limits: [ {{ use: changes, key: [] }} ] }} ] }}
  - {{ name: moved, when: {{ path: /moved }}, upstream: {moved} }}
  - {{ name: own, when: {{ path: /own }}, upstream: up, rules: [ {{ name: inline, limits: [ {{ fixed_window: {{ limit: 70, window: 100h }}, key: [] }} ] }} ] }}
"
    )
}

#[derive(Default)]
struct Counts {
    stays: AtomicUsize,
    refused: AtomicUsize,
    changes: AtomicUsize,
    own: AtomicUsize,
    moved: AtomicUsize,
}

#[test]
fn reloads_under_load_lose_nothing_and_decide_nothing_wrongly() {
    let (stage, clock) = Stage::still(&rules(false));
    let (counts, stop) = (Counts::default(), AtomicBool::new(false));
    let address = stage.address();
    let load = || {
        let mut kept = Kept::open(address);
        while !stop.load(SeqCst) {
            let count = |status: u16, counter: &AtomicUsize| match status {
                200 => _ = counter.fetch_add(1, SeqCst),
                429 => {}
                other => panic!("{other}"),
            };
            let (status, body) = kept.get("/stays");
            assert!(status == 429 || body == "ok\n", "{body}");
            count(status, &counts.stays);
            if status == 429 {
                counts.refused.fetch_add(1, SeqCst);
            }
            count(kept.get("/changes").0, &counts.changes);
            count(kept.get("/own").0, &counts.own);
            let (status, body) = kept.get("/moved");
            assert_eq!(status, 200);
            assert!(body == "ok\n" || body == "spare\n", "{body}");
            counts.moved.fetch_add(1, SeqCst);
            assert_eq!(kept.get("/nowhere").0, 404);
        }
    };
    let (mut windows, mut reloads) = (1, 0_u32);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(load)).collect();
        let begun = Instant::now();
        let mut odd = false;
        while begun.elapsed() < lasting() && clients.iter().all(|client| !client.is_finished()) {
            for _ in 0..5 {
                // Ten reloads a second.
                thread::sleep(Duration::from_millis(100));
                odd = !odd;
                stage.reload(&rules(odd));
                reloads += 1;
            }
            // A window is over when all who come are refused; then the next begins.
            let refused = counts.refused.load(SeqCst);
            eventually("the window to be full", || {
                (counts.refused.load(SeqCst) >= refused + CONNECTIONS
                    || clients.iter().any(|it| it.is_finished()))
                .then_some(())
            });
            clock.advance(Duration::from_secs(60));
            windows += 1;
        }
        let full = counts.stays.load(SeqCst);
        eventually("the last window to be full", || {
            let enough = counts.stays.load(SeqCst) >= windows * 40 || full > windows * 40;
            (enough || clients.iter().any(|it| it.is_finished())).then_some(())
        });
        stop.store(true, SeqCst);
    });
    println!("{reloads} reloads, {windows} windows, {} requests moved", counts.moved.load(SeqCst));
    assert_eq!(
        counts.stays.load(SeqCst),
        windows * 40,
        "a limit that stays admits its number in every window"
    );
    assert_eq!(
        counts.changes.load(SeqCst),
        80,
        "a limit that changes admits its larger number, and not once more"
    );
    assert_eq!(counts.own.load(SeqCst), 70, "a rule's own limit is the same through all reloads");
    assert!(reloads >= 20, "{reloads}");
    stage.reload(&rules(false).replace("limit: 60", "limit: 100"));
    let mut kept = Kept::open(address);
    let passed = (0..40).filter(|_| kept.get("/changes").0 == 200).count();
    assert_eq!(passed, 20, "what was consumed counts against the new number");
    assert_eq!(stage.up.in_flight() + stage.spare.in_flight(), 0);
    stage.rests();
}

/// A file that is not taken leaves everything as it was.
#[test]
fn a_file_that_cannot_be_kept_changes_nothing() {
    let rules = one_rule("limits: [ { fixed_window: { limit: 2, window: 1h }, key: [] } ]");
    let (stage, _) = Stage::still(&rules);
    assert_eq!(stage.get("/").status(), 200);
    let bad = rules.replace("limit: 2", "limit: 9");
    let bad = format!("version: 1\nupstreams: {{ up: {{ servers: [ \"http://\" ] }} }}\n{bad}");
    let taken =
        tollgate_rules::parse_rules(&bad, |_| None).map(|file| stage.gateway.prepare(&file).map(drop));
    assert!(!matches!(taken, Ok(Ok(()))), "an upstream without a host");
    assert_eq!(stage.times(2, &get("/")), [200, 429]);
}

/// Asks the servers if they are well, until it is dropped.
fn checking(stage: &Stage) -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    stage.gateway.start_checks(runtime.handle());
    runtime
}

/// Servers are asked if they are well, also after the rules were changed.
#[test]
fn health_is_checked_through_reloads() {
    let up = testkit::Upstream::ok();
    let rules = format!(
        "upstreams: {{ up: {{ servers: [ \"{}\" ], health: {{ path: /well, every: 50ms }} }} }}\nroutes: [ {{ name: r, upstream: up }} ]",
        up.url()
    );
    let (stage, _) = Stage::still(&rules);
    let _runtime = checking(&stage);
    for _ in 0..3 {
        let asked = up.asked().len();
        eventually("a few checks", || (up.asked().len() > asked + 3).then_some(()));
        stage.reload(&rules);
    }
    assert!(up.asked().iter().all(|asked| asked.target == "/well"));
}

/// Checks that ask for what is not there take every server out. Without them, or with others, the servers are back at once:
/// nobody would ever say otherwise.
#[test]
fn what_other_checks_found_is_forgotten() {
    let up = testkit::Upstream::by_query();
    let rules = |health: &str| {
        let server = up.url();
        format!(
            "upstreams: {{ up: {{ servers: [ \"{server}\" ]{health} }} }}\nroutes: [ {{ name: r, upstream: up }} ]"
        )
    };
    let wrong = rules(", health: { path: \"/?status=404\", every: 50ms, unhealthy_after: 1 }");
    let (stage, _) = Stage::still(&wrong);
    let _runtime = checking(&stage);
    for right in [rules(""), rules(", health: { path: /, every: 1h }")] {
        eventually("every server to be out", || (stage.get("/").status() == 503).then_some(()));
        stage.reload(&wrong);
        assert_eq!(stage.get("/").status(), 503, "the same checks go on");
        stage.reload(&right);
        assert_eq!(stage.times(20, &get("/")), [200; 20]);
        assert!(stage.gateway.upstreams().iter().all(|up| up.servers().all(|server| server.healthy)));
        stage.reload(&wrong);
    }
}

/// Requests under way end by the rules they began with, and give back what they hold.
#[test]
fn whoever_is_under_way_ends_by_the_rules_it_began_with() {
    let rules = |count: u32| {
        format!("limits: {{ slots: {{ concurrency: {{ limit: {count} }} }} }}\n")
            + &one_rule("limits: [ { use: slots, key: [] } ]")
    };
    let (stage, _) = Stage::still(&rules(2));
    let address = stage.address();
    let playing =
        thread::spawn(move || testkit::Arrivals::at_once(2).each(|it| it.path("/?delay=800")).play(address));
    eventually("both to be under way", || (stage.up.in_flight() == 2).then_some(()));
    stage.reload(&rules(3));
    assert_eq!(stage.left("slots", tollgate::Key::All), 1);
    stage.reload(&rules(1));
    assert_eq!(stage.get("/").status(), 429, "two are in flight, one is allowed");
    // The limit goes, and with it what was counted.
    stage.reload("routes: [ { name: all, upstream: spare } ]");
    assert_eq!(stage.get("/").text(), "spare\n");
    assert!(playing.join().expect("a play").iter().all(|seen| seen.status() == 200 && seen.text() == "ok\n"));
    stage.rests();
    stage.reload(&rules(1));
    assert_eq!(stage.left("slots", tollgate::Key::All), 1);
    assert_eq!(stage.times(2, &get("/")), [200, 200]);
}
