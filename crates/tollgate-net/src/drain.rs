//! The way from serving to gone, without dropping anybody on it.
//!
//! ```text
//! Serving --begin--> Leaving --pause--> Closing --nobody left, or the deadline--> Over
//! ```
//!
//! - **Leaving**: readiness says no, and everything is served as before. A load balancer needs a moment to notice; whoever
//!   closes first answers its requests with refused connections.
//! - **Closing**: listeners close; connections finish the request they are on and take no further one.
//! - **Over**: what is left is dropped.
//!
//! Whoever must not be cut off holds a [`Guard`]: every connection, and every listener as long as it accepts, so that none
//! can slip in after the count was seen at zero. The listener that answers health checks holds a
//! [late guard](Drain::late_guard): it serves until the end, and nothing waits for it.
//!
//! Asked a second time, it is in a hurry: it goes to Over at once. That is the second Ctrl-C.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, watch},
    time,
};

/// How far on the way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Everything is served.
    Serving,
    /// Everything is served still, and readiness says no.
    Leaving,
    /// Nobody is let in; what was begun is finished.
    Closing,
    /// What is left is dropped.
    Over,
}

/// How long the way out takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainTimes {
    /// From not ready to closed: what a load balancer needs to notice.
    pub pause: Duration,
    /// From closed to over: what requests in flight are given to finish.
    pub deadline: Duration,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Drained {
    /// Nobody was cut off.
    Empty,
    /// So many guards were still held at the deadline, or when it was asked a second time.
    Left(usize),
}

/// The way out. Clones are the same.
#[derive(Clone, Debug)]
pub struct Drain(Arc<Inner>);

/// Held by whoever must not be cut off.
#[derive(Debug)]
#[must_use = "nobody waits for a guard that is dropped"]
pub struct Guard {
    inner: Arc<Inner>,
    kind: GuardKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GuardKind {
    /// Counted, and closes with the listeners.
    Counted,
    /// Not counted, and closes at the end.
    Late,
}

#[derive(Debug)]
struct Inner {
    times: DrainTimes,
    phase: watch::Sender<Phase>,
    /// The phase, stored before it is sent: without a lock, for whoever looks at every request.
    current: AtomicU8,
    asked: watch::Sender<u32>,
    /// A plain count, since every connection touches it; who waits for nobody to be left is told by the last.
    guards: AtomicUsize,
    empty: Notify,
}

impl Default for DrainTimes {
    /// Five seconds to be noticed, twenty-five to finish: thirty are what Kubernetes waits before it kills.
    fn default() -> Self {
        Self { pause: Duration::from_secs(5), deadline: Duration::from_secs(25) }
    }
}

impl Drain {
    /// Serving, until [`begin`](Self::begin).
    #[must_use]
    pub fn new(times: DrainTimes) -> Self {
        Self(Arc::new(Inner {
            times,
            phase: watch::Sender::new(Phase::Serving),
            current: AtomicU8::new(Phase::Serving as u8),
            asked: watch::Sender::new(0),
            guards: AtomicUsize::new(0),
            empty: Notify::new(),
        }))
    }

    /// Asks to leave. Asked a second time, everything ends at once. Somebody has to [`run`](Self::run) it.
    pub fn begin(&self) {
        self.0.asked.send_modify(|times| *times = times.saturating_add(1));
    }

    /// Walks the way out once it was asked for, and returns at its end. To be awaited once, by the program.
    pub async fn run(&self) -> Drained {
        let inner = &*self.0;
        self.asked(1).await;
        inner.enter(Phase::Leaving);
        tokio::select! {
            () = time::sleep(inner.times.pause) => {}
            () = self.asked(2) => {}
        }
        inner.enter(Phase::Closing);
        tokio::select! {
            // Who is gone is gone, even where the deadline is zero.
            biased;
            () = self.empty() => {}
            () = self.asked(2) => {}
            () = time::sleep(inner.times.deadline) => {}
        }
        let left = self.guards();
        inner.enter(Phase::Over);
        match left {
            0 => Drained::Empty,
            left => Drained::Left(left),
        }
    }

    /// Waits until it was asked for, whether somebody runs it or not: for what comes before.
    pub async fn begun(&self) {
        self.asked(1).await;
    }

    /// How far it is.
    #[must_use]
    pub fn phase(&self) -> Phase {
        *self.0.phase.borrow()
    }

    /// Waits until it has come to `phase` or beyond.
    pub async fn reached(&self, phase: Phase) {
        reached(&self.0, phase).await;
    }

    /// One who must not be cut off.
    pub fn guard(&self) -> Guard {
        self.0.guards.fetch_add(1, SeqCst);
        Guard { inner: Arc::clone(&self.0), kind: GuardKind::Counted }
    }

    /// One who serves until the drain is over: the drain does not wait for this guard, which closes at the end.
    pub fn late_guard(&self) -> Guard {
        Guard { inner: Arc::clone(&self.0), kind: GuardKind::Late }
    }

    /// How many guards are held.
    #[must_use]
    pub fn guards(&self) -> usize {
        self.0.guards.load(SeqCst)
    }

    /// Waits until no guard is held while listeners are closed.
    pub async fn drained(&self) {
        self.reached(Phase::Closing).await;
        self.empty().await;
    }

    async fn empty(&self) {
        loop {
            let mut told = pin!(self.0.empty.notified());
            // Listens before it looks, so that the last one cannot leave in between unheard.
            told.as_mut().enable();
            if self.guards() == 0 {
                return;
            }
            told.await;
        }
    }

    async fn asked(&self, often: u32) {
        until(&self.0.asked, |times| *times >= often).await;
    }
}

impl Inner {
    fn enter(&self, phase: Phase) {
        self.current.store(phase as u8, SeqCst);
        self.phase.send_replace(phase);
    }
}

impl Guard {
    /// Waits until nothing new may be begun: finish the request at hand, and close.
    pub async fn closing(&self) {
        reached(&self.inner, self.closing_phase()).await;
    }

    /// Waits until nothing new may be begun, and then for so long.
    pub async fn closing_for(&self, lasting: Duration) {
        self.closing().await;
        time::sleep(lasting).await;
    }

    /// Waits until what is left is dropped.
    pub async fn over(&self) {
        reached(&self.inner, Phase::Over).await;
    }

    /// Whether readiness says no: from here on, whoever can go elsewhere should. Until it does, whoever has polled
    /// [`closing`](Self::closing) need not do so again: the first time it wakes anybody is when this becomes true.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.inner.current.load(SeqCst) >= Phase::Leaving as u8
    }

    /// Whether nothing new may be begun.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.inner.current.load(SeqCst) >= self.closing_phase() as u8
    }

    const fn closing_phase(&self) -> Phase {
        match self.kind {
            GuardKind::Counted => Phase::Closing,
            GuardKind::Late => Phase::Over,
        }
    }
}

impl Clone for Guard {
    fn clone(&self) -> Self {
        let drain = Drain(Arc::clone(&self.inner));
        match self.kind {
            GuardKind::Counted => drain.guard(),
            GuardKind::Late => drain.late_guard(),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.kind == GuardKind::Counted && self.inner.guards.fetch_sub(1, SeqCst) == 1 {
            self.inner.empty.notify_waiters();
        }
    }
}

async fn reached(inner: &Inner, phase: Phase) {
    until(&inner.phase, |now| *now >= phase).await;
}

async fn until<T>(what: &watch::Sender<T>, holds: impl FnMut(&T) -> bool) {
    // Fails only if the sender is gone, and it is borrowed here.
    let _ = what.subscribe().wait_for(holds).await;
}
