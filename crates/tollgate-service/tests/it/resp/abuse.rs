//! Clients that send nonsense, or too much, or too little, or do not listen.

use super::stage::{LONG, open, open_with};
use std::{
    io::{Read, Write},
    net::Shutdown,
    thread::sleep,
    time::Duration,
};

#[test]
fn nonsense_is_told_and_closed() {
    let stage = open();
    for (sent, told) in [
        (&b"*x\r\n"[..], "invalid multibulk length"),
        (b"*1\r\n+PING\r\n", "expected '$', got '+'"),
        (b"*1\r\n$-5\r\n", "invalid bulk length"),
        (b"*1\r\n$4\r\nPINGxx", "expected CRLF behind a bulk string"),
        (b"*100000000\r\n", "too many arguments: at most 1024"),
        (b"*1\r\n$1000000000\r\n", "an argument is too long: at most 524288 bytes"),
        (b"echo \"a\r\n", "unbalanced quotes in request"),
    ] {
        let answer = stage.exchange(&[b"PING\r\n", sent, b"PING\r\n"].concat());
        assert_eq!(answer, format!("+PONG\r\n-ERR Protocol error: {told}\r\n"));
    }
    // Another protocol altogether.
    let answer = stage.exchange(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(answer.starts_with("-ERR wrong number of arguments for 'get'"), "{answer}");
    let answer = stage.exchange(&vec![b'a'; 1024 * 1024]);
    assert!(answer.is_empty() || answer == "-ERR Protocol error: too big inline request\r\n", "{answer}");
    assert_eq!(stage.exchange(b"*0\r\n\r\n*-1\r\nPING\r\n"), "+PONG\r\n");
}

/// A page in a browser can send a form with anything in it, to where only that browser can reach.
#[test]
fn a_page_cannot_send_commands_in_a_body() {
    let stage = open();
    let body = "CL.THROTTLE page 4 1 60\r\nTG.CHECK pairs page\r\n*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n";
    let length = body.len();
    let rest = format!("Host: a\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{body}");
    for first in ["POST / HTTP/1.1", "post /", "Host: b", "hOST:b", ""] {
        let answer = stage.exchange(format!("{first}\r\n{rest}").as_bytes());
        assert_eq!(answer, "", "{first}");
    }
    let answer = stage.exchange(format!("PUT / HTTP/1.1\r\n{rest}").as_bytes());
    assert!(answer.starts_with("-ERR unknown command 'PUT'") && answer.lines().count() == 1, "{answer}");
    assert_eq!(stage.ask("EXISTS page").integer(), 0);
    assert_eq!(stage.numbers("TG.CHECK pairs page")[2], 2, "nobody was charged before");
    // Whoever means it says it in an array.
    assert!(stage.error("POST").starts_with("ERR unknown command"));
}

#[test]
fn half_closed_and_half_sent_connections_are_let_go() {
    let stage = open();
    assert_eq!(stage.exchange(b"PING\r\n*2\r\n$4\r\nECHO\r\n$100\r\nabc"), "+PONG\r\n");
    assert_eq!(stage.exchange(b""), "");
    testkit::eventually("connections to go", || (stage.connections() == 0).then_some(()));
}

#[test]
fn a_request_that_comes_byte_by_byte_is_one_request() {
    let stage = open();
    let mut stream = stage.raw();
    for byte in b"*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\n" {
        stream.write_all(&[*byte]).expect("sent");
        // So that they come one by one.
        sleep(Duration::from_millis(1));
    }
    let mut answer = [0; 11];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"$5\r\nhello\r\n");
}

#[test]
fn large_arguments_pass_and_leave_no_room_behind() {
    let stage = open();
    let mut client = stage.connect();
    let large = vec![b'x'; 512 * 1024];
    for _ in 0..3 {
        let told = client.command(&[&b"ECHO"[..], &large]).expect("an answer");
        assert_eq!(told, testkit::Reply::Bulk(large.clone()));
        assert_eq!(client.command(&["PING"]).expect("an answer").text(), "PONG");
    }
    let told = client.command(&[&b"CL.THROTTLE"[..], &large, b"4", b"1", b"60"]).expect("an answer");
    assert_eq!(told.items()[2].integer(), 4);
}

/// One who sends and does not read is not listened to: what it may pile up is bounded by buffers, and nobody else waits.
#[test]
fn who_does_not_read_is_not_listened_to() {
    let stage = open();
    let mut deaf = stage.raw();
    deaf.set_write_timeout(Some(Duration::from_millis(500))).expect("a timeout");
    let chunk =
        [b"*2\r\n$4\r\nECHO\r\n$1000\r\n".to_vec(), vec![b'x'; 1_000], b"\r\n".to_vec()].concat().repeat(64);
    let mut sent = 0;
    while let Ok(more) = deaf.write(&chunk) {
        sent += more;
        assert!(sent < 256 * 1024 * 1024, "it goes on taking what it cannot answer");
    }
    assert_eq!(stage.ask("PING").text(), "PONG");
    // It reads on, and is answered on.
    let mut answer = vec![0; 10 * 1_009];
    deaf.read_exact(&mut answer).expect("answers");
    assert!(answer.starts_with(b"$1000\r\nxxx"));
    drop(deaf);
    testkit::eventually("connections to go", || (stage.connections() == 0).then_some(()));
}

#[test]
fn who_says_nothing_is_let_go_and_who_talks_is_not() {
    let stage = open_with("version: 1\n", |settings| settings.idle_timeout = Duration::from_millis(400));
    let (mut silent, mut talking) = (stage.raw(), stage.connect());
    let mut deaf = stage.raw();
    let chunk = b"*2\r\n$4\r\nECHO\r\n$4000\r\n".iter().chain(&[b'x'; 4_000]).chain(b"\r\n");
    let chunk: Vec<u8> = chunk.copied().collect::<Vec<_>>().repeat(16);
    deaf.set_write_timeout(Some(Duration::from_millis(100))).expect("a timeout");
    while deaf.write(&chunk).is_ok() {}
    for _ in 0..30 {
        assert_eq!(talking.command(&["PING"]).expect("an answer").text(), "PONG");
        // For longer than the idle timeout, and more often.
        sleep(Duration::from_millis(50));
    }
    silent.set_read_timeout(Some(LONG)).expect("a timeout");
    assert_eq!(silent.read(&mut [0; 1]).expect("closed"), 0);
    testkit::eventually("connections to go", || (stage.connections() == 1).then_some(()));
    let _ = deaf.shutdown(Shutdown::Both);
}
