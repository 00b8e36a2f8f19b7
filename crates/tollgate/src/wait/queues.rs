//! The queues of a limiter or a store, and the hand-over of turns: a simulation in the limiter's own time.
//!
//! **A waiter has charged nothing until it is released.** The head of a [queue](super::queue) is released at the first instant
//! at which the limit has room for it, and charged at that instant; then the next one is the head. Turns belong to the queue:
//! whoever gives up leaves it, and everybody behind moves up.
//!
//! **Whoever comes by serves.** There is no task and no thread. An agenda holds the instant at which each head is looked at
//! again. Everything that touches a bucket with waiters (a poll, an arrival, a drop, a check, a change) first works off the
//! agenda up to now, so that what was due is released as of its own instant, in order, however late the timers are. A waiter
//! sleeps until its turn is expected, and then finds itself released; one that is released by somebody else is woken. A
//! future that is kept and no longer polled holds up nobody: it is released like the others.
//!
//! **Sets** stand in one queue at a time: that of the charge which refuses them, or at which somebody waits who came before,
//! at the place of their arrival. So they hold up nobody at their other limits. A set that was sent to and fro four times
//! stays in the queues it has been in, so that it does get its turn.
//!
//! **Slots** that were handed to a waiter which does not fetch them within a tenth of a second go to the next one, where
//! there is one; the waiter keeps its place, should it come back.
//!
//! All queues of a limiter or store have one lock. Buckets are charged while it is held; wakers are called and dropped when
//! it no longer is.

use super::{
    forecast::{Goes, Rehearsal, View},
    gate::{self, Asked, Booked, Denied, Gate, Timing},
    order::{Bucket, Order},
    queue::{Ticket, WaitQueue},
    refused::{Ending, Reason, Refused},
};
use crate::{
    decision::{DecidedBy, Status, Verdict},
    few::Few,
    step::{taken::Unused, turns::Turns},
    sync::{AtomicU64, Mutex, Ordering, hold},
    time::{Time, hint, nanos},
};
use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    task::Waker,
    time::Duration,
};

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

#[derive(Default)]
struct Inner {
    arrivals: Ticket,
    waiters: HashMap<Ticket, Waiter>,
    queues: HashMap<QueueId, WaitQueue>,
    /// When each head is looked at again.
    agenda: BTreeSet<(Time, QueueId)>,
    /// Slots that were handed over, and until when they are to be fetched.
    unclaimed: VecDeque<(Time, Ticket)>,
    effects: Effects,
}

struct Waiter {
    order: Order,
    began: Time,
    up_to: Option<Duration>,
    /// In which queues it stands, by the number of the toll.
    stands_at: Few<usize>,
    /// How often it went from one queue to another.
    moves: u32,
    /// When its turn was expected on arrival.
    expected: Option<Time>,
    alarm: Alarm,
    waker: Option<Waker>,
    fate: Fate,
}

/// Whether a waiter looks at its queue by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alarm {
    /// It sleeps until then, or until it is woken.
    Set(Option<Time>),
    /// It was woken to look at the time, and has not done so yet.
    Told,
}

enum Fate {
    Waiting,
    Released(Box<Booked>),
    Ended(Box<Ending>),
    /// It did not fetch its slots in time, and has its place but no turn.
    Withdrawn,
}

/// What became of somebody who came.
pub(super) enum Arrival {
    /// It goes at once.
    Granted(Order, Booked),
    Ended(Ending),
    /// It waits, and is to be polled again then or when it is woken.
    Waits(Ticket, Option<Time>),
}

/// What a waiter finds.
pub(super) enum Found {
    Released(Order, Booked),
    Ended(Ending),
    Waits(Option<Time>),
}

/// Wakers to be called, and whatever has a destructor of somebody else's, once no lock is held: either may come back here.
#[derive(Default)]
struct Effects {
    wake: Vec<Waker>,
    gone: Vec<Waker>,
}

impl Effects {
    fn run(self) {
        self.wake.into_iter().for_each(Waker::wake);
    }
}

/// How long slots may be left with a waiter that does not fetch them; and how long after a head that was woken to look at
/// the time the next one does.
const GRACE: Duration = Duration::from_millis(100);

/// After so many moves a set no longer gives up its place in one queue when it goes to another: or else limits that have
/// room at different times could send it to and fro for ever.
const MOVES: u32 = 4;

impl WaitQueues {
    /// Whether anybody waits.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Releases everybody whose turn has come.
    pub(crate) fn serve(&self, gate: &dyn Gate, now: Time) {
        if self.any() {
            self.with(|at| at.serve(gate, now));
        }
    }

