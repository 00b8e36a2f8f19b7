//! A door that is open, and clients of it.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};
use testkit::{Connection, Reply};
use tollgate::{Bounds, Cells, Enter, ManualClock, MemoryStore};
use tollgate_net::{Drain, DrainTimes, Listener, PoolSettings, Tokens, WorkerPool};
use tollgate_rules::{DecisionService, parse_rules};
use tollgate_service::{Resp, RespSettings};

pub(crate) const LONG: Duration = Duration::from_secs(30);

const RULES: &str = "
version: 1
limits:
  per-client:
    token_bucket: { rate: 10/s, burst: 5 }
    overrides: { vip: { rate: 100/s, burst: 50 } }
  pairs: { fixed_window: { limit: 3, window: 1h } }
  forever: { fixed_window: { limit: 2, window: forever } }
  paced: { leaky_bucket: { rate: 10/s, capacity: 5, delay: 1 } }
  workers: { concurrency: { limit: 2, max_hold: 30s } }
";

pub(crate) type Memory = MemoryStore<ManualClock>;

/// A door on a free port, until dropped.
pub(crate) struct Stage<S: Enter + Cells = Memory> {
    pool: Option<WorkerPool>,
    pub(crate) drain: Drain,
    pub(crate) clock: ManualClock,
    pub(crate) decisions: DecisionService<S>,
    runtime: tokio::runtime::Runtime,
}

pub(crate) fn open() -> Stage {
    open_with(RULES, |_| {})
}

pub(crate) fn open_with_token(token: &str) -> Stage {
    open_with(RULES, |settings| settings.tokens = Tokens::new([token.to_owned()]))
}

/// One that pauses for so long before it closes.
pub(crate) fn open_pausing(pause: Duration) -> Stage {
    open_for(pause, RULES, |_| {})
}

pub(crate) fn open_with(rules: &str, set: impl FnOnce(&mut RespSettings)) -> Stage {
    open_for(Duration::ZERO, rules, set)
}

fn open_for(pause: Duration, rules: &str, set: impl FnOnce(&mut RespSettings)) -> Stage {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(Bounds::default(), clock.clone());
    open_on(pause, rules, set, clock, || store)
}

/// One on a store that is opened inside a runtime.
pub(crate) fn open_on<S: Enter + Cells + 'static>(
    pause: Duration,
    rules: &str,
    set: impl FnOnce(&mut RespSettings),
    clock: ManualClock,
    store: impl FnOnce() -> S,
) -> Stage<S> {
    let file = parse_rules(rules, |_| None).expect("good rules");
    let mut settings = RespSettings::default();
    set(&mut settings);
    let drain = Drain::new(DrainTimes { pause, deadline: LONG });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let entered = runtime.enter();
    let decisions = DecisionService::new(Arc::new(store()), file).expect("kept");
    let backlog = NonZeroU32::new(64).expect("not zero");
    let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), backlog).expect("a free port");
    let mut pool = PoolSettings::default();
    pool.workers = NonZeroUsize::new(2).expect("not zero");
    let door = Arc::new(Resp::new(decisions.clone(), settings));
    let pool = WorkerPool::start("resp", listener, pool, &drain, door).expect("threads");
    drop(entered);
    Stage { pool: Some(pool), drain, clock, decisions, runtime }
}

impl<S: Enter + Cells> Stage<S> {
    pub(crate) fn port(&self) -> u16 {
        self.pool.as_ref().map_or(0, |pool| pool.address().port())
    }

    pub(crate) fn connections(&self) -> usize {
        self.pool.as_ref().map_or(0, |pool| pool.connections()())
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::open(self.port(), LONG).expect("it listens")
    }

    /// Asks over a connection of its own.
    pub(crate) fn ask(&self, words: &str) -> Reply {
        let words: Vec<&str> = words.split(' ').collect();
        self.connect().command(&words).expect("an answer")
    }

    /// Five numbers.
    pub(crate) fn numbers(&self, words: &str) -> Vec<i64> {
        numbers(&self.ask(words))
    }

    pub(crate) fn error(&self, words: &str) -> String {
        match self.ask(words) {
            Reply::Error(text) => text,
            other => panic!("{words}: no error: {other:?}"),
        }
    }

    pub(crate) fn raw(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port())).expect("it listens");
        stream.set_read_timeout(Some(LONG)).expect("a timeout");
        stream.set_write_timeout(Some(LONG)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        stream
    }

    /// Sends this, and nothing more; everything that is answered until the door closes.
    pub(crate) fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.raw();
        // It may be closed before all of it was taken.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).expect("text")
    }

    /// Starts on the way out.
    pub(crate) fn leave(&self) {
        let drain = self.drain.clone();
        self.runtime.spawn(async move { drain.run().await });
        self.drain.begin();
    }
}

impl<S: Enter + Cells> Drop for Stage<S> {
    fn drop(&mut self) {
        self.leave();
        // In a hurry.
        self.drain.begin();
        if let Some(pool) = self.pool.take() {
            pool.join();
        }
    }
}

pub(crate) fn numbers(reply: &Reply) -> Vec<i64> {
    reply.items().iter().map(Reply::integer).collect()
}
