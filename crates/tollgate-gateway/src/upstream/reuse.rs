//! Whether connections to a server may carry more than one request.
//!
//! A server that sends bytes which no request asked for, such as a second response, is faulty. Bytes that arrive before the
//! look at a pooled connection are noticed and the connection is closed, but bytes that arrive after it are taken for the
//! response to the next request: HTTP/1.1 has no means to tell them apart. So the first such bytes end the reuse of
//! connections to that server for [`BAN`]: every request gets a connection of its own, which is slower and cannot mix up
//! responses.
//!
//! Cost: one relaxed load for each response.

use super::health::millis;
use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// How long no connection is reused after bytes that no request asked for.
const BAN: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Reuse {
    /// Until when connections are not reused, in milliseconds of this process; 0 if they are.
    banned_until: AtomicU64,
}

impl Reuse {
    pub(super) fn is_allowed(&self) -> bool {
        match self.banned_until.load(Relaxed) {
            0 => true,
            until => until <= millis(),
        }
    }

    /// The server sent bytes that no request asked for. Logged when reuse was allowed until now.
    pub(super) fn ban(&self, server: &str) {
        let now = millis();
        let until = now + BAN.as_millis() as u64;
        if self.banned_until.swap(until, Relaxed) <= now {
            tracing::warn!(
                server,
                seconds = BAN.as_secs(),
                "server sent bytes that no request asked for; its connections are not reused for a while"
            );
        }
    }
}
