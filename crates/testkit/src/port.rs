//! Ports that stay ours while the server on them is down.
//!
//! A port the system hands out for the asking is from the range it also uses for outgoing connections: one of those may
//! sit on it when a killed server wants it back. So ports are taken from below that range. And another test process may
//! be looking for a port at the same time; so each is claimed by binding the *UDP* port of the same number, which no
//! server here uses, and which is free again when the process ends, however it ends.

use std::{
    net::{Ipv4Addr, TcpListener, UdpSocket},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

const FIRST: u32 = 12_000;
/// Linux begins with outgoing connections at 32768.
const COUNT: u32 = 20_000;

/// A TCP port of 127.0.0.1 that no other test takes until this is dropped.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    _claim: UdpSocket,
}

impl Port {
    pub(crate) fn free() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Processes begin at different places, so that they seldom meet.
        let begin = process::id().wrapping_mul(7919);
        (0..COUNT)
            .map(|_| begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT + FIRST)
            .filter_map(|candidate| u16::try_from(candidate).ok())
            .find_map(Self::claim)
            .unwrap_or_else(|| panic!("no free port from {FIRST} on"))
    }

    fn claim(number: u16) -> Option<Self> {
        let claim = UdpSocket::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        // Somebody who knows nothing of our claims may listen there.
        TcpListener::bind((Ipv4Addr::LOCALHOST, number)).ok()?;
        Some(Self { number, _claim: claim })
    }

    pub(crate) const fn number(&self) -> u16 {
        self.number
    }
}
