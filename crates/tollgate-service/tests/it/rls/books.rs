//! What is told to whoever keeps the books.

use super::stage::{Desktop, descriptor, hits, request, rules, rules_on};
use std::sync::{Arc, Mutex};
use tollgate_net::{Drain, DrainTimes};
use tollgate_redis::RedisStore;
use tollgate_rules::Enforcer;
use tollgate_service::{
    Answered, Described, Desk, Ledger, Rls, RlsSettings, Stood,
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

/// Writes down what it was told: which rule, how many hits, how it stood.
#[derive(Default)]
struct Written(Mutex<Vec<(Option<usize>, u32, Stood)>>);

impl Ledger for Written {
    fn answered(&self, _: &Answered<'_>) {
        panic!("descriptors are told as such");
    }

    fn described(&self, described: &Described<'_>) {
        self.0.lock().expect("nobody panics").push((described.rule, described.hits, described.stood));
    }
}

impl Written {
    fn take(&self) -> Vec<(Option<usize>, u32, Stood)> {
        std::mem::take(&mut self.0.lock().expect("nobody panics"))
    }
}

/// Two of `one`, then one of everything else there is, and of what there is not.
fn asked() -> Vec<RateLimitDescriptor> {
    let others = ["shadow", "none", "open", "unheard"].map(|key| descriptor(&[(key, "x")]));
    [hits(&[("one", "x")], 2)].into_iter().chain(others).collect()
}

#[tokio::test]
async fn descriptors_are_booked_as_they_stood() {
    let written = Arc::new(Written::default());
    let door = Desktop::booked(rules("", DOMAIN), written.clone());
    door.ask(asked()).await;
    let stood = [Stood::Over, Stood::Shadow, Stood::Over];
    assert_eq!(written.take(), [(Some(0), 2, stood[0]), (Some(1), 1, stood[1]), (Some(2), 1, stood[2])]);
    door.ask([hits(&[("one", "y")], 1)]).await;
    assert_eq!(written.take(), [(Some(0), 1, Stood::Within)]);
}

#[tokio::test]
async fn with_the_switch_off_they_are_booked_as_skipped() {
    let written = Arc::new(Written::default());
    let door = Desktop::booked(rules_on("enabled: false", "", DOMAIN), written.clone());
    let told = door.ask(asked()).await;
    assert!(told.overall_code() == Code::Ok && told.statuses.iter().all(|it| it.code() == Code::Ok));
    let skipped = |rule, hits| (Some(rule), hits, Stood::Skipped);
    assert_eq!(written.take(), [skipped(0, 2), skipped(1, 1), skipped(2, 1)]);
    door.ask([descriptor(&[("none", "x")]), descriptor(&[("strict", "x")])]).await;
    assert_eq!(written.take(), [skipped(4, 1)], "what is replaced does not hold anyway");
}

#[tokio::test]
async fn what_nobody_can_decide_is_booked_too() {
    let written = Arc::new(Written::default());
    // Nobody listens there.
    let store = RedisStore::builder("redis://127.0.0.1:1").errors_on_failure().open().expect("an address");
    let enforcer = Enforcer::new(Arc::new(store), rules("", DOMAIN)).expect("kept");
    let desk = Desk::new(Arc::new(enforcer), written.clone());
    let door = Rls::new(desk, RlsSettings::default(), Drain::new(DrainTimes::default()));
    let told = door.decide(&request(asked())).await;
    assert!(matches!(told, Err(AskError::Store(_))), "{told:?}");
    let unanswered = |rule, hits| (Some(rule), hits, Stood::Unanswered);
    assert_eq!(written.take(), [unanswered(0, 2), unanswered(1, 1), unanswered(2, 1)]);
}
