//! What is answered when nothing is wrong.

use super::stage::{RULES, memory, memory_with};
use serde_json::json;
use std::time::Duration;
use tollgate::{Charge, Key};
use tollgate_service::JsonSettings;

#[test]
fn an_answer_is_to_the_letter() {
    let (stage, _) = memory();
    let mut client = stage.client();
    let told = client.post("/v1/check", r#"{"limit":"per-client","key":"alice","cost":1}"#);
    assert_eq!(told.status, 200);
    assert_eq!(
        told.body,
        r#"{"allow":true,"wait_ms":0,"limit":100,"remaining":99,"reset_after_ms":100,"retry_after_ms":0,"decided_by":"store"}"#
    );
    assert_eq!(told.header("content-type"), Some("application/json"));
    let told = client.post("/v1/check", r#"{"limit":"per-client","key":"alice","cost":100}"#);
    assert_eq!(told.status, 429);
    assert_eq!(
        told.body,
        r#"{"allow":false,"wait_ms":0,"limit":100,"remaining":99,"reset_after_ms":100,"retry_after_ms":100,"decided_by":"store"}"#
    );
    assert_eq!(told.header("retry-after"), Some("1"));
}

#[test]
fn times_are_whole_milliseconds_rounded_up_and_good_at_that_time() {
    let (stage, clock) = memory();
    let third = r#"{"limit":{"token_bucket":{"rate":"3/s","burst":1}},"key":"a"}"#;
    assert_eq!(stage.post("/v1/check", third).status, 200);
    clock.advance(Duration::from_nanos(1));
    let told = stage.post("/v1/check", third);
    assert_eq!(told.json()["retry_after_ms"], 334, "a third of a second, and not a bit less");
    clock.advance(Duration::from_millis(334));
    assert_eq!(stage.post("/v1/check", third).status, 200);
}

#[test]
fn a_cost_that_can_never_pass_has_no_time_to_come_back() {
    let (stage, _) = memory();
    let told = stage.post("/v1/check", r#"{"limit":"login","key":"a","cost":6}"#);
    assert_eq!((told.status, told.header("retry-after")), (429, None));
    let told = told.json();
    assert_eq!((&told["retry_after_ms"], &told["retry"]), (&json!(null), &json!("never")));
    let free = stage.post("/v1/check", r#"{"limit":"login","key":"a","cost":0}"#);
    assert_eq!((free.status, &free.json()["remaining"]), (200, &json!(5)));
}

#[test]
fn a_window_without_end_is_never_as_if_unused() {
    let (stage, _) = memory();
    let told = stage.post("/v1/check", r#"{"limit":"one"}"#);
    assert_eq!(told.json()["reset_after_ms"], json!(null));
    let told = stage.post("/v1/check", r#"{"limit":"one"}"#);
    assert_eq!(told.json()["retry"], "never");
}

#[test]
fn a_pace_is_told_as_a_wait_that_is_paid_for() {
    let (stage, _) = memory();
    assert_eq!(stage.post("/v1/check", r#"{"limit":"paced"}"#).json()["wait_ms"], 0);
    let told = stage.post("/v1/check", r#"{"limit":"paced"}"#);
    assert_eq!((told.status, &told.json()["wait_ms"]), (200, &json!(1000)));
}

#[test]
fn a_set_is_all_or_nothing_and_tells_of_every_charge() {
    let (stage, _) = memory();
    let set = r#"{"charges":[{"limit":"per-client","key":"a"},{"limit":"login","key":"a","cost":3}]}"#;
    let told = stage.post("/v1/check", set);
    assert_eq!(told.status, 200);
    assert_eq!(told.json()["remaining"], 2, "the one with least left");
    assert_eq!(told.json()["statuses"][0]["remaining"], 99);
    let told = stage.post("/v1/check", set);
    assert_eq!((told.status, told.header("retry-after")), (429, Some("60")));
    let told = told.json();
    assert_eq!((&told["limit"], &told["remaining"]), (&json!(5), &json!(2)), "the one that refuses");
    assert_eq!(told["statuses"][0]["allow"], true);
    assert_eq!((stage.remaining("per-client", "a"), stage.remaining("login", "a")), (99, 2));
}

#[test]
fn a_batch_is_several_questions_each_by_itself() {
    let (stage, _) = memory();
    let batch = r#"{"checks":[
        {"limit":"login","key":"a","cost":4},
        {"limit":"login","key":"a","cost":4},
        {"limit":"login","key":"a"},
        {"charges":[{"limit":"login","key":"b"},{"limit":"per-client","key":"b"}]}]}"#;
    let told = stage.post("/v1/check", batch);
    assert_eq!(told.status, 200);
    let told = told.json();
    let answers = told["answers"].as_array().expect("a list");
    let allow: Vec<_> = answers.iter().map(|it| it["allow"].as_bool().expect("a word")).collect();
    assert_eq!(allow, [true, false, true, true], "in their order");
    assert_eq!(answers[3]["statuses"].as_array().map(Vec::len), Some(2));
    let peeked =
        stage.post("/v1/peek", r#"{"checks":[{"limit":"login","key":"a"},{"limit":"login","key":"b"}]}"#);
    let peeked = peeked.json();
    assert_eq!(
        (&peeked["answers"][0]["allow"], &peeked["answers"][1]["remaining"]),
        (&json!(false), &json!(3))
    );
}

/// As joined text `["a","b_c"]` and `["a_b","c"]` would be one.
#[test]
fn keys_are_lists_and_never_joined() {
    let (stage, _) = memory();
    let ask = |key: &str| {
        let body = match key {
            "" => r#"{"limit":"login"}"#.to_owned(),
            key => format!(r#"{{"limit":"login","key":{key}}}"#),
        };
        stage.post("/v1/check", &body).json()["remaining"].as_u64().expect("a number")
    };
    let long = format!("{:?}", "x".repeat(100_000));
    let apart = [
        "",
        r#""""#,
        r#""a""#,
        r#"["a","b_c"]"#,
        r#"["a_b","c"]"#,
        r#"["a",null]"#,
        r#"["a",""]"#,
        r#"[null]"#,
        r#""a\u0000b""#,
        r#""\ud83d\ude00""#,
        &long,
    ];
    for key in apart {
        assert_eq!(ask(key), 4, "{key}");
    }
    assert_eq!(ask("[]"), 3, "no key at all");
    assert_eq!(ask(r#"["a"]"#), 3, "one value is that value");
    assert_eq!(ask(r#""\u0061""#), 2, "however it is written");
}

#[test]
fn numbers_of_a_key_are_its_own() {
    let (stage, _) = memory();
    assert_eq!(stage.post("/v1/check", r#"{"limit":"per-client","key":"vip"}"#).json()["limit"], 1000);
}

#[test]
fn what_was_used_is_given_back_or_forgotten() {
    let (stage, _) = memory();
    stage.post("/v1/check", r#"{"limit":"login","key":"a","cost":5}"#);
    let told = stage.post("/v1/refund", r#"{"limit":"login","key":"a","units":2}"#);
    assert_eq!((told.status, &*told.body), (204, ""));
    assert_eq!(stage.remaining("login", "a"), 2);
    assert_eq!(stage.post("/v1/refund", r#"{"limit":"login","key":"a","units":100}"#).status, 204);
    assert_eq!(stage.remaining("login", "a"), 5, "never more than was used");
    stage.post("/v1/check", r#"{"limit":"login","key":"a","cost":5}"#);
    assert_eq!(stage.post("/v1/reset", r#"{"limit":"login","key":"a"}"#).status, 204);
    assert_eq!(stage.remaining("login", "a"), 5);
}

#[test]
fn the_library_sees_what_the_door_has_charged() {
    let (stage, _) = memory();
    stage.post("/v1/check", r#"{"limit":"login","key":["a","b"],"cost":2}"#);
    let rules = stage.decisions.rules();
    let key = Key::List(&[Some("a"), Some("b")]);
    let place = rules.place_of("login").expect("there");
    let limit = rules.at(place, key);
    let status = stage.decisions.store().check_one(&Charge::new(limit, key).cost(2)).expect("decided");
    assert_eq!(status.remaining(), 1);
    assert_eq!(stage.post("/v1/check", r#"{"limit":"login","key":["a","b"],"cost":2}"#).status, 429);
}

#[test]
fn limits_are_listed_with_their_numbers() {
    let (stage, _) = memory();
    let told = stage.client().request("GET", "/v1/limits").json();
    assert_eq!(
        told["limits"][0],
        json!({"name":"per-client","algorithm":"token_bucket","limit":100,"per_second":10.0,"overrides":1})
    );
    assert_eq!(
        told["limits"][4],
        json!({"name":"checkout","algorithm":"concurrency","limit":2,"max_hold_ms":30000,"queue":4,"overrides":1})
    );
}

#[test]
fn off_means_that_everything_passes_and_nothing_is_held() {
    let rules = RULES.replace("version: 1", "version: 1\nenabled: false");
    let (stage, _) = memory_with(&rules, JsonSettings::default());
    for _ in 0..9 {
        let told = stage.post("/v1/check", r#"{"limit":"one"}"#);
        assert_eq!((told.status, &told.json()["remaining"]), (200, &json!(1)));
    }
    assert_eq!(stage.post("/v1/wait", r#"{"limit":"one","up_to_ms":0}"#).status, 200);
    let permits: Vec<_> = (0..5).map(|_| stage.post("/v1/permits", r#"{"limit":"checkout"}"#)).collect();
    for told in permits {
        assert_eq!(told.status, 201);
        let path = format!("/v1/permits/{}", told.json()["permit"].as_str().expect("a name"));
        assert_eq!(stage.client().request("PUT", &path).status, 200);
        assert_eq!(stage.client().request("DELETE", &path).status, 204);
    }
    assert_eq!(stage.decisions.store().keys(), 0);
}

#[test]
fn many_at_once_get_what_there_is_and_not_one_more() {
    let (stage, _) = memory();
    let passed: usize = std::thread::scope(|scope| {
        let asking = || {
            let mut client = stage.client();
            let ask = |_| client.post("/v1/check", r#"{"limit":"per-client","key":"hot"}"#).status == 200;
            (0..40).map(ask).filter(|passed| *passed).count()
        };
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(asking)).collect();
        clients.into_iter().map(|client| client.join().expect("no panic")).sum()
    });
    assert_eq!(passed, 100);
}
