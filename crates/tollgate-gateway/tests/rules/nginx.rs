//! Side by side with nginx: the same arrivals to nginx and to the gateway, in front of the same upstream, fare the same.
//!
//! `burst=b` there is `capacity: b + 1` here, `delay=d` is `delay: d + 1`, neither is `delay: 1`, `nodelay` is `delay: none`.
//! A machine that is busy with other things does not always play a schedule in time, so that a play that fared otherwise on
//! one side is played again. Arrivals stand half a step from where the answer changes.

use crate::stage::{Stage, file};
use std::{
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};
use testkit::{Arrival, Arrivals, Canned, Fate, Logged, Nginx, Seen, Upstream};
use tollgate::MemoryStore;
use tollgate_gateway::{Answered, Ledger, Ruled};

/// Steps are 200 ms.
const TOLERANCE: Duration = Duration::from_millis(90);

/// How often a schedule is played again that a busy machine did not keep.
const ATTEMPTS: usize = 8;

fn ours(up: Upstream, rules: &str) -> Stage<MemoryStore> {
    Stage::with(Arc::new(MemoryStore::new()), rules, std::num::NonZeroUsize::MAX, up)
}

/// nginx with these zones and this location.
fn theirs(up: &Upstream, zones: &str, location: &str) -> Nginx {
    Nginx::start(&format!(
        "{zones} server {{ listen LISTEN; location / {{ {location} proxy_pass {}; }} }}",
        up.url()
    ))
}

/// How many passed at once, passed later, were refused.
type Kinds = (usize, usize, usize);

/// Plays a schedule to both, who have to agree, and to fare as expected.
#[track_caller]
fn same(zones: &str, location: &str, limits: &str, schedule: &Arrivals, expected: impl Fn(Kinds) -> bool) {
    let rules = format!("routes: [ {{ name: all, upstream: up, rules: [ {limits} ] }} ]\n");
    for attempt in 1.. {
        let up = Upstream::by_query();
        let nginx = theirs(&up, zones, location);
        let stage = ours(up, &rules);
        let address = nginx.address();
        let (there, here) = thread::scope(|scope| {
            let there = scope.spawn(|| schedule.play(address));
            let here = schedule.play(stage.address());
            (there.join().expect("a play"), here)
        });
        let fates = |seen: &[Seen]| seen.iter().map(Seen::fate).collect::<Vec<Fate>>();
        let differences = schedule.differences(&fates(&there), &fates(&here), TOLERANCE);
        if differences.is_empty() && expected(kinds(&here)) {
            return;
        }
        assert!(attempt < ATTEMPTS, "{location} {limits}\n{:?}\n{differences:#?}", kinds(&here));
    }
}

const ZONE: &str = "limit_req_zone $binary_remote_addr zone=one:1m rate=5r/s;";

fn leaky(numbers: &str) -> String {
    format!("{{ name: one, limits: [ {{ leaky_bucket: {{ rate: 5/s, {numbers} }}, key: [ip] }} ] }}")
}

/// Two bursts and two that come alone.
fn bursts() -> Arrivals {
    let one = |address: u8| {
        [0, 0, 0, 0, 0, 0, 300, 300, 900, 1_200].map(|at| Arrival::at_ms(at).from([127, 0, 0, address]))
    };
    Arrivals::new(one(2).into_iter().chain(one(3)))
}

fn kinds(seen: &[Seen]) -> Kinds {
    let count = |is: fn(&Fate) -> bool| seen.iter().map(Seen::fate).filter(is).count();
    let late = Duration::from_millis(100);
    assert_eq!(count(|fate| matches!(fate, Fate::Broken(_))), 0);
    let passed = count(|fate| matches!(fate, Fate::Passed(_)));
    let delayed =
        seen.iter().filter(|seen| matches!(seen.fate(), Fate::Passed(waited) if waited > late)).count();
    (passed - delayed, delayed, seen.len() - passed)
}

#[test]
fn no_burst() {
    let limit = leaky("capacity: 1, delay: 1");
    same(ZONE, "limit_req zone=one;", &limit, &bursts(), |kinds| kinds == (8, 0, 12));
}

#[test]
fn a_burst_is_a_queue() {
    let limit = leaky("capacity: 4, delay: 1");
    same(ZONE, "limit_req zone=one burst=3;", &limit, &bursts(), |(_, delayed, refused)| {
        delayed >= 8 && refused == 6
    });
}

