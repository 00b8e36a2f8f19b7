//! A client's connection, as others see it: counted, watched for slowness, and told to go.
//!
//! Times are marked where something begins or ends, in milliseconds, and looked at by one timer a connection that fires
//! seldom. So a request sets no timer.

use super::settings::Limits;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{
            AtomicBool, AtomicU32, AtomicU64, AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    task::Waker,
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// How long a connection that rests is given for a last request when the server is to end.
const LAST_REQUEST_WITHIN: Duration = Duration::from_secs(1);

/// By how much the requests that a client aborted on one connection may outnumber those it let end. A page that is left
/// aborts what it had in flight, which is at most this much; who does more is attacking.
const MOST_ABORTS: u32 = 128;

/// What is open and under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Gauges {
    /// Connections that are open, tunnels among them.
    pub connections: usize,
    /// Requests whose answer has not ended.
    pub in_flight: usize,
}

/// All connections of a server.
pub(super) struct Everyone {
    workers: Box<[Crew]>,
    draining: AtomicBool,
    /// The acceptor waits for somebody to leave.
    full: AtomicBool,
    pub(super) left: Notify,
    start: Instant,
}

/// The connections of one worker.
#[derive(Default)]
struct Crew {
    connections: AtomicUsize,
    in_flight: AtomicUsize,
    present: Mutex<HashMap<u64, Weak<Presence>>>,
}

impl Everyone {
    pub(super) fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self {
            workers: (0..workers).map(|_| Crew::default()).collect(),
            draining: AtomicBool::new(false),
            full: AtomicBool::new(false),
            left: Notify::new(),
            start: Instant::now(),
        })
    }

    pub(super) fn gauges(&self) -> Gauges {
        let sum =
            |of: fn(&Crew) -> &AtomicUsize| self.workers.iter().map(|crew| of(crew).load(Acquire)).sum();
        Gauges { connections: sum(|crew| &crew.connections), in_flight: sum(|crew| &crew.in_flight) }
    }

    /// The worker with the fewest connections.
    pub(super) fn least_busy(&self) -> usize {
        let load = |i: &usize| self.workers[*i].connections.load(Relaxed);
        (0..self.workers.len()).min_by_key(load).unwrap_or(0)
    }

    pub(super) fn set_full(&self, full: bool) {
        self.full.store(full, Relaxed);
    }

    /// Somebody new, on `worker`.
    pub(super) fn enter(self: &Arc<Self>, worker: usize, id: u64) -> Arc<Presence> {
        let crew = &self.workers[worker];
        crew.connections.fetch_add(1, Relaxed);
        let presence = Arc::new(Presence {
            everyone: self.clone(),
            worker,
            id,
            in_flight: AtomicU32::new(0),
            idle_since: AtomicU64::new(self.now()),
            head_since: AtomicU64::new(0),
            stuck_since: AtomicU64::new(0),
            aborts: AtomicU32::new(0),
            look: AtomicBool::new(false),
            going: AtomicBool::new(false),
            finishing: AtomicBool::new(false),
            waker: Mutex::default(),
        });
        let mut present = crew.present.lock().unwrap_or_else(PoisonError::into_inner);
        present.insert(id, Arc::downgrade(&presence));
        if self.draining.load(Relaxed) {
            presence.going.store(true, Relaxed);
        }
        presence
    }

    /// Tells everybody to finish what is under way and go.
    pub(super) fn drain(&self) {
        self.draining.store(true, Relaxed);
        for crew in &self.workers {
            let present: Vec<_> = {
                let present = crew.present.lock().unwrap_or_else(PoisonError::into_inner);
                present.values().filter_map(Weak::upgrade).collect()
            };
            for presence in present {
                presence.going.store(true, Relaxed);
                presence.wake();
            }
        }
    }

    /// Milliseconds, never 0.
    fn now(&self) -> u64 {
        self.start.elapsed().as_millis() as u64 + 1
    }
}

pub(super) struct Presence {
    everyone: Arc<Everyone>,
    worker: usize,
    id: u64,
    in_flight: AtomicU32,
    idle_since: AtomicU64,
    /// Since when a head is incomplete; 0 if none is.
    head_since: AtomicU64,
    /// Since when the client takes nothing; 0 if it does.
    stuck_since: AtomicU64,
    /// By how much aborted requests outnumber the others.
    aborts: AtomicU32,
    /// A time was marked that the timer may not know of.
    look: AtomicBool,
    going: AtomicBool,
    /// No other request is to be waited for.
    finishing: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

/// What the watch says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Look again by then.
    LookAt(Instant),
    /// It was too slow with a request's head.
    SlowHead,
    /// It takes nothing of its answer.
    Stuck,
    /// It aborts nearly all that it asks for.
    Aborts,
    /// It rested for too long.
    Idle,
}

