//! Every page, asked over a socket.

use crate::{
    exposition::{read, value},
    site::Site,
};
use serde_json::json;
use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};
use tollgate::Key;
use tollgate_admin::{Component, Condition, Format, Outcome, ReloadFailure, RuleMistake, StoreMode};

#[tokio::test]
async fn a_node_that_is_well_says_so() {
    let site = Site::open().await;
    let alive = site.get("/healthz").await;
    assert_eq!((alive.status, alive.body.as_str()), (200, "alive\n"));
    let ready = site.get("/readyz").await;
    assert_eq!(ready.status, 200);
    assert!(ready.head.contains("\r\ncache-control: no-store"), "{}", ready.head);
    assert_eq!(
        ready.json(),
        json!({
            "ready": true,
            "components": {
                "rules": {
                    "state": "well",
                    "file": "/etc/tollgate.yaml",
                    "generation": 1,
                    "loaded_at": "2023-11-14T22:13:20.250Z",
                    "last_failure": null,
                },
                "store": { "state": "well", "mode": "memory", "keys": 12, "last_error": null },
                "drain": { "state": "well", "phase": "serving" },
            },
        })
    );
}

/// A mistake in a file that all nodes read must not take all nodes out of service.
#[tokio::test]
async fn a_bad_reload_is_told_with_every_mistake_and_the_node_stays_ready() {
    let site = Site::open().await;
    let mistake = |line, path: &str, message: &str| RuleMistake {
        line,
        column: 5,
        path: path.to_owned(),
        message: message.to_owned(),
    };
    site.told.rules.lock().expect("not poisoned").failure = Some(ReloadFailure {
        at: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_100),
        file: PathBuf::from("/etc/tollgate.yaml"),
        why: "it has 2 mistakes".to_owned(),
        mistakes: vec![
            mistake(3, "limits.login.rate", "must be greater than zero"),
            mistake(9, "routes[0]", "there is no upstream called \"order\""),
        ],
    });
    let answer = site.get("/readyz").await;
    assert_eq!(answer.status, 200);
    let told = answer.json();
    let rules = &told["components"]["rules"];
    assert_eq!(rules["state"], "ailing");
    assert_eq!(rules["why"], "the rules before the last change are in use: it has 2 mistakes");
    assert_eq!(
        rules["last_failure"],
        json!({
            "at": "2023-11-14T22:15:00.000Z",
            "file": "/etc/tollgate.yaml",
            "why": "it has 2 mistakes",
            "mistakes": [
                { "line": 3, "column": 5, "path": "limits.login.rate", "message": "must be greater than zero" },
                { "line": 9, "column": 5, "path": "routes[0]", "message": "there is no upstream called \"order\"" },
            ],
        })
    );
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_told_and_the_node_stays_ready() {
    let site = Site::open().await;
    for (mode, state) in [
        (StoreMode::Exact, "well"),
        (StoreMode::Leased, "well"),
        (StoreMode::Degraded, "ailing"),
        (StoreMode::Recovering, "ailing"),
    ] {
        {
            let mut store = site.told.store.lock().expect("not poisoned");
            (store.mode, store.last_error) = (mode, Some("connection refused".to_owned()));
        }
        let answer = site.get("/readyz").await;
        assert_eq!(answer.status, 200);
        let store = &answer.json()["components"]["store"];
        assert_eq!([&store["state"], &store["mode"]], [state, mode.name()]);
        assert_eq!(store["last_error"], "connection refused");

        let told = read(&site.get("/metrics").await.body, Format::Prometheus);
        for other in StoreMode::ALL {
            let expected = if other == mode { 1.0 } else { 0.0 };
            assert_eq!(value(&told, "tollgate_store_mode", &[other.name()]), Some(expected));
        }
    }
}

#[tokio::test]
async fn another_component_that_is_down_makes_the_node_not_ready() {
    let site = Site::open().await;
    let component = |name: &str, condition| Component { name: name.to_owned(), condition };
    let ailing = component("upstream orders", Condition::Ailing("1 of 2 servers is unhealthy".to_owned()));
    site.told.others.lock().expect("not poisoned").push(ailing);
    assert_eq!(site.get("/readyz").await.status, 200);
    let down = component("listener gateway", Condition::Down("it could not be opened".to_owned()));
    site.told.others.lock().expect("not poisoned").push(down);
    let answer = site.get("/readyz").await;
    assert_eq!((answer.status, &answer.json()["ready"]), (503, &json!(false)));
    let components = &answer.json()["components"];
    let expected = json!({ "state": "down", "why": "it could not be opened" });
    assert_eq!(components["listener gateway"], expected);
    assert_eq!(components["upstream orders"]["state"], "ailing");
}

