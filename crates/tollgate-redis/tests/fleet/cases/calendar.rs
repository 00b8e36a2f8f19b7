//! A day's quota and nodes whose clocks are in other days: Redis knows what day it is, and nobody else.

use super::Fleet;
use crate::{
    clock::{self, ServerClock},
    crew,
    figures::Line,
    kinds::DEAREST,
    order::{Order, Task},
};
use std::time::Duration;

const QUOTA: u64 = 100;
/// By how many hours the clocks of those who come are ahead.
const AHEAD: [f64; 4] = [0.0, 25.0, -25.0, 25.0];
const DAY: u64 = 86_400_000_000_000;

/// Nodes one after the other, on clocks a day ahead and a day behind, have one day's quota between them.
pub(super) fn ahead(fleet: &Fleet) -> Result<(), String> {
    if !crew::can_skew() {
        println!("{:<24} left out: there is no libfaketime here", "calendar_ahead");
        return Ok(());
    }
    let today = || ServerClock::measure(&fleet.server).about(clock::now()) / DAY;
    let mut day = today();
    let mut passed = one_after_the_other(fleet)?;
    if today() != day {
        // It was midnight.
        day = today();
        passed = one_after_the_other(fleet)?;
    }
    if passed.iter().sum::<u64>() > QUOTA && today() == day {
        return Err(format!(
            "TOO MANY: {passed:?} units passed of {QUOTA} a day, on clocks {AHEAD:?} hours ahead"
        ));
    }
    if passed[0] < QUOTA - DEAREST {
        return Err(format!("TOO FEW: {passed:?} units passed of {QUOTA} a day"));
    }
    Line::new("calendar_ahead", "exact").add(&format!("{passed:?} units passed of {QUOTA} a day")).print();
    Ok(())
}

/// What passed by each of them.
fn one_after_the_other(fleet: &Fleet) -> Result<Vec<u64>, String> {
    let order = fleet.order(Task::Hammer, &["daily"]);
    let lasting = Duration::from_millis(200);
    let each = AHEAD.into_iter().map(|hours| {
        let order = Order { rate: 1_000.0, lasting, ahead: Some(hours * 3_600.0), ..order.clone() };
        let asks = fleet.let_loose(&[order])?.asks;
        Ok(asks.iter().filter(|ask| ask.passed()).map(|ask| ask.cost).sum())
    });
    each.collect()
}
