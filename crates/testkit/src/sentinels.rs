//! A primary, its replica, and three sentinels that watch them.
//!
//! Sentinels find each other and the replica by what they publish and ask every few seconds. They are told to do that
//! several times a second, which changes nothing but how long a test waits; sentinels too old to be told so are slow.

use crate::{
    eventually::eventually,
    launch::{Launch, Role},
    server::RedisServer,
};
use std::thread;

const NAME: &str = "mymaster";

/// In milliseconds, how long a primary is silent until each sentinel believes it dead. Two must, and then all that do want
/// to lead; if three do at once, each may get one vote, and they wait for a long time before they vote again.
const DOWN_AFTER: [u32; 3] = [800, 1000, 1800];

/// In milliseconds, what sentinels do every so often. A replica is chosen only if it was heard of within three of the first
/// (five pings, if the primary is down), and while they choose it is asked but once a second; so these are no shorter, and
/// pings stay as they are.
const HASTE: [&str; 6] = ["info-period", "400", "ask-period", "200", "publish-period", "200"];

/// Two servers behind three sentinels, of which two must agree that a primary is down. It takes them a second to notice.
#[derive(Debug)]
pub struct Sentinels {
    servers: [RedisServer; 2],
    sentinels: Vec<RedisServer>,
}

impl Sentinels {
    /// Starts all five, and waits until every sentinel knows of the others, and of a replica that is in sync.
    pub fn start() -> Self {
        let first = RedisServer::start();
        let port = &first.port().to_string();
        let (replica, sentinels) = thread::scope(|scope| {
            let replica = scope.spawn(|| RedisServer::start_with(&["--replicaof", "127.0.0.1", port]));
            let sentinels = DOWN_AFTER.map(|after| scope.spawn(move || start_sentinel(port, after)));
            (join(replica), sentinels.into_iter().map(join).collect())
        });
        eventually("the replica to be in sync", || replica.is_in_sync_with(&first).then_some(()));
        let all = Self { servers: [first, replica], sentinels };
        all.wait_until_watched();
        all
    }

    /// Where a client asks for the primary.
    pub fn url(&self) -> String {
        let ports: Vec<_> = self.sentinels.iter().map(|one| format!("127.0.0.1:{}", one.port())).collect();
        format!("redis-sentinel://{}/{NAME}", ports.join(","))
    }

    /// The name under which sentinels know the primary.
    pub const fn name(&self) -> &'static str {
        NAME
    }

    /// The server that the sentinels name now; a dead one, until they have noticed.
    pub fn primary(&self) -> &RedisServer {
        let port = self.primary_port_now();
        let named = self.servers.iter().find(|server| server.port() == port);
        named.unwrap_or_else(|| panic!("the sentinels name {port}, which is none of ours"))
    }

    /// The other one.
    pub fn replica(&self) -> &RedisServer {
        let port = self.primary_port_now();
        let other = self.servers.iter().find(|server| server.port() != port);
        other.expect("two servers have two ports")
    }

    /// The three.
    pub fn sentinels(&self) -> &[RedisServer] {
        &self.sentinels
    }

    /// What the first sentinel that is awake would tell a client.
    pub fn primary_port_now(&self) -> u16 {
        let sentinel = self.sentinels.iter().find(|one| one.is_awake()).expect("a sentinel is awake");
        primary_according_to(sentinel)
    }

    /// Kills the primary, and gives it back: to wait for [another](Self::wait_for_primary_other_than), or to restart.
    pub fn kill_primary(&self) -> &RedisServer {
        let primary = self.primary();
        primary.kill();
        primary
    }

    /// Makes the replica the primary while both live, and waits until every sentinel says so.
    pub fn failover(&self) {
        let old = self.primary_port_now();
        let sentinel = self.sentinels.iter().find(|one| one.is_awake()).expect("a sentinel is awake");
        // Refused while one is under way, or while the replica was not heard of for a moment.
        eventually("a failover to begin", || {
            (!sentinel.command(&["SENTINEL", "FAILOVER", NAME]).is_error()).then_some(())
        });
        self.wait_for_primary_other_than(old);
    }

    /// Waits until every sentinel that is awake names one and the same other primary, and that one takes writes.
    pub fn wait_for_primary_other_than(&self, old: u16) -> &RedisServer {
        eventually("the sentinels to agree on another primary", || {
            let mut named = self.sentinels.iter().filter(|one| one.is_awake()).map(primary_according_to);
            let new = named.next()?;
            let server = self.servers.iter().find(|server| server.port() == new)?;
            let agreed = new != old && named.all(|port| port == new);
            (agreed && server.info("replication", "role") == "master").then_some(server)
        })
    }

    /// Waits until every sentinel that is awake knows of all the others, and of a replica that could take over.
    pub fn wait_until_watched(&self) {
        let others = (self.sentinels.len() - 1).to_string();
        for sentinel in self.sentinels.iter().filter(|one| one.is_awake()) {
            eventually("a sentinel to know everybody", || {
                let primary = sentinel.command(&["SENTINEL", "MASTER", NAME]).done();
                let replicas = sentinel.command(&["SENTINEL", "REPLICAS", NAME]).done();
                let quorum = sentinel.command(&["SENTINEL", "CKQUORUM", NAME]);
                let replica = replicas.items().first()?;
                let known =
                    primary.field("flags") == "master" && primary.field("num-other-sentinels") == others;
                let synced = replica.field("flags") == "slave" && replica.field("master-link-status") == "ok";
                (known && synced && !quorum.is_error()).then_some(())
            });
        }
    }
}

fn start_sentinel(primary: &str, down_after: u32) -> RedisServer {
    let lines = format!(
        "sentinel monitor {NAME} 127.0.0.1 {primary} 2\n\
         sentinel down-after-milliseconds {NAME} {down_after}\n\
         sentinel failover-timeout {NAME} 3000\n"
    );
    let sentinel = RedisServer::launch(|| Launch::new(Role::Sentinel(lines.clone())));
    let mut words = vec!["SENTINEL", "DEBUG"];
    words.extend(HASTE);
    sentinel.command(&words);
    sentinel
}

fn primary_according_to(sentinel: &RedisServer) -> u16 {
    let address = sentinel.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]).done();
    address.items()[1].text().parse().unwrap_or_else(|_| panic!("not an address: {address:?}"))
}

/// A server that did not start has said why on its thread.
fn join(starting: thread::ScopedJoinHandle<'_, RedisServer>) -> RedisServer {
    starting.join().unwrap_or_else(|reason| std::panic::resume_unwind(reason))
}
