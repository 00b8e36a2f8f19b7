//! The distributed bucket: five a second, five at once, half a second of patience, and ten processes that arrive together.

use super::Fleet;
use crate::{clock, crew, figures::Line, order::Order, order::Task};
use std::time::Duration;

/// A process that is woken may be this late on a busy machine.
const LATE: u64 = 150_000_000;
/// Ten that arrive further apart than this are not at once: the eighth would be within the patience.
const AT_ONCE: u64 = 90_000_000;
const UNIT: u64 = 200_000_000;
const PATIENCE: u64 = 500_000_000;
/// Redis cuts its time off, and hints are rounded up.
const MICRO: u64 = 2_000;

pub(super) fn run(fleet: &Fleet) -> Result<(), String> {
    for _ in 0..5 {
        let order = fleet.order(Task::Wait, &["five"]);
        let orders = vec![order.clone(); 10];
        let nodes = crew::muster(&orders)?;
        if let Some(turns) = arrive(nodes)? {
            return verify(fleet, &order, turns);
        }
    }
    Err("ten processes did not once arrive together: this machine is too busy".into())
}

/// When each asked and went on, by the latter; and who was refused.
struct Turns {
    passed: Vec<(u64, u64)>,
    refused: Vec<(u64, u64)>,
}

fn arrive(mut nodes: Vec<crew::Node>) -> Result<Option<Turns>, String> {
    crew::release(&mut nodes)?;
    let mut turns = Turns { passed: Vec::new(), refused: Vec::new() };
    for node in nodes {
        let said = node.finish()?;
        let words: Vec<&str> = said.split_whitespace().collect();
        let [word, asked, answered] = words[..] else { return Err(format!("a node said {said:?}")) };
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("a node said {said:?}"));
        let turn = (number(asked)?, number(answered)?);
        if word == "passed" { turns.passed.push(turn) } else { turns.refused.push(turn) }
    }
    turns.passed.sort_by_key(|(_, went)| *went);
    let asked = || turns.passed.iter().chain(&turns.refused).map(|(asked, _)| *asked);
    let apart = asked().max().unwrap_or(0) - asked().min().unwrap_or(0);
    let at_once = turns.passed.iter().take(5).map(|(asked, went)| went - asked).max();
    Ok((apart + at_once.unwrap_or(0) < AT_ONCE).then_some(turns))
}

fn verify(fleet: &Fleet, order: &Order, turns: Turns) -> Result<(), String> {
    let Turns { passed, refused } = turns;
    if (passed.len(), refused.len()) != (7, 3) {
        return Err(format!("{} passed and {} were refused, not 7 and 3", passed.len(), refused.len()));
    }
    // A node does not see those who wait at others, so that it may learn only meanwhile that it will be late.
    if let Some((asked, told)) = refused.iter().find(|(asked, told)| *told > asked + PATIENCE + LATE) {
        return Err(format!("told after {} ms that it would be late", (told - asked) / 1_000_000));
    }
    // The first charge was made after the first had asked, and before anybody went on; turns are counted from there.
    let earliest = passed.iter().map(|(asked, _)| *asked).min().unwrap_or(0);
    let latest = passed[0].1;
    let mut line = Line::new("distributed_bucket", "exact").add("5 at once");
    for (turn, (_, went)) in passed[5..].iter().enumerate() {
        let due = (turn as u64 + 1) * UNIT;
        if *went < earliest + due || *went > latest + due + LATE {
            let after = (*went as f64 - latest as f64) / 1e6;
            return Err(format!("a turn due after {} ms came after {after:.1} ms", due / 1_000_000));
        }
        line = line.add(&format!("{:.1} ms", (went - latest) as f64 / 1e6));
    }
    // Seven were charged and no more: the bucket is full seven fifths of a second after the first.
    let asked = clock::now();
    let status = fleet.peek(order, 0)?;
    let answered = clock::now();
    let full = status.statuses()[0].reset_after().unwrap_or(Duration::MAX).as_nanos() as u64;
    if answered + full + MICRO < earliest + 7 * UNIT || asked + full > latest + 7 * UNIT + MICRO {
        let full = full as f64 / 1e6;
        return Err(format!("the bucket is full in {full:.1} ms, which seven charges do not explain"));
    }
    line.add("3 refused, which cost nothing").print();
    Ok(())
}
