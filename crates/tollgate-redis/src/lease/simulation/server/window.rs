//! fixed_window (epoch and first_hit) and sliding_counter, leased: counts that belong to a window.
//!
//! ```text
//! fixed_window     kept: place (an index, or a start), count
//! bring(now)       leases with until <= now: off the list.  Where the window is over: count = 0, and the new one's place
//! decide           allow iff count + cost <= limit
//! charge           count += cost;  a first_hit window opens with it if none is open
//! lease            count += n;  until = min(now + life, the window's edge);  a lease opens no first_hit window
//! settle           count -= units - used                    it is on the list, so its window is still open
//! remaining      = max(0, limit - count)
//! refund(n)        count = max(count - n, units_out)
//! reset            count = units_out;  a first_hit window stays open if anything is out, else none is open
//! change           the limit only
//! retry_after, reset_after      the edge - now
//!
//! sliding_counter  kept: index, before, current;   used(t) = before * (edge - t) + current * window
//! bring(now)       leases with until <= now: off the list.  The next window: before = current, current = 0;  later: both 0
//! decide           allow iff used(now) + cost * window <= limit * window
//! charge           current += cost
//! lease            current += n;  until = min(now + life, edge)
//! settle           current -= units - used
//! remaining      = max(0, limit * window - used(now)) / window, rounded down
//! refund(n)        current = max(current - n, units_out)
//! reset            before = 0, current = units_out
//! change           the limit only
//! retry_after, reset_after      as in exact mode
//! ```
//!
//! A lease ends at the edge at the latest, so what is used of it is used in the window that counts it, and everything on the
//! list belongs to the window that is open. The counter weighs the older window less as time passes, never more: what fitted
//! when it was leased fits whenever it is used.

use super::{Align, Counted, Fault, Numbers, Out, units};
use std::time::Duration;
use tollgate::Retry;

pub(in super::super) struct Fixed {
    limit: u32,
    window: u64,
    align: Align,
    start: Option<u64>,
    count: u32,
    opened: Vec<u64>,
    fault: Option<Fault>,
}

pub(in super::super) struct Counter {
    limit: u32,
    window: u64,
    index: u64,
    before: u32,
    current: u32,
    fault: Option<Fault>,
}

/// Takes lapsed leases off the list, and says how many units should not have been counted for a broken server.
fn lapse(now: u64, out: &mut Vec<Out>, fault: Option<Fault>) -> u32 {
    let lapsed: u32 = out.iter().filter(|lease| lease.until <= now).map(|lease| lease.units).sum();
    out.retain(|lease| lease.until > now);
    if fault == Some(Fault::LapsedIsUnused) { lapsed } else { 0 }
}

fn until(now: u64, life: u64, edge: u64, fault: Option<Fault>) -> u64 {
    if fault == Some(Fault::PastTheEdge) { now + life } else { edge.min(now + life) }
}

impl Fixed {
    pub(super) fn new(limit: u32, window: u64, align: Align, fault: Option<Fault>) -> Self {
        Self { limit, window, align, start: None, count: 0, opened: Vec::new(), fault }
    }

    fn edge(&self, now: u64) -> u64 {
        self.start.unwrap_or(now) + self.window
    }
}

impl Counted for Fixed {
    fn bring(&mut self, now: u64, out: &mut Vec<Out>) {
        self.count = self.count.saturating_sub(lapse(now, out, self.fault));
        if self.start.is_some() && now >= self.edge(now) {
            (self.start, self.count) = (None, 0);
        }
        if self.align == Align::Epoch {
            self.start = Some(now / self.window * self.window);
        }
    }

    fn refuses(&self, now: u64, cost: u32, _: &[Out]) -> Option<Retry> {
        match self.count.checked_add(cost) {
            Some(wanted) if wanted <= self.limit => None,
            _ if cost > self.limit => Some(Retry::Never),
            _ => Some(Retry::After(Duration::from_micros(self.edge(now) - now))),
        }
    }

    fn count(&mut self, now: u64, units: u32) {
        if self.start.is_none() {
            self.start = Some(now);
            self.opened.push(now);
        }
        self.count += units;
    }

    fn lease(&mut self, now: u64, units: u32, life: u64) -> Option<u64> {
        self.start?;
        self.count += units;
        Some(until(now, life, self.edge(now), self.fault))
    }

