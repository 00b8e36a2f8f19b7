//! A bucket in one word: [`bucket`](super::bucket)'s arithmetic where 63 bits are enough, in half credits, so that every word
//! is even and its last bit free for a lock.
//!
//! The word is the due point, counted from a `base` that moves along (a *rebase*) before the line outgrows
//! the word. Rates whose lowest terms earn at most [`MOST_EARNED`] credits a nanosecond fit: 10/s, 7/s, 600000/s, 1 per
//! 30 days, 999/s. That it answers exactly as the wide bucket does is a property test.

use super::{
    bucket::{Bucket, Overbooks, from_words, to_words},
    turns::Turns,
};
use crate::{
    decision::{DecidedBy, Status, Verdict},
    time::Time,
};

/// Credits a nanosecond at most. With it the line lasts 26 days from base to rebase.
const MOST_EARNED: u64 = 1 << 10;
/// Where the line is rebased, and how full a bucket may be: twice their sum leaves room for bookings.
const LINE_END: u64 = 1 << 61;
const FULLEST: u64 = 1 << 60;
/// The deepest level that can be booked, in credits: half a century at 1/s, a hundred days at the fastest rates that fit.
pub(crate) const DEEPEST: u64 = 1 << 62;

/// Whether a bucket that earns so much and is so full, in credits, fits one word.
pub(crate) fn fits(earn: u64, full: u128) -> bool {
    earn <= MOST_EARNED && full <= u128::from(FULLEST)
}

/// A bucket's numbers, as words: a store keeps them in atomics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Narrow {
    /// The time at which the line begins.
    origin: u64,
    /// The furthest that the line goes from its base, in nanoseconds.
    span: u64,
    earn: u64,
    price: u64,
    free: u64,
    unseen: u64,
    capacity: u32,
    overbooks: Overbooks,
}

/// The line has outgrown the word: rebase, and ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outgrown;

impl Narrow {
    /// The bucket in one word, where it fits.
    pub(crate) fn new(bucket: &Bucket, birth: Time, base: u64) -> Option<Self> {
        if !fits(bucket.earn, u128::from(bucket.capacity) * u128::from(bucket.price)) {
            return None;
        }
        let line = u128::from(base) * u128::from(bucket.earn);
        Some(Self {
            origin: birth.as_nanos() + base,
            span: LINE_END / bucket.earn,
            earn: 2 * bucket.earn,
            price: 2 * bucket.price,
            free: 2 * u64::from(bucket.free) * bucket.price,
            // At most a full bucket's credits ahead of the base, so it fits.
            unseen: 2 * bucket.unseen.saturating_sub(line) as u64,
            capacity: bucket.capacity,
            overbooks: bucket.overbooks,
        })
    }

    /// Whether the line has outgrown the word.
    #[inline]
    pub(crate) fn is_outgrown(&self, now: Time) -> bool {
        now.as_nanos().saturating_sub(self.origin) > self.span
    }

    /// How the charge stands, and the word that follows if it is made.
    #[inline]
    pub(crate) fn ask(
        &self,
        word: u64,
        now: Time,
        cost: u32,
        up_to: Option<u64>,
    ) -> Result<(Status, u64), Outgrown> {
        if self.is_outgrown(now) { Err(Outgrown) } else { Ok(self.ask_within(word, now, cost, up_to)) }
    }

    /// As [`ask`](Self::ask), at a time at which the line [has not outgrown](Self::is_outgrown) the word.
    #[inline]
    pub(crate) fn ask_within(&self, word: u64, now: Time, cost: u32, up_to: Option<u64>) -> (Status, u64) {
        let now = now.as_nanos().saturating_sub(self.origin).wrapping_mul(self.earn);
        let untouched = now.max(self.unseen);
        let due = word.max(untouched);
        let charged = due.wrapping_add(u64::from(cost).wrapping_mul(self.price));
        let verdict = self.verdict(charged.wrapping_sub(now), cost, up_to);
        let next = if verdict.is_deny() { due } else { charged };
        let level = next.wrapping_sub(now);
        let reset = if next == untouched { 0 } else { level };
        (Status { reset, ..self.status(verdict, level) }, next)
    }

