//! Sets against a plain model of the set rules: one bucket a limit and key, all charged or none.

use proptest::prelude::*;
use std::{collections::HashMap, time::Duration};
use tollgate::{
    Bounds, Charge, Clock, Concurrency, Decision, Delay, FixedWindow, Key, LeakyBucket, Limit, LimitHandle,
    ManualClock, MemoryStore, Rate, Retry, SlidingLog, TokenBucket,
};

/// The model's limits, simple enough to be obviously right: time in microseconds, units in thousandths.
#[derive(Clone, Copy, Debug)]
enum Plain {
    /// A thousandth of a unit comes every `micros`.
    Token {
        micros: u64,
        burst: u64,
    },
    /// Nginx's queue: all but the first wait.
    Queue {
        micros: u64,
        capacity: u64,
    },
    Log {
        limit: u64,
        window: u64,
    },
    FirstHit {
        limit: u64,
        window: u64,
    },
}

#[derive(Clone, Debug, Default)]
struct Used(Vec<(u64, u64)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Answer {
    Allow,
    Wait(u64),
    Deny(u64),
    Never,
}

impl Plain {
    fn limit(self) -> Limit {
        match self {
            Self::Token { micros, burst } => {
                TokenBucket::new(per_thousandth(micros), burst as u32).unwrap().into()
            }
            Self::Queue { micros, capacity } => LeakyBucket::new(per_thousandth(micros), capacity as u32)
                .unwrap()
                .with_delay(Delay::After(1))
                .unwrap()
                .into(),
            Self::Log { limit, window } => {
                SlidingLog::new(limit as u32, Duration::from_micros(window)).unwrap().into()
            }
            Self::FirstHit { limit, window } => FixedWindow::new(limit as u32, Duration::from_micros(window))
                .unwrap()
                .with_align(tollgate::Align::FirstHit)
                .into(),
        }
    }

    /// What is consumed at `now`, in thousandths of a unit, by playing the whole history again.
    fn level(self, used: &Used, micros: u64, now: u64) -> u64 {
        let (mut level, mut last) = (0_u64, 0);
        for (at, cost) in &used.0 {
            // A thousandth may be under way when a charge comes: fractions of it are exact in microseconds.
            level = level.saturating_sub(at - last) + cost * 1000 * micros;
            last = *at;
        }
        level.saturating_sub(now - last)
    }

    /// Time that `cost` has to wait, and whether it may, for `up_to`.
    fn ask(self, used: &Used, now: u64, cost: u64, up_to: Option<u64>) -> Answer {
        match self {
            _ if cost == 0 => Answer::Allow,
            Self::Token { micros, burst } => {
                if cost > burst {
                    return Answer::Never;
                }
                let over = (self.level(used, micros, now) + cost * 1000 * micros)
                    .saturating_sub(burst * 1000 * micros);
                waits(over, up_to.unwrap_or(0))
            }
            Self::Queue { micros, capacity } => {
                if cost > capacity {
                    return Answer::Never;
                }
                let level = self.level(used, micros, now) + cost * 1000 * micros;
                let (wait, up_to) = (level.saturating_sub(1000 * micros), up_to.unwrap_or(u64::MAX));
                // It has to fit, and to be near enough.
                match level.saturating_sub(capacity * 1000 * micros) {
                    0 => waits(wait, up_to),
                    over => Answer::Deny(over.max(wait.saturating_sub(up_to))),
                }
            }
            Self::Log { limit, window } => {
                if cost > limit {
                    return Answer::Never;
                }
                let live: Vec<_> = used.0.iter().filter(|(at, _)| at + window > now).collect();
                let mut sum = live.iter().map(|(_, cost)| cost).sum::<u64>() + cost;
                if sum <= limit {
                    return Answer::Allow;
                }
                let leaves = live.iter().find_map(|(at, cost)| {
                    sum -= cost;
                    (sum <= limit).then_some(at + window - now)
                });
                Answer::Deny(leaves.unwrap())
            }
            Self::FirstHit { limit, window } => {
                if cost > limit {
                    return Answer::Never;
                }
                let (mut start, mut sum) = (None, 0);
                for (at, cost) in &used.0 {
                    if start.is_none_or(|start| *at >= start + window) {
                        (start, sum) = (Some(*at), 0);
                    }
                    sum += cost;
                }
                match start.filter(|start| now < start + window) {
                    Some(start) if sum + cost > limit => Answer::Deny(start + window - now),
                    _ => Answer::Allow,
                }
            }
        }
    }
}

/// One unit every `1000 * micros` microseconds.
fn per_thousandth(micros: u64) -> Rate {
    Rate::new(1, Duration::from_micros(1000 * micros)).unwrap()
}

fn waits(wait: u64, up_to: u64) -> Answer {
    match wait {
        0 => Answer::Allow,
        wait if wait <= up_to => Answer::Wait(wait),
        wait => Answer::Deny(wait - up_to),
    }
}

fn answered(decision: Decision) -> Answer {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap();
    match decision {
        Decision::Allow => Answer::Allow,
        Decision::Wait(time) => Answer::Wait(micros(time)),
        Decision::Deny(Retry::After(time)) => Answer::Deny(micros(time)),
        Decision::Deny(_) => Answer::Never,
    }
}

fn plain_limits() -> impl Strategy<Value = Plain> {
    prop_oneof![
        (1_u64..50, 1_u64..8).prop_map(|(micros, burst)| Plain::Token { micros, burst }),
        (1_u64..50, 1_u64..8).prop_map(|(micros, capacity)| Plain::Queue { micros, capacity }),
        (1_u64..8, 1_u64..80_000).prop_map(|(limit, window)| Plain::Log { limit, window }),
        (1_u64..8, 1_u64..80_000).prop_map(|(limit, window)| Plain::FirstHit { limit, window }),
    ]
}

type Asked = (usize, usize, u32, Option<u64>);

proptest! {
    #![proptest_config(crate::limits::cases(4096))]

    #[test]
    fn sets_follow_the_model(
        plain in prop::collection::vec(plain_limits(), 3),
        sets in prop::collection::vec(
            (0_u64..30_000, prop::collection::vec((0_usize..3, 0_usize..3, 0_u32..4, prop::option::of(0_u64..40_000)), 1..5)),
            1..50,
        ),
    ) {
        let clock = ManualClock::new();
        let store = MemoryStore::with_clock(Bounds { max_keys: 64, ..Bounds::default() }, clock.clone());
        let limits: Vec<LimitHandle> = plain.iter().map(|plain| store.add("limit", plain.limit()).unwrap()).collect();
        let mut model: HashMap<(usize, usize), Used> = HashMap::new();
        let mut now = 0;
        for (pause, asked) in sets {
            now += pause;
            clock.set(tollgate::Time::from_micros(now));
            let charges: Vec<Charge<'_>> = asked.iter().map(|asked| charge(&limits, asked)).collect();

            let merged = |limit, key| {
                let same = asked.iter().filter(move |(l, k, ..)| (*l, *k) == (limit, key));
                let cost = same.clone().map(|(_, _, cost, _)| u64::from(*cost)).sum();
                let default = if matches!(plain[limit], Plain::Queue { .. }) { u64::MAX } else { 0 };
                let up_to = same.map(|(.., up_to)| up_to.unwrap_or(default)).min();
                (cost, up_to)
            };
            let expected: Vec<Answer> = asked
                .iter()
                .map(|(limit, key, ..)| {
                    let (cost, up_to) = merged(*limit, *key);
                    let used = model.get(&(*limit, *key)).cloned().unwrap_or_default();
                    plain[*limit].ask(&used, now, cost, up_to)
                })
                .collect();
            let worst = *expected.iter().max().unwrap();

            let foretold = store.peek(&charges).unwrap();
            let set = store.check(&charges).unwrap();
            prop_assert_eq!(&foretold, &set, "peek answers what check would");
            let each: Vec<Answer> = set.statuses().iter().map(|status| answered(status.decision())).collect();
            prop_assert_eq!(&each, &expected);
            prop_assert_eq!(answered(set.decision()), worst);
            let denies = matches!(worst, Answer::Deny(_) | Answer::Never);
            let by = denies.then(|| expected.iter().position(|answer| *answer == worst).unwrap());
            prop_assert_eq!(set.denied_by(), by);
            if !denies {
                let mut charged: Vec<(usize, usize)> = asked.iter().map(|(limit, key, ..)| (*limit, *key)).collect();
                charged.sort_unstable();
                charged.dedup();
                for (limit, key) in charged {
                    let (cost, _) = merged(limit, key);
                    if cost > 0 {
                        model.entry((limit, key)).or_default().0.push((now, cost));
                    }
                }
            }
        }
    }
}

fn charge<'a>(limits: &'a [LimitHandle], (limit, key, cost, up_to): &Asked) -> Charge<'a> {
    let charge = Charge::new(&limits[*limit], Key::Number(*key as u64)).cost(*cost);
    up_to.map_or(charge, |micros| charge.up_to(Duration::from_micros(micros)))
}

