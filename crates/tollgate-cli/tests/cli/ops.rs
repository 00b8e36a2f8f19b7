//! What each operation does, and what its answer looks like.

use crate::replay::{answers, decisions, replay, tollgate};
use serde_json::json;

const BUCKET: &str = "token_bucket: { rate: 10/s, burst: 5 }";

#[test]
fn an_answer_to_the_letter() {
    let replayed = replay(
        &[BUCKET],
        &[
            r#"{"at_us":0}"#,
            r#"{"at_us":0,"cost":4}"#,
            r#"{"at_us":0,"op":"check","key":"","cost":1}"#,
            "",
            r#"{"at_us":0,"cost":6}"#,
            r#"{"at_us":50000,"op":"reserve"}"#,
            r#"{"at_us":50000,"op":"reset"}"#,
            r#"{"at_us":50000,"op":"peek","cost":5}"#,
        ],
    );
    insta::assert_snapshot!(replayed.output, @r#"
    {"at_us":0,"decision":"allow","wait_us":0,"remaining":4,"retry_after_us":0,"reset_after_us":100000}
    {"at_us":0,"decision":"allow","wait_us":0,"remaining":0,"retry_after_us":0,"reset_after_us":500000}
    {"at_us":0,"decision":"deny","wait_us":0,"remaining":0,"retry_after_us":100000,"reset_after_us":500000}
    {"at_us":0,"decision":"never","wait_us":0,"remaining":0,"retry_after_us":null,"reset_after_us":500000}
    {"at_us":50000,"decision":"wait","wait_us":50000,"remaining":0,"retry_after_us":0,"reset_after_us":550000}
    {"at_us":50000,"decision":"ok"}
    {"at_us":50000,"decision":"allow","wait_us":0,"remaining":0,"retry_after_us":0,"reset_after_us":500000}
    "#);
}

#[test]
fn a_set_to_the_letter() {
    let limits = ["sliding_log: { limit: 1, window: 1s }", "fixed_window: { limit: 9, window: forever }"];
    let replayed = replay(&limits, &[r#"{"at_us":7}"#, r#"{"at_us":8}"#]);
    insta::assert_snapshot!(replayed.output, @r#"
    {"at_us":7,"decision":"allow","wait_us":0,"remaining":0,"retry_after_us":0,"reset_after_us":null,"denied_by":null,"statuses":[{"decision":"allow","wait_us":0,"remaining":0,"retry_after_us":0,"reset_after_us":1000000},{"decision":"allow","wait_us":0,"remaining":8,"retry_after_us":0,"reset_after_us":null}]}
    {"at_us":8,"decision":"deny","wait_us":0,"remaining":0,"retry_after_us":999999,"reset_after_us":null,"denied_by":0,"statuses":[{"decision":"deny","wait_us":0,"remaining":0,"retry_after_us":999999,"reset_after_us":999999},{"decision":"allow","wait_us":0,"remaining":8,"retry_after_us":0,"reset_after_us":null}]}
    "#);
}

#[test]
fn keys_have_buckets_of_their_own() {
    let keys = [r#""""#, r#""a""#, r#"["a","b"]"#, r#"["a",null]"#, r#"["a",""]"#, "[]", r#"["a"]"#];
    let lines = keys.map(|key| format!("{{\"at_us\":0,\"key\":{key}}}"));
    let answers = answers(&["sliding_log: { limit: 1, window: 1s }"], &lines);
    // A list of one is that one, which has had its turn.
    assert_eq!(decisions(&answers), ["allow", "allow", "allow", "allow", "allow", "allow", "deny"]);
}

#[test]
fn a_cancelled_turn_comes_back_until_it_is_due() {
    let before_due = [
        r#"{"at_us":0,"cost":5}"#,
        r#"{"at_us":0,"op":"reserve","cost":2,"id":"turn"}"#,
        r#"{"at_us":199999,"op":"cancel","id":"turn"}"#,
        r#"{"at_us":200000,"cost":2}"#,
        r#"{"at_us":200000,"op":"cancel","id":"turn"}"#,
    ];
    let told = answers(&[BUCKET], &before_due);
    assert_eq!(decisions(&told), ["allow", "wait", "ok", "allow", "ok"]);

    let when_due = [
        r#"{"at_us":0,"cost":5}"#,
        r#"{"at_us":0,"op":"reserve","cost":2,"id":"turn"}"#,
        r#"{"at_us":200000,"op":"cancel","id":"turn"}"#,
        r#"{"at_us":200000,"cost":1}"#,
    ];
    assert_eq!(decisions(&answers(&[BUCKET], &when_due)), ["allow", "wait", "ok", "deny"]);
}

#[test]
fn a_cancelled_turn_comes_back_on_every_limit() {
    let limits = [BUCKET, "token_bucket: { rate: 1/s, burst: 9 }"];
    let told = answers(
        &limits,
        &[
            r#"{"at_us":0,"cost":5}"#,
            r#"{"at_us":0,"op":"reserve","cost":3,"id":"turn"}"#,
            r#"{"at_us":0,"op":"cancel","id":"turn"}"#,
            r#"{"at_us":0,"op":"peek","cost":0}"#,
        ],
    );
    let left: Vec<_> =
        told[3]["statuses"].as_array().unwrap().iter().map(|status| &status["remaining"]).collect();
    assert_eq!(left, [0, 4]);
}

#[test]
fn an_id_is_free_again_once_given_back_or_refused() {
    let told = answers(
        &["concurrency: { limit: 1 }"],
        &[
            r#"{"at_us":0,"op":"enter","id":"a"}"#,
            r#"{"at_us":0,"op":"enter","id":"b"}"#,
            r#"{"at_us":0,"op":"leave","id":"b"}"#,
            r#"{"at_us":0,"op":"leave","id":"a"}"#,
            r#"{"at_us":0,"op":"leave","id":"a"}"#,
            r#"{"at_us":0,"op":"enter","id":"b"}"#,
        ],
    );
    assert_eq!(decisions(&told), ["allow", "deny", "ok", "ok", "ok", "allow"]);
    assert_eq!(told[1]["retry_after_us"], json!(null), "nobody can say when a slot comes free");
}

#[test]
fn slots_come_back_after_max_hold() {
    let told = answers(
        &["concurrency: { limit: 1, max_hold: 1s }"],
        &[
            r#"{"at_us":0,"op":"enter","id":"a"}"#,
            r#"{"at_us":999999,"op":"enter","id":"b"}"#,
            r#"{"at_us":1000000,"op":"enter","id":"c"}"#,
            r#"{"at_us":1000000,"op":"leave","id":"a"}"#,
            r#"{"at_us":1000000,"op":"enter","id":"d"}"#,
        ],
    );
    assert_eq!(decisions(&told), ["allow", "deny", "allow", "ok", "deny"]);
}

#[test]
fn refund_and_reset_give_back() {
    let told = answers(
        &["fixed_window: { limit: 3, window: 1h }"],
        &[
            r#"{"at_us":0,"cost":3}"#,
            r#"{"at_us":0,"op":"refund","cost":2}"#,
            r#"{"at_us":0}"#,
            r#"{"at_us":0,"op":"reset"}"#,
            r#"{"at_us":0,"op":"peek"}"#,
        ],
    );
    assert_eq!((&told[2]["remaining"], &told[4]["remaining"]), (&json!(1), &json!(2)));
}

#[test]
fn a_limit_is_changed_and_keeps_what_was_used() {
    let told = answers(
        &["sliding_log: { limit: 2, window: 1m }", "sliding_log: { limit: 9, window: 1m }"],
        &[
            r#"{"at_us":0,"cost":2}"#,
            r#"{"at_us":0}"#,
            r#"{"at_us":0,"op":"set_limit","index":0,"limit":"sliding_log: { limit: 3, window: 1m }"}"#,
            r#"{"at_us":0}"#,
            r#"{"at_us":0}"#,
        ],
    );
    assert_eq!(decisions(&told), ["allow", "deny", "ok", "allow", "deny"]);
}

#[test]
fn real_timestamps_and_a_clock_that_steps_back() {
    let told = answers(
        &["fixed_window: { limit: 1, window: day, align: calendar, time_zone: Asia/Shanghai }"],
        &[
            // 2026-03-04, a second before midnight in Shanghai; midnight; and back again.
            r#"{"at_us":1772639999000000}"#,
            r#"{"at_us":1772640000000000}"#,
            r#"{"at_us":1772639999000000}"#,
        ],
    );
    assert_eq!(decisions(&told), ["allow", "allow", "deny"]);
    assert_eq!(told[0]["reset_after_us"], 1_000_000);

    let told = answers(&[BUCKET], &[r#"{"at_us":1772639999000000}"#; 6]);
    assert_eq!(decisions(&told), ["allow", "allow", "allow", "allow", "allow", "deny"]);
}

#[test]
fn a_file_is_read_as_standard_input_is() {
    let path = std::env::temp_dir().join(format!("tollgate-replay-{}.jsonl", std::process::id()));
    std::fs::write(&path, "{\"at_us\":0}\r\n\n{\"at_us\":1}").unwrap();
    let from_file = tollgate(&["replay", "--limit", BUCKET, path.to_str().unwrap()], "");
    std::fs::remove_file(&path).unwrap();
    let from_input = tollgate(&["replay", "--limit", BUCKET, "-"], "{\"at_us\":0}\n{\"at_us\":1}\n");
    assert_eq!(from_file, from_input);
    assert_eq!(from_file.stdout.iter().filter(|byte| **byte == b'\n').count(), 2);
}
