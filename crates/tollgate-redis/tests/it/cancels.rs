//! Cancelling a reservation, against a plain model: what comes back is its cost less what was charged after it, and the bound
//! holds over the times at which reservations are due.

use crate::server::server;
use proptest::prelude::*;
use std::time::Duration;
use testkit::Reply;
use tollgate::{
    Charge, Delay, LeakyBucket, Limit, ManualClock, Rate, Refill, SmoothBursty, SmoothWarmingUp, Status,
    TokenBucket,
};
use tollgate_redis::{RedisLimit, RedisReservation, RedisStore};

#[derive(Clone, Debug)]
enum Op {
    Reserve(u32),
    /// Cancels one of those that are held.
    Cancel(usize),
    /// Settles one of those at a share of its cost.
    Settle(usize, u32),
    Pass(u64),
}

/// In half of the sequences no time passes: all that is reserved piles up, and is cancelled in any order.
fn ops() -> impl Strategy<Value = Vec<Op>> {
    let [cancels, at_once] = [(); 2].map(|()| (0_usize..8).prop_map(Op::Cancel));
    let op = prop_oneof![
        5 => (1_u32..6).prop_map(Op::Reserve),
        3 => cancels,
        3 => (1_u64..900_000).prop_map(Op::Pass),
    ];
    let op_at_once = prop_oneof![3 => (1_u32..6).prop_map(Op::Reserve), 2 => at_once];
    prop_oneof![prop::collection::vec(op, 1..60), prop::collection::vec(op_at_once, 1..60)]
}

/// With settlements among them, half of the time.
fn ops_and_settlements() -> impl Strategy<Value = Vec<Op>> {
    let settle = (0_usize..8, 0_u32..3).prop_map(|(nth, share)| Op::Settle(nth, share));
    let settles = prop::collection::vec((0_usize..40, settle), 0..6);
    let both = (ops(), settles).prop_map(|(mut ops, settles)| {
        settles.into_iter().for_each(|(place, settle)| ops.insert(place.min(ops.len()), settle));
        ops
    });
    prop_oneof![ops(), both]
}

/// A bucket as one number: until when its credit line is used, in credits, of which a microsecond earns `earn` and a unit
/// costs `price`.
struct Model {
    earn: u128,
    price: u128,
    burst: u128,
    used_until: u128,
    /// All that was reserved, less what the last one gave back.
    reserved: u128,
}

/// A reservation of the model.
struct Reserved {
    cost: u32,
    due: u64,
    used_until: u128,
    reserved: u128,
}

impl Model {
    fn line(&self, now: u64) -> u128 {
        u128::from(now) * self.earn
    }

    fn reserve(&mut self, now: u64, cost: u32) -> Reserved {
        let line = self.line(now);
        self.used_until = self.used_until.max(line) + u128::from(cost) * self.price;
        let over = (self.used_until - line).saturating_sub(self.burst * self.price);
        let due = now + u64::try_from(over.div_ceil(self.earn)).expect("in time");
        self.reserved += u128::from(cost) * self.price;
        Reserved { cost, due, used_until: self.used_until, reserved: self.reserved }
    }

    /// Gives back up to so many units, and says how many whole ones came back.
    fn give_back(&mut self, now: u64, of: &Reserved, units: u32, is_unused: bool) -> u32 {
        let line = self.line(now);
        let units = u128::from(units) * self.price;
        let is_last = self.reserved == of.reserved;
        let later = if is_unused { self.reserved - of.reserved } else { 0 };
        let there = of.used_until.saturating_sub(line);
        let back = units.saturating_sub(later).min(there);
        let before = self.used_until.max(line);
        self.used_until = (before - back).max(line);
        // It is as if the last one had reserved less.
        self.reserved -= if is_last { before - self.used_until } else { 0 };
        u32::try_from((before - self.used_until) / self.price).expect("few")
    }
}

struct Side {
    clock: ManualClock,
    store: RedisStore,
    limit: RedisLimit,
}

