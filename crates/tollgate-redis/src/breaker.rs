//! Whether it is worth asking the store at all: a state machine without I/O and without a clock.
//!
//! ```text
//!            so many failures in a row                a probe is answered
//!   Closed ------------------------------> Open ------------------------------> Returning
//!     ^                                     ^  two failures in a row               |
//!     |                                     '--------------------------------------|
//!     '----------------------------------------------------------------------------'
//!                                        the ramp is over
//! ```
//!
//! **Closed**: every call is let through. **Open**: none is, and none is delayed: a dead store costs the first few callers
//! their timeout, and nobody after them anything. Whether it is back is found out by a probe, which is nobody's request: one
//! at a time, at pauses that double, less what chance takes off. **Returning**: a share of the calls, doubling step by step
//! until it is all of them, so that a store that has just come up is not met by everybody at once.
//!
//! Failures count in a row: a store that fails one call in a thousand stays in use, and one that fails every other call does
//! too. A call that was let through before the machine opened says nothing about the store as it is later, and its late
//! report is not heard.
//!
//! Worst case, of the calls made one after the other: the first `failures`, and two for every probe that was answered by a
//! store that then failed. Calls made at the same time as those are on their way already; they are delayed as well.

use crate::health::HealthState;
use std::{fmt, num::NonZeroU32, time::Duration};
use tollgate::Time;

#[cfg(test)]
mod tests;

/// Numbers of a breaker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BreakerSettings {
    /// So many failures in a row open it.
    pub(crate) failures: NonZeroU32,
    /// The first pause before a probe.
    pub(crate) probe_from: Duration,
    /// The longest pause before a probe.
    pub(crate) probe_to: Duration,
    /// A probe that nobody has reported on for so long is given up, and another may be made.
    pub(crate) probe_within: Duration,
    /// How long traffic takes to return.
    pub(crate) ramp: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            failures: NonZeroU32::MIN.saturating_add(4),
            probe_from: Duration::from_millis(50),
            probe_to: Duration::from_secs(1),
            probe_within: Duration::from_secs(2),
            ramp: Duration::from_secs(1),
        }
    }
}

/// In how many steps traffic returns. The first share is one in two to the power of this.
const STEPS: u32 = 4;

/// Failures in a row that end a return. One alone may be chance.
const RELAPSE: u32 = 2;

/// Guards a store.
#[derive(Clone, Debug)]
pub(crate) struct Breaker {
    settings: BreakerSettings,
    state: State,
    /// Since when it is in this state.
    since: Time,
    /// How often it has opened: what was let through before the last time is of another era.
    opened: u64,
    /// When it opened, unless it is closed.
    trouble_since: Option<Time>,
    /// The next pause before a probe, at its longest.
    pause: Duration,
    probes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed { failures: u32 },
    Open(Probing),
    Returning { failures: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probing {
    /// The next is made then.
    At(Time),
    /// This one was made then.
    UnderWay { number: u64, since: Time },
}

/// What to do with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Make it, and report how it went.
    Go(Pass),
    /// Do without the store.
    Skip,
}

/// Stands for a call that was let through, until it is reported on. One that never is does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pass {
    era: u64,
}

/// Stands for a probe that has to be made.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a probe that is not made is waited for"]
pub(crate) struct Probe {
    number: u64,
}

/// How a call or a probe went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answered,
    /// An error, nonsense, or nothing in time.
    Failed,
}

/// What a look found to be due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Probe(Probe),
    Changed(Change),
}

/// A change of state: what there is to log, once for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a change is logged"]
pub(crate) enum Change {
    /// After so many failures in a row.
    Opened { failures: u32 },
    /// A probe was answered, so long after the trouble began.
    Returning { after: Duration },
    /// Traffic came back, and the store failed again.
    Relapsed { after: Duration },
    /// All is well, so long after the trouble began.
    Closed { after: Duration },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened { failures } => write!(f, "{failures} failures in a row: doing without the store"),
            Self::Returning { after } => {
                write!(f, "the store answers after {after:.1?}: traffic returns step by step")
            }
            Self::Relapsed { after } => {
                write!(f, "the store failed again after {after:.1?}: doing without it")
            }
            Self::Closed { after } => write!(f, "the store is in full use again after {after:.1?}"),
        }
    }
}

impl Breaker {
    pub(crate) const fn new(settings: BreakerSettings, now: Time) -> Self {
        let state = State::Closed { failures: 0 };
        Self {
            settings,
            state,
            since: now,
            opened: 0,
            trouble_since: None,
            pause: settings.probe_from,
            probes: 0,
        }
    }

    /// Whether a call may be made now. `random` is from 0 up to 1, and different for every call; neither is asked for where all is
    /// well.
    pub(crate) fn admit(&self, now: impl FnOnce() -> Time, random: impl FnOnce() -> f64) -> Admission {
        match self.state {
            State::Closed { .. } => Admission::Go(Pass { era: self.opened }),
            State::Returning { .. } => match self.share(now()) {
                share if share >= 1.0 || random() < share => Admission::Go(Pass { era: self.opened }),
                _ => Admission::Skip,
            },
            State::Open(_) => Admission::Skip,
        }
    }

