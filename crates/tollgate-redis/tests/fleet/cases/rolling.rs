//! A limit's numbers change node by node: two nodes still have the old ones when two others come with the new.
//!
//! From the first charge that passes by the new numbers on everybody obeys those, and what was consumed stays, as a
//! fraction. Under a storm the bucket is all but empty at that moment; so is it afterwards, whatever its new size.

use super::{Fleet, Merged};
use crate::{
    bounds::Bound,
    figures::{self, Line},
    history::{Ask, Told, Used},
    kinds::{self, DEAREST},
    order::Order,
    refusals,
};

pub(super) fn run(fleet: &Fleet, name: &str, [old, new]: [&str; 2]) -> Result<(), String> {
    let storm = 3.0 * kinds::kind(old).gives.max(kinds::kind(new).gives);
    let mut orders = fleet.hammering(&[old], storm);
    let lasting = fleet.lasting.max(std::time::Duration::from_millis(1_500));
    for (place, order) in orders.iter_mut().enumerate() {
        // Evenly: both generations are to be heard.
        *order = Order {
            rate: storm / 4.0 / super::MEAN_COST,
            calm: lasting / 20,
            lasting,
            generation: 1,
            ..order.clone()
        };
        if place >= 2 {
            *order = Order { kinds: vec![new.to_owned()], generation: 2, late: lasting / 2, ..order.clone() };
        }
    }
    let Merged { asks, clock } = fleet.let_loose(&orders)?;
    let passed: Vec<&Ask> = asks.iter().filter(|ask| ask.passed()).collect();
    let newer = || asks.iter().filter(|ask| ask.generation == 2);
    let came = newer().map(|ask| ask.asked).min().ok_or("nobody came with the new numbers")?;
    let turned = newer().filter(|ask| ask.passed()).min_by_key(|ask| ask.answered);
    let turned = turned.ok_or("STUCK: nobody with the new numbers ever passed")?;

    let (before, after) = (kinds::kind(old), kinds::kind(new));
    let until: Vec<&Ask> = passed.iter().copied().filter(|ask| ask.answered < came).collect();
    before.bound.verify(&until, clock).map_err(|problem| format!("before the change: {problem}"))?;
    let since: Vec<&Ask> = passed.iter().copied().filter(|ask| ask.asked >= turned.answered).collect();
    after.bound.verify(&since, clock).map_err(|problem| format!("after the change: {problem}"))?;
    // Nodes that are late bring no storm: so long the bucket may have filled before they came back.
    let refused = asks.iter().filter(|ask| ask.told == Told::Deny && ask.answered <= turned.asked);
    let empty_at = refused.map(|ask| ask.asked).max();
    let filled_for = empty_at.map_or(u64::MAX, |at| turned.answered - at);
    let kept = kept_as_a_fraction([before.bound, after.bound], turned, filled_for, &since)?;

    let heard: Vec<&Ask> = asks.iter().filter(|ask| ask.answered >= turned.answered).collect();
    let rate = refusals::verify(after.bound, &heard, clock)?.unwrap_or("no two refusals".to_owned());
    let by_old = since.iter().filter(|ask| ask.generation == 1).count();
    Line::new(name, "exact")
        .add(&format!("{} asked", asks.len()))
        .add(&format!("{:.1} ms until the new numbers held", (turned.answered - came) as f64 / 1e6))
        .add(&format!("then {rate}, {by_old} charges by nodes with the old numbers"))
        .add(&format!("at most {kept:.1} units were there at the change"))
        .add(&figures::latency(&asks))
        .print();
    Ok(())
}

/// From the change on no more passes than what was left, as a fraction, and the new rate. The bucket was empty `filled_for`
/// nanoseconds before the first charge by the new numbers was answered.
fn kept_as_a_fraction(
    bounds: [Bound; 2],
    turned: &Ask,
    filled_for: u64,
    since: &[&Ask],
) -> Result<f64, String> {
    let [Bound::Line { burst: old, .. }, Bound::Line { burst: new, a_second }] = bounds else {
        return Err("not buckets".into());
    };
    // Whoever was refused last found less than the dearest charge; a tenth of a bucket is plenty. Both buckets fill in the same
    // time, so that what came since then is as much by the new rate as by the old one, as a fraction.
    let filled = a_second * filled_for as f64 / 1e9;
    let left = (DEAREST as f64 * (new / old).max(1.0) + old.min(new) / 10.0 + filled).min(new);
    let line = |nanos: u64| left + a_second * (nanos as f64 * 1.0005 + 1_000.0) / 1e9;
    // Only stretches that begin with the change are held against this: later ones may find what time has given.
    let mut ends: Vec<Used> = since.iter().map(|ask| ask.used()).collect();
    ends.sort_by_key(|used| used.to);
    let (mut sum, mut kept) = (0, 0.0_f64);
    for end in ends {
        sum += end.units;
        let nanos = end.to - turned.answered;
        if sum as f64 > line(nanos) {
            return Err(format!(
                "TOO MANY: {sum} units within {:.1} ms of the change, where {:.0} are the most if what was consumed stays",
                nanos as f64 / 1e6,
                line(nanos)
            ));
        }
        kept = kept.max(sum as f64 - a_second * nanos as f64 / 1e9);
    }
    Ok(kept)
}
