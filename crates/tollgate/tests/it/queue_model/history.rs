//! Random histories: arrivals, cancellations, and operations on the limits.

use super::limit_models::{Bucket, Kind, LimitModel, Log, Slots, Window};
use proptest::{prelude::*, sample::Index};
use std::{fmt, time::Duration};
use tollgate::{Align, Concurrency, FixedWindow, LeakyBucket, Limit, Rate, SlidingLog, TokenBucket};

/// The numbers of a limit, from which both the library's limit and the model are built.
#[derive(Clone, Copy, Debug)]
pub(super) enum Numbers {
    Bucket { amount: u64, period: u64, burst: u32, is_leaky: bool },
    Window { limit: u32, length: u64, first_hit: bool },
    Log { limit: u32, window: u64 },
    Slots { limit: u32, max_hold: u64, queue: u32 },
}

/// Operations in order, and how the remaining waiters end.
#[derive(Clone)]
pub(super) struct History {
    pub(super) ops: Vec<Op>,
    pub(super) ending: Ending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The clock runs until all are released.
    Served,
    /// They are dropped in order of arrival.
    Dropped,
}

/// One line per operation.
impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ops.iter().try_for_each(|op| write!(f, "\n  {op:?}"))?;
        write!(f, "\n  {:?}", self.ending)
    }
}

/// One operation. Times are in thousandths of the time in which the limit gives one unit.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Pass(u64),
    /// Moves the clock to a waiter's release, or a nanosecond before or after it.
    PassToTurn(Index, i64),
    Wait {
        costs: [u32; 3],
        up_to: Option<u64>,
        polling: Polling,
    },
    /// Creates a future and drops it before the first poll.
    Unpolled,
    /// Drops a waiter that has no result yet.
    Drop(Index),
    /// Drops a waiter at its release, or a nanosecond before or after it, before anything is polled.
    DropAtTurn(Index, i64),
    /// Drops a permit.
    Leave(Index),
    Check(u32),
    Peek,
    Change(Index, u32),
    Reset,
    Refund(u32),
    Grant(u32),
    Ban(u64),
}

/// How a future is treated after its first poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Polling {
    /// It is polled whenever its waker is called.
    WhenWoken,
    /// It is kept and never polled again.
    Never,
}

/// Which operations a history contains.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operations {
    /// The longest step of the clock, in thousandths of a unit's time.
    pub(super) longest: u64,
    pub(super) deadlines: bool,
    pub(super) drops: bool,
    pub(super) unpolled: bool,
    pub(super) checks: bool,
    pub(super) peeks: bool,
    pub(super) changes: bool,
    /// Resets, refunds, grants and bans.
    pub(super) acts: bool,
    pub(super) leaves: bool,
}

impl Operations {
    /// Arrivals without deadlines, and nothing else.
    pub(super) const ARRIVALS: Self = Self {
        longest: 2_500,
        deadlines: false,
        drops: false,
        unpolled: false,
        checks: false,
        peeks: false,
        changes: false,
        acts: false,
        leaves: false,
    };

    pub(super) fn histories(self) -> impl Strategy<Value = History> {
        self.histories_of(1..60)
    }

    pub(super) fn histories_of(self, ops: std::ops::Range<usize>) -> impl Strategy<Value = History> {
        let ending = match self.drops {
            true => prop::sample::select(vec![Ending::Served, Ending::Dropped]).boxed(),
            false => Just(Ending::Served).boxed(),
        };
        let ops = prop::collection::vec(self.op(), ops);
        (ops, ending).prop_map(|(ops, ending)| History { ops, ending })
    }

    fn op(self) -> impl Strategy<Value = Op> {
        let weight = |is_wanted: bool, weight: u32| if is_wanted { weight } else { 0 };
        let index = any::<Index>;
        let about = || prop::sample::select(vec![-1_i64, 0, 1]);
        let cost = || prop_oneof![3 => Just(1_u32), 2 => 1_u32..=5];
        let up_to = match self.deadlines {
            true => prop::option::of(0_u64..12_000).boxed(),
            false => Just(None).boxed(),
        };
        let polling = match self.unpolled {
            true => prop_oneof![3 => Just(Polling::WhenWoken), 1 => Just(Polling::Never)].boxed(),
            false => Just(Polling::WhenWoken).boxed(),
        };
        let wait = ([cost(), cost(), cost()], up_to, polling);
        let longest = self.longest;
        let ops: Vec<(u32, BoxedStrategy<Op>)> = vec![
            (8, wait.prop_map(|(costs, up_to, polling)| Op::Wait { costs, up_to, polling }).boxed()),
            (4, (0..longest).prop_map(Op::Pass).boxed()),
            (1, (index(), about()).prop_map(|(which, by)| Op::PassToTurn(which, by)).boxed()),
            (weight(self.drops, 1), Just(Op::Unpolled).boxed()),
            (weight(self.drops, 4), index().prop_map(Op::Drop).boxed()),
            (weight(self.drops, 2), (index(), about()).prop_map(|(it, by)| Op::DropAtTurn(it, by)).boxed()),
            (weight(self.leaves, 5), index().prop_map(Op::Leave).boxed()),
            (weight(self.checks, 2), (1_u32..=5).prop_map(Op::Check).boxed()),
            (
                weight(self.changes, 2),
                (index(), any::<u32>()).prop_map(|(it, to)| Op::Change(it, to)).boxed(),
            ),
            (weight(self.peeks, 2), Just(Op::Peek).boxed()),
            (weight(self.acts, 1), Just(Op::Reset).boxed()),
            (weight(self.acts, 1), (1_u32..4).prop_map(Op::Refund).boxed()),
            (weight(self.acts, 1), (1_u32..4).prop_map(Op::Grant).boxed()),
            (weight(self.acts, 1), (0_u64..8_000).prop_map(Op::Ban).boxed()),
        ];
        prop::strategy::Union::new_weighted(
            ops.into_iter().filter(|(weight, _)| *weight > 0).collect::<Vec<_>>(),
        )
    }
}