    /// Something has happened at a bucket: its queue is looked at again.
    pub(crate) fn touch(&self, gate: &dyn Gate, queue: QueueId, now: Time, effect: Effect) {
        if self.any() {
            self.with(|at| {
                at.touch(gate, queue, now, effect);
                at.serve(gate, now);
            });
        }
    }

    /// [`touch`](Self::touch) at every bucket.
    pub(crate) fn touch_all(&self, gate: &dyn Gate, now: Time) {
        if self.any() {
            self.with(|at| {
                let queues: Vec<QueueId> = at.inner.queues.keys().copied().collect();
                queues.into_iter().for_each(|queue| at.touch(gate, queue, now, Effect::Unknown));
                at.serve(gate, now);
            });
        }
    }

    /// Decides an order that may wait from `began` on: at once, or in a queue.
    pub(super) fn arrive(
        &self,
        gate: &dyn Gate,
        order: Order,
        began: Time,
        up_to: Option<Duration>,
        waker: Waker,
    ) -> Arrival {
        self.with(|at| at.arrive(gate, order, began, up_to, waker))
    }

    /// What has become of a waiter. `waker` is called when something does.
    pub(super) fn poll(&self, gate: &dyn Gate, ticket: Ticket, waker: Waker) -> Found {
        self.with(|at| at.poll(gate, ticket, waker))
    }

    /// A waiter goes away.
    pub(super) fn leave(&self, gate: &dyn Gate, ticket: Ticket) {
        self.with(|at| at.leave(gate, ticket));
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

    /// When a charge that comes now could go, behind everybody who waits there: `None` where nobody does, `Some(None)` where
    /// nobody knows.
    pub(crate) fn goes_at(
        &self,
        queue: QueueId,
        units: u32,
        now: Time,
        look: impl FnOnce() -> Option<View>,
    ) -> Option<Option<Goes>> {
        if !self.any() {
            return None;
        }
        let mut inner = hold(&self.inner);
        let queue = inner.queues.get_mut(&queue).filter(|queue| !queue.is_empty())?;
        Some(queue.expected_last(units, now, look))
    }

    fn with<R>(&self, act: impl FnOnce(&mut Serving<'_>) -> R) -> R {
        let mut inner = hold(&self.inner);
        let result = act(&mut Serving { inner: &mut inner, count: &self.count, now: Time::ZERO });
        let effects = std::mem::take(&mut inner.effects);
        drop(inner);
        effects.run();
        result
    }
}

impl Waiter {
    /// The latest time at which its turn may come at a toll.
    fn deadline(&self, toll: usize) -> Option<Time> {
        let own = self.order.tolls.get(toll).and_then(|toll| toll.up_to).map(Duration::from_nanos);
        own.into_iter().chain(self.up_to).min().map(|up_to| self.began + up_to)
    }

    /// When it stops waiting where it stands, and for which toll.
    fn ends(&self) -> Option<(Time, usize)> {
        self.stands_at.iter().filter_map(|toll| Some((self.deadline(*toll)?, *toll))).min()
    }

    /// The bucket of a queue in which it stands.
    fn bucket_of(&self, id: QueueId) -> Option<&Bucket> {
        self.order.tolls.iter().map(|toll| &toll.bucket).find(|bucket| bucket.queue() == id)
    }

    /// Wakes it, to look at the time.
    fn tell(&mut self, effects: &mut Effects) {
        self.alarm = Alarm::Told;
        effects.wake.extend(self.waker.take());
    }

    /// That it is refused at a toll, whose turn would come then; or where nobody could say, at that time.
    fn refused(&self, toll: usize, start: Result<Time, Time>, statuses: Few<Status>) -> Ending {
        let missing = |start: Time| self.deadline(toll).map(|by| hint(nanos(start - by)));
        let reason = match start {
            // A wait as long as this one is long enough when it begins later by what is missing.
            Ok(start) => Reason::Late { retry_after: missing(start).unwrap_or_default() },
            Err(at) => Reason::TimedOut { waited: at - self.began },
        };
        Ending::Refused(Refused::new(reason, &self.order, toll, statuses))
    }
}

/// What happened at a bucket, for those who wait there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Their turns come earlier, if anything.
    MoreRoom,
    /// Whoever can no longer be in time is told.
    Unknown,
}

/// The queues, under their lock.
struct Serving<'a> {
    inner: &'a mut Inner,
    count: &'a AtomicU64,
    /// When they are served.
    now: Time,
}

