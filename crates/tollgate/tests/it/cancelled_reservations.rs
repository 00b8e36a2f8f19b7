//! The units that `cancel` and `settle` report as returned, against the model of [`reserved_turns`](crate::reserved_turns).

use crate::{
    by_hand::{SECOND, bucket, keyed, limiter, log, store},
    limits::cases,
    reserved_turns::{Line, Reserved, limit},
};
use proptest::{prelude::*, sample::Index};
use std::time::Duration;
use tollgate::{
    Bounds, Charge, Clock, KeyedLimiter, LimitHandle, Limiter, ManualClock, MemoryStore, Reservation,
};

#[derive(Clone, Debug)]
enum Op {
    Reserve(u32),
    Cancel(Index),
    /// Settles a reservation at so many thirds of its cost.
    Settle(Index, u32),
    Pass(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        5 => (1_u32..6).prop_map(Op::Reserve),
        3 => any::<Index>().prop_map(Op::Cancel),
        2 => (any::<Index>(), 0_u32..3).prop_map(|(which, thirds)| Op::Settle(which, thirds)),
        3 => (1_u64..900_000_000).prop_map(Op::Pass),
    ];
    prop::collection::vec(op, 1..40)
}

/// The type that holds the bucket.
enum Gate {
    Limiter(Limiter<ManualClock>),
    Keyed(KeyedLimiter<ManualClock>),
    Store(MemoryStore<ManualClock>, LimitHandle),
}

enum Turn<'a> {
    Limiter(Reservation<'a, Limiter<ManualClock>>),
    Keyed(Reservation<'a, KeyedLimiter<ManualClock>>),
    Store(Reservation<'a, MemoryStore<ManualClock>>),
}

impl Gate {
    fn reserve(&self, cost: u32) -> Turn<'_> {
        match self {
            Self::Limiter(it) => Turn::Limiter(it.reserve(cost, Duration::MAX).unwrap()),
            Self::Keyed(it) => Turn::Keyed(it.reserve("k", cost, Duration::MAX).unwrap()),
            Self::Store(it, limit) => {
                Turn::Store(it.reserve(&[Charge::new(limit, "k").cost(cost)], Duration::MAX).unwrap())
            }
        }
    }

    fn reset_after(&self) -> Option<Duration> {
        match self {
            Self::Limiter(it) => it.peek(0).reset_after(),
            Self::Keyed(it) => it.peek("k", 0).reset_after(),
            Self::Store(it, limit) => {
                it.peek(&[Charge::new(limit, "k").cost(0)]).unwrap().statuses()[0].reset_after()
            }
        }
    }
}

impl Turn<'_> {
    fn due(&self) -> u64 {
        let due = match self {
            Self::Limiter(it) => it.due(),
            Self::Keyed(it) => it.due(),
            Self::Store(it) => it.due(),
        };
        due.as_nanos()
    }

    fn cancel(self) -> u32 {
        match self {
            Self::Limiter(it) => it.cancel(),
            Self::Keyed(it) => it.cancel(),
            Self::Store(it) => only(&it.cancel()),
        }
    }

    fn settle(self, actual: u32) -> u32 {
        match self {
            Self::Limiter(it) => it.settle(actual),
            Self::Keyed(it) => it.settle(actual),
            Self::Store(it) => only(&it.settle_each(&[actual])),
        }
    }
}

fn only(units: &[u32]) -> u32 {
    assert_eq!(units.len(), 1);
    units[0]
}

