//! Envoy's question over gRPC, next to throttlecrab-server's, and to a tonic service that decides nothing: the floor.
//!
//! h2load asks all of them, over 64 connections, one question at a time on each, about one key. Then at half the rate that ours
//! reached, evenly spread in time ([`paced`]): how long the slowest in a thousand take.

use super::{
    paced,
    server::{Ours, Server, throttlecrab},
};
use crate::{
    effort::Effort,
    report::{Report, Target},
    rows::{Row, measure},
};
use std::{cell::Cell, env, fs, path::PathBuf, process::Command, time::Duration};

const CONNECTIONS: usize = 64;

const OURS: &str = "ours";
const CALM: &str = "ours at half load";
const CRAB: &str = "throttlecrab-server";
const TONIC: &str = "empty tonic service";
const CALM_TONIC: &str = "empty tonic service at that load";

/// A question, and where it is asked.
pub(super) struct Question {
    pub(super) path: &'static str,
    message: Vec<u8>,
}

impl Question {
    /// The message as gRPC has it: not compressed, and how long it is.
    pub(super) fn framed(&self) -> Vec<u8> {
        let mut framed = vec![0];
        framed.extend(u32::try_from(self.message.len()).expect("short").to_be_bytes());
        framed.extend(&self.message);
        framed
    }
}

pub(crate) fn run(report: &mut Report, effort: &Effort) {
    let row = |what: &str, unit, peer: &str, figure, target| Row {
        name: format!("grpc, {CONNECTIONS} connections, {what}, {peer}"),
        unit,
        ours: OURS.to_owned(),
        peer: peer.to_owned(),
        figure,
        target,
    };
    let mut rows = Vec::new();
    for peer in [CRAB, TONIC] {
        let of_crab = |target| (peer == CRAB).then_some(target);
        rows.push(row("server's CPU a request", "us", peer, 0, of_crab(Target::Ratio(0.85))));
        rows.push(row("requests a second", "1/s", peer, 1, of_crab(Target::Times(1.2))));
        rows.push(row("p50", "us", peer, 2, None));
        rows.push(row("p99", "us", peer, 3, None));
        rows.push(row("p99.9", "us", peer, 4, None));
    }
    let calm = Row {
        ours: CALM.to_owned(),
        peer: CALM_TONIC.to_owned(),
        ..row("p99.9 at half load", "us", TONIC, 4, Some(Target::Ours(5_000.0)))
    };
    rows.push(calm);
    if effort.is_quick() {
        rows.retain(|row| row.peer != CRAB);
    }
    if !report.wants_any(rows.iter().map(|row| &row.name)) {
        return;
    }
    let (ours, tonic) = (Server::ours(Ours::Grpc), Server::ours(Ours::Tonic));
    let crab = report.wants_any(rows.iter().filter(|row| row.peer == CRAB).map(|row| &row.name)).then(|| {
        assert!(
            throttlecrab().exists(),
            "please run `scripts/setup bench`: {} is missing",
            throttlecrab().display()
        );
        Server::throttlecrab("grpc")
    });
    let lasting = Duration::from_millis(10 * effort.shared_millis as u64);
    // Known before the first round, whichever subject begins.
    let reached = Cell::new(ask(&ours, &envoy(), lasting)[RATE]);
    measure(report, effort.shared_rounds.div_ceil(2), rows, |subject| match subject {
        OURS => {
            let figures = ask(&ours, &envoy(), lasting);
            reached.set(figures[RATE]);
            figures
        }
        CALM => ask_calmly(&ours, &envoy(), lasting, reached.get() / 2.0),
        TONIC => ask(&tonic, &nothing(), lasting),
        CALM_TONIC => ask_calmly(&tonic, &nothing(), lasting, reached.get() / 2.0),
        _ => crab.as_ref().map_or_else(Vec::new, |crab| ask(crab, &throttle(), lasting)),
    });
}

