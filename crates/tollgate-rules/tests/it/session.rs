//! Sessions of the decision service: limits by name and by definition, overrides, the switch, what is recorded.

use std::sync::{Arc, Mutex};
use tollgate::{Bounds, Charge, DecidedBy, Key, ManualClock, MemoryStore, Throttle};
use tollgate_rules::{
    DecisionService,
    decision::{
        Api, ChargeOutcome, ChargeRecord, ChargeRequest, DecisionError, NoRecorder, RecordedLimit, Recorder,
    },
    parse_rules,
};

const RULES: &str = "
version: 1
limits:
  per-client:
    fixed_window: { limit: 3, window: 1h }
    overrides: { vip: { limit: 5 } }
  workers: { concurrency: { limit: 1, max_hold: 30s } }
";

type Memory = MemoryStore<ManualClock>;

fn service(rules: &str) -> DecisionService<Memory> {
    recorded(rules, Arc::new(NoRecorder))
}

fn recorded(rules: &str, recorder: Arc<dyn Recorder>) -> DecisionService<Memory> {
    let store = Arc::new(MemoryStore::with_clock(Bounds::default(), ManualClock::new()));
    let file = parse_rules(rules, |_| None).expect("good rules");
    DecisionService::recorded(store, file, move |_| Arc::clone(&recorder)).expect("kept")
}

async fn remaining(
    service: &DecisionService<Memory>,
    limit: &str,
    key: Key<'_>,
) -> Result<u32, DecisionError> {
    let session = service.session(Api::Http);
    let limit = if limit.contains(':') { session.defined(limit)? } else { session.named(limit)? };
    let request = ChargeRequest { limit: &limit, key, cost: 1, up_to: None };
    let status = session.check(&[request]).await?;
    Ok(if status.is_deny() { u32::MAX } else { status.statuses()[0].remaining() })
}

#[tokio::test]
async fn a_named_limit_with_the_numbers_of_its_keys() {
    let service = service(RULES);
    for left in [2, 1, 0, u32::MAX] {
        assert_eq!(remaining(&service, "per-client", "alice".into()).await, Ok(left));
    }
    assert_eq!(remaining(&service, "per-client", "vip".into()).await, Ok(4));
    let unknown = remaining(&service, "per-clint", "alice".into()).await.expect_err("not there");
    assert_eq!(unknown.to_string(), "there is no limit \"per-clint\"; did you mean \"per-client\"?");
}

#[tokio::test]
async fn a_definition_is_the_same_limit_however_it_is_written() {
    let service = service(RULES);
    let texts = [
        "token_bucket: { rate: 60/h, burst: 3 }",
        "{\"token_bucket\":{\"rate\":\"60/h\",\"burst\":3}}",
        "{ token_bucket: { burst: 3, rate: 60/h } }",
    ];
    for (text, left) in texts.into_iter().zip([2, 1, 0]) {
        assert_eq!(remaining(&service, text, "alice".into()).await, Ok(left), "{text}");
    }
    let wrong = remaining(&service, "token_bucket: { rate: 0/s }", "a".into()).await.expect_err("no limit");
    assert!(
        matches!(&wrong, DecisionError::Definition(mistakes) if mistakes.to_string().contains("burst")),
        "{wrong}"
    );
    let pace = remaining(&service, "bandwidth: { rate: 1KiB/s }", "a".into()).await;
    assert_eq!(pace, Err(DecisionError::Bandwidth));
}

#[tokio::test]
async fn ever_new_definitions_take_bounded_room() {
    let service = service(RULES);
    let mut refused = 0;
    for number in 1..2_000_u32 {
        let text = format!("fixed_window: {{ limit: {number}, window: 2h }}");
        match remaining(&service, &text, "a".into()).await {
            Ok(left) => assert_eq!(left, number - 1),
            Err(error) => {
                assert_eq!(error, DecisionError::TooManyDefinitions);
                refused += 1;
            }
        }
    }
    assert_eq!((refused, service.store().keys()), (975, 1_024));
    let first = remaining(&service, "fixed_window: { limit: 1, window: 2h }", "a".into()).await;
    assert_eq!(first, Ok(u32::MAX), "those that were there are still asked, and know what was used");
}

