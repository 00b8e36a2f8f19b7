//! Who waits at which bucket on this node, first come, first served, and the turns they have in hand.
//!
//! A [`WaitQueue`] is data under one lock: its task ([`serving`](super::serving)) asks [`next_step`](WaitQueue::next_step) what to do,
//! tells it what Redis answered, and sleeps. Turns in hand go to the waiters in order, one each; a turn for other charges than those of
//! the waiter in its place is no longer needed and given back.
//!
//! When the next turn comes is worked out from what Redis said last and the limit's rate, so that one question is asked for a turn
//! and arrivals are judged without one. It is a lower bound: other nodes may have booked since. It is looked up again when half of the
//! wait has passed, and after ten seconds at the latest, since another node may have made room.

use super::{
    request::{Answer, Denial, Request},
    reservation::RedisReservation,
};
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::sync::{Notify, oneshot};
use tollgate::{StoreError, Time};

/// How often a slot is asked for while nobody can say when one comes back: sooner at first.
const SOONEST: Duration = Duration::from_millis(2);
const LATEST: Duration = Duration::from_millis(50);
/// How long another node's refund, reset or change may go unnoticed by a queue: half of the wait, within these.
const LOOK_AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];
/// How long a waiter that is not polled may keep the slots that it was handed.
const CLAIMED_WITHIN: Duration = Duration::from_millis(100);
/// Turns in hand, and questions in one call.
const MOST_AHEAD: usize = 64;

/// The queues of a store, one for each bucket at which somebody waits.
#[derive(Default)]
pub(crate) struct WaitQueues {
    queues: Mutex<HashMap<Arc<[u8]>, WaitQueue>>,
    /// How many there are, so that nobody needs the lock while nobody waits.
    count: AtomicUsize,
    arrivals: AtomicU64,
}

/// Those who wait at a bucket.
pub(super) struct WaitQueue {
    /// By arrival.
    waiters: BTreeMap<u64, Waiter>,
    /// What all of them cost at this bucket.
    units: u64,
    /// Booked and not due, in the order of their times.
    turns: VecDeque<RedisReservation>,
    /// Handed over with slots, and not taken yet.
    unclaimed: VecDeque<(Time, Handover)>,
    /// When turns come that are not booked, as far as is known.
    outlook: Option<Outlook>,
    asked_at: Time,
    pause: Duration,
    /// Whether deadlines are to be judged anew: nothing was known, or the numbers changed.
    is_unjudged: bool,
    pub(super) is_asking: bool,
    pub(super) changed: Arc<Notify>,
}

/// When a turn comes.
#[derive(Clone, Copy)]
struct Outlook {
    turn: Time,
    /// For so many units at once; it comes later or earlier for more or less.
    units: u64,
    /// Whether that is only when to ask again.
    is_guess: bool,
}

struct Waiter {
    request: Arc<Request>,
    /// The bucket's place in the request.
    part: usize,
    hand: oneshot::Sender<Handed>,
}

/// What a waiter is told, once.
pub(super) enum Handed {
    Turn(Handover),
    /// By another bucket, or for good.
    Denied(Denial),
    Failed(StoreError),
}

/// A turn on its way to its waiter; nothing where it took too long to fetch it.
pub(super) type Handover = Arc<Mutex<Option<RedisReservation>>>;

/// What the task of a queue does next.
pub(super) enum Step {
    /// Ask for turns for these, which charge the same.
    Ask(Vec<(u64, Arc<Request>)>),
    /// Sleep until then, or until something changes.
    Rest(Option<Time>),
    /// Nobody waits.
    End,
}

impl WaitQueues {
    /// The place in the order of arrival.
    pub(super) fn arrive(&self) -> u64 {
        self.arrivals.fetch_add(1, Relaxed)
    }

