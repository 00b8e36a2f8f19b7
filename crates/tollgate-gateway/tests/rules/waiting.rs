//! Requests that are held: in order, no longer than the rule says, and at no cost to anybody where the client leaves.
//!
//! Sleepers sleep by the store's clock, which the test moves.

use crate::stage::{Stage, get, one_rule};
use std::{
    io::Write,
    net::TcpStream,
    thread::{self, JoinHandle},
    time::Duration,
};
use testkit::{Arrival, Arrivals, Seen, eventually};
use tollgate::{Charge, Decision, Key, ManualClock, Retry};

const SECOND: Duration = Duration::from_secs(1);

const PATIENT: &str = "limits: { turns: { token_bucket: { rate: 1/s, burst: 1 } } }
routes: [ { name: all, upstream: up, rules: [ { name: only, limits: [ { use: turns, key: [] } ], excess: { wait: 3s } } ] } ]
";

fn play(stage: &Stage, arrivals: impl IntoIterator<Item = Arrival>) -> JoinHandle<Vec<Seen>> {
    let (arrivals, address) = (Arrivals::new(arrivals), stage.address());
    thread::spawn(move || arrivals.play(address))
}

/// When one more would pass, by the state of the bucket.
fn next(stage: &Stage) -> Decision {
    let rules = stage.decisions.rules();
    let limit = rules.at(0, Key::All).clone();
    stage.decisions.store().peek(&[Charge::new(&limit, Key::All)]).expect("an answer").decision()
}

fn held_in_order(rules: &str) -> (Stage, ManualClock) {
    let (stage, clock) = Stage::still(rules);
    let mut playing = Vec::new();
    for (held, path) in [(0, "/first"), (1, "/second"), (2, "/third"), (3, "/last")] {
        let before = next(&stage);
        playing.push(play(&stage, [get(path)]));
        // The next one comes when this one has its place.
        stage.stands(held, 1);
        eventually("its place", || (next(&stage) != before).then_some(()));
    }
    for through in 2..=4 {
        // Long enough for one to get through that does not wait for its turn.
        thread::sleep(Duration::from_millis(20));
        assert_eq!(stage.up.asked().len(), through - 1, "nobody goes before their turn");
        clock.advance(SECOND);
        stage.stands(4 - through, through);
    }
    for playing in playing {
        assert_eq!(playing.join().expect("a play")[0].status(), 200);
    }
    let targets: Vec<_> = stage.up.asked().into_iter().map(|asked| asked.target).collect();
    assert_eq!(targets, ["/first", "/second", "/third", "/last"]);
    (stage, clock)
}

#[test]
fn who_waits_is_served_in_order() {
    held_in_order(PATIENT);
}

/// Whatever the excess gets: the pace of a leaky bucket is no excess, and neither is that of one key's own numbers.
#[test]
fn a_leaky_buckets_delay_is_always_served() {
    let (patient, delay) = ("token_bucket: { rate: 1/s, burst: 1 }", "delay: 1");
    let leaky = |numbers: &str| {
        PATIENT.replace(patient, &format!("leaky_bucket: {{ rate: 1/s, capacity: {numbers} }}"))
    };
    for excess in ["reject", "{ divert: spare }", "{ degrade: { body: no } }"] {
        let rules = leaky(&format!("4, {delay}")).replace("{ wait: 3s }", excess);
        let (stage, clock) = held_in_order(&rules);
        assert_eq!(stage.spare.asked().len(), 0);
        clock.advance(10 * SECOND);
        assert_eq!(stage.get("/").status(), 200);
    }
    let own = "capacity: 4 }, overrides: { slow: { rate: 1/s, capacity: 4, delay: 1 } }";
    let rules = leaky("4")
        .replace("capacity: 4 }", own)
        .replace("key: []", "key: [host]")
        .replace("{ wait: 3s }", "reject");
    let (stage, clock) = Stage::still(&rules);
    assert_eq!(stage.times(5, &get("/").header("host", "fast")), [200, 200, 200, 200, 429]);
    let playing = play(&stage, (0..2).map(|_| get("/").header("host", "slow")));
    stage.stands(1, 5);
    clock.advance(SECOND);
    assert!(playing.join().expect("a play").iter().all(|seen| seen.status() == 200));
}

