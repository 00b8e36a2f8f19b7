//! Connections that asked once and rest: what each keeps in memory.

use super::servers::{self, Metrics, SMALL, Tollgate};
use crate::{
    effort::{Effort, short},
    measure::Pair,
    process::resident_bytes,
    report::Report,
};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
};

pub(super) fn name(effort: &Effort) -> String {
    format!("gateway, {} idle connections, nginx with limit_req", short(effort.idle_connections))
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
    let nginx = servers::peer(upstream.address());
    let ours = Tollgate::start(binary, nginx.directory(), upstream.address(), Metrics::Kept);
    let peer = bytes_each(nginx.address(), servers::worker_of(&nginx), count);
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
    let mut resting: Vec<TcpStream> = (0..50).map(|_| asked(address)).collect();
    let before = resident_bytes(&pid);
    resting.extend((0..count).map(|_| asked(address)));
    let after = resident_bytes(&pid);
    drop(resting);
    (after - before) / count as f64
}

/// A connection that has had an answer.
fn asked(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("a connection");
    write!(stream, "GET {SMALL} HTTP/1.1\r\nHost: bench\r\n\r\n").expect("a request goes out");
    let mut answer = [0; 4096];
    let read = stream.read(&mut answer).expect("an answer");
    assert!(answer[..read].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer[..read]));
    stream
}