    /// The first of the request's buckets at which somebody waits.
    pub(super) fn occupied(&self, request: &Request) -> Option<usize> {
        if self.count.load(Relaxed) == 0 {
            return None;
        }
        let queues = self.lock();
        request.buckets().position(|bucket| queues.get(bucket).is_some_and(|queue| !queue.waiters.is_empty()))
    }

    /// Stands in a bucket's queue, at the place of its arrival, maybe with a turn or with what Redis said about one. The second value is whether the
    /// queue is new. Whoever would be late is told when its turn would come.
    pub(super) fn join(
        &self,
        arrival: u64,
        request: &Arc<Request>,
        part: usize,
        known: Option<Answer>,
        now: Time,
    ) -> Result<(oneshot::Receiver<Handed>, bool), Option<Time>> {
        let mut queues = self.lock();
        let bucket = request.bucket(part);
        let is_new = !queues.contains_key(bucket);
        if is_new {
            queues.insert(Arc::clone(bucket), WaitQueue::new(now));
            self.count.store(queues.len(), Relaxed);
        }
        let Some(queue) = queues.get_mut(bucket) else { return Err(None) };
        if let (None, Some((newest, _))) = (&known, queue.waiters.last_key_value())
            && arrival > *newest
        {
            let turn = queue.expected_last(request, part);
            if turn.map_or(now, |turn| turn.max(now)) > request.deadline(part)
                || request.deadline(part) <= now
            {
                return Err(turn);
            }
        }
        let (hand, handed) = oneshot::channel();
        let is_next = queue.waiters.len() <= queue.turns.len() || known.is_some();
        queue.units = queue.units.saturating_add(request.cost(part));
        queue.waiters.insert(arrival, Waiter { request: Arc::clone(request), part, hand });
        match known {
            Some(Answer::Turn(turn)) => queue.keep_booked(request, part, turn),
            Some(Answer::Denied(denial)) => queue.learn(request, part, denial.turn, now),
            None => {}
        }
        if is_next {
            queue.changed.notify_one();
        }
        Ok((handed, is_new))
    }

    /// Leaves a queue. A turn that was handed over and not taken is the next one's.
    pub(super) fn leave(&self, bucket: &[u8], arrival: u64, handed: &mut oneshot::Receiver<Handed>) {
        handed.close();
        let mut queues = self.lock();
        let mut unused = None;
        if let Ok(Handed::Turn(turn)) = handed.try_recv() {
            unused = take(&turn);
        }
        if let Some(queue) = queues.get_mut(bucket) {
            let is_covered = queue.is_covered(arrival);
            queue.remove(arrival);
            if let Some(turn) = unused.take_if(|_| !queue.waiters.is_empty()) {
                queue.keep(turn);
                queue.changed.notify_one();
            } else if is_covered || queue.waiters.is_empty() {
                queue.changed.notify_one();
            }
        }
        drop(queues);
        if let Some(turn) = unused {
            drop(turn.spend());
        }
    }

    /// Whether a turn in hand is that waiter's, and due in time.
    pub(super) fn covers(&self, bucket: &[u8], arrival: u64, deadline: Time) -> bool {
        let queues = self.lock();
        let Some(queue) = queues.get(bucket) else { return false };
        let place = queue.waiters.range(..arrival).take(queue.turns.len()).count();
        queue.turns.get(place).is_some_and(|turn| turn.due() <= deadline)
    }

    /// Says that there may be room at a bucket.
    pub(crate) fn look_again(&self, bucket: &[u8]) {
        if self.count.load(Relaxed) > 0
            && let Some(queue) = self.lock().get_mut(bucket)
        {
            queue.look_again();
        }
    }

    /// Says that numbers have changed.
    pub(crate) fn look_again_everywhere(&self) {
        for queue in self.lock().values_mut() {
            queue.is_unjudged = true;
            queue.look_again();
        }
    }

    /// Does something with a queue, which goes when nobody needs it any more.
    pub(super) fn with<T>(&self, bucket: &[u8], with: impl FnOnce(&mut WaitQueue) -> T) -> Option<T> {
        self.lock().get_mut(bucket).map(with)
    }

