//! A replay through a real Redis: what it leaves there, and what a person is told when it fails.
//!
//! That the answers are those of memory is asserted wherever [`answers`](crate::replay::answers) is used: on every trace,
//! every operation and on schedules by chance.

use crate::replay::{redis, replay_with, start, tollgate};
use insta::assert_snapshot;
use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, ChildStdout},
};
use testkit::RedisServer;

const BUCKET: &str = "token_bucket: { rate: 10/s, burst: 5 }";

/// A replay that is told one line at a time.
struct Running {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn at(url: &str, limits: &[&str]) -> Self {
        let mut args = vec!["replay", "--store", url];
        args.extend(limits.iter().flat_map(|limit| ["--limit", limit]));
        let mut child = start(&args);
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output) }
    }

    /// The answer, empty if there is none.
    fn tell(&mut self, line: &str) -> String {
        writeln!(self.input, "{line}").unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        answer
    }

    /// Ends the input. How the replay ends, and what it says.
    fn end(self) -> (Option<i32>, String) {
        let Self { mut child, input, .. } = self;
        drop(input);
        let mut told = String::new();
        child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        (child.wait().unwrap().code(), told)
    }
}

fn keys(server: &RedisServer) -> Vec<String> {
    server.command(&["KEYS", "*"]).items().iter().map(|key| key.text()).collect()
}

