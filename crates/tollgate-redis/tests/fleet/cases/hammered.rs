//! Four nodes hammer one key of one limit: exact, then leased under the same uneven load.

use super::{Fleet, Merged, STORM};
use crate::{
    bounds::Bound,
    figures::{self, Line},
    history::Ask,
    kinds::{self, Kind},
    model, refusals,
};
use std::time::Duration;

/// Of what one machine would have passed, a fleet passes this much.
const EXACT_PASSES: f64 = 0.99;
/// Of what an exact fleet passes, a leased one passes this much.
const LEASED_PASSES: f64 = 0.97;
/// A lease lasts this long.
const LEASE: Duration = Duration::from_millis(100);

pub(super) fn run(fleet: &Fleet, name: &str) -> Result<(), String> {
    let kind = kinds::kind(name);
    let exact = hammer(fleet, name, &kind, None)?;
    let leased = hammer(fleet, name, &kind, Some(LEASE))?;
    // More than the model is its doing: it takes the worst of the times that are possible.
    if leased < LEASED_PASSES * exact.min(1.0) {
        return Err(format!(
            "TOO FEW: leased passed {:.1}% of the model, exact {:.1}%",
            leased * 100.0,
            exact * 100.0
        ));
    }
    Ok(())
}

/// How much passed, of what one machine would have passed.
fn hammer(fleet: &Fleet, name: &str, kind: &Kind, lease: Option<Duration>) -> Result<f64, String> {
    let mode = if lease.is_some() { "leased" } else { "exact" };
    let in_mode = |problem: String| format!("{mode}: {problem}");
    let mut orders = fleet.hammering(&[name], STORM * kind.gives);
    orders.iter_mut().for_each(|order| order.lease = lease);
    let Merged { asks, clock } = fleet.let_loose(&orders)?;
    if let (None, Some(bytes)) = (lease, fleet.memory(&orders[0], 0)) {
        fleet.figures.remember(name, bytes);
    }
    let all: Vec<&Ask> = asks.iter().collect();
    let passed: Vec<&Ask> = asks.iter().filter(|ask| ask.passed()).collect();
    let units: u64 = passed.iter().map(|ask| ask.cost).sum();
    let fullest = kind.bound.verify(&passed, clock).map_err(in_mode)?;
    let mut line = Line::new(name, mode)
        .add(&format!("{} asked, {units} units passed", asks.len()))
        .add(&format!("fullest {}/{:.0}", fullest.units, fullest.of));

    // How long slots are held is not the limit's doing: there every refusal is judged by itself, leased or not.
    let slots = matches!(kind.bound, Bound::Slots { .. });
    if (lease.is_none() || slots)
        && let Some(said) = refusals::verify(kind.bound, &all, clock).map_err(in_mode)?
    {
        line = line.add(&said);
    }
    let mut share = 1.0;
    if !slots {
        let modelled = model::replay(std::slice::from_ref(kind), &asks, clock)?;
        share = units as f64 / modelled.max(1) as f64;
        if lease.is_none() && share < EXACT_PASSES {
            return Err(in_mode(format!("TOO FEW: {units} units passed, in memory {modelled} would")));
        }
        line = line.add(&format!("{:.1}% of the model", share * 100.0));
    }
    if lease.is_some() {
        line = line.add(&figures::leased(&asks));
    }
    line.add(&figures::latency(&asks)).print();
    Ok(share)
}
