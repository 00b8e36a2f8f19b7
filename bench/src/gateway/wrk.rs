//! Load by wrk, a client that is nobody's of ours, and what it saw.

use std::{net::SocketAddr, path::Path, process::Command};

const SCRIPT: &str = include_str!("told.lua");

/// Connections that are kept busy. One thread of wrk drives them.
const CONNECTIONS: &str = "64";

/// What wrk saw in a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) requests: f64,
    pub(super) a_second: f64,
    /// Microseconds.
    pub(super) median: f64,
    pub(super) slow: f64,
    pub(super) slowest: f64,
}

/// Asks for `path` as fast as the answers come, for so many seconds.
///
/// # Panics
/// Where wrk is missing, or any answer was not as it should be.
pub(super) fn run(directory: &Path, address: SocketAddr, path: &str, seconds: usize) -> Seen {
    let script = directory.join("told.lua");
    std::fs::write(&script, SCRIPT).expect("a place for wrk's script");
    let output = Command::new("wrk")
        .args(["--threads", "1", "--connections", CONNECTIONS, "--duration", &format!("{seconds}s")])
        .arg("--script")
        .arg(script)
        .arg(format!("http://{address}{path}"))
        .output()
        .expect("wrk is there: `scripts/setup bench` installs it");
    let told = String::from_utf8_lossy(&output.stdout);
    let line = told.lines().find_map(|line| line.strip_prefix("told "));
    let figures: Vec<f64> = line
        .unwrap_or_else(|| panic!("wrk told nothing of {address}{path}: {told}"))
        .split_whitespace()
        .map(|figure| figure.parse().expect("a number"))
        .collect();
    let [requests, micros, median, slow, slowest, errors] = figures[..] else {
        panic!("wrk told something else: {told}")
    };
    assert!(requests > 0.0 && errors == 0.0, "{errors} of {requests} answers of {address}{path} were wrong");
    Seen { requests, a_second: requests / micros * 1e6, median, slow, slowest }
}