    fn settle(&mut self, _: u64, lease: &Out, used: u32, _: &[Out]) {
        self.count = self.count.saturating_sub(lease.units - used);
    }

    fn remaining(&self, _: u64, _: &[Out]) -> u32 {
        self.limit.saturating_sub(self.count)
    }

    fn reset_after(&self, now: u64, _: &[Out]) -> u64 {
        self.start.map_or(0, |_| self.edge(now) - now)
    }

    fn limit(&self) -> u32 {
        self.limit
    }

    fn refund(&mut self, _: u64, by: u32, out: &[Out]) {
        self.count = self.count.saturating_sub(by).max(units(out));
    }

    fn reset(&mut self, _: u64, out: &[Out]) {
        self.count = units(out);
        if self.align == Align::FirstHit && out.is_empty() {
            self.start = None;
        }
    }

    fn change(&mut self, _: u64, to: &Numbers, _: &[Out]) -> bool {
        match *to {
            Numbers::Fixed { limit, window, align } if (window, align) == (self.window, self.align) => {
                self.limit = limit;
                true
            }
            _ => false,
        }
    }

    fn opened(&self) -> &[u64] {
        &self.opened
    }
}

impl Counter {
    pub(super) fn new(limit: u32, window: u64, fault: Option<Fault>) -> Self {
        Self { limit, window, index: 0, before: 0, current: 0, fault }
    }

    fn edge(&self) -> u64 {
        (self.index + 1) * self.window
    }

    fn used(&self, now: u64) -> u64 {
        u64::from(self.before) * (self.edge() - now) + self.weighed(self.current)
    }

    fn weighed(&self, units: u32) -> u64 {
        u64::from(units) * self.window
    }

    /// How far into a window `before` units weigh no more than `spare`.
    fn fades(&self, before: u32, spare: u32) -> u64 {
        if before <= spare { 0 } else { self.window - self.weighed(spare) / u64::from(before) }
    }
}

impl Counted for Counter {
    fn bring(&mut self, now: u64, out: &mut Vec<Out>) {
        self.current = self.current.saturating_sub(lapse(now, out, self.fault));
        let index = now / self.window;
        match index - self.index {
            0 => {}
            1 => (self.before, self.current) = (self.current, 0),
            _ => (self.before, self.current) = (0, 0),
        }
        self.index = index;
    }

    fn refuses(&self, now: u64, cost: u32, _: &[Out]) -> Option<Retry> {
        if cost > self.limit {
            return Some(Retry::Never);
        }
        if self.used(now) + self.weighed(cost) <= self.weighed(self.limit) {
            return None;
        }
        let opens = match self.limit.checked_sub(self.current).and_then(|spare| spare.checked_sub(cost)) {
            Some(spare) => self.edge() - self.window + self.fades(self.before, spare),
            None => self.edge() + self.fades(self.current, self.limit - cost),
        };
        Some(Retry::After(Duration::from_micros(opens - now)))
    }

    fn count(&mut self, _: u64, units: u32) {
        self.current += units;
    }

    fn lease(&mut self, now: u64, units: u32, life: u64) -> Option<u64> {
        self.current += units;
        Some(until(now, life, self.edge(), self.fault))
    }

    fn settle(&mut self, _: u64, lease: &Out, used: u32, _: &[Out]) {
        self.current = self.current.saturating_sub(lease.units - used);
    }

    fn remaining(&self, now: u64, _: &[Out]) -> u32 {
        (self.weighed(self.limit).saturating_sub(self.used(now)) / self.window) as u32
    }

    fn reset_after(&self, now: u64, _: &[Out]) -> u64 {
        match (self.before, self.current) {
            (0, 0) => 0,
            (_, 0) => self.edge() - now,
            _ => self.edge() + self.window - now,
        }
    }

    fn limit(&self) -> u32 {
        self.limit
    }

    fn refund(&mut self, _: u64, by: u32, out: &[Out]) {
        self.current = self.current.saturating_sub(by).max(units(out));
    }

    fn reset(&mut self, _: u64, out: &[Out]) {
        (self.before, self.current) = (0, units(out));
    }

    fn change(&mut self, _: u64, to: &Numbers, _: &[Out]) -> bool {
        match *to {
            Numbers::Counter { limit, window } if window == self.window => {
                self.limit = limit;
                true
            }
            _ => false,
        }
    }
}