fn agree(gate: &Gate, clock: &ManualClock, mut line: Line, ops: Vec<Op>) -> Result<(), TestCaseError> {
    let mut held: Vec<(Turn<'_>, Reserved)> = Vec::new();
    let burst = u32::try_from(line.burst).unwrap();
    for op in ops {
        let now = clock.now().as_nanos();
        match op {
            Op::Reserve(cost) => {
                let (turn, reserved) = (gate.reserve(cost.min(burst)), line.reserve(now, cost.min(burst)));
                prop_assert_eq!(turn.due(), reserved.due);
                held.push((turn, reserved));
            }
            Op::Cancel(which) if !held.is_empty() => {
                let (turn, reserved) = held.remove(which.index(held.len()));
                let is_due = reserved.due <= now;
                let back = if is_due { 0 } else { line.give_back(now, &reserved, reserved.cost) };
                prop_assert_eq!(turn.cancel(), back);
            }
            Op::Settle(which, thirds) if !held.is_empty() => {
                let (turn, reserved) = held.remove(which.index(held.len()));
                let actual = reserved.cost * thirds / 3;
                let back = line.give_back(now, &reserved, reserved.cost - actual);
                prop_assert_eq!(turn.settle(actual), back);
            }
            Op::Pass(nanos) => clock.advance(Duration::from_nanos(nanos)),
            Op::Cancel(_) | Op::Settle(..) => {}
        }
        let full = line.reset_after(clock.now().as_nanos());
        prop_assert_eq!(gate.reset_after(), Some(full));
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn cancel_and_settle_report_the_returned_units(
        which in 0_u8..3,
        is_leaky: bool,
        amount in prop_oneof![Just(1_u64), Just(3), Just(10), 1_u64..5_000],
        burst in 1_u32..12,
        ops in ops(),
    ) {
        let clock = ManualClock::new();
        let bounds = Bounds { max_keys: 10, ..Bounds::default() };
        let limit = limit(is_leaky, amount, burst);
        let gate = match which {
            0 => Gate::Limiter(Limiter::with_clock(limit, clock.clone())),
            1 => Gate::Keyed(KeyedLimiter::with_clock(limit, bounds, clock.clone())),
            _ => {
                let store = MemoryStore::with_clock(bounds, clock.clone());
                let handle = store.add("handle", limit).unwrap();
                Gate::Store(store, handle)
            }
        };
        agree(&gate, &clock, Line::new(amount, burst), ops)?;
    }
}

#[test]
fn later_reservations_reduce_what_cancelling_returns() {
    let (one, clock) = limiter(bucket(1, 5));
    one.reserve(5, SECOND).unwrap().keep();
    let [first, second] = [(); 2].map(|()| one.reserve(3, 10 * SECOND).unwrap());
    assert_eq!(first.cancel(), 0);
    assert_eq!(second.cancel(), 3);
    let (first, _second) = (one.reserve(4, 10 * SECOND).unwrap(), one.reserve(1, 10 * SECOND).unwrap());
    assert_eq!(first.cancel(), 3, "one unit was reserved later");
    clock.advance(100 * SECOND);
    assert_eq!(one.reserve(2, SECOND).unwrap().cancel(), 0, "a due reservation is spent");
    assert_eq!(one.reserve(2, SECOND).unwrap().settle(1), 1);
    assert_eq!(one.reserve(2, SECOND).unwrap().settle(4), 0, "and two more are owed");
    assert_eq!(one.peek(0).remaining(), 0, "2 + 1 + 4 of 5");
}

#[test]
fn a_keyed_limiter_reports_the_returned_units() {
    let (by_key, _) = keyed(bucket(1, 5), 10);
    by_key.reserve("k", 5, SECOND).unwrap().keep();
    assert_eq!(by_key.reserve("k", 2, 10 * SECOND).unwrap().cancel(), 2);
    assert_eq!(by_key.reserve("k", 2, 10 * SECOND).unwrap().settle(1), 1);
}

#[test]
fn a_set_reports_the_returned_units_per_charge() {
    let (store, clock) = store();
    let [rate, uses, other] = [bucket(1, 5).into(), log(5).into(), bucket(100, 5).into()]
        .map(|limit: tollgate::Limit| store.add("limit", limit).unwrap());
    store.reserve(&[Charge::new(&rate, "k").cost(5)], SECOND).unwrap().keep();
    let on = |limit, cost| Charge::new(limit, "k").cost(cost);
    let set = [on(&rate, 2), on(&uses, 3), on(&rate, 1), on(&other, 4)];
    assert_eq!(
        store.reserve(&set, 10 * SECOND).unwrap().cancel(),
        [3, 3, 0, 4],
        "two charges on one bucket count at the first"
    );
    let set = [on(&rate, 2), on(&other, 4)];
    let back = store.reserve(&set, 10 * SECOND).unwrap().settle_each(&[1, 1]);
    assert_eq!(back, [1, 3]);
    clock.advance(100 * SECOND);
    assert_eq!(store.reserve(&set, SECOND).unwrap().cancel(), [0, 0], "a due reservation is spent");
    assert!(store.reserve(&[], SECOND).unwrap().cancel().is_empty());
}
