//! A check that is sent again counts once.

use super::stage::{RULES, memory, memory_with};
use std::time::Duration;
use testkit::eventually;
use tollgate_service::JsonSettings;

fn check(key: &str, id: &str) -> String {
    format!(r#"{{"limit":"login","key":"{key}","id":"{id}"}}"#)
}

#[test]
fn a_check_that_is_sent_again_counts_once_and_is_told_the_same() {
    let (stage, clock) = memory();
    let first = stage.post("/v1/check", &check("a", "1"));
    clock.advance(Duration::from_secs(1));
    let again = stage.post("/v1/check", &check("a", "1"));
    assert_eq!((first.status, &first.body), (again.status, &again.body));
    assert_eq!(stage.post("/v1/check", &check("a", "2")).json()["remaining"], 3);
    assert_eq!(stage.remaining("login", "a"), 3);
}

#[test]
fn another_question_with_the_same_id_is_a_conflict() {
    let (stage, _) = memory();
    stage.post("/v1/check", &check("a", "1"));
    for other in [
        check("b", "1"),
        r#"{"limit":"login","key":"a","cost":2,"id":"1"}"#.to_owned(),
        r#"{"limit":"per-client","key":"a","id":"1"}"#.to_owned(),
        r#"{"charges":[{"limit":"login","key":"a"}],"id":"1"}"#.to_owned(),
    ] {
        let told = stage.post("/v1/check", &other);
        assert_eq!(told.status, 409, "{other}");
        let said = "id: \"1\" was another question's within the last minute; give every question its own";
        assert_eq!(told.detail(), said);
    }
    // The same question, written otherwise.
    assert_eq!(stage.post("/v1/check", r#"{"id":"1","cost":1,"key":["a"],"limit":"login"}"#).status, 200);
    assert_eq!(stage.remaining("login", "a"), 4);
}

#[test]
fn a_refusal_is_not_remembered() {
    let (stage, clock) = memory();
    stage.post("/v1/check", r#"{"limit":"login","key":"a","cost":5}"#);
    assert_eq!(stage.post("/v1/check", &check("a", "1")).status, 429);
    clock.advance(Duration::from_secs(60));
    assert_eq!(stage.post("/v1/check", &check("a", "1")).status, 200);
}

#[test]
fn an_id_is_forgotten_after_a_while() {
    let mut settings = JsonSettings::default();
    settings.remember = Duration::from_millis(100);
    let (stage, _) = memory_with(RULES, settings);
    stage.post("/v1/check", &check("a", "1"));
    assert_eq!(stage.remaining("login", "a"), 4);
    eventually("the id to be forgotten", || {
        stage.post("/v1/check", &check("a", "1"));
        (stage.remaining("login", "a") == 3).then_some(())
    });
}

#[test]
fn questions_of_a_batch_have_ids_of_their_own() {
    let (stage, _) = memory();
    let batch = r#"{"checks":[{"limit":"login","id":"1"},{"limit":"login","id":"2"},{"limit":"login","id":"1"},
        {"limit":"login","cost":2,"id":"2"},{"limit":"login"}]}"#;
    let told = stage.post("/v1/check", batch);
    assert_eq!(told.status, 200);
    let told = told.json();
    let remaining: Vec<_> = (0..5).map(|at| told["answers"][at]["remaining"].as_u64()).collect();
    assert_eq!(remaining, [Some(4), Some(3), Some(4), None, Some(2)]);
    assert_eq!(told["answers"][3]["problem"]["status"], 409);
    assert!(told["answers"][3]["allow"].is_null());
    stage.post("/v1/check", batch);
    assert_eq!(
        stage.post("/v1/check", r#"{"limit":"login","cost":0}"#).json()["remaining"],
        1,
        "one had none"
    );
}

#[test]
fn twins_that_come_at_the_same_time_count_once() {
    let (stage, _) = memory();
    for round in 0..20 {
        let body = check(&format!("twins-{round}"), &format!("{round}"));
        let told: Vec<_> = std::thread::scope(|scope| {
            let asked: Vec<_> = (0..4).map(|_| scope.spawn(|| stage.post("/v1/check", &body).body)).collect();
            asked.into_iter().map(|it| it.join().expect("no panic")).collect()
        });
        assert!(told.windows(2).all(|pair| pair[0] == pair[1]), "{told:?}");
        assert_eq!(stage.remaining("login", &format!("twins-{round}")), 4);
    }
}
