//! The peers: the usual script, and `INCR`.
//!
//! The usual script is the token bucket that Java gateways have run in Redis for years, written anew here (`usual.lua`) with
//! the same behaviour and the same commands: two keys under one hash tag, both read and both written for every decision,
//! refilled by the caller's clock in whole seconds, one `EVALSHA` a decision. It stands for what people have today. Where a
//! request meets three limits it is called three times; in one pipeline, so that it is not one round trip that is compared
//! with three, though those who run it wait for each.

use super::subject::{Decide, Limits, Numbers, Request};
use redis::{Client, Cmd, aio::MultiplexedConnection, cmd, pipe};
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tokio::runtime::Runtime;

const SCRIPT: &str = include_str!("usual.lua");
/// As ours has.
const PATIENCE: Duration = Duration::from_secs(5);

/// One connection, as ours has: questions that are there at the same time share its packets.
fn connect(runtime: &Runtime, url: &str) -> MultiplexedConnection {
    let client = Client::open(url).expect("the address of a server that runs");
    let connect = async {
        let mut connection = client.get_multiplexed_async_connection().await?;
        connection.set_response_timeout(PATIENCE);
        Ok::<_, redis::RedisError>(connection)
    };
    runtime.block_on(connect).expect("a server that runs")
}

#[derive(Clone)]
pub(super) struct UsualScript {
    connection: MultiplexedConnection,
    limits: Limits,
    /// Its digest, and the limit's numbers as it reads them.
    digest: Arc<str>,
    rate: Arc<str>,
    capacity: Arc<str>,
}

impl UsualScript {
    pub(super) fn new(runtime: &Runtime, url: &str, limits: Limits, numbers: Numbers) -> Self {
        let mut connection = connect(runtime, url);
        let load = async { cmd("SCRIPT").arg("LOAD").arg(SCRIPT).query_async(&mut connection).await };
        let digest: String = runtime.block_on(load).expect("a script that Redis can read");
        let (rate, capacity) = (numbers.rate().to_string(), numbers.burst.to_string());
        Self { connection, limits, digest: digest.into(), rate: rate.into(), capacity: capacity.into() }
    }

    fn call(&self, limit: &str, key: &str, now: u64, units: u32) -> Cmd {
        let mut call = cmd("EVALSHA");
        call.arg(&*self.digest)
            .arg(2)
            .arg(format!("{limit}.{{{key}}}.tokens"))
            .arg(format!("{limit}.{{{key}}}.timestamp"))
            .arg(&*self.rate)
            .arg(&*self.capacity)
            .arg(now)
            .arg(units);
        call
    }
}

impl Decide for UsualScript {
    async fn decide(&mut self, request: &Request, units: u32) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let user = self.call("user", &request.user, now, units);
        let answers: Vec<(u8, i64)> = match self.limits {
            Limits::One => user.query_async(&mut self.connection).await.map(|answer| vec![answer]),
            Limits::Three => {
                let mut calls = pipe();
                calls
                    .add_command(user)
                    .add_command(self.call("tenant", &request.tenant, now, 1))
                    .add_command(self.call("everyone", "all", now, 1));
                calls.query_async(&mut self.connection).await
            }
        }
        .unwrap_or_else(|error| panic!("Redis did not decide: {error}"));
        answers.iter().all(|(allowed, _)| *allowed == 1)
    }
}

/// Counts a user's requests, and lets everybody pass.
#[derive(Clone)]
pub(super) struct Increment {
    connection: MultiplexedConnection,
}

impl Increment {
    pub(super) fn new(runtime: &Runtime, url: &str) -> Self {
        Self { connection: connect(runtime, url) }
    }
}

impl Decide for Increment {
    async fn decide(&mut self, request: &Request, _: u32) -> bool {
        let mut count = cmd("INCR");
        count.arg(format!("count.{{{}}}", request.user));
        let count: u64 = count
            .query_async(&mut self.connection)
            .await
            .unwrap_or_else(|error| panic!("Redis did not count: {error}"));
        count > 0
    }
}