    /// As [`Step::ask_to`](super::Step::ask_to) answers for a waiter that is released now. `None` is not an answer: ask the
    /// wide bucket.
    pub(crate) fn ask_release(
        &self,
        word: u64,
        now: Time,
        cost: u32,
        up_to: Option<u64>,
    ) -> Option<(Status, u64)> {
        if self.overbooks == Overbooks::No {
            return self.ask(word, now, cost, up_to).ok();
        }
        match self.just_due(word, now, cost)? {
            Some(next) => self.ask(next, now, 0, None).ok().map(|(status, _)| (status, next)),
            None => self.ask(word, now, cost, Some(0)).ok(),
        }
    }

    /// The word after a charge that came due within the last nanosecond, at its exact place on the credit line. `None` where
    /// the line has no nanosecond before this one.
    fn just_due(&self, word: u64, now: Time, cost: u32) -> Option<Option<u64>> {
        let elapsed = now.as_nanos().checked_sub(self.origin + 1)?;
        if cost == 0 || cost > self.capacity || elapsed >= self.span {
            return Some(None);
        }
        let before = elapsed.wrapping_mul(self.earn);
        let next = word.max(self.unseen).max(before).wrapping_add(u64::from(cost).wrapping_mul(self.price));
        let over = next.wrapping_sub(before).saturating_sub(self.free);
        Some((1..=self.earn).contains(&over).then_some(next))
    }

    /// As [`ask`](Self::ask), for a charge that does not say how long it waits, or says not at all, on a word that is not
    /// before `unseen`. `None` is not an answer: ask the long way.
    #[inline(always)]
    pub(crate) fn ask_quickly(&self, word: u64, now: Time, cost: u32) -> Option<(Status, u64)> {
        let elapsed = now.as_nanos().wrapping_sub(self.origin);
        if elapsed > self.span {
            return None;
        }
        // Numbers read while they change may not fit each other. That is found out afterwards, and the answer thrown
        // away; until then no sum may panic.
        let now = elapsed.wrapping_mul(self.earn);
        let due = word.max(now);
        let charged = due.checked_add(u64::from(cost).checked_mul(self.price)?)?;
        let level = charged.wrapping_sub(now);
        if charged <= now.wrapping_add(self.free) || cost == 0 {
            return Some((self.status(Verdict::Allow, level), charged));
        }
        if self.overbooks == Overbooks::No || cost > self.capacity {
            return None;
        }
        Some((self.status(Verdict::Deny(level.wrapping_sub(self.free)), due.wrapping_sub(now)), due))
    }

    /// The word, or that of a key never used where it is as if: the quick way knows nothing of `unseen`, and leaves it alone.
    fn unless_unseen(&self, word: u64) -> u64 {
        if word == self.unseen { 0 } else { word }
    }

    #[inline(always)]
    fn status(&self, verdict: Verdict, level: u64) -> Status {
        Status {
            verdict,
            decided_by: DecidedBy::Store,
            limit: self.capacity,
            left: self.full().saturating_sub(level),
            reset: level,
            per_unit: self.price,
            per_nano: self.earn as u32,
            permit: None,
        }
    }

    #[inline]
    fn verdict(&self, level: u64, cost: u32, up_to: Option<u64>) -> Verdict {
        if cost > self.capacity {
            Verdict::Never
        } else if level <= self.free || cost == 0 {
            Verdict::Allow
        } else if up_to.is_none() && self.overbooks == Overbooks::Yes {
            Verdict::Deny(level.wrapping_sub(self.free))
        } else {
            over(
                level,
                self.free,
                self.full(),
                self.overbooks,
                up_to.map(|up_to| up_to.saturating_mul(self.earn)),
            )
        }
    }

    #[inline(always)]
    fn full(&self) -> u64 {
        u64::from(self.capacity).wrapping_mul(self.price)
    }

    /// A word as [`ask_quickly`](Self::ask_quickly) wants it: not before `unseen`.
    pub(crate) fn at_least_unseen(&self, word: u64) -> u64 {
        word.max(self.unseen)
    }

