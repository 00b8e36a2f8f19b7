//! Side by side with nginx: the same arrivals to nginx and to the gateway, in front of the same upstream, fare the same.
//!
//! `burst=b` there is `capacity: b + 1` here, `delay=d` is `delay: d + 1`, neither is `delay: 1`, `nodelay` is `delay: none`.
//!
//! The gateway and its upstream go by a clock that the test moves, so that every request arrives when it is due and the
//! outcome is exact. nginx goes by the clock of the machine, which does not always play a schedule in time when it is busy:
//! only nginx's play is repeated. Arrivals stand half a step from where the answer changes.

use crate::{stage::Stage, stepped::play_ours};
use std::{
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};
use testkit::{Arrival, Arrivals, Canned, Fate, Logged, Nginx, Seen, Upstream};
use tollgate::{Bounds, Clock, ManualClock, MemoryStore, Time};
use tollgate_rules::decision::{Recorder, RequestRecord};

/// Steps are 200 ms.
const TOLERANCE: Duration = Duration::from_millis(90);

/// How often nginx plays a schedule again that a busy machine did not keep.
const ATTEMPTS: usize = 8;

/// The gateway, by the clock of the machine.
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

/// A schedule to be played to both.
struct Case<'a> {
    zones: &'a str,
    location: &'a str,
    rules: &'a str,
    schedule: &'a Arrivals,
    /// How long the upstream takes for each request.
    takes: Duration,
    expected: Kinds,
}

impl Case<'_> {
    /// Ours has to fare exactly as expected, and nginx as ours.
    #[track_caller]
    fn play(&self) {
        let schedule = self.schedule;
        let ours = play_ours(self.rules, schedule, self.takes);
        assert_eq!(kinds(&ours), self.expected, "{}\n{ours:?}", self.rules);
        let path = format!("/?delay={}", self.takes.as_millis());
        let schedule = schedule.clone().each(|arrival| arrival.path(&path));
        for attempt in 1.. {
            let up = Upstream::by_query();
            let nginx = theirs(&up, self.zones, self.location);
            let theirs: Vec<Fate> = schedule.play(nginx.address()).iter().map(Seen::fate).collect();
            let differences = schedule.differences(&theirs, &ours, TOLERANCE);
            if differences.is_empty() {
                return;
            }
            assert!(attempt < ATTEMPTS, "{} {}\n{differences:#?}", self.location, self.rules);
        }
    }
}

const ZONE: &str = "limit_req_zone $binary_remote_addr zone=one:1m rate=5r/s;";

/// A rule file with these named limits, and these rules for every request.
fn rules(limits: &str, rules: &str) -> String {
    format!("limits: {{ {limits} }}\nroutes: [ {{ name: all, upstream: up, rules: [ {rules} ] }} ]\n")
}

fn leaky(numbers: &str) -> String {
    let limit = format!("one: {{ leaky_bucket: {{ rate: 5/s, {numbers} }} }}");
    rules(&limit, "{ name: one, limits: [ { use: one, key: [ip] } ] }")
}

/// Two bursts and two that come alone.
fn bursts() -> Arrivals {
    let one = |address: u8| {
        [0, 0, 0, 0, 0, 0, 300, 300, 900, 1_200].map(|at| Arrival::at_ms(at).from([127, 0, 0, address]))
    };
    Arrivals::new(one(2).into_iter().chain(one(3)))
}

fn kinds(fates: &[Fate]) -> Kinds {
    let count = |is: fn(&Fate) -> bool| fates.iter().filter(|fate| is(fate)).count();
    let at_once = count(|fate| *fate == Fate::Passed(Duration::ZERO));
    let passed = count(|fate| matches!(fate, Fate::Passed(_)));
    (at_once, passed - at_once, fates.len() - passed)
}

/// One `limit_req` against one leaky bucket.
#[track_caller]
fn check_bursts(limit_req: &str, numbers: &str, expected: Kinds) {
    let location = format!("limit_req zone=one{limit_req};");
    let (rules, schedule) = (leaky(numbers), bursts());
    let takes = Duration::ZERO;
    Case { zones: ZONE, location: &location, rules: &rules, schedule: &schedule, takes, expected }.play();
}

#[test]
fn no_burst() {
    check_bursts("", "capacity: 1, delay: 1", (8, 0, 12));
}

#[test]
fn a_burst_is_a_queue() {
    check_bursts(" burst=3", "capacity: 4, delay: 1", (4, 10, 6));
}

#[test]
fn a_delay_lets_some_pass_at_once() {
    check_bursts(" burst=4 delay=2", "capacity: 5, delay: 3", (10, 6, 4));
}

#[test]
fn nodelay_lets_the_burst_pass_at_once() {
    check_bursts(" burst=3 nodelay", "capacity: 4, delay: none", (14, 0, 6));
}

