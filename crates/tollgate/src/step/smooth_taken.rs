//! Giving back what a charge on a smooth limiter took, exactly.
//!
//! A charge moves two things: the time at which the bucket is even, and the permits stored. What it moved each by depends on
//! what was stored when it came, so it cannot be worked out from its cost afterwards; it is noted when the charge is made:
//!
//! ```text
//! taken:      micros = next after - next before;  permits = stored before - stored after
//! give back:  next = max(now, next - micros);     stored = min(max, stored + permits)
//! ```
//!
//! Right after the charge this is the state before it, to the bit where fractions are dropped (up to 1000 permits a second)
//! and to the rounding of a double where they are owed. Later it is never more than if the charge had not been made: time
//! that went by while the charge held it is not given back.

use super::{
    Moment, Words,
    smooth::{Smooth, Stored, write},
    taken::ReturnedUnits,
};

/// What one charge took, to be given back by [`Smooth::give_back`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Taken {
    /// By how much later the bucket is even.
    pub(crate) micros: u64,
    /// By how many permits less are stored. Below zero where a debt was turned into time.
    pub(crate) permits: f64,
}

impl Smooth {
    /// What the charge took that was made at `at` and turned `before` into `after`.
    pub(crate) fn taken(&self, before: Words, at: Moment, after: Words) -> Taken {
        if self.stable == 0.0 {
            // Of endlessly many stored there is no difference to take.
            return Taken { micros: 0, permits: 0.0 };
        }
        let before = self.resync(self.read(before), at.since_birth / 1_000);
        let after = self.read(after);
        Taken { micros: after.next.saturating_sub(before.next), permits: before.permits - after.permits }
    }

    /// Gives back exactly what a charge took: the bucket is even by its microseconds earlier, though never before now, and
    /// its permits are stored again, as far as there is room. Others may have charged since; they keep their turns, and
    /// whoever comes next moves up.
    pub(crate) fn give_back(&self, words: Words, at: Moment, taken: Taken) -> Words {
        if words == [0, 0] {
            return words;
        }
        let now = at.since_birth / 1_000;
        let held = self.resync(self.read(words), now);
        let next = held.next.saturating_sub(taken.micros).max(now);
        write(Stored { next, permits: (held.permits + taken.permits).min(self.max) })
    }

    /// Of what a charge took that left `after` behind, what time has not made up for since: the difference it makes now.
    pub(crate) fn still_there(&self, taken: Taken, after: Words, at: Moment) -> Taken {
        let now = at.since_birth / 1_000;
        let after = self.read(after);
        let before =
            Stored { next: after.next.saturating_sub(taken.micros), permits: after.permits + taken.permits };
        if now <= before.next {
            // Not even rounded.
            return taken;
        }
        let (with, without) = (self.resync(after, now), self.resync(before, now));
        Taken { micros: with.next.saturating_sub(without.next), permits: without.permits - with.permits }
    }

    /// Whether nobody charged after a charge that left `after` behind, and nothing came back since. Only then may a cancelled
    /// one come back: a charge of any size passes once the bucket is even, so a part of it could be followed by too much
    /// before a later turn.
    pub(crate) fn is_last(&self, words: Words, after: Words, at: Moment, returned: u64) -> bool {
        let now = at.since_birth / 1_000;
        let (held, left) = (self.resync(self.read(words), now), self.resync(self.read(after), now));
        returned == 0 && held.next <= left.next && held.permits >= left.permits
    }

    /// How many of `units`, which took `all`, came back where `before` was turned into `after`.
    pub(crate) fn units_between(
        &self,
        before: Words,
        after: Words,
        at: Moment,
        all: Taken,
        units: u32,
    ) -> ReturnedUnits {
        let now = at.since_birth / 1_000;
        let (before, after) = (self.resync(self.read(before), now), self.read(after));
        let share = if all.micros > 0 {
            before.next.saturating_sub(after.next) as f64 / all.micros as f64
        } else if all.permits > 0.0 {
            (after.permits - before.permits) / all.permits
        } else {
            return ReturnedUnits::default();
        };
        let back = f64::from(units) * share;
        ReturnedUnits { units: (back as u32).min(units), counted: (back.ceil() as u64).min(units.into()) }
    }

