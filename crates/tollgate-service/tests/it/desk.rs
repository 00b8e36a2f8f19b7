//! The desk: limits by name and by definition, overrides, the switch, the books.

use std::sync::{Arc, Mutex};
use tollgate::{Bounds, Charge, Key, ManualClock, MemoryStore};
use tollgate_rules::{Enforcer, parse_rules};
use tollgate_service::{Answered, AskError, Desk, DoorName, Ledger, NoLedger, Question};

const RULES: &str = "
version: 1
limits:
  per-client:
    fixed_window: { limit: 3, window: 1h }
    overrides: { vip: { limit: 5 } }
  workers: { concurrency: { limit: 1, max_hold: 30s } }
";

type Memory = MemoryStore<ManualClock>;

fn desk(rules: &str) -> Desk<Memory> {
    let store = Arc::new(MemoryStore::with_clock(Bounds::default(), ManualClock::new()));
    desk_on(store, rules, Arc::new(NoLedger))
}

fn desk_on(store: Arc<Memory>, rules: &str, ledger: Arc<dyn Ledger>) -> Desk<Memory> {
    let file = parse_rules(rules, |_| None).expect("good rules");
    Desk::new(Arc::new(Enforcer::new(store, file).expect("kept")), ledger)
}

async fn remaining(desk: &Desk<Memory>, limit: &str, key: Key<'_>) -> Result<u32, AskError> {
    let sitting = desk.sit();
    let limit = if limit.contains(':') { sitting.defined(limit)? } else { sitting.named(limit)? };
    let asked = Question { limit: &limit, key, cost: 1, up_to: None };
    let status = sitting.check(DoorName::Http, &[asked]).await?;
    Ok(if status.is_deny() { u32::MAX } else { status.statuses()[0].remaining() })
}

#[tokio::test]
async fn a_named_limit_with_the_numbers_of_its_keys() {
    let desk = desk(RULES);
    for left in [2, 1, 0, u32::MAX] {
        assert_eq!(remaining(&desk, "per-client", "alice".into()).await, Ok(left));
    }
    assert_eq!(remaining(&desk, "per-client", "vip".into()).await, Ok(4));
    let unknown = remaining(&desk, "per-clint", "alice".into()).await.expect_err("not there");
    assert_eq!(unknown.to_string(), "there is no limit \"per-clint\"; did you mean \"per-client\"?");
}

#[tokio::test]
async fn a_definition_is_the_same_limit_however_it_is_written() {
    let desk = desk(RULES);
    let texts = [
        "token_bucket: { rate: 60/h, burst: 3 }",
        "{\"token_bucket\":{\"rate\":\"60/h\",\"burst\":3}}",
        "{ token_bucket: { burst: 3, rate: 60/h } }",
    ];
    for (text, left) in texts.into_iter().zip([2, 1, 0]) {
        assert_eq!(remaining(&desk, text, "alice".into()).await, Ok(left), "{text}");
    }
    let wrong = remaining(&desk, "token_bucket: { rate: 0/s }", "a".into()).await.expect_err("no limit");
    assert!(
        matches!(&wrong, AskError::Definition(mistakes) if mistakes.to_string().contains("burst")),
        "{wrong}"
    );
    let pace = remaining(&desk, "bandwidth: { rate: 1KiB/s }", "a".into()).await;
    assert_eq!(pace, Err(AskError::Bandwidth));
}

#[tokio::test]
async fn ever_new_definitions_take_bounded_room() {
    let desk = desk(RULES);
    let mut refused = 0;
    for number in 1..2_000_u32 {
        let text = format!("fixed_window: {{ limit: {number}, window: 2h }}");
        match remaining(&desk, &text, "a".into()).await {
            Ok(left) => assert_eq!(left, number - 1),
            Err(error) => {
                assert_eq!(error, AskError::TooManyDefinitions);
                refused += 1;
            }
        }
    }
    assert_eq!((refused, desk.store().keys()), (975, 1_024));
    let first = remaining(&desk, "fixed_window: { limit: 1, window: 2h }", "a".into()).await;
    assert_eq!(first, Ok(u32::MAX), "those that were there are still asked, and know what was used");
}

#[tokio::test]
async fn off_means_that_everything_passes_and_nothing_is_touched() {
    let desk = desk(&RULES.replace("version: 1", "version: 1\nenabled: false"));
    for _ in 0..9 {
        assert_eq!(remaining(&desk, "per-client", "alice".into()).await, Ok(3));
    }
    assert_eq!(desk.store().keys(), 0);
}

/// Writes down what it was told.
#[derive(Default)]
struct Written(Mutex<Vec<(DoorName, Vec<(Option<usize>, u32)>, bool)>>);

impl Ledger for Written {
    fn answered(&self, answered: &Answered<'_>) {
        let asked = answered.asked.iter().map(|(place, _, cost)| (*place, *cost)).collect();
        self.0.lock().expect("nobody panics").push((answered.door, asked, answered.status.is_deny()));
    }
}

#[tokio::test]
async fn a_set_is_all_or_nothing_and_is_booked_once() {
    let written = Arc::new(Written::default());
    let store = Arc::new(MemoryStore::with_clock(Bounds::default(), ManualClock::new()));
    let desk = desk_on(store, RULES, written.clone());
    let sitting = desk.sit();
    let (window, slots) =
        (sitting.named("per-client").expect("there"), sitting.named("workers").expect("there"));
    let asked = |limit, key: &'static str| Question { limit, key: key.into(), cost: 1, up_to: None };
    let set = [asked(&window, "alice"), asked(&slots, "pool")];

    let first = sitting.check(DoorName::Resp, &set).await.expect("decided");
    let permit = first.permit().expect("a slot");
    assert!(sitting.check(DoorName::Resp, &set).await.expect("decided").is_deny());
    let peeked = sitting.peek(&set[..1]).await.expect("decided");
    assert_eq!(peeked.statuses()[0].remaining(), 1, "one was used, and one would be");
    assert!(sitting.renew(&set, permit).await.expect("renewed"));
    assert_eq!(sitting.leave(&set, permit).await.expect("left"), 1);
    assert!(sitting.check(DoorName::Resp, &set).await.expect("decided").is_allow());

    let both = vec![(Some(0), 1), (Some(1), 1)];
    let told = [
        (DoorName::Resp, both.clone(), false),
        (DoorName::Resp, both.clone(), true),
        (DoorName::Resp, both, false),
    ];
    assert_eq!(*written.0.lock().expect("nobody panics"), told);
}

#[tokio::test]
async fn the_library_sees_what_a_door_has_charged() {
    let desk = desk(RULES);
    assert_eq!(remaining(&desk, "per-client", "alice".into()).await, Ok(2));
    let sitting = desk.sit();
    let limit = sitting.edition().at(0, "alice".into());
    let status = desk.store().check_one(&Charge::new(limit, "alice")).expect("decided");
    assert_eq!(status.remaining(), 1);
}
