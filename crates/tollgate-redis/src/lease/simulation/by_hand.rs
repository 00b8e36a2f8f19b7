//! Limits that are changed, and keys that are reset, while leases are out: what may pass above the limit, and for how long.
//!
//! The nodes of these runs do not even hear of the change: each goes on with what it holds.

use super::{
    super::BucketId,
    checker::{TooMuch, judge},
    fleet::{Outcome, play},
    plan::{Act, KINDS, Plan, SECOND, START, pace},
    server::{Align, Numbers},
};

const BUCKET: BucketId = BucketId(0);
const CHANGED: u64 = START + SECOND + 371_234;

fn kind(kind: usize) -> Numbers {
    match kind {
        0 => Numbers::Level { earn: 1, price: 1_000, capacity: 1_000, initial: 1_000 },
        1 => Numbers::Fixed { limit: 1_000, window: SECOND, align: Align::Epoch },
        2 => Numbers::Fixed { limit: 1_000, window: SECOND, align: Align::FirstHit },
        3 => Numbers::Sliding { limit: 1_000, window: SECOND, precision: 10_000 },
        _ => Numbers::Counter { limit: 1_000, window: SECOND },
    }
}

/// A run in which the limit becomes another at a moment of full leases.
fn changed(from: Numbers, to: Numbers, load: f64, seed: u64) -> (Plan, Outcome) {
    let mut plan = Plan::steady(from, pace(&from) * load, 4, seed);
    plan.by_hand = vec![(CHANGED, BUCKET, Act::Change(to))];
    let outcome = play(&plan);
    (plan, outcome)
}

/// Judges what was admitted after a time by these numbers, as if the bucket had been full of units then.
fn judge_after(plan: &Plan, outcome: &Outcome, after: u64, numbers: Numbers) -> Result<(), TooMuch> {
    let plan = Plan { limits: vec![numbers], ..plan.clone() };
    let admitted = outcome.admitted.iter().copied().filter(|(at, ..)| *at > after).collect();
    let opened = outcome.opened.clone();
    judge(&plan, &Outcome { admitted, opened, ..Outcome::default() })
}

fn raised_by(numbers: Numbers, units: u32) -> Numbers {
    match numbers {
        Numbers::Level { earn, price, capacity, .. } => {
            Numbers::Level { earn, price, capacity: capacity + units, initial: capacity + units }
        }
        Numbers::Fixed { limit, window, align } => Numbers::Fixed { limit: limit + units, window, align },
        Numbers::Sliding { limit, window, precision } => {
            Numbers::Sliding { limit: limit + units, window, precision }
        }
        Numbers::Counter { limit, window } => Numbers::Counter { limit: limit + units, window },
    }
}

/// The bound: at most what was out then, at most half of the old limit, and nothing once those leases have ended.
fn check_lowered(from: Numbers, to: Numbers, load: f64, seed: u64) -> u32 {
    let (plan, outcome) = changed(from, to, load, seed);
    let out = outcome.out_then[0];
    assert!(out <= 500, "{out} of 1000 were out");
    assert_eq!(judge_after(&plan, &outcome, CHANGED, raised_by(to, out)), Ok(()), "{to:?} and {out}");
    let ended = CHANGED + plan.life.as_micros() as u64;
    assert_eq!(judge_after(&plan, &outcome, ended, to), Ok(()), "{to:?} after the leases ended");
    out
}

#[test]
fn a_lowered_limit_is_exceeded_by_what_was_out_and_no_longer_than_a_lease() {
    for place in 0..KINDS {
        let from = kind(place);
        let out: u32 = (0..12).map(|seed| check_lowered(from, from.scaled(10), 0.8, seed)).sum();
        assert!(out > 0, "kind {place}: nothing was out");
        (0..6).for_each(|seed| {
            check_lowered(from, from.scaled(2), 3.0, seed);
        });
    }
}

#[test]
fn a_change_that_starts_anew_is_bounded_in_the_same_way() {
    let bucket = Numbers::Level { earn: 1, price: 10_000, capacity: 50, initial: 50 };
    let sliding = Numbers::Sliding { limit: 50, window: 2 * SECOND, precision: 100_000 };
    for (from, to) in [(kind(1), bucket), (kind(0), sliding), (kind(3), kind(4).scaled(5))] {
        (0..8).for_each(|seed| {
            check_lowered(from, to, 0.8, seed);
        });
    }
}

#[test]
fn a_raised_limit_gives_more_within_a_lease() {
    for place in 0..KINDS {
        let from = kind(place).scaled(10);
        let (plan, outcome) = changed(from, kind(place), 10.0, 3);
        let life = plan.life.as_micros() as u64;
        let passed = |from: u64, to: u64| {
            let within = outcome.admitted.iter().filter(|(at, ..)| (from..to).contains(at));
            within.map(|(_, _, units)| *units).sum::<u32>()
        };
        let (before, after) = (passed(CHANGED - life, CHANGED), passed(CHANGED + life, CHANGED + 2 * life));
        // A bucket keeps the fraction that was consumed: its room is what its rate brings, as before.
        assert!(place == 0 || after >= before + 50, "kind {place}: {before}, then {after}");
        assert_eq!(
            judge_after(&plan, &outcome, CHANGED, raised_by(kind(place), outcome.out_then[0])),
            Ok(())
        );
    }
}

/// Nobody tells the other nodes of a reset: they find out within a lease's life, and a round trip.
#[test]
fn a_refusal_outlives_a_reset_by_no_more_than_a_lease() {
    let limit = Numbers::Fixed { limit: 300, window: 10 * SECOND, align: Align::Epoch };
    let mut plan = Plan::steady(limit, 2_000.0, 3, 5);
    plan.by_hand = vec![(CHANGED, BUCKET, Act::Reset)];
    let outcome = play(&plan);
    assert_eq!(judge(&plan, &outcome), Ok(()));
    let next = outcome.admitted.iter().map(|(at, ..)| *at).find(|at| *at >= CHANGED).unwrap();
    assert!(outcome.admitted.iter().all(|(at, ..)| *at < START + SECOND || *at >= CHANGED), "it was used up");
    assert!(next <= CHANGED + plan.life.as_micros() as u64 + 5_000, "{} us later", next - CHANGED);
    assert!(outcome.units() >= 2 * 300 - 10, "{} units", outcome.units());
}
