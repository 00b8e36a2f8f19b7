//! One server: started, asked, hurt.

use std::{
    fs,
    io::ErrorKind,
    process::Command,
    thread,
    time::{Duration, Instant},
};
use testkit::{Connection, RedisServer, Reply, TlsFiles};

const PATIENCE: Duration = Duration::from_secs(10);

fn tcp(server: &RedisServer) -> Connection {
    Connection::open(server.port(), PATIENCE).unwrap()
}

#[test]
fn a_server_answers_on_its_port() {
    let begun = Instant::now();
    let server = RedisServer::start();
    println!("a server started in {:?}", begun.elapsed());
    assert_eq!(server.url(), format!("redis://127.0.0.1:{}", server.port()));
    assert_eq!(tcp(&server).command(&["SET", "a", "1"]).unwrap(), Reply::Status("OK".into()));
    assert_eq!(server.command(&["GET", "a"]), Reply::Bulk(b"1".to_vec()));
    assert_eq!(server.info("server", "tcp_port"), server.port().to_string());
    assert_eq!(server.info("server", "process_id"), server.pid().to_string());
    assert!(server.command(&["NONSENSE"]).is_error());
}

#[test]
fn servers_started_at_once_do_not_meet() {
    let started = Vec::from_iter((0..6).map(|_| thread::spawn(RedisServer::start)));
    let servers = Vec::from_iter(started.into_iter().map(|server| server.join().unwrap()));
    for server in &servers {
        server.command(&["SET", "port", &server.port().to_string()]).done();
    }
    for server in &servers {
        assert_eq!(server.command(&["GET", "port"]).text(), server.port().to_string());
    }
}

#[test]
fn arguments_reach_the_server() {
    let server = RedisServer::start_with(&["--maxmemory", "3mb", "--maxmemory-policy", "noeviction"]);
    assert_eq!(server.command(&["CONFIG", "GET", "maxmemory"]).field("maxmemory"), "3145728");
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).done();
    assert!(server.command(&["SET", "a", "1"]).text().starts_with("OOM"));
}

#[test]
#[should_panic(expected = "no-such-setting")]
fn a_server_that_does_not_start_says_why() {
    RedisServer::start_with(&["--no-such-setting", "1"]);
}

#[test]
fn a_killed_server_comes_back_empty_on_the_same_port() {
    let server = RedisServer::start();
    let (port, pid) = (server.port(), server.pid());
    server.command(&["SET", "a", "1"]).done();
    let mut connection = tcp(&server);
    server.kill();
    assert!(!server.is_awake());
    assert!(connection.command(&["PING"]).is_err());
    assert_eq!(Connection::open(port, PATIENCE).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert!(server.try_command(&["PING"]).is_err());
    server.restart();
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), pid);
    assert_eq!(tcp(&server).command(&["GET", "a"]).unwrap(), Reply::Nil);
}

#[test]
fn a_server_told_to_keep_its_data_has_it_after_a_restart() {
    let server = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    server.command(&["SET", "a", "1"]).done();
    server.restart();
    assert_eq!(server.command(&["GET", "a"]).text(), "1");
}

#[test]
fn a_frozen_server_keeps_its_connections_and_answers_later() {
    let server = RedisServer::start();
    let mut connection = Connection::open(server.port(), Duration::from_millis(100)).unwrap();
    server.pause();
    assert!(!server.is_awake());
    connection.send(&["INCR", "a"]).unwrap();
    assert!(matches!(connection.receive().unwrap_err().kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
    assert!(!server.answers_within(Duration::from_millis(50)));
    server.resume();
    assert_eq!(server.command(&["PING"]).text(), "PONG");
    testkit::eventually("the late answer", || connection.receive().ok());
    assert_eq!(server.command(&["GET", "a"]).text(), "1");
}

#[test]
fn keys_that_would_stay_for_ever_are_found() {
    let server = RedisServer::start();
    for n in 0..1500 {
        server.command(&["SET", &format!("short:{n}"), "1", "EX", "100"]).done();
    }
    assert_eq!(server.keys_without_ttl(), Vec::<String>::new());
    server.command(&["SET", "long", "1"]).done();
    assert_eq!(server.keys_without_ttl(), ["long"]);
}

#[test]
fn a_keys_memory_is_told() {
    let server = RedisServer::start();
    server.command(&["SET", "a", &"x".repeat(1000)]).done();
    assert!((1000..2000).contains(&server.memory_of("a").unwrap()));
    assert_eq!(server.memory_of("b"), None);
}

#[test]
fn a_user_has_to_log_in() {
    let server = RedisServer::start_with_user("gate", "secret");
    assert_eq!(server.url(), format!("redis://gate:secret@127.0.0.1:{}", server.port()));
    assert!(tcp(&server).command(&["GET", "a"]).unwrap().text().starts_with("NOAUTH"));
    assert!(tcp(&server).command(&["AUTH", "gate", "wrong"]).unwrap().text().starts_with("WRONGPASS"));
    let mut connection = tcp(&server);
    connection.command(&["AUTH", "gate", "secret"]).unwrap().done();
    connection.command(&["SET", "a", "1"]).unwrap().done();
    assert_eq!(server.command(&["GET", "a"]).text(), "1");
}

/// What redis-cli says to a ping, trusting this authority.
fn ping_by_tls(server: &RedisServer, trusted: &TlsFiles) -> String {
    let mut command = Command::new("redis-cli");
    command.args(["-p", &server.port().to_string(), "--tls", "--cacert"]).arg(&trusted.authority).arg("PING");
    let output = command.output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned()
}

#[test]
fn tls_is_spoken_to_those_who_trust_the_authority() {
    let begun = Instant::now();
    let server = RedisServer::start_tls();
    println!("a server with TLS started in {:?}", begun.elapsed());
    assert_eq!(server.url(), format!("rediss://127.0.0.1:{}", server.port()));
    assert_eq!(ping_by_tls(&server, server.tls()), "PONG");
    let stranger = RedisServer::start_tls();
    let refused = ping_by_tls(&server, stranger.tls());
    assert!(refused.contains("certificate verify failed"), "{refused}");
    assert!(
        !tcp(&server).command(&["PING"]).is_ok_and(|answer| answer.text() == "PONG"),
        "it speaks plain text"
    );
    assert_eq!(server.command(&["PING"]).text(), "PONG", "the kit asks past TLS");
}

#[test]
fn its_directory_goes_with_it() {
    let server = RedisServer::start();
    let directory = server.directory().to_owned();
    assert!(fs::metadata(&directory).unwrap().is_dir());
    assert!(server.log().contains("Ready to accept connections"));
    drop(server);
    assert!(!directory.exists());
}
