//! The wait queues of a limiter or a store: a simulation in the limiter's own time.
//!
//! **A waiter charges nothing until it is released.** The head of a [queue](queue) is released at the first instant at which the
//! limit has room for it, and charged at that instant. Then the next waiter is the head. A waiter that gives up leaves its
//! queue, and all waiters behind it move up.
//!
//! **Every call that touches a bucket with waiters serves the queues.** There is no background task and no thread. An agenda
//! holds the instant at which each head has to be decided again. A poll, an arrival, a drop, a check or a change first works
//! off the agenda up to now, so waiters are released as of their own instants and in order, however late timers are. A waiter
//! sleeps until its turn is expected; if another call releases it before that, it is woken. A future that is no longer polled is
//! released like the others and does not block the queue. The exception makes a crowd cheap: where turns come as they were
//! expected, so that every waiter's own timer brings it here, a poll stops at its own turn and an arrival only joins the end.
//!
//! **A set** is in one queue at a time: that of the charge which denies it, or the first at which an earlier waiter is queued. It
//! keeps the place of its arrival. So it does not block its other limits. After four moves a set stays in the queues it has
//! been in, so that it is released in the end.
//!
//! **Slots** that a waiter does not fetch within 100 ms of being released pass to the next waiter, if there is one. The first one
//! keeps its place and is queued again when it is polled.
//!
//! **Locks.** All queues of a limiter or store share one lock, and buckets are charged while it is held. Wakers are called and
//! dropped after it is released, since either may call back.

mod agenda;
mod arriving;
mod fifo;
mod ids;
mod polling;
mod queue;
mod releasing;
mod waiter;
mod waiters;

use super::{
    forecast::{SetForecast, View},
    gate::{Booked, Gate},
    order::{Bucket, Order, WaitSpan},
    refused::Ending,
};
use crate::{
    decision::Status,
    sync::{AtomicU64, Mutex, Ordering, hold},
    time::Time,
};
use agenda::Agenda;
use ids::IdHashing;
use queue::WaitQueue;
use std::{
    collections::{HashMap, VecDeque},
    task::Waker,
    time::Duration,
};
use waiter::Waiter;
pub(crate) use waiters::Ticket;
use waiters::{ShrinkOutcome, Waiters};

/// Names a bucket's queue.
pub(crate) type QueueId = [u64; 2];

/// All queues of a limiter or a store.
#[derive(Default)]
pub struct WaitQueues {
    inner: Mutex<Inner>,
    /// Waiters that are not released, or whose slots are not fetched. While there are none, which is nearly always, nobody
    /// looks further.
    count: AtomicU64,
}

type Queues = HashMap<QueueId, WaitQueue, IdHashing>;

#[derive(Default)]
struct Inner {
    waiters: Waiters,
    queues: Queues,
    /// When each head is looked at again.
    agenda: Agenda,
    /// Slots that were handed over and are not fetched yet.
    unclaimed: VecDeque<Claim>,
    effects: DeferredWakes,
}

/// Slots of a bucket that a waiter is to fetch until then.
#[derive(Clone, Copy)]
struct Claim {
    until: Time,
    ticket: Ticket,
    queue: QueueId,
}

/// What has become of a waiter.
pub(in crate::wait) enum WaitOutcome {
    /// It goes, with one charge that holds no slots, after a wait of so long.
    Passed(Status, Duration),
    /// It goes, with its charges.
    Released(Order, WaitSpan, Box<Booked>),
    Ended(Box<Ending>),
    /// It waits, and is to be polled again then or when it is woken.
    Waits(Ticket, Option<Time>),
}

/// Wakers to be called, and whatever has a destructor of somebody else's, once no lock is held: either may come back here.
#[derive(Default)]
struct DeferredWakes {
    wake: Wakers,
    gone: Wakers,
}

impl DeferredWakes {
    fn take(&mut self) -> Option<Self> {
        let is_any = self.wake.first.is_some() || self.gone.first.is_some();
        is_any.then(|| std::mem::take(self))
    }

    fn run(self) {
        self.wake.first.into_iter().chain(self.wake.more).for_each(Waker::wake);
    }
}

/// Wakers, of which there is nearly always one at most.
#[derive(Default)]
struct Wakers {
    first: Option<Waker>,
    more: Vec<Waker>,
}

