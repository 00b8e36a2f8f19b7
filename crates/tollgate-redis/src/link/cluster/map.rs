//! The map of a cluster as a node draws it (CLUSTER SLOTS), and the signposts on the way (MOVED, ASK).
//!
//! A node that does not know its own name leaves it empty: then it is the one under which it was asked.

use super::{Host, Node};
use crate::link::slot::SLOTS;
use redis::Value;
use std::sync::Arc;

/// Which node has which slot.
#[derive(Debug)]
pub(super) struct Map {
    nodes: Vec<Node>,
    /// An index into the nodes for every slot, or `NOBODY`.
    owners: Box<[u16]>,
}

const NOBODY: u16 = u16::MAX;

impl Map {
    /// Draws the map from an answer of `asked`.
    pub(super) fn draw(answer: &Value, asked: &Host, node: impl Fn(Host) -> Node) -> Option<Self> {
        let Value::Array(ranges) = answer else { return None };
        let mut map = Self { nodes: Vec::new(), owners: vec![NOBODY; usize::from(SLOTS)].into() };
        for range in ranges {
            let Value::Array(parts) = range else { return None };
            let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = &parts[..] else {
                return None;
            };
            let (first, last) = (usize::try_from(*first).ok()?, usize::try_from(*last).ok()?);
            let [name, Value::Int(port), ..] = &primary[..] else { return None };
            let host = Host { name: name_of(name, asked)?, port: u16::try_from(*port).ok()? };
            let index = map.index_of(host, &node)?;
            map.owners.get_mut(first..=last)?.fill(index);
        }
        Some(map)
    }

    fn index_of(&mut self, host: Host, node: impl Fn(Host) -> Node) -> Option<u16> {
        let index = self.nodes.iter().position(|node| *node.host == host).unwrap_or_else(|| {
            self.nodes.push(node(host));
            self.nodes.len() - 1
        });
        u16::try_from(index).ok().filter(|index| *index != NOBODY)
    }

    pub(super) fn node_of(&self, slot: u16) -> Option<&Node> {
        self.nodes.get(usize::from(*self.owners.get(usize::from(slot))?))
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(super) fn has(&self, host: &Host) -> bool {
        self.nodes.iter().any(|node| *node.host == *host)
    }

    /// Whether both send every slot to the same address.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        // The same map may list its nodes in another order.
        let host_of = |map: &Self, slot| map.node_of(slot).map(|node| Arc::clone(&node.host));
        (0..SLOTS).all(|slot| host_of(self, slot) == host_of(other, slot))
    }
}

fn name_of(value: &Value, asked: &Host) -> Option<String> {
    let name = match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok()?,
        Value::SimpleString(text) => text,
        Value::Nil => "",
        _ => return None,
    };
    Some(match name {
        "" | "?" => asked.name.clone(),
        name => name.to_owned(),
    })
}

/// Where `3999 10.0.0.7:6381` sends us, as said by `asked`.
pub(super) fn redirection(message: &str, asked: &Host) -> Option<Host> {
    let (name, port) = message.split_ascii_whitespace().nth(1)?.rsplit_once(':')?;
    let name = match name.trim_start_matches('[').trim_end_matches(']') {
        "" | "?" => asked.name.clone(),
        name => name.to_owned(),
    };
    Some(Host { name, port: port.parse().ok().filter(|port| *port != 0)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Settings, cluster::Cluster, tests::dialling};
    use proptest::prelude::*;

    fn asked() -> Host {
        Host { name: "asked".to_owned(), port: 1 }
    }

    fn draw(answer: &[u8]) -> Option<Map> {
        let cluster = Cluster::new(Vec::new(), Arc::new(dialling()), Settings::default());
        Map::draw(&redis::parse_redis_value(answer).ok()?, &asked(), |host| cluster.shared.node(host))
    }

    #[test]
    fn a_map_with_a_nameless_node_and_a_gap() {
        let map = draw(
            b"*2\r\n*3\r\n:0\r\n:5460\r\n*2\r\n$0\r\n\r\n:7000\r\n*4\r\n:5461\r\n:16000\r\n*3\r\n$3\r\n::1\r\n:7001\r\n$2\r\nid\r\n*2\r\n$1\r\nr\r\n:1\r\n",
        );
        let map = map.unwrap_or_else(|| panic!("no map"));
        let host_of = |slot| map.node_of(slot).map(|node| node.host.to_string());
        assert_eq!(host_of(0).as_deref(), Some("asked:7000"));
        assert_eq!(host_of(5460).as_deref(), Some("asked:7000"));
        assert_eq!(host_of(16000).as_deref(), Some("[::1]:7001"));
        assert_eq!((host_of(16001), host_of(16383), host_of(u16::MAX)), (None, None, None));
        assert!(map.agrees(&map));
    }

    #[test]
    fn maps_that_are_none() {
        for answer in [
            &b"+OK\r\n"[..],
            b"*1\r\n+x\r\n",
            b"*1\r\n*2\r\n:0\r\n:1\r\n",
            b"*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n+h\r\n:1\r\n",
            b"*1\r\n*3\r\n:9\r\n:3\r\n*2\r\n+h\r\n:1\r\n",
            b"*1\r\n*3\r\n:-1\r\n:3\r\n*2\r\n+h\r\n:1\r\n",
            b"*1\r\n*3\r\n:0\r\n:3\r\n*2\r\n+h\r\n:70000\r\n",
            b"*1\r\n*3\r\n:0\r\n:3\r\n*0\r\n",
        ] {
            assert!(draw(answer).is_none(), "{}", answer.escape_ascii());
        }
    }

    #[test]
    fn signposts() {
        let to = |message| redirection(message, &asked()).map(|host| host.to_string());
        assert_eq!(to("3999 127.0.0.1:6381").as_deref(), Some("127.0.0.1:6381"));
        assert_eq!(to("3999 :6381").as_deref(), Some("asked:6381"));
        assert_eq!(to("3999 ?:6381").as_deref(), Some("asked:6381"));
        assert_eq!(to("3999 ::1:6381").as_deref(), Some("[::1]:6381"));
        for message in ["", "3999", "3999 h", "3999 h:", "3999 h:0", "3999 h:99999"] {
            assert_eq!(to(message), None, "{message}");
        }
    }

    proptest! {
        #[test]
        fn any_signpost_is_read_or_refused(message in "\\PC*") {
            let _ = redirection(&message, &asked());
        }
    }
}
