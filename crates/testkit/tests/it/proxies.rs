//! Every fault does what it says, and nothing else.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{Ipv4Addr, TcpStream},
    time::{Duration, Instant},
};
use testkit::{Connection, Proxy, RedisServer, Reply, eventually};

const PATIENCE: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(200);

fn pair() -> (RedisServer, Proxy) {
    let server = RedisServer::start();
    let proxy = Proxy::start(server.port());
    (server, proxy)
}

fn open(proxy: &Proxy) -> Connection {
    Connection::open(proxy.port(), PATIENCE).unwrap()
}

fn ask(proxy: &Proxy) -> io::Result<Reply> {
    open(proxy).command(&["PING"])
}

fn kind(answer: io::Result<Reply>) -> ErrorKind {
    answer.unwrap_err().kind()
}

fn is_silence(answer: io::Result<Reply>) -> bool {
    matches!(kind(answer), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn is_cut(answer: io::Result<Reply>) -> bool {
    matches!(kind(answer), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

#[test]
fn what_passes_is_counted() {
    let (_server, proxy) = pair();
    assert_eq!(proxy.url(), format!("redis://127.0.0.1:{}", proxy.port()));
    let mut connection = open(&proxy);
    assert_eq!(connection.command(&["PING"]).unwrap().text(), "PONG");
    let value = "x".repeat(100_000);
    connection.command(&["SET", "a", &value]).unwrap().done();
    assert_eq!(connection.command(&["GET", "a"]).unwrap().text(), value);
    assert_eq!((proxy.connections(), proxy.open_connections()), (1, 1));
    assert!((100_000..100_200).contains(&proxy.bytes_to_server()), "{}", proxy.bytes_to_server());
    // They are counted when they are written, and may be read before that.
    eventually("all bytes to be counted", || (proxy.bytes_to_client() >= 100_000).then_some(()));
    assert!((100_000..100_200).contains(&proxy.bytes_to_client()), "{}", proxy.bytes_to_client());
    drop(connection);
    eventually("the connection to close", || (proxy.open_connections() == 0).then_some(()));
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn a_delay_is_a_latency_and_no_traffic_jam() {
    let (_server, proxy) = pair();
    let mut connection = open(&proxy);
    connection.command(&["PING"]).unwrap();
    let by = Duration::from_millis(300);
    proxy.delay(by);
    let begun = Instant::now();
    connection.command(&["PING"]).unwrap();
    assert!(begun.elapsed() >= 2 * by);
    // Twenty requests sent one after another are each late by the same, so all of them together are too. Held up one by
    // one they would take twenty times as long.
    let begun = Instant::now();
    for n in 0..20 {
        connection.send(&["ECHO", &n.to_string()]).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    for n in 0..20 {
        assert_eq!(connection.receive().unwrap().text(), n.to_string());
    }
    assert!(begun.elapsed() >= 2 * by);
    assert!(begun.elapsed() < 8 * by, "{:?}", begun.elapsed());
    proxy.pass();
    connection.command(&["PING"]).unwrap();
}

#[test]
fn cut_closes_every_connection_until_told_otherwise() {
    let (server, proxy) = pair();
    let mut connections = [open(&proxy), open(&proxy)];
    for connection in &mut connections {
        connection.command(&["PING"]).unwrap();
    }
    proxy.cut();
    assert_eq!(proxy.open_connections(), 0);
    for connection in &mut connections {
        assert!(is_cut(connection.command(&["INCR", "a"])));
    }
    assert!(is_cut(ask(&proxy)));
    assert!(is_cut(ask(&proxy)));
    assert_eq!(server.command(&["EXISTS", "a"]).integer(), 0);
    proxy.pass();
    assert_eq!(ask(&proxy).unwrap().text(), "PONG");
    assert_eq!(proxy.connections(), 5);
}

#[test]
fn cut_once_spares_new_connections() {
    let (_server, proxy) = pair();
    let mut connection = open(&proxy);
    connection.command(&["PING"]).unwrap();
    proxy.cut_once();
    assert!(is_cut(connection.command(&["PING"])));
    assert_eq!(ask(&proxy).unwrap().text(), "PONG");
}

#[test]
fn a_black_hole_takes_everything_and_says_nothing() {
    let (server, proxy) = pair();
    let mut before = Connection::open(proxy.port(), SHORT).unwrap();
    before.command(&["PING"]).unwrap();
    let mut idle = open(&proxy);
    idle.command(&["PING"]).unwrap();
    proxy.black_hole();
    let mut during = Connection::open(proxy.port(), SHORT).unwrap();
    assert!(is_silence(before.command(&["INCR", "a"])));
    assert!(is_silence(during.command(&["INCR", "a"])));
    assert_eq!(server.command(&["EXISTS", "a"]).integer(), 0);
    proxy.pass();
    assert!(
        is_silence(before.command(&["INCR", "a"])),
        "bytes from the middle of a stream never go missing alone"
    );
    assert_eq!(idle.command(&["PING"]).unwrap().text(), "PONG");
    assert_eq!(ask(&proxy).unwrap().text(), "PONG");
}

#[test]
fn a_black_hole_hides_that_the_server_has_died() {
    let (server, proxy) = pair();
    let mut connection = Connection::open(proxy.port(), SHORT).unwrap();
    connection.command(&["PING"]).unwrap();
    proxy.black_hole();
    server.kill();
    assert!(is_silence(connection.receive()));
    proxy.cut_once();
    assert!(is_cut(connection.receive()));
}

#[test]
fn garbage_is_no_answer() {
    let (server, proxy) = pair();
    let mut connection = open(&proxy);
    connection.command(&["PING"]).unwrap();
    proxy.garble();
    let mut raw = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
    raw.write_all(b"INCR a\r\n").unwrap();
    let mut bytes = [0; 4];
    raw.read_exact(&mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte >= 0x80), "{bytes:?}");
    assert_eq!(server.command(&["GET", "a"]).text(), "1");
    connection.send(&["INCR", "a"]).unwrap();
    eventually("the garbage to arrive", || (proxy.bytes_to_client() >= 7 + 8).then_some(()));
    proxy.cut();
    assert_eq!(kind(connection.receive()), ErrorKind::InvalidData);
}

#[test]
fn an_answer_can_be_put_in_the_servers_mouth() {
    let (_server, proxy) = pair();
    proxy.answer_with("-LOADING Redis is loading the dataset in memory\r\n");
    let mut connection = open(&proxy);
    for _ in 0..3 {
        assert!(connection.command(&["PING"]).unwrap().text().starts_with("LOADING"));
    }
    proxy.pass();
    assert_eq!(connection.command(&["PING"]).unwrap().text(), "PONG");
}

#[test]
fn cut_after_request_lets_the_write_land_and_not_the_answer() {
    let (server, proxy) = pair();
    let mut other = open(&proxy);
    other.command(&["PING"]).unwrap();
    for round in 1..=20 {
        let mut connection = open(&proxy);
        connection.command(&["PING"]).unwrap();
        proxy.cut_after_request();
        assert!(is_cut(connection.command(&["INCR", "a"])));
        assert_eq!(server.command(&["GET", "a"]).text(), round.to_string());
        assert_eq!(other.command(&["PING"]).unwrap().text(), "PONG", "it is one connection's fault");
    }
    assert_eq!(ask(&proxy).unwrap().text(), "PONG");
}

#[test]
fn replies_are_dropped_and_requests_are_not() {
    let (server, proxy) = pair();
    let mut connection = Connection::open(proxy.port(), SHORT).unwrap();
    connection.command(&["PING"]).unwrap();
    proxy.drop_replies();
    assert!(is_silence(connection.command(&["INCR", "a"])));
    assert!(is_silence(connection.command(&["INCR", "a"])));
    assert_eq!(server.command(&["GET", "a"]).text(), "2");
    proxy.pass();
    assert!(is_silence(connection.command(&["INCR", "a"])), "what follows a lost answer would pass for it");
    assert_eq!(ask(&proxy).unwrap().text(), "PONG");
}

#[test]
fn a_restarted_server_is_found_again() {
    let (server, proxy) = pair();
    ask(&proxy).unwrap();
    server.kill();
    assert!(is_cut(ask(&proxy)));
    server.restart();
    assert_eq!(ask(&proxy).unwrap().text(), "PONG");
}

#[test]
fn a_dropped_proxy_closes_what_it_carried() {
    let (_server, proxy) = pair();
    let mut connection = open(&proxy);
    connection.command(&["PING"]).unwrap();
    let port = proxy.port();
    drop(proxy);
    assert!(is_cut(connection.command(&["PING"])));
    assert!(Connection::open(port, PATIENCE).is_err());
}

#[tokio::test]
async fn a_proxy_works_inside_a_runtime() {
    let (_server, proxy) = pair();
    assert_eq!(ask(&proxy).unwrap().text(), "PONG");
    proxy.cut();
    drop(proxy);
}
