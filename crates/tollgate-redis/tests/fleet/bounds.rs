//! What each algorithm promises, held against the merged history.
//!
//! A charge was decided at some moment between asking and being answered. So units are certainly within a stretch of time
//! only if that moment is, wherever it lies; a violation is claimed only where those alone are too many, which no choice of
//! moments explains. What this cannot see is hidden by the time an answer takes: at 600 units a second and a millisecond,
//! less than a unit.

use crate::{
    clock::{SLEW, ServerClock},
    history::{Ask, Used},
};
use std::collections::BTreeMap;

/// What an algorithm promises.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    /// A burst, and a rate.
    Line { burst: f64, a_second: f64 },
    /// Those who wait start by this line; and taken at once are at most so many more than the rate.
    Starts { burst: f64, a_second: f64, booked: f64 },
    /// A burst, and an amount every period.
    Steps { burst: f64, amount: f64, period: u64 },
    /// So many a window; windows since 1970, or since somebody came.
    Windows { limit: f64, window: u64, aligned: bool },
    /// So many in any window; whatever is used may count for a precision longer.
    Log { limit: f64, window: u64, precision: u64 },
    /// So many a window, the one before weighed.
    Weighed { limit: f64, window: u64 },
    /// So many at any moment.
    Slots { limit: u64 },
}

/// The stretch of time that came nearest to the bound.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fullest {
    pub(crate) units: u64,
    pub(crate) of: f64,
}

impl Fullest {
    pub(crate) fn share(self) -> f64 {
        if self.of > 0.0 { self.units as f64 / self.of } else { 0.0 }
    }

    fn or(self, other: Self) -> Self {
        if other.share() > self.share() { other } else { self }
    }
}

impl Bound {
    /// The most that any stretch of time of so many nanoseconds may use, both ends included.
    fn most(self, nanos: u64) -> f64 {
        // Redis's clock may be slewed meanwhile, and is cut off to microseconds.
        let nanos = nanos + nanos / SLEW + 1_000;
        let seconds = nanos as f64 / 1e9;
        let whole = |span: u64| (nanos / span) as f64;
        match self {
            Self::Line { burst, a_second } | Self::Starts { burst, a_second, .. } => {
                (burst + a_second * seconds + 1e-6).floor()
            }
            Self::Steps { burst, amount, period } => burst + amount * nanos.div_ceil(period) as f64,
            // A stretch cuts through windows at both of its ends.
            Self::Windows { limit, window, .. } | Self::Weighed { limit, window } => {
                limit * (whole(window) + 2.0)
            }
            Self::Log { limit, window, .. } => limit * (whole(window) + 1.0),
            Self::Slots { .. } => f64::INFINITY,
        }
    }

    /// Looks at every stretch of time.
    pub(crate) fn verify(self, passed: &[&Ask], clock: ServerClock) -> Result<Fullest, String> {
        let used: Vec<Used> = passed.iter().map(|ask| ask.used()).collect();
        match self {
            Self::Starts { booked, a_second, .. } => {
                let starts: Vec<Used> = passed.iter().map(|ask| ask.started()).collect();
                if booked.is_finite() {
                    every_stretch(&used, |nanos| Self::Line { burst: booked, a_second }.most(nanos))?;
                }
                every_stretch(&starts, |nanos| self.most(nanos))
            }
            Self::Windows { limit, window, aligned } => {
                let fullest = every_stretch(&used, |nanos| self.most(nanos))?;
                let counted = if aligned {
                    aligned_windows(&used, window, clock)
                } else {
                    told_windows(passed, window)
                };
                Ok(fullest.or(each_window(counted.values(), limit)?))
            }
            Self::Weighed { limit, window } => {
                let fullest = every_stretch(&used, |nanos| self.most(nanos))?;
                let counted = aligned_windows(&used, window, clock);
                let fullest = fullest.or(each_window(counted.values(), limit)?);
                Ok(fullest.or(weighed(&used, limit, window, clock)?))
            }
            Self::Slots { limit } => slots(passed, limit),
            _ => every_stretch(&used, |nanos| self.most(nanos)),
        }
    }
}