/// The capacity is the queue: whoever does not fit is refused at once, and does not wait to fit.
#[test]
fn a_leaky_buckets_queue_ends_at_its_capacity() {
    let leaky = "leaky_bucket: { rate: 1/s, capacity: 3, delay: 1 }";
    let rules =
        PATIENT.replace("token_bucket: { rate: 1/s, burst: 1 }", leaky).replace("{ wait: 3s }", "reject");
    let (stage, clock) = Stage::still(&rules);
    let playing = play(&stage, (0..3).map(|_| get("/")));
    stage.stands(2, 1);
    let seen = stage.get("/");
    assert_eq!((seen.status(), seen.header("retry-after")), (429, Some("1")));
    clock.advance(SECOND);
    stage.stands(1, 2);
    let late = play(&stage, [get("/late")]);
    stage.stands(2, 2);
    assert_eq!(stage.get("/").status(), 429);
    clock.advance(2 * SECOND);
    let both = playing.join().expect("a play").into_iter().chain(late.join().expect("a play"));
    assert!(both.into_iter().all(|seen| seen.status() == 200));
}

#[test]
fn a_wait_that_would_be_too_long_is_refused_at_once() {
    let (stage, clock) = Stage::still(PATIENT);
    let playing = play(&stage, (0..4).map(|_| get("/")));
    stage.stands(3, 1);
    let seen = stage.get("/");
    assert_eq!(seen.status(), 429);
    assert_eq!(seen.header("retry-after"), Some("1"), "in a second a wait of three is enough");
    for through in 2..=4 {
        clock.advance(SECOND);
        stage.stands(4 - through, through);
    }
    assert!(playing.join().expect("a play").iter().all(|seen| seen.status() == 200));
}

#[test]
fn a_client_that_leaves_gives_its_turn_back() {
    let (stage, clock) = Stage::still(PATIENT);
    assert_eq!(stage.get("/").status(), 200);
    assert_eq!(next(&stage), Decision::Deny(Retry::After(SECOND)));
    let leaving = play(&stage, (0..2).map(|_| get("/").give_up_after(Duration::from_millis(300))));
    stage.stands(2, 1);
    assert_eq!(next(&stage), Decision::Deny(Retry::After(3 * SECOND)), "both have a turn");
    assert!(leaving.join().expect("a play").iter().all(|seen| seen.answer.is_err()));
    stage.rests();
    assert_eq!(next(&stage), Decision::Deny(Retry::After(SECOND)), "both gave it back");
    clock.advance(SECOND);
    assert_eq!(stage.get("/").status(), 200);
    assert_eq!(stage.up.asked().len(), 2, "who left was never forwarded");
}

/// Nobody has asked for its body yet, and still somebody looks whether it is there.
#[test]
fn a_client_with_a_body_that_leaves_gives_its_turn_back_too() {
    let (stage, _clock) = Stage::still(PATIENT);
    assert_eq!(stage.get("/").status(), 200);
    for body in [
        "content-length: 5\r\n\r\nhello",
        "content-length: 5\r\n\r\nhe",
        "expect: 100-continue\r\ncontent-length: 5\r\n\r\n",
    ] {
        let mut client = TcpStream::connect(stage.address()).expect("the gateway listens");
        write!(client, "POST / HTTP/1.1\r\nhost: a\r\n{body}").expect("room in the buffer");
        stage.stands(1, 1);
        drop(client);
        stage.rests();
        assert_eq!(next(&stage), Decision::Deny(Retry::After(SECOND)), "it gave its turn back");
    }
    assert_eq!(stage.up.asked().len(), 1, "who left was never forwarded");
}

