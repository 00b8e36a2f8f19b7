//! What a connection is doing, as far as its timeouts and its end depend on it.
//!
//! Times are marked where something begins or ends, in milliseconds, and looked at by one timer a connection that fires
//! seldom ([`supervise`](super::supervise)). So a request sets no timer.

use super::{ConnectionGuard, ConnectionTimeouts, LAST_REQUEST};
use std::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    task::Poll,
    time::Duration,
};
use tokio::time::Instant;

/// By how much the requests that a client aborted on one connection may outnumber those it let end. A page that is left
/// aborts what it had in flight, which is at most this much; who does more is attacking.
const MOST_ABORTS: u32 = 128;

/// What a connection is doing: requests, an incomplete head, a write that is stuck, or nothing. A handler marks what it sees;
/// all marks are cheap enough for every request.
#[derive(Debug)]
pub struct ConnectionActivity {
    guard: ConnectionGuard,
    start: Instant,
    in_flight: AtomicU32,
    /// Something is under way that is no request.
    is_working: AtomicBool,
    idle_since: AtomicU64,
    /// Since when a head is incomplete; 0 if none is.
    head_since: AtomicU64,
    /// Since when the client takes nothing; 0 if it does.
    stuck_since: AtomicU64,
    /// By how much aborted requests outnumber the others.
    aborts: AtomicU32,
    /// Bytes moved since the last look.
    has_moved: AtomicBool,
    /// A time was marked that the timer may not know of.
    needs_look: AtomicBool,
    is_finishing: AtomicBool,
}

/// What a look at the times found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing; look again by then.
    LookAt(Instant),
    /// Something under way took too long, or the client aborts nearly all that it asks for.
    Cut,
    /// Nothing was under way for too long.
    Idle,
}

impl ConnectionActivity {
    /// Of a connection on which nothing has happened yet.
    #[must_use]
    pub fn new(guard: ConnectionGuard) -> Self {
        Self {
            guard,
            start: Instant::now(),
            in_flight: AtomicU32::new(0),
            is_working: AtomicBool::new(false),
            idle_since: AtomicU64::new(1),
            head_since: AtomicU64::new(0),
            stuck_since: AtomicU64::new(0),
            aborts: AtomicU32::new(0),
            has_moved: AtomicBool::new(false),
            needs_look: AtomicBool::new(false),
            is_finishing: AtomicBool::new(false),
        }
    }

    /// Tells when the drain closes.
    #[must_use]
    pub const fn guard(&self) -> &ConnectionGuard {
        &self.guard
    }

    /// Milliseconds, never 0.
    fn now(&self) -> u64 {
        self.start.elapsed().as_millis() as u64 + 1
    }

    /// A request begins: counted until it [ends](Self::end_request) or is [aborted](Self::abort_request).
    pub fn begin_request(&self) {
        self.in_flight.fetch_add(1, Relaxed);
        self.guard.slot.begin_request();
    }

    /// A request was answered.
    pub fn end_request(&self) {
        // Only this connection's task and what it runs come here: nothing is lost between the load and the store.
        let aborts = self.aborts.load(Relaxed);
        if aborts > 0 {
            self.aborts.store(aborts - 1, Relaxed);
        }
        self.leave_request();
    }

    /// The client aborted a request.
    pub fn abort_request(&self) {
        let aborts = self.aborts.load(Relaxed) + 1;
        self.aborts.store(aborts, Relaxed);
        if aborts > MOST_ABORTS {
            self.needs_look.store(true, Relaxed);
        }
        self.leave_request();
    }

    fn leave_request(&self) {
        self.idle_since.store(self.now(), Relaxed);
        self.in_flight.fetch_sub(1, Relaxed);
        self.guard.slot.end_request();
    }

    /// Something is under way until [`end_work`](Self::end_work), where requests are not counted one by one. Two stores for all
    /// of it.
    pub fn begin_work(&self) {
        self.is_working.store(true, Relaxed);
    }

    /// Nothing is under way any more.
    pub fn end_work(&self) {
        self.bytes_moved();
        self.is_working.store(false, Relaxed);
    }

    /// Whether a request or other work is under way.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.in_flight.load(Relaxed) > 0 || self.is_working.load(Relaxed)
    }

    /// Bytes of a head came and do not complete it.
    pub fn begin_head(&self) {
        if self.head_since.load(Relaxed) == 0 {
            self.head_since.store(self.now(), Relaxed);
            self.needs_look.store(true, Relaxed);
        }
    }

    /// A head is complete.
    pub fn end_head(&self) {
        if self.head_since.load(Relaxed) != 0 {
            self.head_since.store(0, Relaxed);
        }
    }

    /// What became of a write: whether the client takes bytes.
    pub fn mark_write<T>(&self, written: &Poll<T>) {
        let is_stuck = self.stuck_since.load(Relaxed) != 0;
        if written.is_ready() && is_stuck {
            self.stuck_since.store(0, Relaxed);
        } else if written.is_pending() && !is_stuck {
            self.stuck_since.store(self.now(), Relaxed);
            self.needs_look.store(true, Relaxed);
        }
    }

    /// Bytes moved, where a protocol has no requests that could be told apart: the connection is idle from the next look on.
    /// One store, and no clock; so it may take twice the idle timeout until such a connection ends.
    pub fn bytes_moved(&self) {
        self.has_moved.store(true, Relaxed);
    }

    /// No further request is waited for.
    pub fn finish(&self) {
        self.is_finishing.store(true, Relaxed);
    }

    /// Whether the connection ends as soon as nothing is under way.
    #[must_use]
    pub fn is_finishing(&self) -> bool {
        self.is_finishing.load(Relaxed)
    }

    /// Whether a response is the last one: the drain closes, or the connection is to finish.
    #[must_use]
    pub fn is_last_response(&self) -> bool {
        self.is_finishing() || self.guard.is_closing()
    }

    /// Whether a look is due before the timer says so.
    pub(super) fn takes_look(&self) -> bool {
        self.needs_look.load(Relaxed) && self.needs_look.swap(false, Relaxed)
    }

    /// Whether something took too long, and otherwise when to look again.
    pub(super) fn look(&self, timeouts: &ConnectionTimeouts) -> Verdict {
        let now = self.now();
        let mut next = timeouts.idle;
        let mut is_late = |since: u64, limit: Duration| {
            let spent = Duration::from_millis(now.saturating_sub(since));
            next = next.min(limit.saturating_sub(spent));
            spent >= limit
        };
        if self.aborts.load(Relaxed) > MOST_ABORTS {
            return Verdict::Cut;
        }
        let stuck = self.stuck_since.load(Relaxed);
        if stuck != 0 && is_late(stuck, timeouts.write) {
            return Verdict::Cut;
        }
        let head = self.head_since.load(Relaxed);
        if head != 0 && is_late(head, timeouts.head) {
            return Verdict::Cut;
        }
        if self.has_moved.swap(false, Relaxed) {
            self.idle_since.store(now, Relaxed);
        }
        if !self.is_busy() && head == 0 && stuck == 0 {
            let limit = match self.guard.is_closing() {
                true => LAST_REQUEST.min(timeouts.idle),
                false => timeouts.idle,
            };
            if is_late(self.idle_since.load(Relaxed), limit) {
                return Verdict::Idle;
            }
        }
        // Times are whole milliseconds: a little later is surely late enough.
        Verdict::LookAt(Instant::now() + next + Duration::from_millis(2))
    }
}
