//! Long polls: answered when the turn has come, given back when the client leaves.

use super::stage::{LONG, RULES, memory, memory_with};
use serde_json::json;
use std::{num::NonZeroUsize, time::Duration};
use testkit::eventually;
use tollgate_service::JsonSettings;

const USE_UP: &str = r#"{"limit":"per-client","key":"a","cost":100}"#;
const ONE: &str = r#"{"limit":"per-client","key":"a","up_to_ms":5000}"#;

#[test]
fn a_wait_is_answered_when_its_turn_has_come() {
    let (stage, clock) = memory();
    assert_eq!(stage.post("/v1/wait", ONE).json()["waited_ms"], 0);
    stage.post("/v1/check", &USE_UP.replace("100", "99"));
    let mut client = stage.client();
    client.send_post("/v1/wait", ONE);
    eventually("somebody sleeps", || clock.next_sleeper());
    clock.advance(Duration::from_millis(100));
    let told = client.told().expect("an answer");
    assert_eq!(told.status, 200);
    let told = told.json();
    assert_eq!(
        (&told["allow"], &told["wait_ms"], &told["waited_ms"]),
        (&json!(true), &json!(0), &json!(100))
    );
}

#[test]
fn a_wait_that_cannot_come_in_time_is_refused_at_once() {
    let (stage, _) = memory();
    stage.post("/v1/check", USE_UP);
    let told = stage.post("/v1/wait", r#"{"limit":"per-client","key":"a","cost":100,"up_to_ms":5000}"#);
    assert_eq!(told.status, 429);
    assert_eq!(told.json()["retry_after_ms"], 5000, "its turn would be in ten seconds");
    let told = stage.post("/v1/wait", r#"{"limit":"per-client","key":"a","cost":101,"up_to_ms":5000}"#);
    assert_eq!(told.json()["retry"], "never");
}

#[test]
fn a_client_that_leaves_gives_its_turn_back() {
    let (stage, clock) = memory();
    stage.post("/v1/check", USE_UP);
    let mut client = stage.client();
    client.send_post("/v1/wait", &ONE.replace("\"up_to", "\"cost\":10,\"up_to"));
    eventually("somebody sleeps", || clock.next_sleeper());
    drop(client);
    eventually("it has left", || clock.next_sleeper().is_none().then_some(()));
    clock.advance(Duration::from_secs(1));
    assert_eq!(stage.remaining("per-client", "a"), 10, "what came since, and nothing was kept");
}

#[test]
fn windows_are_waited_for_too() {
    let (stage, clock) = memory();
    stage.post("/v1/check", r#"{"limit":"login","cost":5}"#);
    let mut client = stage.client();
    client.send_post("/v1/wait", r#"{"limit":"login","up_to_ms":60000}"#);
    eventually("somebody sleeps", || clock.next_sleeper());
    clock.advance(Duration::from_secs(60));
    assert_eq!(client.told().expect("an answer").status, 200);
}

#[test]
fn those_who_wait_are_told_to_go_elsewhere_when_the_node_leaves() {
    let (stage, clock) = memory();
    stage.post("/v1/check", USE_UP);
    let (mut waits, mut rests) = (stage.client(), stage.client());
    waits.send_post("/v1/wait", ONE);
    assert_eq!(rests.request("GET", "/healthz").status, 200);
    eventually("somebody sleeps", || clock.next_sleeper());
    let drain = stage.drain.clone();
    let drained = stage.runtime.spawn(async move { drain.run().await });
    stage.drain.begin();
    let told = waits.told().expect("an answer");
    assert_eq!(told.status, 503);
    assert_eq!(told.detail(), "this node is shutting down; ask another");
    assert_eq!(told.header("retry-after"), Some("1"));
    assert!(waits.told().is_none() && rests.told().is_none(), "then they are closed");
    let drained = stage.runtime.block_on(async { tokio::time::timeout(LONG, drained).await });
    assert!(format!("{drained:?}").contains("Empty"), "{drained:?}");
    assert!(clock.next_sleeper().is_none(), "and its turn was given back");
}

#[test]
fn those_who_wait_leave_room_for_those_who_do_not() {
    let mut settings = JsonSettings::default();
    settings.max_in_flight = NonZeroUsize::new(2).expect("two");
    let (stage, clock) = memory_with(RULES, settings);
    stage.post("/v1/check", USE_UP);
    let mut client = stage.client();
    client.send_post("/v1/wait", ONE);
    eventually("somebody sleeps", || clock.next_sleeper());
    let told = stage.post("/v1/wait", ONE);
    assert_eq!((told.status, &*told.detail()), (503, "too many wait for their turn; please try again"));
    assert_eq!(stage.post("/v1/check", r#"{"limit":"login"}"#).status, 200);
    clock.advance(Duration::from_millis(100));
    assert_eq!(client.told().expect("an answer").status, 200);
}