impl Side {
    fn new(limit: impl Into<Limit>) -> Self {
        let clock = ManualClock::new();
        let store = server().store_at(clock.clone());
        let limit = store.add("limit", limit).expect("a limit");
        Self { clock, store, limit }
    }

    async fn reserve(&self, cost: u32) -> RedisReservation {
        let charge = [Charge::new(&self.limit, "k").cost(cost)];
        self.store.reserve(&charge, Duration::MAX).await.expect("a turn")
    }

    async fn peek(&self) -> Status {
        let told = self.store.peek(&[Charge::new(&self.limit, "k").cost(0)]).await.expect("an answer");
        told.statuses()[0]
    }

    fn now(&self) -> u64 {
        use tollgate::Clock;
        self.clock.now().as_nanos() / 1_000
    }
}

/// Units at the times when they may be used: no stretch of time has more than burst + rate * t.
fn within_bound(mut used: Vec<(u64, u32)>, model: &Model) -> Result<(), TestCaseError> {
    used.sort_unstable();
    for (first, (from, _)) in used.iter().enumerate() {
        let mut units = 0;
        for (to, cost) in &used[first..] {
            units += u128::from(*cost);
            // A due time is rounded up to the microsecond.
            let most = model.burst * model.price + u128::from(to - from + 1) * model.earn;
            prop_assert!(units * model.price <= most, "{units} units between {from} and {to}: {used:?}");
        }
    }
    Ok(())
}

async fn agree(amount: u64, burst: u32, is_leaky: bool, ops: Vec<Op>) -> Result<(), TestCaseError> {
    let rate = Rate::new(amount, Duration::from_secs(1)).expect("a rate");
    let side = match is_leaky {
        true => Side::new(LeakyBucket::new(rate, burst).expect("a limit")),
        false => Side::new(TokenBucket::new(rate, burst).expect("a limit")),
    };
    let mut model =
        Model { earn: amount.into(), price: 1_000_000, burst: burst.into(), used_until: 0, reserved: 0 };
    let mut held = Vec::new();
    let (mut used, mut is_settled) = (Vec::new(), false);
    for op in ops {
        let now = side.now();
        match op {
            Op::Reserve(cost) => {
                let cost = cost.min(burst);
                let (turn, reserved) = (side.reserve(cost).await, model.reserve(now, cost));
                prop_assert_eq!(turn.due_in(), Duration::from_micros(reserved.due - now));
                held.push((turn, reserved));
            }
            Op::Cancel(nth) if nth < held.len() => {
                let (turn, reserved) = held.remove(nth);
                let is_due = turn.is_due();
                let back = turn.cancel().await.expect("an answer");
                if is_due {
                    prop_assert_eq!(back, [0]);
                    used.push((reserved.due, reserved.cost));
                } else {
                    prop_assert_eq!(back, [model.give_back(now, &reserved, reserved.cost, true)]);
                }
            }
            Op::Settle(nth, share) if nth < held.len() => {
                let (turn, reserved) = held.remove(nth);
                let actual = reserved.cost * share / 3;
                let is_due = turn.is_due();
                let back = turn.settle_each(&[actual]).await.expect("an answer");
                let expected = model.give_back(now, &reserved, reserved.cost - actual, !is_due);
                prop_assert_eq!(back, [expected]);
                is_settled = true;
                used.push((reserved.due, actual));
            }
            Op::Pass(micros) => side.clock.advance(Duration::from_micros(micros)),
            Op::Cancel(_) | Op::Settle(..) => {}
        }
        let now = side.now();
        let level = model.used_until.saturating_sub(model.line(now));
        let full = Duration::from_micros(u64::try_from(level.div_ceil(model.earn)).expect("in time"));
        prop_assert_eq!(side.peek().await.reset_after(), Some(full));
        if level == 0 {
            // All of it is paid for. What Redis forgets here it does not give back.
            for (turn, reserved) in held.drain(..) {
                turn.keep();
                used.push((reserved.due, reserved.cost));
            }
        }
    }
    for (turn, reserved) in held {
        turn.keep();
        used.push((reserved.due, reserved.cost));
    }
    // What an estimate was too high by comes back in front of those who are booked behind it.
    if is_settled { Ok(()) } else { within_bound(used, &model) }
}

