//! Heavy hitters by the Space-Saving rule, in sets.
//!
//! A summary has [`SETS`] sets of [`WAYS`] places. A key belongs to one set, by its hash. If it has a place there, its count
//! grows; if not, it takes the place with the smallest count and goes on counting *from that count*, since it may have been
//! displaced at that many before. So a count is never below the truth, and too high by at most what it began with:
//!
//! ```text
//! least <= truth <= most          most - least <= the smallest count of the set when it came
//! ```
//!
//! The counts of a set add up to all the weight `W` that fell into it (less what faded), so the smallest is at most
//! `W / WAYS`: a key that is not there has no more than that, and whoever has more is there. Sets instead of one large heap
//! because an update then touches three cache lines whatever comes; the price is that `W` is a set's and not an average.
//!
//! Counts are fixed-point numbers with [`FRACTION`] bits after the point, so that fading keeps small ones apart. It rounds
//! `most` up and `least` down, and so keeps the bounds.

use super::name::{LimitId, Name};

pub(super) const SETS: usize = 64;
pub(super) const WAYS: usize = 8;

/// Bits after the point. Counts up to 2^48 fit, and saturate there.
const FRACTION: u32 = 16;

/// What is left after a fade, in 2^-32: a twelfth of a halving.
const KEEP: u128 = 4_053_909_305;

/// The heaviest keys of one kind.
#[derive(Debug)]
pub(super) struct Summary {
    sets: Box<[Set]>,
    names: Box<[[Name; WAYS]]>,
}

/// Places that compete. A place that nobody has is print 0 at count 0.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct Set {
    prints: [u64; WAYS],
    most: [u64; WAYS],
    least: [u64; WAYS],
}

/// Between which numbers the truth lies.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bounds {
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Default for Summary {
    fn default() -> Self {
        Self {
            sets: vec![Set::default(); SETS].into(),
            names: (0..SETS).map(|_| std::array::from_fn(|_| Name::default())).collect(),
        }
    }
}

impl Summary {
    /// `name` writes down who it is, where that is needed.
    #[inline]
    pub(super) fn add(&mut self, print: u64, weight: u64, name: impl FnOnce(&mut Name)) {
        let weight = weight.saturating_mul(1 << FRACTION);
        let at = Self::set_of(print);
        let set = &mut self.sets[at];
        let way = match set.way(print) {
            Some(way) => way,
            None => {
                let way = set.smallest();
                set.prints[way] = print;
                set.least[way] = 0;
                name(&mut self.names[at][way]);
                way
            }
        };
        set.most[way] = set.most[way].saturating_add(weight);
        set.least[way] = set.least[way].saturating_add(weight);
    }

    pub(super) fn fade(&mut self) {
        for set in &mut self.sets {
            for most in &mut set.most {
                *most = ((u128::from(*most) * KEEP).div_ceil(1 << 32)) as u64;
            }
            for least in &mut set.least {
                *least = ((u128::from(*least) * KEEP) >> 32) as u64;
            }
        }
    }

    /// Everybody who is there, with what they have at least.
    pub(super) fn all(&self) -> impl Iterator<Item = (u64, f64)> {
        let places = self.sets.iter().flat_map(|set| set.prints.into_iter().zip(set.least));
        places.filter(|(print, _)| *print != 0).map(|(print, least)| (print, number(least)))
    }

    /// What is known about a key, whether it is there or not.
    pub(super) fn bounds(&self, print: u64) -> Bounds {
        let set = &self.sets[Self::set_of(print)];
        match set.way(print) {
            Some(way) => Bounds { least: number(set.least[way]), most: number(set.most[way]) },
            None => Bounds { least: 0.0, most: number(set.most[set.smallest()]) },
        }
    }

    /// Who it is, if it is there.
    pub(super) fn name(&self, print: u64) -> Option<&Name> {
        let at = Self::set_of(print);
        self.sets[at].way(print).map(|way| &self.names[at][way])
    }

    /// The limits of everybody who is there.
    pub(super) fn limits(&self) -> impl Iterator<Item = LimitId> {
        let names = self.names.iter().flatten();
        let prints = self.sets.iter().flat_map(|set| set.prints);
        names.zip(prints).filter(|(_, print)| *print != 0).map(|(name, _)| name.limit())
    }

