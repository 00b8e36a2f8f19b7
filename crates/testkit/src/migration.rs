//! A slot on its way from one primary to another, step by step, so that a test can stop in the middle.

use crate::{
    cluster::{Cluster, id_of},
    reply::Reply,
    server::RedisServer,
};

/// A slot that is being moved. Dropping it leaves everything as it is, half moved.
#[derive(Debug)]
#[must_use = "a slot stays in the middle until it is finished or taken back"]
pub struct Migration<'a> {
    cluster: &'a Cluster,
    slot: u16,
    from: &'a RedisServer,
    to: &'a RedisServer,
}

impl<'a> Migration<'a> {
    pub(crate) fn begin(cluster: &'a Cluster, slot: u16, from: &'a RedisServer, to: &'a RedisServer) -> Self {
        assert_ne!(from.port(), to.port(), "slot {slot} is there already");
        let migration = Self { cluster, slot, from, to };
        // The other order would send clients to a node that does not expect them.
        migration.set(to, &["IMPORTING", &id_of(from)]);
        migration.set(from, &["MIGRATING", &id_of(to)]);
        migration
    }

    /// Where the slot was.
    pub const fn from(&self) -> &'a RedisServer {
        self.from
    }

    /// Where it goes.
    pub const fn to(&self) -> &'a RedisServer {
        self.to
    }

    /// Moves one key. Whether it was there.
    pub fn move_key(&self, key: impl AsRef<[u8]>) -> bool {
        let port = self.to.port().to_string();
        let words = [b"MIGRATE".as_slice(), b"127.0.0.1", port.as_bytes(), key.as_ref(), b"0", b"5000"];
        self.from.command(&words).done().text() == "OK"
    }

    /// Moves every key that is still there, and says how many.
    pub fn move_keys(&self) -> usize {
        let slot = self.slot.to_string();
        let mut moved = 0;
        loop {
            let keys = self.from.command(&["CLUSTER", "GETKEYSINSLOT", &slot, "100"]).done();
            if keys.items().is_empty() {
                return moved;
            }
            for key in keys.items() {
                let Reply::Bulk(key) = key else { panic!("not a key: {key:?}") };
                // One that expired meanwhile was not moved.
                moved += usize::from(self.move_key(key));
            }
        }
    }

    /// Tells every primary that the slot is the new one's, and waits until every node that is awake knows. Keys that
    /// were not moved are lost.
    pub fn finish(self) {
        let id = id_of(self.to);
        // The new one first: until it knows, it sends clients back to where they come from.
        self.set(self.to, &["NODE", &id]);
        if self.from.is_awake() {
            self.set(self.from, &["NODE", &id]);
        }
        self.cluster.wait_until_at(self.slot, self.to.port());
    }

    /// Takes it back: the slot stays where it was, keys that were moved are lost there.
    pub fn abandon(self) {
        self.set(self.from, &["STABLE"]);
        self.set(self.to, &["STABLE"]);
    }

    fn set(&self, node: &RedisServer, words: &[&str]) {
        let slot = self.slot.to_string();
        let mut command = vec!["CLUSTER", "SETSLOT", &slot];
        command.extend(words);
        node.command(&command).done();
    }
}
