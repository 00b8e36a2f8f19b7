//! What clients say when they connect, in both protocols, and in what order they are answered.

use super::stage::{numbers, open, open_pausing, open_with_token};
use std::{
    io::{Read, Write},
    time::Duration,
};
use testkit::Reply;
use tollgate_net::Phase;

#[test]
fn stock_clients_are_understood() {
    let stage = open();
    let mut client = stage.connect();
    let mut ask = |words: &str| client.command(&words.split(' ').collect::<Vec<_>>()).expect("an answer");
    assert_eq!(ask("PING"), Reply::Status("PONG".into()));
    assert_eq!(ask("ping hello").text(), "hello");
    assert_eq!(ask("ECHO hello").text(), "hello");
    assert_eq!(ask("SELECT 0").text(), "OK");
    assert_eq!(ask("SELECT 1").text(), "ERR DB index is out of range: there is only database 0");
    assert_eq!(ask("CLIENT GETNAME"), Reply::Nil);
    assert_eq!(ask("CLIENT SETNAME me").text(), "OK");
    assert_eq!(ask("CLIENT GETNAME").text(), "me");
    assert_eq!(ask("CLIENT SETINFO LIB-NAME redis-py").text(), "OK");
    assert_eq!(ask("CLIENT NO-EVICT ON").text(), "OK");
    assert!(ask("CLIENT ID").integer() > 0);
    assert!(ask("CLIENT INFO").text().contains("name=me"));
    assert!(ask("CLIENT PAUSE 1").text().starts_with("ERR unknown subcommand"));
    assert_eq!(ask("INFO server").field("redis_version"), "7.0.0");
    assert_eq!(ask("COMMAND COUNT").integer(), ask("COMMAND").items().len() as i64);
    assert_eq!(ask("COMMAND LIST").items().len(), ask("COMMAND INFO").items().len());
    let docs = ask("COMMAND DOCS tg.check nothing");
    assert_eq!(docs.items().len(), 2);
    assert!(docs.items()[1].field("syntax").contains("KEYS n value"));
    assert_eq!(ask("COMMAND INFO cl.throttle").items()[0].items()[1].integer(), -5);
    assert_eq!(ask("HELLO 2").field("proto"), "2");
    assert_eq!(ask("HELLO 4").text(), "NOPROTO unsupported protocol version");
    assert_eq!(ask("RESET").text(), "RESET");
    assert_eq!(ask("CLIENT GETNAME"), Reply::Nil);
    assert_eq!(ask("ECHO").text(), "ERR wrong number of arguments for 'echo' command: ECHO message");
    assert_eq!(ask("FLUSHALL").text(), "ERR unknown command 'FLUSHALL'; COMMAND LIST names those there are");
    assert_eq!(ask("QUIT").text(), "OK");
    assert!(client.command(&["PING"]).is_err(), "closed");
}

#[test]
fn the_third_protocol_has_maps_and_nulls() {
    let stage = open();
    let told =
        stage.exchange(b"HELLO 3 SETNAME me\r\nGET nothing\r\nCL.THROTTLE k 4 1 60\r\nCLIENT GETNAME\r\n");
    assert!(told.starts_with("%7\r\n$6\r\nserver\r\n$8\r\ntollgate\r\n"), "{told}");
    assert!(told.contains("$5\r\nproto\r\n:3\r\n"), "{told}");
    assert!(told.ends_with("_\r\n*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:60\r\n$2\r\nme\r\n"), "{told}");
}

