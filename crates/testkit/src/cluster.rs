//! A cluster: three primaries with a replica each.
//!
//! It is put together by the commands that `redis-cli --cluster create` would send, without its pauses. What remains is
//! the two seconds for which a new primary refuses to be sure of the cluster.

use crate::{
    eventually::eventually,
    launch::{Launch, Role},
    migration::Migration,
    port::Port,
    reply::Reply,
    server::RedisServer,
    slot::SLOTS,
};
use std::thread;

const PRIMARIES: usize = 3;
const NODES: usize = 2 * PRIMARIES;

/// Node by node: how long until a silent one is believed dead, and that its replica takes over however old its data;
/// replicas stay with their primary, so that a test knows who is whose.
const SETTINGS: [&str; 8] = [
    "--cluster-node-timeout",
    "1500",
    "--cluster-announce-ip",
    "127.0.0.1",
    "--cluster-replica-validity-factor",
    "0",
    "--cluster-allow-replica-migration",
    "no",
];

/// A cluster of six nodes that share the slots evenly. A dead primary's replica takes over within a few seconds.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<RedisServer>,
}

impl Cluster {
    /// Starts the nodes, makes them one cluster, and waits until every node finds it complete.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same, every node with these arguments.
    pub fn start_with(arguments: &[&str]) -> Self {
        let nodes = thread::scope(|scope| {
            let starting = [(); NODES].map(|()| scope.spawn(|| start_node(arguments)));
            starting.map(|node| node.join().unwrap_or_else(|reason| std::panic::resume_unwind(reason)))
        });
        let cluster = Self { nodes: nodes.into() };
        cluster.introduce();
        cluster.wait_until_whole();
        cluster
    }

    /// Where a client finds the cluster: every node.
    pub fn url(&self) -> String {
        let ports: Vec<_> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        format!("redis-cluster://{}", ports.join(","))
    }

    /// The nodes: first those that began as primaries, in the order of their slots, then their replicas.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// Who serves a slot. Waits, if nobody does just now, for a replica to take over.
    pub fn primary_of(&self, slot: u16) -> &RedisServer {
        eventually(&format!("a primary of slot {slot}"), || {
            // One that was away may still believe what was true before; whoever took over has the later epoch.
            let claims = self.awake().filter_map(|node| Some((own_epoch(node, slot)?, node)));
            claims.max_by_key(|(epoch, _)| *epoch).map(|(_, node)| node)
        })
    }

    /// Who copies the primary of a slot.
    pub fn replica_of(&self, slot: u16) -> &RedisServer {
        let primary = self.primary_of(slot).port().to_string();
        eventually(&format!("a replica of slot {slot}"), || {
            self.awake().find(|node| node.info("replication", "master_port") == primary)
        })
    }

    /// Moves a slot, its keys too, to another primary, and waits until every node that is awake knows.
    pub fn migrate_slot(&self, slot: u16, to: &RedisServer) {
        let migration = self.begin_migration(slot, to);
        migration.move_keys();
        migration.finish();
    }

    /// Begins to move a slot, and moves nothing yet: keys that are there are served there, for others a client is sent
    /// on.
    pub fn begin_migration<'a>(&'a self, slot: u16, to: &'a RedisServer) -> Migration<'a> {
        Migration::begin(self, slot, self.primary_of(slot), to)
    }

    /// Waits until every node that is awake finds all slots served, each by a primary with a replica in sync, and all
    /// of them agree by whom. It never is while a node is dead, so restart that before.
    pub fn wait_until_whole(&self) {
        eventually("the cluster to be whole", || {
            let mut views = self.awake().map(view);
            let first = views.next()??;
            let agreed = views.all(|view| view.as_ref() == Some(&first));
            (agreed && first.iter().all(|range| self.is_copied(range))).then_some(())
        });
    }

    fn is_copied(&self, range: &Range) -> bool {
        let mut servers = range.ports.iter().map(|port| self.awake().find(|node| node.port() == *port));
        let Some(Some(primary)) = servers.next() else { return false };
        servers.all(|replica| replica.is_some_and(|replica| replica.is_in_sync_with(primary)))
    }

