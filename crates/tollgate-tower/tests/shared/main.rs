//! The layers on a real Redis, shared by two processes; and one schedule, the same test in memory and in Redis.
//!
//! Started with `node` as its first argument, this program is one of the processes.
//!
//! ```text
//! cargo test -p tollgate-tower --test shared            all cases
//! cargo test -p tollgate-tower --test shared -- killed  those with that in their name
//! ```
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod limits;
mod node;
mod processes;
mod schedule;

use std::{env, time::Instant};
use testkit::RedisServer;

/// A case's name, and the case.
type Case = (&'static str, fn(&RedisServer));

const CASES: [Case; 5] = [
    ("schedule_in_memory", |_| schedule::in_memory()),
    ("schedule_in_redis", schedule::in_redis),
    ("two_processes_share_a_rate", processes::share_a_rate),
    ("two_processes_share_slots", processes::share_slots),
    ("a_killed_process_gives_its_slots_back", processes::gives_slots_back_when_killed),
];

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [first, rest @ ..] = &arguments[..]
        && first == "node"
    {
        return node::run(rest);
    }
    let filters: Vec<_> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let is_wanted = |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(*filter));
    let cases: Vec<_> = CASES.into_iter().filter(|(name, _)| is_wanted(name)).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        return cases.iter().for_each(|(name, _)| println!("{name}: test"));
    }
    if cases.is_empty() {
        return;
    }
    let server = RedisServer::start();
    for (name, case) in cases {
        let begun = Instant::now();
        case(&server);
        println!("{name} ... ok, in {:.1} s", begun.elapsed().as_secs_f64());
    }
}
