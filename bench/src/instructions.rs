//! Instructions a call, counted by callgrind: a figure that a busy machine does not blur.
//!
//! Only the loop of calls is counted, and the count of a run without calls is taken off. Callgrind emulates the time
//! stamp counter and both sides read it through the same crate. Both are asked what both can tell: whether the call passes.

use crate::{
    child,
    effort::Effort,
    measure::{Pair, count},
    report::{Report, Target},
    subject::{Identity, Load, Tables, governors_bucket, our_bucket},
};
use std::{hint::black_box, process::Command};
use tollgate::{Clock, Time};

pub(crate) const CHILD: &str = "instructions";

/// Our calls, and governor's next to each.
const CALLS: [(&str, &str, Option<Target>); 3] = [
    ("check()", "governor's check()", Some(Target::Ratio(1.0))),
    ("check_at()", "governor's check()", Some(Target::Ratio(1.0))),
    ("check(key)", "governor's check_key()", None),
];

pub(crate) fn run(report: &mut Report, effort: &Effort) {
    for load in Load::BOTH {
        for (ours, peer, target) in CALLS {
            let name = format!("instructions, {ours}, {}, {peer}", load.name());
            if !report.wants(&name) {
                continue;
            }
            let count =
                |call: &str| counted(CHILD, &format!("{call}, {}", load.name()), effort.counted_calls);
            match (count(ours), count(peer)) {
                (Ok(ours), Ok(peer)) => {
                    report.compare(&name, "instructions", Pair { ours, peer, ratio: ours / peer }, target);
                }
                (Err(why), _) | (_, Err(why)) => report.left_out(&name, &why),
            }
        }
    }
}

/// Instructions a call of a child's `counted_calls`, or why they could not be counted.
pub(crate) fn counted(measurement: &str, subject: &str, calls: usize) -> Result<f64, String> {
    let count = |calls: usize| {
        let output = callgrind()
            .arg("--toggle-collect=*counted_calls*")
            .args(child::arguments(measurement, subject, calls))
            .output()
            .map_err(|error| format!("valgrind: {error}; it comes with `apt-get install valgrind`"))?;
        collected(&String::from_utf8_lossy(&output.stderr))
    };
    Ok((count(calls)? - count(0)?) / calls as f64)
}

/// The command that counts a program's instructions: the program and its arguments are to be added.
pub(crate) fn callgrind() -> Command {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command
}

/// The instructions that callgrind counted, from its log; or the log, where it has no count.
pub(crate) fn collected(log: &str) -> Result<f64, String> {
    let count = log.lines().find_map(|line| line.split_once("Collected : "));
    count.and_then(|(_, count)| count.trim().parse().ok()).ok_or_else(|| log.to_owned())
}

/// In the child: so many calls and nothing to print.
pub(crate) fn child(subject: &str, calls: usize) -> Vec<f64> {
    let (call, load) = match subject.rsplit_once(", ") {
        Some((call, "allow-heavy")) => (call, Load::Allow),
        Some((call, _)) => (call, Load::Deny),
        None => panic!("no subject is called {subject}"),
    };
    let allowed = match call {
        "check()" => {
            let limiter = our_bucket(load);
            counted_calls(calls, |_| black_box(limiter.check().is_allow()))
        }
        "check_at()" => {
            let limiter = our_bucket(load);
            let begun = limiter.clock().now();
            let at = |call: usize| Time::from_nanos(begun.as_nanos() + 100 * call as u64);
            counted_calls(calls, |call| black_box(limiter.check_at(1, at(call)).is_allow()))
        }
        "governor's check()" => {
            let limiter = governors_bucket(load);
            counted_calls(calls, |_| black_box(limiter.check().is_ok()))
        }
        "check(key)" => {
            let (tables, key) = (Tables::<String>::new(load, 1_000), String::of(7));
            counted_calls(calls, |_| black_box(tables.ours.check(black_box(&key)).is_allow()))
        }
        "governor's check_key()" => {
            let (tables, key) = (Tables::<String>::new(load, 1_000), String::of(7));
            counted_calls(calls, |_| black_box(tables.governor.check_key(black_box(&key)).is_ok()))
        }
        _ => panic!("no call is called {call}"),
    };
    load.must_fit(allowed, calls);
    Vec::new()
}

/// What callgrind counts: it is told this name.
#[inline(never)]
fn counted_calls(calls: usize, call: impl FnMut(usize) -> bool) -> usize {
    count(calls, call)
}
