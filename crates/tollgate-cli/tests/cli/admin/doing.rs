//! What is done over the API is done: rules, switches, keys.

use super::stage::Stage;
use serde_json::{Value, json};

fn change(stage: &Stage, changes: Value) -> super::stage::Told {
    stage.ask("POST", "/v1/changes", &stage.admin, Some(&json!({ "changes": changes })))
}

/// The file's version, as the book has it.
fn version(stage: &Stage) -> i64 {
    stage.get("/v1/book")["pieces"][0]["version"].as_i64().unwrap()
}

#[test]
fn a_published_change_is_in_force_when_it_is_answered() {
    let stage = Stage::guarded();
    let first = version(&stage);
    let wider = stage.text().replace("burst: 3 ", "burst: 5 ");
    let told = change(&stage, json!([{ "change": "edit", "id": 1, "version": first, "text": wider }]));
    assert_eq!(told.status, 200, "{told:?}");
    assert_eq!(told.json()["pieces"][0]["changed"]["by"], "ada");
    assert_eq!(stage.text(), wider, "and in the file");
    assert_eq!((0..6).map(|_| stage.order("alice")).collect::<Vec<_>>(), [200, 200, 200, 200, 200, 429]);
    let overview = stage.get("/v1/overview");
    assert_eq!(overview["rules"]["revision"], told.json()["revision"]);

    // Made on what is not there any more.
    let stale =
        change(&stage, json!([{ "change": "edit", "id": 1, "version": first, "text": "version: 1" }]));
    assert_eq!((stale.status, &stale.json()["stale"][0]["by"]), (409, &json!("ada")));
    // No rule file.
    let bad = wider.replace("rate: 1/h", "rate: 0/h");
    let now = version(&stage);
    let wrong = change(&stage, json!([{ "change": "edit", "id": 1, "version": now, "text": bad }]));
    assert_eq!(wrong.status, 422);
    let mistake = &wrong.json()["mistakes"][0];
    assert_eq!((&mistake["line"], &mistake["piece"]), (&json!(4), &json!(1)));
    assert!(mistake["message"].as_str().unwrap().starts_with("must be greater than zero"));
    // What takes a restart.
    let moved = wider.replace("gateway: 127.0.0.1:0", "gateway: 127.0.0.1:1");
    let restart = change(&stage, json!([{ "change": "edit", "id": 1, "version": now, "text": moved }]));
    assert_eq!(restart.status, 422, "{restart:?}");
    assert_eq!(stage.text(), wider, "nothing of it is written");

    let checked = |text: &str| {
        let changes = json!({ "changes": [{ "change": "edit", "id": 1, "version": 0, "text": text }] });
        stage.ask("POST", "/v1/changes/check", &stage.viewer, Some(&changes))
    };
    assert_eq!(checked(&wider).json(), json!({ "mistakes": [] }));
    assert_eq!(checked(&bad).json()["mistakes"].as_array().unwrap().len(), 2, "the override has it too");
    let entries = stage.get("/v1/audit?n=1");
    let entry = &entries["entries"][0];
    assert_eq!((&entry["by"], &entry["action"]), (&json!("ada"), &json!("edit")));
}

#[test]
fn switches_are_for_operators_and_work_at_once() {
    let stage = Stage::guarded();
    let switch = |path: &str, body: Value| {
        let told = stage.ask("PUT", path, &stage.operator, Some(&body));
        assert_eq!(told.status, 200, "{told:?}");
    };
    let orders = || (0..5).map(|_| stage.order("bob")).filter(|status| *status == 429).count();
    assert_eq!(orders(), 2);
    switch("/v1/switch/rule", json!({ "route": "orders", "rule": "create", "enabled": false }));
    assert_eq!(orders(), 0);
    let rules = stage.get("/v1/rules");
    let create = rules["rules"].as_array().unwrap().iter().find(|rule| rule["rule"] == "create").unwrap();
    assert_eq!(
        (&create["enabled"], &create["limits"][0]["summary"]),
        (&json!(false), &json!("1/h, burst 3"))
    );
    switch("/v1/switch/rule", json!({ "route": "orders", "rule": "create", "enabled": true }));
    assert_eq!(orders(), 5, "what was used is remembered");
    switch("/v1/switch", json!({ "enabled": false }));
    assert_eq!((orders(), stage.get("/v1/overview")["enabled"].as_bool()), (0, Some(false)));
    switch("/v1/switch", json!({ "enabled": true }));
    assert_eq!(orders(), 5);
}

