//! Three primaries, three replicas.

use std::time::{Duration, Instant};
use testkit::{Cluster, Connection, RedisServer, eventually, slot_of};

fn tcp(server: &RedisServer) -> Connection {
    Connection::open(server.port(), Duration::from_secs(20)).unwrap()
}

#[test]
fn every_key_is_at_home_at_the_primary_of_its_slot() {
    let begun = Instant::now();
    let cluster = Cluster::start();
    println!("a cluster started in {:?}", begun.elapsed());
    let ports = Vec::from_iter(cluster.nodes().iter().map(|node| format!("127.0.0.1:{}", node.port())));
    assert_eq!(cluster.url(), format!("redis-cluster://{}", ports.join(",")));
    for n in 0..50 {
        let key = format!("{{user:{n}}}:bucket");
        let node = cluster.primary_of(slot_of(&key));
        assert_eq!(tcp(node).command(&["SET", &key, "1"]).unwrap().text(), "OK");
        assert_eq!(node.command(&["CLUSTER", "KEYSLOT", &key]).integer(), slot_of(&key).into());
        let elsewhere = cluster.nodes().iter().find(|other| other.port() != node.port()).unwrap();
        let moved = format!("MOVED {} 127.0.0.1:{}", slot_of(&key), node.port());
        assert_eq!(tcp(elsewhere).command(&["GET", &key]).unwrap().text(), moved);
    }
}

#[test]
fn the_replica_takes_over_from_a_dead_node() {
    let cluster = Cluster::start();
    let slot = slot_of("a");
    let (primary, replica) = (cluster.primary_of(slot), cluster.replica_of(slot));
    let mut connection = tcp(primary);
    connection.command(&["SET", "a", "1"]).unwrap().done();
    assert_eq!(connection.command(&["WAIT", "1", "10000"]).unwrap().integer(), 1);
    let begun = Instant::now();
    primary.kill();
    assert_eq!(cluster.primary_of(slot).port(), replica.port());
    println!("a cluster failed over in {:?}", begun.elapsed());
    eventually("the cluster to serve again", || (replica.command(&["GET", "a"]).text() == "1").then_some(()));
    primary.restart();
    cluster.wait_until_whole();
    assert_eq!(cluster.primary_of(slot).port(), replica.port());
    assert_eq!(cluster.replica_of(slot).port(), primary.port());
}

#[test]
fn a_frozen_primary_is_replaced_and_obeys_when_it_wakes() {
    let cluster = Cluster::start();
    let slot = slot_of("a");
    let primary = cluster.primary_of(slot);
    primary.pause();
    let new = cluster.primary_of(slot);
    assert_ne!(new.port(), primary.port());
    primary.resume();
    cluster.wait_until_whole();
    assert_eq!(cluster.primary_of(slot).port(), new.port());
}

#[test]
fn a_slot_migrates_with_its_keys() {
    let cluster = Cluster::start();
    let slot = slot_of("{a}");
    let from = cluster.primary_of(slot);
    let to = cluster.nodes().iter().take(3).find(|node| node.port() != from.port()).unwrap();
    let keys = Vec::from_iter((0..250).map(|n| format!("{{a}}:{n}")));
    for key in &keys {
        from.command(&["SET", key, "1", "EX", "100"]).done();
    }
    let begun = Instant::now();
    cluster.migrate_slot(slot, to);
    println!("a slot of 250 keys moved in {:?}", begun.elapsed());
    assert_eq!(cluster.primary_of(slot).port(), to.port());
    assert!(keys.iter().all(|key| to.command(&["GET", key]).text() == "1"));
    assert!(from.command(&["GET", &keys[0]]).text().starts_with("MOVED"));
    assert_eq!(to.keys_without_ttl(), Vec::<String>::new());
    cluster.wait_until_whole();
}

#[test]
fn a_slot_can_be_held_in_the_middle() {
    let cluster = Cluster::start();
    let slot = slot_of("{a}");
    let from = cluster.primary_of(slot);
    let to = cluster.nodes().iter().take(3).find(|node| node.port() != from.port()).unwrap();
    from.command(&["SET", "{a}:moved", "1"]).done();
    from.command(&["SET", "{a}:stays", "1"]).done();

    let migration = cluster.begin_migration(slot, to);
    assert!(migration.move_key("{a}:moved"));
    assert!(!migration.move_key("{a}:unknown"));
    assert_eq!(cluster.primary_of(slot).port(), migration.from().port(), "it is still the old one's");
    assert_eq!(from.command(&["GET", "{a}:stays"]).text(), "1");
    let ask = format!("ASK {slot} 127.0.0.1:{}", to.port());
    assert_eq!(from.command(&["GET", "{a}:moved"]).text(), ask);
    assert!(from.command(&["MGET", "{a}:moved", "{a}:stays"]).text().starts_with("TRYAGAIN"));
    assert!(to.command(&["GET", "{a}:moved"]).text().starts_with("MOVED"));
    let mut connection = tcp(migration.to());
    connection.command(&["ASKING"]).unwrap().done();
    assert_eq!(connection.command(&["GET", "{a}:moved"]).unwrap().text(), "1");

    assert_eq!(migration.move_keys(), 1);
    migration.finish();
    assert_eq!(cluster.primary_of(slot).port(), to.port());
    assert_eq!(to.command(&["GET", "{a}:stays"]).text(), "1");
}

#[test]
fn a_migration_can_be_abandoned() {
    let cluster = Cluster::start();
    let slot = slot_of("a");
    let from = cluster.primary_of(slot);
    let to = cluster.nodes().iter().take(3).find(|node| node.port() != from.port()).unwrap();
    let migration = cluster.begin_migration(slot, to);
    assert!(from.command(&["GET", "a"]).text().starts_with("ASK"));
    migration.abandon();
    assert!(!from.command(&["GET", "a"]).is_error());
}
