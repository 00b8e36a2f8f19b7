//! The same reservations, cancelled and settled at the same times, in memory and in Redis: both return the same units and leave
//! the same behind.

use crate::server::server;
use proptest::prelude::*;
use std::time::Duration;
use tollgate::{
    Bounds, Charge, LeakyBucket, Limit, LimitHandle, ManualClock, MemoryStore, Rate, Refill, Reservation,
    SmoothBursty, SmoothWarmingUp, TokenBucket,
};
use tollgate_redis::{RedisLimit, RedisReservation, RedisStore};

#[derive(Clone, Debug)]
enum Op {
    Reserve(u32),
    Cancel(prop::sample::Index),
    /// Settles at a cost that may be higher than what was booked.
    Settle(prop::sample::Index, u32),
    Pass(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let index = any::<prop::sample::Index>;
    let at_once = || {
        prop_oneof![
            5 => (1_u32..9).prop_map(Op::Reserve),
            3 => index().prop_map(Op::Cancel),
            2 => (index(), 0_u32..9).prop_map(|(which, actual)| Op::Settle(which, actual)),
        ]
    };
    let over_time = prop_oneof![3 => at_once(), 1 => (1_u64..2_000_000).prop_map(Op::Pass)];
    prop_oneof![prop::collection::vec(at_once(), 1..60), prop::collection::vec(over_time, 1..60)]
}

fn limits() -> impl Strategy<Value = (Limit, u32)> {
    let amount = prop_oneof![Just(1_u64), Just(3), 1_u64..20, 1_u64..5_000];
    (0..5, amount, 1_u32..12, any::<bool>()).prop_map(|(kind, amount, burst, is_short)| {
        let rate = Rate::new(amount, Duration::from_secs(1)).expect("a rate");
        let tokens = TokenBucket::new(rate, burst).expect("a limit");
        let tokens = tokens.with_initial(if is_short { burst / 2 } else { burst }).expect("an initial level");
        let limit: Limit = match kind {
            0 => tokens.into(),
            1 => tokens.with_refill(Refill::Interval).into(),
            2 => LeakyBucket::new(rate, burst).expect("a limit").into(),
            3 => SmoothBursty::new(rate).into(),
            _ => SmoothWarmingUp::new(rate, Duration::from_secs(u64::from(burst))).expect("a limit").into(),
        };
        // A smooth limiter takes any cost.
        (limit, if kind < 3 { burst } else { u32::MAX })
    })
}

/// One clock for both.
struct Stores {
    clock: ManualClock,
    memory: MemoryStore<ManualClock>,
    of_memory: LimitHandle,
    redis: RedisStore,
    of_redis: RedisLimit,
}

struct Pair<'a> {
    memory: Reservation<'a, MemoryStore<ManualClock>>,
    redis: RedisReservation,
}

impl Stores {
    fn new(limit: &Limit) -> Self {
        let clock = ManualClock::new();
        let memory = MemoryStore::with_clock(Bounds::default(), clock.clone());
        let of_memory = memory.add("of_memory", limit.clone()).expect("a limit");
        let redis = server().store_at(clock.clone());
        let of_redis = redis.add("limit", limit.clone()).expect("a limit");
        Self { clock, memory, of_memory, redis, of_redis }
    }

    async fn reserve(&self, cost: u32) -> Pair<'_> {
        let in_memory = [Charge::new(&self.of_memory, "k").cost(cost)];
        let in_redis = [Charge::new(&self.of_redis, "k").cost(cost)];
        let memory = self.memory.reserve(&in_memory, Duration::MAX).expect("a turn");
        let redis = self.redis.reserve(&in_redis, Duration::MAX).await.expect("a turn");
        Pair { memory, redis }
    }

    /// Compares what is left, and says whether that is all.
    async fn are_idle(&self) -> Result<bool, TestCaseError> {
        let memory = self.memory.peek(&[Charge::new(&self.of_memory, "k").cost(0)]).expect("an answer");
        let redis = self.redis.peek(&[Charge::new(&self.of_redis, "k").cost(0)]).await.expect("an answer");
        let [memory, redis] = [&memory, &redis].map(|set| {
            let status = set.statuses()[0];
            (status.remaining(), status.reset_after())
        });
        prop_assert_eq!(redis, memory, "what is left");
        Ok(redis.1 == Some(Duration::ZERO))
    }
}

async fn agree(limit: &Limit, most: u32, ops: Vec<Op>) -> Result<(), TestCaseError> {
    let stores = Stores::new(limit);
    let mut held: Vec<Pair<'_>> = Vec::new();
    for op in ops {
        match op {
            Op::Reserve(cost) => {
                let pair = stores.reserve(cost.min(most)).await;
                prop_assert_eq!(pair.redis.due_in(), pair.memory.due_in());
                held.push(pair);
            }
            Op::Cancel(which) if !held.is_empty() => {
                let Pair { memory, redis } = held.remove(which.index(held.len()));
                prop_assert_eq!(redis.cancel().await.expect("an answer"), memory.cancel());
            }
            Op::Settle(which, actual) if !held.is_empty() => {
                let Pair { memory, redis } = held.remove(which.index(held.len()));
                let back = redis.settle_each(&[actual]).await.expect("an answer");
                prop_assert_eq!(back, memory.settle_each(&[actual]));
            }
            Op::Pass(micros) => stores.clock.advance(Duration::from_micros(micros)),
            Op::Cancel(_) | Op::Settle(..) => {}
        }
        if stores.are_idle().await? {
            // All of it is paid for. What Redis forgets here it does not give back.
            for Pair { memory, redis } in held.drain(..) {
                memory.keep();
                redis.keep();
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn memory_and_redis_return_the_same((limit, most) in limits(), ops in ops()) {
        server().block_on(agree(&limit, most, ops))?;
    }
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(400)
}
