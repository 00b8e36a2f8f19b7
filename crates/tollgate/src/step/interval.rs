//! The token bucket that refills by interval: the rate's whole amount at the end of every whole period.
//!
//! State: what is consumed, and the time of the last refill (at first: of the charge that found the bucket full).
//! Refills come at that time plus `k * period`, whatever is taken meanwhile. A bucket that is full has no refill
//! under way, so it is as if never used and the next charge starts the count anew. A key never used holds
//! `min(burst, initial + amount * floor(since_birth / period))`.
//!
//! Worst case admitted: `burst + amount * ceil(t / period)` in any time `t`.

use super::{
    Answer, Ask, Moment, Words,
    bucket::mul_div_up,
    taken::{LaterCharges, ReturnReason, ReturnedUnits},
};
use crate::decision::{Status, Verdict};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) amount: u64,
    pub(crate) period: u64,
    pub(crate) burst: u32,
    pub(crate) initial: u32,
}

/// The words read, with every refill up to now made.
#[derive(Clone, Copy)]
struct Level {
    refilled_at: u64,
    consumed: u64,
    /// Whether a key never used would look the same.
    untouched: bool,
}

impl Interval {
    pub(crate) fn ask(&self, words: Words, ask: &Ask) -> Answer {
        let level = self.level(words, ask.at);
        let wanted = level.consumed.saturating_add(ask.cost.into());
        let verdict = self.verdict(level, wanted, ask);
        let after = if verdict.is_deny() || ask.cost == 0 {
            level
        } else {
            Level { consumed: wanted, untouched: false, ..level }
        };
        let status = Status::plain(
            verdict,
            self.burst,
            u64::from(self.burst).saturating_sub(after.consumed) as u32,
            self.until_idle(after, ask.at),
        );
        Answer { status, next: [after.refilled_at, after.consumed] }
    }

    fn verdict(&self, level: Level, wanted: u64, ask: &Ask) -> Verdict {
        if ask.cost == 0 {
            return Verdict::Allow;
        }
        if ask.cost > self.burst {
            return Verdict::Never;
        }
        match wanted.saturating_sub(self.burst.into()) {
            0 => Verdict::Allow,
            missing => {
                let wait = self.until_refilled(level, missing, ask.at);
                let patience = ask.up_to.unwrap_or(0);
                if wait <= patience { Verdict::Wait(wait) } else { Verdict::Deny(wait - patience) }
            }
        }
    }

    pub(crate) fn refund(&self, words: Words, at: Moment, units: u32) -> Words {
        if words == [0, 0] {
            return words;
        }
        let level = self.level(words, at);
        let floor = self.level([0, 0], at).consumed;
        match level.consumed.saturating_sub(units.into()).max(floor.min(level.consumed)) {
            0 => [0, 0],
            consumed => [level.refilled_at, consumed],
        }
    }

    /// Takes back what was not refilled since of a charge that left `after` behind.
    pub(crate) fn give_back(
        &self,
        words: Words,
        at: Moment,
        after: Words,
        units: u32,
        later: LaterCharges,
    ) -> (Words, ReturnedUnits) {
        let (there, consumed) = (self.level(after, at).consumed, self.level(words, at).consumed);
        let charged_later = consumed.saturating_add(later.returned).saturating_sub(there);
        let kept = if later.reason == ReturnReason::Cancelled { charged_later } else { 0 };
        let back = u64::from(units).saturating_sub(kept).min(there);
        if back == 0 {
            return (words, ReturnedUnits::default());
        }
        let next = self.refund(words, at, u32::try_from(back).unwrap_or(u32::MAX));
        let left = if next == [0, 0] { 0 } else { next[1] };
        let units = u32::try_from(consumed.saturating_sub(left)).unwrap_or(u32::MAX);
        (next, ReturnedUnits { units, counted: if charged_later == 0 { 0 } else { units.into() } })
    }

    /// Uses `units` whether they are there or not.
    pub(crate) fn owe(&self, words: Words, at: Moment, units: u32) -> Words {
        let level = self.level(words, at);
        [level.refilled_at, level.consumed.saturating_add(units.into())]
    }

    pub(crate) fn idle_in(&self, words: Words, at: Moment) -> u64 {
        self.until_idle(self.level(words, at), at)
    }

    /// The same consumed fraction under these numbers, rounded against the caller.
    pub(crate) fn convert(&self, from: &Self, words: Words, at: Moment) -> Words {
        let (consumed, of) = from.consumed(words, at);
        match self.consume(consumed, of, at) {
            [0, 0] => [0, 0],
            // Refills go on coming when they would have.
            [_, consumed] => [from.level(words, at).refilled_at, consumed],
        }
    }

    /// The consumed fraction of the burst; nothing for a key that is as if never used.
    pub(crate) fn consumed(&self, words: Words, at: Moment) -> (u128, u128) {
        let level = self.level(words, at);
        (if level.untouched { 0 } else { level.consumed.into() }, self.burst.into())
    }

    /// The state in which that fraction is consumed, rounded against the caller; refills count from now.
    pub(crate) fn consume(&self, consumed: u128, of: u128, at: Moment) -> Words {
        let units = mul_div_up(consumed, self.burst.into(), of);
        if units == 0 { [0, 0] } else { [at.since_birth, u64::try_from(units).unwrap_or(u64::MAX)] }
    }

    fn level(&self, words: Words, at: Moment) -> Level {
        let born_short = u64::from(self.burst - self.initial);
        let untouched = words == [0, 0];
        let [refilled_at, consumed] = if untouched { [0, born_short] } else { words };
        let periods = at.since_birth.saturating_sub(refilled_at) / self.period;
        let left = consumed.saturating_sub(self.amount.saturating_mul(periods));
        if left == 0 {
            return Level { refilled_at: at.since_birth.max(refilled_at), consumed: 0, untouched: true };
        }
        Level { refilled_at: refilled_at + periods * self.period, consumed: left, untouched }
    }

    /// Nanoseconds until `units` have been added.
    fn until_refilled(&self, level: Level, units: u64, at: Moment) -> u64 {
        let periods = units.div_ceil(self.amount);
        level
            .refilled_at
            .saturating_add(periods.saturating_mul(self.period))
            .saturating_sub(at.since_birth)
            .min(u64::MAX - 1)
    }

    fn until_idle(&self, level: Level, at: Moment) -> u64 {
        if level.untouched { 0 } else { self.until_refilled(level, level.consumed, at) }
    }
}
