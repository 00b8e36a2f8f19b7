//! A bucket in one word: [`bucket`](super::bucket)'s arithmetic where 63 bits are enough.
//!
//! The word is the due point in credits, counted from a `base` that moves along (a *rebase*) before the line outgrows
//! the word. Rates whose lowest terms earn at most [`MOST_EARNED`] credits a nanosecond fit: 10/s, 7/s, 600000/s, 1 per
//! 30 days, 999/s. The two divisions an answer needs are multiplications by numbers found when the limit was made. That
//! it answers exactly as the wide bucket does is a property test.

use super::bucket::{Bucket, Overbooks};
use crate::decision::{DecidedBy, Status, Verdict};

/// Credits a nanosecond at most. With it the line lasts 26 days from base to rebase.
const MOST_EARNED: u64 = 1 << 10;
/// Where the line is rebased, and how full a bucket may be: their sum leaves room for a lock bit, and for bookings.
const LINE_END: u64 = 1 << 61;
const FULLEST: u64 = 1 << 60;

/// A bucket's numbers, as words: a store keeps them in atomics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Narrow {
    /// Nanoseconds since birth at which the line begins.
    base: u64,
    /// The furthest that the line goes from its base, in nanoseconds.
    span: u64,
    earn: u64,
    price: u64,
    full: u64,
    free: u64,
    unseen: u64,
    by_price: Divisor,
    by_earn: Divisor,
    capacity: u32,
    overbooks: Overbooks,
}

/// The line has outgrown the word: rebase, and ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outgrown;

impl Narrow {
    /// The bucket in one word, where it fits.
    pub(crate) fn new(bucket: &Bucket, base: u64) -> Option<Self> {
        let full = u128::from(bucket.capacity) * u128::from(bucket.price);
        if bucket.earn > MOST_EARNED || full > u128::from(FULLEST) {
            return None;
        }
        let line = u128::from(base) * u128::from(bucket.earn);
        Some(Self {
            base,
            span: LINE_END / bucket.earn,
            earn: bucket.earn,
            price: bucket.price,
            full: full as u64,
            free: u64::from(bucket.free) * bucket.price,
            // At most a full bucket's credits ahead of the base, so it fits.
            unseen: bucket.unseen.saturating_sub(line) as u64,
            by_price: Divisor::new(bucket.price),
            by_earn: Divisor::new(bucket.earn),
            capacity: bucket.capacity,
            overbooks: bucket.overbooks,
        })
    }

    /// How the charge stands, and the word that follows if it is made.
    #[inline]
    pub(crate) fn ask(
        &self,
        word: u64,
        since_birth: u64,
        cost: u32,
        up_to: Option<u64>,
    ) -> Result<(Status, u64), Outgrown> {
        let elapsed = since_birth.min(super::END_OF_TIME).saturating_sub(self.base);
        if elapsed > self.span {
            return Err(Outgrown);
        }
        let now = elapsed * self.earn;
        let untouched = now.max(self.unseen);
        let due = word.max(untouched);
        let (verdict, charged) = if cost > self.capacity {
            (Verdict::Never, due)
        } else {
            let charged = due + u64::from(cost) * self.price;
            (self.verdict(charged - now, cost, up_to), charged)
        };
        let next = if verdict.is_deny() || charged >= 1 << 63 { due } else { charged };
        let status = Status {
            verdict: if charged >= 1 << 63 { Verdict::Deny(charged - now - self.full) } else { verdict },
            decided_by: DecidedBy::Store,
            limit: self.capacity,
            remaining: self.by_price.divide(self.full.saturating_sub(next - now)) as u32,
            reset: if next <= untouched { 0 } else { self.nanos(next - now) },
        };
        Ok((status, next))
    }

    #[inline]
    fn verdict(&self, level: u64, cost: u32, up_to: Option<u64>) -> Verdict {
        if level <= self.free || cost == 0 {
            return Verdict::Allow;
        }
        self.over(level, up_to)
    }

    #[cold]
    fn over(&self, level: u64, up_to: Option<u64>) -> Verdict {
        let patience = match self.overbooks {
            Overbooks::Yes => up_to.unwrap_or(0),
            Overbooks::No if level > self.full => return Verdict::Deny(self.nanos(level - self.full)),
            Overbooks::No => up_to.unwrap_or(u64::MAX),
        };
        match self.nanos(level - self.free) {
            wait if wait <= patience => Verdict::Wait(wait),
            wait => Verdict::Deny(wait - patience),
        }
    }

    /// Rounded up.
    #[inline]
    fn nanos(&self, credits: u64) -> u64 {
        if self.earn == 1 { credits } else { self.by_earn.divide(credits + self.earn - 1) }
    }
}

/// Division by a fixed number, as a multiplication: exact for dividends below 2^63.
///
/// With `2^(shift-1) < divisor <= 2^shift`, `magic = ceil(2^(63 + shift) / divisor)` errs by less than `2^shift` over
/// `2^(63 + shift)`, which is too little to reach the next quotient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Divisor {
    magic: u64,
    shift: u32,
}

impl Divisor {
    pub(crate) fn new(divisor: u64) -> Self {
        let shift = 64 - (divisor - 1).leading_zeros();
        let magic = (1_u128 << (63 + shift)).div_ceil(u128::from(divisor));
        Self { magic: magic as u64, shift }
    }