    /// Waits until every node that is awake has the slot at this one.
    pub(crate) fn wait_until_at(&self, slot: u16, port: u16) {
        eventually(&format!("everybody to know of slot {slot}"), || {
            self.awake().all(|node| port_of(node, slot) == Some(port)).then_some(())
        });
    }

    pub(crate) fn awake(&self) -> impl Iterator<Item = &RedisServer> {
        self.nodes.iter().filter(|node| node.is_awake())
    }

    fn introduce(&self) {
        for (index, node) in self.nodes.iter().take(PRIMARIES).enumerate() {
            // Epochs of their own from the start: otherwise all have the same, and sort that out at leisure.
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]).done();
            let bound = |index: usize| index * usize::from(SLOTS) / PRIMARIES;
            let (first, last) = (bound(index).to_string(), (bound(index + 1) - 1).to_string());
            node.command(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]).done();
        }
        // Everybody is told of everybody, instead of waiting for the word to go round.
        for (index, node) in self.nodes.iter().enumerate() {
            for other in &self.nodes[index + 1..] {
                let (port, bus) = (other.port().to_string(), other.bus().to_string());
                node.command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]).done();
            }
        }
        let (primaries, replicas) = self.nodes.split_at(PRIMARIES);
        for (primary, replica) in primaries.iter().zip(replicas) {
            let id = id_of(primary);
            eventually("a replica to have heard of its primary", || {
                (!replica.command(&["CLUSTER", "REPLICATE", &id]).is_error()).then_some(())
            });
        }
    }
}

/// Slots in a row, and who serves them: the primary's port, then its replicas'.
#[derive(Debug, PartialEq)]
struct Range {
    first: i64,
    last: i64,
    ports: Vec<u16>,
}

impl Range {
    fn holds(&self, slot: u16) -> bool {
        (self.first..=self.last).contains(&slot.into())
    }
}

/// The cluster as a node sees it, if it finds it whole: every slot served, every primary with a replica.
fn view(node: &RedisServer) -> Option<Vec<Range>> {
    if node.command(&["CLUSTER", "INFO"]).field("cluster_state") != "ok" {
        return None;
    }
    let ranges = slots(node)?;
    let served: i64 = ranges.iter().map(|range| range.last - range.first + 1).sum();
    let whole = served == i64::from(SLOTS) && ranges.iter().all(|range| range.ports.len() > 1);
    whole.then_some(ranges)
}

fn slots(node: &RedisServer) -> Option<Vec<Range>> {
    let port = |server: &Reply| u16::try_from(server.items()[1].integer()).ok();
    let range = |range: &Reply| {
        let [first, last, servers @ ..] = range.items() else { return None };
        let ports = servers.iter().map(port).collect::<Option<_>>()?;
        Some(Range { first: first.integer(), last: last.integer(), ports })
    };
    let mut ranges =
        node.command(&["CLUSTER", "SLOTS"]).done().items().iter().map(range).collect::<Option<Vec<_>>>()?;
    ranges.sort_by_key(|range| range.first);
    Some(ranges)
}

/// The epoch of this node, if it believes it has the slot.
fn own_epoch(node: &RedisServer, slot: u16) -> Option<u64> {
    (port_of(node, slot)? == node.port())
        .then(|| node.command(&["CLUSTER", "INFO"]).field("cluster_my_epoch").parse().ok())?
}

/// The port that this node would send a client to.
fn port_of(node: &RedisServer, slot: u16) -> Option<u16> {
    slots(node)?.iter().find(|range| range.holds(slot)).map(|range| range.ports[0])
}

pub(crate) fn id_of(node: &RedisServer) -> String {
    node.command(&["CLUSTER", "MYID"]).done().text()
}

fn start_node(arguments: &[&str]) -> RedisServer {
    RedisServer::launch(|| Launch::new(Role::Node { bus: Port::free() }).with(&SETTINGS).with(arguments))
}
