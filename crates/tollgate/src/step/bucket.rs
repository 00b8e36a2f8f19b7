//! The arithmetic that token and leaky buckets share: one level that drains at an exact rational rate.
//!
//! A rate in lowest terms is `earn / price`: every nanosecond earns `earn` credits and every unit costs `price`.
//! Nothing is ever divided on the way in, so no remainder is ever lost. The state is one number, the *due* point:
//! the credit line (`earn` credits a nanosecond since birth) at which everything consumed so far is paid for.
//!
//! ```text
//! now    = since_birth * earn
//! due'   = max(due, now, unseen) + cost * price
//! level  = due' - now                      what is consumed, in credits
//! allow  iff level <= free                 free: burst, or the leaky bucket's delay
//! wait   =  (level - free) / earn          rounded up to the nanosecond
//! ```
//!
//! `unseen` is the due point of a key nobody has used: `(capacity - initial) * price`, which the credit line passes
//! when an initially short bucket has filled. The two words are the due point's 127 bits: 146 years of any rate, a full
//! bucket of any size, and bookings beyond it fit.

use super::{
    Answer, Ask, Moment, Words, narrow,
    taken::{LaterCharges, ReturnReason, ReturnedUnits},
};
use crate::{
    decision::{Status, Verdict},
    rate::Rate,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub(crate) earn: u64,
    pub(crate) price: u64,
    pub(crate) capacity: u32,
    /// How many of the capacity's units pass without waiting for the pace.
    pub(crate) free: u32,
    /// Whether a full bucket can still be booked (then the wait is the debt), or refuses.
    pub(crate) overbooks: Overbooks,
    pub(crate) unseen: u128,
    /// The deepest level that can be booked.
    pub(crate) deepest: u128,
}

/// What happens above the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overbooks {
    /// Turns are booked as far ahead as the charge may wait.
    Yes,
    /// The capacity is the queue: what does not fit is refused, and what fits waits for the pace however long.
    No,
}

impl Bucket {
    pub(crate) fn new(rate: Rate, capacity: u32, free: u32, initial: u32, overbooks: Overbooks) -> Self {
        let (earn, price) = rate.credits();
        let unseen = u128::from(capacity - initial) * u128::from(price);
        let full = u128::from(capacity) * u128::from(price);
        let deepest = if narrow::fits(earn, full) { narrow::DEEPEST.into() } else { LAST_DUE / 2 };
        Self { earn, price, capacity, free, overbooks, unseen, deepest }
    }

    pub(crate) fn ask(&self, words: Words, ask: &Ask) -> Answer {
        let now = self.line(ask.at);
        let due = self.due(words, now);
        let level = due - now;
        let cost = self.credits(ask.cost);
        let full = self.credits(self.capacity);

        let verdict = self.verdict(level + cost, ask);
        let next_due = if verdict.is_deny() { due } else { (due + cost).min(LAST_DUE) };
        let status = Status::plain(
            verdict,
            self.capacity,
            whole(full.saturating_sub(next_due - now), self.price) as u32,
            self.until(next_due, now),
        );
        Answer { status, next: to_words(next_due) }
    }

    /// When a charge goes that waits for as long as it takes, in nanoseconds from `at`, and the words that follow it. `None` is
    /// not an answer: [ask](Self::ask).
    pub(crate) fn book(&self, words: Words, at: Moment, cost: u32) -> Option<(u64, Words)> {
        if cost == 0 || cost > self.capacity || self.overbooks == Overbooks::No {
            return None;
        }
        let now = self.line(at);
        let due = self.due(words, now) + self.credits(cost);
        let over = (due - now).saturating_sub(self.credits(self.free));
        (due - now <= self.deepest).then(|| (self.nanos(over), to_words(due)))
    }

