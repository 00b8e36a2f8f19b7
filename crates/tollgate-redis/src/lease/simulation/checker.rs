//! The judge: replays what was admitted, in true time, by each limit's own rule. It knows nothing of leases.
//!
//! - a bucket: the ideal level, `max(level - earn * dt, 0) + cost`, is never above the capacity;
//! - a sliding window: never more than the limit in any `[t, t + window)`;
//! - a fixed window: never more than the limit in a window, by the server's clock; first_hit windows are where the server
//!   opened them, a window apart;
//! - a counter: `before * (edge - t) + current * window <= limit * window` at every admission.
//!
//! A refund or a reset changes the ideal as it would without leases.

use super::{
    super::BucketId,
    fleet::Outcome,
    plan::{Act, Plan},
    server::{Align, Numbers},
};
use std::collections::VecDeque;

/// What was admitted that should not have been.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMuch {
    pub(super) at: u64,
    pub(super) bucket: BucketId,
    pub(super) why: String,
}

/// An ideal limit, as if one process had decided everything.
enum Ideal<'o> {
    Level { earn: u64, price: u64, capacity: u32, level: u64, at: u64 },
    Fixed { limit: u32, window: u64, index: u64, count: u32 },
    FirstHit { limit: u32, window: u64, opened: &'o [u64], start: Option<u64>, count: u32 },
    Sliding { limit: u32, window: u64, events: VecDeque<(u64, u32)> },
    Counter { limit: u32, window: u64, index: u64, before: u32, current: u32 },
}

/// Judges a run.
pub(super) fn judge(plan: &Plan, outcome: &Outcome) -> Result<(), TooMuch> {
    for (place, numbers) in plan.limits.iter().enumerate() {
        let bucket = BucketId(place as u128);
        let mut ideal = Ideal::new(numbers, &outcome.opened[&bucket]);
        let mut by_hand = outcome.by_hand.iter().filter(|(_, of, _)| *of == bucket).peekable();
        for (at, _, units) in outcome.admitted.iter().filter(|(_, of, _)| *of == bucket) {
            while let Some((when, _, act)) = by_hand.next_if(|(when, ..)| when <= at) {
                ideal.act(*when, act);
            }
            ideal.admit(*at, *units).map_err(|why| TooMuch { at: *at, bucket, why })?;
        }
    }
    Ok(())
}

impl<'o> Ideal<'o> {
    fn new(numbers: &Numbers, opened: &'o [u64]) -> Self {
        match *numbers {
            Numbers::Level { earn, price, capacity, initial } => {
                let level = u64::from(capacity - initial) * price;
                Self::Level { earn, price, capacity, level, at: 0 }
            }
            Numbers::Fixed { limit, window, align: Align::Epoch } => {
                Self::Fixed { limit, window, index: 0, count: 0 }
            }
            Numbers::Fixed { limit, window, align: Align::FirstHit } => {
                Self::FirstHit { limit, window, opened, start: None, count: 0 }
            }
            Numbers::Sliding { limit, window, .. } => {
                Self::Sliding { limit, window, events: VecDeque::new() }
            }
            Numbers::Counter { limit, window } => {
                Self::Counter { limit, window, index: 0, before: 0, current: 0 }
            }
        }
    }

    /// Moves on to a time.
    fn bring(&mut self, now: u64) {
        match self {
            Self::Level { earn, level, at, .. } => {
                *level = level.saturating_sub(*earn * (now - *at));
                *at = now;
            }
            Self::Fixed { window, index, count, .. } => {
                if now / *window != *index {
                    (*index, *count) = (now / *window, 0);
                }
            }
            Self::FirstHit { opened, start, count, .. } => {
                let latest = opened.iter().copied().rfind(|opened| *opened <= now);
                if latest != *start {
                    (*start, *count) = (latest, 0);
                }
            }
            Self::Sliding { window, events, .. } => {
                while events.front().is_some_and(|(time, _)| time + *window <= now) {
                    events.pop_front();
                }
            }
            Self::Counter { window, index, before, current, .. } => {
                match now / *window - *index {
                    0 => {}
                    1 => (*before, *current) = (*current, 0),
                    _ => (*before, *current) = (0, 0),
                }
                *index = now / *window;
            }
        }
    }

    fn admit(&mut self, now: u64, units: u32) -> Result<(), String> {
        self.bring(now);
        let (used, most) = match self {
            Self::Level { price, capacity, level, .. } => {
                *level += u64::from(units) * *price;
                (*level, u64::from(*capacity) * *price)
            }
            Self::Fixed { limit, count, .. } => {
                *count += units;
                ((*count).into(), (*limit).into())
            }
            Self::FirstHit { limit, window, start, count, .. } => {
                *count += units;
                if start.is_none_or(|start| now >= start + *window) {
                    return Err("admitted where no window was open".to_owned());
                }
                ((*count).into(), (*limit).into())
            }
            Self::Sliding { limit, events, .. } => {
                events.push_back((now, units));
                (events.iter().map(|(_, units)| u64::from(*units)).sum(), (*limit).into())
            }
            Self::Counter { limit, window, index, before, current } => {
                *current += units;
                let left = (*index + 1) * *window - now;
                let used = u64::from(*before) * left + u64::from(*current) * *window;
                (used, u64::from(*limit) * *window)
            }
        };
        if used <= most { Ok(()) } else { Err(format!("{used} where {most} is the most")) }
    }

    fn act(&mut self, now: u64, act: &Act) {
        self.bring(now);
        let back = match act {
            Act::Refund(units) => *units,
            Act::Reset => u32::MAX,
            Act::Change(_) => return,
        };
        match self {
            Self::Level { price, level, .. } => *level = level.saturating_sub(u64::from(back) * *price),
            Self::Fixed { count, .. } | Self::FirstHit { count, .. } => *count = count.saturating_sub(back),
            Self::Counter { before, current, .. } => {
                *current = current.saturating_sub(back);
                if matches!(act, Act::Reset) {
                    *before = 0;
                }
            }
            Self::Sliding { events, .. } => {
                let mut back = back;
                while let Some((_, units)) = events.back_mut().filter(|_| back > 0) {
                    let taken = back.min(*units);
                    *units -= taken;
                    back -= taken;
                    if *units == 0 {
                        events.pop_back();
                    }
                }
            }
        }
    }
}
