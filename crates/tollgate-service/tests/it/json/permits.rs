//! Slots in the hands of somebody who is not here.

use super::stage::{Memory, Stage, Told, memory};
use serde_json::json;
use std::time::Duration;
use testkit::eventually;

const ENTER: &str = r#"{"limit":"checkout","key":"a"}"#;

fn path(told: &Told) -> String {
    assert_eq!(told.status, 201, "{told:?}");
    format!("/v1/permits/{}", told.json()["permit"].as_str().expect("a name"))
}

fn free(stage: &Stage<Memory>) -> u64 {
    stage.remaining("checkout", "a")
}

#[test]
fn a_permit_is_held_renewed_and_given_back() {
    let (stage, clock) = memory();
    let (one, two) = (stage.post("/v1/permits", ENTER), stage.post("/v1/permits", ENTER));
    assert_eq!(one.json()["expires_in_ms"], 30_000);
    assert_eq!((one.json()["remaining"].as_u64(), two.json()["remaining"].as_u64()), (Some(1), Some(0)));
    let refused = stage.post("/v1/permits", ENTER);
    assert_eq!((refused.status, refused.header("retry-after")), (429, None));
    assert_eq!(refused.json()["retry"], "when_released");
    let (one, two) = (path(&one), path(&two));

    clock.advance(Duration::from_secs(20));
    let renewed = stage.client().request("PUT", &one);
    assert_eq!((renewed.status, &renewed.json()["expires_in_ms"]), (200, &json!(30_000)));
    clock.advance(Duration::from_secs(20));
    assert_eq!(free(&stage), 1, "the other one was not renewed");
    let lost = stage.client().request("PUT", &two);
    assert_eq!((lost.status, &*lost.detail()), (410, "the permit was not renewed in time, and is lost"));
    assert_eq!(stage.client().request("DELETE", &two).status, 410);

    let left = stage.client().request("DELETE", &one);
    assert_eq!((left.status, &*left.body), (204, ""));
    assert_eq!(free(&stage), 2);
    assert_eq!(stage.client().request("DELETE", &one).status, 410, "once");
    assert_eq!(stage.client().request("PUT", &one).status, 410);
}

#[test]
fn a_name_that_is_none_is_nobodys() {
    let (stage, _) = memory();
    let name = path(&stage.post("/v1/permits", ENTER));
    for slip in [
        format!("{name}A"),
        name[..name.len() - 1].to_owned(),
        name.replace('A', "B"),
        "/v1/permits/x".into(),
    ] {
        for method in ["PUT", "DELETE"] {
            let told = stage.client().request(method, &slip);
            assert_eq!(
                (told.status, &*told.detail()),
                (404, "no permit has this name; look whether it is complete")
            );
        }
    }
    assert_eq!(free(&stage), 1, "it is held still");
}

#[test]
fn numbers_of_a_key_are_its_own() {
    let (stage, _) = memory();
    let told = stage.post("/v1/permits", r#"{"limit":"checkout","key":"short"}"#);
    assert_eq!(told.json()["expires_in_ms"], 5_000);
}

#[test]
fn a_set_holds_its_slots_and_pays_the_rest() {
    let (stage, _) = memory();
    let set = r#"{"charges":[{"limit":"login","key":"a","cost":2},{"limit":"checkout","key":"a"},
        {"limit":{"concurrency":{"limit":9,"max_hold":"10s"}},"key":["x",null]}]}"#;
    let told = stage.post("/v1/permits", set);
    assert_eq!(told.json()["expires_in_ms"], 10_000, "the shortest");
    assert_eq!(told.json()["statuses"].as_array().map(Vec::len), Some(3));
    let name = path(&told);
    assert_eq!((stage.remaining("login", "a"), free(&stage)), (3, 1));
    assert_eq!(stage.client().request("PUT", &name).status, 200);
    assert_eq!(stage.client().request("DELETE", &name).status, 204);
    assert_eq!((stage.remaining("login", "a"), free(&stage)), (3, 2), "what was paid stays paid");

    let whole = path(&stage.post("/v1/permits", r#"{"limit":"checkout","key":"a","cost":2}"#));
    assert_eq!(stage.post("/v1/permits", set).status, 429);
    assert_eq!(stage.remaining("login", "a"), 3, "all or nothing");
    assert_eq!(stage.client().request("DELETE", &whole).status, 204);
}

#[test]
fn who_waits_in_line_has_the_slot_that_comes_back() {
    let (stage, clock) = memory();
    let held = path(&stage.post("/v1/permits", r#"{"limit":"checkout","key":"a","cost":2}"#));
    let mut client = stage.client();
    client.send_post("/v1/permits", r#"{"limit":"checkout","key":"a","up_to_ms":5000}"#);
    eventually("somebody waits", || clock.next_sleeper());
    clock.advance(Duration::from_secs(1));
    assert_eq!(stage.client().request("DELETE", &held).status, 204);
    let told = client.told().expect("an answer");
    assert_eq!(told.json()["waited_ms"], 1000);
    let name = path(&told);
    drop(client);
    eventually("the connection to be closed", || (stage.connections() == 0).then_some(()));
    assert_eq!(free(&stage), 1, "it is held by its name, not by the connection");
    clock.advance(Duration::from_secs(20));
    assert_eq!(stage.client().request("PUT", &name).status, 200);
    clock.advance(Duration::from_secs(40));
    assert_eq!(free(&stage), 2, "nobody renews it behind its back");
}

#[test]
fn a_client_that_leaves_the_line_holds_nothing() {
    let (stage, clock) = memory();
    let held = path(&stage.post("/v1/permits", r#"{"limit":"checkout","key":"a","cost":2}"#));
    let mut client = stage.client();
    client.send_post("/v1/permits", r#"{"limit":"checkout","key":"a","up_to_ms":5000}"#);
    eventually("somebody waits", || clock.next_sleeper());
    drop(client);
    eventually("it has left", || clock.next_sleeper().is_none().then_some(()));
    stage.client().request("DELETE", &held);
    assert_eq!(free(&stage), 2);
}

#[test]
fn a_key_too_long_for_a_name_is_refused_before_anything_is_held() {
    let (stage, _) = memory();
    let told = stage.post("/v1/permits", &format!(r#"{{"limit":"checkout","key":"{}"}}"#, "x".repeat(4000)));
    assert_eq!(
        (told.status, &*told.detail()),
        (400, "key: is too long: a permit's name has room for some 2048 bytes")
    );
}
