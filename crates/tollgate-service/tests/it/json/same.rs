//! The same charges at the same times are decided the same by the library and through this door.

use super::stage::{Client, memory_with};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;
use tollgate::{Bounds, Charge, Decision, ManualClock, MemoryStore, Retry, Status};
use tollgate_rules::{ParsedLimit, parse_limit};
use tollgate_service::JsonSettings;

const LIMITS: [(&str, &str); 8] = [
    ("bucket", "token_bucket: { rate: 7/s, burst: 5 }"),
    ("interval", "token_bucket: { rate: 3/s, burst: 6, refill: interval }"),
    ("leaky", "leaky_bucket: { rate: 3/s, capacity: 4 }"),
    ("paced", "leaky_bucket: { rate: 3/s, capacity: 4, delay: 2 }"),
    ("fixed", "fixed_window: { limit: 4, window: 700ms }"),
    ("log", "sliding_log: { limit: 4, window: 700ms }"),
    ("counter", "sliding_counter: { limit: 4, window: 700ms }"),
    ("smooth", "smooth_bursty: { rate: 5/s }"),
];

#[derive(Clone, Debug)]
struct Step {
    pause: Duration,
    charges: Vec<(usize, u8, u32)>,
    how: How,
}

#[derive(Clone, Copy, Debug)]
enum How {
    Check,
    Peek,
    Refund,
    Reset,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let how = prop_oneof![8 => Just(How::Check), 2 => Just(How::Peek), 1 => Just(How::Refund), 1 => Just(How::Reset)];
    let charges = prop::collection::vec((0..LIMITS.len(), 0..2_u8, 0..7_u32), 1..4);
    let step = (0..400_000_u64, charges, how);
    let step =
        step.prop_map(|(micros, charges, how)| Step { pause: Duration::from_micros(micros), charges, how });
    prop::collection::vec(step, 1..40)
}

/// What the door should tell of a charge.
fn told(status: &Status) -> Value {
    let millis = |time: Duration| u64::try_from(time.as_nanos().div_ceil(1_000_000)).expect("short");
    let (allow, wait, retry) = match status.decision() {
        Decision::Allow => (true, Duration::ZERO, Some(Duration::ZERO)),
        Decision::Wait(wait) => (true, wait, Some(Duration::ZERO)),
        Decision::Deny(Retry::After(after)) => (false, Duration::ZERO, Some(after)),
        Decision::Deny(_) => (false, Duration::ZERO, None),
    };
    let mut told = json!({
        "allow": allow, "wait_ms": millis(wait), "limit": status.limit(), "remaining": status.remaining(),
        "reset_after_ms": status.reset_after().map(millis), "retry_after_ms": retry.map(millis), "decided_by": "store",
    });
    if retry.is_none() {
        told["retry"] = json!("never");
    }
    told
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_door_decides_as_the_library_does(steps in steps()) {
        let rules: String = LIMITS.iter().map(|(name, numbers)| format!("  {name}: {{ {numbers} }}\n")).collect();
        let (stage, clock) = memory_with(&format!("version: 1\nlimits:\n{rules}"), JsonSettings::default());
        let own = ManualClock::new();
        let library = MemoryStore::with_clock(Bounds::default(), own.clone());
        let limits = LIMITS.map(|(_, numbers)| match parse_limit(numbers) {
            Ok(ParsedLimit::Limit(limit)) => library.add("limit", limit).expect("room"),
            other => panic!("{other:?}"),
        });
        let mut client: Client = stage.client();
        for step in steps {
            clock.advance(step.pause);
            own.advance(step.pause);
            let keys = ["alice", "bob"];
            let charges: Vec<_> = step.charges.iter()
                .map(|(limit, key, cost)| Charge::new(&limits[*limit], keys[usize::from(*key)]).cost(*cost)).collect();
            let asked: Vec<_> = step.charges.iter()
                .map(|(limit, key, cost)| json!({"limit": LIMITS[*limit].0, "key": keys[usize::from(*key)], "cost": cost}))
                .collect();
            let (limit, key, cost) = step.charges[0];
            let key = keys[usize::from(key)];
            let (path, expected) = match step.how {
                How::Check => ("/v1/check", library.check(&charges).expect("decided")),
                How::Peek => ("/v1/peek", library.peek(&charges).expect("decided")),
                How::Refund => {
                    library.refund(&limits[limit], key, cost.max(1)).expect("done");
                    client.post("/v1/refund", &json!({"limit": LIMITS[limit].0, "key": key, "units": cost.max(1)}).to_string());
                    continue;
                }
                How::Reset => {
                    library.reset(&limits[limit], key).expect("done");
                    client.post("/v1/reset", &json!({"limit": LIMITS[limit].0, "key": key}).to_string());
                    continue;
                }
            };
            let answer = client.post(path, &json!({ "charges": asked }).to_string());
            prop_assert_eq!(answer.status, if expected.is_deny() { 429 } else { 200 });
            let statuses: Vec<_> = expected.statuses().iter().map(told).collect();
            prop_assert_eq!(&answer.json()["statuses"], &json!(statuses));
            prop_assert_eq!(&answer.json()["allow"], &json!(!expected.is_deny()));
        }
    }
}
