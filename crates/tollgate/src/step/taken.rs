//! What a charge took, so that it can be given back as it was taken or paid for at its real cost.
//!
//! A refund by hand takes units off the newest use, whosever that is. A turn that is given up must do better: others may have
//! come since, time may have paid for part of it, its window may be over. So the charge remembers where it left the bucket,
//! and gives back what is still there of it:
//!
//! - a bucket: what time has not earned since, at most `charged due point - now`;
//! - a window or a counter: all of it while that window is open, nothing afterwards;
//! - a log: off the entry that it made, while that is in the log;
//! - a smooth limiter, whose permits have prices that depend on how many were stored: what the charge moved
//!   ([`smooth_taken`](super::smooth_taken)).
//!
//! What was taken before a reset, a change of numbers or the eviction of a live key is not given back: it may not be there any
//! more, or not be the same.
//!
//! A turn that is cancelled before it is due leaves those behind it where they are. So only that much of it comes back as
//! nobody charged after it; then the bound holds over the times at which turns are due. Where it was the last, all of it
//! comes back. Of a smooth limiter it is all or nothing.

use super::{Ask, Moment, State, Step, Words, smooth};

/// What one charge took from one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Taken {
    /// Units that were granted by hand, spent before the limit's own.
    pub(crate) granted: u32,
    /// Units of the limit's own.
    pub(crate) units: u32,
    pub(crate) trace: Trace,
    /// Between which resets and changes.
    pub(crate) epoch: u64,
    /// How much had come back there, as counted when the charge was made.
    pub(crate) returned: u64,
}

/// Why units come back that were charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReturnReason {
    /// The turn they were charged for is not due, and given up. Turns reserved after it keep their times, so as many of its units less
    /// come back as were charged after it.
    Cancelled,
    /// They turned out not to be needed.
    Settled,
}

impl Taken {
    /// How much of others has come back since the charge, and no longer shows in the state.
    pub(crate) const fn returned_since(&self, returned: u64) -> u64 {
        returned.wrapping_sub(self.returned)
    }
}

/// How a charge that is given back finds out what was charged later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaterCharges {
    /// How much of others has come back since, in the step's own measure.
    pub(crate) returned: u64,
    pub(crate) reason: ReturnReason,
}

/// What came back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReturnedUnits {
    /// Whole units.
    pub(crate) units: u32,
    /// What those who charged before must count as charged later though it no longer shows: credits of a bucket, units of
    /// others, a part of one counted as one. Nothing where nobody charged later, since it is then as if it had cost less.
    pub(crate) counted: u64,
}

impl ReturnedUnits {
    pub(crate) const fn whole(units: u32) -> Self {
        Self { units, counted: units as u64 }
    }
}

/// What the charge left behind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Trace {
    #[default]
    Nothing,
    /// The words that followed it; of a log, the time of its entry.
    After(Words),
    /// What it moved, the words that followed it, and what it cost.
    Smooth(smooth::Taken, Words, u32),
}

impl Taken {
    /// So many of its units: the limit's own first, which were spent last.
    pub(crate) fn part(&self, units: u32) -> Self {
        let own = units.min(self.units);
        Self { granted: (units - own).min(self.granted), units: own, ..*self }
    }
}

impl Step {
    /// What the charge that was answered with these words takes from a bucket in this state.
    pub(crate) fn taken(&self, before: &State, ask: &Ask, next: Words) -> Taken {
        let trace = match (self, before) {
            _ if ask.cost == 0 => Trace::Nothing,
            (Self::Smooth(_, it), State::Words(words)) => {
                Trace::Smooth(it.taken(*words, ask.at, next), next, ask.cost)
            }
            (Self::Log(it), State::Events(events)) => Trace::After([it.entry_time(events, ask.at), 0]),
            (Self::Concurrency(_), _) => Trace::Nothing,
            _ => Trace::After(next),
        };
        Taken { units: ask.cost, trace, ..Taken::default() }
    }

    /// Gives back what is still there of what a charge took; where so much of what was charged later has come back, less
    /// what was charged later.
    pub(crate) fn give_back(
        &self,
        state: &mut State,
        at: Moment,
        taken: &Taken,
        later: LaterCharges,
    ) -> ReturnedUnits {
        match (self, taken.trace, state) {
            (Self::Log(it), Trace::After([time, _]), State::Events(events)) => {
                ReturnedUnits::whole(it.give_back(events, at, time, taken.units))
            }
            (Self::Smooth(_, it), Trace::Smooth(all, after, cost), State::Words(words)) => {
                let part = it.part_of(all, after, cost.saturating_sub(taken.units));
                let there = it.still_there(part, after, at);
                let is_last = it.is_last(*words, after, at, later.returned);
                if later.reason == ReturnReason::Cancelled && !is_last {
                    return ReturnedUnits::default();
                }
                let before = std::mem::replace(words, it.give_back(*words, at, there));
                let back = it.units_between(before, *words, at, part, taken.units);
                ReturnedUnits { counted: if is_last { 0 } else { back.counted }, ..back }
            }
            (_, Trace::After(after), State::Words(words)) => {
                let (next, back) = self.give_back_words(*words, at, after, taken.units, later);
                *words = next;
                back
            }
            _ => ReturnedUnits::default(),
        }
    }

    fn give_back_words(
        &self,
        words: Words,
        at: Moment,
        after: Words,
        units: u32,
        later: LaterCharges,
    ) -> (Words, ReturnedUnits) {
        match self {
            Self::Bucket(_, it) => it.give_back(words, at, after, units, later),
            Self::Interval(it) => it.give_back(words, at, after, units, later),
            Self::FixedWindow(it) => it.give_back(words, at, after, units),
            Self::SlidingCounter(it) => it.give_back(words, at, after, units),
            Self::Smooth(..) | Self::Log(_) | Self::Concurrency(_) => (words, ReturnedUnits::default()),
        }
    }

    /// Charges `units` whether there is room or not: what is missing is debt. Slots in flight are not owed.
    pub(crate) fn owe(&self, state: &mut State, at: Moment, units: u32) {
        match (self, state) {
            (_, _) if units == 0 => {}
            (Self::Log(it), State::Events(events)) => it.commit(events, at, units),
            (Self::Concurrency(_), _) => {}
            (_, State::Words(words)) => *words = self.owe_words(*words, at, units),
            _ => {}
        }
    }

    fn owe_words(&self, words: Words, at: Moment, units: u32) -> Words {
        match self {
            Self::Bucket(_, it) => it.owe(words, at, units),
            Self::Interval(it) => it.owe(words, at, units),
            Self::Smooth(_, it) => it.owe(words, at, units),
            Self::FixedWindow(it) => it.owe(words, at, units),
            Self::SlidingCounter(it) => it.owe(words, at, units),
            Self::Log(_) | Self::Concurrency(_) => words,
        }
    }
}
