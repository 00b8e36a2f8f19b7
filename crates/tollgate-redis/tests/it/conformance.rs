//! The same charges at the same times give the same answers in memory and in Redis, to the last hint.

use crate::{crowd::join_all, server::server};
use proptest::prelude::*;
use std::{collections::HashSet, time::Duration};
use tollgate::{
    Align, Bounds, Calendar, Charge, Concurrency, DecidedBy, Decision, Delay, FixedWindow, Key, LeakyBucket,
    Limit, ManualClock, MemoryStore, Numbers, PermitId, Rate, Refill, Retry, SetStatus, SlidingCounter,
    SlidingLog, SlidingWindow, SmoothBursty, SmoothWarmingUp, Status, Store, StoreError, TokenBucket, Unit,
};

const KEYS: [&str; 3] = ["alice", "bob", "{carol}:%"];

#[derive(Clone, Debug)]
enum Op {
    Check(Vec<Part>),
    /// So many equal checks of each of these buckets, all at once.
    Crowd(Vec<(Part, usize)>),
    Peek(Vec<Part>),
    Refund(usize, usize, u32),
    Reset(usize, usize),
    Grant(usize, usize, u32),
    Ban(usize, usize, Duration),
    Leave(usize),
    Renew(usize),
    Change(usize, Limit),
    Pass(u64),
}

#[derive(Clone, Debug)]
struct Part {
    limit: usize,
    key: usize,
    cost: u32,
    up_to: Option<Duration>,
}