    /// As [`ask`](Self::ask), for a charge that came due within the last nanosecond: it is made at its exact place on the credit
    /// line. `None` where it came due before that, or is not due.
    pub(crate) fn ask_just_due(&self, words: Words, ask: &Ask) -> Option<Answer> {
        if ask.cost == 0 || ask.cost > self.capacity || ask.at.since_birth == 0 {
            return None;
        }
        let before = self.line(ask.at) - u128::from(self.earn);
        let next = self.due(words, before) + self.credits(ask.cost);
        let level = next - before;
        let over = level.saturating_sub(self.credits(self.free));
        if over == 0 || over > u128::from(self.earn) || level > self.deepest {
            return None;
        }
        let next = to_words(next.min(LAST_DUE));
        Some(Answer { status: self.ask(next, &Ask { cost: 0, ..*ask }).status, next })
    }

    fn verdict(&self, level: u128, ask: &Ask) -> Verdict {
        if ask.cost == 0 {
            return Verdict::Allow;
        }
        if ask.cost > self.capacity {
            return Verdict::Never;
        }
        let over = level.saturating_sub(self.credits(self.free));
        let above = level.saturating_sub(self.credits(self.capacity));
        let (patience, hard) = match self.overbooks {
            Overbooks::Yes => (ask.up_to.unwrap_or(0), level.saturating_sub(self.deepest)),
            Overbooks::No => (ask.up_to.unwrap_or(u64::MAX), above),
        };
        // What must drain before the charge fits at all, and before its turn is near enough.
        match (self.nanos(over), self.nanos(hard)) {
            (0, 0) => Verdict::Allow,
            (wait, 0) if wait <= patience => Verdict::Wait(wait),
            (wait, hard) => Verdict::Deny(hard.max(wait.saturating_sub(patience))),
        }
    }

    /// Takes `units` back, never below no use.
    pub(crate) fn refund(&self, words: Words, at: Moment, units: u32) -> Words {
        let now = self.line(at);
        let due = self.due(words, now).saturating_sub(self.credits(units));
        to_words(due.max(now).max(self.unseen))
    }

    /// Takes back what time has not earned since of a charge that was made, and left the bucket due at `after`; and how many
    /// units that is. Of a cancelled charge it is less what was charged later.
    pub(crate) fn give_back(
        &self,
        words: Words,
        at: Moment,
        after: Words,
        units: u32,
        later: LaterCharges,
    ) -> (Words, ReturnedUnits) {
        let now = self.line(at);
        let (due, after) = (self.due(words, now), from_words(after));
        let charged_later = due.saturating_add(later.returned.into()).saturating_sub(after);
        let kept = if later.reason == ReturnReason::Cancelled { charged_later } else { 0 };
        let back = self.credits(units).saturating_sub(kept).min(after.saturating_sub(now));
        let next = due.saturating_sub(back).max(now).max(self.unseen);
        let (credits, price) = (due - next.min(due), u128::from(self.price));
        let counted = if charged_later == 0 { 0 } else { u64::try_from(credits).unwrap_or(u64::MAX) };
        let returned = ReturnedUnits { units: (credits / price) as u32, counted };
        (to_words(next), returned)
    }

    /// Uses `units` whether they are there or not, as far as a booking can go.
    pub(crate) fn owe(&self, words: Words, at: Moment, units: u32) -> Words {
        let now = self.line(at);
        let due = self.due(words, now);
        to_words((due + self.credits(units)).min(now + self.deepest).max(due))
    }

    /// Nanoseconds until the key is as if never used.
    pub(crate) fn idle_in(&self, words: Words, at: Moment) -> u64 {
        let now = self.line(at);
        self.until(self.due(words, now), now)
    }

    /// The same consumed fraction under these numbers, rounded against the caller.
    pub(crate) fn convert(&self, from: &Self, words: Words, at: Moment) -> Words {
        let (consumed, of) = from.consumed(words, at);
        self.consume(consumed, of, at)
    }

    /// The consumed fraction of the capacity; nothing for a key that is as if never used.
    pub(crate) fn consumed(&self, words: Words, at: Moment) -> (u128, u128) {
        let now = self.line(at);
        let due = self.due(words, now);
        let level = if self.until(due, now) == 0 { 0 } else { due - now };
        (level, self.credits(self.capacity))
    }

    /// The state in which that fraction is consumed, rounded against the caller.
    pub(crate) fn consume(&self, consumed: u128, of: u128, at: Moment) -> Words {
        if consumed == 0 {
            return [0, 0];
        }
        let level = mul_div_up(consumed, self.credits(self.capacity), of).min(self.deepest);
        to_words(self.line(at).saturating_add(level).max(self.unseen))
    }

