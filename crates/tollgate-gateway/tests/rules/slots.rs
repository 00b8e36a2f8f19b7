//! Slots of a concurrency limit: held until the response's last byte, and back however it ends.

use crate::stage::{Stage, get, one_rule};
use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};
use testkit::{Arrival, Arrivals, eventually};
use tollgate::Key;

pub(crate) fn slots(count: u32) -> String {
    format!("limits: {{ slots: {{ concurrency: {{ limit: {count} }} }} }}\n")
        + &one_rule("limits: [ { use: slots, key: [] } ]")
}

/// A client that does as it likes.
pub(crate) fn client(address: SocketAddr, text: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).expect("a connection");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    socket.write_all(text.as_bytes()).expect("sent");
    socket
}

/// Reads until this is there.
pub(crate) fn read_until(socket: &mut TcpStream, wanted: &str) -> String {
    let (mut text, mut buffer) = (String::new(), [0; 1024]);
    while !text.contains(wanted) {
        match socket.read(&mut buffer) {
            Ok(0) => panic!("closed after {text:?}"),
            Ok(count) => text.push_str(&String::from_utf8_lossy(&buffer[..count])),
            Err(error) => panic!("{error} after {text:?}"),
        }
    }
    text
}

#[track_caller]
fn all_back(stage: &Stage, count: u32) {
    stage.rests();
    eventually("slots to be back", || (stage.left("slots", Key::All) == count).then_some(()));
    assert_eq!(stage.get("/").status(), 200);
}

#[test]
fn a_slot_is_held_until_the_bodys_last_byte() {
    let (stage, _) = Stage::still(&slots(1));
    let mut slow = client(
        stage.address(),
        "GET /?size=30&piece=10&pause=1000 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
    );
    let head = read_until(&mut slow, "abcdefghij");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let seen = stage.get("/");
    assert_eq!((seen.status(), seen.header("retry-after")), (429, Some("1")));
    let mut rest = String::new();
    slow.read_to_string(&mut rest).expect("the rest");
    all_back(&stage, 1);
}

#[test]
fn as_many_as_there_are_slots_and_no_more() {
    let (stage, _) = Stage::still(&slots(3));
    let seen = Arrivals::at_once(10).each(|it| it.path("/?delay=400")).play(stage.address());
    let statuses: Vec<_> = seen.iter().map(testkit::Seen::status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 3, "{statuses:?}");
    assert_eq!(stage.up.most_in_flight(), 3);
    all_back(&stage, 3);
}

#[test]
fn a_download_that_is_given_up_gives_its_slot_back() {
    let (stage, _) = Stage::still(&slots(2));
    let endless = "/?size=100000000&piece=1000&pause=20";
    let leaving = |after| get(endless).give_up_after(Duration::from_millis(after));
    let seen = Arrivals::new([leaving(200), leaving(300)]).play(stage.address());
    assert!(seen.iter().all(|seen| seen.answer.is_err()));
    all_back(&stage, 2);
    eventually("the upstream to be let go", || (stage.up.in_flight() == 0).then_some(()));
}

#[test]
fn a_request_that_is_given_up_before_its_answer_gives_its_slot_back() {
    let (stage, _) = Stage::still(&slots(2));
    let leaving = Arrival::at_ms(0).path("/?delay=60000").give_up_after(Duration::from_millis(200));
    Arrivals::new([leaving.clone(), leaving]).play(stage.address());
    all_back(&stage, 2);
}

#[test]
fn an_upload_that_is_given_up_gives_its_slot_back() {
    let (stage, _) = Stage::still(&slots(2));
    let bodies = ["content-length: 1000\r\n\r\nhalf", "transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"];
    let uploads: Vec<_> = bodies
        .iter()
        .map(|body| client(stage.address(), &format!("POST / HTTP/1.1\r\nhost: a\r\n{body}")))
        .collect();
    eventually("both to have a slot", || (stage.left("slots", Key::All) == 0).then_some(()));
    assert_eq!(stage.get("/").status(), 429);
    drop(uploads);
    all_back(&stage, 2);
}