fn micros(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> + Clone {
    range.prop_map(Duration::from_micros)
}

/// Periods and windows from microseconds to weeks.
fn spans() -> impl Strategy<Value = Duration> + Clone {
    prop_oneof![
        micros(1..1_000),
        micros(1_000..10_000_000),
        (1_u64..86_400 * 7).prop_map(Duration::from_secs),
        Just(Duration::from_secs(1)),
        Just(Duration::from_secs(3_600)),
    ]
}

fn rates() -> impl Strategy<Value = Rate> + Clone {
    let amounts = prop_oneof![1_u64..100, 1_u64..1_000_000_000];
    (amounts, spans()).prop_map(|(amount, span)| Rate::new(amount, span).expect("a rate"))
}

fn units() -> impl Strategy<Value = u32> + Clone {
    prop_oneof![5 => 1_u32..20, 2 => 1_u32..5_000, 1 => 1_u32..=u32::MAX]
}

fn token_buckets() -> impl Strategy<Value = Limit> {
    (rates(), units(), any::<u32>(), any::<bool>()).prop_map(|(rate, burst, initial, short)| {
        let bucket = TokenBucket::new(rate, burst).expect("a limit");
        let initial = if short { initial % (burst.saturating_add(1)) } else { burst };
        bucket.with_initial(initial).expect("an initial level").into()
    })
}

fn limits() -> impl Strategy<Value = Limit> {
    let interval =
        (1_u64..1_000, spans(), units(), any::<u32>()).prop_map(|(amount, span, burst, initial)| {
            let bucket = TokenBucket::new(Rate::new(amount, span).expect("a rate"), burst).expect("a limit");
            let bucket = bucket.with_initial(initial % burst.saturating_add(1)).expect("an initial level");
            bucket.with_refill(Refill::Interval).into()
        });
    let leaky =
        (rates(), units(), any::<u32>(), any::<bool>()).prop_map(|(rate, capacity, after, delays)| {
            let bucket = LeakyBucket::new(rate, capacity).expect("a limit");
            let delay = if delays { Delay::After(after % capacity + 1) } else { Delay::None };
            bucket.with_delay(if capacity == u32::MAX { Delay::None } else { delay }).expect("a delay").into()
        });
    let bursty = (rates(), spans())
        .prop_map(|(rate, burst)| SmoothBursty::new(rate).with_max_burst(burst).expect("a limit").into());
    let warming = (rates(), spans(), 1.0..9.0).prop_map(|(rate, warmup, cold)| {
        SmoothWarmingUp::new(rate, warmup).and_then(|it| it.with_cold_factor(cold)).expect("a limit").into()
    });
    let fixed = (units(), spans(), 0..4).prop_map(|(limit, window, align)| {
        let window = FixedWindow::new(limit, window).expect("a limit");
        match align {
            0 => window,
            1 => window.with_align(Align::FirstHit),
            2 => FixedWindow::forever(limit).expect("a limit"),
            _ => FixedWindow::calendar(limit, Calendar::new(Unit::Day, "Europe/Paris").expect("a zone"))
                .expect("a limit"),
        }
        .into()
    });
    let log = (units(), spans())
        .prop_map(|(limit, window)| SlidingLog::new(limit, window).expect("a limit").into());
    let window = (units(), spans(), 1_u32..20).prop_map(|(limit, window, parts)| {
        let precision = Duration::from_micros((window.as_micros() as u64 / u64::from(parts)).max(1));
        SlidingWindow::new(limit, window, precision).expect("a limit").into()
    });
    let counter = (units(), spans())
        .prop_map(|(limit, window)| SlidingCounter::new(limit, window).expect("a limit").into());
    let concurrency =
        (1_u32..6, spans()).prop_map(|(limit, hold)| Concurrency::new(limit, hold).expect("a limit").into());
    prop_oneof![
        3 => token_buckets(),
        1 => interval,
        2 => leaky,
        1 => bursty,
        1 => warming,
        2 => fixed,
        1 => log,
        1 => window,
        1 => counter,
        1 => concurrency,
    ]
}

fn part() -> impl Strategy<Value = Part> + Clone {
    let cost = prop_oneof![1 => Just(0_u32), 6 => 1_u32..4, 2 => 1_u32..30, 1 => any::<u32>()];
    let up_to = prop_oneof![
        4 => Just(None),
        1 => Just(Some(Duration::ZERO)),
        2 => (0_u64..2_000_000).prop_map(|it| Some(Duration::from_micros(it))),
        1 => Just(Some(Duration::from_secs(100_000))),
    ];
    (0..3_usize, 0..KEYS.len(), cost, up_to).prop_map(|(limit, key, cost, up_to)| Part {
        limit,
        key,
        cost,
        up_to,
    })
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    prop_oneof![3 => prop::collection::vec(part(), 1..2), 2 => prop::collection::vec(part(), 1..5)]
}

/// A charge that does not wait.
fn at_once() -> impl Strategy<Value = Part> + Clone {
    let up_to = prop_oneof![Just(None), Just(Some(Duration::ZERO))];
    (0..3_usize, 0..KEYS.len(), 1_u32..4, up_to).prop_map(|(limit, key, cost, up_to)| Part {
        limit,
        key,
        cost,
        up_to,
    })
}

/// Buckets that a crowd comes to, each once: of unequal charges on one bucket, who came first would matter.
fn crowds() -> impl Strategy<Value = Op> {
    let one = (part(), 2_usize..40).prop_map(|of_one| vec![of_one]);
    let several = prop_oneof![
        prop::collection::vec((part(), 1_usize..8), 2..8),
        prop::collection::vec((at_once(), 1_usize..8), 2..8),
    ];
    let several = several.prop_map(|mut crowd| {
        let mut seen = HashSet::new();
        crowd.retain(|(part, _)| seen.insert((part.limit, part.key)));
        crowd
    });
    prop_oneof![one, several].prop_map(Op::Crowd)
}

fn ops() -> impl Strategy<Value = Op> {
    let pass = prop_oneof![1_u64..100, 1_u64..1_000_000, 1_u64..60_000_000, 1_u64..100_000_000_000];
    let place = || (0..3_usize, 0..KEYS.len());
    prop_oneof![
        12 => parts().prop_map(Op::Check),
        3 => crowds(),
        2 => parts().prop_map(Op::Peek),
        1 => (place(), 1_u32..5).prop_map(|((limit, key), units)| Op::Refund(limit, key, units)),
        1 => place().prop_map(|(limit, key)| Op::Reset(limit, key)),
        1 => (place(), 1_u32..5).prop_map(|((limit, key), units)| Op::Grant(limit, key, units)),
        1 => (place(), 0_u64..2_000_000)
            .prop_map(|((limit, key), it)| Op::Ban(limit, key, Duration::from_micros(it))),
        1 => (0..9_usize).prop_map(Op::Leave),
        1 => (0..9_usize).prop_map(Op::Renew),
        1 => (0..3_usize, limits()).prop_map(|(limit, to)| Op::Change(limit, to)),
        10 => pass.prop_map(Op::Pass),
    ]
}

/// A store on a clock that a test moves, and what the test holds there.
struct Side<S: Store> {
    store: S,
    clock: ManualClock,
    limits: Vec<S::Limit>,
    permits: Vec<(Vec<Part>, PermitId)>,
}

/// What an operation was answered.
#[derive(Debug, PartialEq)]
enum Answer {
    Set { decision: Decision, denied_by: Option<usize>, statuses: Vec<Standing>, holds: bool },
    Crowd(Vec<String>),
    Left(u32),
    Renewed(bool),
    Done,
}

/// All that can be asked of a status.
#[derive(Debug, PartialEq)]
struct Standing {
    decision: Decision,
    limit: u32,
    remaining: u32,
    reset_after: Option<Duration>,
    decided_by: DecidedBy,
}

impl<S: Store> Side<S> {
    fn new(store: S, clock: ManualClock, limits: &[Limit]) -> Result<Self, StoreError> {
        let named =
            |(place, limit): (usize, &Limit)| store.add_named(&format!("limit-{place}"), limit.clone());
        let limits = limits.iter().enumerate().map(named).collect::<Result<_, _>>()?;
        Ok(Self { store, clock, limits, permits: Vec::new() })
    }

    fn charges(&self, parts: &[Part]) -> Vec<Charge<'_, S::Limit>> {
        let charge = |part: &Part| {
            let charge = Charge::new(&self.limits[part.limit], KEYS[part.key]).cost(part.cost);
            match part.up_to {
                Some(up_to) => charge.up_to(up_to),
                None => charge,
            }
        };
        parts.iter().map(charge).collect()
    }

    /// Whether a key of this limit stands as deep as the one-word state of a bucket in memory goes: 2^62 credits.
    async fn is_at_its_end(&self, limit: usize, numbers: &Limit) -> bool {
        let Numbers::Bucket(it) = numbers.numbers() else { return false };
        for key in KEYS {
            let peeked = self.store.peek(&[Charge::new(&self.limits[limit], key).cost(0)]).await;
            let reset = peeked.expect("an answer").statuses()[0].reset_after().unwrap_or_default();
            if (reset.as_nanos() + 1_000) * u128::from(it.earn) >= 1 << 62 {
                return true;
            }
        }
        false
    }

    async fn obey(&mut self, op: &Op) -> Result<Answer, StoreError> {
        let key = |key: usize| Key::from(KEYS[key]);
        match op {
            Op::Check(parts) => {
                let set = self.store.check(&self.charges(parts)).await?;
                if let Some(permit) = set.permit() {
                    self.permits.push((parts.clone(), permit));
                }
                Ok(Answer::of(set))
            }
            Op::Crowd(crowd) => {
                let parts: Vec<_> = crowd.iter().map(|(part, _)| part.clone()).collect();
                let (charges, counts) = (self.charges(&parts), crowd.iter().map(|(_, count)| *count));
                let buckets = charges.chunks(1).enumerate();
                let askers: Vec<_> =
                    buckets.zip(counts).flat_map(|(bucket, count)| vec![bucket; count]).collect();
                let asked = askers.iter().map(|(_, charge)| self.store.check(charge)).collect();
                let mut told = Vec::new();
                for ((place, charge), set) in askers.iter().zip(join_all(asked).await) {
                    let set = set?;
                    // Whoever of a crowd holds a slot is nobody's business here.
                    if let Some(permit) = set.permit() {
                        self.store.leave(charge, permit).await?;
                    }
                    told.push(format!("{place}: {:?}", Answer::of(set)));
                }
                // Who came first nobody can say, only what was told.
                told.sort();
                Ok(Answer::Crowd(told))
            }
            Op::Peek(parts) => Ok(Answer::of(self.store.peek(&self.charges(parts)).await?)),
            Op::Refund(limit, at, units) => {
                self.store.refund(&self.limits[*limit], key(*at), *units).await.map(|()| Answer::Done)
            }
            Op::Reset(limit, at) => {
                self.store.reset(&self.limits[*limit], key(*at)).await.map(|()| Answer::Done)
            }
            Op::Grant(limit, at, units) => {
                self.store.grant(&self.limits[*limit], key(*at), *units).await.map(|()| Answer::Done)
            }
            Op::Ban(limit, at, lasting) => {
                self.store.ban(&self.limits[*limit], key(*at), *lasting).await.map(|()| Answer::Done)
            }
            Op::Leave(nth) | Op::Renew(nth) if *nth >= self.permits.len() => Ok(Answer::Done),
            Op::Leave(nth) => {
                let (parts, permit) = self.permits.remove(*nth);
                self.store.leave(&self.charges(&parts), permit).await.map(Answer::Left)
            }
            Op::Renew(nth) => {
                let (parts, permit) = &self.permits[*nth];
                self.store.renew(&self.charges(parts), *permit).await.map(Answer::Renewed)
            }
            Op::Change(limit, to) => {
                self.store.change_limit(&self.limits[*limit], to.clone()).map(|()| Answer::Done)
            }
            Op::Pass(micros) => {
                self.clock.advance(Duration::from_micros(*micros));
                Ok(Answer::Done)
            }
        }
    }
}