/// As plain as it gets: one bucket's due times may be shared with whoever comes later, never taken twice.
async fn smooth_is_bounded(limit: Limit, micros_a_unit: u64, ops: Vec<Op>) -> Result<(), TestCaseError> {
    let side = Side::new(limit);
    let mut held: Vec<(RedisReservation, u64, u32)> = Vec::new();
    let mut used: Vec<(u64, u32)> = Vec::new();
    for op in ops {
        let now = side.now();
        match op {
            Op::Reserve(cost) => {
                let turn = side.reserve(cost).await;
                let due = now + turn.due_in().as_micros() as u64;
                held.push((turn, due, cost));
            }
            Op::Cancel(nth) if nth < held.len() => {
                let (turn, due, cost) = held.remove(nth);
                if turn.is_due() {
                    used.push((due, cost));
                }
                let back = turn.cancel().await.expect("an answer");
                prop_assert!(back[0] <= cost);
            }
            Op::Pass(micros) => side.clock.advance(Duration::from_micros(micros)),
            _ => {}
        }
    }
    for (turn, due, cost) in held {
        turn.keep();
        used.push((due, cost));
    }
    used.sort_unstable();
    // What is stored (a second's permits) is free; whoever is last has not paid yet.
    let stored = 1_000_000 / micros_a_unit;
    for (first, (from, _)) in used.iter().enumerate() {
        let mut units = 0;
        for (to, cost) in &used[first..] {
            // Every charge drops its part of a microsecond.
            let most = stored + 1 + (to - from + 40) / micros_a_unit;
            prop_assert!(units <= most, "{units} units before {to}, from {from}: {used:?}");
            units += u64::from(*cost);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn a_cancelled_reservation_returns_what_nothing_stands_on(
        amount in prop_oneof![Just(1_u64), Just(3), Just(10), 1_u64..5_000], burst in 1_u32..12, is_leaky: bool, ops in ops_and_settlements(),
    ) {
        server().block_on(agree(amount, burst, is_leaky, ops))?;
    }

    #[test]
    fn smooth_limiters_keep_their_bound_when_reservations_are_cancelled(
        warms: bool, rate in prop_oneof![Just(5_u32), Just(10), Just(100)], ops in ops(),
    ) {
        let a_second = Rate::per_second(rate).expect("a rate");
        let limit: Limit = match warms {
            true => SmoothWarmingUp::new(a_second, Duration::from_secs(1)).expect("a limit").into(),
            false => SmoothBursty::new(a_second).into(),
        };
        server().block_on(smooth_is_bounded(limit, 1_000_000 / u64::from(rate), ops))?;
    }
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(200)
}

/// What came back of a later reservation is still something that was charged later.
#[test]
fn cancelling_the_second_and_then_the_first_leaves_the_third_its_units() {
    server().block_on(async {
        let refills = [Refill::Continuous, Refill::Interval];
        let bucket = TokenBucket::new(Rate::per_second(1).expect("a rate"), 3).expect("a limit");
        for limit in refills.map(|refill| Limit::from(bucket.with_refill(refill))) {
            let side = Side::new(limit);
            for _ in 0..3 {
                side.reserve(1).await.keep();
            }
            let [first, second, third] =
                [side.reserve(3).await, side.reserve(3).await, side.reserve(1).await];
            assert_eq!([&first, &second, &third].map(|turn| turn.due_in().as_secs()), [3, 6, 7]);
            assert_eq!(second.cancel().await.expect("an answer"), [2]);
            assert_eq!(first.cancel().await.expect("an answer"), [0]);
            let last = side.reserve(3).await;
            assert_eq!(last.due_in().as_secs(), 8, "with the third, four units at 7 s are one too many");
            drop((third, last));
        }
    });
}

/// The count of what came back is in the key as long as it matters, and gone with the first charge after that: the short ways
/// of the script serve plain keys only.
#[test]
fn a_key_is_plain_again_once_what_came_back_no_longer_matters() {
    let clock = ManualClock::new();
    let store = server().builder().prefix("counted").clock(clock.clone()).open().expect("a store");
    let bucket = TokenBucket::new(Rate::per_second(1).expect("a rate"), 3).expect("a limit");
    let limit = store.add("l", bucket).expect("a limit");
    let is_plain = || match server().redis.command(&["GET", "counted:{k}:l"]) {
        Reply::Bulk(state) => state.get(1..4) == Some(b"tg2"),
        other => panic!("no state but {other:?}"),
    };
    server().block_on(async {
        let charge = [Charge::new(&limit, "k")];
        let three = [Charge::new(&limit, "k").cost(3)];
        assert!(store.check(&charge).await.expect("an answer").is_allow());
        let turn = store.reserve(&three, Duration::MAX).await.expect("a turn");
        assert!(is_plain(), "nothing has come back yet");
        assert_eq!(turn.cancel().await.expect("an answer"), [3]);
        assert!(is_plain(), "it was the last: it is as if it had never been");
        let turn = store.reserve(&three, Duration::MAX).await.expect("a turn");
        store.reserve(&charge, Duration::MAX).await.expect("a turn").keep();
        assert_eq!(turn.cancel().await.expect("an answer"), [2]);
        assert!(!is_plain());
        // All of it would have been paid for after 5 s.
        for (seconds, should_be_plain) in [(1, false), (2, false), (2, true), (0, true)] {
            clock.advance(Duration::from_secs(seconds));
            assert!(store.check(&charge).await.expect("an answer").is_allow());
            assert_eq!(is_plain(), should_be_plain);
        }
    });
}

/// The last one returns all of it, any other nothing: a charge of any size passes once the limiter is even.
#[test]
fn what_comes_back_of_a_smooth_reservation() {
    server().block_on(async {
        let rate = || Rate::per_second(10).expect("a rate");
        let limits: [Limit; 2] = [
            SmoothBursty::new(rate()).into(),
            SmoothWarmingUp::new(rate(), Duration::from_secs(1)).expect("a limit").into(),
        ];
        for limit in limits {
            let side = Side::new(limit);
            // From here on nothing is stored.
            side.reserve(20).await.keep();
            let first = side.reserve(4).await;
            let due = first.due_in();
            assert_eq!(first.cancel().await.expect("an answer"), [4]);
            let [first, second] = [side.reserve(4).await, side.reserve(4).await];
            assert_eq!(first.due_in(), due);
            let next = due + Duration::from_millis(800);
            assert_eq!(first.cancel().await.expect("an answer"), [0]);
            let last = side.reserve(1).await;
            assert_eq!(last.due_in(), next, "behind the second, as before");
            assert_eq!(
                second.cancel().await.expect("an answer"),
                [0],
                "not even what the last one leaves over"
            );
            assert_eq!(last.cancel().await.expect("an answer"), [1]);
            let after = side.reserve(1).await;
            assert_eq!(after.due_in(), next);
            drop(after);
        }
    });
}

/// As nginx has it: what was delayed has been charged.
#[test]
fn a_wait_at_a_delaying_bucket_is_charged_on_arrival_and_not_given_back() {
    server().block_on(async {
        let bucket = LeakyBucket::new(Rate::per_second(1).expect("a rate"), 5).expect("a limit");
        let side = Side::new(bucket.with_delay(Delay::After(1)).expect("a delay"));
        let charge = [Charge::new(&side.limit, "k")];
        side.store.wait(&charge).up_to(Duration::ZERO).await.expect("at once");
        let delayed = side.store.wait(&charge).up_to(Duration::from_secs(10));
        let is_over = tokio::time::timeout(Duration::from_millis(50), delayed).await;
        assert!(is_over.is_err(), "before its time");
        assert_eq!(side.peek().await.remaining(), 3);
    });
}
