//! Runs `tollgate replay` and reads what it says.

use serde_json::Value;
use std::{
    io::Write,
    process::{Child, Command, Output, Stdio},
    sync::OnceLock,
};
use testkit::RedisServer;

/// The Redis that tests share: runs do not meet there.
pub(crate) fn redis() -> &'static RedisServer {
    static SERVER: OnceLock<RedisServer> = OnceLock::new();
    SERVER.get_or_init(RedisServer::start)
}

/// Starts it, to be written to and read from.
pub(crate) fn start(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

pub(crate) fn tollgate(args: &[&str], input: &str) -> Output {
    let mut child = start(args);
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
    replay_with(&[], limits, lines)
}

/// With further arguments.
pub(crate) fn replay_with(more: &[&str], limits: &[&str], lines: &[impl AsRef<str>]) -> Replayed {
    let mut args = vec!["replay"];
    args.extend(more);
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

/// The answers to lines that are all obeyed, in memory and by a Redis in the same words.
pub(crate) fn answers(limits: &[&str], lines: &[impl AsRef<str>]) -> Vec<Value> {
    let replayed = replay(limits, lines);
    assert_eq!((replayed.error.as_str(), replayed.code), ("", Some(0)));
    assert_eq!(replayed.answers.len(), lines.iter().filter(|line| !line.as_ref().trim().is_empty()).count());

    let shared = replay_with(&["--store", &redis().url()], limits, lines);
    let asked = lines.iter().map(AsRef::as_ref).filter(|line| !line.trim().is_empty());
    for ((line, here), there) in asked.zip(replayed.output.lines()).zip(shared.output.lines()) {
        assert_eq!(there, here, "Redis and memory differ on {line} of {limits:?}");
    }
    assert_eq!((shared.error.as_str(), shared.code), ("", Some(0)));
    assert_eq!(shared.output, replayed.output);
    assert_eq!(redis().keys_without_ttl(), [""; 0]);
    replayed.answers
}

pub(crate) fn decisions(answers: &[Value]) -> Vec<&str> {
    answers.iter().map(|answer| answer["decision"].as_str().unwrap()).collect()
}
