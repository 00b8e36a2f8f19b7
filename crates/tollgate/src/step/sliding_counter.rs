//! Sliding counter: two fixed windows, the older one weighted by how much of it the last `window` still covers.
//!
//! ```text
//! used = before * (window - elapsed) / window + current
//! allow iff used + cost <= limit             in whole numbers: nothing is rounded
//! ```
//!
//! Windows are counted from the limit's birth. The estimate takes the older window's use for evenly spread. Where it was
//! not, more may pass: if all of it came at that window's end, `limit * elapsed / window` more fit `elapsed` into the
//! next, so that any time of length `window` admits less than `2 * limit`. Evenly spread traffic is held to `limit`.

use super::{Answer, Ask, Moment, Words, taken::ReturnedUnits};
use crate::{
    decision::{Status, Verdict},
    limit::{LimitError, nonzero, span},
};
use std::time::Duration;

/// Sliding counter: a sliding window's smoothness for two counters a key, exact for evenly spread traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingCounter {
    pub(crate) limit: u32,
    pub(crate) window: u64,
}

#[derive(Clone, Copy)]
struct Counters {
    window: u64,
    before: u32,
    current: u32,
}

impl SlidingCounter {
    /// At most about `limit` in any `window`.
    ///
    /// # Errors
    /// Where either is zero, or the window is longer than 146 years.
    pub fn new(limit: u32, window: Duration) -> Result<Self, LimitError> {
        Ok(Self { limit: nonzero(limit, "limit")?, window: span(window, "window")? })
    }

    pub(crate) fn ask(&self, words: Words, ask: &Ask) -> Answer {
        let mut counters = self.counters(words, ask.at);
        let verdict = match ask.cost {
            0 => Verdict::Allow,
            cost if cost > self.limit => Verdict::Never,
            cost if self.used(counters, ask.at) + self.weighed(cost) <= self.weighed(self.limit) => {
                Verdict::Allow
            }
            cost => Verdict::Deny(self.until_room(counters, cost, ask.at)),
        };
        if !verdict.is_deny() {
            counters.current = counters.current.saturating_add(ask.cost);
        }
        let left = self.weighed(self.limit).saturating_sub(self.used(counters, ask.at));
        let status = Status::plain(
            verdict,
            self.limit,
            (left / u128::from(self.window)) as u32,
            self.until_idle(counters, ask.at),
        );
        Answer { status, next: write(counters) }
    }

    /// Off the current window only: the older one has passed.
    pub(crate) fn refund(&self, words: Words, at: Moment, units: u32) -> Words {
        let counters = self.counters(words, at);
        write(Counters { current: counters.current.saturating_sub(units), ..counters })
    }

    /// Takes a charge back that left `after` behind, if that window is still the current one; and how many units that is.
    pub(crate) fn give_back(
        &self,
        words: Words,
        at: Moment,
        after: Words,
        units: u32,
    ) -> (Words, ReturnedUnits) {
        let counters = self.counters(words, at);
        if counters.window != after[0] {
            return (words, ReturnedUnits::default());
        }
        (self.refund(words, at, units), ReturnedUnits::whole(counters.current.min(units)))
    }

    /// Uses `units` of the current window, above the limit too.
    pub(crate) fn owe(&self, words: Words, at: Moment, units: u32) -> Words {
        let counters = self.counters(words, at);
        write(Counters { current: counters.current.saturating_add(units), ..counters })
    }

    pub(crate) fn idle_in(&self, words: Words, at: Moment) -> u64 {
        self.until_idle(self.counters(words, at), at)
    }

    /// The counts stay where the window does.
    pub(crate) fn convert(&self, from: &Self, words: Words) -> Words {
        if self.window == from.window { words } else { [0, 0] }
    }

    fn counters(&self, words: Words, at: Moment) -> Counters {
        let stored = Counters { window: words[0], before: (words[1] >> 32) as u32, current: words[1] as u32 };
        let window = (at.since_birth / self.window).max(stored.window);
        match window - stored.window {
            0 => stored,
            1 => Counters { window, before: stored.current, current: 0 },
            _ => Counters { window, before: 0, current: 0 },
        }
    }

    /// Use in the last window, in units times nanoseconds.
    fn used(&self, counters: Counters, at: Moment) -> u128 {
        let end = (counters.window + 1).saturating_mul(self.window);
        let covered = end.saturating_sub(at.since_birth).min(self.window);
        u128::from(counters.before) * u128::from(covered) + self.weighed(counters.current)
    }

    fn weighed(&self, units: u32) -> u128 {
        u128::from(units) * u128::from(self.window)
    }

    /// Nanoseconds until `cost` fits: in this window as the older one fades, or in the next as this one does.
    fn until_room(&self, counters: Counters, cost: u32, at: Moment) -> u64 {
        let room = |used: u32| self.limit.checked_sub(used)?.checked_sub(cost);
        let start = counters.window * self.window;
        let opens = match (room(counters.current), room(0)) {
            (Some(spare), _) => start.saturating_add(self.fades(counters.before, spare)),
            (None, Some(spare)) => {
                start.saturating_add(self.window).saturating_add(self.fades(counters.current, spare))
            }
            (None, None) => u64::MAX - 1,
        };
        opens.saturating_sub(at.since_birth)
    }

    /// How far into a window `before` units weigh no more than `spare`.
    fn fades(&self, before: u32, spare: u32) -> u64 {
        if before <= spare {
            return 0;
        }
        // before * (window - elapsed) <= spare * window
        let covered = self.weighed(spare) / u128::from(before);
        self.window - covered as u64
    }

    fn until_idle(&self, counters: Counters, at: Moment) -> u64 {
        let windows = match (counters.before, counters.current) {
            (0, 0) => return 0,
            (_, 0) => 1,
            _ => 2,
        };
        (counters.window + windows).saturating_mul(self.window).saturating_sub(at.since_birth)
    }
}

fn write(counters: Counters) -> Words {
    [counters.window, u64::from(counters.before) << 32 | u64::from(counters.current)]
}
