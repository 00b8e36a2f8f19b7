//! The door for Redis clients, next to a real Redis that counts with `INCR` and decides nothing.
//!
//! Both are asked by the same client over 64 connections, one request at a time and 16 at a time, and both serve on one thread.
//! A figure is what a request costs the server in processor time, the system's part in it included, or requests a second,
//! which on a machine with few cores has the client's cost in it.

use super::{
    load::{Asked, ask},
    server::Server,
};
use crate::{
    effort::Effort,
    report::{Report, Target},
    rows::{Row, measure},
};
use std::{sync::LazyLock, time::Duration};

const CONNECTIONS: usize = 64;

static INCR: LazyLock<Asked> = LazyLock::new(|| Asked::new(&["INCR", "{key}"], 1));
static THROTTLE: LazyLock<Asked> =
    LazyLock::new(|| Asked::new(&["CL.THROTTLE", "{key}", "999999", "1000000", "1", "1"], 6));
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
                target: Some(target),
            };
            rows.push(row("server's CPU a request", "ns", 0, Target::Ratio(1.05)));
            rows.push(row("requests a second", "1/s", 1, Target::Times(1.0)));
        }
    }
    if !report.wants_any(rows.iter().map(|row| &row.name)) {
        return;
    }
    let (ours, redis) = (Server::ours(), Server::redis());
    let lasting = Duration::from_millis(effort.shared_millis as u64);
    measure(report, effort.shared_rounds, rows, |subject| {
        let (command, deep) = subject.split_once(' ').expect("a command and a depth");
        let (server, asked): (_, &'static Asked) = match command {
            "INCR" => (&redis, &INCR),
            "TG.CHECK" => (&ours, &CHECK),
            _ => (&ours, &THROTTLE),
        };
        let deep = deep.parse().expect("a depth");
        let before = server.processor_time();
        let (answered, took) = ask(server.port(), asked, (CONNECTIONS, deep), lasting);
        let spent = server.processor_time() - before;
        vec![spent.as_nanos() as f64 / answered as f64, answered as f64 / took.as_secs_f64()]
    });
}