impl Presence {
    pub(super) fn request_began(&self) {
        self.in_flight.fetch_add(1, Relaxed);
        self.everyone.workers[self.worker].in_flight.fetch_add(1, Relaxed);
    }

    pub(super) fn request_ended(&self, is_aborted: bool) {
        // Only this connection's task and what it runs come here: nothing is lost between the load and the store.
        let aborts = self.aborts.load(Relaxed);
        if is_aborted {
            self.aborts.store(aborts + 1, Relaxed);
            if aborts + 1 > MOST_ABORTS {
                self.look.store(true, Relaxed);
            }
        } else if aborts > 0 {
            self.aborts.store(aborts - 1, Relaxed);
        }
        self.idle_since.store(self.everyone.now(), Relaxed);
        self.in_flight.fetch_sub(1, Relaxed);
        // Who sees it gone sees what it held given back.
        self.everyone.workers[self.worker].in_flight.fetch_sub(1, Release);
    }

    pub(super) fn is_busy(&self) -> bool {
        self.in_flight.load(Relaxed) > 0
    }

    /// Bytes of a head came and do not end it.
    pub(super) fn head_is_partial(&self) {
        if self.head_since.load(Relaxed) == 0 {
            self.head_since.store(self.everyone.now(), Relaxed);
            self.look.store(true, Relaxed);
        }
    }

    pub(super) fn head_is_whole(&self) {
        if self.head_since.load(Relaxed) != 0 {
            self.head_since.store(0, Relaxed);
        }
    }

    pub(super) fn took(&self, something: bool) {
        let stuck = self.stuck_since.load(Relaxed) != 0;
        if something && stuck {
            self.stuck_since.store(0, Relaxed);
        } else if !something && !stuck {
            self.stuck_since.store(self.everyone.now(), Relaxed);
            self.look.store(true, Relaxed);
        }
    }

    pub(super) fn finish(&self) {
        self.finishing.store(true, Relaxed);
    }

    pub(super) fn is_finishing(&self) -> bool {
        self.finishing.load(Relaxed)
    }

    pub(super) fn is_going(&self) -> bool {
        self.going.load(Relaxed)
    }

    pub(super) fn set_waker(&self, waker: &Waker) {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
    }

    fn wake(&self) {
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether a look is due before the timer says so.
    pub(super) fn is_look_due(&self) -> bool {
        self.look.load(Relaxed) && self.look.swap(false, Relaxed)
    }

    /// Whether something took too long, and otherwise when to look again.
    pub(super) fn look(&self, limits: &Limits) -> Verdict {
        let now = self.everyone.now();
        let mut next = limits.idle_timeout;
        let mut late = |since: u64, limit: Duration| {
            let spent = Duration::from_millis(now.saturating_sub(since));
            next = next.min(limit.saturating_sub(spent));
            spent >= limit
        };
        if self.aborts.load(Relaxed) > MOST_ABORTS {
            return Verdict::Aborts;
        }
        let stuck = self.stuck_since.load(Relaxed);
        if stuck != 0 && late(stuck, limits.write_timeout) {
            return Verdict::Stuck;
        }
        let head = self.head_since.load(Relaxed);
        if head != 0 && late(head, limits.head_timeout) {
            return Verdict::SlowHead;
        }
        if !self.is_busy() && head == 0 && stuck == 0 {
            let patience = if self.is_going() {
                LAST_REQUEST_WITHIN.min(limits.idle_timeout)
            } else {
                limits.idle_timeout
            };
            if late(self.idle_since.load(Relaxed), patience) {
                return Verdict::Idle;
            }
        }
        // Times are whole milliseconds: a little later is surely late enough.
        Verdict::LookAt(Instant::now() + next + Duration::from_millis(2))
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let crew = &self.everyone.workers[self.worker];
        crew.present.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
        crew.connections.fetch_sub(1, Relaxed);
        if self.everyone.full.load(Relaxed) || self.everyone.draining.load(Relaxed) {
            self.everyone.left.notify_waiters();
            self.everyone.left.notify_one();
        }
    }
}
