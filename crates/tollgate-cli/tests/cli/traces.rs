//! The traces of `tests/vectors`, each driven through `tollgate replay`.
//!
//! An acquire sleeps for what it waits, so the next line's time depends on the last answer: the time is what the trace
//! says was slept so far, and that the answers agree is the test.

use crate::replay::{answers, decisions};
use serde_json::{Value, json};

fn traces(name: &str) -> Vec<Value> {
    let vectors: Value = serde_json::from_str(include_str!("../vectors/seed_traces.json")).unwrap();
    vectors[name].as_array().unwrap().clone()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a whole number"))
}

fn numbers(values: &Value) -> Vec<u64> {
    values.as_array().unwrap().iter().map(number).collect()
}

fn allowed(answers: &[Value]) -> Vec<bool> {
    answers.iter().map(|answer| answer["decision"] == "allow").collect()
}

fn warming_up(trace: &Value) -> String {
    format!(
        "smooth_warming_up: {{ rate: {}/s, warmup: {}ms, cold_factor: {} }}",
        trace["rate_per_s"], trace["warmup_ms"], trace["cold_factor"]
    )
}

fn bursty(trace: &Value) -> String {
    format!("smooth_bursty: {{ rate: {}/s }}", trace["rate_per_s"])
}

fn check_acquires(limit: &str, trace: &Value) {
    let (mut now, mut lines, mut waits) = (0, Vec::new(), Vec::new());
    for step in trace["steps"].as_array().unwrap() {
        if let Some(slept) = step["sleep_ms"].as_u64() {
            now += slept * 1_000;
            continue;
        }
        lines.push(json!({"at_us": now, "op": "reserve", "cost": step["acquire"]}).to_string());
        waits.push(number(&step["waits_us"]));
        now += number(&step["waits_us"]);
    }
    let waited: Vec<u64> =
        answers(&[limit], &lines).iter().map(|answer| number(&answer["wait_us"])).collect();
    assert_eq!(waited, waits, "{}", trace["name"]);
}

fn check_arrivals(limit: &str, trace: &Value) {
    let idle = number(&trace["idle_before_ms"]) * 1_000;
    let steps = trace["steps"].as_array().unwrap();
    let at = |step: &Value| idle + number(&step["at_ms"]) * 1_000;
    let lines: Vec<String> = steps
        .iter()
        .map(|step| json!({"at_us": at(step), "op": "reserve", "cost": step["permits"]}).to_string())
        .collect();
    for (answer, step) in answers(&[limit], &lines).iter().zip(steps) {
        let passes = at(step) + number(&answer["wait_us"]) - idle;
        assert_eq!(passes, number(&step["passes_at_us"]), "{} at {} ms", trace["name"], step["at_ms"]);
    }
}

#[test]
fn smooth_bursty_acquires() {
    for trace in traces("smooth_bursty") {
        check_acquires(&bursty(&trace), &trace);
    }
}

#[test]
fn smooth_bursty_arrivals() {
    for trace in traces("smooth_bursty_arrivals") {
        check_arrivals(&bursty(&trace), &trace);
    }
}

#[test]
fn smooth_warming_up_acquires() {
    for trace in traces("smooth_warming_up") {
        check_acquires(&warming_up(&trace), &trace);
    }
}

#[test]
fn smooth_warming_up_arrivals() {
    for trace in traces("smooth_warming_up_arrivals") {
        check_arrivals(&warming_up(&trace), &trace);
    }
}

#[test]
fn fixed_windows() {
    for trace in traces("fixed_window") {
        let align = trace["align"].as_str().unwrap();
        let limit = format!(
            "fixed_window: {{ limit: {}, window: {}ms, align: {align} }}",
            trace["limit"], trace["window_ms"]
        );
        let lines: Vec<String> =
            numbers(&trace["at_ms"]).iter().map(|at| format!("{{\"at_us\":{}}}", at * 1_000)).collect();
        assert_eq!(json!(allowed(&answers(&[&limit], &lines))), trace["allow"], "{}", trace["name"]);
    }
}

fn logs(trace: &Value) -> Vec<String> {
    let limits = trace["limits"].as_array().unwrap().iter();
    limits
        .map(|limit| {
            format!("sliding_log: {{ limit: {}, window: {}ms }}", limit["limit"], limit["window_ms"])
        })
        .collect()
}

