//! Tollgate next to its peers, in one run.
//!
//! ```text
//! cargo run --profile bench -p tollgate-bench -- [--quick] [--only SUBSTRING]
//! ```
//!
//! Every comparison alternates ours and the peer within one process, so that a busy machine slows both; a figure is the
//! median of the rounds, a ratio the median of the rounds' ratios. Memory, floods, instruction counts and crowds that
//! wait are taken in child processes of this same binary. A full run writes `results/library.json`, of limits shared
//! through Redis `results/redis.json`, and of the doors `results/service.json`; `--quick` (a smoke run, its figures mean nothing) and `--only` write
//! `results/partial.json`.

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
mod rows;
mod service;
mod set;
mod shared;
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
    let mut library = Report::new(only.clone(), &effort);
    let mut redis = Report::new(only.clone(), &effort);
    let mut service = Report::new(only, &effort);
    library.header(&effort);
    direct::run(&mut library, &effort);
    keyed::run(&mut library, &effort);
    set::run(&mut library, &effort);
    latency::run(&mut library, &effort);
    memory::run(&mut library, &effort);
    flood::run(&mut library, &effort);
    instructions::run(&mut library, &effort);
    waiting::run(&mut library, &effort);
    if !whole {
        shared::run(&mut redis, &effort);
        service::run(&mut service, &effort);
        return library.and(redis).and(service).finish("partial.json");
    }
    // Before Redis is asked: what went wrong there would take the library's figures along.
    let written = library.finish("library.json");
    shared::run(&mut redis, &effort);
    let redis = redis.finish("redis.json");
    service::run(&mut service, &effort);
    let service = service.finish("service.json");
    [written, redis, service].into_iter().find(|code| *code != ExitCode::SUCCESS).unwrap_or(ExitCode::SUCCESS)
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}
