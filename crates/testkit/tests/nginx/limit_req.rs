//! `limit_req`: who passes, who is delayed and by how much, who is refused.
//!
//! Rates are fast, to be done soon: 5 a second, steps of 200 ms.

use crate::replay::{Counts, NginxDelay, Zone, assert_same};
use std::time::Duration;
use testkit::{Arrival, Arrivals, Fate, Logged, Nginx, Upstream};

/// Steps are 200 ms: whoever is off by a step is told apart also on a busy machine.
const TOLERANCE: Duration = Duration::from_millis(90);

const STEP: Duration = Duration::from_millis(200);

/// nginx with one limit of 5 a second for an address, in front of an upstream.
fn nginx(upstream: &Upstream, limit: &str) -> Nginx {
    let url = upstream.url();
    Nginx::start(&format!(
        "limit_req_zone $binary_remote_addr zone=one:1m rate=5r/s;
         server {{ listen LISTEN; location / {{ {limit} proxy_pass {url}; }} }}"
    ))
}

fn statuses(logged: &[Logged]) -> Vec<&str> {
    let mut lines: Vec<&Logged> = logged.iter().collect();
    lines.sort_by_key(|line| line.number);
    lines.iter().map(|line| line.limit_req.as_deref().unwrap_or("-")).collect()
}

