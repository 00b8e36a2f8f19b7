//! What the system tells of a process: memory and processor time.

use std::{fs, time::Duration};

/// This process.
pub(crate) const SELF: &str = "self";

/// Resident bytes.
pub(crate) fn resident_bytes(pid: &str) -> f64 {
    // Exact, where `statm` lags by some pages a core.
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("a Linux with smaps_rollup");
    let line = rollup.lines().find_map(|line| line.strip_prefix("Rss:")).expect("a resident size");
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number of KiB");
    kib * 1024.0
}

/// Processor time of its threads so far, the system's part included. That of a thread that has ended is not in it.
pub(crate) fn processor_time(pid: &str) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("a process that runs");
    let nanos = threads.map(|thread| {
        let file = thread.expect("a thread").path().join("schedstat");
        let text = fs::read_to_string(file).expect("a Linux with schedstat");
        text.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
    });
    Duration::from_nanos(nanos.sum())
}