/// All are charged or none, and the longest delay counts.
#[test]
fn several_limits_in_one_location() {
    let zones = "limit_req_zone $binary_remote_addr zone=each:1m rate=5r/s; limit_req_zone $server_port zone=all:1m rate=10r/s;";
    let location = "limit_req zone=each burst=2; limit_req zone=all burst=4 nodelay;";
    let limits = "each: { leaky_bucket: { rate: 5/s, capacity: 3, delay: 1 } }, all: { leaky_bucket: { rate: 10/s, capacity: 5, delay: none } }";
    let (each, all) = ("{ use: each, key: [ip] }", "{ use: all, key: [] }");
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
    for both in [
        format!("{{ name: both, limits: [ {each}, {all} ] }}"),
        format!("{{ name: one, limits: [ {each} ] }}, {{ name: other, limits: [ {all} ] }}"),
    ] {
        let rules = rules(limits, &both);
        let (takes, expected) = (Duration::ZERO, (5, 6, 3));
        Case { zones, location, rules: &rules, schedule: &schedule, takes, expected }.play();
    }
}

#[test]
fn limit_conn_is_concurrency() {
    let zones = "limit_conn_zone $binary_remote_addr zone=c:1m; limit_conn_zone $server_port zone=all:1m;";
    let location = "limit_conn c 2; limit_conn all 3;";
    let rules = rules(
        "each: { concurrency: { limit: 2 } }, all: { concurrency: { limit: 3 } }",
        "{ name: c, limits: [ { use: each, key: [ip] }, { use: all, key: [] } ] }",
    );
    let at = |at: u64, address: u8| Arrival::at_ms(at).from([127, 0, 0, address]);
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
    // The answer to those that pass begins when the upstream has taken its time.
    let (takes, expected) = (Duration::from_millis(500), (0, 7, 5));
    Case { zones, location, rules: &rules, schedule: &schedule, takes, expected }.play();
}

#[test]
fn a_status_of_ones_own() {
    // One a minute, and the second comes when the first was answered: however busy the machine, it is refused.
    let zone = ZONE.replace("5r/s", "1r/m");
    let one = Arrivals::at_ms([0]);
    let statuses = |address| [(); 2].map(|()| one.play(address)[0].status());
    let with = |excess: &str| {
        let rules = leaky("capacity: 1, delay: 1").replace("5/s", "1/m");
        rules.replace("key: [ip] } ]", &format!("key: [ip] }} ], excess: {excess}"))
    };
    let ways = [
        ("", "{ reject: { status: 503 } }", 503),
        ("limit_req_status 429;", "reject", 429),
        ("limit_req_status 599;", "{ reject: { status: 599 } }", 599),
    ];
    for (status, excess, expected) in ways {
        let up = Upstream::by_query();
        let nginx = theirs(&up, &zone, &format!("limit_req zone=one; {status}"));
        let stage = ours(up, &with(excess));
        assert_eq!(statuses(nginx.address()), [200, expected]);
        assert_eq!(statuses(stage.address()), [200, expected]);
    }
}

/// What shadow rules would have refused.
#[derive(Default)]
struct Shadows(Mutex<Vec<bool>>);

impl Recorder for Shadows {
    fn request(&self, record: &RequestRecord<'_>) {
        let refused = record.shadows.iter().map(|shadow| shadow.refused_by.is_some());
        self.0.lock().expect("nobody panics").extend(refused);
    }
}

/// Everybody passes at once, what would pass is counted, and what would be refused is not.
#[test]
fn a_dry_run_is_a_shadow() {
    let rules = leaky("capacity: 3, delay: 1").replace("key: [ip] } ]", "key: [ip] } ], excess: shadow");
    let schedule = Arrivals::at_ms([0, 0, 0, 0, 0, 300, 300, 1_100]);
    let expected = [false, false, false, true, true, false, true, false];

    let (clock, shadows) = (ManualClock::new(), Arc::new(Shadows::default()));
    let store = Arc::new(MemoryStore::with_clock(Bounds::default(), clock.clone()));
    let (most, up) = (std::num::NonZeroUsize::MAX, Upstream::by_query());
    let stage = Stage::recorded(store, &rules, most, up, shadows.clone());
    for arrival in schedule.iter() {
        clock.advance(arrival.due() - (clock.now() - Time::ZERO));
        assert_eq!(stage.ask(arrival.clone().at_once()).status(), 200);
    }
    assert_eq!(*shadows.0.lock().expect("nobody panics"), expected);

    for attempt in 1.. {
        let up = Upstream::by_query();
        let nginx = theirs(&up, ZONE, "limit_req zone=one burst=2; limit_req_dry_run on;");
        assert!(schedule.play(nginx.address()).iter().all(|seen| seen.status() == 200));
        let mut logged = nginx.logged(schedule.len());
        logged.sort_by_key(|line: &Logged| line.number);
        let told = logged.iter().map(|line| line.limit_req.as_deref() == Some("REJECTED_DRY_RUN"));
        let told: Vec<_> = told.collect();
        if told == expected {
            return;
        }
        assert!(attempt < ATTEMPTS, "{told:?}");
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
