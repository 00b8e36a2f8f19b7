//! A cell's step: how long it owes, and whether that may grow.
//!
//! ```text
//! E = period / count            what a unit costs, never rounded
//! T = limit * E                 what may be owed at most
//! owed = max(0, due - now)
//! charge n > 0: passes where owed + n E <= T, and then owed grows by n E; never where n > limit
//! charge n = 0: asks            charge n < 0: owed shrinks by |n| E, not below nothing
//! remaining = floor((T - owed) / E)      retry after owed + n E - T      reset after owed
//! ```
//!
//! Durations are whole nanoseconds and parts of one, `count` parts to a nanosecond, so that sums are exact for as long as
//! `count` stays the same: at most `limit + t / E` units in any time t, rounded down. Where `count` changes, what is owed is
//! rounded up to a whole microsecond first, the same in every store. Nothing is owed for longer than some 71 years; numbers
//! that would come to more are held to that.

use super::throttle::{Throttle, Throttled};
use crate::{
    decision::{DecidedBy, Decision, Retry},
    time::hint,
};

/// The longest that anything is owed, in nanoseconds.
pub(super) const LONGEST: u64 = (1 << 51) * 1_000;

/// Until when a cell owes. All zeros owe nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    /// Nanoseconds on the store's clock.
    pub(super) due: u64,
    /// Parts of a nanosecond more, `of` of which are one.
    pub(super) part: u64,
    pub(super) of: u64,
}

/// A duration: nanoseconds, and parts of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) whole: u64,
    pub(super) part: u64,
}

impl Span {
    const NOTHING: Self = Self { whole: 0, part: 0 };

    const fn plus(self, other: Self, of: u64) -> Self {
        let whole = self.whole.saturating_add(other.whole);
        let (part, is_over) = self.part.overflowing_add(other.part);
        if is_over || part >= of {
            Self { whole: whole.saturating_add(1), part: part.wrapping_sub(of) }
        } else {
            Self { whole, part }
        }
    }

    /// Not below nothing.
    fn minus(self, other: Self, of: u64) -> Self {
        if self <= other {
            return Self::NOTHING;
        }
        match self.part.checked_sub(other.part) {
            Some(part) => Self { whole: self.whole - other.whole, part },
            None => Self { whole: self.whole - other.whole - 1, part: self.part + (of - other.part) },
        }
    }

    const fn nanos_up(self) -> u64 {
        self.whole.saturating_add((self.part > 0) as u64)
    }
}

/// What so many units cost at `count` a `period`, held to `longest`; in whatever the period is in.
pub(super) fn price(period: u128, count: u64, units: u64, longest: u64) -> Span {
    let span = match u64::try_from(period).ok().and_then(|period| period.checked_mul(units)) {
        Some(total) => Span { whole: total / count, part: total % count },
        None => {
            let count = u128::from(count);
            let rest = u128::from(units) * (period % count);
            let whole = (period / count).saturating_mul(units.into()).saturating_add(rest / count);
            Span { whole: u64::try_from(whole).unwrap_or(u64::MAX), part: (rest % count) as u64 }
        }
    };
    if span.whole >= longest { Span { whole: longest, part: 0 } } else { span }
}

impl Cell {
    /// What is owed at this time.
    pub(super) const fn owed(self, now: u64, count: u64) -> Span {
        let (due, part) = if self.of == count || self.of == 0 {
            (self.due, self.part)
        } else {
            (self.due.saturating_add((self.part > 0) as u64).div_ceil(1_000).saturating_mul(1_000), 0)
        };
        if due < now { Span::NOTHING } else { Span { whole: due - now, part } }
    }

    /// One that owes this much from now on.
    const fn owing(now: u64, owed: Span, of: u64) -> Self {
        if owed.whole == 0 && owed.part == 0 {
            return Self { due: 0, part: 0, of: 0 };
        }
        Self { due: now.saturating_add(owed.whole), part: owed.part, of }
    }
}

/// What a cell answers, and what it is from then on: `None` where it stays as it is.
pub(super) fn step(cell: Cell, now: u64, asked: &Throttle) -> (Throttled, Option<Cell>) {
    let count = asked.count.get();
    let owed = cell.owed(now, count);
    let tolerance = asked.tolerance();
    if asked.quantity <= 0 {
        let after = owed.minus(asked.cost(), count);
        let is_less = asked.quantity < 0 && owed > Span::NOTHING;
        return (
            asked.tell(Decision::Allow, after, tolerance),
            is_less.then(|| Cell::owing(now, after, count)),
        );
    }
    let after = owed.plus(asked.cost(), count);
    if asked.quantity <= asked.limit && after <= tolerance {
        return (asked.tell(Decision::Allow, after, tolerance), Some(Cell::owing(now, after, count)));
    }
    (asked.tell(Decision::Deny(asked.retry(after, tolerance)), owed, tolerance), None)
}

