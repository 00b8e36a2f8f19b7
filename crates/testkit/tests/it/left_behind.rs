//! Nothing outlives the test, however that ends.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    thread,
};
use testkit::{Cluster, RedisServer, Sentinels, eventually};

/// Whether a process runs. One that ended and that nobody has asked after yet does not.
fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

#[test]
fn no_server_is_left_after_drop() {
    let server = RedisServer::start();
    let pid = server.pid();
    assert!(runs(pid));
    drop(server);
    assert!(!fs::exists(format!("/proc/{pid}")).unwrap());
}

#[test]
fn a_frozen_server_is_not_left_after_drop() {
    let server = RedisServer::start();
    server.pause();
    let pid = server.pid();
    drop(server);
    assert!(!fs::exists(format!("/proc/{pid}")).unwrap());
}

#[test]
fn no_process_is_left_of_sentinels_and_clusters() {
    let sentinels = Sentinels::start();
    let cluster = Cluster::start();
    let mut pids = vec![sentinels.primary().pid(), sentinels.replica().pid()];
    pids.extend(sentinels.sentinels().iter().map(RedisServer::pid));
    pids.extend(cluster.nodes().iter().map(RedisServer::pid));
    assert_eq!(pids.len(), 11);
    assert!(pids.iter().all(|pid| runs(*pid)));
    drop((sentinels, cluster));
    assert!(!pids.iter().any(|pid| fs::exists(format!("/proc/{pid}")).unwrap()));
}

#[test]
fn a_server_is_not_left_after_a_panic() {
    let (told, pid) = std::sync::mpsc::channel();
    let failing = thread::spawn(move || {
        let server = RedisServer::start();
        told.send(server.pid()).unwrap();
        panic!("this panic is part of the test");
    });
    assert!(failing.join().is_err());
    assert!(!runs(pid.recv().unwrap()));
}

/// The system takes the end of the thread that started a child for the end of its parent.
#[test]
fn a_server_outlives_the_thread_that_started_it() {
    let server = thread::spawn(RedisServer::start).join().unwrap();
    assert_eq!(server.command(&["PING"]).text(), "PONG");
    assert!(runs(server.pid()));
}

const ROLE: &str = "TESTKIT_TO_BE_KILLED";

/// The process that the next test kills: it starts a server, tells its number, and waits for its end.
#[test]
fn to_be_killed() {
    if env::var_os(ROLE).is_some() {
        let server = RedisServer::start();
        println!("\nserver {}", server.pid());
        loop {
            thread::park();
        }
    }
}

#[test]
fn a_test_process_that_is_killed_leaves_no_server() {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "left_behind::to_be_killed", "--nocapture"])
        .env(ROLE, "1")
        .stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
    let pid = lines.filter_map(|line| line.strip_prefix("server ")?.parse().ok()).next();
    process.kill().unwrap();
    process.wait().unwrap();
    let pid = pid.unwrap();
    eventually("the abandoned server to end", || (!runs(pid)).then_some(()));
}