    /// Whether the line passed `unseen`: from then on a word that is written is never before it.
    pub(crate) fn is_past_unseen(&self, now: Time) -> bool {
        now.as_nanos().saturating_sub(self.origin).saturating_mul(self.earn) >= self.unseen
    }
}

/// The verdict on a level above what is free, when the charge may wait; all in half credits.
#[cold]
fn over(level: u64, free: u64, full: u64, overbooks: Overbooks, up_to: Option<u64>) -> Verdict {
    let (patience, hard) = match overbooks {
        Overbooks::Yes => (up_to.unwrap_or(0), level.saturating_sub(2 * DEEPEST)),
        Overbooks::No => (up_to.unwrap_or(u64::MAX), level.saturating_sub(full)),
    };
    match level.wrapping_sub(free) {
        wait if wait <= patience && hard == 0 => Verdict::Wait(wait),
        wait => Verdict::Deny(hard.max(wait.saturating_sub(patience))),
    }
}

/// How many words [`Narrow`] takes.
pub(crate) const NARROW_WORDS: usize = 7;

impl Narrow {
    pub(crate) fn to_words(self) -> [u64; NARROW_WORDS] {
        let flags = u64::from(self.capacity) << 32 | u64::from(self.overbooks == Overbooks::Yes) << 1 | 1;
        [flags, self.origin, self.span, self.earn, self.price, self.free, self.unseen]
    }

    /// What [`to_words`](Self::to_words) wrote; `None` for words that are all zero.
    #[inline]
    pub(crate) fn from_words(words: [u64; NARROW_WORDS]) -> Option<Self> {
        (words[0] & 1 == 1).then(|| Self::from_words_unchecked(words))
    }

    /// Whether the words it was read from were not all zero.
    #[inline(always)]
    pub(crate) const fn is_there(&self) -> bool {
        self.earn > 0
    }

    /// How turns are had there.
    pub(crate) const fn turns(&self) -> Turns {
        match self.overbooks {
            Overbooks::Yes => Turns::Booked,
            Overbooks::No => Turns::Asked,
        }
    }

    #[inline(always)]
    pub(crate) fn from_words_unchecked(words: [u64; NARROW_WORDS]) -> Self {
        let [flags, origin, span, earn, price, free, unseen] = words;
        Self {
            origin,
            span,
            earn,
            price,
            free,
            unseen,
            capacity: (flags >> 32) as u32,
            overbooks: if flags & 2 == 2 { Overbooks::Yes } else { Overbooks::No },
        }
    }

    /// The word in the wide bucket's form, and back. What lies before the line is as if never used.
    pub(crate) fn widen(&self, word: u64, birth: Time) -> super::Words {
        if word == 0 { [0, 0] } else { to_words(self.line(birth) + u128::from(word / 2)) }
    }

    pub(crate) fn narrow(&self, words: super::Words, birth: Time) -> u64 {
        let due = from_words(words).saturating_sub(self.line(birth));
        self.unless_unseen(u64::try_from(due).unwrap_or(u64::MAX).saturating_mul(2))
    }