/// What is told where somebody else decided on this much owed.
pub(super) fn told(asked: &Throttle, owed: Span, passed: bool) -> Throttled {
    let (count, tolerance) = (asked.count.get(), asked.tolerance());
    if asked.quantity <= 0 {
        return asked.tell(Decision::Allow, owed.minus(asked.cost(), count), tolerance);
    }
    let after = owed.plus(asked.cost(), count);
    if passed {
        return asked.tell(Decision::Allow, after, tolerance);
    }
    asked.tell(Decision::Deny(asked.retry(after, tolerance)), owed, tolerance)
}

impl Throttle {
    fn tolerance(&self) -> Span {
        price(self.period, self.count.get(), u64::try_from(self.limit).unwrap_or(0), LONGEST)
    }

    fn cost(&self) -> Span {
        price(self.period, self.count.get(), self.quantity.unsigned_abs(), LONGEST)
    }

    fn retry(&self, after: Span, tolerance: Span) -> Retry {
        if self.quantity > self.limit {
            return Retry::Never;
        }
        Retry::After(hint(after.minus(tolerance, self.count.get()).nanos_up().max(1)))
    }

    fn tell(&self, decision: Decision, owed: Span, tolerance: Span) -> Throttled {
        let left = tolerance.minus(owed, self.count.get());
        let remaining = units(left, self.period, self.count.get()).min(self.limit.max(0));
        let reset_after = hint(owed.nanos_up());
        Throttled { decision, limit: self.limit, remaining, reset_after, decided_by: DecidedBy::Store }
    }
}

