//! `CL.THROTTLE` as redis-cell has it, but for what it errs in.

use super::stage::{numbers, open, open_on, open_with};
use std::time::Duration;
use testkit::RedisServer;
use tollgate::{Key, ManualClock};
use tollgate_redis::RedisStore;

#[test]
fn sixteen_at_once_then_one_every_two_seconds() {
    let stage = open();
    assert_eq!(stage.numbers("CL.THROTTLE user123 15 30 60 1"), [0, 16, 15, -1, 2]);
    assert_eq!(stage.numbers("cl.throttle user123 15 30 60"), [0, 16, 14, -1, 4]);
    assert_eq!(stage.numbers("CL.THROTTLE user123 15 30 60 14"), [0, 16, 0, -1, 32]);
    assert_eq!(stage.numbers("CL.THROTTLE user123 15 30 60"), [1, 16, 0, 2, 32]);
    stage.clock.advance(Duration::from_millis(1_500));
    assert_eq!(stage.numbers("CL.THROTTLE user123 15 30 60"), [1, 16, 0, 1, 31]);
    stage.clock.advance(Duration::from_micros(499_999));
    assert_eq!(stage.numbers("CL.THROTTLE user123 15 30 60"), [1, 16, 0, 1, 31], "a microsecond is a second");
    stage.clock.advance(Duration::from_micros(1));
    assert_eq!(stage.numbers("CL.THROTTLE user123 15 30 60"), [0, 16, 0, -1, 32]);
}

#[test]
fn asking_giving_back_and_asking_too_much() {
    let stage = open();
    assert_eq!(stage.numbers("CL.THROTTLE k 4 1 60 0"), [0, 5, 5, -1, 0]);
    assert_eq!(stage.numbers("CL.THROTTLE k 4 1 60 5"), [0, 5, 0, -1, 300]);
    assert_eq!(stage.numbers("CL.THROTTLE k 4 1 60 0"), [0, 5, 0, -1, 300]);
    assert_eq!(stage.numbers("CL.THROTTLE k 4 1 60 6"), [1, 5, 0, -1, 300], "never");
    assert_eq!(stage.numbers("CL.THROTTLE k 4 1 60 -2"), [0, 5, 2, -1, 180]);
    assert_eq!(stage.numbers("CL.THROTTLE k 4 1 60 -200"), [0, 5, 5, -1, 0]);
    assert_eq!(stage.numbers("CL.THROTTLE other 4 1 60 -1"), [0, 5, 5, -1, 0]);
    assert_eq!(stage.numbers("CL.THROTTLE k +4 +1 60 +1"), [0, 5, 4, -1, 60]);
    assert_eq!(stage.numbers("CL.THROTTLE fast 99 5000000 1 100"), [0, 100, 0, -1, 1]);
    assert_eq!(stage.numbers("CL.THROTTLE fast 99 5000000 1"), [1, 100, 0, 1, 1]);
    let most = i64::MAX;
    assert_eq!(stage.numbers(&format!("CL.THROTTLE big {most} {most} {most} 0"))[1], most);
}

#[test]
fn mistakes_are_told_in_redis_cells_own_words() {
    let stage = open();
    let usage = "Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> \
                 [<quantity>]";
    assert_eq!(stage.error("CL.THROTTLE"), usage);
    assert_eq!(stage.error("CL.THROTTLE k 1 1"), usage);
    assert_eq!(stage.error("CL.THROTTLE k 1 1 1 1 1"), usage);
    for number in ["x", "5.0", "", "9223372036854775808"] {
        let told = format!("Cell error: Store error: Couldn't parse as integer: {number}");
        assert_eq!(stage.error(&format!("CL.THROTTLE k 1 {number} 1")), told);
    }
    for zero in ["0 1", "1 0", "-1 1", "1 -1"] {
        let told = "Cell error: Store error: Zero rates are not supported";
        assert_eq!(stage.error(&format!("CL.THROTTLE k 1 {zero}")), told);
    }
}

