//! What happens, over time and as it happens.

use super::stage::Stage;
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
};
use testkit::eventually;

/// Somebody who listens.
struct Listening {
    child: Child,
    heard: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Listening {
    fn start(stage: &Stage) -> Self {
        let url = format!("http://{}/v1/events", stage.address());
        let token = format!("authorization: Bearer {}", stage.viewer);
        let mut child =
            Command::new("curl").args(["-sN", "-H", &token, &url]).stdout(Stdio::piped()).spawn().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (lines, kept) = (BufReader::new(child.stdout.take().unwrap()).lines(), Arc::clone(&heard));
        thread::spawn(move || {
            let mut event = String::new();
            for line in lines.map_while(Result::ok) {
                if let Some(name) = line.strip_prefix("event: ") {
                    event = name.to_owned();
                } else if let Some(data) = line.strip_prefix("data: ") {
                    kept.lock().unwrap().push((event.clone(), serde_json::from_str(data).unwrap()));
                }
            }
        });
        let listening = Self { child, heard };
        listening.hears("second", |_| true);
        listening
    }

    /// Waits for an event that is as it should be.
    fn hears(&self, event: &str, is: impl Fn(&Value) -> bool) -> Value {
        eventually(event, || {
            let heard = self.heard.lock().unwrap();
            heard.iter().find(|(name, data)| name == event && is(data)).map(|(_, data)| data.clone())
        })
    }

    fn count(&self, event: &str) -> usize {
        self.heard.lock().unwrap().iter().filter(|(name, _)| name == event).count()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn whoever_listens_hears_of_refusals_rules_and_the_switch() {
    let stage = Stage::guarded();
    let listening = Listening::start(&stage);
    for _ in 0..4 {
        stage.order("erin");
    }
    let refused = listening.hears("refused", |_| true);
    assert_eq!((&refused["route"], &refused["rule"]), (&json!("orders"), &json!("create")));
    assert_eq!((&refused["limit"], &refused["key"]), (&json!("per-client"), &json!(["erin"])));
    assert_eq!(
        (&refused["method"], &refused["path"], &refused["ip"]),
        (&json!("POST"), &json!("/orders/1"), &json!("127.0.0.1"))
    );
    listening.hears("second", |data| {
        let rules = data["rules"].as_array().unwrap();
        data["refused"] == 1 && rules.iter().any(|rule| rule["rule"] == "create" && rule["refused"] == 1)
    });
    let off = json!({ "enabled": false });
    assert_eq!(stage.ask("PUT", "/v1/switch", &stage.operator, Some(&off)).status, 200);
    let rules = listening.hears("rules", |_| true);
    assert_eq!((&rules["by"], &rules["revision"]), (&json!("ops"), &stage.get("/v1/book")["revision"]));
    listening.hears("switch", |data| data["enabled"] == false);
    assert_eq!(listening.count("rules"), 1, "told once");
}

#[test]
fn whoever_is_put_out_hears_no_more() {
    let stage = Stage::guarded();
    let mut listening = Listening::start(&stage);
    let (before, after) =
        stage.text().split_once("{ name: vic").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let without = before + after.split_once("}, ").unwrap().1;
    let version = stage.get("/v1/book")["pieces"][0]["version"].clone();
    let changes = json!({ "changes": [{ "change": "edit", "id": 1, "version": version, "text": without }] });
    let told = stage.ask("POST", "/v1/changes", &stage.admin, Some(&changes));
    assert_eq!(told.status, 200, "{told:?}");
    eventually("the end", || listening.child.try_wait().unwrap());
    assert_eq!(listening.count("rules"), 0, "not even of what put them out");
}

#[test]
fn many_refusals_are_told_in_part_and_the_rest_is_counted() {
    let stage = Stage::guarded();
    let listening = Listening::start(&stage);
    // In one connection, so that they come fast.
    let url = format!("http://{}/orders/[1-400]", stage.opened.address("gateway"));
    crate::served::curl(&["-s", "-d", "x", "-H", "x-api-key: frank", &url]);
    let all = || {
        let heard = listening.heard.lock().unwrap();
        let of = |event: &str, field: &str| {
            let data =
                heard.iter().filter(|(name, _)| name == event).map(|(_, data)| data[field].as_u64().unwrap());
            data.sum::<u64>()
        };
        (of("second", "refused"), of("refused", "left_out"))
    };
    eventually("all are counted", || (all().0 == 397).then_some(()));
    let told = listening.count("refused") as u64;
    assert!((20..397).contains(&told), "{told}");
    // What was left out is told with the next that is told.
    let (counted, left_out) = all();
    assert!(told + left_out <= counted);
}

#[test]
fn no_more_than_so_many_listen_and_places_come_back() {
    let stage = Stage::local();
    let mut listening: Vec<_> = (0..32).map(|_| Listening::start(&stage)).collect();
    let told = stage.curl("GET", "/v1/events", &["--max-time", "20"]);
    assert_eq!(told.status, 503);
    assert!(told.head.contains("\r\nretry-after: "), "{}", told.head);
    listening.pop();
    eventually("there is a place again", || {
        let url = format!("http://{}/v1/events", stage.address());
        let code =
            crate::served::curl(&["-sN", "--max-time", "2", "-o", "/dev/null", "-w", "%{http_code}", &url]);
        (code == "200").then_some(())
    });
}

#[test]
fn usage_by_rule_is_told_over_time() {
    let stage = Stage::guarded();
    for _ in 0..5 {
        stage.order("grace");
    }
    let sum = |series: &Value| series.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum::<u64>();
    for (last, step, length) in [(120, 1000, 120), (600, 10_000, 60), (7200, 300_000, 24)] {
        let usage = eventually("it is counted", || {
            let usage = stage.get(&format!("/v1/usage?last={last}"));
            (sum(&usage["total"]["refused"]) == 2).then_some(usage)
        });
        assert_eq!(
            (&usage["step_ms"], usage["total"]["passed"].as_array().unwrap().len()),
            (&json!(step), length)
        );
        assert_eq!(sum(&usage["total"]["passed"]), 3, "each once, whichever rules it met");
        let rule = |name: &str| {
            let rules = usage["rules"].as_array().unwrap();
            rules.iter().find(|rule| rule["rule"] == name).unwrap().clone()
        };
        assert_eq!((sum(&rule("create")["passed"]), sum(&rule("create")["refused"])), (3, 2));
        assert_eq!((sum(&rule("per-ip")["passed"]), &rule("per-ip")["route"]), (3, &Value::Null));
    }
    for bad in ["0", "86401", "-1", "x", "1&last=2"] {
        let told = stage.ask("GET", &format!("/v1/usage?last={bad}"), &stage.viewer, None);
        assert_eq!(told.status, 400, "{bad}");
    }
}
