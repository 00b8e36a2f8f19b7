//! This binary once more, as a child: for what must not share a heap with other measurements.

use crate::{
    flood,
    gateway::matching,
    instructions, memory, process,
    service::server,
    waiting::{ahead, crowd},
};
use std::{
    process::{Command, ExitCode},
    str::FromStr,
    time::Duration,
};

/// The argument that makes this binary a child.
pub(crate) const ARGUMENT: &str = "child";

/// What a child is told: a measurement, a subject, a count.
pub(crate) fn main(args: &[String]) -> ExitCode {
    let [measurement, subject, count] = args else { return ExitCode::from(2) };
    let Ok(count) = usize::from_str(count) else { return ExitCode::from(2) };
    let figures = match measurement.as_str() {
        memory::CHILD => memory::child(subject, count),
        flood::CHILD => flood::child(subject, count),
        instructions::CHILD => instructions::child(subject, count),
        crowd::CHILD => crowd::child(subject, count),
        ahead::CHILD => ahead::child(subject, count),
        server::CHILD => {
            server::serve(subject);
            Vec::new()
        }
        matching::CHILD => matching::child(subject, count),
        _ => return ExitCode::from(2),
    };
    println!("{}", figures.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    ExitCode::SUCCESS
}

/// The command that runs a child, to be run as it is or under something else.
pub(crate) fn arguments(measurement: &str, subject: &str, count: usize) -> Vec<String> {
    let this = std::env::current_exe().expect("this binary has a path");
    let this = this.to_str().expect("this binary's path is text");
    [this, ARGUMENT, measurement, subject, &count.to_string()].map(str::to_owned).into()
}

/// Runs a child and reads its figures.
///
/// # Panics
/// Where the child failed: an expectation of its own was not met.
pub(crate) fn run(measurement: &str, subject: &str, count: usize) -> Vec<f64> {
    let line = arguments(measurement, subject, count);
    let output = Command::new(&line[0]).args(&line[1..]).output().expect("a child can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{measurement} {subject} failed: {errors}");
    let figures = String::from_utf8_lossy(&output.stdout);
    figures.split_whitespace().map(|figure| figure.parse().expect("a child prints numbers")).collect()
}

/// Resident bytes of this process.
pub(crate) fn resident_bytes() -> f64 {
    process::resident_bytes(process::SELF)
}

/// Processor time of this process's threads so far. That of a thread that has ended is not in it.
pub(crate) fn processor_time() -> Duration {
    process::processor_time(process::SELF)
}