    pub(crate) fn line(&self, at: Moment) -> u128 {
        u128::from(at.since_birth) * u128::from(self.earn)
    }

    /// The due point of what was consumed, or of a key never used where that is later.
    pub(crate) fn due(&self, words: Words, now: u128) -> u128 {
        from_words(words).max(self.unseen).max(now)
    }

    /// How long the last that fits waits.
    pub(crate) fn longest_pace(&self) -> u64 {
        self.nanos(self.credits(self.capacity - self.free))
    }

    fn credits(&self, units: u32) -> u128 {
        u128::from(units) * u128::from(self.price)
    }

    fn nanos(&self, credits: u128) -> u64 {
        let whole = whole(credits, self.earn);
        let nanos = whole + u128::from(credits > whole * u128::from(self.earn));
        u64::try_from(nanos).unwrap_or(u64::MAX - 1)
    }

    fn until(&self, due: u128, now: u128) -> u64 {
        if due <= self.unseen.max(now) { 0 } else { self.nanos(due - now) }
    }
}

/// `credits / by`, rounded down. Nearly all credits fit 64 bits, whose division is several times faster.
fn whole(credits: u128, by: u64) -> u128 {
    u64::try_from(credits).map_or_else(|_| credits / u128::from(by), |credits| (credits / by).into())
}

/// As far ahead as a due point can be.
const LAST_DUE: u128 = (1 << 127) - 1;

pub(crate) fn to_words(due: u128) -> Words {
    let due = due.min(LAST_DUE);
    [(due >> 64) as u64, due as u64]
}

pub(crate) fn from_words(words: Words) -> u128 {
    u128::from(words[0]) << 64 | u128::from(words[1])
}

/// `a * b / c`, rounded up, saturating; the product may need all of 256 bits.
pub(crate) fn mul_div_up(a: u128, b: u128, c: u128) -> u128 {
    if let Some(product) = a.checked_mul(b) {
        return product.div_ceil(c);
    }
    // a * b / c = (a / c) * b + (a % c) * b / c, and the last product is built bit by bit, reduced as it grows.
    let mut whole = (a / c).saturating_mul(b);
    let (mut quotient, mut rest) = (0_u128, 0_u128);
    let part = a % c;
    for bit in (0..128 - b.leading_zeros()).rev() {
        quotient = quotient.saturating_mul(2);
        let (mut doubled, overflow) = rest.overflowing_mul(2);
        if overflow || doubled >= c {
            doubled = doubled.wrapping_sub(c);
            quotient = quotient.saturating_add(1);
        }
        if b >> bit & 1 == 1 {
            let (sum, overflow) = doubled.overflowing_add(part);
            doubled = sum;
            if overflow || doubled >= c {
                doubled = doubled.wrapping_sub(c);
                quotient = quotient.saturating_add(1);
            }
        }
        rest = doubled;
    }
    whole = whole.saturating_add(quotient);
    if rest > 0 { whole.saturating_add(1) } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_products_divide_exactly() {
        assert_eq!(mul_div_up(u128::MAX, u128::MAX, u128::MAX), u128::MAX);
        assert_eq!(mul_div_up(u128::MAX - 1, 6, 3), u128::MAX);
        assert_eq!(mul_div_up(1 << 100, 1 << 60, 1 << 70), 1 << 90);
        assert_eq!(mul_div_up((1 << 100) + 1, 1 << 60, 1 << 70), (1 << 90) + 1);
        assert_eq!(mul_div_up(7, 3, 2), 11);
    }

    proptest! {
        #[test]
        fn long_products_agree_with_short_ones(a in any::<u64>(), b in any::<u64>(), c in 1..u64::MAX) {
            let short = (u128::from(a) * u128::from(b)).div_ceil(u128::from(c));
            // Scaled by 2^60, the product no longer fits and takes the long way to the same answer.
            prop_assert_eq!(mul_div_up(u128::from(a) << 60, u128::from(b), u128::from(c) << 60), short);
        }
    }
}
