//! sliding_window, leased.
//!
//! ```text
//! kept         entries [(time, units)], oldest first
//! entered(t) = (t / precision rounded down + 1) * precision       the end of t's sub-window; an entry leaves window after it
//!
//! bring(now)   for each lease with until <= now, in order: enter its units at entered(until), take it off the list
//!              forget entries with time + window <= now
//! used       = sum of entries + units_out                         a lease is an entry of the future, not dated yet
//! decide       allow iff used + cost <= limit
//! charge       enter cost at entered(now)                         onto the last entry where that has the same time
//! lease        nothing but the list;  until = now + life
//! settle       enter used at entered(now)
//! remaining  = max(0, limit - used)
//! refund(n)    off the newest entries;  what is out stays
//! reset        no entries;  what is out stays
//! change       the limit only
//! retry_after  go through entries, then leases in order of until, adding units up, until enough would have left:
//!                entry: time + window - now;  lease: entered(until) + window - now
//! reset_after  the last of them
//! ```
//!
//! Entries come in order without sorting: leases that lapse were alive at the last call, so they end after every entry made
//! until then. A use counts from the lease until `window` after its settlement or end, which is no earlier than the use; so
//! no window holds more than the limit. The price is that a use counts for up to a lease's life longer.

use super::{Counted, Fault, Numbers, Out, units};
use std::{collections::VecDeque, time::Duration};
use tollgate::Retry;

pub(in super::super) struct Log {
    limit: u32,
    window: u64,
    precision: u64,
    entries: VecDeque<(u64, u32)>,
    fault: Option<Fault>,
}

impl Log {
    pub(super) fn new(limit: u32, window: u64, precision: u64, fault: Option<Fault>) -> Self {
        Self { limit, window, precision, entries: VecDeque::new(), fault }
    }

    fn entered(&self, at: u64) -> u64 {
        (at / self.precision + 1) * self.precision
    }

    fn enter(&mut self, at: u64, units: u32) {
        let time = self.entered(at);
        match self.entries.back_mut() {
            _ if units == 0 => {}
            Some((last, there)) if *last == time => *there += units,
            _ => self.entries.push_back((time, units)),
        }
        if self.fault == Some(Fault::DatedEarly) {
            self.entries.make_contiguous().sort_unstable();
        }
    }

    /// When a lease's units are dated at that end at `at`.
    fn dated(&self, lease: &Out, at: u64) -> u64 {
        if self.fault == Some(Fault::DatedEarly) { lease.since } else { at }
    }

    fn used(&self, out: &[Out]) -> u32 {
        self.entries.iter().map(|(_, units)| units).sum::<u32>() + units(out)
    }

    /// All that counts, with the times it leaves at, soonest first.
    fn leaving<'a>(&'a self, out: &'a [Out]) -> impl Iterator<Item = (u64, u32)> + 'a {
        let leases = out.iter().map(|lease| (self.entered(lease.until), lease.units));
        self.entries.iter().copied().chain(leases).map(|(time, units)| (time + self.window, units))
    }
}

impl Counted for Log {
    fn bring(&mut self, now: u64, out: &mut Vec<Out>) {
        while let Some(lease) = out.first().copied().filter(|lease| lease.until <= now) {
            let lapsed = if self.fault == Some(Fault::LapsedIsUnused) { 0 } else { lease.units };
            self.enter(self.dated(&lease, lease.until), lapsed);
            out.remove(0);
        }
        while self.entries.front().is_some_and(|(time, _)| time + self.window <= now) {
            self.entries.pop_front();
        }
    }

    fn refuses(&self, now: u64, cost: u32, out: &[Out]) -> Option<Retry> {
        if cost > self.limit {
            return Some(Retry::Never);
        }
        let excess = (self.used(out) + cost).checked_sub(self.limit).filter(|excess| *excess > 0)?;
        let mut left = 0;
        let enough = self.leaving(out).find(|(_, units)| {
            left += units;
            left >= excess
        });
        enough.map(|(time, _)| Retry::After(Duration::from_micros(time - now)))
    }

    fn count(&mut self, now: u64, units: u32) {
        self.enter(now, units);
    }

    fn lease(&mut self, now: u64, _: u32, life: u64) -> Option<u64> {
        Some(now + life)
    }

    fn settle(&mut self, now: u64, lease: &Out, used: u32, _: &[Out]) {
        self.enter(self.dated(lease, now), used);
    }

    fn remaining(&self, _: u64, out: &[Out]) -> u32 {
        self.limit.saturating_sub(self.used(out))
    }

    fn reset_after(&self, now: u64, out: &[Out]) -> u64 {
        self.leaving(out).last().map_or(0, |(time, _)| time - now)
    }

    fn limit(&self) -> u32 {
        self.limit
    }

    fn refund(&mut self, _: u64, units: u32, _: &[Out]) {
        let mut units = units;
        while let Some((_, there)) = self.entries.back_mut().filter(|_| units > 0) {
            let taken = units.min(*there);
            *there -= taken;
            units -= taken;
            if *there == 0 {
                self.entries.pop_back();
            }
        }
    }

    fn reset(&mut self, _: u64, _: &[Out]) {
        self.entries.clear();
    }

    fn change(&mut self, _: u64, to: &Numbers, _: &[Out]) -> bool {
        match *to {
            Numbers::Sliding { limit, window, precision }
                if (window, precision) == (self.window, self.precision) =>
            {
                self.limit = limit;
                true
            }
            _ => false,
        }
    }
}