impl Answer {
    fn of(set: SetStatus) -> Self {
        let decision = foreseeable(set.decision());
        let is_beyond = decision == Decision::Deny(Retry::After(FARTHEST));
        Self::Set {
            decision,
            // Of two refusals beyond that, nobody can say which is longer.
            denied_by: set.denied_by().filter(|_| !is_beyond),
            statuses: set.statuses().iter().map(Standing::of).collect(),
            holds: set.permit().is_some(),
        }
    }
}

impl Standing {
    fn of(status: &Status) -> Self {
        Self {
            decision: foreseeable(status.decision()),
            limit: status.limit(),
            remaining: status.remaining(),
            reset_after: status.reset_after().map(|after| after.min(FARTHEST)),
            decided_by: status.decided_by(),
        }
    }
}

/// Redis tells no time beyond 142 years.
const FARTHEST: Duration = Duration::from_micros(1 << 52);

fn foreseeable(decision: Decision) -> Decision {
    match decision {
        Decision::Wait(wait) => Decision::Wait(wait.min(FARTHEST)),
        Decision::Deny(Retry::After(after)) => Decision::Deny(Retry::After(after.min(FARTHEST))),
        other => other,
    }
}

fn agree(limits: &[Limit], ops: &[Op]) -> Result<(), TestCaseError> {
    let server = server();
    server.block_on(async {
        let memory_clock = ManualClock::new();
        let memory =
            MemoryStore::with_clock(Bounds { max_keys: 100, ..Bounds::default() }, memory_clock.clone());
        let mut memory = Side::new(memory, memory_clock, limits).expect("a memory store takes any limit");
        let clock = ManualClock::new();
        let redis = server.store_at(clock.clone());
        // Some numbers are finer than Redis keeps, and refused there.
        let Ok(mut redis) = Side::new(redis, clock, limits) else { return Ok(()) };
        let mut changed = [false; 3];
        for (place, op) in ops.iter().enumerate() {
            // Redis converts a key when it is next charged: of two changes in between it sees the last, where memory rounds
            // twice. So each limit changes once here.
            if let Op::Change(limit, _) = op
                && std::mem::replace(&mut changed[*limit], true)
            {
                continue;
            }
            let expected = memory.obey(op).await.expect("a memory store answers");
            // A booking that a change carries beyond what memory's word can hold is cut there, as documented; Redis goes on.
            if let Op::Change(limit, to) = op
                && memory.is_at_its_end(*limit, to).await
            {
                return Ok(());
            }
            match redis.obey(op).await {
                // As above.
                Err(StoreError::Unsupported { .. }) => return Ok(()),
                Ok(answer) => {
                    prop_assert_eq!(answer, expected, "operation {} of {:?}: {:?}", place, limits, op);
                }
                Err(error) => prop_assert!(false, "operation {place} of {limits:?}: {op:?}: {error}"),
            }
        }
        Ok(())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn buckets_agree_on_changes(
        limits in prop::collection::vec(token_buckets(), 3),
        ops in prop::collection::vec(prop_oneof![
            4 => ops(),
            1 => (0..3_usize, token_buckets()).prop_map(|(limit, to)| Op::Change(limit, to)),
        ], 1..60),
    ) {
        agree(&limits, &ops)?;
    }

    /// What many callers bring to buckets in ordinary use, which goes by the short ways.
    #[test]
    fn crowds_at_full_buckets_agree(
        limits in prop::collection::vec((rates(), units()).prop_map(|(rate, burst)| {
            TokenBucket::new(rate, burst).expect("a limit").into()
        }), 3),
        ops in prop::collection::vec(prop_oneof![
            3 => crowds(),
            1 => parts().prop_map(Op::Check),
            2 => (1_u64..2_000_000).prop_map(Op::Pass),
        ], 1..30),
    ) {
        agree(&limits, &ops)?;
    }

    #[test]
    fn memory_and_redis_agree(
        limits in prop::collection::vec(limits(), 3),
        ops in prop::collection::vec(ops(), 1..60),
    ) {
        agree(&limits, &ops)?;
    }
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(400)
}
