//! What a person is told when a line or a limit is wrong.

use crate::replay::{replay, tollgate};
use insta::assert_snapshot;

const BUCKET: &str = "token_bucket: { rate: 10/s, burst: 5 }";

/// What the last of these lines is refused with; those before it are answered.
fn refusal(limits: &[&str], lines: &[&str]) -> String {
    let replayed = replay(limits, lines);
    assert_eq!(replayed.code, Some(1), "{lines:?}");
    assert_eq!(replayed.answers.len(), lines.len() - 1, "{lines:?}");
    replayed.error
}

#[test]
fn bad_lines() {
    let lines = [
        r#"{"at_us":0,"costs":1}"#,
        r#"{"at_us":0,"colour":1}"#,
        r#"{"at_us":0,"op":"chek"}"#,
        r#"{"at_us":0,"op":7}"#,
        r#"{}"#,
        r#"{"at_us":-1}"#,
        r#"{"at_us":1.5}"#,
        r#"{"at_us":1e3}"#,
        r#"{"at_us":"0"}"#,
        r#"{"at_us":4611686018427388}"#,
        r#"{"at_us":0,"cost":-1}"#,
        r#"{"at_us":0,"cost":4294967296}"#,
        r#"{"at_us":0,"cost":null}"#,
        r#"{"at_us":0,"key":7}"#,
        r#"{"at_us":0,"key":["a",7]}"#,
        r#"{"at_us":0,"at_us":1}"#,
        r#"{"at_us":0,"id":"a"}"#,
        r#"{"at_us":0,"op":"reset","cost":1}"#,
        r#"{"at_us":0,"op":"reserve","up_to_us":-1}"#,
        r#"{"at_us":0,"op":"cancel"}"#,
        r#"{"at_us":0,"op":"cancel","id":"nobody"}"#,
        r#"{"at_us":0,"op":"leave","id":"nobody"}"#,
        r#"{"at_us":0,"op":"enter","id":"a"}"#,
        r#"{"at_us":0,"op":"set_limit"}"#,
        r#"{"at_us":0,"op":"set_limit","index":1,"limit":"concurrency: { limit: 1 }"}"#,
        r#"{"at_us":0,"op":"set_limit","limit":"token_bucket: { rate: 10, burst: 0 }"}"#,
        r#"{"at_us":0,"op":"set_limit","limit":"bandwidth: { rate: 1MB/s }"}"#,
        r#"[0]"#,
        r#"{"at_us":0"#,
        r#"{"at_us":0} {"at_us":1}"#,
        r#"at_us 0"#,
    ];
    let told: String =
        lines.iter().map(|line| format!("{line}\n  {}", refusal(&[BUCKET], &[line]))).collect();
    assert_snapshot!(told, @r#"
    {"at_us":0,"costs":1}
      error: line 1: costs: is not a known field; did you mean "cost"?
    {"at_us":0,"colour":1}
      error: line 1: colour: is not a known field; known are "at_us", "op", "key", "cost", "id", "up_to_us", "limit", "index"
    {"at_us":0,"op":"chek"}
      error: line 1: op: is not known; did you mean "check"?
    {"at_us":0,"op":7}
      error: line 1: op: must be text; read 7
    {}
      error: line 1: at_us: is missing
    {"at_us":-1}
      error: line 1: at_us: must be a whole number from 0 to 4611686018427387; read -1
    {"at_us":1.5}
      error: line 1: at_us: must be a whole number from 0 to 4611686018427387; read 1.5
    {"at_us":1e3}
      error: line 1: at_us: must be a whole number from 0 to 4611686018427387; read 1000.0
    {"at_us":"0"}
      error: line 1: at_us: must be a whole number from 0 to 4611686018427387; read "0"
    {"at_us":4611686018427388}
      error: line 1: at_us: must be a whole number from 0 to 4611686018427387; read 4611686018427388
    {"at_us":0,"cost":-1}
      error: line 1: cost: must be a whole number from 0 to 4294967295; read -1
    {"at_us":0,"cost":4294967296}
      error: line 1: cost: must be a whole number from 0 to 4294967295; read 4294967296
    {"at_us":0,"cost":null}
      error: line 1: cost: must be a whole number from 0 to 4294967295; read null
    {"at_us":0,"key":7}
      error: line 1: key: must be text, or a list of texts and nulls; left out, it is one bucket for all; read 7
    {"at_us":0,"key":["a",7]}
      error: line 1: key: must be text, or a list of texts and nulls; left out, it is one bucket for all; read ["a",7]
    {"at_us":0,"at_us":1}
      error: line 1: at_us: is given twice; leave one of them
    {"at_us":0,"id":"a"}
      error: line 1: id: has no meaning for op "check", which takes key, cost
    {"at_us":0,"op":"reset","cost":1}
      error: line 1: cost: has no meaning for op "reset", which takes key
    {"at_us":0,"op":"reserve","up_to_us":-1}
      error: line 1: up_to_us: must be a whole number from 0 to 18446744073709551615; read -1
    {"at_us":0,"op":"cancel"}
      error: line 1: id: is missing; op "cancel" needs one, such as "id":"a"
    {"at_us":0,"op":"cancel","id":"nobody"}
      error: line 1: "id" "nobody" is unknown; no reserve named it before
    {"at_us":0,"op":"leave","id":"nobody"}
      error: line 1: "id" "nobody" is unknown; no enter named it before
    {"at_us":0,"op":"enter","id":"a"}
      error: line 1: op "enter" needs a concurrency limit, such as --limit 'concurrency: { limit: 20 }'
    {"at_us":0,"op":"set_limit"}
      error: line 1: limit: is missing; expected one such as "token_bucket: { rate: 10/s, burst: 5 }"
    {"at_us":0,"op":"set_limit","index":1,"limit":"concurrency: { limit: 1 }"}
      error: line 1: "index" must be below 1, the number of limits; read 1
    {"at_us":0,"op":"set_limit","limit":"token_bucket: { rate: 10, burst: 0 }"}
      error: line 1: limit: is wrong:
      1:23: token_bucket.rate: a `/` and a time are missing; read "10", expected a rate such as 10/s, 0.5/s or 100/30s
      1:34: token_bucket.burst: must be greater than zero; read "0", expected a whole number such as 100
    {"at_us":0,"op":"set_limit","limit":"bandwidth: { rate: 1MB/s }"}
      error: line 1: limit: is wrong:
      bandwidth paces the bytes of a body and is not a charge: it has nothing to replay
    [0]
      error: line 1: the line must be an object such as {"at_us":0}; read [0]
    {"at_us":0
      error: line 1: the line is not JSON at line 1, column 10: EOF while parsing an object
    {"at_us":0} {"at_us":1}
      error: line 1: the line is not JSON at line 1, column 13: trailing characters
    at_us 0
      error: line 1: the line is not JSON at line 1, column 1: expected value
    "#);
}

#[test]
fn ids_are_not_mixed_up() {
    let reserve = r#"{"at_us":0,"op":"reserve","id":"a"}"#;
    let enter = r#"{"at_us":0,"op":"enter","id":"a"}"#;
    let limits = ["concurrency: { limit: 9 }"];
    let told = [
        refusal(&limits, &[enter, enter]),
        refusal(&limits, &[reserve, reserve]),
        refusal(&limits, &[enter, r#"{"at_us":0,"op":"cancel","id":"a"}"#]),
        refusal(&limits, &[reserve, r#"{"at_us":0,"op":"leave","id":"a"}"#]),
    ];
    assert_snapshot!(told.concat(), @r#"
    error: line 2: "id" "a" is in use already; leave gives it back
    error: line 2: "id" "a" is in use already; cancel gives it back
    error: line 2: "id" "a" comes from enter, which leave gives back
    error: line 2: "id" "a" comes from reserve, which cancel gives back
    "#);
}

#[test]
fn a_set_needs_an_index() {
    let told =
        refusal(&[BUCKET, BUCKET], &[r#"{"at_us":0,"op":"set_limit","limit":"concurrency: { limit: 1 }"}"#]);
    assert_snapshot!(told, @r#"
    error: line 1: "index" is missing; there are 2 limits, counted from 0
    "#);
}

#[test]
fn lines_are_counted_with_the_empty_ones() {
    let replayed = replay(&[BUCKET], &["", r#"{"at_us":0}"#, "  ", "x"]);
    assert_snapshot!(replayed.error, @r#"
    error: line 4: the line is not JSON at line 1, column 1: expected value
    "#);
    assert_eq!(replayed.answers.len(), 1);
}

#[test]
fn bad_limits_are_all_told() {
    let replayed = replay(
        &["token_bucket: { rate: 0/s, brust: 5 }", BUCKET, "bandwidth: { rate: 50KiB/s }", "sliding_log"],
        &[r#"{"at_us":0}"#],
    );
    assert_eq!((replayed.code, replayed.output.as_str()), (Some(2), ""));
    assert_snapshot!(replayed.error, @r#"
    error: a limit is wrong
    --limit "token_bucket: { rate: 0/s, brust: 5 }"
      1:15: token_bucket.burst: is missing, such as `burst: 100`
      1:23: token_bucket.rate: must be greater than zero; read "0/s", expected a rate such as 10/s, 0.5/s or 100/30s
      1:28: token_bucket.brust: is not a known key; did you mean `burst`?
    --limit "bandwidth: { rate: 50KiB/s }"
      bandwidth paces the bytes of a body and is not a charge: it has nothing to replay
    --limit "sliding_log"
      1:1: must be a mapping such as `token_bucket: { rate: 10/s, burst: 5 }`; read a single value
    "#);
}

#[test]
fn a_missing_file_or_limit() {
    let missing = tollgate(&["replay", "--limit", BUCKET, "/no/such/file"], "");
    assert_eq!(missing.status.code(), Some(1));
    assert_snapshot!(String::from_utf8(missing.stderr).unwrap(), @r#"
    error: cannot open /no/such/file: No such file or directory (os error 2)
    "#);
    assert_eq!(tollgate(&["replay"], "").status.code(), Some(2));
}

#[test]
fn bytes_that_are_no_text() {
    let replayed = {
        let path = std::env::temp_dir().join(format!("tollgate-bytes-{}.jsonl", std::process::id()));
        std::fs::write(&path, b"{\"at_us\":0}\n\xff\n").unwrap();
        let ran = tollgate(&["replay", "--limit", BUCKET, path.to_str().unwrap()], "");
        std::fs::remove_file(&path).unwrap();
        ran
    };
    assert_eq!(replayed.status.code(), Some(1));
    assert_snapshot!(String::from_utf8(replayed.stderr).unwrap(), @r#"
    error: line 2: must be UTF-8: invalid utf-8 sequence of 1 bytes from index 0
    "#);
}
