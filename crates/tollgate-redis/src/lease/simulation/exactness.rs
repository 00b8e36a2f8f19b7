//! Without leases the model of the server decides as the memory store does, to the microsecond: charges, refunds, resets,
//! changed limits. What leases add is then all that the other tests judge.

use super::{
    super::{BucketId, Line},
    server::{Align, Numbers, Server},
};
use proptest::prelude::*;
use std::time::Duration;
use tollgate::{Bounds, Charge, Decision, FixedWindow, Limit, ManualClock, MemoryStore, Rate, Retry};
use tollgate::{SlidingCounter, SlidingWindow, Time, TokenBucket, WhenFull};

const SMALL: Bounds = Bounds { max_keys: 8, when_full: WhenFull::Evict };

#[derive(Clone, Copy, Debug)]
enum Step {
    Check(u32),
    Refund(u32),
    Reset,
    /// So many hundredths of the capacity or the limit.
    Change(u32),
}

impl Numbers {
    pub(super) fn limit(&self) -> Limit {
        let micros = Duration::from_micros;
        match *self {
            Self::Level { earn, price, capacity, initial } => {
                let rate = Rate::new(earn, micros(price)).unwrap();
                TokenBucket::new(rate, capacity).unwrap().with_initial(initial).unwrap().into()
            }
            Self::Fixed { limit, window, align } => {
                let align = match align {
                    Align::Epoch => tollgate::Align::Epoch,
                    Align::FirstHit => tollgate::Align::FirstHit,
                };
                FixedWindow::new(limit, micros(window)).unwrap().with_align(align).into()
            }
            Self::Sliding { limit, window, precision } => {
                SlidingWindow::new(limit, micros(window), micros(precision)).unwrap().into()
            }
            Self::Counter { limit, window } => SlidingCounter::new(limit, micros(window)).unwrap().into(),
        }
    }

    /// The same with so many hundredths of the room.
    pub(super) fn scaled(&self, hundredths: u32) -> Self {
        let scale = |units: u32| (units * hundredths / 100).max(1);
        match *self {
            Self::Level { earn, price, capacity, initial } => {
                Self::Level { earn, price, capacity: scale(capacity), initial: initial.min(scale(capacity)) }
            }
            Self::Fixed { limit, window, align } => Self::Fixed { limit: scale(limit), window, align },
            Self::Sliding { limit, window, precision } => {
                Self::Sliding { limit: scale(limit), window, precision }
            }
            Self::Counter { limit, window } => Self::Counter { limit: scale(limit), window },
        }
    }
}

fn numbers() -> impl Strategy<Value = Numbers> {
    let level = (1_u64..9, 1_u64..200_000, 1_u32..60, 0_u32..60);
    let window = (1_u32..60, 1_u64..2_000_000);
    prop_oneof![
        level.prop_map(|(earn, price, capacity, short)| Numbers::Level {
            earn,
            price,
            capacity,
            initial: capacity - short.min(capacity),
        }),
        window.clone().prop_map(|(limit, window)| Numbers::Fixed { limit, window, align: Align::Epoch }),
        window.clone().prop_map(|(limit, window)| Numbers::Fixed { limit, window, align: Align::FirstHit }),
        (window.clone(), 1_u64..30).prop_map(|((limit, window), parts)| {
            Numbers::Sliding { limit, window, precision: (window / parts).max(1) }
        }),
        window.prop_map(|(limit, window)| Numbers::Counter { limit, window }),
    ]
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        12 => (0_u32..12).prop_map(Step::Check),
        2 => (1_u32..70).prop_map(Step::Check),
        1 => (0_u32..20).prop_map(Step::Refund),
        1 => Just(Step::Reset),
        1 => (20_u32..300).prop_map(Step::Change),
    ];
    prop::collection::vec((prop_oneof![0_u64..2_000, 0_u64..300_000], step), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_model_decides_as_the_memory_store(first in numbers(), steps in steps()) {
        let clock = ManualClock::new();
        let store = MemoryStore::with_clock(SMALL, clock.clone());
        let handle = store.add("limit", first.limit()).unwrap();
        let (bucket, mut now) = (BucketId(1), 0);
        let mut server = Server::new(4, Duration::from_millis(100), None);
        server.add(bucket, &first);
        let is_short = matches!(first, Numbers::Level { capacity, initial, .. } if initial < capacity);
        for (rest, step) in steps {
            now += rest;
            clock.set(Time::from_micros(now));
            match step {
                Step::Check(cost) => {
                    let line = Line { cost, ..Line::giving_back(bucket, [None; 2]) };
                    let ours = server.ask(now, &[line])[0];
                    let theirs = store.check_one(&Charge::new(&handle, "k").cost(cost)).unwrap();
                    let denied = match theirs.decision() {
                        Decision::Deny(retry) => Some(retry),
                        _ => None,
                    };
                    prop_assert_eq!(ours.denied, denied, "at {} for {}", now, cost);
                    prop_assert_eq!(ours.limit, theirs.limit());
                    prop_assert_eq!(ours.remaining, theirs.remaining(), "at {}", now);
                    // Refunded to as-if-never-used before it has filled for the first time, a short bucket is idle here;
                    // the store's short way names the time until it is full.
                    if !(is_short && ours.reset_after == Some(Duration::ZERO)) {
                        prop_assert_eq!(ours.reset_after, theirs.reset_after(), "at {}", now);
                    }
                    prop_assert!(!matches!(ours.denied, Some(Retry::WhenReleased)));
                }
                Step::Refund(units) => {
                    server.refund(now, bucket, units);
                    store.refund(&handle, "k", units).unwrap();
                }
                Step::Reset => {
                    server.reset(now, bucket);
                    store.reset(&handle, "k").unwrap();
                }
                // A bucket's new level is rounded up, here to what a microsecond earns and there to what a nanosecond does.
                Step::Change(_) if matches!(first, Numbers::Level { .. }) => {}
                Step::Change(hundredths) => {
                    let to = first.scaled(hundredths);
                    server.change(now, bucket, &to);
                    store.change(&handle, to.limit()).unwrap();
                }
            }
        }
    }
}