#[test]
fn buckets_are_looked_at_and_forgotten_as_keys() {
    let stage = open();
    let mut client = stage.connect();
    let mut ask = |words: &[&[u8]]| client.command(words).expect("an answer");
    let key = b"\xff\0\r\n {}";
    assert_eq!(ask(&[b"GET", key]), testkit::Reply::Nil);
    assert_eq!(ask(&[b"TTL", key]).integer(), -2);
    assert_eq!(numbers(&ask(&[b"CL.THROTTLE", key, b"9", b"2", b"3"])), [0, 10, 9, -1, 2]);
    assert_eq!(ask(&[b"EXISTS", key, b"other", key]).integer(), 2);
    assert_eq!((ask(&[b"TTL", key]).integer(), ask(&[b"PTTL", key]).integer()), (2, 1_500));
    let owing = stage.decisions.store().owing(Key::Bytes(key)).expect("a debt");
    assert_eq!(ask(&[b"GET", key]).text(), owing.until.to_string());
    assert_eq!(ask(&[b"DEL", key, b"other"]).integer(), 1);
    assert_eq!(ask(&[b"DEL", key]).integer(), 0);
    assert_eq!(numbers(&ask(&[b"CL.THROTTLE", key, b"9", b"2", b"3"])), [0, 10, 9, -1, 2]);
}

/// A remote store is asked once for each.
#[test]
fn a_look_at_a_bucket_is_one_call() {
    let redis = RedisServer::start();
    let stage = open_on(
        Duration::ZERO,
        "version: 1\n",
        |_| {},
        ManualClock::new(),
        || RedisStore::builder(&redis.url()).open().expect("an address"),
    );
    assert_eq!(stage.numbers("CL.THROTTLE k 9 1 60"), [0, 10, 9, -1, 60]);
    let scripts = || {
        let calls = redis.info("commandstats", "cmdstat_evalsha");
        let calls = calls.strip_prefix("calls=").and_then(|rest| rest.split(',').next()?.parse::<u32>().ok());
        calls.expect("a number")
    };
    for look in ["TTL k", "PTTL k", "GET k", "TTL other", "PTTL other", "GET other"] {
        let before = scripts();
        stage.ask(look);
        assert_eq!(scripts() - before, 1, "{look}");
    }
}

#[test]
fn gcra_is_the_same_bucket_by_another_name() {
    let stage = open();
    assert_eq!(stage.numbers("GCRA k 4 1 60"), [0, 5, 4, -1, 60]);
    assert_eq!(stage.numbers("CL.THROTTLE k 4 1 60"), [0, 5, 3, -1, 120]);
    assert_eq!(stage.numbers("GCRA k 4 1 60 TOKENS 4"), [1, 5, 3, 60, 120]);
    assert_eq!(stage.numbers("GCRA half 0 1 0.5"), [0, 1, 0, -1, 1]);
    assert_eq!(stage.error("GCRA k 4 1 60 TOKENS"), "ERR Missing TOKENS value");
    assert_eq!(stage.error("GCRA k 4 1 1e12"), "ERR period must be > 0 and < 1e12");
    assert_eq!(stage.error("GCRA k 4 1 nan"), "ERR period must be > 0 and < 1e12");
    assert_eq!(stage.error("GCRA k -1 1 60"), "ERR value is not an integer or out of range");
    assert_eq!(stage.error("GCRA k 4 1 60 TOKENS 0"), "ERR value is not an integer or out of range");
    assert_eq!(stage.error("GCRA k 4 1 60 WORDS 1"), "ERR syntax error");
}

#[test]
fn the_global_switch_is_off_for_cells_too() {
    let stage = open_with("version: 1\nenabled: false\n", |_| {});
    for _ in 0..3 {
        assert_eq!(stage.numbers("CL.THROTTLE k 0 1 60"), [0, 1, 1, -1, 0]);
    }
    assert!(stage.decisions.store().owing("k").is_none());
}
