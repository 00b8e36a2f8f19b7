//! token_bucket (continuous) and leaky_bucket (without delay), leased.
//!
//! ```text
//! kept         level (credits), at;  full = capacity * price;  floor = units_out * price
//! unseen(t)  = max(0, (capacity - initial) * price - earn * (t - birth))          0 for most buckets
//!
//! drain(t)     level = max(level - earn * (t - at), floor);  at = t
//! bring(now)   for each lease with until <= now, in order:  drain(until), then take it off: the floor falls
//!              drain(now)
//! decide       allow iff level + cost * price <= full
//! charge       level += cost * price
//! lease        level += n * price;  the floor rises by as much;  until = now + life
//! settle       level = max(level - (units - used) * price, floor without it, unseen(now))
//! remaining  = max(0, full - level) / price, rounded down
//! refund(n)    level = max(level - n * price, floor, unseen(now))
//! reset        level = max(floor, unseen(now))
//! change       level = ceil((level - floor) * full' / full) + units_out * price';  at least unseen'(now)
//!              it may be above full': then nothing passes until it has drained
//! retry_after  as if no lease were settled: with room = full - cost * price, go through the leases in order of until:
//!                if room >= floor and (level - room) / earn, rounded up, comes no later than until: that is it;
//!                else drain(until), take it off;  after the last one:  (level - room) / earn, rounded up
//! reset_after  the same with room = 0;  0 where level <= unseen(now)
//! ```
//!
//! Why the floor: time pays only for what was used, and units that are out may be used at any instant of the lease. With the
//! true level `T` of what was admitted and `U` unused out, `T + U <= level` holds at the lease (both rise by n), at a use
//! (T rises, U falls), and while draining: either T falls with the level, or T is 0 and `U <= floor <= level`.

use super::{Counted, Fault, Numbers, Out, units};
use tollgate::Retry;

pub(in super::super) struct Level {
    earn: u64,
    price: u64,
    capacity: u32,
    initial: u32,
    level: u64,
    at: u64,
    fault: Option<Fault>,
}

impl Level {
    pub(super) fn new(earn: u64, price: u64, capacity: u32, initial: u32, fault: Option<Fault>) -> Self {
        let level = u64::from(capacity - initial) * price;
        Self { earn, price, capacity, initial, level, at: 0, fault }
    }

    fn credits(&self, units: u32) -> u64 {
        u64::from(units) * self.price
    }

    fn floor(&self, out: &[Out]) -> u64 {
        if self.fault == Some(Fault::NoFloor) { 0 } else { self.credits(units(out)) }
    }

    fn unseen(&self, now: u64) -> u64 {
        self.credits(self.capacity - self.initial).saturating_sub(self.earn * now)
    }

    fn drain(&mut self, to: u64, out: &[Out]) {
        let earned = self.earn.saturating_mul(to - self.at);
        self.level = self.level.saturating_sub(earned).max(self.floor(out));
        self.at = to;
    }

    /// Microseconds until the level has come down to `room`, if no lease is settled.
    fn comes_down_in(&self, now: u64, room: u64, out: &[Out]) -> u64 {
        let mut ahead = Self { ..*self };
        for (place, lease) in out.iter().enumerate() {
            let there = ahead.at + ahead.level.saturating_sub(room).div_ceil(self.earn);
            if room >= self.floor(&out[place..]) && there <= lease.until {
                return there - now;
            }
            ahead.drain(lease.until, &out[place..]);
        }
        ahead.at + ahead.level.saturating_sub(room).div_ceil(self.earn) - now
    }

    fn lower(&mut self, by: u32, now: u64, out: &[Out]) {
        let lowered = self.level.saturating_sub(self.credits(by));
        self.level = lowered.max(self.floor(out)).max(self.unseen(now));
    }
}

impl Counted for Level {
    fn bring(&mut self, now: u64, out: &mut Vec<Out>) {
        while let Some(lease) = out.first().copied().filter(|lease| lease.until <= now) {
            self.drain(lease.until, out);
            out.remove(0);
            if self.fault == Some(Fault::LapsedIsUnused) {
                self.lower(lease.units, now, out);
            }
        }
        self.drain(now, out);
    }

    fn refuses(&self, now: u64, cost: u32, out: &[Out]) -> Option<Retry> {
        let Some(room) = self.credits(self.capacity).checked_sub(self.credits(cost)) else {
            return Some(Retry::Never);
        };
        let wait = || std::time::Duration::from_micros(self.comes_down_in(now, room, out));
        (self.level > room).then(|| Retry::After(wait()))
    }

    fn count(&mut self, _: u64, units: u32) {
        self.level += self.credits(units);
    }

    fn lease(&mut self, now: u64, units: u32, life: u64) -> Option<u64> {
        self.count(now, units);
        Some(now + life)
    }

    fn settle(&mut self, now: u64, lease: &Out, used: u32, out: &[Out]) {
        self.lower(lease.units - used, now, out);
    }

    fn remaining(&self, _: u64, _: &[Out]) -> u32 {
        (self.credits(self.capacity).saturating_sub(self.level) / self.price) as u32
    }

    fn reset_after(&self, now: u64, out: &[Out]) -> u64 {
        if self.level <= self.unseen(now) { 0 } else { self.comes_down_in(now, 0, out) }
    }

    fn limit(&self) -> u32 {
        self.capacity
    }

    fn refund(&mut self, now: u64, units: u32, out: &[Out]) {
        self.lower(units, now, out);
    }

    fn reset(&mut self, now: u64, out: &[Out]) {
        self.level = self.floor(out).max(self.unseen(now));
    }

    fn change(&mut self, now: u64, to: &Numbers, out: &[Out]) -> bool {
        let Numbers::Level { earn, price, capacity, initial } = *to else { return false };
        let used = if self.level <= self.unseen(now) { 0 } else { self.level - self.floor(out) };
        let (old, new) = (self.credits(self.capacity), u64::from(capacity) * price);
        let used = (u128::from(used) * u128::from(new)).div_ceil(u128::from(old)) as u64;
        *self = Self { earn, price, capacity, initial, ..*self };
        self.level = (used + self.credits(units(out))).max(self.unseen(now));
        true
    }
}