#[tokio::test]
async fn metrics_come_in_the_form_that_is_asked_for() {
    let site = Site::open().await;
    site.meters.rule("orders", "create").count(Outcome::Reject);
    for (accept, format, kind) in [
        ("*/*", Format::Prometheus, "text/plain; version=0.0.4; charset=utf-8"),
        (
            "application/openmetrics-text; version=1.0.0",
            Format::OpenMetrics,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
        ),
    ] {
        let request = format!(
            "GET /metrics HTTP/1.1\r\nhost: localhost\r\naccept: {accept}\r\nconnection: close\r\n\r\n"
        );
        let answer = site.ask(&request).await;
        assert_eq!(answer.status, 200);
        assert!(answer.head.contains(&format!("\r\ncontent-type: {kind}")), "{}", answer.head);
        let told = read(&answer.body, format);
        assert_eq!(value(&told, "tollgate_decisions_total", &["orders", "create", "reject"]), Some(1.0));
        assert_eq!(value(&told, "tollgate_keys", &[]), Some(12.0));
        assert_eq!(value(&told, "tollgate_evictions_total", &[]), Some(3.0));
        assert_eq!(value(&told, "tollgate_top_lost_total", &[]), Some(0.0));
    }
}

#[tokio::test]
async fn the_busiest_keys_are_told() {
    let site = Site::open().await;
    let meter = site.sketch.limit("per-client");
    (0..10).for_each(|_| meter.refused(Key::Text("alice")));
    meter.used(Key::List(&[Some("tenant"), None]), 5);
    meter.used(Key::Text(&"x".repeat(300)), 1);

    assert_eq!(
        site.get("/v1/top?n=1").await.json(),
        json!({
            "half_life_seconds": 60,
            "lost": 0,
            "limited": [{
                "limit": "per-client", "key": "alice", "key_cut": false,
                "refused_per_second": 2.0, "used_per_second": 0.0, "at_least": 10.0, "at_most": 10.0,
            }],
            "used": [{
                "limit": "per-client", "key": ["tenant", null], "key_cut": false,
                "refused_per_second": 0.0, "used_per_second": 1.0, "at_least": 5.0, "at_most": 5.0,
            }],
        })
    );
    let told = site.get("/v1/top").await.json();
    let cut = &told["used"][1];
    assert_eq!((&cut["key"], &cut["key_cut"]), (&json!("x".repeat(256)), &json!(true)));
}

#[tokio::test]
async fn what_is_not_there_says_what_is() {
    let site = Site::open().await;
    let lost = site.get("/nowhere").await;
    assert_eq!(lost.status, 404);
    assert!(lost.head.contains("application/problem+json"), "{}", lost.head);
    assert_eq!(
        lost.json()["detail"],
        "there are /healthz, /metrics, /readyz, /v1/explain, /v1/login, /v1/logout, /v1/me and /v1/top"
    );
    for question in ["n=0", "n=501", "n=-1", "n=many", "m=3"] {
        let answer = site.get(&format!("/v1/top?{question}")).await;
        assert_eq!((answer.status, &answer.json()["title"]), (400, &json!("Bad Request")), "{question}");
    }
    let posted = "POST /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(site.ask(posted).await.status, 405);
    let head = site.ask("HEAD /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}

#[tokio::test]
async fn a_request_is_explained_by_whoever_has_the_rules() {
    let site = Site::open().await;
    let told = site.post("/v1/explain", "{}").await;
    assert_eq!((told.status, told.body.as_str()), (200, r#"{"holds":[]}"#));
    assert!(told.head.contains("\r\ncontent-type: application/json"), "{}", told.head);
    let cases = [("silence", 503, "the store does not answer"), ("x", 400, "what is x?")];
    for (question, status, detail) in cases {
        let told = site.post("/v1/explain", question).await;
        assert_eq!((told.status, &told.json()["detail"]), (status, &json!(detail)));
    }
    assert_eq!(site.post("/v1/explain", "gone").await.status, 404);
    let endless = "x".repeat(300 * 1024);
    assert_eq!(site.post("/v1/explain", &endless).await.status, 413);
    let got = site.get("/v1/explain").await;
    assert_eq!((got.status, &got.json()["detail"]), (405, &json!("this page is not for that method")));
}