/// Two wait, the first leaves: the second does not lose by it, and whoever comes next has the first one's turn.
#[test]
fn a_client_that_leaves_makes_room_for_whoever_comes() {
    let (stage, clock) = Stage::still(PATIENT);
    assert_eq!(stage.get("/").status(), 200);
    let leaving = play(&stage, [get("/leaves").give_up_after(Duration::from_millis(200))]);
    stage.stands(1, 1);
    let staying = play(&stage, [get("/stays")]);
    stage.stands(2, 1);
    assert!(leaving.join().expect("a play")[0].answer.is_err());
    stage.stands(1, 1);
    assert_eq!(next(&stage), Decision::Deny(Retry::After(2 * SECOND)));
    clock.advance(2 * SECOND);
    assert_eq!(staying.join().expect("a play")[0].status(), 200);
}

/// A shadow rule does nothing to a request, a pace included: as nginx in a dry run, it counts and lets pass.
#[test]
fn a_shadow_rule_neither_refuses_nor_delays_nor_paces() {
    let rules = "
limits: { pace: { leaky_bucket: { rate: 1/s, capacity: 3, delay: 1 } }, slots: { concurrency: { limit: 1 } } }
routes:
  - name: all
    upstream: up
    rules:
      - { name: paced, limits: [ { use: pace, key: [] }, { bandwidth: { rate: 10/s } } ], excess: shadow }
      - { name: both, limits: [ { use: pace, key: [rule] }, { use: slots, key: [] } ], excess: shadow }
";
    let (stage, clock) = Stage::still(rules);
    for left in [2, 1, 0, 0, 0] {
        let seen = stage.get("/?size=1000");
        assert_eq!((seen.status(), seen.answered().body.len()), (200, 1_000));
        assert!(seen.took() < Duration::from_secs(5), "{:?}", seen.took());
        assert_eq!(
            stage.left("pace", Key::All),
            left,
            "who would have been delayed is counted, who refused is not"
        );
        stage.rests();
        assert_eq!((stage.left("pace", Key::Text("both")), stage.left("slots", Key::All)), (left, 1));
    }
    clock.advance(SECOND);
    assert_eq!(stage.left("pace", Key::All), 1);
}

/// Slots of a shadow rule are held as they would be, and never refuse.
#[test]
fn a_shadow_rule_holds_slots_until_the_response_ends() {
    let rules = "limits: { slots: { concurrency: { limit: 2 } } }\n".to_owned()
        + &one_rule("limits: [ { use: slots, key: [] } ], excess: shadow");
    let (stage, _) = Stage::still(&rules);
    let playing = play(&stage, (0..4).map(|_| get("/?delay=400")));
    eventually("two slots to be held", || (stage.left("slots", Key::All) == 0).then_some(()));
    assert!(playing.join().expect("a play").iter().all(|seen| seen.status() == 200));
    stage.rests();
    assert_eq!(stage.left("slots", Key::All), 2);
}

/// Somebody else's slots are waited for where there is a queue.
#[test]
fn a_queue_is_waited_in_and_no_longer_than_it_is() {
    let rules = "limits: { slots: { concurrency: { limit: 1, queue: 1 } } }\n".to_owned()
        + &one_rule("limits: [ { use: slots, key: [] } ], excess: { wait: 20s }");
    let (stage, _) = Stage::still(&rules);
    let first = play(&stage, [get("/first?delay=500")]);
    stage.stands(1, 1);
    let second = play(&stage, [get("/second")]);
    stage.stands(2, 1);
    let seen = stage.get("/third");
    assert_eq!((seen.status(), seen.header("retry-after")), (429, Some("1")), "the queue has one place");
    assert_eq!(first.join().expect("a play")[0].status(), 200);
    assert_eq!(second.join().expect("a play")[0].status(), 200);
    stage.rests();
    assert_eq!(stage.left("slots", Key::All), 1);
}