#[test]
fn sliding_logs_decide_together() {
    for trace in traces("sliding_log").iter().filter(|trace| trace["at_ms"].is_array()) {
        let limits = logs(trace);
        let limits: Vec<&str> = limits.iter().map(String::as_str).collect();
        let lines: Vec<String> =
            numbers(&trace["at_ms"]).iter().map(|at| format!("{{\"at_us\":{}}}", at * 1_000)).collect();
        let answers = answers(&limits, &lines);
        let denied_by: Vec<&Value> = answers.iter().map(|answer| &answer["denied_by"]).collect();
        assert_eq!(json!(allowed(&answers)), trace["allow"], "{}", trace["name"]);
        assert_eq!(json!(denied_by), trace["denied_by"], "{}", trace["name"]);
    }
}

#[test]
fn sliding_logs_say_when_to_come_back() {
    for trace in traces("sliding_log").iter().filter(|trace| trace["log_ms_ago"].is_array()) {
        let limits = logs(trace);
        let limits: Vec<&str> = limits.iter().map(String::as_str).collect();
        let now = 100_000;
        let mut ago = numbers(&trace["log_ms_ago"]);
        ago.sort_unstable_by(|one, other| other.cmp(one));
        ago.push(0);
        let lines: Vec<String> =
            ago.iter().map(|ago| format!("{{\"at_us\":{}}}", (now - ago) * 1_000)).collect();
        let answers = answers(&limits, &lines);
        let (last, logged) = answers.split_last().unwrap();
        assert!(logged.iter().all(|answer| answer["decision"] == "allow"), "{logged:?}");
        assert_eq!(json!(last["decision"] == "allow"), trace["allow_now"]);
        assert_eq!(number(&last["retry_after_us"]), number(&trace["retry_after_ms"]) * 1_000);
    }
}

#[test]
fn the_boundary_problem_is_shown_and_avoided() {
    for trace in traces("fixed_window_boundary") {
        let (limit, window) = (number(&trace["limit"]), number(&trace["window_ms"]));
        // 200 calls in the hour's last minute, and all that a whole hour allows in the next one's first.
        let edge = 7 * window * 1_000;
        let early = vec![format!("{{\"at_us\":{}}}", edge - 60_000_000); 200];
        let late = vec![format!("{{\"at_us\":{edge}}}"); usize::try_from(limit).unwrap()];
        let lines = [early, late].concat();
        let passed = |numbers: &str| {
            let limit = numbers.replace("NUMBERS", &format!("limit: {limit}, window: {window}ms"));
            let allowed = allowed(&answers(&[&limit], &lines));
            (
                allowed[..200].iter().filter(|allowed| **allowed).count(),
                allowed[200..].iter().filter(|allowed| **allowed).count(),
            )
        };
        assert_eq!(passed("fixed_window: { NUMBERS }"), (200, 240));
        assert_eq!(passed("sliding_log: { NUMBERS }"), (200, 40));
        assert_eq!(passed("sliding_window: { NUMBERS, precision: 1m }"), (200, 40));
    }
}

#[test]
fn token_buckets() {
    for trace in traces("token_bucket") {
        let limit =
            format!("token_bucket: {{ rate: {}/s, burst: {} }}", trace["rate_per_s"], trace["capacity"]);
        let steps = trace["steps"].as_array().unwrap();
        let lines: Vec<String> = steps
            .iter()
            .map(|step| json!({"at_us": number(&step["at_ms"]) * 1_000, "cost": step["take"]}).to_string())
            .collect();
        for (answer, step) in answers(&[&limit], &lines).iter().zip(steps) {
            assert_eq!(json!(answer["decision"] == "allow"), step["allow"], "{} {step}", trace["name"]);
            assert_eq!(answer["remaining"], step["remaining"], "{} {step}", trace["name"]);
        }
    }
}

#[test]
fn a_shared_bucket_with_patience() {
    for trace in traces("distributed_bucket") {
        let limit =
            format!("token_bucket: {{ rate: {}/s, burst: {} }}", trace["rate_per_s"], trace["capacity"]);
        let line = json!({"at_us": 0, "op": "reserve", "up_to_us": number(&trace["max_wait_ms"]) * 1_000})
            .to_string();
        let lines = vec![line; usize::try_from(number(&trace["simultaneous"])).unwrap()];
        let answers = answers(&[&limit], &lines);
        let passed = answers.iter().filter(|answer| answer["decision"] != "deny");
        let waits: Vec<&Value> = passed.map(|answer| &answer["wait_us"]).collect();
        assert_eq!(json!(waits), trace["waits_us"]);
        let refused = decisions(&answers).iter().filter(|decision| **decision == "deny").count();
        assert_eq!(json!(refused), trace["refused"]);
    }
}
