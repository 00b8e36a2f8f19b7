//! Tollgate next to its peers, in one run.
//!
//! ```text
//! cargo run --profile bench -p tollgate-bench -- [--quick] [--only SUBSTRING]
//! ```
//!
//! Every comparison alternates ours and the peer within one process, so that a busy machine slows both; a figure is the
//! median of the rounds, a ratio the median of the rounds' ratios. Memory, floods, instruction counts and crowds that
//! wait are taken in child processes of this same binary. A full run writes `results/library.json`; `--quick` (a smoke run, its figures
//! mean nothing) and `--only` write `results/partial.json`.

mod child;
mod direct;
mod effort;
mod flood;
mod growth;
mod instructions;
mod keyed;
mod latency;
mod measure;
mod memory;
mod report;
mod set;
mod subject;
mod waiting;

use crate::{effort::Effort, report::Report};
use std::process::ExitCode;

const USAGE: &str = "usage: tollgate-bench [--quick] [--only SUBSTRING]";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let mut effort = Effort::full();
    let mut only = None;
    while let Some(arg) = args.next() {
        match arg.as_str() {
            child::ARGUMENT => return child::main(&args.collect::<Vec<_>>()),
            "--quick" => effort = Effort::quick(),
            "--only" => match args.next() {
                Some(substring) => only = Some(substring),
                None => return usage(),
            },
            _ => return usage(),
        }
    }
    let whole = only.is_none() && !effort.is_quick();
    let mut report = Report::new(only, &effort);
    report.header(&effort);
    direct::run(&mut report, &effort);
    keyed::run(&mut report, &effort);
    set::run(&mut report, &effort);
    latency::run(&mut report, &effort);
    memory::run(&mut report, &effort);
    flood::run(&mut report, &effort);
    instructions::run(&mut report, &effort);
    waiting::run(&mut report, &effort);
    report.finish(if whole { "library.json" } else { "partial.json" })
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}