/// What nginx says of a request, and what becomes of it.
type Expected = (&'static str, Fate);

fn passed() -> Expected {
    ("PASSED", Fate::Passed(Duration::ZERO))
}

fn delayed(steps: u32) -> Expected {
    ("DELAYED", Fate::Passed(steps * STEP))
}

fn refused() -> Expected {
    ("REJECTED", Fate::Refused)
}

/// How often a schedule is played again that a busy machine did not keep.
const ATTEMPTS: usize = 8;

/// Plays a schedule to nginx, where it has to fare as expected, and what nginx logged to our limit.
///
/// What is expected supposes that requests arrive when they are due, and timers go off. A machine that is busy with other
/// things does not always keep to that, so a play that fared otherwise is played again. What is put to our limit are the
/// times that nginx logged: there, every play has to fare the same.
#[track_caller]
fn check(limit: &str, zone: Zone, schedule: &Arrivals, expected: &[Expected]) -> (Vec<Logged>, Counts) {
    let (told, expected): (Vec<&str>, Vec<Fate>) = expected.iter().cloned().unzip();
    for attempt in 1.. {
        let upstream = Upstream::ok();
        let nginx = nginx(&upstream, limit);
        let fates: Vec<Fate> = schedule.play(nginx.address()).iter().map(testkit::Seen::fate).collect();
        let logged = nginx.logged(schedule.len());
        let counts = assert_same(&[zone], &logged, &nginx.excesses());
        let reached = fates.iter().filter(|fate| matches!(fate, Fate::Passed(_))).count();
        assert_eq!(upstream.asked().len(), reached);
        let differences = schedule.differences(&fates, &expected, TOLERANCE);
        if differences.is_empty() && statuses(&logged) == told {
            return (logged, counts);
        }
        assert!(attempt < ATTEMPTS, "nginx says {:?}\n{differences:#?}", statuses(&logged));
    }
    unreachable!("the last attempt returns or panics")
}

#[test]
fn a_burst_is_a_queue() {
    let zone = Zone { name: "one", rate: 5, burst: 3, delay: NginxDelay::Unsaid };
    let expected = [passed(), delayed(1), delayed(2), delayed(3), refused(), refused()];
    let (logged, counts) = check("limit_req zone=one burst=3;", zone, &Arrivals::at_once(6), &expected);
    assert_eq!((counts.passed, counts.delayed, counts.refused), (1, 3, 2));
    assert!(logged.iter().all(|line| line.status == if line.number < Some(4) { 200 } else { 503 }));
}

#[test]
fn a_delay_lets_some_pass_at_once() {
    let zone = Zone { name: "one", rate: 5, burst: 2, delay: NginxDelay::After(1) };
    let expected = [passed(), passed(), delayed(1), refused()];
    check("limit_req zone=one burst=2 delay=1;", zone, &Arrivals::at_once(4), &expected);
}

#[test]
fn nodelay_lets_the_burst_pass_at_once() {
    let zone = Zone { name: "one", rate: 5, burst: 2, delay: NginxDelay::None };
    let expected = [passed(), passed(), passed(), refused(), refused()];
    check("limit_req zone=one burst=2 nodelay;", zone, &Arrivals::at_once(5), &expected);
}

/// Were they charged, the last would be refused too.
#[test]
fn the_refused_are_not_charged() {
    let zone = Zone { name: "one", rate: 5, burst: 0, delay: NginxDelay::Unsaid };
    let expected = [passed(), refused(), refused(), refused(), passed()];
    check("limit_req zone=one;", zone, &Arrivals::at_ms([0, 40, 70, 100, 300]), &expected);
}

#[test]
fn the_refusal_is_429_where_it_is_told_to_be() {
    let zone = Zone { name: "one", rate: 5, burst: 0, delay: NginxDelay::Unsaid };
    let limit = "limit_req zone=one; limit_req_status 429;";
    let (logged, _) = check(limit, zone, &Arrivals::at_once(2), &[passed(), refused()]);
    let refused = logged.iter().find(|line| line.number == Some(1)).unwrap();
    assert_eq!(refused.status, 429);
}

/// Everybody passes at once, and what passes is counted as if it were no dry run; what would be refused is not.
#[test]
fn a_dry_run_counts_and_lets_pass() {
    let zone = Zone { name: "one", rate: 5, burst: 2, delay: NginxDelay::Unsaid };
    let schedule = Arrivals::at_ms([0, 0, 0, 0, 0, 300]);
    let (delayed, rejected) = ("DELAYED_DRY_RUN", "REJECTED_DRY_RUN");
    let told = ["PASSED", delayed, delayed, rejected, rejected, delayed];
    let expected = told.map(|told| (told, Fate::Passed(Duration::ZERO)));
    let limit = "limit_req zone=one burst=2; limit_req_dry_run on;";
    let (_, counts) = check(limit, zone, &schedule, &expected);
    assert_eq!((counts.passed, counts.delayed, counts.refused), (1, 3, 2));
}

/// A key that is empty is no key: nothing applies.
#[test]
fn an_empty_key_is_not_limited() {
    let upstream = Upstream::ok();
    let nginx = Nginx::start(&format!(
        "limit_req_zone $http_x_key zone=one:1m rate=5r/s;
         server {{ listen LISTEN; location / {{ limit_req zone=one; proxy_pass {}; }} }}",
        upstream.url()
    ));
    let schedule = Arrivals::new([
        Arrival::at_ms(0),
        Arrival::at_ms(0),
        Arrival::at_ms(0).header("x-key", "a"),
        Arrival::at_ms(0).header("x-key", "a"),
        Arrival::at_ms(0).header("x-key", "b"),
    ]);
    let seen = schedule.play(nginx.address());
    assert_eq!(seen.iter().map(testkit::Seen::status).collect::<Vec<_>>(), [200, 200, 200, 503, 200]);
    let logged = nginx.logged(5);
    assert_eq!(statuses(&logged), ["-", "-", "PASSED", "REJECTED", "PASSED"]);
}

/// All are charged, or none: whom one limit refuses has cost nothing at the other.
#[test]
fn two_limits_are_charged_together() {
    let upstream = Upstream::ok();
    let nginx = Nginx::start(&format!(
        "limit_req_zone $binary_remote_addr zone=slow:1m rate=4r/s;
         limit_req_zone $binary_remote_addr zone=fast:1m rate=20r/s;
         server {{ listen LISTEN; location / {{
             limit_req zone=fast burst=2; limit_req zone=slow burst=1 nodelay; proxy_pass {};
         }} }}",
        upstream.url()
    ));
    let schedule = Arrivals::at_ms([0, 0, 0, 20, 40, 60, 80, 320, 320, 400, 640]);
    schedule.play(nginx.address());
    let zones = [
        Zone { name: "fast", rate: 20, burst: 2, delay: NginxDelay::Unsaid },
        Zone { name: "slow", rate: 4, burst: 1, delay: NginxDelay::None },
    ];
    let counts = assert_same(&zones, &nginx.logged(schedule.len()), &nginx.excesses());
    assert!(counts.passed > 0 && counts.delayed > 0 && counts.refused > 0, "{counts:?}");
}

/// Four addresses, each in bursts and pauses of its own, through every way to delay at once: every one of several
/// hundred requests fares at nginx as at ours.
#[test]
fn a_crowd_fares_the_same() {
    let ways = [
        ("/plain", "burst=0", Zone { name: "plain", rate: 20, burst: 0, delay: NginxDelay::Unsaid }),
        ("/queue", "burst=5", Zone { name: "queue", rate: 25, burst: 5, delay: NginxDelay::Unsaid }),
        ("/some", "burst=6 delay=2", Zone { name: "some", rate: 25, burst: 6, delay: NginxDelay::After(2) }),
        ("/burst", "burst=4 nodelay", Zone { name: "burst", rate: 10, burst: 4, delay: NginxDelay::None }),
    ];
    let upstream = Upstream::ok();
    let zones: Vec<String> = ways
        .iter()
        .map(|(path, _, zone)| {
            format!("limit_req_zone $binary_remote_addr zone={}:1m rate={}r/s;", &path[1..], zone.rate)
        })
        .collect();
    let locations: Vec<String> = ways
        .iter()
        .map(|(path, how, _)| {
            let how = how.strip_prefix("burst=0").unwrap_or(how);
            format!(
                "location {path} {{ limit_req zone={} {how}; proxy_pass {}; }}",
                &path[1..],
                upstream.url()
            )
        })
        .collect();
    let nginx =
        Nginx::start(&format!("{} server {{ listen LISTEN; {} }}", zones.concat(), locations.concat()));

    let mut random = 42_u32;
    let mut below = |bound: u32| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 16) % bound
    };
    let mut schedule = Vec::new();
    for (path, _, _) in &ways {
        for address in 2..6 {
            let mut at = 0;
            while at < 2_000 {
                let together = if below(8) == 0 { 8 } else { 1 };
                for _ in 0..together {
                    schedule.push(Arrival::at_ms(at.into()).path(path).from([127, 0, 0, address]));
                }
                at += 1 + if below(6) == 0 { below(700) } else { below(100) };
            }
        }
    }
    let schedule = Arrivals::new(schedule);
    let seen = schedule.play(nginx.address());
    assert!(seen.iter().all(|seen| matches!(seen.status(), 200 | 503)));
    let logged = nginx.logged(schedule.len());
    let excesses = nginx.excesses();
    for (path, how, zone) in ways {
        let lines: Vec<Logged> = logged.iter().filter(|line| line.target == path).cloned().collect();
        let counts = assert_same(&[zone], &lines, &excesses);
        println!("{path} {how}: {} requests, {counts:?}", lines.len());
        assert!(counts.passed > 10 && counts.refused > 5, "{path}: {counts:?}");
        assert_eq!(counts.delayed > 10, matches!(path, "/queue" | "/some"), "{path}: {counts:?}");
        // All that came with one that is on the line are.
        assert!(counts.on_the_line <= lines.len() / 8, "{path}: {counts:?}");
    }
}

/// A zone that is full forgets whoever was not seen for longest, used up or not.
#[test]
fn a_full_zone_forgets_the_oldest() {
    let nginx = Nginx::start(
        "limit_req_zone $http_x_key zone=one:32k rate=1r/m;
         server { listen LISTEN; location / { limit_req zone=one; root html; } }",
    );
    nginx.file("a", b"text");
    let key = |number: u32| Arrival::at_ms(0).path("/a").header("x-key", &number.to_string()).on(0);
    let all = Arrivals::new((0..2_000).map(key));
    assert!(all.play(nginx.address()).iter().all(|seen| seen.status() == 200));
    let again = Arrivals::new([key(1_999), key(0)]).play(nginx.address());
    assert_eq!(again.iter().map(testkit::Seen::status).collect::<Vec<_>>(), [503, 200]);
}
