//! Fixed window: at most `limit` units a window.
//!
//! State: which window, and the units counted in it. Windows follow the wall ([`Align::Epoch`]: `floor(unix / window)`,
//! or a calendar) or start with the first charge ([`Align::FirstHit`]: `[start, start + window)`). A window's place
//! never goes back, whatever the wall clock does. Refused charges are not counted.
//!
//! Worst case admitted: `limit` in a window of its own, so up to `2 * limit` in a time just over nothing, around an
//! edge. That is what the sliding limits are for.

use super::{Answer, Ask, Moment, Words, taken::ReturnedUnits};
use crate::{
    decision::{NEVER, Status, Verdict},
    limit::{LimitError, nonzero, span},
};
use std::time::Duration;

/// Fixed window: at most so many units a window, all of them again in the next.
#[derive(Clone, Debug, PartialEq)]
pub struct FixedWindow {
    pub(crate) limit: u32,
    pub(crate) windows: Windows,
}

/// Where windows begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// At multiples of the window since 1970-01-01 UTC.
    #[default]
    Epoch,
    /// With the first charge that finds no window open.
    FirstHit,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Windows {
    Epoch(u64),
    FirstHit(u64),
    Forever,
    #[cfg(feature = "calendar")]
    Calendar(super::calendar::Calendar),
}

/// The window that is open: its place (an index, or a start), its end, and what is counted in it.
#[derive(Clone, Copy)]
struct Open {
    place: u64,
    used: u64,
    ends_in: u64,
}

impl FixedWindow {
    /// At most `limit` a `window`, the windows aligned to 1970.
    ///
    /// # Errors
    /// Where either is zero, or the window is longer than 146 years.
    pub fn new(limit: u32, window: Duration) -> Result<Self, LimitError> {
        Ok(Self { limit: nonzero(limit, "limit")?, windows: Windows::Epoch(span(window, "window")?) })
    }

    /// At most `limit` for good: a quota that only a refund, a grant or a reset gives back.
    ///
    /// # Errors
    /// Where `limit` is zero.
    pub fn forever(limit: u32) -> Result<Self, LimitError> {
        Ok(Self { limit: nonzero(limit, "limit")?, windows: Windows::Forever })
    }

    /// At most `limit` a calendar window, such as a day in Shanghai.
    ///
    /// # Errors
    /// Where `limit` is zero.
    #[cfg(feature = "calendar")]
    pub fn calendar(limit: u32, calendar: super::calendar::Calendar) -> Result<Self, LimitError> {
        Ok(Self { limit: nonzero(limit, "limit")?, windows: Windows::Calendar(calendar) })
    }

    /// Begins windows there. A quota for good, and a calendar, have their own place and keep it.
    #[must_use]
    pub fn with_align(self, align: Align) -> Self {
        let windows = match (self.windows, align) {
            (Windows::Epoch(window) | Windows::FirstHit(window), Align::Epoch) => Windows::Epoch(window),
            (Windows::Epoch(window) | Windows::FirstHit(window), Align::FirstHit) => {
                Windows::FirstHit(window)
            }
            (other, _) => other,
        };
        Self { windows, ..self }
    }

    pub(crate) fn ask(&self, words: Words, ask: &Ask) -> Answer {
        let open = self.open(words, ask.at);
        let wanted = open.used + u64::from(ask.cost);
        let verdict = match ask.cost {
            0 => Verdict::Allow,
            _ if wanted <= u64::from(self.limit) => Verdict::Allow,
            cost if cost > self.limit || open.ends_in == NEVER => Verdict::Never,
            _ => Verdict::Deny(open.ends_in),
        };
        let used = if verdict.is_deny() { open.used } else { wanted };
        // A window that nobody has opened does not end.
        let opens =
            matches!(self.windows, Windows::FirstHit(_)) && open.used == 0 && words[0] != open.place + 1;
        let reset = if opens && used == 0 { 0 } else { open.ends_in };
        let status =
            Status::plain(verdict, self.limit, u64::from(self.limit).saturating_sub(used) as u32, reset);
        Answer { status, next: [open.place + 1, used] }
    }

    pub(crate) fn refund(&self, words: Words, at: Moment, units: u32) -> Words {
        if words == [0, 0] {
            return words;
        }
        let open = self.open(words, at);
        // What has passed is not given back, and no new window opens for it.
        if open.place + 1 != words[0] {
            return words;
        }
        [words[0], open.used.saturating_sub(units.into())]
    }

    /// Takes a charge back that left `after` behind, if that window is still open; and how many units that is.
    pub(crate) fn give_back(
        &self,
        words: Words,
        at: Moment,
        after: Words,
        units: u32,
    ) -> (Words, ReturnedUnits) {
        let open = self.open(words, at);
        if open.place + 1 != after[0] {
            return (words, ReturnedUnits::default());
        }
        let next = self.refund(words, at, units);
        (next, ReturnedUnits::whole(u32::try_from(open.used.saturating_sub(next[1])).unwrap_or(u32::MAX)))
    }

    /// Uses `units` of the open window, above the limit too.
    pub(crate) fn owe(&self, words: Words, at: Moment, units: u32) -> Words {
        let open = self.open(words, at);
        [open.place + 1, open.used.saturating_add(units.into())]
    }

    pub(crate) fn idle_in(&self, words: Words, at: Moment) -> u64 {
        if words[0] == 0 {
            return 0;
        }
        let open = self.open(words, at);
        let keeps_start = matches!(self.windows, Windows::FirstHit(_)) && open.place + 1 == words[0];
        if open.used == 0 && !keeps_start { 0 } else { open.ends_in }
    }

    /// The count stays where the windows do.
    pub(crate) fn convert(&self, from: &Self, words: Words) -> Words {
        if self.windows == from.windows { words } else { [0, 0] }
    }

    fn open(&self, words: Words, at: Moment) -> Open {
        let stored = words[0].checked_sub(1);
        let used_in = |place| if stored == Some(place) { words[1] } else { 0 };
        match &self.windows {
            Windows::Forever => Open { place: 0, used: used_in(0), ends_in: NEVER },
            Windows::Epoch(window) => {
                let place = (at.unix / window).max(stored.unwrap_or(0));
                let end = (place + 1).saturating_mul(*window);
                Open { place, used: used_in(place), ends_in: end.saturating_sub(at.unix) }
            }
            Windows::FirstHit(window) => {
                let start = stored.filter(|start| at.since_birth < start.saturating_add(*window));
                let start = start.unwrap_or(at.since_birth.min((1 << 63) - 2));
                let end = start.saturating_add(*window);
                Open { place: start, used: used_in(start), ends_in: end.saturating_sub(at.since_birth) }
            }
            #[cfg(feature = "calendar")]
            Windows::Calendar(calendar) => {
                let (start, end) = calendar.window(at.unix.max(stored.unwrap_or(0)));
                Open { place: start, used: used_in(start), ends_in: end.saturating_sub(at.unix) }
            }
        }
    }
}