#[test]
fn the_global_switch_works_beside_a_mistake_in_the_file() {
    let stage = Stage::guarded();
    let ailing = || {
        let told = stage.ask("GET", "/readyz", &stage.viewer, None).json();
        told["components"]["rules"]["state"] == "ailing"
    };
    let revision = || stage.get("/v1/rules")["revision"].clone();
    let (good, first) = (stage.text(), revision());
    std::fs::write(&stage.file, good.replace("rate: 1000/s", "rate: 0/s")).unwrap();
    testkit::eventually("the mistake", || ailing().then_some(()));
    let switch = |enabled: bool| {
        stage.ask("PUT", "/v1/switch", &stage.operator, Some(&json!({ "enabled": enabled }))).status
    };
    // Who turns it twice finds it so.
    for _ in 0..2 {
        assert_eq!(switch(false), 200);
        assert!(stage.text().contains("enabled: false") && stage.text().contains("rate: 0/s"));
        assert_eq!((0..6).map(|_| stage.order("alice")).collect::<Vec<_>>(), [200; 6]);
        assert!(ailing(), "the mistake is still there");
        assert_eq!(revision(), first, "and what is in force is not that file");
    }
    assert_eq!(switch(true), 200);
    assert_eq!((0..4).map(|_| stage.order("alice")).collect::<Vec<_>>(), [200, 200, 200, 429]);
    std::fs::write(&stage.file, &good).unwrap();
    testkit::eventually("to be well", || (!ailing()).then_some(()));
}

#[test]
fn a_refused_client_is_found_granted_reset_and_banned() {
    let stage = Stage::guarded();
    let act = |what: &str, body: Value| {
        let told = stage.ask("POST", &format!("/v1/keys/{what}"), &stage.operator, Some(&body));
        assert_eq!(told.status, 200, "{told:?}");
        told.json()
    };
    let orders = |client: &str, n: usize| (0..n).map(|_| stage.order(client)).collect::<Vec<_>>();
    assert_eq!(orders("carol", 4), [200, 200, 200, 429]);
    let top = stage.get("/v1/top");
    assert_eq!(
        (&top["limited"][0]["limit"], &top["limited"][0]["key"]),
        (&json!("per-client"), &json!("carol"))
    );

    let held = stage.get("/v1/keys?limit=per-client&key=carol");
    assert_eq!((&held["decision"], &held["remaining"], &held["of"]), (&json!("deny"), &json!(0), &json!(3)));
    assert!(
        held["retry_after_ms"].as_u64().unwrap() > 3_000_000
            && held["refused_per_second"].as_f64().unwrap() > 0.0
    );
    let granted = act("grant", json!({ "limit": "per-client", "key": "carol", "units": 1 }));
    assert_eq!((&granted["decision"], &granted["remaining"]), (&json!("allow"), &json!(1)));
    assert_eq!(orders("carol", 2), [200, 429]);
    act("reset", json!({ "limit": "per-client", "key": ["carol"] }));
    assert_eq!(orders("carol", 1), [200]);
    let banned = act("ban", json!({ "limit": "per-client", "key": "carol", "seconds": 3600 }));
    assert_eq!(banned["decided_by"], "ban");
    assert_eq!(orders("carol", 1), [429]);
    act("ban", json!({ "limit": "per-client", "key": "carol", "seconds": 0 }));
    assert_eq!(orders("carol", 1), [200]);

    // A key with numbers of its own, a rule's own limit, and keys with parts that are missing.
    assert_eq!(stage.get("/v1/keys?limit=per-client&key=vip-7")["of"], 50);
    // One that was never used has all, and nothing to come back.
    let fresh = stage.get("/v1/keys?limit=per-client&key=fresh");
    assert_eq!((&fresh["remaining"], &fresh["reset_after_ms"]), (&fresh["of"], &json!(0)), "{fresh}");
    assert_eq!(stage.get("/v1/keys?limit=everywhere/per-ip[0]&key=127.0.0.1")["of"], 2000);
    assert_eq!(stage.get("/v1/keys?limit=per-client&key=a&missing=1")["key"], json!(["a", null]));
    let lost = stage.ask("GET", "/v1/keys?limit=per-clent&key=a", &stage.viewer, None);
    assert_eq!(lost.status, 404);
    assert!(lost.body.contains("did you mean \\\"per-client\\\"?"), "{}", lost.body);

    let audit = stage.get("/v1/audit");
    let told: Vec<_> = audit["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            format!(
                "{} {} {}",
                entry["by"].as_str().unwrap(),
                entry["action"].as_str().unwrap(),
                entry["about"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "ops lift ban limit per-client key carol",
            "ops ban 3600 s limit per-client key carol",
            "ops reset limit per-client key carol",
            "ops grant 1 limit per-client key carol",
        ]
    );
}

