//! `limit_conn`: requests in flight, an address at a time.

use std::{cmp::Reverse, time::Duration};
use testkit::{Arrival, Arrivals, Logged, Nginx, Seen, Upstream};
use tollgate::{Bounds, Charge, Concurrency, ManualClock, MemoryStore};

/// nginx with both kinds of limit, in front of an upstream that takes as long as the query says.
fn start(limits: &str) -> (Upstream, Nginx) {
    let upstream = Upstream::by_query();
    let nginx = Nginx::start(&format!(
        "limit_conn_zone $binary_remote_addr zone=flight:1m;
         limit_req_zone $binary_remote_addr zone=rate:1m rate=1r/m;
         server {{ listen LISTEN; location / {{ {limits} proxy_pass {}; }} }}",
        upstream.url()
    ));
    (upstream, nginx)
}

/// A request that is in flight for so long that a busy machine has time for the others.
fn slow(at: u64) -> Arrival {
    Arrival::at_ms(at).path("/?delay=2500")
}

fn statuses(seen: &[Seen]) -> Vec<u16> {
    seen.iter().map(Seen::status).collect()
}

/// Puts the same comings and goings to our limit; whoever nginx refused has to be refused there.
fn assert_same(most: u32, logged: &[Logged]) {
    let store = MemoryStore::with_clock(Bounds::default(), ManualClock::new());
    let limit = store.add("limit", Concurrency::new(most, Duration::from_secs(60)).unwrap()).unwrap();
    // Who goes and who comes, by when; at one instant those that nginx took are first.
    let mut events: Vec<(Duration, Reverse<bool>, &Logged, bool)> = Vec::new();
    for line in logged {
        let is_taken = line.limit_conn.as_deref() == Some("PASSED");
        events.push((line.arrived, Reverse(is_taken), line, true));
        if is_taken {
            events.push((line.arrived + line.took, Reverse(is_taken), line, false));
        }
    }
    events.sort_by_key(|(at, rank, ..)| (*at, *rank));
    let mut held = Vec::new();
    for (_, Reverse(is_taken), line, comes) in events {
        let charge = Charge::new(&limit, line.from.as_str());
        if comes {
            let set = store.check(&[charge]).unwrap();
            assert_eq!(set.is_allow(), is_taken, "{line:?}");
            held.extend(set.permit().map(|permit| (line.connection, permit)));
        } else {
            let place = held.iter().position(|(connection, _)| *connection == line.connection).unwrap();
            let (_, permit) = held.swap_remove(place);
            assert_eq!(store.leave(&[charge], permit).unwrap(), 1);
        }
    }
}

#[test]
fn so_many_are_in_flight_and_no_more() {
    let (upstream, nginx) = start("limit_conn flight 2;");
    // The third is one too many; the fourth is another address's.
    let schedule = Arrivals::new([slow(0), slow(10), slow(800), slow(810).from([127, 0, 0, 2])]);
    let seen = schedule.play(nginx.address());
    assert_eq!(statuses(&seen), [200, 200, 503, 200]);
    assert!(
        seen[2].waited() < Duration::from_millis(2_000),
        "a refusal does not wait: {:?}",
        seen[2].waited()
    );
    assert_eq!(upstream.most_in_flight(), 3);
    let refused = nginx.logged(4).into_iter().find(|line| line.limit_conn.as_deref() == Some("REJECTED"));
    assert_eq!(refused.unwrap().number, Some(2));
    // Those have gone, and others come.
    let later = Arrivals::new([slow(0), slow(10), slow(800)]).play(nginx.address());
    assert_eq!(statuses(&later), [200, 200, 503]);
    assert_same(2, &nginx.logged(7));
}

#[test]
fn a_dry_run_lets_pass() {
    let (_upstream, nginx) = start("limit_conn flight 1; limit_conn_dry_run on;");
    let seen = Arrivals::new([slow(0), Arrival::at_ms(800)]).play(nginx.address());
    assert_eq!(statuses(&seen), [200, 200]);
    let mut logged = nginx.logged(2);
    logged.sort_by_key(|line| line.number);
    let told: Vec<_> = logged.iter().map(|line| line.limit_conn.as_deref().unwrap()).collect();
    assert_eq!(told, ["PASSED", "REJECTED_DRY_RUN"]);
}

/// Whoever gives up gives the slot back.
#[test]
fn who_hangs_up_is_no_longer_in_flight() {
    let (upstream, nginx) = start("limit_conn flight 1;");
    let for_ever = Arrival::at_ms(0).path("/?delay=100000").give_up_after(Duration::from_millis(1_600));
    let seen = Arrivals::new([for_ever, Arrival::at_ms(800)]).play(nginx.address());
    assert!(seen[0].answer.is_err());
    assert_eq!(seen[1].status(), 503);
    assert!(nginx.logged(2).iter().any(|line| line.status == 499));
    assert_eq!(statuses(&Arrivals::at_once(1).play(nginx.address())), [200]);
    testkit::eventually("the upstream to notice", || (upstream.in_flight() == 0).then_some(()));
}

/// Limits on requests come first, and whom they refuse the others are not asked about.
#[test]
fn limit_req_comes_before_limit_conn() {
    let (_upstream, nginx) = start("limit_conn flight 5; limit_req zone=rate;");
    // The second comes when the first was answered.
    let one_by_one = [(); 2].map(|()| Arrivals::at_once(1).play(nginx.address())[0].status());
    assert_eq!(one_by_one, [200, 503]);
    let mut logged = nginx.logged(2);
    logged.sort_by_key(|line| line.connection);
    let told: Vec<_> =
        logged.iter().map(|line| (line.limit_req.as_deref(), line.limit_conn.as_deref())).collect();
    assert_eq!(told, [(Some("PASSED"), Some("PASSED")), (Some("REJECTED"), None)]);
}
