//! Nodes that are killed: one that holds slots, one that has reserved a turn, one at which many wait.

use super::Fleet;
use crate::{
    clock, crew,
    figures::Line,
    kinds,
    node::KEYS,
    order::{Order, Task},
};
use std::time::Duration;
use tollgate::Charge;
use tollgate_redis::RedisLimit;

/// Slots are renewed three times as often as they would run out.
const MAX_HOLD: u64 = 600_000_000;
/// Somebody who waits for slots looks this often, at the least; and a busy machine is late.
const LOOKS: u64 = 50_000_000;
const LATE: u64 = 150_000_000;
const UNIT: u64 = 200_000_000;

/// What a dead node held comes back when its last renewal has run out, and not much later.
pub(super) fn holding(fleet: &Fleet) -> Result<(), String> {
    let order = Order { cost: 4, ..fleet.order(Task::Hold, &["slots"]) };
    let mut nodes = crew::muster(std::slice::from_ref(&order))?;
    crew::release(&mut nodes)?;
    let mut node = nodes.pop().ok_or("no node")?;
    node.hear("held")?;
    // Long enough that it has renewed.
    std::thread::sleep(Duration::from_nanos(MAX_HOLD + MAX_HOLD / 2));
    let store = fleet.store(&order)?;
    let limit = store.add_generation("limit0", kinds::kind("slots").limit, 0);
    let limit = limit.map_err(|problem| problem.to_string())?;
    let one = [Charge::new(&limit, KEYS[0])];
    let checked = fleet.runtime.block_on(store.check(&one)).map_err(|problem| problem.to_string())?;
    if !checked.is_deny() {
        return Err("TOO MANY: a fifth slot, while a living node holds four".into());
    }
    if let Some(bytes) = fleet.memory(&order, 0) {
        fleet.figures.remember("concurrency, one holder", bytes);
    }
    // When they would run out; a last renewal makes it later.
    let asked = clock::now();
    let reset = fleet.peek(&order, 0)?.statuses()[0].reset_after().unwrap_or_default();
    let earliest = asked + reset.as_nanos() as u64;
    node.kill()?;
    let killed = clock::now();
    let entered = fleet.runtime.block_on(store.enter(&one).up_to(Duration::from_secs(5)));
    let entered = entered.map_err(|problem| format!("STUCK: {problem}"))?;
    let back = clock::now();
    let after = (back - killed) as f64 / 1e6;
    if back < earliest {
        return Err(format!("slots came back {after:.0} ms after the kill, while they were held"));
    }
    if back > killed + MAX_HOLD + LOOKS + LATE {
        return Err(format!("slots came back {after:.0} ms after the kill, too late"));
    }
    let others: Vec<_> = (0..3).map(|_| fleet.runtime.block_on(store.check(&one))).collect();
    if !others.iter().all(|told| told.as_ref().is_ok_and(tollgate::SetStatus::is_allow)) {
        return Err("not all of the dead node's slots came back".into());
    }
    fleet.runtime.block_on(entered.leave()).map_err(|problem| problem.to_string())?;
    Line::new("killed_holding", "exact")
        .add(&format!("4 slots back {after:.0} ms after the kill, of {} ms", MAX_HOLD / 1_000_000))
        .print();
    Ok(())
}

/// The turn that a dead node has booked is spent; whoever comes next stands behind it, and goes.
pub(super) fn waiting(fleet: &Fleet) -> Result<(), String> {
    let order = Order { cost: 2, ..fleet.order(Task::Book, &["five"]) };
    let mut nodes = crew::muster(std::slice::from_ref(&order))?;
    let store = fleet.store(&order)?;
    let limit = store.add_generation("limit0", kinds::kind("five").limit, 0);
    let limit: RedisLimit = limit.map_err(|problem| problem.to_string())?;
    let began = clock::now();
    let all = fleet.runtime.block_on(store.check(&[Charge::new(&limit, KEYS[0]).cost(5)]));
    let emptied = clock::now();
    if !all.map_err(|problem| problem.to_string())?.is_allow() {
        return Err("a full bucket was refused".into());
    }
    crew::release(&mut nodes)?;
    let mut node = nodes.pop().ok_or("no node")?;
    node.hear("booked")?;
    node.kill()?;
    let one = [Charge::new(&limit, KEYS[0])];
    let turn = fleet.runtime.block_on(store.wait(&one).up_to(Duration::from_secs(5)));
    let went = clock::now();
    turn.map_err(|problem| format!("STUCK: {problem}"))?;
    // Two turns of the dead, and its own.
    if went < began + 3 * UNIT || went > emptied + 3 * UNIT + LATE {
        let after = (went - emptied) as f64 / 1e6;
        return Err(format!("a turn due after {} ms came after {after:.1} ms", 3 * UNIT / 1_000_000));
    }
    Line::new("killed_waiting", "exact")
        .add(&format!("the next turn came after {:.1} ms, of 600", (went - emptied) as f64 / 1e6))
        .print();
    Ok(())
}

/// A hundred wait at a node that is killed: no more is lost than the turns that it had booked ahead.
pub(super) fn queueing(fleet: &Fleet) -> Result<(), String> {
    const HORIZON: u64 = 75_000_000;
    const TURN: u64 = 10_000_000;
    let order =
        Order { rate: 400.0, lasting: Duration::from_secs(60), ..fleet.order(Task::GiveUp, &["hundred"]) };
    let mut nodes = crew::muster(std::slice::from_ref(&order))?;
    crew::release(&mut nodes)?;
    let node = nodes.pop().ok_or("no node")?;
    // More come than go. Turns are booked ahead for those who wait, and for nobody else.
    let booked = || -> Result<u64, String> {
        let reset = fleet.peek(&order, 0)?.statuses()[0].reset_after().unwrap_or(Duration::MAX);
        Ok(reset.as_nanos() as u64)
    };
    let begun = clock::now();
    while booked()? < 2 * TURN {
        if clock::now() - begun > 10_000_000_000 {
            return Err("nobody waited at the node that is to be killed".into());
        }
    }
    node.kill()?;
    let reset = booked()?;
    let booked = format!("{:.1} ms were booked by a node that was killed", reset as f64 / 1e6);
    // The turn that is due last, and what it costs.
    if reset > HORIZON + 2 * TURN {
        return Err(format!("TOO MUCH: {booked}"));
    }
    Line::new("killed_in_the_queue", "exact").add(&booked).print();
    Ok(())
}
