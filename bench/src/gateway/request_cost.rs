//! Instructions per request in the gateway process, counted by callgrind: a figure that a busy machine does not blur.
//!
//! A one-worker gateway under callgrind answers small requests over one connection, one after the other, and is then stopped. Two runs
//! differ in the number of requests only, so that start-up, first requests and shutdown cancel out. What the kernel does is not counted.
//! The peer is the same gateway without metrics.

use super::{
    client::Client,
    servers::{self, Metrics, Tollgate},
};
use crate::{
    effort::Effort,
    instructions::{callgrind, collected},
    measure::Pair,
    report::Report,
};
use std::{fs, path::Path};
use testkit::Nginx;

pub(super) const NAME: &str = "instructions, gateway, small response, without metrics";

/// Requests in both runs before those that are counted.
const WARM_UP: usize = 500;

pub(super) fn run(report: &mut Report, effort: &Effort, binary: &Path) {
    if !report.wants(NAME) {
        return;
    }
    let upstream = servers::upstream();
    let requests = effort.counted_requests;
    let count = |metrics| -> Result<f64, String> {
        let counted = |requests| instructions(binary, &upstream, metrics, WARM_UP + requests);
        Ok((counted(requests)? - counted(0)?) / requests as f64)
    };
    match (count(Metrics::Kept), count(Metrics::Not)) {
        (Ok(ours), Ok(peer)) => {
            report.compare(NAME, "instructions", Pair { ours, peer, ratio: ours / peer }, None);
        }
        (Err(why), _) | (_, Err(why)) => report.left_out(NAME, &why),
    }
}

/// All instructions of a gateway that answers so many requests.
fn instructions(binary: &Path, upstream: &Nginx, metrics: Metrics, requests: usize) -> Result<f64, String> {
    let log = upstream.directory().join("callgrind.log");
    let mut command = callgrind();
    command.arg(format!("--log-file={}", log.display())).arg(binary);
    let gateway = Tollgate::start_command(command, upstream, metrics)?;
    let mut client = Client::connect(gateway.address);
    for _ in 0..requests {
        client.get_small();
    }
    drop(client);
    gateway.stop();
    collected(&fs::read_to_string(log).map_err(|error| error.to_string())?)
}
