//! Cancelled reservations against a plain model: cancelling returns the cost less what was reserved later, so that the bound
//! holds over the due times.

use crate::limits::{cases, per};
use proptest::{prelude::*, sample::Index};
use std::time::Duration;
use tollgate::{Clock, LeakyBucket, Limit, Limiter, ManualClock, Reservation, SmoothBursty, TokenBucket};

#[derive(Clone, Debug)]
enum Op {
    Reserve(u32),
    Cancel(Index),
    Pass(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        5 => (1_u32..6).prop_map(Op::Reserve),
        3 => any::<Index>().prop_map(Op::Cancel),
        3 => (1_u64..900_000_000).prop_map(Op::Pass),
    ];
    prop::collection::vec(op, 1..40)
}

/// A bucket as one number: the point up to which its credit line is used. A nanosecond earns `earn`, a unit costs `price`.
pub(crate) struct Line {
    pub(crate) earn: u128,
    pub(crate) price: u128,
    pub(crate) burst: u128,
    pub(crate) used_until: u128,
    /// Everything that was reserved, less what the last one gave back.
    reserved: u128,
}

/// A reservation in the model.
pub(crate) struct Reserved {
    pub(crate) cost: u32,
    pub(crate) due: u64,
    used_until: u128,
    reserved: u128,
}

impl Line {
    pub(crate) fn new(amount: u64, burst: u32) -> Self {
        Self { earn: amount.into(), price: 1_000_000_000, burst: burst.into(), used_until: 0, reserved: 0 }
    }

    pub(crate) fn at(&self, now: u64) -> u128 {
        u128::from(now) * self.earn
    }

    pub(crate) fn reserve(&mut self, now: u64, cost: u32) -> Reserved {
        let line = self.at(now);
        self.used_until = self.used_until.max(line) + u128::from(cost) * self.price;
        let over = (self.used_until - line).saturating_sub(self.burst * self.price);
        let due = now + u64::try_from(over.div_ceil(self.earn)).unwrap();
        self.reserved += u128::from(cost) * self.price;
        Reserved { cost, due, used_until: self.used_until, reserved: self.reserved }
    }

    /// Returns up to so many units of a reservation, and how many whole units that was.
    pub(crate) fn give_back(&mut self, now: u64, of: &Reserved, units: u32) -> u32 {
        let (line, is_due) = (self.at(now), of.due <= now);
        let is_last = self.reserved == of.reserved;
        let later = if is_due { 0 } else { self.reserved - of.reserved };
        let there = of.used_until.saturating_sub(line);
        let back = (u128::from(units) * self.price).saturating_sub(later).min(there);
        let before = self.used_until.max(line);
        self.used_until = (before - back).max(line);
        // It is as if the last one had reserved less.
        self.reserved -= if is_last { before - self.used_until } else { 0 };
        u32::try_from((before - self.used_until) / self.price).unwrap()
    }

    /// The time until the bucket is full.
    pub(crate) fn reset_after(&self, now: u64) -> Duration {
        let level = self.used_until.saturating_sub(self.at(now));
        let nanos = u64::try_from(level.div_ceil(self.earn)).unwrap();
        Duration::from_micros(nanos.div_ceil(1_000))
    }

    /// Checks burst + rate * t over every window of due times, which are rounded up to the nanosecond.
    pub(crate) fn holds(&self, mut used: Vec<(u64, u32)>) -> Result<(), TestCaseError> {
        used.sort_unstable();
        for (first, (from, _)) in used.iter().enumerate() {
            let mut units = 0;
            for (to, cost) in &used[first..] {
                units += u128::from(*cost);
                let most = self.burst * self.price + u128::from(to - from + 1) * self.earn;
                prop_assert!(
                    units * self.price < most,
                    "{} units from {} to {} ns: {:?}",
                    units,
                    from,
                    to,
                    used
                );
            }
        }
        Ok(())
    }
}

