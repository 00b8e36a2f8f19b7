//! Connections that asked once and rest: what each keeps in memory.

use super::{
    client::Client,
    peers::Peer,
    servers::{self, Metrics, Tollgate},
};
use crate::{
    effort::{Effort, short},
    measure::Pair,
    process::resident_bytes,
    report::Report,
};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::{net::SocketAddr, path::Path};

const PEER: Peer = Peer::Nginx;

pub(super) fn name(effort: &Effort) -> String {
    format!("gateway, {} idle connections, {}", short(effort.idle_connections), PEER.name())
}

pub(super) fn run(report: &mut Report, effort: &Effort, binary: &Path) {
    let count = effort.idle_connections;
    let name = name(effort);
    if !report.wants(&name) {
        return;
    }
    if let Err(why) = raise_limit(count as u64 + 200) {
        return report.left_out(&name, &why);
    }
    let upstream = servers::upstream();
    let peer = PEER.start(upstream.address());
    let ours = Tollgate::start(binary, &upstream, Metrics::Kept);
    let peer = bytes_each(peer.address(), peer.pid(), count);
    let ours = bytes_each(ours.address, ours.pid(), count);
    let pair = Pair { ours, peer, ratio: ours / peer };
    report.compare(&name, "bytes", pair, None);
}

/// As many open files as are needed, for this process and those it starts.
fn raise_limit(files: u64) -> Result<(), String> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= files) {
        return Ok(());
    }
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)
        .map_err(|error| format!("`ulimit -n` could not be raised: {error}"))?;
    match limit.maximum {
        Some(most) if most < files => Err(format!("`ulimit -n` allows {most}, and {files} are needed")),
        _ => Ok(()),
    }
}

fn bytes_each(address: SocketAddr, pid: u32, count: usize) -> f64 {
    let pid = pid.to_string();
    // A few first: code, pools and tables come in then.
    let mut resting: Vec<Client> = (0..50).map(|_| used(address)).collect();
    let before = resident_bytes(&pid);
    resting.extend((0..count).map(|_| used(address)));
    let after = resident_bytes(&pid);
    drop(resting);
    (after - before) / count as f64
}

/// A connection that has had a response.
fn used(address: SocketAddr) -> Client {
    let mut client = Client::connect(address);
    client.get_small();
    client
}