/// Whole units that this much pays for.
fn units(left: Span, period: u128, count: u64) -> i64 {
    let short = left.whole.checked_mul(count).and_then(|parts| parts.checked_add(left.part));
    let units = match (short, u64::try_from(period)) {
        (Some(parts), Ok(period)) => u128::from(parts / period),
        _ => (u128::from(left.whole) * u128::from(count) + u128::from(left.part)) / period,
    };
    i64::try_from(units).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    fn asked(burst: i64, count: u64, period: Duration) -> Throttle {
        Throttle::per(count, period).unwrap().burst(burst)
    }

    const SECOND: Duration = Duration::from_secs(1);

    /// The documented example of redis-cell: 15 30 60.
    #[test]
    fn sixteen_at_once_then_one_every_two_seconds() {
        let asked = asked(15, 30, SECOND * 60);
        let mut cell = Cell::default();
        for left in (0..16).rev() {
            let (told, next) = step(cell, 1_000, &asked);
            assert!(told.is_allow());
            assert_eq!((told.limit(), told.remaining()), (16, left));
            assert_eq!(told.reset_after(), SECOND * 2 * (16 - left as u32));
            cell = next.unwrap();
        }
        let (told, next) = step(cell, 1_000, &asked);
        assert_eq!(told.retry_after(), Some(SECOND * 2));
        assert_eq!((told.remaining(), told.reset_after(), next), (0, SECOND * 32, None));
    }

    #[test]
    fn a_third_of_a_second_is_not_cut_short() {
        let asked = asked(2, 3, SECOND);
        let mut cell = Cell::default();
        for _ in 0..3 {
            cell = step(cell, 0, &asked).1.unwrap();
        }
        // Three cost exactly a second: not a nanosecond before that is all of it paid.
        let (told, _) = step(cell, 999_999_999, &asked.quantity(3));
        assert_eq!(told.retry_after(), Some(Duration::from_micros(1)));
        assert!(step(cell, 1_000_000_000, &asked.quantity(3)).0.is_allow());
    }

    #[test]
    fn a_billion_a_second_and_more_are_kept_exactly() {
        for count in [3_000_000, 1_000_000_000, 7_000_000_000] {
            let asked = asked(9, count, SECOND);
            let (mut cell, mut passed) = (Cell::default(), 0_u64);
            for now in (1..=1_000).map(|at| at * 10) {
                while let (told, Some(next)) = step(cell, now, &asked)
                    && told.is_allow()
                {
                    (cell, passed) = (next, passed + 1);
                }
            }
            let most = 10 + 9_990 * count / 1_000_000_000;
            // Whatever a burst of ten cannot hold between two looks is lost, no more.
            assert!(passed <= most, "{count}/s: {passed} of {most}");
            if count < 1_000_000_000 {
                assert_eq!(passed, most, "{count}/s");
            }
        }
    }

    #[test]
    fn no_numbers_make_it_panic() {
        let numbers = [i64::MIN, i64::MIN + 1, -7, -1, 0, 1, 7, 1 << 40, i64::MAX - 1, i64::MAX];
        let periods = [1, 60, 1 << 40, i64::MAX as u64].map(Duration::from_secs);
        for burst in numbers {
            for count in numbers.into_iter().filter_map(|it| u64::try_from(it).ok()).chain([u64::MAX]) {
                for period in periods.into_iter().chain([Duration::from_nanos(1), Duration::MAX]) {
                    for quantity in numbers {
                        let Ok(asked) = Throttle::per(count, period) else { continue };
                        let asked = asked.burst(burst).quantity(quantity);
                        let (told, next) = step(Cell::default(), 5, &asked);
                        let again = step(next.unwrap_or_default(), 6, &asked);
                        assert!(told.remaining() >= 0 && told.remaining() <= asked.limit.max(0));
                        assert!(quantity > 0 || told.is_allow());
                        assert!(quantity <= asked.limit || quantity <= 0 || !told.is_allow());
                        assert!(
                            quantity <= 0 || quantity > asked.limit || told.is_allow(),
                            "{asked:?} {told:?}"
                        );
                        let numbers = asked.numbers();
                        assert!(numbers.tolerance.0 <= 1 << 51 && numbers.price.0 <= 1 << 51);
                        let _ = (again, asked.told((1 << 51, 1), super::super::throttle::Passed::No));
                    }
                }
            }
        }
    }

    /// Another's arithmetic: everything in parts, wide enough for whatever the test draws.
    #[derive(Default)]
    struct Model {
        /// `count` to a nanosecond.
        due: i128,
    }

    impl Model {
        fn ask(&mut self, now: u64, limit: i64, count: u64, period: u64, quantity: i64) -> (bool, i64, u64) {
            let (count, price) = (i128::from(count), i128::from(period));
            let now = i128::from(now) * count;
            let owed = (self.due - now).max(0);
            let after = (owed + price * i128::from(quantity)).max(0);
            let tolerance = price * i128::from(limit);
            let passes = quantity <= 0 || after <= tolerance;
            let stands = if passes { after } else { owed };
            if passes && quantity != 0 {
                self.due = now + stands;
            }
            let remaining = ((tolerance - stands).max(0) / price).min(i128::from(limit.max(0)));
            let reset = (stands + count - 1) / count;
            (passes, remaining as i64, reset as u64)
        }
    }

    proptest! {
        #[test]
        fn answers_as_plain_arithmetic_does(
            burst in -2_i64..40,
            count in prop_oneof![1_u64..100, 1_u64..5_000_000_000],
            period in 1_u64..1_000_000_000,
            questions in prop::collection::vec((0_u64..2_000_000_000, -3_i64..12), 1..40),
        ) {
            let period = Duration::from_micros(period);
            let asked = asked(burst, count, period);
            let (mut cell, mut model, mut now) = (Cell::default(), Model::default(), 0);
            for (pass, quantity) in questions {
                now += pass;
                let asked = asked.quantity(quantity);
                let (told, next) = step(cell, now, &asked);
                let nanos = period.as_nanos() as u64;
                let (passes, remaining, reset) = model.ask(now, burst + 1, count, nanos, quantity);
                prop_assert_eq!(told.is_allow(), passes);
                prop_assert_eq!(told.remaining(), remaining);
                prop_assert_eq!(told.reset_after(), hint(reset));
                if let Some(after) = told.retry_after() {
                    // The hint is when it passes, and the microsecond before it is not.
                    let at = now + after.as_nanos() as u64;
                    prop_assert!(step(cell, at, &asked).0.is_allow());
                    prop_assert!(!step(cell, at - 1_000, &asked).0.is_allow());
                }
                cell = next.unwrap_or(cell);
            }
        }

        #[test]
        fn numbers_that_change_never_make_debt_smaller(
            counts in prop::collection::vec(1_u64..1_000_000, 2..6),
            now in 0_u64..10_000,
        ) {
            let mut cell = Cell::default();
            for count in counts {
                let asked = asked(1_000_000, count, SECOND);
                let before = cell.owed(now, cell.of.max(1));
                let after = cell.owed(now, count);
                prop_assert!(after.nanos_up() >= before.whole && after.whole <= before.nanos_up() + 1_000);
                cell = step(cell, now, &asked).1.unwrap_or(cell);
            }
        }
    }
}