#[test]
fn an_upstream_that_breaks_off_or_is_not_there_gives_the_slot_back() {
    let (stage, _) = Stage::still(&slots(1));
    // A wish that the upstream does not know closes the connection without an answer.
    assert_eq!(stage.times(3, &get("/?nonsense")), [502, 502, 502]);
    all_back(&stage, 1);
    let cut = testkit::Upstream::start(|_| testkit::Canned::bytes(1_000).cut_after(10));
    stage.reload(&format!("upstreams: {{ up: {{ servers: [ \"{}\" ] }} }}\n{}", cut.url(), slots(1)));
    assert!(stage.get("/").answer.is_err(), "it broke off");
    stage.rests();
    eventually("the slot to be back", || (stage.left("slots", Key::All) == 1).then_some(()));
}

/// A slot is the owner's for as long as the owner is there, however long that is: before the answer, and during it.
#[test]
fn a_slot_is_renewed_while_the_request_lasts() {
    let rules = slots(1).replace("limit: 1", "limit: 1, max_hold: 300ms");
    for path in ["/?delay=1500", "/?size=30&piece=10&pause=700"] {
        let stage = Stage::real(&rules);
        let address = stage.address();
        let first = thread::spawn(move || Arrivals::new([get(path)]).play(address));
        eventually("the first to be under way", || (stage.up.in_flight() == 1).then_some(()));
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(1_000) {
            assert_eq!(stage.get("/").status(), 429, "{path}, after {:?}", begun.elapsed());
            // The slot is looked at again and again while it would run out several times.
            thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(first.join().expect("a play")[0].status(), 200);
        stage.rests();
        assert_eq!(stage.get("/").status(), 200);
    }
}

/// A slot that is had with a turn that comes later is held through the wait, however long that is.
#[test]
fn a_slot_is_kept_while_its_owner_waits_for_its_turn() {
    let rules = "
limits: { slots: { concurrency: { limit: 1, max_hold: 300ms } }, pace: { leaky_bucket: { rate: 1/1500ms, capacity: 2, delay: 1 } } }
routes:
  - { name: paced, when: { path: /paced }, upstream: up, rules: [ { name: a, limits: [ { use: slots, key: [] }, { use: pace, key: [] } ] } ] }
  - { name: plain, upstream: up, rules: [ { name: a, limits: [ { use: slots, key: [] } ] } ] }
";
    let stage = Stage::real(rules);
    assert_eq!(stage.get("/paced").status(), 200);
    stage.rests();
    let address = stage.address();
    let waiting = thread::spawn(move || Arrivals::new([get("/paced")]).play(address));
    eventually("it to wait", || (stage.left("slots", Key::All) == 0).then_some(()));
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(900) {
        assert_eq!(stage.get("/").status(), 429, "after {:?}", begun.elapsed());
        // As above: looked at while it would run out.
        thread::sleep(Duration::from_millis(50));
    }
    let seen = waiting.join().expect("a play").remove(0);
    assert_eq!(seen.status(), 200);
    assert!(seen.waited() > Duration::from_millis(900), "{:?}", seen.waited());
    stage.rests();
    assert_eq!(stage.get("/").status(), 200);
}

/// A refused upload is answered without being read, and the connection is not out of step afterwards.
#[test]
fn whoever_is_refused_with_a_body_may_ask_again() {
    let rules = one_rule("limits: [ { fixed_window: { limit: 1, window: 1h }, key: [method] } ]");
    let (stage, _) = Stage::still(&rules);
    let post = || get("/").method("POST").body(vec![b'x'; 20_000]);
    let seen = Arrivals::new([post().on(0), post().on(1), get("/").on(2)]).play(stage.address());
    let mut statuses: Vec<_> = seen.iter().map(testkit::Seen::status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 429]);
    let (body, next) = ("x".repeat(20_000), "GET /?echo HTTP/1.1\r\nhost: b\r\nconnection: close\r\n\r\n");
    let text = format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 20000\r\n\r\n{body}{next}");
    let mut socket = client(stage.address(), &text);
    let mut answers = String::new();
    let _ = socket.read_to_string(&mut answers);
    assert!(answers.starts_with("HTTP/1.1 429"), "{answers}");
    // Either the connection was closed, or the second request was understood.
    let second = answers.match_indices("HTTP/1.1 ").nth(1).map(|(at, _)| &answers[at..at + 12]);
    assert!(matches!(second, None | Some("HTTP/1.1 429")), "{answers}");
}