#[test]
fn what_a_run_keeps_is_its_own_expires_and_is_removed() {
    let server = RedisServer::start();
    let limits = [BUCKET, "fixed_window: { limit: 9, window: forever }", "concurrency: { limit: 3 }"];
    let mut one = Running::at(&server.url(), &limits);
    let mut other = Running::at(&server.url(), &limits);
    let line = r#"{"at_us":7000000,"op":"enter","id":"slot","key":["a",null]}"#;
    let answer = one.tell(line);
    assert!(answer.contains(r#""remaining":2"#), "{answer}");
    assert_eq!(other.tell(line), answer, "runs do not meet");

    let kept = keys(&server);
    assert_eq!(kept.len(), 2 * limits.len(), "{kept:?}");
    for key in &kept {
        assert!(key.starts_with("tg-replay-"), "{key}");
        let expires = server.command(&["TTL", key]).integer();
        assert!((3_500..=3_600).contains(&expires), "{key} expires in {expires} s");
    }

    assert_eq!(one.end(), (Some(0), String::new()));
    assert_eq!(keys(&server).len(), limits.len(), "the other run's are left alone");
    other.tell("no line at all");
    let (code, told) = other.end();
    assert_eq!(code, Some(1), "{told}");
    assert_eq!(keys(&server), [""; 0], "a run that fails cleans up as well");
}

#[test]
fn the_database_is_the_address_s() {
    let server = RedisServer::start();
    let mut run = Running::at(&format!("{}/3", server.url()), &[BUCKET]);
    run.tell(r#"{"at_us":0}"#);
    assert!(server.info("keyspace", "db3").starts_with("keys=1,"), "{}", server.info("keyspace", "db3"));
    assert_eq!(run.end(), (Some(0), String::new()));
}

#[test]
fn many_keys_are_all_removed() {
    let server = RedisServer::start();
    let lines: Vec<String> = (0..700).map(|key| format!("{{\"at_us\":0,\"key\":\"{key}\"}}")).collect();
    let limits = [BUCKET, "sliding_log: { limit: 3, window: 1h }"];
    let replayed = replay_with(&["--store", &server.url()], &limits, &lines);
    assert_eq!((replayed.error.as_str(), replayed.answers.len()), ("", 700));
    assert_eq!(keys(&server), [""; 0]);
}

#[test]
fn memory_may_be_named() {
    let named = replay_with(&["--store", "memory:"], &[BUCKET], &[r#"{"at_us":0}"#]);
    assert_eq!(named.output, replay_with(&[], &[BUCKET], &[r#"{"at_us":0}"#]).output);
}

#[test]
fn nobody_there() {
    let server = RedisServer::start();
    let port = format!(":{}", server.port());
    server.kill();
    let url = server.url().replace("://", "://somebody:secret@");
    let down = replay_with(&["--store", &url], &[BUCKET], &["", r#"{"at_us":0}"#]);
    assert_eq!((down.code, down.output.as_str()), (Some(1), ""));
    assert!(!down.error.contains("secret"), "{}", down.error);
    let told = down.error.replace(&port, ":PORT");
    let (first, advice) = told.split_once('\n').unwrap();
    assert!(first.starts_with("error: line 2: the store does not answer: "), "{first}");
    assert_snapshot!(advice, @r"
    is there a Redis at redis://127.0.0.1:PORT, and may we use it?
    without --store the lines are run in memory, with the same answers
    ");
}

#[test]
fn gone_or_silent_in_the_middle() {
    for harm in [RedisServer::kill, RedisServer::pause] {
        let server = RedisServer::start();
        let mut run = Running::at(&server.url(), &[BUCKET]);
        assert!(run.tell(r#"{"at_us":0}"#).contains("allow"));
        assert!(run.tell(r#"{"at_us":0}"#).contains("allow"));
        harm(&server);
        assert_eq!(run.tell(r#"{"at_us":0}"#), "", "nobody decides in its stead");
        let (code, told) = run.end();
        assert_eq!(code, Some(1));
        // Whether the line was charged is not known in either case; what matters is that nothing is made up.
        assert!(told.starts_with("error: line 3: the store d"), "{told}");
        assert!(told.contains("redis-cli"), "{told}");
    }
}

#[test]
fn no_store_of_ours() {
    let line = [r#"{"at_us":0}"#];
    let bad = ["http://user:secret@localhost", "memory", "", "localhost:6379"];
    let told: Vec<String> = bad
        .iter()
        .map(|store| {
            let replayed = replay_with(&["--store", store], &[BUCKET], &line);
            assert_eq!((replayed.code, replayed.output.as_str()), (Some(2), ""), "{store}");
            replayed.error
        })
        .collect();
    assert!(told.iter().all(|one| *one == told[0]), "{told:?}");
    assert_snapshot!(told[0], @"error: --store must be memory: or an address such as redis://127.0.0.1:6379/0");
    for store in ["redis://", "redis://localhost:port", "redis://:secret@localhost:99999"] {
        let replayed = replay_with(&["--store", store], &[BUCKET], &line);
        assert_eq!((replayed.code, replayed.output.as_str()), (Some(2), ""), "{store}");
        assert!(replayed.error.starts_with("error: --store "), "{}", replayed.error);
        assert!(!replayed.error.contains("secret"), "{}", replayed.error);
    }
    assert_eq!(tollgate(&["replay", "--limit", BUCKET, "--store"], "").status.code(), Some(2));
}

#[test]
fn numbers_finer_than_redis_keeps() {
    let url = redis().url();
    let fine =
        ["sliding_log: { limit: 1, window: 1500ns }", BUCKET, "concurrency: { limit: 1, max_hold: 1ns }"];
    let replayed = replay_with(&["--store", &url], &fine, &[r#"{"at_us":0}"#]);
    assert_eq!((replayed.code, replayed.output.as_str()), (Some(2), ""));
    assert_snapshot!(replayed.error, @r#"
    error: a limit is wrong
    --limit "sliding_log: { limit: 1, window: 1500ns }"
      window must be a whole number of microseconds in Redis, whose clock counts those
    --limit "concurrency: { limit: 1, max_hold: 1ns }"
      max_hold must be a whole number of microseconds in Redis, whose clock counts those
    "#);

    let change = format!(r#"{{"at_us":0,"op":"set_limit","limit":"{}"}}"#, fine[0]);
    let replayed = replay_with(&["--store", &url], &[BUCKET], &[change]);
    assert_eq!(replayed.code, Some(1));
    assert_snapshot!(
        replayed.error,
        @"error: line 1: window must be a whole number of microseconds in Redis, whose clock counts those"
    );
}