fn store() -> (MemoryStore<ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    (MemoryStore::with_clock(Bounds::default(), clock.clone()), clock)
}

#[test]
fn a_refused_set_shows_what_is_left_untouched() {
    let (store, _) = store();
    let user = store.add("user", TokenBucket::new(Rate::per_second(1).unwrap(), 5).unwrap()).unwrap();
    let all = store.add("all", TokenBucket::new(Rate::per_second(1).unwrap(), 1).unwrap()).unwrap();
    let set = [Charge::new(&user, "a"), Charge::new(&all, ())];
    let first = store.check(&set).unwrap();
    assert_eq!(first.statuses()[0].remaining(), 4);
    let second = store.check(&set).unwrap();
    assert_eq!(second.denied_by(), Some(1));
    assert!(second.statuses()[0].is_allow(), "its own verdict");
    assert_eq!(second.statuses()[0].remaining(), 4, "and nothing was taken");
}

#[test]
fn a_full_concurrency_limit_outranks_a_long_deny_and_never_outranks_it() {
    let (store, _) = store();
    let slots = store.add("slots", Concurrency::new(1, Duration::from_secs(60)).unwrap()).unwrap();
    let hourly = store.add("hourly", FixedWindow::new(1, Duration::from_secs(3600)).unwrap()).unwrap();
    let both = [Charge::new(&hourly, "k"), Charge::new(&slots, "k")];
    let entered = store.check(&both).unwrap();
    let permit = entered.permit().unwrap();
    let full = store.check(&both).unwrap();
    assert_eq!(full.decision(), Decision::Deny(Retry::WhenReleased));
    assert_eq!(full.denied_by(), Some(1));
    assert_eq!(full.permit(), None);
    let never = store.check(&[both[1], both[0].cost(2)]).unwrap();
    assert_eq!(never.decision(), Decision::Deny(Retry::Never));
    assert_eq!(never.denied_by(), Some(1));

    assert_eq!(store.leave(&both, permit).unwrap(), 1);
    let after = store.check(&both).unwrap();
    assert_eq!(after.denied_by(), Some(0), "the slot is free, the hour is not over");
}