impl Wakers {
    fn push(&mut self, waker: Waker) {
        match self.first {
            None => self.first = Some(waker),
            Some(_) => self.more.push(waker),
        }
    }
}

impl Extend<Waker> for Wakers {
    fn extend<I: IntoIterator<Item = Waker>>(&mut self, wakers: I) {
        wakers.into_iter().for_each(|waker| self.push(waker));
    }
}

/// How late a waiter's own timer may be on a busy runtime. A waiter whose timer is later is woken when it is released.
const TIMER_GRAIN: Duration = Duration::from_millis(10);

/// How long slots may be left with a waiter that does not fetch them; and how long after a head that was woken to look at
/// the time the next one does.
const GRACE: Duration = Duration::from_millis(100);

impl WaitQueues {
    /// Whether anybody waits.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Releases everybody whose turn has come.
    pub(crate) fn serve(&self, gate: &dyn Gate, now: Time) {
        if self.any() {
            self.with(gate, |at| at.serve(now));
        }
    }

    /// Something has happened at a bucket: its queue is looked at again.
    pub(crate) fn touch(&self, gate: &dyn Gate, queue: QueueId, now: Time, effect: BucketChange) {
        if self.any() {
            self.with(gate, |at| {
                at.touch(queue, now, effect);
                at.serve(now);
            });
        }
    }

    /// [`touch`](Self::touch) at all of these buckets.
    pub(crate) fn touch_all(&self, gate: &dyn Gate, now: Time, is_of: impl Fn(&Bucket) -> bool) {
        if self.any() {
            self.with(gate, |at| {
                let Inner { queues, waiters, .. } = &*at.inner;
                let bucket = |id, queue: &WaitQueue| waiters.get(&queue.head()?)?.bucket_of(id);
                let is_touched =
                    |(id, queue): &(&QueueId, &WaitQueue)| bucket(**id, queue).is_some_and(&is_of);
                let queues: Vec<QueueId> = queues.iter().filter(is_touched).map(|(id, _)| *id).collect();
                queues.into_iter().for_each(|queue| at.touch(queue, now, BucketChange::Unknown));
                at.serve(now);
            });
        }
    }

    /// Decides an order that may wait: at once, or in a queue.
    pub(super) fn arrive(
        &self,
        gate: &dyn Gate,
        order: Order,
        span: WaitSpan,
        now: Time,
        waker: &Waker,
    ) -> WaitOutcome {
        let waker = waker.clone();
        self.with(gate, |at| {
            at.clock = Some(now);
            at.arrive(order, span, now, waker)
        })
    }

    /// What has become of a waiter. `waker` is called when something does.
    pub(super) fn poll(&self, gate: &dyn Gate, ticket: Ticket, waker: &Waker) -> WaitOutcome {
        // Read before the lock is taken, so that it is held for less long.
        let (now, mut spare) = (gate.now(), None);
        loop {
            let poll = |at: &mut LockedQueues<'_>| {
                at.clock = Some(now);
                at.poll(ticket, now, waker, &mut spare)
            };
            if let Some(outcome) = self.with(gate, poll) {
                return outcome;
            }
            // Rarely needed, and not made under the lock: that is another's code.
            spare = Some(waker.clone());
        }
    }

    /// A waiter goes away.
    pub(super) fn leave(&self, gate: &dyn Gate, ticket: Ticket) {
        self.with(gate, |at| at.leave(ticket));
    }

    /// The first of these, by its number, at which somebody waits.
    pub(crate) fn held_up_at(&self, mut queues: impl Iterator<Item = (usize, QueueId)>) -> Option<usize> {
        if !self.any() {
            return None;
        }
        let inner = hold(&self.inner);
        queues
            .find(|(_, queue)| inner.queues.get(queue).is_some_and(|it| !it.is_empty()))
            .map(|(number, _)| number)
    }

    /// In how many nanoseconds a charge that comes now would pass, behind everybody who waits there, where it may wait up to so
    /// long itself: `None` where nobody waits there, `Some(None)` where nobody knows.
    pub(crate) fn passes_in(
        &self,
        queue: QueueId,
        units: u32,
        up_to: u64,
        now: Time,
        look: impl FnOnce() -> Option<View>,
    ) -> Option<Option<u64>> {
        if !self.any() {
            return None;
        }
        let mut inner = hold(&self.inner);
        let queue = inner.queues.get_mut(&queue).filter(|queue| !queue.is_empty())?;
        let goes = queue.expected_last(units, now, look);
        Some(goes.map(|goes| goes.pass_at(up_to).nanos_since(now)))
    }

    fn with<R>(&self, gate: &dyn Gate, act: impl FnOnce(&mut LockedQueues<'_>) -> R) -> R {
        let mut inner = hold(&self.inner);
        let result = act(&mut LockedQueues {
            inner: &mut inner,
            count: &self.count,
            gate,
            now: Time::ZERO,
            clock: None,
        });
        let effects = inner.effects.take();
        if inner.waiters.shrink() == ShrinkOutcome::Yes {
            inner.queues.shrink_to_fit();
        }
        drop(inner);
        effects.into_iter().for_each(DeferredWakes::run);
        result
    }
}

