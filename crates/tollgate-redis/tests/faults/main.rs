//! What happens when Redis does not behave: every fault against real servers, with figures.
//!
//! The cases run one after the other, so that the figures mean something. An argument that is no option picks the cases
//! whose names contain it. `TOLLGATE_SOAK=1` makes them longer; `TOLLGATE_FAULTS_LOG=1` shows what is logged.

mod across;
mod clocks;
mod damage;
mod failover;
mod figures;
mod fuzz;
mod late;
mod load;
mod logs;
mod msgpack;
mod network;
mod outage;
mod places;
mod policies;
mod script;
mod servers;
mod topologies;

use places::Places;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
    time::{Duration, Instant},
};

/// A case: what it is called, and what says that a promise was broken.
type Case = (&'static str, fn(&Places) -> Result<(), String>);

const SUITES: [&[Case]; 11] = [
    topologies::CASES,
    policies::CASES,
    servers::CASES,
    network::CASES,
    late::CASES,
    script::CASES,
    clocks::CASES,
    damage::CASES,
    fuzz::CASES,
    across::CASES,
    failover::CASES,
];

/// Whether there is time.
pub(crate) fn is_soak() -> bool {
    std::env::var("TOLLGATE_SOAK").is_ok_and(|it| it != "0" && !it.is_empty())
}

/// Seconds as a rule, and with time to spare.
pub(crate) fn seconds(as_a_rule: f64, in_a_soak: f64) -> Duration {
    Duration::from_secs_f64(if is_soak() { in_a_soak } else { as_a_rule })
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted: Vec<&String> = arguments.iter().filter(|it| !it.starts_with('-')).collect();
    let cases = SUITES.iter().copied().flatten();
    let cases: Vec<&Case> = cases
        .filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|it| name.contains(it.as_str())))
        .collect();
    if arguments.iter().any(|it| it == "--list") {
        cases.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    logs::listen();
    figures::Figures::header();
    let (begun, places) = (Instant::now(), Places::default());
    let (mut broken, mut times) = (Vec::new(), Vec::new());
    for (name, run) in &cases {
        let started = Instant::now();
        let told = catch_unwind(AssertUnwindSafe(|| run(&places)));
        let told = told.unwrap_or_else(|reason| {
            let text = reason.downcast_ref::<String>().map(String::as_str);
            Err(format!(
                "panicked: {}",
                text.or_else(|| reason.downcast_ref().copied()).unwrap_or("no reason")
            ))
        });
        if let Err(why) = told {
            println!("{name}: PROMISE BROKEN after {:.1?}\n    {why}", started.elapsed());
            broken.push(*name);
        }
        times.push((started.elapsed(), *name));
    }
    times.sort_unstable_by(|a, b| b.cmp(a));
    let slowest: Vec<String> =
        times.iter().take(8).map(|(took, name)| format!("{name} {took:.1?}")).collect();
    println!("the slowest: {}", slowest.join(", "));
    let (count, took) = (cases.len(), begun.elapsed());
    if broken.is_empty() {
        println!("{count} cases kept their promises in {took:.1?}");
        return ExitCode::SUCCESS;
    }
    eprintln!("{} of {count} cases broke a promise: {} (in {took:.1?})", broken.len(), broken.join(", "));
    ExitCode::FAILURE
}