    /// Ends a queue that nobody stands in.
    pub(super) fn end(&self, bucket: &[u8], is_over: impl FnOnce(&WaitQueue) -> bool) -> Option<WaitQueue> {
        let mut queues = self.lock();
        if !queues.get(bucket).is_some_and(is_over) {
            return None;
        }
        let ended = queues.remove(bucket);
        self.count.store(queues.len(), Relaxed);
        ended
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<[u8]>, WaitQueue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitQueue {
    fn new(now: Time) -> Self {
        Self {
            waiters: BTreeMap::new(),
            units: 0,
            turns: VecDeque::new(),
            unclaimed: VecDeque::new(),
            outlook: None,
            asked_at: now,
            pause: SOONEST,
            is_unjudged: true,
            is_asking: false,
            changed: Arc::default(),
        }
    }

    /// Hands over what is due, and says what to do next. Comes with the turns that are no longer needed, the last one first.
    pub(super) fn next_step(
        &mut self,
        now: Time,
        lead: Duration,
        horizon: Duration,
    ) -> (Step, Vec<RedisReservation>) {
        let mut unused = self.unneeded();
        while self.turns.front().is_some_and(|turn| turn.due() <= now) {
            let Some(turn) = self.turns.pop_front() else { break };
            unused.extend(self.hand_over(turn, now));
        }
        unused.extend(self.reclaim(now));
        if !unused.is_empty() {
            self.look_again();
        }
        (self.decide(now, lead, horizon), unused)
    }

    fn decide(&mut self, now: Time, lead: Duration, horizon: Duration) -> Step {
        let due = self.turns.front().map(RedisReservation::due);
        let claim = self.unclaimed.front().map(|(until, _)| *until);
        let mut until = due.into_iter().chain(claim).min();
        if self.is_asking || self.turns.len() >= MOST_AHEAD {
            return Step::Rest(until);
        }
        let Some((arrival, first)) = self.waiters.iter().nth(self.turns.len()) else {
            let is_over = self.waiters.is_empty() && self.turns.is_empty() && self.unclaimed.is_empty();
            return if is_over { Step::End } else { Step::Rest(until) };
        };
        let is_ahead = first.request.books_ahead();
        if let Some(turn) = self.expected(first, 0) {
            let ask_at = if is_ahead { earlier(turn, lead) } else { turn };
            let half = ((turn - self.asked_at) / 2).clamp(LOOK_AGAIN[0], LOOK_AGAIN[1]);
            let ask_at = ask_at.min(self.asked_at + half);
            if ask_at > now {
                until = until.into_iter().chain([ask_at]).min();
                return Step::Rest(until);
            }
        }
        let mut asked = vec![(*arrival, Arc::clone(&first.request))];
        if is_ahead && self.outlook.is_some() {
            let mut ahead = first.cost();
            for (arrival, waiter) in self.waiters.iter().skip(self.turns.len() + 1) {
                let is_near = self.expected(waiter, ahead).is_some_and(|turn| turn <= now + horizon);
                if !is_near
                    || self.turns.len() + asked.len() >= MOST_AHEAD
                    || !waiter.request.same_charges(&first.request)
                {
                    break;
                }
                ahead += waiter.cost();
                asked.push((*arrival, Arc::clone(&waiter.request)));
            }
        }
        self.is_asking = true;
        self.asked_at = now;
        Step::Ask(asked)
    }

    /// Takes an answer; comes with a turn that nobody needs any more.
    pub(super) fn hear(
        &mut self,
        bucket: &[u8],
        arrival: u64,
        request: &Request,
        answer: Result<Answer, StoreError>,
        now: Time,
    ) -> Option<RedisReservation> {
        let part = request.buckets().position(|other| **other == *bucket).unwrap_or(0);
        match answer {
            Ok(Answer::Turn(turn)) => {
                self.pause = SOONEST;
                if request.books_ahead() && turn.due() > now {
                    self.keep_booked(request, part, turn);
                    return None;
                }
                self.outlook = None;
                self.hand_over_to(arrival, turn, now)
            }
            Ok(Answer::Denied(denial)) if denial.part == part && !denial.is_final => {
                self.learn(request, part, denial.turn, now);
                self.judge(now);
                None
            }
            Ok(Answer::Denied(denial)) => {
                self.tell(arrival, Handed::Denied(denial));
                None
            }
            Err(error) => {
                self.tell(arrival, Handed::Failed(error));
                None
            }
        }
    }

    /// Remembers when Redis says that a request's turn comes here.
    fn learn(&mut self, request: &Request, part: usize, turn: Option<Time>, now: Time) {
        let units = if request.edition(part).is_paid_in_advance() { request.cost(part) } else { 0 };
        self.outlook =
            Some(Outlook { turn: turn.unwrap_or(now + self.pause), units, is_guess: turn.is_none() });
        if turn.is_none() {
            self.pause = (self.pause * 2).min(LATEST);
        }
    }

    /// Tells those who can no longer be in time, once more is known.
    fn judge(&mut self, now: Time) {
        if self.outlook.is_none_or(|outlook| outlook.is_guess) || !std::mem::take(&mut self.is_unjudged) {
            return;
        }
        let mut ahead = 0;
        let mut late = Vec::new();
        for (arrival, waiter) in self.waiters.iter().skip(self.turns.len()) {
            let turn = self.expected(waiter, ahead);
            if turn.is_some_and(|turn| turn.max(now) > waiter.request.deadline(waiter.part)) {
                late.push((*arrival, waiter.part, turn));
            } else {
                ahead += waiter.cost();
            }
        }
        for (arrival, part, turn) in late {
            self.tell(arrival, Handed::Denied(Denial::by_queue(part, turn)));
        }
    }

    /// When a waiter's turn comes, behind so many units that are not booked.
    fn expected(&self, waiter: &Waiter, ahead: u64) -> Option<Time> {
        self.expected_behind(&waiter.request, waiter.part, ahead)
    }

    fn expected_last(&self, request: &Request, part: usize) -> Option<Time> {
        let booked: u64 = self.turns.iter().map(RedisReservation::units).sum();
        let turn = self.expected_behind(request, part, self.units.saturating_sub(booked));
        turn.filter(|_| self.outlook.is_some_and(|outlook| !outlook.is_guess))
    }

    fn expected_behind(&self, request: &Request, part: usize, ahead: u64) -> Option<Time> {
        let edition = request.edition(part);
        let own = if edition.is_paid_in_advance() { request.cost(part) } else { 0 };
        let (units, outlook) = (ahead.saturating_add(own), self.outlook?);
        Some(match units.checked_sub(outlook.units) {
            Some(more) => outlook.turn + edition.pace(more),
            None => earlier(outlook.turn, edition.pace(outlook.units - units)),
        })
    }

    fn look_again(&mut self) {
        self.outlook = None;
        self.changed.notify_one();
    }

    fn keep_booked(&mut self, request: &Request, part: usize, turn: RedisReservation) {
        let edition = request.edition(part);
        let cost = if edition.is_paid_in_advance() { 0 } else { request.cost(part) };
        self.outlook = Some(Outlook { turn: turn.due() + edition.pace(cost), units: 0, is_guess: false });
        self.keep(turn);
    }

    /// Keeps a turn for whoever is in its place.
    fn keep(&mut self, turn: RedisReservation) {
        let place = self.turns.partition_point(|other| other.due() <= turn.due());
        self.turns.insert(place, turn);
    }

    /// Takes out the turns of which the waiter in their place wants another, or is none; the last one first.
    fn unneeded(&mut self) -> Vec<RedisReservation> {
        let mut waiters = self.waiters.values();
        let mut next = waiters.next();
        let mut unneeded = Vec::new();
        let mut needed = VecDeque::with_capacity(self.turns.len());
        for turn in self.turns.drain(..) {
            if next.is_some_and(|waiter| turn.is_for(&waiter.request)) {
                next = waiters.next();
                needed.push_back(turn);
            } else {
                unneeded.push(turn);
            }
        }
        self.turns = needed;
        unneeded.reverse();
        unneeded
    }

    fn hand_over(&mut self, turn: RedisReservation, now: Time) -> Option<RedisReservation> {
        match self.waiters.first_key_value() {
            Some((arrival, _)) => self.hand_over_to(*arrival, turn, now),
            None => Some(turn),
        }
    }

    /// Hands a turn to that waiter, or where it has gone to the first; comes back where that one wants another.
    fn hand_over_to(&mut self, arrival: u64, turn: RedisReservation, now: Time) -> Option<RedisReservation> {
        let mut arrival = arrival;
        let turn = Arc::new(Mutex::new(Some(turn)));
        loop {
            if !self.waiters.contains_key(&arrival) {
                let first = self.waiters.first_key_value();
                let is_for =
                    |waiter: &Waiter| lock(&turn).as_ref().is_some_and(|turn| turn.is_for(&waiter.request));
                match first.filter(|(_, waiter)| is_for(waiter)) {
                    Some((first, _)) => arrival = *first,
                    None => return take(&turn),
                }
            }
            let holds_slots = lock(&turn).as_ref().is_some_and(RedisReservation::holds_slots);
            let Some(waiter) = self.remove(arrival) else { return take(&turn) };
            if waiter.hand.send(Handed::Turn(Arc::clone(&turn))).is_ok() {
                if holds_slots {
                    self.unclaimed.push_back((now + CLAIMED_WITHIN, turn));
                }
                return None;
            }
        }
    }

    /// Takes back slots that were not fetched in time; comes with those that nobody else wants.
    fn reclaim(&mut self, now: Time) -> Vec<RedisReservation> {
        let mut unwanted = Vec::new();
        while let Some((until, turn)) = self.unclaimed.front() {
            let is_fetched = lock(turn).is_none();
            if !is_fetched && *until > now {
                break;
            }
            let turn = take(turn);
            self.unclaimed.pop_front();
            if let Some(turn) = turn {
                let is_wanted =
                    self.waiters.values().next().is_some_and(|waiter| turn.is_for(&waiter.request));
                unwanted.extend(if is_wanted { self.hand_over(turn, now) } else { Some(turn) });
            }
        }
        unwanted
    }

    fn tell(&mut self, arrival: u64, handed: Handed) {
        if let Some(waiter) = self.remove(arrival) {
            // It may have gone.
            let _ = waiter.hand.send(handed);
        }
    }

    fn remove(&mut self, arrival: u64) -> Option<Waiter> {
        let waiter = self.waiters.remove(&arrival)?;
        self.units = self.units.saturating_sub(waiter.cost());
        Some(waiter)
    }

    /// Whether a turn in hand is in that waiter's place.
    fn is_covered(&self, arrival: u64) -> bool {
        !self.turns.is_empty()
            && self.waiters.range(..arrival).take(self.turns.len()).count() < self.turns.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiters.is_empty() && self.turns.is_empty() && self.unclaimed.is_empty()
    }

    /// The turns that are left, the last one first.
    pub(super) fn into_turns(self) -> impl Iterator<Item = RedisReservation> {
        self.turns.into_iter().rev()
    }
}

impl Waiter {
    fn cost(&self) -> u64 {
        self.request.cost(self.part)
    }
}

fn earlier(time: Time, by: Duration) -> Time {
    Time::from_nanos(time.as_nanos().saturating_sub(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
}

fn lock(turn: &Handover) -> MutexGuard<'_, Option<RedisReservation>> {
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fetches a turn, unless it is gone.
pub(super) fn take(turn: &Handover) -> Option<RedisReservation> {
    lock(turn).take()
}
