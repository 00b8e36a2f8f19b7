//! Who is on a connection, and what was agreed on.

use super::{parse::Limits, reply::Protocol};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A connection's state, apart from its bytes.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: i64,
    pub(crate) protocol: Protocol,
    pub(crate) name: Vec<u8>,
    /// Whether it may ask.
    pub(crate) is_known: bool,
    /// Whether the connection is to be closed once its answers are sent.
    pub(crate) is_over: bool,
}

/// What somebody may send who has said a word that opens, or needs none.
const KNOWN: Limits = Limits { request: 1024 * 1024, arguments: 1024, argument: 512 * 1024 };
/// What a stranger may: enough for HELLO.
const STRANGER: Limits = Limits { request: 32 * 1024, arguments: 10, argument: 16 * 1024 };

impl Session {
    pub(crate) fn new(is_known: bool) -> Self {
        static SESSIONS: AtomicU64 = AtomicU64::new(1);
        let id = SESSIONS.fetch_add(1, Relaxed) as i64;
        Self { id, protocol: Protocol::default(), name: Vec::new(), is_known, is_over: false }
    }

    pub(crate) const fn limits(&self) -> &'static Limits {
        if self.is_known { &KNOWN } else { &STRANGER }
    }
}
