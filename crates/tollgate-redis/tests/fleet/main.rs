//! A fleet of real processes on one real Redis, and a checker that trusts none of them.
//!
//! Every node writes down when it asked, when it was answered and what it was told. The checker merges that and holds it
//! against each algorithm's promise over every stretch of time, and against the same questions asked of the memory store.
//! Started with `node` as its first argument, this program is one of the nodes instead.
//!
//! ```text
//! cargo test -p tollgate-redis --test fleet             all cases, each a second or two
//! cargo test -p tollgate-redis --test fleet -- sliding  those with that in their name
//! FLEET_SECONDS=10                                      every case that hammers lasts so long
//! ```

mod bounds;
mod cases;
mod clock;
mod crew;
mod figures;
mod history;
mod kinds;
mod model;
mod node;
mod order;
mod refusals;

use cases::{Case, Fleet};
use std::{env, process::ExitCode, time::Instant};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let Some(("node", order)) = arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return node::run(order);
    }
    let wanted = |case: &Case| {
        let mut filters = arguments.iter().filter(|argument| !argument.starts_with('-')).peekable();
        filters.peek().is_none() || filters.any(|filter| case.name.contains(filter.as_str()))
    };
    let cases: Vec<Case> = cases::all().into_iter().filter(wanted).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        cases.iter().for_each(|case| println!("{}: test", case.name));
        return ExitCode::SUCCESS;
    }
    if cases.is_empty() {
        // A filter that means another test's name: no server is started for nothing.
        return ExitCode::SUCCESS;
    }
    run(&cases)
}

fn run(cases: &[Case]) -> ExitCode {
    let began = Instant::now();
    println!("\nrunning {} cases, each by a fleet of processes", cases.len());
    let fleet = Fleet::start();
    println!("{}", crew::how_clocks_are_skewed());
    let mut failed = Vec::new();
    for case in cases {
        if let Err(problem) = fleet.run(case) {
            println!("{} ... FAILED\n    {problem}", case.name);
            failed.push(case.name.as_str());
        }
    }
    fleet.figures().print_memory();
    let result = if failed.is_empty() { "ok" } else { "FAILED" };
    println!(
        "\nfleet result: {result}. {} passed; {} failed; in {:.1} s",
        cases.len() - failed.len(),
        failed.len(),
        began.elapsed().as_secs_f64()
    );
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    failed.iter().for_each(|name| println!("    {name}"));
    ExitCode::FAILURE
}