impl Serving<'_> {
    /// Works off the agenda.
    fn serve(&mut self, gate: &dyn Gate, now: Time) {
        self.now = now;
        loop {
            let next = self.inner.agenda.first().copied().filter(|(at, _)| *at <= now);
            let claim = self.inner.unclaimed.front().copied().filter(|(until, _)| *until <= now);
            match (next, claim) {
                (Some((at, _)), Some((until, ticket))) if until < at => self.reclaim(gate, ticket, until),
                (Some((at, id)), _) => {
                    self.inner.agenda.pop_first();
                    if let Some(queue) = self.inner.queues.get_mut(&id) {
                        queue.looks_at = None;
                    }
                    self.look_at_head(gate, id, at);
                }
                (None, Some((until, ticket))) => self.reclaim(gate, ticket, until),
                (None, None) => return,
            }
        }
    }

    fn arrive(
        &mut self,
        gate: &dyn Gate,
        order: Order,
        began: Time,
        up_to: Option<Duration>,
        waker: Waker,
    ) -> Arrival {
        let now = gate.now().max(began);
        self.serve(gate, now);
        self.inner.arrivals += 1;
        let ticket = self.inner.arrivals;
        let waiter = Waiter {
            order,
            began,
            up_to,
            stands_at: Few::Many(Vec::new()),
            moves: 0,
            expected: None,
            alarm: Alarm::Set(None),
            waker: None,
            fate: Fate::Waiting,
        };
        self.register(gate, &waiter.order);
        let mut next = None;
        let outcome = match self.held_up(ticket, &waiter) {
            Some(toll) => match Self::never(gate, &waiter.order) {
                Some(refused) => Err(Ending::Refused(refused)),
                None => self
                    .judge_set(gate, ticket, &waiter, now)
                    .and_then(|()| self.admit(gate, ticket, &waiter, toll, now)),
            },
            None => match gate.ask(&waiter.order, Timing::release(now, began, up_to)) {
                Asked::Granted(booked) => {
                    self.unregister(gate, &waiter.order);
                    self.inner.effects.gone.push(waker);
                    return Arrival::Granted(waiter.order, booked);
                }
                Asked::Denied(denied) => {
                    let by = denied.by;
                    self.judge(gate, &waiter, denied, now).and_then(|at| {
                        next = at;
                        self.judge_set(gate, ticket, &waiter, now)?;
                        self.admit(gate, ticket, &waiter, by, now)
                    })
                }
                Asked::Unknown(error) => Err(Ending::Store(error)),
            },
        };
        match outcome {
            Ok((toll, expected)) => {
                let id = waiter.order.queue(toll);
                self.inner.waiters.insert(ticket, Waiter { expected, ..waiter });
                self.stand(gate, ticket, toll, now);
                if next.is_some() {
                    // It has just been asked for.
                    self.plan(gate, id, now, next);
                }
                self.serve(gate, now);
                match self.find(gate, ticket, now, waker) {
                    Found::Released(order, booked) => Arrival::Granted(order, booked),
                    Found::Ended(ending) => Arrival::Ended(ending),
                    Found::Waits(until) => Arrival::Waits(ticket, until),
                }
            }
            Err(ending) => {
                self.unregister(gate, &waiter.order);
                self.inner.effects.gone.push(waker);
                Arrival::Ended(ending)
            }
        }
    }

    fn poll(&mut self, gate: &dyn Gate, ticket: Ticket, waker: Waker) -> Found {
        let now = gate.now();
        if let Some(waiter) = self.inner.waiters.get_mut(&ticket) {
            // It is awake: nobody has to wake it.
            self.inner.effects.gone.extend(waiter.waker.take());
        }
        self.serve(gate, now);
        if let Some(waiter) = self.inner.waiters.get_mut(&ticket)
            && matches!(waiter.fate, Fate::Withdrawn)
        {
            waiter.fate = Fate::Waiting;
            self.come_back(gate, ticket, now);
            self.serve(gate, now);
        }
        self.find(gate, ticket, now, waker)
    }

    /// What has become of a waiter, by now.
    fn find(&mut self, gate: &dyn Gate, ticket: Ticket, now: Time, waker: Waker) -> Found {
        let Some(waiter) = self.inner.waiters.get(&ticket) else { return Found::Waits(None) };
        if matches!(waiter.fate, Fate::Waiting) {
            if let Some((_, toll)) = waiter.ends().filter(|(at, _)| *at <= now) {
                // Its time is up, and nobody could say that it would be.
                let ending = waiter.refused(toll, Err(now), gate.peek(&waiter.order));
                self.end(gate, ticket, ending, now);
                self.serve(gate, now);
            } else {
                let alarm = self.sleeps_until(gate, ticket, now);
                if let Some(waiter) = self.inner.waiters.get_mut(&ticket) {
                    waiter.alarm = Alarm::Set(alarm);
                    waiter.waker = Some(waker);
                }
                return Found::Waits(alarm);
            }
        }
        self.inner.effects.gone.push(waker);
        let Some(waiter) = self.inner.waiters.remove(&ticket) else { return Found::Waits(None) };
        match waiter.fate {
            Fate::Released(booked) => {
                if booked.permit.is_some() {
                    self.claimed(gate, &waiter.order, ticket);
                }
                Found::Released(waiter.order, *booked)
            }
            Fate::Ended(ending) => Found::Ended(*ending),
            Fate::Waiting | Fate::Withdrawn => Found::Waits(None),
        }
    }

    fn leave(&mut self, gate: &dyn Gate, ticket: Ticket) {
        let now = gate.now();
        self.serve(gate, now);
        let Some(waiter) = self.inner.waiters.get(&ticket) else { return };
        let was_waiting = matches!(waiter.fate, Fate::Waiting);
        if was_waiting {
            self.step_out(ticket, now, Leaving::Unserved);
        }
        let Some(waiter) = self.inner.waiters.remove(&ticket) else { return };
        if was_waiting || matches!(waiter.fate, Fate::Withdrawn) {
            self.unregister(gate, &waiter.order);
        }
        self.inner.effects.gone.extend(waiter.waker);
        if let Fate::Released(booked) = &waiter.fate
            && booked.permit.is_some()
        {
            // What was charged is spent. Slots are held, not spent.
            self.claimed(gate, &waiter.order, ticket);
            gate::leave_slots(gate, &waiter.order.tolls, booked);
            for bucket in gate::held(gate, &waiter.order.tolls, booked) {
                self.touch(gate, bucket.queue(), now, Effect::MoreRoom);
            }
        }
        self.serve(gate, now);
    }

    fn touch(&mut self, gate: &dyn Gate, id: QueueId, now: Time, effect: Effect) {
        let Some(queue) = self.inner.queues.get_mut(&id) else { return };
        queue.forget_forecast();
        self.look_again(id, now);
        if effect == Effect::MoreRoom {
            return;
        }
        self.serve(gate, now);
        for (ticket, toll, start) in self.hopeless(gate, id, now) {
            let Some(waiter) = self.inner.waiters.get(&ticket) else { continue };
            let statuses = gate.peek(&waiter.order);
            let ending = match start {
                Some(start) => waiter.refused(toll, Ok(start), statuses),
                None => Ending::Refused(Refused::never(&waiter.order, Denied { statuses, by: toll })),
            };
            self.end(gate, ticket, ending, now);
        }
    }

    /// Those of a queue who wait in vain, at which of their tolls, and when they would go.
    fn hopeless(&self, gate: &dyn Gate, id: QueueId, now: Time) -> Vec<(Ticket, usize, Option<Time>)> {
        let Inner { queues, waiters, .. } = &*self.inner;
        let Some(queue) = queues.get(&id) else { return Vec::new() };
        let here = |ticket| {
            let waiter: &Waiter = waiters.get(&ticket)?;
            let toll = waiter.stands_at.iter().find(|toll| waiter.order.queue(**toll) == id)?;
            Some((waiter, *toll))
        };
        let Some((waiter, toll)) = queue.head().and_then(here) else { return Vec::new() };
        let bucket = &waiter.order.tolls[toll].bucket;
        if gate.turns(bucket).is_slots() {
            return Vec::new();
        }
        let deadline = |ticket| here(ticket).and_then(|(waiter, toll)| waiter.deadline(toll));
        let is_late = |ticket, start| deadline(ticket).is_some_and(|by| start > by);
        let hopeless = queue.hopeless(now, || gate.look(bucket), is_late);
        hopeless.into_iter().filter_map(|(ticket, start)| Some((ticket, here(ticket)?.1, start))).collect()
    }

    /// That an order asks for more than a limit ever gives, where it does. No limit gives less than one unit.
    fn never(gate: &dyn Gate, order: &Order) -> Option<Refused> {
        if order.tolls.iter().all(|toll| toll.cost <= 1) {
            return None;
        }
        let statuses = gate.peek(order);
        let by = statuses.iter().position(|status| status.in_nanos() == Verdict::Never)?;
        Some(Refused::never(order, Denied { statuses, by }))
    }

    /// Whether a newcomer is let in at a toll's queue; comes with the toll, and when its turn is expected.
    fn admit(
        &mut self,
        gate: &dyn Gate,
        ticket: Ticket,
        waiter: &Waiter,
        toll: usize,
        now: Time,
    ) -> Result<(usize, Option<Time>), Ending> {
        let (bucket, units) = (&waiter.order.tolls[toll].bucket, waiter.order.tolls[toll].units());
        let queue = self.inner.queues.entry(bucket.queue()).or_default();
        let look = || gate.look(bucket);
        let is_set = waiter.order.tolls.len() > 1;
        let admitted = match (gate.turns(bucket), waiter.deadline(toll).filter(|_| !is_set)) {
            (Turns::Slots { queue: most, .. }, _) if queue.len() >= most as usize => {
                let reason = Reason::QueueFull { queue: most };
                Err(Ending::Refused(Refused::new(reason, &waiter.order, toll, gate.peek(&waiter.order))))
            }
            (Turns::Slots { .. }, _) => Ok((toll, None)),
            (_, None) => Ok((toll, queue.hint_last(units, now, look))),
            (_, Some(by)) => match queue.expected_at(ticket, units, now, look) {
                Some(start) if start > by => Err(waiter.refused(toll, Ok(start), gate.peek(&waiter.order))),
                expected => Ok((toll, expected)),
            },
        };
        self.forget_if_empty(bucket.queue());
        admitted
    }

    /// Whether a set that comes now would be late, behind everybody who waits at its buckets and came before.
    fn judge_set(&self, gate: &dyn Gate, ticket: Ticket, waiter: &Waiter, now: Time) -> Result<(), Ending> {
        let deadlines =
            || (0..waiter.order.tolls.len()).filter_map(|toll| Some((waiter.deadline(toll)?, toll)));
        if waiter.order.tolls.len() < 2 || deadlines().next().is_none() {
            return Ok(());
        }
        let queues = waiter.order.queues().filter_map(|(_, id)| self.inner.queues.get(&id));
        let ahead: BTreeSet<Ticket> = queues.flat_map(WaitQueue::tickets).filter(|it| *it < ticket).collect();
        let mut rehearsal = Rehearsal::new(gate, now);
        for order in ahead.iter().filter_map(|ahead| self.inner.waiters.get(ahead)).map(|it| &it.order) {
            rehearsal.serve(order);
        }
        let Some(start) = rehearsal.goes(&waiter.order) else { return Ok(()) };
        match deadlines().min().filter(|(by, _)| start > *by) {
            Some((_, toll)) => Err(waiter.refused(toll, Ok(start), gate.peek(&waiter.order))),
            None => Ok(()),
        }
    }

    /// Puts a waiter into the queue of a toll.
    fn stand(&mut self, gate: &dyn Gate, ticket: Ticket, toll: usize, now: Time) {
        let Some(waiter) = self.inner.waiters.get_mut(&ticket) else { return };
        let (id, units) = (waiter.order.queue(toll), waiter.order.tolls[toll].units());
        let others = waiter.stands_at.iter().copied().filter(|other| *other != toll);
        waiter.stands_at = others.chain([toll]).collect();
        let queue = self.inner.queues.entry(id).or_default();
        if queue.is_empty() || gate.turns(&waiter.order.tolls[toll].bucket).is_slots() {
            queue.forget_forecast();
        }
        let head = queue.head();
        queue.insert(ticket, units, now);
        if queue.head() != head {
            self.look_again(id, now);
        }
    }

    /// Where a waiter that was withdrawn stands again, at the place of its arrival.
    fn come_back(&mut self, gate: &dyn Gate, ticket: Ticket, now: Time) {
        let Some(waiter) = self.inner.waiters.get(&ticket) else { return };
        let held_up = self.held_up(ticket, waiter);
        let slots = || waiter.order.tolls.iter().position(|toll| gate.turns(&toll.bucket).is_slots());
        self.stand(gate, ticket, held_up.or_else(slots).unwrap_or(0), now);
    }

    /// Decides about the head of a queue, at an instant that has come.
    fn look_at_head(&mut self, gate: &dyn Gate, id: QueueId, at: Time) {
        let Some(ticket) = self.inner.queues.get(&id).and_then(WaitQueue::head) else {
            return self.forget_if_empty(id);
        };
        let Some(waiter) = self.inner.waiters.get(&ticket) else { return };
        let is_head = |toll: &usize| {
            self.inner.queues.get(&waiter.order.queue(*toll)).is_some_and(|it| it.head() == Some(ticket))
        };
        if !waiter.stands_at.iter().all(is_head) {
            // Whoever leaves the other queue comes here again.
            return;
        }
        if let Some((ended, toll)) = waiter.ends().filter(|(ends, _)| *ends < at) {
            let ending = waiter.refused(toll, Err(ended), gate.peek(&waiter.order));
            return self.end(gate, ticket, ending, at);
        }
        if let Some(toll) = self.held_up(ticket, waiter) {
            return self.go_to(gate, ticket, toll, at);
        }
        match gate.ask(&waiter.order, Timing::release(at, waiter.began, waiter.up_to)) {
            Asked::Granted(booked) => self.release(gate, ticket, booked, at),
            Asked::Unknown(error) => self.end(gate, ticket, Ending::Store(error), at),
            Asked::Denied(denied) => {
                let by = denied.by;
                let stands_there = waiter.stands_at.contains(&by);
                match self.judge(gate, waiter, denied, at) {
                    Err(ending) => self.end(gate, ticket, ending, at),
                    Ok(_) if !stands_there => self.go_to(gate, ticket, by, at),
                    Ok(next) => self.plan(gate, id, at, next),
                }
            }
        }
    }

    /// Whether a waiter that is denied now may still be in time; and when to ask again, if anybody knows.
    fn judge(
        &self,
        gate: &dyn Gate,
        waiter: &Waiter,
        denied: Denied,
        at: Time,
    ) -> Result<Option<Time>, Ending> {
        if denied.verdict() == Verdict::Never {
            return Err(Ending::Refused(Refused::never(&waiter.order, denied)));
        }
        let mut next: Option<Time> = None;
        let mut late: Option<(usize, Time)> = None;
        for (toll, status) in denied.statuses.iter().enumerate() {
            let Verdict::Deny(nanos) = status.in_nanos() else { continue };
            let start = at + Duration::from_nanos(nanos.max(1));
            if waiter.deadline(toll).is_some_and(|by| start > by) && late.is_none_or(|(_, it)| start > it) {
                late = Some((toll, start));
            }
            if toll == denied.by {
                // A table that is full may have a place before that, and nobody would say so.
                let is_full = status.decided_by() == DecidedBy::FullTable;
                next = Some(if is_full { start.min(at + GRACE) } else { start });
            }
        }
        if let Some((toll, start)) = late {
            return Err(waiter.refused(toll, Ok(start), denied.statuses));
        }
        if denied.verdict() == Verdict::WhenReleased {
            let toll = denied.by;
            let bucket = &waiter.order.tolls[toll].bucket;
            let deadline = waiter.deadline(toll);
            if deadline.is_some_and(|by| by <= at) && !self.is_full(gate, waiter, toll) {
                return Err(waiter.refused(toll, Err(at), denied.statuses));
            }
            // Whoever leaves wakes it. A holder whose time is up does not, nor one that does not fetch its slots.
            let claim =
                self.inner.unclaimed.front().map(|(until, _)| (*until).max(at + Duration::from_nanos(1)));
            next = [gate.first_expiry(bucket, at), claim, deadline].into_iter().flatten().min();
        }
        Ok(next)
    }

    /// Whether as many wait for slots as may.
    fn is_full(&self, gate: &dyn Gate, waiter: &Waiter, toll: usize) -> bool {
        let bucket = &waiter.order.tolls[toll].bucket;
        let waiting = self.inner.queues.get(&bucket.queue()).map_or(0, WaitQueue::len);
        !waiter.stands_at.contains(&toll)
            && gate.turns(bucket).queue().is_some_and(|most| waiting >= most as usize)
    }

    /// From wherever a waiter stands to the queue of another toll.
    fn go_to(&mut self, gate: &dyn Gate, ticket: Ticket, toll: usize, at: Time) {
        let Some(waiter) = self.inner.waiters.remove(&ticket) else { return };
        let admitted = self.admit(gate, ticket, &waiter, toll, at);
        let moves = waiter.moves;
        self.inner.waiters.insert(ticket, waiter);
        match admitted {
            Err(ending) => self.end(gate, ticket, ending, at),
            Ok((toll, expected)) => {
                if moves < MOVES {
                    self.step_out(ticket, at, Leaving::Unserved);
                }
                if let Some(waiter) = self.inner.waiters.get_mut(&ticket) {
                    waiter.expected = expected;
                    waiter.moves = MOVES.min(moves + 1);
                    // It sleeps for a queue that it has left.
                    waiter.tell(&mut self.inner.effects);
                }
                self.stand(gate, ticket, toll, at);
            }
        }
    }

    fn release(&mut self, gate: &dyn Gate, ticket: Ticket, booked: Booked, at: Time) {
        self.step_out(ticket, at, Leaving::Released);
        let Some(waiter) = self.inner.waiters.get_mut(&ticket) else { return };
        match booked.permit.is_some() {
            true => self.inner.unclaimed.push_back((self.now + GRACE, ticket)),
            false => Self::unregister_at(self.count, gate, &waiter.order),
        }
        waiter.fate = Fate::Released(Box::new(booked));
        self.inner.effects.wake.extend(waiter.waker.take());
    }

    fn end(&mut self, gate: &dyn Gate, ticket: Ticket, ending: Ending, at: Time) {
        self.step_out(ticket, at, Leaving::Unserved);
        let Some(waiter) = self.inner.waiters.get_mut(&ticket) else { return };
        Self::unregister_at(self.count, gate, &waiter.order);
        waiter.fate = Fate::Ended(Box::new(ending));
        self.inner.effects.wake.extend(waiter.waker.take());
    }

    /// Takes slots back that were not fetched, where somebody else waits for them.
    fn reclaim(&mut self, gate: &dyn Gate, ticket: Ticket, at: Time) {
        self.inner.unclaimed.pop_front();
        let Some(waiter) = self.inner.waiters.get_mut(&ticket) else { return };
        let Fate::Released(booked) = &waiter.fate else { return };
        let queues: Vec<QueueId> = gate::held(gate, &waiter.order.tolls, booked).map(Bucket::queue).collect();
        let queues_of = &self.inner.queues;
        if !queues.iter().any(|id| queues_of.get(id).is_some_and(|it| !it.is_empty())) {
            return self.inner.unclaimed.push_back((self.now + GRACE, ticket));
        }
        gate::give_back(gate, &waiter.order.tolls, booked, Unused::Settled);
        waiter.fate = Fate::Withdrawn;
        for toll in 0..waiter.order.tolls.len() {
            let id = self.inner.waiters[&ticket].order.queue(toll);
            self.touch(gate, id, at, Effect::MoreRoom);
        }
    }

    /// Slots have been fetched.
    fn claimed(&mut self, gate: &dyn Gate, order: &Order, ticket: Ticket) {
        self.inner.unclaimed.retain(|(_, of)| *of != ticket);
        self.unregister(gate, order);
    }

    /// Takes a waiter out of its queues, whose next ones are looked at.
    fn step_out(&mut self, ticket: Ticket, at: Time, leaving: Leaving) {
        let Some(waiter) = self.inner.waiters.get_mut(&ticket) else { return };
        let stood_at = std::mem::replace(&mut waiter.stands_at, Few::Many(Vec::new()));
        for toll in &*stood_at {
            let id = self.inner.waiters[&ticket].order.queue(*toll);
            let Some(queue) = self.inner.queues.get_mut(&id) else { continue };
            // The second looks after the head.
            let was_near = queue.tickets().take(2).any(|near| near == ticket);
            match leaving {
                Leaving::Released => queue.remove_released(ticket),
                Leaving::Unserved => queue.remove_unserved(ticket),
            }
            if was_near {
                self.look_again(id, at);
            }
        }
    }

    /// Looks at the head of a queue at that time, which has come.
    fn look_again(&mut self, id: QueueId, at: Time) {
        let Inner { queues, agenda, .. } = &mut *self.inner;
        let Some(queue) = queues.get_mut(&id) else { return };
        if let Some(before) = queue.looks_at.replace(at) {
            agenda.remove(&(before, id));
        }
        agenda.insert((at, id));
    }

    /// Looks at the head of a queue at that time, which is to come. The head sleeps until then, or is woken to see to that;
    /// and should it not be polled any more, the next one sees to its own turn.
    fn plan(&mut self, gate: &dyn Gate, id: QueueId, now: Time, at: Option<Time>) {
        let Some(at) = at else { return };
        self.look_again(id, at);
        let Inner { queues, waiters, effects, .. } = &mut *self.inner;
        let Some(queue) = queues.get(&id) else { return };
        let Some(head) = queue.head().and_then(|head| waiters.get(&head)) else { return };
        if !queue.has_moved_up() && head.alarm.is_set_by(at) {
            // Everybody sleeps until their own turn.
            return;
        }
        let bucket = head.bucket_of(id).cloned();
        let look = || bucket.filter(|bucket| !gate.turns(bucket).is_slots()).and_then(|it| gate.look(&it));
        let mut told = 0;
        for (place, (ticket, turn)) in queue.turns(now, look).enumerate() {
            let by = if place == 0 { at } else { turn.unwrap_or(at + GRACE) };
            let Some(waiter) = waiters.get_mut(&ticket) else { return };
            match waiter.alarm {
                // Told before, it may not be polled any more.
                Alarm::Told => {}
                Alarm::Set(_) if waiter.alarm.is_set_by(by) && place > 0 => return,
                Alarm::Set(_) if waiter.alarm.is_set_by(by) => {}
                Alarm::Set(_) => {
                    waiter.tell(effects);
                    told += 1;
                }
            }
            if told == 2 {
                return;
            }
        }
    }

    /// Until when a waiter sleeps that waits.
    fn sleeps_until(&self, gate: &dyn Gate, ticket: Ticket, now: Time) -> Option<Time> {
        let waiter = self.inner.waiters.get(&ticket)?;
        let mut until = waiter.ends().map(|(at, _)| at);
        for toll in waiter.stands_at.iter() {
            let Some(queue) = self.inner.queues.get(&waiter.order.queue(*toll)) else { continue };
            let is_head = queue.head() == Some(ticket);
            // Those in front may not be polled any more; or this is the next one, see `plan`.
            let mut ahead = queue.tickets().take_while(|ahead| *ahead != ticket).enumerate();
            let is_near = ahead.all(|(place, ahead)| place == 0 || self.is_told(ahead));
            let bucket = &waiter.order.tolls[*toll].bucket;
            let looks_at = queue.looks_at.filter(|_| is_head);
            let own = match gate.turns(bucket) {
                _ if looks_at.is_some() => None,
                Turns::Slots { .. } if is_near => queue.looks_at.map(|at| at + GRACE),
                Turns::Slots { max_hold, .. } => Some(now + max_hold),
                _ if is_near && queue.has_moved_up() => {
                    let mut turns = queue.turns(now, || gate.look(bucket));
                    turns.find(|(of, _)| *of == ticket).and_then(|(_, turn)| turn)
                }
                _ => waiter.expected,
            };
            // Later than expected, it looks ever more rarely.
            let later = || now + GRACE.max((now - waiter.began) / 4);
            let own = if looks_at.is_some() {
                None
            } else {
                Some(own.filter(|at| *at > now).unwrap_or_else(later))
            };
            until = [until, looks_at, own].into_iter().flatten().min();
        }
        until
    }

    /// Whether somebody was woken to look at the time, and has not done so.
    fn is_told(&self, ticket: Ticket) -> bool {
        self.inner.waiters.get(&ticket).is_some_and(|waiter| waiter.alarm == Alarm::Told)
    }

    /// The first toll at whose queue somebody waits who came before; not one where it stands itself.
    fn held_up(&self, ticket: Ticket, waiter: &Waiter) -> Option<usize> {
        let is_behind = |id: &QueueId| {
            self.inner.queues.get(id).and_then(WaitQueue::head).is_some_and(|head| head < ticket)
        };
        waiter.order.queues().find(|(_, id)| is_behind(id)).map(|(toll, _)| toll)
    }

    fn forget_if_empty(&mut self, id: QueueId) {
        if let Some(queue) = self.inner.queues.get(&id).filter(|queue| queue.is_empty()) {
            if let Some(at) = queue.looks_at {
                self.inner.agenda.remove(&(at, id));
            }
            self.inner.queues.remove(&id);
        }
    }

    /// From now on checks and changes of these buckets come by here.
    fn register(&self, gate: &dyn Gate, order: &Order) {
        self.count.fetch_add(1, Ordering::AcqRel);
        order.tolls.iter().for_each(|toll| gate.add_waiter(&toll.bucket));
    }

    fn unregister(&self, gate: &dyn Gate, order: &Order) {
        Self::unregister_at(self.count, gate, order);
    }

    fn unregister_at(count: &AtomicU64, gate: &dyn Gate, order: &Order) {
        count.fetch_sub(1, Ordering::AcqRel);
        order.tolls.iter().for_each(|toll| gate.remove_waiter(&toll.bucket));
    }
}

impl Alarm {
    /// Whether it goes off by then.
    fn is_set_by(self, at: Time) -> bool {
        matches!(self, Self::Set(Some(alarm)) if alarm <= at)
    }
}

/// How a waiter leaves its queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    Released,
    /// It gave up, or went to another queue.
    Unserved,
}
