//! The real server, and what it says it spent.

use std::{fs, time::Duration};
use testkit::RedisServer;

/// The commands that subjects send. What a script calls is in the script's own time.
const COMMANDS: [&str; 3] = ["cmdstat_evalsha", "cmdstat_eval", "cmdstat_incr"];

pub(super) struct Server {
    redis: RedisServer,
}

/// What the server did since it was last asked to forget.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spent {
    pub(super) calls: u64,
    /// From when it had read a command until it had the answer. The statistics go by the clock on the wall, and so count the
    /// time in which somebody else had the core; but it is never more than all there was.
    pub(super) in_commands: Duration,
    /// All of its processor time: reading, deciding, answering, and the system's part in that.
    pub(super) in_all: Duration,
}

impl Server {
    pub(super) fn start() -> Self {
        Self { redis: RedisServer::start() }
    }

    pub(super) fn url(&self) -> String {
        self.redis.url()
    }

    pub(super) fn version(&self) -> String {
        self.redis.info("server", "redis_version")
    }

    /// Forgets every key.
    pub(super) fn empty(&self) {
        self.redis.command(&["FLUSHALL"]).done();
    }

    /// What the server spends on some work.
    pub(super) fn watch<T>(&self, work: impl FnOnce() -> T) -> (T, Spent) {
        self.redis.command(&["CONFIG", "RESETSTAT"]).done();
        let before = self.processor_time();
        let done = work();
        let in_all = self.processor_time().saturating_sub(before);
        let statistics = self.redis.command(&["INFO", "commandstats"]).done();
        let sum = |name: &str| -> u64 {
            COMMANDS.iter().map(|command| figure(&statistics.field(command), name)).sum()
        };
        let in_commands = Duration::from_micros(sum("usec")).min(in_all);
        (done, Spent { calls: sum("calls"), in_commands, in_all })
    }

    /// Of its main thread, which does all of this.
    fn processor_time(&self) -> Duration {
        let file = format!("/proc/{}/schedstat", self.redis.pid());
        let text = fs::read_to_string(file).expect("a Linux with schedstat");
        let nanos = text.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
        Duration::from_nanos(nanos.expect("a processor time"))
    }
}

/// One of a command's figures, as in `calls=3,usec=12`; zero for a command that was never sent.
fn figure(line: &str, name: &str) -> u64 {
    let value = |pair: &str| pair.split_once('=').filter(|(it, _)| *it == name)?.1.parse().ok();
    line.split(',').find_map(value).unwrap_or(0)
}