#[test]
fn nobody_asks_who_does_not_know_the_word() {
    let stage = open_with_token("sesame");
    for words in ["PING", "CL.THROTTLE k 1 1 1", "NOTHING", "COMMAND"] {
        assert_eq!(stage.error(words), "NOAUTH Authentication required.");
    }
    assert!(stage.error("HELLO 3").starts_with("NOAUTH HELLO must be called"));
    assert!(stage.error("AUTH barley").starts_with("WRONGPASS"));
    assert!(stage.error("HELLO 3 AUTH default barley").starts_with("WRONGPASS"));
    for (auth, ping) in
        [("AUTH sesame", "PING"), ("AUTH default sesame", "PING"), ("AUTH any sesame", "PING")]
    {
        let mut client = stage.connect();
        assert_eq!(client.command(&auth.split(' ').collect::<Vec<_>>()).expect("an answer").text(), "OK");
        assert_eq!(client.command(&[ping]).expect("an answer").text(), "PONG");
        assert_eq!(client.command(&["RESET"]).expect("an answer").text(), "RESET");
        assert!(client.command(&[ping]).expect("an answer").text().starts_with("NOAUTH"));
    }
    let told = stage.exchange(b"HELLO 3 AUTH default sesame\r\nPING\r\n");
    assert!(told.ends_with("+PONG\r\n"), "{told}");
    // A stranger has little room.
    assert_eq!(stage.exchange(b"*11\r\n"), "-ERR Protocol error: too many arguments: at most 10\r\n");
    let line = [vec![b'a'; 32 * 1024 + 1], b"\r\n".to_vec()].concat();
    let told = stage.exchange(&line);
    assert!(told.is_empty() || told == "-ERR Protocol error: too big inline request\r\n", "{told}");
    assert!(open().error("AUTH sesame").starts_with("ERR AUTH was called and this listener has no tokens"));
}

#[test]
fn a_pipeline_is_answered_in_order() {
    let stage = open();
    let mut client = stage.connect();
    for number in 0..2_000 {
        client.send(&["ECHO", &number.to_string()]).expect("sent");
        client.send(&["CL.THROTTLE", "k", "999999", "1", "60"]).expect("sent");
    }
    for number in 0..2_000_i64 {
        assert_eq!(client.receive().expect("an answer").text(), number.to_string());
        assert_eq!(numbers(&client.receive().expect("an answer"))[2], 999_999 - number);
    }
}

#[test]
fn requests_in_one_packet_are_answered_in_one() {
    let stage = open();
    let mut stream = stage.raw();
    stream.write_all(&b"PING\r\n".repeat(100)).expect("sent");
    let mut answer = [0; 4_096];
    let mut read = 0;
    while read < 700 {
        let more = stream.read(&mut answer[read..]).expect("an answer");
        assert!(more >= 7 && more % 7 == 0, "whole answers: {more}");
        read += more;
    }
    assert_eq!(&answer[..read], b"+PONG\r\n".repeat(100));
}

#[test]
fn what_was_read_is_answered_before_it_closes() {
    let stage = open();
    let mut client = stage.connect();
    assert_eq!(client.command(&["PING"]).expect("an answer").text(), "PONG");
    let mut asking = stage.connect();
    assert_eq!(asking.command(&["PING"]).expect("an answer").text(), "PONG");
    stage.leave();
    assert!(client.receive().is_err(), "closed");
    testkit::eventually("connections to go", || (stage.connections() == 0).then_some(()));
}

/// A client that was just answered may have sent its next request before it can know.
#[test]
fn a_last_request_is_answered_after_the_drain_has_closed() {
    let stage = open();
    let mut client = stage.connect();
    assert_eq!(client.command(&["PING"]).expect("an answer").text(), "PONG");
    stage.leave();
    testkit::eventually("it to close", || (stage.drain.phase() >= Phase::Closing).then_some(()));
    assert_eq!(client.command(&["PING"]).expect("an answer").text(), "PONG");
    assert!(client.receive().is_err(), "closed");
}

/// One that is served while everything leaves has to hear of the closing as well.
#[test]
fn whoever_is_answered_while_it_leaves_is_closed_all_the_same() {
    let stage = open_pausing(Duration::from_secs(1));
    let mut client = stage.connect();
    assert_eq!(client.command(&["PING"]).expect("an answer").text(), "PONG");
    stage.leave();
    testkit::eventually("it to leave", || (stage.drain.phase() >= Phase::Leaving).then_some(()));
    assert_eq!(client.command(&["PING"]).expect("an answer").text(), "PONG");
    assert!(client.receive().is_err(), "closed");
    testkit::eventually("connections to go", || (stage.connections() == 0).then_some(()));
}
