//! `tollgate serve` asked by Redis clients that are nobody's of ours: redis-cli, redis-py, ioredis.

use crate::{folder::Folder, opened::Opened, served::curl};
use std::{
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};
use testkit::{Connection, RedisServer};

const RULES: &str = "
limits:
  slow: { token_bucket: { rate: 1/h, burst: 3 } }
  workers: { concurrency: { limit: 1, max_hold: 30s } }
";

/// A server with its door open to Redis clients that know the word.
struct Served {
    child: Child,
    address: SocketAddr,
    _folder: Folder,
}

impl Served {
    fn start(store: &str) -> Self {
        let folder = Folder::new();
        let listen = "version: 1\nlisten: { resp: { address: 127.0.0.1:0, tokens: [sesame] } }\n";
        let file = folder.file("tollgate.yaml", format!("{listen}{store}\n{RULES}"));
        let mut child = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(["serve", "--workers", "2", "--drain-pause", "0s", "-c"])
            .arg(&file)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (told, hear) = mpsc::channel();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(address) = line.strip_prefix("resp") {
                    let _ = told.send(address.trim().parse());
                }
            }
        });
        let address = hear.recv_timeout(Duration::from_secs(30)).expect("it opens its door").unwrap();
        Self { child, address, _folder: folder }
    }

    fn port(&self) -> String {
        self.address.port().to_string()
    }

    fn connect(&self) -> Connection {
        let mut client = Connection::open(self.address.port(), Duration::from_secs(30)).unwrap();
        assert_eq!(client.command(&["AUTH", "sesame"]).unwrap().text(), "OK");
        client
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where the set-up has put clients, and where their scripts are.
fn clients() -> (PathBuf, PathBuf) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    (root.join("target/clients/redis"), root.join("tests/clients/redis"))
}

fn says_ok(mut command: Command) {
    let output =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; run scripts/setup test"));
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.trim() == "ok", "{command:?}: {said}{complained}");
}

#[test]
fn redis_py_asks_in_both_protocols() {
    let served = Served::start("");
    let (installed, scripts) = clients();
    let mut python = Command::new(installed.join("python/bin/python"));
    python.arg(scripts.join("redis_py.py")).arg(served.port());
    says_ok(python);
}

#[test]
fn ioredis_asks() {
    let served = Served::start("");
    let (installed, scripts) = clients();
    let mut node = Command::new("node");
    node.env("NODE_PATH", installed.join("node_modules")).arg(scripts.join("ioredis.js")).arg(served.port());
    says_ok(node);
}

/// What redis-cli prints for these lines.
fn redis_cli(served: &Served, options: &[&str], lines: &str) -> String {
    let mut child = Command::new("redis-cli")
        .args(["-p", &served.port(), "--no-auth-warning", "-a", "sesame"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("redis-cli is installed by the set-up");
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn redis_cli_asks_in_both_protocols() {
    let served = Served::start("");
    for (protocol, key) in [("-2", "two"), ("-3", "three")] {
        let lines = format!("PING\nCL.THROTTLE {key} 15 30 60\nTG.CHECK slow {key} 2\nGET nothing\n");
        let told = redis_cli(&served, &[protocol], &lines);
        let told: Vec<&str> = told.split_whitespace().collect();
        assert_eq!(told[..10], ["PONG", "0", "16", "15", "-1", "2", "0", "3", "1", "-1"], "{protocol}");
    }
    let told = redis_cli(&served, &["--no-raw"], "TG.CHEK slow a\nCOMMAND DOCS tg.check\n");
    assert!(told.contains("(error) ERR unknown command 'TG.CHEK'; did you mean TG.CHECK?"), "{told}");
    assert!(told.contains("limit key [cost] | limit KEYS n value [value ...] [cost]"), "{told}");
    let piped = redis_cli(&served, &["--pipe"], &"CL.THROTTLE piped 99 1 60\r\n".repeat(500));
    assert!(piped.contains("errors: 0, replies: 500"), "{piped}");
}

/// A body of HTTP may hold commands: none of them is carried out, and whoever reads the log hears of it.
#[test]
fn http_is_closed_and_told() {
    let folder = Folder::new();
    let rules = format!("version: 1\nlisten: {{ resp: 127.0.0.1:0 }}\n{RULES}");
    let opened = Opened::start(&folder.file("tollgate.yaml", rules), &["resp"]);
    let address = opened.address("resp");
    let body = "CL.THROTTLE page 15 30 60\nTG.CHECK slow page\n";
    let url = format!("http://{address}/");
    let told = curl(&["-s", "-w", "%{http_code}", "--data-binary", body, &url]);
    assert_eq!(told, "000", "no answer");
    opened.says("HTTP came to the listener for Redis clients");
    let mut client = Connection::open(address.port(), Duration::from_secs(30)).unwrap();
    assert_eq!(client.command(&["EXISTS", "page"]).unwrap().integer(), 0);
    assert_eq!(client.command(&["TG.CHECK", "slow", "page"]).unwrap().items()[2].integer(), 2);
}

/// Two servers on one Redis are one: what one has charged the other knows.
#[test]
fn cells_and_limits_are_shared_through_redis() {
    let redis = RedisServer::start();
    let store = format!("store: {{ url: \"{}\", timeout: 5s }}", redis.url());
    let (one, other) = (Served::start(&store), Served::start(&store));
    let (mut one, mut other) = (one.connect(), other.connect());
    let throttle = ["CL.THROTTLE", "shared", "2", "1", "3600"];
    let check = ["TG.CHECK", "slow", "shared"];
    for words in [&throttle[..], &check] {
        let mut limited = Vec::new();
        for _ in 0..2 {
            limited.push(one.command(words).unwrap().items()[0].integer());
            limited.push(other.command(words).unwrap().items()[0].integer());
        }
        assert_eq!(limited, [0, 0, 0, 1], "{words:?}");
    }
    assert_eq!(other.command(&["DEL", "shared"]).unwrap().integer(), 1);
    assert_eq!(one.command(&["EXISTS", "shared"]).unwrap().integer(), 0);
}

/// SIGTERM: what was asked is answered, then the door closes and the server ends.
#[test]
fn it_leaves_without_cutting_anybody_off() {
    let mut served = Served::start("");
    let mut client = served.connect();
    for _ in 0..1_000 {
        client.send(&["CL.THROTTLE", "k", "15", "30", "60"]).unwrap();
    }
    assert_eq!(client.receive().unwrap().items().len(), 5);
    let pid = rustix::process::Pid::from_raw(served.child.id().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    for _ in 1..1_000 {
        assert_eq!(client.receive().unwrap().items().len(), 5);
    }
    assert!(client.receive().is_err());
    let status = testkit::eventually("the end of the server", || served.child.try_wait().unwrap());
    assert!(status.success());
}
