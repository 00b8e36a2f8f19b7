//! The algorithms: pure steps on integers and plain data, without I/O, clock or lock.
//!
//! A [`Step`] is a limit compiled: `ask` says what a charge would be told and `commit` makes it, so that a set can ask
//! every step before it commits any. The store owns the [`State`]; nothing here knows where it lives. A key never used
//! is `[0, 0]` for every step whose state is words, which is what lets a table hand out zeroed memory.

pub(crate) mod bandwidth;
pub(crate) mod bucket;
#[cfg(feature = "calendar")]
pub(crate) mod calendar;
pub(crate) mod concurrency;
pub(crate) mod events;
pub(crate) mod fixed_window;
pub(crate) mod interval;
pub(crate) mod leaky_bucket;
pub(crate) mod narrow;
pub(crate) mod sliding_counter;
pub(crate) mod sliding_log;
pub(crate) mod sliding_window;
pub(crate) mod smooth;
pub(crate) mod smooth_bursty;
pub(crate) mod smooth_taken;
pub(crate) mod smooth_warming_up;
pub(crate) mod taken;
pub(crate) mod token_bucket;
pub(crate) mod turns;

use crate::{decision::Status, limit::Limit, time::Time};
use bucket::{Bucket, Overbooks};
use concurrency::{Concurrency, Holders, PermitId};
use events::{Events, Log};
use fixed_window::FixedWindow;
use interval::Interval;
use leaky_bucket::Delay;
use sliding_counter::SlidingCounter;
use smooth::Smooth;
use token_bucket::Refill;
use turns::Turns;

/// When a step runs: nanoseconds since the limit's birth, and since 1970 for windows that follow the wall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) since_birth: u64,
    pub(crate) unix: u64,
}

impl Moment {
    /// A wall that stands past the end of a clock's line keeps every step's sums within 64 bits.
    pub(crate) fn new(since_birth: u64, unix: u64) -> Self {
        Self { since_birth, unix: unix.min(Time::END.as_nanos()) }
    }
}

/// Two words whose meaning is the step's own. The first stays below 2^63, so that a store can shift it to keep a lock.
pub(crate) type Words = [u64; 2];

/// What a key has used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum State {
    Words(Words),
    Events(Events),
    Holders(Holders),
}

impl State {
    /// Whether it is that of a key never used.
    pub(crate) fn is_unseen(&self) -> bool {
        match self {
            Self::Words(words) => *words == [0, 0],
            Self::Events(events) => *events == Events::default(),
            Self::Holders(holders) => *holders == Holders::default(),
        }
    }
}

/// What is asked of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) at: Moment,
    pub(crate) cost: u32,
    /// How long the charge may wait, in nanoseconds; `None` for what the limit itself prescribes.
    pub(crate) up_to: Option<u64>,
}

/// What is done about an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The charge is made, unless it is denied.
    Charge,
    /// Nothing is changed.
    Peek,
    /// As `Charge`, for a waiter that goes now: what came due within the last nanosecond keeps its exact place on the credit
    /// line, so that no remainder is lost from one turn to the next. Only a pace is still waited for.
    Release,
}

impl Mode {
    pub(crate) const fn charges(self) -> bool {
        matches!(self, Self::Charge | Self::Release)
    }
}

/// What a step answers: how the charge stands, and the words that follow if it is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) status: Status,
    /// Unused by steps whose state is not words.
    pub(crate) next: Words,
}

/// A limit compiled into the numbers its arithmetic needs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Bucket(Kind, Bucket),
    Interval(Interval),
    Smooth(Kind, Smooth),
    FixedWindow(FixedWindow),
    SlidingCounter(SlidingCounter),
    Log(Log),
    Concurrency(Concurrency),
}

/// Which of the limits that share a step: a change from one to the other starts anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Token,
    Leaky,
    Bursty,
    WarmingUp,
}