#[test]
fn a_delay_lets_some_pass_at_once() {
    let limit = leaky("capacity: 5, delay: 3");
    same(ZONE, "limit_req zone=one burst=4 delay=2;", &limit, &bursts(), |kinds| kinds == (10, 6, 4));
}

#[test]
fn nodelay_lets_the_burst_pass_at_once() {
    let limit = leaky("capacity: 4, delay: none");
    same(ZONE, "limit_req zone=one burst=3 nodelay;", &limit, &bursts(), |kinds| kinds == (14, 0, 6));
}

/// All are charged or none, and the longest delay counts.
#[test]
fn several_limits_in_one_location() {
    let zones = "limit_req_zone $binary_remote_addr zone=each:1m rate=5r/s; limit_req_zone $server_port zone=all:1m rate=10r/s;";
    let location = "limit_req zone=each burst=2; limit_req zone=all burst=4 nodelay;";
    let each = "{ leaky_bucket: { rate: 5/s, capacity: 3, delay: 1 }, key: [ip] }";
    let all = "{ leaky_bucket: { rate: 10/s, capacity: 5, delay: none }, key: [] }";
    let at = |at: u64, address: u8| Arrival::at_ms(at).from([127, 0, 0, address]);
    // Of the first, each limit refuses some; were those charged by the other, the later ones would be refused.
    let schedule = Arrivals::new([
        at(0, 2),
        at(0, 2),
        at(0, 2),
        at(20, 2),
        at(20, 2),
        at(40, 3),
        at(40, 3),
        at(60, 4),
        at(250, 3),
        at(250, 4),
        at(350, 2),
        at(750, 2),
        at(750, 3),
        at(1_250, 4),
    ]);
    for limits in [
        format!("{{ name: both, limits: [ {each}, {all} ] }}"),
        format!("{{ name: one, limits: [ {each} ] }}, {{ name: other, limits: [ {all} ] }}"),
    ] {
        same(zones, location, &limits, &schedule, |(passed, delayed, refused)| {
            passed >= 3 && delayed >= 2 && refused >= 3
        });
    }
}

#[test]
fn limit_conn_is_concurrency() {
    let zones = "limit_conn_zone $binary_remote_addr zone=c:1m; limit_conn_zone $server_port zone=all:1m;";
    let limits = "{ name: c, limits: [ { concurrency: { limit: 2 }, key: [ip] }, { concurrency: { limit: 3 }, key: [] } ] }";
    let at = |at: u64, address: u8| Arrival::at_ms(at).from([127, 0, 0, address]).path("/?delay=500");
    let schedule = Arrivals::new([
        at(0, 2),
        at(0, 2),
        at(100, 2),
        at(150, 3),
        at(200, 3),
        at(250, 4),
        at(300, 2),
        at(800, 2),
        at(800, 2),
        at(850, 4),
        at(900, 3),
        at(1_600, 3),
    ]);
    same(zones, "limit_conn c 2; limit_conn all 3;", limits, &schedule, |(.., refused)| refused == 5);
}

#[test]
fn a_status_of_ones_own() {
    // One a minute, and the second comes when the first was answered: however busy the machine, it is refused.
    let zone = ZONE.replace("5r/s", "1r/m");
    let one = Arrivals::at_ms([0]);
    let statuses = |address| [(); 2].map(|()| one.play(address)[0].status());
    let with = |excess: &str| {
        let rule = leaky("capacity: 1, delay: 1").replace("5/s", "1/m");
        rule.replace("} ] }", &format!("}} ], excess: {excess} }}"))
    };
    let ways = [
        ("", "{ reject: { status: 503 } }", 503),
        ("limit_req_status 429;", "reject", 429),
        ("limit_req_status 599;", "{ reject: { status: 599 } }", 599),
    ];
    for (status, excess, expected) in ways {
        let up = Upstream::by_query();
        let nginx = theirs(&up, &zone, &format!("limit_req zone=one; {status}"));
        let stage =
            ours(up, &format!("routes: [ {{ name: all, upstream: up, rules: [ {} ] }} ]\n", with(excess)));
        assert_eq!(statuses(nginx.address()), [200, expected]);
        assert_eq!(statuses(stage.address()), [200, expected]);
    }
}

