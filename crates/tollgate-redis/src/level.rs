//! What charges are told, worked out from how their buckets stood: the formulas of `step/bucket.rs`, on the script's numbers.
//!
//! Only for plain buckets, and charges that pass or are refused at once. The script has decided by the same formulas
//! (`script/one.lua`, `each.lua`, `runs.lua`), and made sure that they stay below 2^53; here they saturate, since a server may
//! answer anything.

use crate::{
    numbers::Plain,
    question::{Part, Question, Standing, Standings, Taken},
};

/// What is used of a bucket: units, and credits of a further one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) units: u64,
    pub(crate) rest: u64,
}

/// What a set is told on buckets that stand so, which it changes if it passes. `keys` are the places of its buckets. `None` where
/// it is no set of that kind.
pub(crate) fn decided(question: &Question, keys: &[usize], levels: &mut [Level]) -> Option<Standings> {
    let mut passes = true;
    for (part, key) in question.parts.iter().zip(keys) {
        passes &= levels.get(*key)?.has_room(part.cost, part.edition.plain.as_ref()?);
    }
    let mut standings = Standings::with_capacity(keys.len());
    for (part, key) in question.parts.iter().zip(keys) {
        let level = levels.get_mut(*key)?;
        if passes {
            level.units = level.units.saturating_add(part.cost);
        }
        standings.push(level.told(part, passes)?);
    }
    Some(standings)
}

impl Level {
    const fn has_room(self, cost: u64, plain: &Plain) -> bool {
        self.used().saturating_add(cost) <= plain.free as u64
    }

    /// How a part stands whose set passed, which is in the level, or did not. A refused set shows what is there untouched, each
    /// part with the verdict it would have had.
    fn told(self, part: &Part, has_passed: bool) -> Option<Standing> {
        let plain = part.edition.plain.as_ref()?;
        let is_refused = !has_passed && !self.has_room(part.cost, plain);
        let over = self.units.saturating_add(part.cost).saturating_sub(plain.free.into());
        Some(Standing {
            verdict: if is_refused { 2 } else { 0 },
            banned: false,
            slots: false,
            time: if is_refused { self.drains_in(over, plain) } else { 0 },
            limit: plain.capacity.into(),
            remaining: u64::from(plain.capacity).saturating_sub(self.used()),
            reset: Some(self.drains_in(self.units, plain)),
            taken: Taken::new(),
            lent: (0, 0),
        })
    }

    /// Units of which at least a part is used.
    const fn used(self) -> u64 {
        self.units.saturating_add((self.rest > 0) as u64)
    }

    /// Microseconds until so many units have drained, and the credits, rounded up.
    const fn drains_in(self, units: u64, plain: &Plain) -> u64 {
        let credits = units.saturating_mul(plain.price).saturating_add(self.rest);
        match plain.earn {
            0 => u64::MAX,
            earn => credits.div_ceil(earn),
        }
    }
}