    /// Of what a charge took that left `after` behind, what it would not have taken had it cost `actual`.
    pub(crate) fn part_of(&self, all: Taken, after: Words, actual: u32) -> Taken {
        if actual == 0 {
            return all;
        }
        let after = self.read(after);
        let before =
            Stored { next: after.next.saturating_sub(all.micros), permits: after.permits + all.permits };
        let really = self.spend(before, actual);
        Taken { micros: after.next.saturating_sub(really.next), permits: really.permits - after.permits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Ask;
    use proptest::prelude::*;

    fn at(micros: u64) -> Moment {
        Moment::new(micros * 1_000, 0)
    }

    fn charge(smooth: &Smooth, words: Words, micros: u64, cost: u32) -> Words {
        smooth.ask(words, &Ask { at: at(micros), cost, up_to: Some(u64::MAX) }).next
    }

    fn smooths(rate: impl Strategy<Value = f64> + Clone + 'static) -> impl Strategy<Value = Smooth> {
        let warming = (rate.clone(), 0_u32..10_000_000, 1.0..9.0);
        prop_oneof![
            (rate, 0.1..10.0).prop_map(|(rate, burst)| Smooth::bursty(rate, burst, 0.0)),
            warming.prop_map(|(rate, warmup, cold)| Smooth::warming_up(rate, warmup.into(), cold)),
        ]
    }

    fn slow() -> impl Strategy<Value = Smooth> {
        smooths(prop_oneof![0.01..1_000.0, Just(5.0)])
    }

    fn fast() -> impl Strategy<Value = Smooth> {
        smooths(prop_oneof![1_001.0..3e6, Just(600_000.0)])
    }

    /// Charges and rests, to get anywhere from.
    fn past() -> impl Strategy<Value = Vec<(u32, u64)>> {
        prop::collection::vec((1_u32..50, 0_u64..2_000_000), 0..6)
    }

    /// The state before a charge of `cost`, and the one after it was given back at once.
    fn there_and_back(smooth: &Smooth, past: Vec<(u32, u64)>, cost: u32) -> (Stored, Stored) {
        let (mut words, mut now) = (smooth.born(), 0);
        for (cost, rest) in past {
            words = charge(smooth, words, now, cost);
            now += rest;
        }
        let after = charge(smooth, words, now, cost);
        let taken = smooth.taken(words, at(now), after);
        let back = smooth.give_back(after, at(now), taken);
        (smooth.resync(smooth.read(words), now), smooth.read(back))
    }

    proptest! {
        #[test]
        fn given_back_at_once_it_was_never_taken(smooth in slow(), past in past(), cost in 1_u32..5_000) {
            let (before, back) = there_and_back(&smooth, past, cost);
            prop_assert_eq!((back.next, back.permits.to_bits()), (before.next, before.permits.to_bits()));
        }

        #[test]
        fn what_is_owed_is_given_back_too(smooth in fast(), past in past(), cost in 1_u32..5_000) {
            let (before, back) = there_and_back(&smooth, past, cost);
            prop_assert_eq!(back.next, before.next);
            prop_assert!((back.permits - before.permits).abs() <= smooth.max * 1e-15 + 1e-12);
        }

        #[test]
        fn nobody_gains_by_giving_back_late(
            smooth in prop_oneof![slow(), fast()], costs in (1_u32..50, 1_u32..500),
            rest in 0_u64..3_000_000, held_for in 0_u64..10_000_000,
        ) {
            let words = charge(&smooth, smooth.born(), 0, costs.0);
            let after = charge(&smooth, words, rest, costs.1);
            let taken = smooth.taken(words, at(rest), after);
            let now = rest + held_for;
            let back = smooth.read(smooth.give_back(after, at(now), taken));
            let untouched = smooth.resync(smooth.read(words), now);
            prop_assert!(back.next >= untouched.next);
            let rounding = smooth.max * 1e-15 + 1e-12;
            prop_assert!(back.permits <= untouched.permits + rounding, "{} of {}", back.permits, untouched.permits);
        }
    }

    #[test]
    fn a_charge_may_take_of_both() {
        let smooth = Smooth::bursty(5.0, 1.0, 0.0);
        let words = charge(&smooth, smooth.born(), 600_000, 8);
        let taken = smooth.taken(smooth.born(), at(600_000), words);
        assert_eq!(taken, Taken { micros: 1_000_000, permits: 3.0 }, "three stored and five fresh ones");
        let back = smooth.read(smooth.give_back(words, at(600_000), taken));
        assert_eq!((back.next, back.permits), (600_000, 3.0));
    }
}