/// What shadow rules would have refused.
#[derive(Default)]
struct Shadows(Mutex<Vec<bool>>);

impl Ledger for Shadows {
    fn ruled(&self, ruled: &Ruled<'_>) {
        let refused = ruled.shadows.iter().map(|shadow| shadow.refused_by.is_some());
        self.0.lock().expect("nobody panics").extend(refused);
    }

    fn answered(&self, _: &Answered) {}
}

/// Everybody passes at once, what would pass is counted, and what would be refused is not.
#[test]
fn a_dry_run_is_a_shadow() {
    let limits = leaky("capacity: 3, delay: 1").replace("} ] }", "} ], excess: shadow }");
    let rules = format!("routes: [ {{ name: all, upstream: up, rules: [ {limits} ] }} ]\n");
    let schedule = Arrivals::at_ms([0, 0, 0, 0, 0, 300, 300, 1_100]);
    for attempt in 1.. {
        let up = Upstream::by_query();
        let nginx = theirs(&up, ZONE, "limit_req zone=one burst=2; limit_req_dry_run on;");
        let stage = ours(up, &rules);
        let prepared = stage.gateway.prepare(&file(&stage.up, &stage.spare, &rules)).expect("upstreams");
        let shadows = Arc::new(Shadows::default());
        stage.gateway.adopt(stage.enforcer.edition(), prepared, shadows.clone());
        let (there, here) = (schedule.play(nginx.address()), schedule.play(stage.address()));
        let mut logged = nginx.logged(schedule.len());
        logged.sort_by_key(|line: &Logged| line.number);
        let told = logged.iter().map(|line| line.limit_req.as_deref() == Some("REJECTED_DRY_RUN"));
        let told: Vec<_> = told.collect();
        let (there, here) = (kinds(&there), kinds(&here));
        let ours = shadows.0.lock().expect("nobody panics").clone();
        if (there, here) == ((8, 0, 0), (8, 0, 0)) && told == ours {
            assert_eq!(told.iter().filter(|refused| **refused).count(), 3);
            return;
        }
        assert!(attempt < ATTEMPTS, "{there:?} {here:?}\n{told:?}\n{ours:?}");
    }
}

/// nginx lets a second's bytes go ahead, by whole seconds; ours, a 32nd of that. So nginx may be done up to two seconds'
/// bytes earlier, and neither later than the bytes take.
#[test]
fn limit_rate_is_a_bandwidth() {
    const SIZE: u64 = 200 * 1024;
    const RATE: u64 = 75 * 1024;
    const AFTER: u64 = 50 * 1024;
    let time_of = |bytes: u64| Duration::from_secs_f64(bytes as f64 / RATE as f64);
    let up = Upstream::start(|_| Canned::bytes(SIZE));
    let nginx = theirs(&up, "", "limit_rate 75k; limit_rate_after 50k;");
    let stage = ours(
        up,
        "routes: [ { name: all, upstream: up, rules: [ { name: pace, limits: [ { bandwidth: { rate: 75KiB/s, after: 50KiB } } ] } ] } ]\n",
    );
    let schedule = Arrivals::at_once(1);
    let address = nginx.address();
    let (there, here) = thread::scope(|scope| {
        let there = scope.spawn(|| schedule.play(address).remove(0));
        let here = schedule.play(stage.address()).remove(0);
        (there.join().expect("a play"), here)
    });
    let slack = Duration::from_millis(700);
    for seen in [&there, &here] {
        assert_eq!((seen.status(), seen.answered().body.len() as u64), (200, SIZE));
        assert!(seen.took() < time_of(SIZE - AFTER) + slack, "{:?}", seen.took());
    }
    assert!(there.took() > time_of(SIZE - AFTER - 2 * RATE));
    assert!(here.took() > time_of(SIZE - AFTER - RATE / 32) - Duration::from_millis(5), "{:?}", here.took());
    // Never ahead of the rate by more than what goes at once.
    for (at, bytes) in &here.answered().progress {
        let most = AFTER + RATE / 16 + ((*at - here.asked).as_secs_f64() * RATE as f64) as u64;
        assert!(*bytes <= most, "{bytes} bytes at {at:?}");
    }
    // What is not paced goes at once.
    let at_once = here.answered().bytes_by(here.answered().began + Duration::from_millis(150));
    assert!(at_once >= AFTER, "{at_once}");
}