#[test]
fn an_empty_set_passes() {
    let (store, _) = store();
    assert!(store.check(&[]).unwrap().is_allow());
}

#[test]
fn a_permit_is_renewed_while_its_owner_lives() {
    let (store, clock) = store();
    let slots = store.add("slots", Concurrency::new(1, Duration::from_secs(10)).unwrap()).unwrap();
    let set = [Charge::new(&slots, "k")];
    let permit = store.check(&set).unwrap().permit().unwrap();
    for _ in 0..5 {
        clock.advance(Duration::from_secs(9));
        assert!(store.renew(&set, permit).unwrap());
        assert!(store.check(&set).unwrap().is_deny());
    }
    clock.advance(Duration::from_secs(10));
    assert!(!store.renew(&set, permit).unwrap(), "its time was up");
    assert!(store.check(&set).unwrap().is_allow(), "a crashed owner's slot comes back");
    assert_eq!(store.leave(&set, permit).unwrap(), 0, "the late owner gives nothing back");
}

#[test]
fn a_limit_of_another_store_is_refused() {
    let (ours, _) = store();
    let (theirs, _) = store();
    let limit = theirs.add("limit", TokenBucket::new(Rate::per_second(1).unwrap(), 1).unwrap()).unwrap();
    assert!(ours.check(&[Charge::new(&limit, "k")]).is_err());
    theirs.remove(&limit).unwrap();
    assert!(theirs.check(&[Charge::new(&limit, "k")]).is_err());
    assert!(theirs.remove(&limit).is_err());
    let _ = ours.clock().now();
}