    #[inline]
    pub(crate) fn divide(self, dividend: u64) -> u64 {
        ((u128::from(dividend << 1) * u128::from(self.magic)) >> 64) as u64 >> self.shift
    }
}

/// How many words [`Narrow`] takes.
pub(crate) const NARROW_WORDS: usize = 10;

impl Narrow {
    pub(crate) fn to_words(self) -> [u64; NARROW_WORDS] {
        let flags = u64::from(self.capacity) << 32
            | u64::from(self.by_price.shift) << 16
            | u64::from(self.by_earn.shift) << 8
            | u64::from(self.overbooks == Overbooks::Yes) << 1
            | 1;
        [
            flags,
            self.base,
            self.span,
            self.earn,
            self.price,
            self.full,
            self.free,
            self.unseen,
            self.by_price.magic,
            self.by_earn.magic,
        ]
    }

    /// What [`to_words`](Self::to_words) wrote; `None` for words that are all zero.
    #[inline]
    pub(crate) fn from_words(words: [u64; NARROW_WORDS]) -> Option<Self> {
        let [flags, base, span, earn, price, full, free, unseen, price_magic, earn_magic] = words;
        (flags & 1 == 1).then_some(Self {
            base,
            span,
            earn,
            price,
            full,
            free,
            unseen,
            by_price: Divisor { magic: price_magic, shift: (flags >> 16) as u32 & 0xff },
            by_earn: Divisor { magic: earn_magic, shift: (flags >> 8) as u32 & 0xff },
            capacity: (flags >> 32) as u32,
            overbooks: if flags & 2 == 2 { Overbooks::Yes } else { Overbooks::No },
        })
    }

    /// The word in the wide bucket's form, and back. What lies before the base is as if never used.
    pub(crate) fn widen(&self, word: u64) -> super::Words {
        if word == 0 {
            return [0, 0];
        }
        [self.base.saturating_add(word / self.earn), word % self.earn]
    }

    pub(crate) fn narrow(&self, words: super::Words) -> u64 {
        let due = u128::from(words[0]) * u128::from(self.earn) + u128::from(words[1]);
        let line = u128::from(self.base) * u128::from(self.earn);
        u64::try_from(due.saturating_sub(line)).unwrap_or(u64::MAX).min((1 << 63) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::{Ask, Moment};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn division_by_multiplication_is_exact(dividend in 0..1_u64 << 63, divisor in 1..1_u64 << 62, small in 1..5000_u64) {
            for divisor in [divisor, small, divisor.next_power_of_two() / 2 + 1, divisor >> 30 | 1] {
                for dividend in [dividend, dividend / divisor * divisor, (dividend / divisor * divisor).saturating_sub(1)] {
                    prop_assert_eq!(Divisor::new(divisor).divide(dividend), dividend / divisor, "by {}", divisor);
                }
            }
        }

        /// One word answers as two do, over any history.
        #[test]
        fn narrow_answers_as_wide(
            amount in prop_oneof![1_u64..=1_024, (1_u64..=1_000).prop_map(|thousands| thousands * 1_000)],
            period in prop_oneof![Just(1_000_000_000_u64), Just(60_000_000_000), Just(2_592_000_000_000_000), 1..10_000_000_000_u64],
            capacity in 1_u32..2_000,
            free in 1_u32..2_000,
            initial in 0_u32..2_000,
            overbooks in prop_oneof![Just(Overbooks::Yes), Just(Overbooks::No)],
            history in prop::collection::vec((0_u64..3_000_000_000, 0_u32..40, prop::option::of(0_u64..2_000_000_000)), 1..60),
        ) {
            let rate = crate::Rate::new(amount, std::time::Duration::from_nanos(period)).unwrap();
            let free = match overbooks { Overbooks::Yes => capacity, Overbooks::No => free.min(capacity) };
            let bucket = Bucket::new(rate, capacity, free, initial.min(capacity), overbooks);
            let Some(mut narrow) = Narrow::new(&bucket, 0) else { return Ok(()) };
            let (mut wide, mut word, mut now) = ([0, 0], 0, 0_u64);
            for (pause, cost, up_to) in history {
                now += pause;
                let ask = Ask { at: Moment { since_birth: now, unix: 0 }, cost, up_to };
                let expected = bucket.ask(wide, &ask);
                let (status, next) = match narrow.ask(word, now, cost, up_to) {
                    Ok(answer) => answer,
                    Err(Outgrown) => {
                        let rebased = Narrow::new(&bucket, now).unwrap();
                        word = rebased.narrow(narrow.widen(word));
                        narrow = rebased;
                        narrow.ask(word, now, cost, up_to).unwrap()
                    }
                };
                prop_assert_eq!(status, expected.status);
                if !status.is_deny() && cost > 0 {
                    (wide, word) = (expected.next, next);
                }
            }
        }
    }

    #[test]
    fn words_carry_all_of_it() {
        let bucket = Bucket::new(crate::Rate::per_second(7).unwrap(), 9, 4, 2, Overbooks::No);
        let narrow = Narrow::new(&bucket, 77).unwrap();
        assert_eq!(Narrow::from_words(narrow.to_words()), Some(narrow));
        assert_eq!(Narrow::from_words([0; NARROW_WORDS]), None);
    }
}