pub(crate) fn limit(is_leaky: bool, amount: u64, burst: u32) -> Limit {
    let rate = per(amount, Duration::from_secs(1));
    match is_leaky {
        true => LeakyBucket::new(rate, burst).unwrap().into(),
        false => TokenBucket::new(rate, burst).unwrap().into(),
    }
}

type Held<'a> = (Reservation<'a, Limiter<ManualClock>>, Reserved);

fn agree(is_leaky: bool, amount: u64, burst: u32, ops: Vec<Op>) -> Result<(), TestCaseError> {
    let clock = ManualClock::new();
    let limiter = Limiter::with_clock(limit(is_leaky, amount, burst), clock.clone());
    let mut line = Line::new(amount, burst);
    let mut held: Vec<Held<'_>> = Vec::new();
    let mut used = Vec::new();
    for op in ops {
        let now = clock.now().as_nanos();
        match op {
            Op::Reserve(cost) => {
                let cost = cost.min(burst);
                let turn = limiter.reserve(cost, Duration::MAX).unwrap();
                let reserved = line.reserve(now, cost);
                prop_assert_eq!(turn.due().as_nanos(), reserved.due);
                held.push((turn, reserved));
            }
            Op::Cancel(which) if !held.is_empty() => {
                let (turn, reserved) = held.remove(which.index(held.len()));
                if reserved.due <= now {
                    used.push((reserved.due, reserved.cost));
                } else {
                    line.give_back(now, &reserved, reserved.cost);
                }
                drop(turn);
            }
            Op::Pass(nanos) => clock.advance(Duration::from_nanos(nanos)),
            Op::Cancel(_) => {}
        }
        let full = line.reset_after(clock.now().as_nanos());
        prop_assert_eq!(limiter.peek(0).reset_after(), Some(full));
    }
    for (turn, reserved) in held {
        turn.keep();
        used.push((reserved.due, reserved.cost));
    }
    line.holds(used)
}

/// Stored permits (one second's) are free, and the last request of a window has not been paid for yet.
fn smooth_is_bounded(rate: u64, ops: Vec<Op>) -> Result<(), TestCaseError> {
    let clock = ManualClock::new();
    let limiter = Limiter::with_clock(SmoothBursty::new(per(rate, Duration::from_secs(1))), clock.clone());
    let (mut held, mut used) = (Vec::new(), Vec::new());
    for op in ops {
        match op {
            Op::Reserve(cost) => held.push((limiter.reserve(cost, Duration::MAX).unwrap(), cost)),
            Op::Cancel(which) if !held.is_empty() => {
                let (turn, cost) = held.remove(which.index(held.len()));
                if turn.is_due() {
                    used.push((turn.due().as_nanos(), cost));
                }
            }
            Op::Pass(nanos) => clock.advance(Duration::from_nanos(nanos)),
            Op::Cancel(_) => {}
        }
    }
    for (turn, cost) in held {
        used.push((turn.due().as_nanos(), cost));
        turn.keep();
    }
    used.sort_unstable();
    let unit = 1_000_000_000 / rate;
    for (first, (from, _)) in used.iter().enumerate() {
        let mut before = 0;
        for (to, cost) in &used[first..] {
            // Every charge truncates to a microsecond.
            let most = rate + 1 + (to - from + 40_000) / unit;
            prop_assert!(before <= most, "{} units before {}, from {}: {:?}", before, to, from, used);
            before += u64::from(*cost);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn a_cancelled_reservation_returns_its_cost_less_later_reservations(
        is_leaky: bool,
        amount in prop_oneof![Just(1_u64), Just(3), Just(10), 1_u64..5_000],
        burst in 1_u32..12,
        ops in ops(),
    ) {
        agree(is_leaky, amount, burst, ops)?;
    }

    #[test]
    fn smooth_limiters_keep_their_bound_when_reservations_are_cancelled(
        rate in prop::sample::select(vec![5_u64, 10, 100]),
        ops in ops(),
    ) {
        smooth_is_bounded(rate, ops)?;
    }
}