    fn line(&self, birth: Time) -> u128 {
        u128::from(self.origin - birth.as_nanos()) * u128::from(self.earn / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::{Ask, Kind, Mode, Moment, State, Step};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// One word answers as two do, over any history.
        #[test]
        fn narrow_answers_as_wide(
            amount in prop_oneof![1_u64..=1_024, (1_u64..=1_000).prop_map(|thousands| thousands * 1_000)],
            period in prop_oneof![Just(1_000_000_000_u64), Just(60_000_000_000), Just(2_592_000_000_000_000), 1..10_000_000_000_u64],
            capacity in 1_u32..2_000,
            free in 1_u32..2_000,
            initial in 0_u32..2_000,
            overbooks in prop_oneof![Just(Overbooks::Yes), Just(Overbooks::No)],
            history in prop::collection::vec((0_u64..3_000_000_000, 0_u32..40, prop::option::of(prop_oneof![Just(0), 0_u64..2_000_000_000])), 1..60),
        ) {
            let rate = crate::Rate::new(amount, std::time::Duration::from_nanos(period)).unwrap();
            let free = match overbooks { Overbooks::Yes => capacity, Overbooks::No => free.min(capacity) };
            let bucket = Bucket::new(rate, capacity, free, initial.min(capacity), overbooks);
            let birth = Time::from_nanos(77);
            let Some(mut narrow) = Narrow::new(&bucket, birth, 0) else { return Ok(()) };
            let (mut wide, mut word, mut now) = ([0, 0], 0, 0_u64);
            for (pause, cost, up_to) in history {
                now += pause;
                let ask = Ask { at: Moment { since_birth: now, unix: 0 }, cost, up_to };
                let expected = bucket.ask(wide, &ask);
                let (status, next) = match narrow.ask(word, Time::from_nanos(77 + now), cost, up_to) {
                    Ok(answer) => answer,
                    Err(Outgrown) => {
                        let rebased = Narrow::new(&bucket, birth, now).unwrap();
                        word = rebased.narrow(narrow.widen(word, birth), birth);
                        narrow = rebased;
                        narrow.ask(word, Time::from_nanos(77 + now), cost, up_to).unwrap()
                    }
                };
                prop_assert_eq!(status, expected.status);
                let at = Time::from_nanos(77 + now);
                if narrow.is_past_unseen(at) && up_to.is_none_or(|up_to| up_to == 0)
                    && let Some((quick, _)) = narrow.ask_quickly(word, at, cost) {
                    prop_assert_eq!(quick.decision(), status.decision());
                    prop_assert_eq!(quick.remaining(), status.remaining());
                }
                if !status.is_deny() && cost > 0 {
                    (wide, word) = (expected.next, next);
                }
            }
        }

        /// Waiters are released by one word as by two, at the instants that a denial names and between them.
        #[test]
        fn narrow_releases_as_wide(
            amount in 1_u64..=1_024,
            period in prop_oneof![Just(1_000_000_000_u64), Just(60_000_000_000), 1..10_000_000_000_u64],
            capacity in 1_u32..20,
            free in 1_u32..20,
            initial in 0_u32..20,
            overbooks in prop_oneof![3 => Just(Overbooks::Yes), 1 => Just(Overbooks::No)],
            history in prop::collection::vec((0_u64..3_000_000_000, 0_u32..25, 0_u64..2_000_000_000, any::<bool>()), 1..60),
        ) {
            let rate = crate::Rate::new(amount, std::time::Duration::from_nanos(period)).unwrap();
            let free = match overbooks { Overbooks::Yes => capacity, Overbooks::No => free.min(capacity) };
            let bucket = Bucket::new(rate, capacity, free, initial.min(capacity), overbooks);
            let (birth, step) = (Time::from_nanos(77), Step::Bucket(Kind::Token, bucket));
            let Some(narrow) = Narrow::new(&bucket, birth, 0) else { return Ok(()) };
            let (mut wide, mut word, mut now, mut hint) = (State::Words([0, 0]), 0, 1_u64, 0);
            for (pause, cost, up_to, waits_for_hint) in history {
                now += if waits_for_hint { hint } else { pause };
                let ask = Ask { at: Moment { since_birth: now, unix: 0 }, cost, up_to: Some(up_to) };
                let expected = step.ask_to(Mode::Release, &wide, &ask);
                let Some((status, next)) = narrow.ask_release(word, Time::from_nanos(77 + now), cost, Some(up_to)) else {
                    prop_assert!(now > narrow.span);
                    return Ok(());
                };
                prop_assert_eq!(status, expected.status);
                hint = match status.in_nanos() { Verdict::Deny(nanos) => nanos, _ => 0 };
                if !status.is_deny() && cost > 0 {
                    prop_assert_eq!(narrow.widen(next, birth), expected.next);
                    (wide, word) = (State::Words(expected.next), next);
                }
            }
        }
    }

    #[test]
    fn words_carry_all_of_it() {
        let bucket = Bucket::new(crate::Rate::per_second(7).unwrap(), 9, 4, 2, Overbooks::No);
        let narrow = Narrow::new(&bucket, Time::ZERO, 77).unwrap();
        assert_eq!(Narrow::from_words(narrow.to_words()), Some(narrow));
        assert_eq!(Narrow::from_words([0; NARROW_WORDS]), None);
    }
}