impl Step {
    pub(crate) fn new(limit: &Limit) -> Self {
        match limit {
            Limit::TokenBucket(it) if it.refill == Refill::Interval => Self::Interval(Interval {
                amount: it.rate.amount().get(),
                period: it.rate.period_nanos(),
                burst: it.burst,
                initial: it.initial,
            }),
            Limit::TokenBucket(it) => Self::Bucket(
                Kind::Token,
                Bucket::new(it.rate, it.burst, it.burst, it.initial, Overbooks::Yes),
            ),
            Limit::LeakyBucket(it) => {
                let (free, overbooks) = match it.delay {
                    Delay::None => (it.capacity, Overbooks::Yes),
                    Delay::After(units) => (units, Overbooks::No),
                };
                Self::Bucket(Kind::Leaky, Bucket::new(it.rate, it.capacity, free, it.capacity, overbooks))
            }
            Limit::SmoothBursty(it) => Self::Smooth(
                Kind::Bursty,
                Smooth::bursty(it.rate.units_per_second(), it.max_burst_seconds(), it.initial.into()),
            ),
            Limit::SmoothWarmingUp(it) => Self::Smooth(
                Kind::WarmingUp,
                Smooth::warming_up(it.rate.units_per_second(), it.warmup as f64 / 1e3, it.cold_factor),
            ),
            Limit::FixedWindow(it) => Self::FixedWindow(it.clone()),
            Limit::SlidingLog(it) => Self::Log(it.0),
            Limit::SlidingWindow(it) => Self::Log(it.0),
            Limit::SlidingCounter(it) => Self::SlidingCounter(*it),
            Limit::Concurrency(it) => Self::Concurrency(*it),
        }
    }

    /// The state of a key never used.
    pub(crate) fn unseen(&self) -> State {
        match self {
            Self::Log(_) => State::Events(Events::default()),
            Self::Concurrency(_) => State::Holders(Holders::default()),
            _ => State::Words([0, 0]),
        }
    }

    /// Whether the state is more than words.
    pub(crate) const fn is_boxed(&self) -> bool {
        matches!(self, Self::Log(_) | Self::Concurrency(_))
    }

    /// How the charge stands.
    pub(crate) fn ask(&self, state: &State, ask: &Ask) -> Answer {
        match (self, state) {
            (Self::Log(it), State::Events(events)) => Answer { status: it.ask(events, ask), next: [0, 0] },
            (Self::Concurrency(it), State::Holders(holders)) => {
                Answer { status: it.ask(holders, ask), next: [0, 0] }
            }
            (_, State::Words(words)) => self.ask_words(*words, ask),
            // A state of another shape is no state of this step's.
            _ => self.ask(&self.unseen(), ask),
        }
    }

    /// How the charge stands, for what is to be done about it.
    pub(crate) fn ask_to(&self, mode: Mode, state: &State, ask: &Ask) -> Answer {
        if mode != Mode::Release || self.turns() != Turns::Booked {
            return self.ask(state, ask);
        }
        let now = Ask { up_to: Some(0), ..*ask };
        let just_due = match (self, state) {
            (Self::Bucket(_, it), State::Words(words)) => it.ask_just_due(*words, &now),
            _ => None,
        };
        just_due.unwrap_or_else(|| self.ask(state, &now))
    }

    /// As [`ask`](Self::ask), for steps whose state is words.
    pub(crate) fn ask_words(&self, words: Words, ask: &Ask) -> Answer {
        match self {
            Self::Bucket(_, it) => it.ask(words, ask),
            Self::Interval(it) => it.ask(words, ask),
            Self::Smooth(_, it) => it.ask(words, ask),
            Self::FixedWindow(it) => it.ask(words, ask),
            Self::SlidingCounter(it) => it.ask(words, ask),
            Self::Log(_) | Self::Concurrency(_) => self.ask(&self.unseen(), ask),
        }
    }

    /// Makes the charge that was answered with these words.
    pub(crate) fn commit(&self, state: &mut State, ask: &Ask, next: Words, permit: PermitId) {
        match (self, state) {
            (Self::Log(it), State::Events(events)) => it.commit(events, ask.at, ask.cost),
            (Self::Concurrency(it), State::Holders(holders)) => it.enter(holders, ask.at, ask.cost, permit),
            (_, State::Words(words)) => *words = next,
            (_, state) => {
                *state = self.unseen();
                self.commit(state, ask, next, permit);
            }
        }
    }

