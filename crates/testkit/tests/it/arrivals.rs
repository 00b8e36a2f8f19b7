//! Requests go when they are due, and what is said about their answers is so.

use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
    time::Duration,
};
use testkit::{Arrival, Arrivals, Canned, Fate, Seen, Upstream};

const MILLI: Duration = Duration::from_millis(1);

/// What a busy machine may be late by.
const LATE: Duration = Duration::from_secs(1);

fn echo() -> Upstream {
    Upstream::start(Canned::echo)
}

#[test]
fn requests_go_when_they_are_due_and_in_order() {
    let upstream = Upstream::ok();
    let times = [120, 0, 0, 60, 0];
    let seen = Arrivals::at_ms(times).play(upstream.address());
    for (number, (seen, due)) in seen.iter().zip(times).enumerate() {
        let due = Duration::from_millis(due);
        assert_eq!(seen.number, number);
        assert!(seen.asked >= due && seen.asked < due + LATE, "{seen:?}");
    }
    let order: Vec<String> =
        upstream.asked().iter().map(|asked| asked.header("x-arrival").unwrap().to_owned()).collect();
    assert_eq!(order, ["1", "2", "4", "3", "0"]);
}

#[test]
fn a_request_is_what_it_was_said_to_be() {
    let upstream = echo();
    let arrival = Arrival::at_ms(0)
        .method("PUT")
        .path("/a?b=c")
        .header("Host", "example.org")
        .header("x-key", "alice")
        .body("hello")
        .from([127, 0, 0, 9]);
    let seen = Arrivals::new([arrival]).play(upstream.address());
    assert_eq!(
        seen[0].text(),
        "PUT /a?b=c HTTP/1.1\r\nHost: example.org\r\nx-key: alice\r\nx-arrival: 0\r\n\
         content-length: 5\r\nconnection: close\r\n\r\n"
    );
    assert_eq!(upstream.asked()[0].body, b"hello");
}

#[test]
fn it_comes_from_where_it_was_said_to() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let from = thread::spawn(move || {
        let (mut stream, from) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]).unwrap();
        stream.write_all(b"HTTP/1.1 204 None\r\n\r\n").unwrap();
        from.ip().to_string()
    });
    let seen = Arrivals::new([Arrival::at_ms(0).from([127, 9, 8, 7])]).play(address);
    assert_eq!((seen[0].status(), from.join().unwrap().as_str()), (204, "127.9.8.7"));
}

#[test]
fn who_shares_a_connection_waits_for_the_one_before() {
    let upstream = Upstream::by_query();
    let on = |at, path: &str, connection| Arrival::at_ms(at).path(path).on(connection);
    let schedule = Arrivals::new([on(0, "/?delay=100", 7), on(10, "/", 7), on(20, "/", 8)]);
    let seen = schedule.play(upstream.address());
    assert!(seen[1].asked >= 100 * MILLI, "{:?}", seen[1]);
    assert!(seen[2].asked < seen[1].asked, "{:?}", seen[2]);
    assert_eq!(upstream.connections(), 2);
}

#[test]
fn when_an_answer_begins_and_ends_is_told() {
    let upstream = Upstream::by_query();
    let path = "/?delay=100&size=500&piece=100&pause=50&chunked";
    let seen = &Arrivals::new([Arrival::at_ms(0).path(path)]).play(upstream.address())[0];
    assert_eq!(seen.header("Transfer-Encoding"), Some("chunked"));
    let alphabet: String = ('a'..='z').cycle().take(500).collect();
    assert_eq!(seen.text(), alphabet);
    assert!(seen.waited() >= 100 * MILLI && seen.waited() < 100 * MILLI + LATE, "{:?}", seen.waited());
    assert!(seen.took() >= 300 * MILLI && seen.took() < 300 * MILLI + LATE, "{:?}", seen.took());
    let sizes: Vec<u64> = seen.answered().progress.iter().map(|(_, bytes)| *bytes).collect();
    assert_eq!(sizes, [100, 200, 300, 400, 500]);
    assert_eq!(seen.answered().bytes_by(Duration::ZERO), 0);
    assert_eq!(seen.answered().bytes_by(seen.answered().ended), 500);
}