#[test]
fn a_draft_is_tried_on_the_requests_that_came() {
    let stage = Stage::guarded();
    for _ in 0..5 {
        stage.order("dave");
    }
    let wider = stage.text().replace("burst: 3 ", "burst: 4 ");
    let attempt = |text: &str| {
        let changes = json!({ "changes": [{ "change": "edit", "id": 1, "version": 0, "text": text }] });
        stage.ask("POST", "/v1/changes/try", &stage.viewer, Some(&changes))
    };
    let told = attempt(&wider).json();
    assert_eq!((&told["recorded"]["requests"], &told["recorded"]["of"]), (&json!(5), &json!(5)));
    assert_eq!(told["now"], json!({ "passed": 3, "delayed": 0, "invalid": 0, "refused": 2 }));
    assert_eq!(told["draft"], json!({ "passed": 4, "delayed": 0, "invalid": 0, "refused": 1 }));
    let differ = told["differ"].as_array().unwrap();
    assert_eq!(differ.len(), 1);
    assert_eq!(differ[0]["now"], json!({ "decision": "deny", "rule": "orders/create", "reason": null }));
    assert_eq!(differ[0]["draft"], json!({ "decision": "allow", "rule": null, "reason": null }));
    assert_eq!((&differ[0]["method"], &differ[0]["path"]), (&json!("POST"), &json!("/orders/1")));
    assert_eq!(attempt("version: 1\nlimits: 7").status, 422);
    assert_eq!(stage.order("dave"), 429, "nothing was charged or changed");
}

#[test]
fn a_limit_is_played_with() {
    let stage = Stage::guarded();
    let play = |limit: &str, traffic: Value, more: Value| {
        let mut asked = json!({ "limit": limit, "traffic": traffic });
        asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        stage.ask("POST", "/v1/play", &stage.viewer, Some(&asked))
    };
    let steady = json!({ "shape": "steady", "rate": 20, "seconds": 10 });
    let told = play("token_bucket: { rate: 10/s, burst: 20 }", steady.clone(), json!({})).json();
    assert_eq!((&told["passed"], &told["refused"]), (&json!(119), &json!(81)), "20, and 99 in 9.95 s");
    assert_eq!(
        (told["arrivals"].as_array().unwrap().len(), &told["summary"]),
        (200, &json!("10/s, burst 20"))
    );
    let waiting =
        play("token_bucket: { rate: 10/s, burst: 1 }", steady.clone(), json!({ "wait_ms": 200 })).json();
    assert!(waiting["delayed"].as_u64().unwrap() > 50, "{}", waiting["delayed"]);
    // Two slots of 100 ms each are 20 a second.
    let slots = play("concurrency: { limit: 2 }", steady.clone(), json!({ "hold_ms": 100 })).json();
    assert_eq!(slots["passed"], 200);
    let slots = play("concurrency: { limit: 1 }", steady.clone(), json!({ "hold_ms": 100 })).json();
    assert_eq!(slots["passed"], 100);
    let wrong = play("token_bucket: { rate: 10/s }", steady, json!({}));
    assert_eq!((wrong.status, &wrong.json()["mistakes"][0]["path"]), (422, &json!("token_bucket.burst")));
    let much = play(
        "token_bucket: { rate: 10/s, burst: 1 }",
        json!({ "shape": "steady", "rate": 5000, "seconds": 3 }),
        json!({}),
    );
    assert_eq!(much.status, 400);
}
