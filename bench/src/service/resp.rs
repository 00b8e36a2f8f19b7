//! The door for Redis clients, next to a real Redis that counts with `INCR` and decides nothing, and to throttlecrab-server.
//!
//! Both are asked by the same client over 64 connections, one request at a time and 16 at a time, and both serve on one thread.
//! A figure is what a request costs the server in processor time, the system's part in it included, or requests a second,
//! which on a machine with few cores has the client's cost in it.

use super::{
    load::{Asked, ask, fill},
    server::{Ours, Server, throttlecrab},
};
use crate::{
    effort::Effort,
    measure::Pair,
    report::{Report, Target},
    rows::{Row, measure},
};
use std::{sync::LazyLock, time::Duration};

const CONNECTIONS: usize = 64;
/// How often the servers are started in the course of the rounds: where a process comes to lie in memory makes some two percent.
const STARTS: usize = 4;

static INCR: LazyLock<Asked> = LazyLock::new(|| Asked::new(&["INCR", "{key}"], 1));
static THROTTLE: LazyLock<Asked> =
    LazyLock::new(|| Asked::new(&["CL.THROTTLE", "{key}", "999999", "1000000", "1", "1"], 6));
static CRAB: LazyLock<Asked> =
    LazyLock::new(|| Asked::new(&["THROTTLE", "{key}", "999999", "1000000", "1", "1"], 6));
static CHECK: LazyLock<Asked> = LazyLock::new(|| Asked::new(&["TG.CHECK", "per-client", "{key}"], 6));

pub(crate) fn run(report: &mut Report, effort: &Effort) {
    let mut rows = Vec::new();
    for (deep, depth) in [(1, "one at a time"), (16, "16 at a time")] {
        for command in ["CL.THROTTLE", "TG.CHECK"] {
            let row = |name: &str, unit, figure, target| Row {
                name: format!("resp, {command} against INCR, {CONNECTIONS} connections, {depth}, {name}"),
                unit,
                ours: format!("{command} {deep}"),
                peer: format!("INCR {deep}"),
                figure,
                target,
            };
            rows.push(row("server's CPU a request", "ns", 0, Some(Target::Ratio(1.05))));
            rows.push(row("requests a second", "1/s", 1, Some(Target::Times(1.0))));
            rows.push(row("p50", "us", 2, None));
            rows.push(row("p99", "us", 3, None));
            rows.push(row("p99.9", "us", 4, None));
        }
    }
    if !effort.is_quick() {
        // It answers a pipeline through Nagle's delay: only one at a time is compared.
        let row = |name: &str, unit, figure, target| Row {
            name: format!(
                "resp, CL.THROTTLE against throttlecrab-server, {CONNECTIONS} connections, one at a time, {name}"
            ),
            unit,
            ours: "CL.THROTTLE 1".to_owned(),
            peer: "THROTTLE 1".to_owned(),
            figure,
            target,
        };
        rows.push(row("server's CPU a request", "ns", 0, Some(Target::Ratio(0.65))));
        rows.push(row("requests a second", "1/s", 1, None));
        rows.push(row("p50", "us", 2, None));
        rows.push(row("p99", "us", 3, None));
        rows.push(row("p99.9", "us", 4, None));
    }
    let wants_crab =
        report.wants_any(rows.iter().filter(|row| row.peer == "THROTTLE 1").map(|row| &row.name));
    if !report.wants_any(rows.iter().map(|row| &row.name)) {
        return;
    }
    let mut servers = Servers::start(wants_crab);
    let lasting = Duration::from_millis(effort.shared_millis as u64);
    let (mut leader, mut round) = (None, 0);
    measure(report, effort.door_rounds, rows, |subject| {
        if leader.get_or_insert_with(|| subject.to_owned()) == subject {
            if round > 0 && round % effort.door_rounds.div_ceil(STARTS) == 0 {
                servers = Servers::start(wants_crab);
            }
            round += 1;
        }
        let (command, deep) = subject.split_once(' ').expect("a command and a depth");
        let (server, asked): (_, &'static Asked) = match (command, &servers.crab) {
            ("THROTTLE", Some(crab)) => (crab, &CRAB),
            ("INCR", _) => (&servers.redis, &INCR),
            ("TG.CHECK", _) => (&servers.ours, &CHECK),
            _ => (&servers.ours, &THROTTLE),
        };
        let deep = deep.parse().expect("a depth");
        let before = server.processor_time();
        let (answered, took, mut times) = ask(server.port(), asked, (CONNECTIONS, deep), lasting);
        let spent = server.processor_time() - before;
        times.sort_unstable();
        let within = |share: f64| f64::from(times[((times.len() - 1) as f64 * share) as usize]);
        vec![
            spent.as_nanos() as f64 / answered as f64,
            answered as f64 / took.as_secs_f64(),
            within(0.5),
            within(0.99),
            within(0.999),
        ]
    });
    if let Some(crab) = &servers.crab
        && !effort.is_quick()
    {
        memory(report, &servers.ours, crab);
    }
}

/// Who is asked, started together.
struct Servers {
    ours: Server,
    redis: Server,
    crab: Option<Server>,
}

impl Servers {
    fn start(wants_crab: bool) -> Self {
        let crab = wants_crab.then(|| {
            assert!(
                throttlecrab().exists(),
                "please run `scripts/setup bench`: {} is missing",
                throttlecrab().display()
            );
            Server::throttlecrab("redis")
        });
        Self { ours: Server::ours(Ours::Resp), redis: Server::redis(), crab }
    }
}

/// A million keys each, and what they take in memory.
fn memory(report: &mut Report, ours: &Server, crab: &Server) {
    const KEYS: usize = 1_000_000;
    let name = "resp, resident memory with 1e6 keys, throttlecrab-server";
    if !report.wants(name) {
        return;
    }
    fill(ours.port(), "CL.THROTTLE", KEYS);
    fill(crab.port(), "THROTTLE", KEYS);
    let (ours, crab) = (ours.resident_bytes() / 1e6, crab.resident_bytes() / 1e6);
    report.compare(name, "MB", Pair::of(&[(ours, crab)]), None);
}
