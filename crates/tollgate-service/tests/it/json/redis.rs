//! Two servers on one Redis: limits and permits are shared; and a Redis that is gone.

use super::stage::{RULES, Stage, Told};
use std::{sync::Arc, time::Duration};
use testkit::{RedisServer, eventually};
use tollgate::OnFailure;
use tollgate_redis::RedisStore;
use tollgate_service::JsonSettings;

fn stage(url: &str, on_failure: OnFailure) -> Stage<RedisStore> {
    Stage::open(RULES, JsonSettings::default(), |_| {
        let builder = RedisStore::builder(url).timeout(Duration::from_millis(500)).on_failure(on_failure);
        Arc::new(builder.open().expect("an address"))
    })
}

/// Waits until so many stand in line at this server.
#[track_caller]
fn standing(stage: &Stage<RedisStore>, count: usize) {
    let waiting = || stage.decisions.store().health().waiting;
    eventually(&format!("{count} in line"), || (waiting() == count).then_some(()));
}

fn path(told: &Told) -> String {
    assert_eq!(told.status, 201, "{told:?}");
    format!("/v1/permits/{}", told.json()["permit"].as_str().expect("a name"))
}

#[test]
fn two_servers_share_limits_and_permits() {
    let redis = RedisServer::start();
    let (one, two) = (stage(&redis.url(), OnFailure::Closed), stage(&redis.url(), OnFailure::Closed));
    let login = r#"{"limit":"login","key":["a",null],"cost":2}"#;
    assert_eq!(one.post("/v1/check", login).json()["remaining"], 3);
    assert_eq!(two.post("/v1/check", login).json()["remaining"], 1);
    assert_eq!(one.post("/v1/check", login).status, 429);
    let defined = r#"{"limit":{"fixed_window":{"limit":2,"window":"1h"}},"key":"a"}"#;
    assert_eq!(one.post("/v1/check", defined).json()["remaining"], 1);
    assert_eq!(two.post("/v1/check", defined).json()["remaining"], 0);

    let enter = r#"{"limit":"checkout","key":"a"}"#;
    let (first, second) = (path(&one.post("/v1/permits", enter)), path(&two.post("/v1/permits", enter)));
    assert_eq!(one.post("/v1/permits", enter).status, 429);
    // Each in the other's hands.
    assert_eq!(two.client().request("PUT", &first).status, 200);
    assert_eq!(two.client().request("DELETE", &first).status, 204);
    assert_eq!(one.client().request("DELETE", &first).status, 410);
    // After a restart of the node that gave it.
    drop(two);
    let two = stage(&redis.url(), OnFailure::Closed);
    assert_eq!(two.client().request("PUT", &second).status, 200);
    assert_eq!(one.client().request("DELETE", &second).status, 204);
    assert_eq!(one.remaining("checkout", "a"), 2);
}

#[test]
fn a_slot_given_back_on_one_server_is_had_by_who_waits_at_another() {
    let redis = RedisServer::start();
    let (one, two) = (stage(&redis.url(), OnFailure::Closed), stage(&redis.url(), OnFailure::Closed));
    let held = path(&one.post("/v1/permits", r#"{"limit":"checkout","key":"a","cost":2}"#));
    let mut client = two.client();
    client.send_post("/v1/permits", r#"{"limit":"checkout","key":"a","up_to_ms":20000}"#);
    standing(&two, 1);
    assert_eq!(one.client().request("DELETE", &held).status, 204);
    let told = client.told().expect("an answer");
    let name = path(&told);
    drop(client);
    assert_eq!(one.client().request("PUT", &name).status, 200, "it is held by its name");
    assert_eq!(one.client().request("DELETE", &name).status, 204);

    // Who leaves the line holds nothing.
    let held = path(&one.post("/v1/permits", r#"{"limit":"checkout","key":"a","cost":2}"#));
    let mut client = two.client();
    client.send_post("/v1/permits", r#"{"limit":"checkout","key":"a","up_to_ms":20000}"#);
    standing(&two, 1);
    drop(client);
    standing(&two, 0);
    assert_eq!(one.client().request("DELETE", &held).status, 204);
    eventually("both are free", || (one.remaining("checkout", "a") == 2).then_some(()));
}

/// A turn is booked only just before it is due, so whoever waits is seen by those behind it.
#[test]
fn a_wait_that_is_abandoned_leaves_its_place_and_costs_nothing() {
    let redis = RedisServer::start();
    let one = stage(&redis.url(), OnFailure::Closed);
    let bucket = r#"{"limit":{"token_bucket":{"rate":"1/m","burst":10}},"key":"a""#;
    one.post("/v1/check", &format!(r#"{bucket},"cost":10}}"#));
    let wait = |up_to_ms: u32| format!(r#"{bucket},"cost":2,"up_to_ms":{up_to_ms}}}"#);
    // When the turn of one who comes now would be: in two minutes, or in four behind another.
    let turn_in = || {
        let told = one.post("/v1/wait", &wait(1));
        assert_eq!(told.status, 429, "{told:?}");
        told.json()["retry_after_ms"].as_u64().expect("a time")
    };
    assert!(turn_in() <= 120_000);
    let mut client = one.client();
    client.send_post("/v1/wait", &wait(600_000));
    eventually("it stands in the queue", || (turn_in() > 180_000).then_some(()));
    drop(client);
    eventually("its place is free", || (turn_in() <= 120_000).then_some(()));
    let peeked = one.post("/v1/peek", &format!(r#"{bucket},"cost":0}}"#));
    assert!(peeked.json()["reset_after_ms"].as_u64().is_some_and(|reset| reset <= 600_000), "{peeked:?}");
}

#[test]
fn a_redis_that_is_gone_is_decided_for_by_policy_and_says_so() {
    let redis = RedisServer::start();
    let open = stage(&redis.url(), OnFailure::Open);
    let (closed, local) = (stage(&redis.url(), OnFailure::Closed), stage(&redis.url(), OnFailure::Local));
    let login = r#"{"limit":"login","key":"a"}"#;
    for stage in [&open, &closed, &local] {
        assert_eq!(stage.post("/v1/check", login).json()["decided_by"], "store");
    }
    redis.kill();
    let told = |stage: &Stage<RedisStore>| {
        let told = stage.post("/v1/check", login);
        (told.status, told.json()["decided_by"].as_str().expect("a word").to_owned())
    };
    assert_eq!(told(&open), (200, "failure: open".to_owned()));
    assert_eq!(told(&closed), (429, "failure: closed".to_owned()));
    assert_eq!(told(&local), (200, "failure: local".to_owned()));

    // Slots of the node's own, and those that nobody holds.
    let enter = r#"{"limit":"checkout","key":"a"}"#;
    for stage in [&open, &local] {
        let name = path(&stage.post("/v1/permits", enter));
        assert_eq!(stage.client().request("PUT", &name).status, 200);
        assert_eq!(stage.client().request("DELETE", &name).status, 204);
    }
    // What no policy can decide.
    for (path, body) in [
        ("/v1/refund", r#"{"limit":"login","key":"a","units":1}"#),
        ("/v1/reset", r#"{"limit":"login","key":"a"}"#),
    ] {
        let told = closed.post(path, body);
        assert_eq!((told.status, told.header("retry-after")), (503, Some("1")), "{told:?}");
        assert!(told.detail().starts_with("the store cannot answer: "), "{told:?}");
    }
}