/// What happened at a bucket, for those who wait there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BucketChange {
    /// Their turns come earlier, if anything.
    MoreRoom,
    /// Whoever can no longer be in time is told.
    Unknown,
}

/// The queues, under their lock.
struct LockedQueues<'a> {
    inner: &'a mut Inner,
    count: &'a AtomicU64,
    gate: &'a dyn Gate,
    /// When they are served.
    now: Time,
    /// The clock's time, where it was looked at. That of a check may be ahead of it.
    clock: Option<Time>,
}

impl LockedQueues<'_> {
    /// Works off the agenda.
    fn serve(&mut self, now: Time) {
        self.now = self.now.max(now);
        while self.serve_next(now) {}
    }

    /// Works off the agenda until a waiter is released, and further where others do not come here by their own timers.
    fn serve_own(&mut self, ticket: Ticket, now: Time) {
        self.now = now;
        let waits = |at: &Self| at.inner.waiters.get(&ticket).is_some_and(Waiter::is_waiting);
        while (waits(self) || !self.is_as_expected(now)) && self.serve_next(now) {}
    }

    /// Whether all that is due is the release of one head, whose own timer brings it here.
    fn is_as_expected(&self, now: Time) -> bool {
        let Inner { agenda, queues, waiters, unclaimed, .. } = &*self.inner;
        let is_expected =
            |id: &QueueId| queues.get(id).is_some_and(|it| it.expected_release(waiters).is_some());
        unclaimed.is_empty() && agenda.due(now).is_none_or(|((_, id), is_only)| is_only && is_expected(&id))
    }

    /// Works off what is due first. Whether there was anything.
    fn serve_next(&mut self, now: Time) -> bool {
        let next = self.inner.agenda.due(now).map(|(next, _)| next);
        let claim = self.inner.unclaimed.front().map(|claim| claim.until).filter(|until| *until <= now);
        match (next, claim) {
            (Some((at, id)), until) if until.is_none_or(|until| at <= until) => {
                self.inner.agenda.remove((at, id));
                self.decide_head(id, at);
            }
            (_, Some(until)) => self.reclaim(until),
            (_, None) => return false,
        }
        true
    }

    fn forget_if_empty(&mut self, id: QueueId) {
        if let Some(queue) = self.inner.queues.get(&id).filter(|queue| queue.is_empty()) {
            if let Some(at) = queue.looks_at {
                self.inner.agenda.remove((at, id));
            }
            self.inner.queues.remove(&id);
        }
    }

    /// From now on checks and changes of these buckets come by here.
    fn register(count: &AtomicU64, gate: &dyn Gate, order: &Order) {
        // Counted under the lock. Others only have to see whether there is anybody.
        match count.load(Ordering::Relaxed) {
            0 => {
                count.fetch_add(1, Ordering::AcqRel);
            }
            before => count.store(before + 1, Ordering::Release),
        }
        order.tolls().iter().for_each(|toll| gate.add_waiter(&toll.bucket));
    }

    fn unregister(count: &AtomicU64, gate: &dyn Gate, order: &Order) {
        count.store(count.load(Ordering::Relaxed).saturating_sub(1), Ordering::Release);
        order.tolls().iter().for_each(|toll| gate.remove_waiter(&toll.bucket));
    }
}