    const fn set_of(print: u64) -> usize {
        print as usize % SETS
    }
}

impl Set {
    #[inline]
    fn way(&self, print: u64) -> Option<usize> {
        self.prints.iter().position(|it| *it == print)
    }

    #[inline]
    fn smallest(&self) -> usize {
        let mut smallest = 0;
        for way in 1..WAYS {
            if self.most[way] < self.most[smallest] {
                smallest = way;
            }
        }
        smallest
    }
}

fn number(count: u64) -> f64 {
    count as f64 / f64::from(1_u32 << FRACTION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Two sets are enough for keys that compete and keys that do not.
    fn print(key: u64, set: u64) -> u64 {
        (key + 1) * SETS as u64 + set
    }

    #[derive(Clone, Debug)]
    enum Event {
        Add { key: u64, set: u64, weight: u64 },
        Fade,
    }

    fn events() -> impl Strategy<Value = Vec<Event>> {
        // Few keys come often, many now and then.
        let key = prop_oneof![0_u64..3, 0_u64..60];
        let weight = prop_oneof![4 => Just(1), 1 => 0_u64..50];
        let add = (key, 0_u64..2, weight).prop_map(|(key, set, weight)| Event::Add { key, set, weight });
        prop::collection::vec(prop_oneof![40 => add, 1 => Just(Event::Fade)], 0..600)
    }

    proptest! {
        #[test]
        fn the_truth_lies_between_the_bounds_and_the_heavy_are_there(events in events()) {
            let keep = KEEP as f64 / 2_f64.powi(32);
            let mut summary = Summary::default();
            let mut exact: HashMap<u64, f64> = HashMap::new();
            for event in events {
                match event {
                    Event::Add { key, set, weight } => {
                        summary.add(print(key, set), weight, |_| {});
                        *exact.entry(print(key, set)).or_default() += weight as f64;
                    }
                    Event::Fade => {
                        summary.fade();
                        exact.values_mut().for_each(|weight| *weight *= keep);
                    }
                }
            }
            // Each fade rounds by up to one unit of the last place, for each of the places.
            let rounding = 0.01;
            for set in 0..2 {
                let total: f64 = exact.iter().filter(|(print, _)| *print % SETS as u64 == set).map(|(_, n)| n).sum();
                let share = total / WAYS as f64 + rounding;
                for key in 0..60 {
                    let truth = exact.get(&print(key, set)).copied().unwrap_or_default();
                    let Bounds { least, most } = summary.bounds(print(key, set));
                    prop_assert!(least <= truth + 1e-9 && truth <= most + 1e-9, "{least} <= {truth} <= {most}");
                    prop_assert!(most - least <= share, "{most} - {least} <= {share}");
                    let is_there = summary.name(print(key, set)).is_some();
                    prop_assert!(is_there || truth <= share, "{truth} of {total} and not there");
                }
            }
        }
    }

    #[test]
    fn twelve_fades_are_half_and_counts_that_are_too_large_stay_large() {
        let mut summary = Summary::default();
        summary.add(1, 1000, |_| {});
        summary.add(2, u64::MAX, |_| {});
        summary.add(2, u64::MAX, |_| {});
        let full = summary.bounds(2).most;
        (0..12).for_each(|_| summary.fade());
        let Bounds { least, most } = summary.bounds(1);
        assert!(least <= 500.0 + 1e-3 && 500.0 - 1e-3 <= most && most - least < 0.001, "{least} {most}");
        assert!((summary.bounds(2).most / full - 0.5).abs() < 1e-6);
    }

    #[test]
    fn who_comes_is_named_once_and_who_takes_its_place_is_named_then() {
        let mut summary = Summary::default();
        let mut named = 0;
        for key in (0..=WAYS as u64).chain(0..=WAYS as u64) {
            summary.add(print(key, 0), 1, |_| named += 1);
        }
        // Nine keys for eight places, in turn: each finds its place taken, the second time as well.
        assert_eq!(named, 18);
        for _ in 0..10 {
            summary.add(print(8, 0), 1, |_| named += 1);
        }
        assert_eq!(named, 18);
    }
}