/// Processor time a request in microseconds, requests a second, and the times within which 50, 99 and 99.9 in a hundred came.
fn figures(spent: Duration, asked: usize, lasting: Duration, mut times: Vec<u32>) -> Vec<f64> {
    times.sort_unstable();
    let within = |share: f64| f64::from(times[((times.len() - 1) as f64 * share) as usize]);
    let (spent, asked) = (spent.as_secs_f64() * 1e6, asked as f64);
    vec![spent / asked, asked / lasting.as_secs_f64(), within(0.5), within(0.99), within(0.999)]
}

/// Where requests a second stand among the figures.
const RATE: usize = 1;

/// Asks at an even pace.
fn ask_calmly(server: &Server, question: &Question, lasting: Duration, rate: f64) -> Vec<f64> {
    let before = server.processor_time();
    let times = paced::ask(server.port(), question, CONNECTIONS, rate, lasting);
    figures(server.processor_time() - before, times.len(), lasting, times)
}

/// Asks as fast as answers come. Of the times, those of the first quarter are left out.
fn ask(server: &Server, question: &Question, lasting: Duration) -> Vec<f64> {
    // h2load counts in whole ones.
    let seconds = lasting.as_secs().max(1);
    let (body, log) = (place("body"), place("log"));
    fs::write(&body, question.framed()).expect("a temporary file");
    let _ = fs::remove_file(&log);
    let mut command = Command::new("h2load");
    command
        .args(["--clients", &CONNECTIONS.to_string(), "--max-concurrent-streams", "1", "--threads", "1"])
        .args(["--duration", &seconds.to_string()])
        .args(["--header", "content-type: application/grpc", "--header", "te: trailers"])
        .arg("--data")
        .arg(&body)
        .arg(format!("--log-file={}", log.display()))
        .arg(format!("http://127.0.0.1:{}{}", server.port(), question.path));
    let before = server.processor_time();
    let output = command.output().expect("`make bench` has installed h2load");
    let spent = server.processor_time() - before;
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "h2load failed: {told}{}", String::from_utf8_lossy(&output.stderr));
    let asked = asked(&fs::read_to_string(&log).expect("h2load's log"));
    assert!(asked.len() > CONNECTIONS, "h2load was answered {} times: {told}", asked.len());
    // All connections are made in the same instant: the first request on each waits for that, tens of milliseconds, and 64 of
    // them are more than one in a thousand.
    let from = asked.iter().map(|(at, _)| at).min().map_or(0, |first| first + seconds * 1_000_000 / 4);
    let times = asked.iter().filter(|(at, _)| *at >= from).map(|(_, took)| *took).collect();
    figures(spent, asked.len(), Duration::from_secs(seconds), times)
}

/// When each request was sent, and the microseconds until its answer, all of which were 200.
fn asked(log: &str) -> Vec<(u64, u32)> {
    let line = |line: &str| {
        let mut columns = line.split('\t');
        let (at, status, took) = (columns.next()?, columns.next()?, columns.next()?);
        assert_eq!(status.trim(), "200", "an answer of {status}");
        Some((at.trim().parse().ok()?, took.trim().parse().ok()?))
    };
    log.lines().filter_map(line).collect()
}

fn place(name: &str) -> PathBuf {
    env::temp_dir().join(format!("tollgate-bench-{}-{name}", std::process::id()))
}

/// `ShouldRateLimit` of one descriptor.
fn envoy() -> Question {
    let entry = [field(1, b"user"), field(2, b"user:000001")].concat();
    let descriptor = field(1, &entry);
    Question {
        path: "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
        message: [field(1, b"bench"), field(2, &descriptor)].concat(),
    }
}

/// `Throttle` of one key: a burst that nobody reaches.
fn throttle() -> Question {
    let mut message = field(1, b"user:000001");
    for (number, value) in [(2, 1_000_000_000), (3, 1_000_000_000), (4, 1), (5, 1)] {
        message.push(number << 3);
        message.extend(varint(value));
    }
    Question { path: "/throttlecrab.RateLimiter/Throttle", message }
}

/// Whether a server as a whole is well.
fn nothing() -> Question {
    Question { path: "/grpc.health.v1.Health/Check", message: Vec::new() }
}

/// A field of bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    field.extend(varint(bytes.len() as u32));
    field.extend(bytes);
    field
}

fn varint(mut value: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}
