//! Instructions per request in the gateway process, counted by callgrind: a figure that a busy machine does not blur.
//!
//! A one-worker gateway under callgrind answers small requests over one connection, one after the other. Counting is switched on
//! after the first of them and off before the gateway stops, since start-up calibrates clocks and takes a different number of
//! instructions every time. What the kernel does is not counted. The peer is the same gateway without metrics.

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
use std::{fs, path::Path, process::Command};
use testkit::Nginx;

pub(super) const NAME: &str = "instructions, gateway, small response, without metrics";

/// Requests before those that are counted.
const WARM_UP: usize = 500;

pub(super) fn run(report: &mut Report, effort: &Effort, binary: &Path) {
    if !report.wants(NAME) {
        return;
    }
    let upstream = servers::upstream();
    let requests = effort.counted_requests;
    let count = |metrics| instructions(binary, &upstream, metrics, requests).map(|all| all / requests as f64);
    match (count(Metrics::Kept), count(Metrics::Not)) {
        (Ok(ours), Ok(peer)) => {
            report.compare(NAME, "instructions", Pair { ours, peer, ratio: ours / peer }, None);
        }
        (Err(why), _) | (_, Err(why)) => report.left_out(NAME, &why),
    }
}

/// Instructions that a gateway spends on so many requests.
fn instructions(binary: &Path, upstream: &Nginx, metrics: Metrics, requests: usize) -> Result<f64, String> {
    let log = upstream.directory().join("callgrind.log");
    let mut command = callgrind();
    command.args(["--instr-atstart=no", &format!("--log-file={}", log.display())]).arg(binary);
    let gateway = Tollgate::start_command(command, upstream, metrics)?;
    let mut client = Client::connect(gateway.address);
    let mut get = |times| (0..times).for_each(|_| client.get_small());
    get(WARM_UP);
    switch_counting("on", gateway.pid())?;
    get(requests);
    switch_counting("off", gateway.pid())?;
    gateway.stop();
    collected(&fs::read_to_string(log).map_err(|error| error.to_string())?)
}

/// Switches callgrind's counting on or off in a process that it runs.
fn switch_counting(state: &str, pid: u32) -> Result<(), String> {
    let command =
        Command::new("callgrind_control").args([&format!("--instr={state}"), &pid.to_string()]).output();
    match command.map_err(|error| format!("callgrind_control: {error}"))? {
        done if done.status.success() => Ok(()),
        failed => Err(format!("callgrind_control: {}", String::from_utf8_lossy(&failed.stderr).trim())),
    }
}
