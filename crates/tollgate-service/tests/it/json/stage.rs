//! A door that is open, and a client that speaks to it.

use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};
use tokio::runtime::{Builder, Runtime};
use tollgate::{Bounds, Enter, ManualClock, MemoryStore};
use tollgate_net::{Drain, DrainTimes, Listener, PoolSettings, WorkerPool};
use tollgate_rules::{DecisionService, parse_rules};
use tollgate_service::{Json, JsonSettings};

pub(crate) type Memory = MemoryStore<ManualClock>;

pub(crate) const RULES: &str = "
version: 1
limits:
  per-client:
    token_bucket: { rate: 10/s, burst: 100 }
    overrides: { vip: { rate: 100/s, burst: 1000 } }
  login: { sliding_log: { limit: 5, window: 1m } }
  paced: { leaky_bucket: { rate: 1/s, capacity: 5, delay: 1 } }
  one: { fixed_window: { limit: 1, window: forever } }
  checkout:
    concurrency: { limit: 2, max_hold: 30s, queue: 4 }
    overrides: { short: { max_hold: 5s } }
";

/// Nobody waits that long, unless something is wrong.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// A door with everything behind it, open until dropped.
pub(crate) struct Stage<S: Enter> {
    pub(crate) address: SocketAddr,
    pub(crate) decisions: DecisionService<S>,
    pub(crate) drain: Drain,
    /// How many requests are being answered.
    pub(crate) in_flight: Box<dyn Fn() -> usize + Send + Sync>,
    /// Dropped last: what is above runs on it.
    pool: WorkerPool,
    pub(crate) runtime: Runtime,
}

/// On memory, with a clock that stands still.
pub(crate) fn memory() -> (Stage<Memory>, ManualClock) {
    memory_with(RULES, JsonSettings::default())
}

pub(crate) fn memory_with(rules: &str, settings: JsonSettings) -> (Stage<Memory>, ManualClock) {
    let clock = ManualClock::new();
    let store = Arc::new(MemoryStore::with_clock(Bounds::default(), clock.clone()));
    (Stage::open(rules, settings, |_| store), clock)
}

impl<S: Enter + 'static> Stage<S> {
    pub(crate) fn open(rules: &str, settings: JsonSettings, store: impl FnOnce(&Runtime) -> Arc<S>) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let entered = runtime.enter();
        let file = parse_rules(rules, |_| None).expect("good rules");
        let decisions = DecisionService::new(store(&runtime), file).expect("kept");
        let drain = Drain::new(DrainTimes { pause: Duration::ZERO, deadline: LONG });
        let listener =
            Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), NonZeroU32::new(64).expect("64"));
        let mut pool = PoolSettings::default();
        pool.workers = NonZeroUsize::new(2).expect("two");
        let door = Arc::new(Json::new(decisions.clone(), settings));
        let in_flight = Box::new(door.in_flight());
        let pool = WorkerPool::start("http", listener.expect("a port"), pool, &drain, door).expect("threads");
        drop(entered);
        Self { address: pool.address(), decisions, drain, in_flight, pool, runtime }
    }

    /// How many connections are open.
    pub(crate) fn connections(&self) -> usize {
        self.pool.connections()()
    }

    pub(crate) fn client(&self) -> Client {
        Client::to(self.address)
    }

    /// One question on a connection of its own.
    pub(crate) fn post(&self, path: &str, body: &str) -> Told {
        self.client().post(path, body)
    }

    /// What is left of a bucket.
    pub(crate) fn remaining(&self, limit: &str, key: &str) -> u64 {
        let told = self.post("/v1/peek", &format!(r#"{{"limit":"{limit}","key":"{key}","cost":0}}"#));
        told.json()["remaining"].as_u64().expect("a number")
    }
}

/// One connection, kept open.
pub(crate) struct Client {
    pub(crate) stream: BufReader<TcpStream>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Client {
    pub(crate) fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the door is open");
        stream.set_read_timeout(Some(LONG)).expect("a timeout");
        stream.set_nodelay(true).expect("an option");
        Self { stream: BufReader::new(stream) }
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> Told {
        self.send_post(path, body);
        self.told().expect("an answer")
    }

    pub(crate) fn send_post(&mut self, path: &str, body: &str) {
        let length = body.len();
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        ));
    }

    pub(crate) fn request(&mut self, method: &str, path: &str) -> Told {
        self.send(&format!("{method} {path} HTTP/1.1\r\nhost: x\r\n\r\n"));
        if method == "HEAD" {
            self.head_of(&mut String::new()).expect("an answer")
        } else {
            self.told().expect("an answer")
        }
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).expect("sent");
    }

    /// The next answer; none where the connection has ended.
    pub(crate) fn told(&mut self) -> Option<Told> {
        let mut length = String::new();
        let mut told = self.head_of(&mut length)?;
        let mut body = vec![0; length.parse().unwrap_or(0)];
        self.stream.read_exact(&mut body).ok()?;
        told.body = String::from_utf8(body).expect("text");
        Some(told)
    }

    fn head_of(&mut self, length: &mut String) -> Option<Told> {
        let mut head = String::new();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                *length = value.trim().to_owned();
            }
            head.push_str(&line);
        }
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Told { status, head, body: String::new() })
    }
}

impl Told {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn detail(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let told = self.json();
        assert_eq!(told["status"], self.status, "{self:?}");
        told["detail"].as_str().expect("text").to_owned()
    }
}
