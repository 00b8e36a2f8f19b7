//! What a charge took, so that it can be given back as it was taken or paid for at its real cost.
//!
//! A turn that is cancelled gives its units back. For most steps that is a refund of so many units. A smooth limiter's
//! permits have prices that depend on how many were stored, so there the charge remembers what it moved.

use super::{Answer, Ask, Moment, State, Step, Words, smooth};

/// What one charge took from one bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Taken {
    /// Units that were granted by hand, spent before the limit's own.
    pub(crate) granted: u32,
    /// Units of the limit's own.
    pub(crate) units: u32,
    /// What a smooth limiter's charge moved, and how many permits could be stored then.
    pub(crate) smooth: Option<(smooth::Taken, f64)>,
}

impl Taken {
    /// So many of its units: the limit's own first, which were spent last.
    pub(crate) fn part(&self, units: u32) -> Self {
        if units == self.units + self.granted {
            return *self;
        }
        let own = units.min(self.units);
        Self { granted: (units - own).min(self.granted), units: own, smooth: None }
    }
}

impl Step {
    /// What the charge that was answered with `answer` takes from a bucket in this state.
    pub(crate) fn taken(&self, before: &State, ask: &Ask, answer: &Answer) -> Taken {
        let smooth = match (self, before) {
            (Self::Smooth(_, it), State::Words(words)) if ask.cost > 0 => {
                Some((it.taken(*words, ask.at, answer.next), it.max()))
            }
            _ => None,
        };
        Taken { granted: 0, units: ask.cost, smooth }
    }

    /// Gives back what a charge took, never below no use.
    pub(crate) fn give_back(&self, state: &mut State, at: Moment, taken: &Taken) {
        match (self, taken.smooth, state) {
            (Self::Smooth(_, it), Some((taken, max)), State::Words(words)) => {
                *words = it.give_back(*words, at, it.convert_taken(max, taken));
            }
            (_, _, state) => self.refund(state, at, taken.units),
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
