//! The log that sliding_log and sliding_window share: when units were used, newest last.
//!
//! An entry leaves exactly `window` after its time. The log enters it at the time of the charge; the sliding window
//! enters it at the end of the sub-window the charge fell into, so that all charges of a sub-window are one entry.
//! Entered times never go back. Memory is bounded by the smaller of the limit and the number of sub-windows: 16 bytes
//! an entry.

use super::{Ask, Moment};
use crate::decision::{Status, Verdict};
use std::collections::VecDeque;

/// The numbers of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) limit: u32,
    pub(crate) window: u64,
    /// Nanoseconds a sub-window; `None` for the exact log.
    pub(crate) precision: Option<u64>,
}

/// Units used and when, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Events {
    entries: VecDeque<(u64, u32)>,
    used: u64,
}

impl Log {
    pub(crate) fn ask(&self, events: &Events, ask: &Ask) -> Status {
        let now = self.now(events, ask.at);
        let gone = events.gone(now, self.window);
        let used = events.used - gone.units;
        let wanted = used + u64::from(ask.cost);
        let verdict = match ask.cost {
            0 => Verdict::Allow,
            cost if cost > self.limit => Verdict::Never,
            _ if wanted <= u64::from(self.limit) => Verdict::Allow,
            _ => Verdict::Deny(self.until_room(events, gone.entries, wanted, ask.at)),
        };
        let charged = !verdict.is_deny() && ask.cost > 0;
        let newest = if charged { Some(self.entered(now)) } else { events.newest(gone.entries) };
        Status::plain(
            verdict,
            self.limit,
            u64::from(self.limit).saturating_sub(if charged { wanted } else { used }) as u32,
            newest.map_or(0, |time| self.leaves_in(time, ask.at)),
        )
    }

    pub(crate) fn commit(&self, events: &mut Events, at: Moment, cost: u32) {
        let now = self.now(events, at);
        events.forget(now, self.window);
        let time = self.entered(now);
        events.used += u64::from(cost);
        match events.entries.back_mut() {
            Some((last, units)) if *last == time && units.checked_add(cost).is_some() => *units += cost,
            _ => events.entries.push_back((time, cost)),
        }
    }

    pub(crate) fn refund(&self, events: &mut Events, at: Moment, units: u32) {
        events.forget(self.now(events, at), self.window);
        let mut units = units;
        while let Some((_, last)) = events.entries.back_mut() {
            let taken = units.min(*last);
            *last -= taken;
            units -= taken;
            events.used -= u64::from(taken);
            if *last > 0 {
                break;
            }
            events.entries.pop_back();
        }
    }

    /// The time under which a charge made now is entered.
    pub(crate) fn entry_time(&self, events: &Events, at: Moment) -> u64 {
        self.entered(self.now(events, at))
    }

    /// Takes up to `units` off the entry of that time, if it is still there.
    pub(crate) fn give_back(&self, events: &mut Events, at: Moment, time: u64, units: u32) -> u32 {
        events.forget(self.now(events, at), self.window);
        let start = events.entries.partition_point(|(entered, _)| *entered < time);
        let mut left = units;
        for (entered, there) in events.entries.range_mut(start..) {
            let taken = if *entered == time { left.min(*there) } else { 0 };
            *there -= taken;
            left -= taken;
            events.used -= u64::from(taken);
        }
        events.entries.retain(|(_, there)| *there > 0);
        units - left
    }

    pub(crate) fn idle_in(&self, events: &Events, at: Moment) -> u64 {
        events.newest(0).map_or(0, |time| self.leaves_in(time, at))
    }

    /// The events stay where the window and its precision do.
    pub(crate) fn convert(&self, from: &Self, events: &mut Events) {
        if (self.window, self.precision) != (from.window, from.precision) {
            *events = Events::default();
        }
    }

    /// The instant a charge counts at: never before the newest entry was made.
    fn now(&self, events: &Events, at: Moment) -> u64 {
        let newest = events.newest(0).unwrap_or(0);
        let made = newest.saturating_sub(self.precision.unwrap_or(0));
        at.since_birth.max(made)
    }

    fn entered(&self, now: u64) -> u64 {
        match self.precision {
            None => now,
            Some(precision) => (now / precision + 1).saturating_mul(precision),
        }
    }

    fn leaves_in(&self, time: u64, at: Moment) -> u64 {
        time.saturating_add(self.window).saturating_sub(at.since_birth).min(u64::MAX - 1)
    }

    /// Nanoseconds until enough has left for `wanted` to fit.
    fn until_room(&self, events: &Events, gone: usize, wanted: u64, at: Moment) -> u64 {
        let mut excess = wanted.saturating_sub(self.limit.into());
        for (time, units) in events.entries.iter().skip(gone) {
            excess = excess.saturating_sub((*units).into());
            if excess == 0 {
                return self.leaves_in(*time, at);
            }
        }
        0
    }
}

/// The oldest entries that have left the window.
struct Gone {
    entries: usize,
    units: u64,
}

impl Events {
    fn gone(&self, now: u64, window: u64) -> Gone {
        let left = |(time, _): &&(u64, u32)| time.saturating_add(window) <= now;
        self.entries.iter().take_while(left).fold(Gone { entries: 0, units: 0 }, |gone, (_, units)| Gone {
            entries: gone.entries + 1,
            units: gone.units + u64::from(*units),
        })
    }

    fn forget(&mut self, now: u64, window: u64) {
        let gone = self.gone(now, window);
        self.entries.drain(..gone.entries);
        self.used -= gone.units;
        // A burst long past should not keep its memory for as long as the key lives.
        if self.entries.capacity() > 32 && self.entries.len() < self.entries.capacity() / 8 {
            self.entries.shrink_to(self.entries.len() * 2);
        }
    }

    /// The newest entry's time, unless it is among the first `gone`.
    fn newest(&self, gone: usize) -> Option<u64> {
        (self.entries.len() > gone).then(|| self.entries.back().map(|(time, _)| *time)).flatten()
    }
}
