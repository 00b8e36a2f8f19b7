//! One schedule, asked of the library and through every door: the same decisions.
//!
//! Each has a store of its own on a clock of its own, and all clocks are moved alike. Asked are limits that every door can
//! express: those that make nobody wait, which Redis clients and Envoy never do. `CL.THROTTLE` knows buckets alone.

use super::{
    json, resp,
    rls::stage::{Rig, hits, rules},
};
use proptest::prelude::*;
use serde_json::json;
use std::time::Duration;
use tollgate::{Bounds, Charge, ManualClock, MemoryStore};
use tollgate_rules::{ParsedLimit, parse_limit};
use tollgate_service::{JsonSettings, rls::messages::Code};

const LIMITS: [(&str, &str); 7] = [
    ("bucket", "token_bucket: { rate: 7/s, burst: 5 }"),
    ("interval", "token_bucket: { rate: 3/s, burst: 6, refill: interval }"),
    ("leaky", "leaky_bucket: { rate: 3/s, capacity: 4 }"),
    ("fixed", "fixed_window: { limit: 4, window: 700ms, align: first_hit }"),
    ("log", "sliding_log: { limit: 4, window: 700ms }"),
    ("window", "sliding_window: { limit: 4, window: 700ms, precision: 100ms }"),
    ("counter", "sliding_counter: { limit: 4, window: 700ms }"),
];

/// The bucket above, as `CL.THROTTLE` has it: how many more than one at once, how many, in how many seconds.
const THROTTLE: &str = "4 7 1";

const KEYS: [&str; 2] = ["alice", "bob"];

/// How long after the one before, which limit, whose, how many units.
fn schedule() -> impl Strategy<Value = Vec<(u64, usize, usize, u32)>> {
    prop::collection::vec((0..400_000_u64, 0..LIMITS.len(), 0..KEYS.len(), 0..7_u32), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_door_decides_as_the_library_does(schedule in schedule()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let own = ManualClock::new();
        let library = MemoryStore::with_clock(Bounds::default(), own.clone());
        let limits = LIMITS.map(|(_, numbers)| match parse_limit(numbers) {
            Ok(ParsedLimit::Limit(limit)) => library.add(limit).expect("room"),
            other => panic!("{other:?}"),
        });
        let named: String = LIMITS.iter().map(|(name, numbers)| format!("  {name}: {{ {numbers} }}\n")).collect();
        let file = format!("version: 1\nlimits:\n{named}");
        let (http, http_clock) = json::stage::memory_with(&file, JsonSettings::default());
        let redis = resp::stage::open_with(&file, |_| {});
        let descriptors: String =
            LIMITS.iter().map(|(name, numbers)| format!("- {{ key: {name}, algorithm: {{ {numbers} }} }}\n")).collect();
        let envoy = Rig::of(rules("", &format!("domain: d\ndescriptors:\n{descriptors}")));
        let (mut http_client, mut redis_client) = (http.client(), redis.connect());

        for (micros, limit, key, cost) in schedule {
            let pause = Duration::from_micros(micros);
            for clock in [&own, &http_clock, &redis.clock, &envoy.clock] {
                clock.advance(pause);
            }
            let (name, key) = (LIMITS[limit].0, KEYS[key]);
            let expected = library.check_one(&Charge::new(&limits[limit], key).cost(cost)).expect("decided");

            let asked = json!({ "limit": name, "key": key, "cost": cost }).to_string();
            let told = http_client.post("/v1/check", &asked).json();
            prop_assert_eq!(&told["allow"], !expected.is_deny(), "JSON, {} {}", name, cost);
            prop_assert_eq!(&told["remaining"], expected.remaining(), "JSON, {} {}", name, cost);

            let told = redis_client.command(&["TG.CHECK", name, key, &cost.to_string()]).expect("an answer");
            let told = resp::stage::numbers(&told);
            prop_assert_eq!(told[0] == 0, !expected.is_deny(), "TG.CHECK, {} {}", name, cost);
            prop_assert_eq!(told[2], i64::from(expected.remaining()), "TG.CHECK, {} {}", name, cost);

            if name == "bucket" {
                let asked = format!("CL.THROTTLE {key} {THROTTLE} {cost}");
                let words: Vec<_> = asked.split(' ').collect();
                let told = resp::stage::numbers(&redis_client.command(&words).expect("an answer"));
                prop_assert_eq!(told[0] == 0, !expected.is_deny(), "CL.THROTTLE, {}", cost);
                prop_assert_eq!(told[2], i64::from(expected.remaining()), "CL.THROTTLE, {}", cost);
            }

            let told = runtime.block_on(envoy.ask([hits(&[(name, key)], cost.into())]));
            prop_assert_eq!(told.overall_code() == Code::Ok, !expected.is_deny(), "Envoy, {} {}", name, cost);
            // Envoy's service says that a refused descriptor has nothing left.
            let left = if expected.is_deny() { 0 } else { expected.remaining() };
            prop_assert_eq!(told.statuses[0].limit_remaining, left, "Envoy, {} {}", name, cost);
        }
    }
}