/// The store is not asked, whatever the verb, and every answer says who decided.
#[tokio::test]
async fn off_means_that_everything_passes_and_nothing_is_touched() {
    let written = Arc::new(Written::default());
    let service = recorded(&RULES.replace("version: 1", "version: 1\nenabled: false"), written.clone());
    let session = service.session(Api::Resp);
    let (window, slots) =
        (session.named("per-client").expect("there"), session.named("workers").expect("there"));
    let request = |limit, key: &'static str| ChargeRequest { limit, key: key.into(), cost: 9, up_to: None };
    let set = [request(&window, "alice"), request(&window, "vip"), request(&slots, "pool")];
    let entered = session.enter(&set).await.expect("it passes");
    assert!(entered.permit.is_none() && entered.waited.is_zero());
    let checked = session.check(&set).await.expect("it passes");
    let peeked = session.peek(&set).await.expect("it passes");
    for status in [entered.status, checked, peeked] {
        let told = status.statuses().iter().map(|it| (it.is_allow(), it.remaining(), it.decided_by()));
        let full = [3, 5, 1].map(|most| (true, most, DecidedBy::Switch));
        assert_eq!(told.collect::<Vec<_>>(), full, "each key with its own numbers");
    }
    let asked = Throttle::per(1, std::time::Duration::from_secs(60)).expect("a rate");
    let throttled = session.throttle("alice".into(), &asked.quantity(7)).await.expect("it passes");
    assert_eq!((throttled.is_allow(), throttled.decided_by()), (true, DecidedBy::Switch));
    assert_eq!(service.store().keys(), 0);
    let one = |limit| (Api::Resp, limit, 9, ChargeOutcome::Skipped);
    let set = [0, 0, 1].map(|place| one(RecordedLimit::Named(place)));
    let throttle = (Api::Resp, RecordedLimit::Throttle, 7, ChargeOutcome::Skipped);
    assert_eq!(written.take(), [&set[..], &set[..], &[throttle]].concat(), "a peek is not recorded");
}

/// Through which API, which limit, how many units, and what became of them.
type Line = (Api, RecordedLimit, u32, ChargeOutcome);

/// Writes down what it was told.
#[derive(Default)]
struct Written(Mutex<Vec<Line>>);

impl Recorder for Written {
    fn charge(&self, record: &ChargeRecord<'_>) {
        let line = (record.api, record.limit, record.units, record.outcome);
        self.0.lock().expect("nobody panics").push(line);
    }
}

impl Written {
    fn take(&self) -> Vec<Line> {
        std::mem::take(&mut self.0.lock().expect("nobody panics"))
    }
}

#[tokio::test]
async fn a_set_is_all_or_nothing_and_each_charge_is_recorded_once() {
    let written = Arc::new(Written::default());
    let service = recorded(RULES, written.clone());
    let session = service.session(Api::Resp);
    let (window, slots) =
        (session.named("per-client").expect("there"), session.named("workers").expect("there"));
    let request = |limit, key: &'static str| ChargeRequest { limit, key: key.into(), cost: 1, up_to: None };
    let set = [request(&window, "alice"), request(&slots, "pool")];
    let line = |place, outcome| (Api::Resp, RecordedLimit::Named(place), 1, outcome);
    let allowed = [line(0, ChargeOutcome::Allowed), line(1, ChargeOutcome::Allowed)];

    let first = session.check(&set).await.expect("decided");
    let permit = first.permit().expect("a slot");
    assert_eq!(written.take(), allowed);
    assert!(session.check(&set).await.expect("decided").is_deny());
    assert_eq!(written.take(), [line(1, ChargeOutcome::Denied)], "of a denied set, what denies it");
    let peeked = session.peek(&set[..1]).await.expect("decided");
    assert_eq!(peeked.statuses()[0].remaining(), 1, "one was used, and one would be");
    assert!(session.renew(&set, permit).await.expect("renewed"));
    assert_eq!(session.leave(&set, permit).await.expect("left"), 1);
    assert_eq!(written.take(), []);
    assert!(session.check(&set).await.expect("decided").is_allow());
    assert_eq!(written.take(), allowed);
}

#[tokio::test]
async fn the_library_sees_what_an_api_has_charged() {
    let service = service(RULES);
    assert_eq!(remaining(&service, "per-client", "alice".into()).await, Ok(2));
    let rules = service.rules();
    let limit = rules.at(0, "alice".into());
    let status = service.store().check_one(&Charge::new(limit, "alice")).expect("decided");
    assert_eq!(status.remaining(), 1);
}
