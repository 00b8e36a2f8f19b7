//! Who waits at a bucket on this node, first come, first served, and the turns they have in hand.
//!
//! A [`WaitQueue`] is data under one lock: its task ([`serving`](super::serving)) asks [`next_step`](WaitQueue::next_step)
//! what to do, tells it what Redis answered, and sleeps. Turns in hand go to the waiters in order, one each; a turn for
//! other charges than those of the waiter in its place is no longer needed and given back.
//!
//! A waiter joins and leaves in logarithmic time, and needs nothing else while it waits. Another node's refund, reset or
//! change is noticed when half of a wait has passed, and after ten seconds at the latest.

use super::{
    outlook::{Outlook, earlier},
    request::{Answer, Denial, Request},
    reservation::RedisReservation,
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
/// Turns in hand, and questions at once.
const MOST_AHEAD: usize = 1_024;
const MOST_ASKED: usize = 256;

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

impl WaitQueue {
    pub(super) fn new(now: Time) -> Self {
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

    /// Stands in the queue, at the place of its arrival, maybe with a turn or with what Redis said about one. Whoever would
    /// be late is told when its turn would come.
    pub(super) fn join(
        &mut self,
        arrival: u64,
        request: &Arc<Request>,
        part: usize,
        known: Option<Answer>,
        now: Time,
    ) -> Result<oneshot::Receiver<Handed>, Option<Time>> {
        if let (None, Some((newest, _))) = (&known, self.waiters.last_key_value())
            && arrival > *newest
        {
            let (turn, deadline) = (self.expected_last(request, part), request.deadline(part));
            if turn.map_or(now, |turn| turn.max(now)) > deadline || deadline <= now {
                return Err(turn);
            }
        }
        let (hand, handed) = oneshot::channel();
        let is_next = self.waiters.len() <= self.turns.len() || known.is_some();
        self.units = self.units.saturating_add(request.cost(part));
        self.waiters.insert(arrival, Waiter { request: Arc::clone(request), part, hand });
        match known {
            Some(Answer::Turn(turn)) => self.keep_booked(request, part, turn),
            Some(Answer::Denied(denial)) => self.learn(request, part, denial.turn, now),
            None => {}
        }
        if is_next {
            self.changed.notify_one();
        }
        Ok(handed)
    }

    /// Leaves, maybe with a turn that was handed over and not taken, which is the next one's; comes back where there is none.
    pub(super) fn leave(&mut self, arrival: u64, turn: Option<RedisReservation>) -> Option<RedisReservation> {
        let is_covered = self.is_covered(arrival);
        self.remove(arrival);
        if is_covered || turn.is_some() || self.waiters.is_empty() {
            self.changed.notify_one();
        }
        if self.waiters.is_empty() {
            return turn;
        }
        turn.into_iter().for_each(|turn| self.keep(turn));
        None
    }

    /// Whether a turn in hand is that waiter's, and due in time.
    pub(super) fn covers(&self, arrival: u64, deadline: Time) -> bool {
        let place = self.waiters.range(..arrival).take(self.turns.len()).count();
        self.turns.get(place).is_some_and(|turn| turn.due() <= deadline)
    }

    pub(super) fn len(&self) -> usize {
        self.waiters.len()
    }

    pub(super) fn has_waiters(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// The numbers have changed.
    pub(super) fn judge_again(&mut self) {
        self.is_unjudged = true;
        self.look_again();
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
                    || asked.len() >= MOST_ASKED.min(MOST_AHEAD - self.turns.len())
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
        let (edition, cost) = (request.edition(part), request.cost(part));
        self.outlook = Some(match turn {
            Some(turn) => Outlook::told(turn, &edition, cost),
            None => Outlook::guess(now + self.pause),
        });
        if turn.is_none() {
            self.pause = (self.pause * 2).min(LATEST);
        }
    }

    /// Tells those who can no longer be in time, once more is known.
    fn judge(&mut self, now: Time) {
        if self.outlook.is_none_or(Outlook::is_guess) || !std::mem::take(&mut self.is_unjudged) {
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
        turn.filter(|_| !self.outlook.is_some_and(Outlook::is_guess))
    }

    fn expected_behind(&self, request: &Request, part: usize, ahead: u64) -> Option<Time> {
        Some(self.outlook?.turn_of(&request.edition(part), ahead, request.cost(part)))
    }

    pub(super) fn look_again(&mut self) {
        self.outlook = None;
        self.changed.notify_one();
    }

    fn keep_booked(&mut self, request: &Request, part: usize, turn: RedisReservation) {
        self.outlook = Some(Outlook::after(turn.due(), &request.edition(part), request.cost(part)));
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

fn lock(turn: &Handover) -> MutexGuard<'_, Option<RedisReservation>> {
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fetches a turn, unless it is gone.
pub(super) fn take(turn: &Handover) -> Option<RedisReservation> {
    lock(turn).take()
}