#[test]
fn an_answer_that_is_not_whole_is_none() {
    let upstream = Upstream::start(|asked| match asked.target.as_str() {
        "/cut" => Canned::bytes(100).cut_after(10),
        "/cut-chunks" => Canned::bytes(100).chunked().cut_after(10),
        "/panic" => panic!("this panic is part of the test"),
        _ => Canned::text("late").after(Duration::from_secs(60)),
    });
    let paths = ["/cut", "/cut-chunks", "/panic", "/late"];
    let schedule =
        Arrivals::new(paths.map(|path| Arrival::at_ms(0).path(path).give_up_after(Duration::from_secs(1))));
    let seen = schedule.play(upstream.address());
    let why: Vec<&str> = seen.iter().map(|seen| seen.answer.as_ref().unwrap_err().as_str()).collect();
    let expected = [
        "closed with 90 bytes to come",
        "closed in the middle of a line",
        "closed without an answer",
        "no whole answer within 1s",
    ];
    assert_eq!(why, expected);
    testkit::eventually("the upstream to notice who gave up", || (upstream.in_flight() == 0).then_some(()));
}

#[test]
fn nobody_there_is_told() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let seen = Arrivals::at_ms([0]).play(closed);
    assert!(seen[0].answer.as_ref().unwrap_err().starts_with("could not connect to 127.0.0.1:"));
}

/// A server may refuse before the body has come, and not read it at all.
#[test]
fn an_answer_before_the_body_has_gone_is_heard() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]).unwrap();
        stream.write_all(b"HTTP/1.1 429 No\r\ncontent-length: 2\r\n\r\nno").unwrap();
        stream
    });
    let large = Arrival::at_ms(0).method("POST").body(vec![0; 50_000_000]);
    let seen = Arrivals::new([large]).play(address);
    assert_eq!((seen[0].status(), seen[0].text().as_str()), (429, "no"));
    drop(server.join().unwrap());
}

#[test]
fn the_upstream_counts_whom_it_is_busy_with() {
    let upstream = Upstream::by_query();
    let slow = || Arrival::at_ms(0).path("/?delay=200");
    let seen = Arrivals::new([slow(), slow(), slow(), Arrival::at_ms(300).path("/?status=404")]);
    let seen: Vec<u16> = seen.play(upstream.address()).iter().map(Seen::status).collect();
    assert_eq!(seen, [200, 200, 200, 404]);
    assert_eq!((upstream.most_in_flight(), upstream.asked().len()), (3, 4));
    testkit::eventually("the last to end", || (upstream.in_flight() == 0).then_some(()));
}

#[test]
fn plays_that_differ_are_told_apart() {
    let schedule = Arrivals::at_ms([0, 0, 100, 200]);
    let passed = |ms: u64| Fate::Passed(Duration::from_millis(ms));
    let one = [passed(0), passed(100), Fate::Refused, passed(0)];
    let differences = |other: [Fate; 4]| -> Vec<usize> {
        schedule.differences(&one, &other, 10 * MILLI).iter().map(|difference| difference.number).collect()
    };
    assert_eq!(differences(one.clone()), []);
    // The first two are interchangeable, and 10 ms are within the tolerance.
    assert_eq!(differences([passed(110), passed(9), Fate::Refused, passed(10)]), []);
    assert_eq!(differences([passed(0), passed(111), Fate::Refused, passed(0)]), [1]);
    assert_eq!(differences([Fate::Refused, passed(100), Fate::Refused, passed(0)]), [0, 1]);
    assert_eq!(differences([passed(0), passed(100), passed(0), Fate::Broken("cut".into())]), [2, 3]);
}

#[test]
#[should_panic(
    expected = "1 of 2 fared differently:\nrequest 1, due at 5ms: passed after 1.0ms here, refused there"
)]
fn what_differs_is_listed() {
    let schedule = Arrivals::at_ms([0, 5]);
    let passed = || Fate::Passed(MILLI);
    schedule.assert_same(&[passed(), passed()], &[passed(), Fate::Refused], MILLI);
}
