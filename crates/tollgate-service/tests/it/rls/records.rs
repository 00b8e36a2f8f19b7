//! What is recorded of descriptors.

use super::stage::{Rig, descriptor, hits, request, rules, rules_on};
use std::sync::{Arc, Mutex};
use tollgate_net::{Drain, DrainTimes};
use tollgate_redis::RedisStore;
use tollgate_rules::{
    DecisionService,
    decision::{Api, ChargeOutcome, ChargeRecord, RecordedLimit, Recorder},
};
use tollgate_service::{
    Rls, RlsSettings,
    rls::{
        AskError,
        messages::{Code, RateLimitDescriptor},
    },
};

const DOMAIN: &str = "
domain: d
descriptors:
- { key: one, rate_limit: { unit: day, requests_per_unit: 1 } }
- { key: shadow, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 0 } }
- { key: none, rate_limit: { unit: day, requests_per_unit: 0, name: none } }
- { key: open, rate_limit: { unlimited: true } }
- { key: strict, rate_limit: { unit: day, requests_per_unit: 9, replaces: [ { name: none } ] } }
";

/// Writes down what it was told: which rule, how many hits, what became of them.
#[derive(Default)]
struct Written(Mutex<Vec<(Option<usize>, u32, ChargeOutcome)>>);

impl Recorder for Written {
    fn charge(&self, record: &ChargeRecord<'_>) {
        let rule = match record.limit {
            RecordedLimit::Descriptor(rule) => Some(rule),
            RecordedLimit::Defined => None,
            other => panic!("descriptors are recorded as such: {other:?}"),
        };
        assert_eq!(record.api, Api::Grpc);
        self.0.lock().expect("nobody panics").push((rule, record.units, record.outcome));
    }
}

impl Written {
    fn take(&self) -> Vec<(Option<usize>, u32, ChargeOutcome)> {
        std::mem::take(&mut self.0.lock().expect("nobody panics"))
    }
}

/// Two of `one`, then one of everything else there is, and of what there is not.
fn asked() -> Vec<RateLimitDescriptor> {
    let others = ["shadow", "none", "open", "unheard"].map(|key| descriptor(&[(key, "x")]));
    [hits(&[("one", "x")], 2)].into_iter().chain(others).collect()
}

#[tokio::test]
async fn descriptors_are_recorded_as_they_were_decided() {
    let written = Arc::new(Written::default());
    let door = Rig::recorded(rules("", DOMAIN), written.clone());
    door.ask(asked()).await;
    let stood = [ChargeOutcome::Denied, ChargeOutcome::ShadowDenied, ChargeOutcome::Denied];
    assert_eq!(written.take(), [(Some(0), 2, stood[0]), (Some(1), 1, stood[1]), (Some(2), 1, stood[2])]);
    door.ask([hits(&[("one", "y")], 1)]).await;
    assert_eq!(written.take(), [(Some(0), 1, ChargeOutcome::Allowed)]);
}

#[tokio::test]
async fn with_the_switch_off_they_are_recorded_as_skipped() {
    let written = Arc::new(Written::default());
    let door = Rig::recorded(rules_on("enabled: false", "", DOMAIN), written.clone());
    let told = door.ask(asked()).await;
    assert!(told.overall_code() == Code::Ok && told.statuses.iter().all(|it| it.code() == Code::Ok));
    let skipped = |rule, hits| (Some(rule), hits, ChargeOutcome::Skipped);
    assert_eq!(written.take(), [skipped(0, 2), skipped(1, 1), skipped(2, 1)]);
    door.ask([descriptor(&[("none", "x")]), descriptor(&[("strict", "x")])]).await;
    assert_eq!(written.take(), [skipped(4, 1)], "what is replaced does not hold anyway");
}

#[tokio::test]
async fn what_nobody_can_decide_is_recorded_too() {
    let written = Arc::new(Written::default());
    // Nobody listens there.
    let store = RedisStore::builder("redis://127.0.0.1:1").errors_on_failure().open().expect("an address");
    let recorder = written.clone();
    let decisions = DecisionService::recorded(Arc::new(store), rules("", DOMAIN), move |_| recorder.clone())
        .expect("kept");
    let door = Rls::new(decisions, RlsSettings::default(), Drain::new(DrainTimes::default()));
    let told = door.decide(&request(asked())).await;
    assert!(matches!(told, Err(AskError::Store(_))), "{told:?}");
    let unanswered = |rule, hits| (Some(rule), hits, ChargeOutcome::Unanswered);
    assert_eq!(written.take(), [unanswered(0, 2), unanswered(1, 1), unanswered(2, 1)]);
}