/// Holds every stretch of time, from where something may begin to where something must have ended, against the most.
fn every_stretch(used: &[Used], most: impl Fn(u64) -> f64) -> Result<Fullest, String> {
    let mut by_start = used.to_vec();
    by_start.sort_by_key(|used| used.from);
    // Those that begin at the stretch's beginning or later, by their ends.
    let mut within: Vec<(u64, u64)> = Vec::with_capacity(used.len());
    let mut fullest = Fullest::default();
    for Used { from, to, units } in by_start.into_iter().rev() {
        let place = within.partition_point(|(end, _)| *end < to);
        within.insert(place, (to, units));
        let mut sum = 0;
        for (end, units) in &within {
            sum += units;
            let stretch = Fullest { units: sum, of: most(end - from) };
            if sum as f64 > stretch.of {
                return Err(format!(
                    "TOO MANY: {sum} units within {:.3} ms, where {} are the most",
                    (end - from) as f64 / 1e6,
                    stretch.of
                ));
            }
            fullest = fullest.or(stretch);
        }
    }
    Ok(fullest)
}

/// What was certainly used in each window since 1970.
fn aligned_windows(used: &[Used], window: u64, clock: ServerClock) -> BTreeMap<u64, u64> {
    let mut counted = BTreeMap::new();
    for used in used {
        if let Some(index) = clock.window((used.from, used.to), window) {
            *counted.entry(index).or_default() += used.units;
        }
    }
    counted
}

/// What was used in each window, told apart by when they said that theirs would end. Only the server can say that: of what a
/// lease decided nothing is counted here.
fn told_windows(passed: &[&Ask], window: u64) -> BTreeMap<u64, u64> {
    let by_server = passed.iter().filter(|ask| ask.by == crate::history::By::Store);
    let mut ends: Vec<(u64, u64)> =
        by_server.map(|ask| (ask.middle() + ask.reset * 1_000, ask.cost)).collect();
    ends.sort_unstable();
    let mut counted = BTreeMap::new();
    let mut open = 0;
    for (end, units) in ends {
        if end > open + window / 2 {
            open = end;
        }
        *counted.entry(open).or_default() += units;
    }
    counted
}

fn each_window<'a>(counted: impl Iterator<Item = &'a u64>, limit: f64) -> Result<Fullest, String> {
    let mut fullest = Fullest::default();
    for units in counted {
        if *units as f64 > limit {
            return Err(format!("TOO MANY: {units} units in one window, where {limit} are the most"));
        }
        fullest = fullest.or(Fullest { units: *units, of: limit });
    }
    Ok(fullest)
}

/// What a sliding counter weighed when each charge passed, at the least.
fn weighed(used: &[Used], limit: f64, window: u64, clock: ServerClock) -> Result<Fullest, String> {
    let counted = aligned_windows(used, window, clock);
    let mut fullest = Fullest::default();
    for one in used {
        let Some(index) = clock.window((one.from, one.to), window) else { continue };
        let before = counted.get(&(index - 1)).copied().unwrap_or_default();
        let earlier = used.iter().filter(|other| {
            other.to < one.from && clock.window((other.from, other.to), window) == Some(index)
        });
        let current: u64 = earlier.map(|other| other.units).sum();
        let covered = ((index + 1) * window).saturating_sub(one.to + clock.most) as f64 / window as f64;
        let sum = (before as f64 * covered).floor() as u64 + current + one.units;
        if sum as f64 > limit {
            return Err(format!(
                "TOO MANY: a charge passed when {sum} units weighed, where {limit} are the most"
            ));
        }
        fullest = fullest.or(Fullest { units: sum, of: limit });
    }
    Ok(fullest)
}

/// Slots are certainly held from when that was answered until they are about to be given back.
fn slots(passed: &[&Ask], limit: u64) -> Result<Fullest, String> {
    let mut changes: Vec<(u64, bool, u64)> = Vec::new();
    for ask in passed {
        let Some((leaving, _)) = ask.left else { continue };
        changes.push((ask.answered, true, ask.cost));
        changes.push((leaving, false, ask.cost));
    }
    // At one moment those who leave go first.
    changes.sort_unstable();
    let (mut held, mut highest) = (0, 0);
    for (_, enters, units) in changes {
        held = if enters { held + units } else { held - units };
        highest = highest.max(held);
        if held > limit {
            return Err(format!("TOO MANY: {held} slots held at one moment, where {limit} are the most"));
        }
    }
    Ok(Fullest { units: highest, of: limit as f64 })
}
