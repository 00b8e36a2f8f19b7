//! Runs `tollgate replay` and reads what it says.

use serde_json::Value;
use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

pub(crate) fn tollgate(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Written from a thread of its own: a full pipe on one side must not stop the other.
    let input = input.to_owned();
    let writer = std::thread::spawn(move || {
        // A run that refuses its limits never reads this.
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// What replaying the lines prints, and how it ends.
pub(crate) struct Replayed {
    pub(crate) answers: Vec<Value>,
    pub(crate) output: String,
    pub(crate) error: String,
    pub(crate) code: Option<i32>,
}

pub(crate) fn replay(limits: &[&str], lines: &[impl AsRef<str>]) -> Replayed {
    let mut args = vec!["replay"];
    args.extend(limits.iter().flat_map(|limit| ["--limit", limit]));
    let input: String = lines.iter().map(|line| format!("{}\n", line.as_ref())).collect();
    let ran = tollgate(&args, &input);
    let output = String::from_utf8(ran.stdout).unwrap();
    Replayed {
        answers: output.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
        error: String::from_utf8(ran.stderr).unwrap(),
        code: ran.status.code(),
        output,
    }
}

/// The answers to lines that are all obeyed.
pub(crate) fn answers(limits: &[&str], lines: &[impl AsRef<str>]) -> Vec<Value> {
    let replayed = replay(limits, lines);
    assert_eq!((replayed.error.as_str(), replayed.code), ("", Some(0)));
    assert_eq!(replayed.answers.len(), lines.iter().filter(|line| !line.as_ref().trim().is_empty()).count());
    replayed.answers
}

pub(crate) fn decisions(answers: &[Value]) -> Vec<&str> {
    answers.iter().map(|answer| answer["decision"].as_str().unwrap()).collect()
}
