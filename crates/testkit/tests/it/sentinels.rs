//! A primary, its replica, three sentinels.

use std::time::{Duration, Instant};
use testkit::{Connection, Sentinels, eventually};

#[test]
fn the_replica_takes_over_from_a_dead_primary_which_comes_back_as_replica() {
    let begun = Instant::now();
    let all = Sentinels::start();
    println!("sentinels started in {:?}", begun.elapsed());
    let ports = Vec::from_iter(all.sentinels().iter().map(|one| format!("127.0.0.1:{}", one.port())));
    assert_eq!(all.url(), format!("redis-sentinel://{}/mymaster", ports.join(",")));
    // On one connection, since it is its own writes that one waits for.
    let mut connection = Connection::open(all.primary().port(), Duration::from_secs(20)).unwrap();
    connection.command(&["SET", "a", "1"]).unwrap().done();
    assert_eq!(connection.command(&["WAIT", "1", "10000"]).unwrap().integer(), 1);

    let replica = all.replica().port();
    let begun = Instant::now();
    let dead = all.kill_primary();
    let new = all.wait_for_primary_other_than(dead.port());
    println!("sentinels failed over in {:?}", begun.elapsed());
    assert_eq!((new.port(), all.primary_port_now()), (replica, replica));
    assert_eq!(new.command(&["GET", "a"]).text(), "1");
    new.command(&["SET", "a", "2"]).done();

    dead.restart();
    eventually("the old primary to obey", || (dead.info("replication", "role") == "slave").then_some(()));
    all.wait_until_watched();
    eventually("the old primary to catch up", || {
        dead.try_command(&["GET", "a"]).is_ok_and(|told| told.text() == "2").then_some(())
    });
}

#[test]
fn a_failover_changes_places_while_both_live() {
    let all = Sentinels::start();
    let (primary, replica) = (all.primary().port(), all.replica().port());
    let begun = Instant::now();
    all.failover();
    println!("sentinels changed places in {:?}", begun.elapsed());
    assert_eq!((all.primary().port(), all.replica().port()), (replica, primary));
    all.primary().command(&["SET", "a", "1"]).done();
    eventually("the old primary to obey", || {
        // Its connections are closed when it becomes one.
        all.replica().try_command(&["SET", "a", "2"]).is_ok_and(|told| told.is_error()).then_some(())
    });
}

#[test]
fn the_other_sentinels_answer_for_a_dead_one() {
    let all = Sentinels::start();
    let primary = all.primary_port_now();
    all.sentinels()[0].kill();
    assert_eq!(all.primary_port_now(), primary);
    all.sentinels()[0].restart();
    all.wait_until_watched();
}
