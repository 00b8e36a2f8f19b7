//! Three nodes whose waiters give up at random: the bucket's bound holds over the times at which waiters were released, and the
//! rate is used.
//!
//! 100 units a second and a burst of one, for 200 waiters a second. A waiter is released by a timer, so it may be late by as
//! much as the timer of its process was, which every node measures. That is all by which a stretch of time may exceed the
//! bound.

use super::Fleet;
use crate::{
    crew,
    figures::Line,
    order::{Order, Task},
};
use std::time::Duration;

const NODES: usize = 3;
const ARRIVALS: f64 = 200.0;
const RATE: f64 = 100.0;
const BURST: f64 = 1.0;
/// While the queues fill, the rate is not used for certain.
const FILLING: u64 = 300_000_000;
/// Of the rate, at least so much is used.
const SHARE: f64 = 0.95;

pub(super) fn at_random(fleet: &Fleet) -> Result<(), String> {
    run(fleet, "giving_up", Waiters { arriving: Duration::from_secs(5), give_up: true })
}

/// Nobody gives up, and all of them are released.
pub(super) fn not_at_all(fleet: &Fleet) -> Result<(), String> {
    run(fleet, "staying", Waiters { arriving: Duration::from_secs(2), give_up: false })
}

struct Waiters {
    arriving: Duration,
    give_up: bool,
}

fn run(fleet: &Fleet, name: &str, waiters: Waiters) -> Result<(), String> {
    let Waiters { arriving: lasting, give_up: gives_up } = waiters;
    let order = Order {
        lasting,
        // Nobody gives up in an order without a calm.
        calm: if gives_up { lasting } else { Duration::ZERO },
        rate: ARRIVALS / NODES as f64,
        ..fleet.order(Task::GiveUp, &["hundred"])
    };
    let orders: Vec<Order> =
        (1..=NODES as u64).map(|seed| Order { seed: seed * 0x9E37_79B9, ..order.clone() }).collect();
    let mut nodes = crew::muster(&orders)?;
    let before = calls(fleet)?;
    crew::release(&mut nodes)?;
    let (mut late, mut released) = (0, Vec::new());
    for node in nodes {
        let said = node.finish()?;
        let numbers: Result<Vec<u64>, _> = said.split_whitespace().map(str::parse).collect();
        let numbers = numbers.map_err(|_| format!("a node said {said:?}"))?;
        let (first, times) = numbers.split_first().ok_or("a node said nothing")?;
        late = late.max(*first);
        released.extend_from_slice(times);
    }
    let calls = calls(fleet)? - before;
    released.sort_unstable();
    let first = *released.first().ok_or("nobody was released")?;
    let last = if gives_up { first + lasting.as_nanos() as u64 } else { released[released.len() - 1] };
    let used = released.iter().filter(|at| (first + FILLING..last).contains(at)).count() as f64;
    let share = used / (RATE * (last - first - FILLING) as f64 / 1e9);
    let (excess, within) = most_over(&released);
    let grain = 1.0 + RATE * late as f64 / 1e9;
    let figures = format!(
        "{} released, {:.1} % of the rate; at most {excess:.2} over the bound, in {:.1} ms, where timers late by {:.2} ms explain {grain:.2}; {:.2} calls a release",
        released.len(),
        share * 100.0,
        within as f64 / 1e6,
        late as f64 / 1e6,
        calls as f64 / released.len() as f64,
    );
    if excess > grain {
        return Err(format!("TOO MANY: {figures}"));
    }
    if share < SHARE {
        return Err(format!("TOO FEW: {figures}"));
    }
    Line::new(name, "exact").add(&figures).print();
    Ok(())
}

/// How often the script was called.
fn calls(fleet: &Fleet) -> Result<u64, String> {
    let line = fleet.server.info("commandstats", "cmdstat_evalsha");
    let count = line.strip_prefix("calls=").and_then(|rest| rest.split(',').next());
    count.map_or(Ok(0), str::parse).map_err(|_| format!("Redis said {line:?}"))
}

/// By how many units any stretch of time exceeds burst + rate * t, and how long the worst one is.
fn most_over(released: &[u64]) -> (f64, u64) {
    let units = |nanos: u64| RATE * nanos as f64 / 1e9;
    // The best beginning so far is where the bucket was last as full as it gets.
    let (mut worst, mut level, mut began, mut last) = ((0.0, 0), 0.0_f64, 0, released[0]);
    for at in released {
        level -= units(at - last);
        if level <= 0.0 {
            (level, began) = (0.0, *at);
        }
        (level, last) = (level + 1.0, *at);
        if level - BURST > worst.0 {
            worst = (level - BURST, at - began);
        }
    }
    worst
}