    /// Takes up to `units` off the newest live use.
    pub(crate) fn refund(&self, state: &mut State, at: Moment, units: u32) {
        match (self, state) {
            (Self::Log(it), State::Events(events)) => it.refund(events, at, units),
            (_, State::Words(words)) => *words = self.refund_words(*words, at, units),
            _ => {}
        }
    }

    fn refund_words(&self, words: Words, at: Moment, units: u32) -> Words {
        match self {
            Self::Bucket(_, it) => it.refund(words, at, units),
            Self::Interval(it) => it.refund(words, at, units),
            Self::Smooth(_, it) => it.refund(words, at, units),
            Self::FixedWindow(it) => it.refund(words, at, units),
            Self::SlidingCounter(it) => it.refund(words, at, units),
            Self::Log(_) | Self::Concurrency(_) => words,
        }
    }

    /// Nanoseconds until the key is as if never used; zero where it is.
    pub(crate) fn idle_in(&self, state: &State, at: Moment) -> u64 {
        match (self, state) {
            (Self::Log(it), State::Events(events)) => it.idle_in(events, at),
            (Self::Concurrency(_), State::Holders(holders)) => holders.last_in(at),
            (Self::Bucket(_, it), State::Words(words)) => it.idle_in(*words, at),
            (Self::Interval(it), State::Words(words)) => it.idle_in(*words, at),
            (Self::Smooth(_, it), State::Words(words)) => it.idle_in(*words, at),
            (Self::FixedWindow(it), State::Words(words)) => it.idle_in(*words, at),
            (Self::SlidingCounter(it), State::Words(words)) => it.idle_in(*words, at),
            _ => 0,
        }
    }

    /// The state under these numbers, with what was consumed under `from`'s kept as the kinds promise.
    pub(crate) fn convert(&self, from: &Self, state: &mut State, at: Moment) {
        match (self, from, state) {
            (Self::Bucket(kind, new), Self::Bucket(was, old), State::Words(words)) if kind == was => {
                *words = new.convert(old, *words, at);
            }
            (Self::Bucket(Kind::Token, new), Self::Interval(old), State::Words(words)) => {
                let (consumed, of) = old.consumed(*words, at);
                *words = new.consume(consumed, of, at);
            }
            (Self::Interval(new), Self::Bucket(Kind::Token, old), State::Words(words)) => {
                let (consumed, of) = old.consumed(*words, at);
                *words = new.consume(consumed, of, at);
            }
            (Self::Interval(new), Self::Interval(old), State::Words(words)) => {
                *words = new.convert(old, *words, at);
            }
            (Self::Smooth(kind, new), Self::Smooth(was, old), State::Words(words)) if kind == was => {
                *words = new.convert(old, *words, at);
            }
            (Self::FixedWindow(new), Self::FixedWindow(old), State::Words(words)) => {
                *words = new.convert(old, *words);
            }
            (Self::SlidingCounter(new), Self::SlidingCounter(old), State::Words(words)) => {
                *words = new.convert(old, *words);
            }
            (Self::Log(new), Self::Log(old), State::Events(events)) => new.convert(old, events),
            (Self::Concurrency(_), Self::Concurrency(_), State::Holders(_)) => {}
            (_, _, state) => *state = self.unseen(),
        }
    }

    /// How long a charge waits that does not say, in nanoseconds: a queue's charges wait for its pace.
    pub(crate) const fn patience(&self) -> u64 {
        match self {
            Self::Bucket(_, bucket) if matches!(bucket.overbooks, Overbooks::No) => u64::MAX,
            _ => 0,
        }
    }

    /// The longest that a charge which fits waits for the limit's own pace, in nanoseconds: what does not fit would start later.
    pub(crate) fn longest_pace(&self) -> u64 {
        match self {
            Self::Bucket(_, bucket) if matches!(bucket.overbooks, Overbooks::No) => bucket.longest_pace(),
            _ => 0,
        }
    }

    /// The most that the limit gives at once.
    pub(crate) fn limit(&self) -> u32 {
        self.ask(&self.unseen(), &Ask { at: Moment::default(), cost: 0, up_to: None }).status.limit
    }
}
