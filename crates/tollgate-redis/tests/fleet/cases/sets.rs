//! Sets of charges on different keys, all or nothing: what two quotas counted tells whether any set was half charged.
//!
//! A whole set is a bucket with a quota beside it and a log with another; halves of it come in between. A quota for good
//! counts every unit that its half was ever charged, and nothing gives units back, so it must agree with the nodes' books
//! to the unit.

use super::{Fleet, Merged, STORM};
use crate::{
    figures::{self, Line},
    history::Ask,
    kinds::{self, Kind},
    model,
};
use std::time::Duration;

const KINDS: [&str; 4] = ["set_bucket", "quota", "set_log", "quota"];

pub(super) fn run(fleet: &Fleet) -> Result<(), String> {
    for (mode, lease) in [("exact", None), ("leased", Some(Duration::from_millis(100)))] {
        sets(fleet, mode, lease).map_err(|problem| format!("{mode}: {problem}"))?;
    }
    Ok(())
}

fn sets(fleet: &Fleet, mode: &str, lease: Option<Duration>) -> Result<(), String> {
    let kinds: Vec<Kind> = KINDS.into_iter().map(kinds::kind).collect();
    let mut orders = fleet.hammering(&KINDS, STORM * kinds[0].gives);
    orders.iter_mut().for_each(|order| order.lease = lease);
    let Merged { asks, clock } = fleet.let_loose(&orders)?;
    let mut line = Line::new("sets", mode).add(&format!("{} asked", asks.len()));
    for (place, kind) in kinds.iter().enumerate() {
        let passed: Vec<&Ask> = asks.iter().filter(|ask| ask.passed() && ask.charges(place)).collect();
        let units: u64 = passed.iter().map(|ask| ask.cost).sum();
        if KINDS[place] == "quota" {
            let status = fleet.peek(&orders[0], place)?;
            let counted = u64::from(status.statuses()[0].limit() - status.statuses()[0].remaining());
            // Units out on lease count as used until they come back.
            if (lease.is_none() && counted != units) || counted < units {
                return Err(format!(
                    "HALF A SET: {units} units passed with charge {place}, and its quota counted {counted}"
                ));
            }
            line = line.add(&format!("quota {counted} = {units} passed"));
        } else {
            let fullest = kind.bound.verify(&passed, clock)?;
            line = line.add(&format!("{} fullest {}/{:.0}", KINDS[place], fullest.units, fullest.of));
        }
    }
    let units: u64 = asks.iter().filter(|ask| ask.passed()).map(|ask| ask.cost).sum();
    let modelled = model::replay(&kinds, &asks, clock)?;
    let share = units as f64 / modelled.max(1) as f64;
    let least = if lease.is_some() { 0.97 * 0.98 } else { 0.98 };
    if share < least {
        return Err(format!("TOO FEW: {units} units passed, in memory {modelled} would"));
    }
    line.add(&format!("{:.1}% of the model", share * 100.0)).add(&figures::latency(&asks)).print();
    Ok(())
}
