//! Tollgate next to its peers, in one run.
//!
//! ```text
//! cargo run --profile bench -p tollgate-bench -- [--quick] [--part library|gateway|redis|service] [--only SUBSTRING]
//! ```
//!
//! Every comparison alternates ours and the peer within one process, so that a busy machine slows both; a figure is the
//! median of the rounds, a ratio the median of the rounds' ratios. Memory, floods, instruction counts and crowds that
//! wait are taken in child processes of this same binary.
//!
//! Every part writes a file: `results/library.json`; of the gateway next to nginx and HAProxy `results/gateway.json`; of limits shared
//! through Redis `results/redis.json`; of the doors `results/service.json`. `--quick` (a smoke run, its figures mean nothing)
//! and `--only` write `results/partial.json` instead.

mod child;
mod direct;
mod effort;
mod flood;
mod gateway;
mod growth;
mod instructions;
mod keyed;
mod latency;
mod measure;
mod memory;
mod process;
mod report;
mod rows;
mod service;
mod set;
mod shared;
mod subject;
mod waiting;

use crate::{effort::Effort, report::Report};
use std::process::ExitCode;

const USAGE: &str =
    "usage: tollgate-bench [--quick] [--part library|gateway|redis|service] [--only SUBSTRING]";

/// What is measured together and has a file of its own.
struct Part {
    name: &'static str,
    file: &'static str,
    run: fn(&mut Report, &Effort),
}

const PARTS: [Part; 4] = [
    Part { name: "library", file: "library.json", run: library },
    Part { name: "gateway", file: "gateway.json", run: gateway::run },
    Part { name: "redis", file: "redis.json", run: shared::run },
    Part { name: "service", file: "service.json", run: service::run },
];

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let mut effort = Effort::full();
    let (mut only, mut part) = (None, None);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            child::ARGUMENT => return child::main(&args.collect::<Vec<_>>()),
            "--quick" => effort = Effort::quick(),
            "--only" => match args.next() {
                Some(substring) => only = Some(substring),
                None => return usage(),
            },
            "--part" => match args.next().filter(|name| PARTS.iter().any(|part| part.name == name)) {
                Some(name) => part = Some(name),
                None => return usage(),
            },
            _ => return usage(),
        }
    }
    let whole = only.is_none() && !effort.is_quick();
    let mut partial = Report::new(only.clone(), &effort);
    partial.header(&effort);
    let mut written = ExitCode::SUCCESS;
    for part in PARTS.iter().filter(|it| part.as_ref().is_none_or(|name| it.name == name)) {
        let mut report = Report::new(only.clone(), &effort);
        (part.run)(&mut report, &effort);
        if !whole {
            partial = partial.and(report);
            continue;
        }
        // At once: what goes wrong with the next part would take these figures along.
        let finished = report.finish(part.file);
        if finished != ExitCode::SUCCESS {
            written = finished;
        }
    }
    if whole { written } else { partial.finish("partial.json") }
}

fn library(report: &mut Report, effort: &Effort) {
    direct::run(report, effort);
    keyed::run(report, effort);
    set::run(report, effort);
    latency::run(report, effort);
    memory::run(report, effort);
    flood::run(report, effort);
    instructions::run(report, effort);
    waiting::run(report, effort);
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}