    /// Whether all is well, so that one more answer is no news.
    pub(crate) const fn is_calm(&self) -> bool {
        matches!(self.state, State::Closed { failures: 0 })
    }

    /// Hears how a call went that was let through. `random` is from 0 up to 1.
    pub(crate) fn report(&mut self, now: Time, pass: Pass, outcome: Outcome, random: f64) -> Option<Change> {
        if pass.era != self.opened {
            return None;
        }
        let (State::Closed { failures } | State::Returning { failures }) = &mut self.state else {
            return None;
        };
        match outcome {
            Outcome::Answered => *failures = 0,
            Outcome::Failed => *failures = failures.saturating_add(1),
        }
        match self.state {
            State::Closed { failures } if failures >= self.settings.failures.get() => {
                self.open(now, random);
                Some(Change::Opened { failures })
            }
            State::Returning { failures } if failures >= RELAPSE => {
                let after = self.trouble(now);
                self.open(now, random);
                Some(Change::Relapsed { after })
            }
            State::Returning { .. } => self.close_if_over(now),
            _ => None,
        }
    }

    /// When to [look](Self::look) next, if ever. Another report may change that.
    pub(crate) fn next_look(&self) -> Option<Time> {
        match self.state {
            State::Closed { .. } => None,
            State::Open(Probing::At(at)) => Some(at),
            State::Open(Probing::UnderWay { since, .. }) => Some(since + self.settings.probe_within),
            State::Returning { .. } => Some(self.since + self.settings.ramp),
        }
    }

    /// Does what is due. A probe is given out to one who asks, and to nobody else until it is reported on or given up.
    pub(crate) fn look(&mut self, now: Time) -> Option<Due> {
        if self.next_look().is_none_or(|at| now < at) {
            return None;
        }
        match self.state {
            State::Closed { .. } => None,
            State::Returning { .. } => self.close_if_over(now).map(Due::Changed),
            State::Open(_) => {
                self.probes += 1;
                self.state = State::Open(Probing::UnderWay { number: self.probes, since: now });
                Some(Due::Probe(Probe { number: self.probes }))
            }
        }
    }

    /// Hears how a probe went. `random` is from 0 up to 1.
    pub(crate) fn report_probe(
        &mut self,
        now: Time,
        probe: Probe,
        outcome: Outcome,
        random: f64,
    ) -> Option<Change> {
        match self.state {
            State::Open(Probing::UnderWay { number, .. }) if number == probe.number => {}
            // Given up meanwhile.
            _ => return None,
        }
        match outcome {
            Outcome::Failed => {
                self.state = State::Open(Probing::At(self.next_probe(now, random)));
                None
            }
            Outcome::Answered => {
                (self.state, self.since) = (State::Returning { failures: 0 }, now);
                Some(Change::Returning { after: self.trouble(now) })
            }
        }
    }

    /// What is done with calls now.
    pub(crate) const fn health(&self) -> HealthState {
        match self.state {
            State::Closed { .. } => HealthState::Healthy,
            State::Open(_) => HealthState::Degraded,
            State::Returning { .. } => HealthState::Recovering,
        }
    }

    /// How often it has opened.
    pub(crate) const fn opened(&self) -> u64 {
        self.opened
    }

    /// Since when it is in this state.
    #[cfg(test)]
    pub(crate) const fn since(&self) -> Time {
        self.since
    }

    fn open(&mut self, now: Time, random: f64) {
        self.opened += 1;
        self.trouble_since.get_or_insert(now);
        (self.state, self.since) = (State::Open(Probing::At(self.next_probe(now, random))), now);
    }

    fn close_if_over(&mut self, now: Time) -> Option<Change> {
        if now < self.since + self.settings.ramp {
            return None;
        }
        let after = self.trouble(now);
        (self.state, self.since) = (State::Closed { failures: 0 }, now);
        (self.trouble_since, self.pause) = (None, self.settings.probe_from);
        Some(Change::Closed { after })
    }

    /// From half the pause to all of it: a fleet that lost the same store does not ask for it at the same moment.
    fn next_probe(&mut self, now: Time, random: f64) -> Time {
        let pause = self.pause;
        self.pause = pause.saturating_mul(2).min(self.settings.probe_to).max(self.settings.probe_from);
        now + pause / 2 + (pause / 2).mul_f64(random.clamp(0.0, 1.0))
    }

    fn share(&self, now: Time) -> f64 {
        let step = self.settings.ramp / STEPS;
        let passed = (now - self.since).as_nanos().checked_div(step.as_nanos()).unwrap_or(u128::MAX);
        let missing = u128::from(STEPS).saturating_sub(passed);
        0.5_f64.powi(i32::try_from(missing).unwrap_or(0))
    }

    fn trouble(&self, now: Time) -> Duration {
        self.trouble_since.map_or(Duration::ZERO, |since| now - since)
    }
}