impl Numbers {
    pub(super) fn limit(self) -> Limit {
        let nanos = Duration::from_nanos;
        match self {
            Self::Bucket { amount, period, burst, is_leaky } => {
                let rate = Rate::new(amount, nanos(period)).unwrap();
                match is_leaky {
                    true => LeakyBucket::new(rate, burst).unwrap().into(),
                    false => TokenBucket::new(rate, burst).unwrap().into(),
                }
            }
            Self::Window { limit, length, first_hit } => {
                let align = if first_hit { Align::FirstHit } else { Align::Epoch };
                FixedWindow::new(limit, nanos(length)).unwrap().with_align(align).into()
            }
            Self::Log { limit, window } => SlidingLog::new(limit, nanos(window)).unwrap().into(),
            Self::Slots { limit, max_hold, queue } => {
                Concurrency::new(limit, nanos(max_hold)).unwrap().with_queue(queue).into()
            }
        }
    }

    pub(super) fn model(self) -> LimitModel {
        LimitModel::new(match self {
            Self::Bucket { amount, period, burst, .. } => Kind::Bucket(Bucket::new(amount, period, burst)),
            Self::Window { limit, length, first_hit } => Kind::Window(Window::new(limit, length, first_hit)),
            Self::Log { limit, window } => Kind::Log(Log::new(limit, window)),
            Self::Slots { limit, max_hold, .. } => Kind::Slots(Slots::new(limit, max_hold)),
        })
    }

    /// The time in which the limit gives one unit.
    pub(super) fn unit(self) -> u64 {
        match self {
            Self::Bucket { amount, period, .. } => period / amount,
            Self::Window { limit, length, .. } => length / u64::from(limit),
            Self::Log { limit, window } => window / u64::from(limit),
            // Not `max_hold`, which is for permits that are lost.
            Self::Slots { .. } => 100_000_000,
        }
    }

    pub(super) fn most_waiting(self) -> usize {
        match self {
            Self::Slots { queue, .. } => queue as usize,
            _ => usize::MAX,
        }
    }

    /// Other numbers of the same kind, with a capacity of at least five.
    pub(super) fn varied(self, by: u32) -> Self {
        let most = 5 + by % 8;
        match self {
            Self::Bucket { period, is_leaky, .. } => {
                let amount = [1, 2, 3, 7, 10, 100, 1000][(by / 8 % 7) as usize];
                Self::Bucket { amount, period, burst: most, is_leaky }
            }
            Self::Window { length, first_hit, .. } => Self::Window { limit: most, length, first_hit },
            Self::Log { window, .. } => Self::Log { limit: most, window },
            Self::Slots { max_hold, queue, .. } => Self::Slots { limit: most, max_hold, queue },
        }
    }
}

/// Token and leaky buckets of many rates. Most of them earn a unit at a fraction of a nanosecond.
pub(super) fn buckets(bursts: std::ops::Range<u32>) -> impl Strategy<Value = Numbers> {
    let second = 1_000_000_000_u64;
    let rate = prop_oneof![
        3 => prop::sample::select(vec![(1, second), (10, second), (100, second), (1_000, second)]),
        2 => prop::sample::select(vec![(3, second), (7, second), (999, second), (13, 60 * second)]),
        1 => (1_u64..2_000, 1_000_u64..5 * second),
    ];
    (rate, bursts, prop::bool::weighted(0.2))
        .prop_map(|((amount, period), burst, is_leaky)| Numbers::Bucket { amount, period, burst, is_leaky })
}

/// Buckets that earn a unit on whole nanoseconds, so that waiting for another limit loses no remainder.
pub(super) fn even_buckets(bursts: std::ops::Range<u32>) -> impl Strategy<Value = Numbers> {
    let amount = prop::sample::select(vec![1_u64, 2, 5, 10, 100]);
    (amount, bursts).prop_map(|(amount, burst)| Numbers::Bucket {
        amount,
        period: 1_000_000_000,
        burst,
        is_leaky: false,
    })
}

pub(super) fn windows(limits: std::ops::Range<u32>) -> impl Strategy<Value = Numbers> {
    (limits, lengths(), any::<bool>()).prop_map(|(limit, length, first_hit)| Numbers::Window {
        limit,
        length,
        first_hit,
    })
}

pub(super) fn logs(limits: std::ops::Range<u32>) -> impl Strategy<Value = Numbers> {
    (limits, lengths()).prop_map(|(limit, window)| Numbers::Log { limit, window })
}

/// Slots whose `max_hold` is mostly longer than the history.
pub(super) fn slots(limits: std::ops::Range<u32>, queue: u32) -> impl Strategy<Value = Numbers> {
    let max_hold = prop::sample::select(vec![1_000_000_000_u64, 20_000_000_000, 1_000_000_000_000]);
    (limits, max_hold).prop_map(move |(limit, max_hold)| Numbers::Slots { limit, max_hold, queue })
}

fn lengths() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1_000_000_000_u64), Just(250_000_000), 1_000_u64..5_000_000_000]
}
