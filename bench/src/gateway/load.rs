//! 64 connections that are kept alive and always ask.

use super::{
    peers::{Peer, PeerServer},
    servers::{self, LARGE, Metrics, PAGE, SMALL, Tollgate, spent},
    wrk,
};
use crate::{
    effort::Effort,
    report::{Report, Target},
    rows::{self, Row},
};
use std::{net::SocketAddr, path::Path};

const OURS: &str = "ours";
const WITHOUT: &str = "without metrics";

/// What is told of a run, in the order of a subject's figures.
const FIGURES: [(&str, &str, Option<Target>); 5] = [
    ("requests a second", "requests/s", Some(Target::Times(0.9))),
    ("p50", "us", None),
    ("p99", "us", Some(Target::Ratio(1.1))),
    ("p99.9", "us", None),
    ("processor time", "us/request", Some(Target::Ratio(1.1))),
];
const PROCESSOR: usize = FIGURES.len() - 1;

/// What metrics may cost, of requests a second and of processor time.
const METRICS: [(usize, Target); 2] = [(0, Target::Times(0.97)), (PROCESSOR, Target::Ratio(1.03))];

/// What is asked for.
const LOADS: [(&str, &str); 3] = [("small response", SMALL), ("10 KiB", PAGE.0), ("1 MiB", LARGE.0)];

/// The names of all rows.
pub(super) fn names() -> impl Iterator<Item = String> {
    let rows = LOADS.iter().flat_map(|(name, _)| Peer::ALL.map(|peer| against(peer, name)));
    rows.flatten().chain(of_metrics()).map(|row| row.name)
}

fn against(peer: Peer, load: &str) -> Vec<Row> {
    let row = |(figure, (told, unit, target)): (usize, &(&str, &'static str, Option<Target>))| Row {
        name: format!("gateway, {load}, {told}, {}", peer.name()),
        unit,
        ours: OURS.to_owned(),
        peer: peer.name().to_owned(),
        figure,
        target: *target,
    };
    FIGURES.iter().enumerate().map(row).collect()
}

fn of_metrics() -> Vec<Row> {
    let row = |(figure, target): (usize, Target)| Row {
        name: format!("gateway, small response, {}, without metrics", FIGURES[figure].0),
        unit: FIGURES[figure].1,
        ours: OURS.to_owned(),
        peer: WITHOUT.to_owned(),
        figure,
        target: Some(target),
    };
    METRICS.into_iter().map(row).collect()
}

pub(super) fn run(report: &mut Report, effort: &Effort, binary: &Path) {
    let names: Vec<String> = names().collect();
    if !report.wants_any(&names) {
        return;
    }
    let upstream = servers::upstream();
    let directory = upstream.directory();
    let start = |metrics| Tollgate::start(binary, &upstream, metrics);
    let measured = |address, pid, path| figures(directory, (address, pid), path, effort.gateway_seconds);
    let ours = start(Metrics::Kept);
    let peers = start_peers(report, upstream.address());
    for (name, path) in LOADS {
        let rows: Vec<Row> = peers.iter().flat_map(|(peer, _)| against(*peer, name)).collect();
        if report.wants_any(rows.iter().map(|row| &row.name)) {
            let ask = |who: &str| match peers.iter().find(|(peer, _)| peer.name() == who) {
                Some((_, server)) => measured(server.address(), server.pid(), path),
                None => measured(ours.address, ours.pid(), path),
            };
            for who in peers.iter().map(|(peer, _)| peer.name()).chain([OURS]) {
                ask(who);
            }
            let rounds = if path == LARGE.0 { effort.gateway_rounds } else { effort.small_rounds };
            rows::measure(report, rounds, rows, ask);
        }
    }
    for (_, server) in &peers {
        server.assert_no_temporary_files();
    }
    let rows = of_metrics();
    if report.wants_any(rows.iter().map(|row| &row.name)) {
        // Both new: one that has moved large bodies has other buffers and connections than one that has not.
        let (with, without) = (start(Metrics::Kept), start(Metrics::Not));
        let ask = |who: &str| {
            let subject = if who == WITHOUT { &without } else { &with };
            measured(subject.address, subject.pid(), SMALL)
        };
        for who in [OURS, WITHOUT] {
            ask(who);
        }
        // A few hundredths are looked for, where a round is off by as much.
        rows::measure(report, 2 * effort.gateway_rounds, rows, ask);
    }
}

/// The peers of wanted rows, as far as they are installed.
fn start_peers(report: &Report, upstream: SocketAddr) -> Vec<(Peer, PeerServer)> {
    let is_wanted = |peer: Peer| {
        let names = LOADS.iter().flat_map(|(load, _)| against(peer, load)).map(|row| row.name);
        report.wants_any(&names.collect::<Vec<_>>())
    };
    let mut started = Vec::new();
    for peer in Peer::ALL.into_iter().filter(|peer| is_wanted(*peer)) {
        if peer.is_installed() {
            started.push((peer, peer.start(upstream)));
        } else {
            let why = "it is not installed; `scripts/setup bench` installs it";
            report.left_out(&format!("gateway, {}", peer.name()), why);
        }
    }
    started
}

fn figures(directory: &Path, (address, pid): (SocketAddr, u32), path: &str, seconds: usize) -> Vec<f64> {
    let (seen, spent) = spent(pid, || wrk::run(directory, address, path, seconds));
    let each = spent.as_nanos() as f64 / 1e3 / seen.requests;
    vec![seen.a_second, seen.median, seen.slow, seen.slowest, each]
}
