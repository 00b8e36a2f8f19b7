//! One bucket. Waiting at it is in [`gate`].

mod gate;

use crate::{
    clock::{Clock, SystemClock},
    decision::Status,
    limit::Limit,
    step::{
        Ask, Mode, Moment, State, Step,
        concurrency::PermitId,
        narrow::{Narrow, Outgrown},
        taken::Taken,
    },
    store::Numbers,
    sync::{
        AtomicBool, AtomicU64, Backoff, LOCKED, Mutex, MutexGuard,
        Ordering::{Acquire, Relaxed, Release},
        Word, hold,
    },
    time::Time,
    wait::{Bucket, BucketChange, WaitQueues, change},
};
use std::time::Duration;

/// One bucket of any limit, shared by reference.
///
/// A token or leaky bucket whose state fits one word is decided without a lock where it refuses, and with one atomic
/// exchange where it charges. Every other limit takes a mutex for some tens of nanoseconds.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, ManualClock, Rate, TokenBucket};
///
/// let clock = ManualClock::new();
/// let limiter = Limiter::with_clock(TokenBucket::new(Rate::per_second(2)?, 1)?, clock.clone());
/// assert!(limiter.check().is_allow());
///
/// let refused = limiter.check();
/// assert_eq!(refused.retry_after(), Some(Duration::from_millis(500)));
///
/// clock.advance(Duration::from_millis(500));
/// assert!(limiter.check().is_allow());
/// # Ok::<(), tollgate::LimitError>(())
/// ```
pub struct Limiter<C = SystemClock> {
    clock: C,
    birth: Time,
    numbers: Numbers,
    hot: Hot,
    /// Whether the word stays locked, because not it alone decides: the state is not one word, or there is a grant, a ban or
    /// a queue. Changed under the mutex.
    parked: AtomicBool,
    rest: Mutex<Rest>,
    /// Counts resets and changes: what was taken before one is not given back after it.
    epoch: AtomicU64,
    /// Counts what came back.
    returned: AtomicU64,
    /// Who waits.
    queues: WaitQueues,
}

/// What every charge writes, on a cache line of its own: who reads the numbers is not disturbed.
#[repr(align(64))]
struct Hot {
    word: AtomicU64,
    /// When the last charge was made: an earlier time counts as that.
    latest: AtomicU64,
}

/// What is not in the word.
struct Rest {
    /// The word, while it is parked.
    word: u64,
    /// The state, where it is not one word.
    state: State,
    granted: u32,
    banned_until: Time,
    next_permit: PermitId,
}

impl<C> std::fmt::Debug for Limiter<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limiter").field("birth", &self.birth).finish_non_exhaustive()
    }
}

impl Limiter {
    /// A limiter on the machine's clock, born now.
    #[must_use]
    pub fn new(limit: impl Into<Limit>) -> Self {
        Self::with_clock(limit, SystemClock::new())
    }
}

impl<C: Clock> Limiter<C> {
    /// A limiter on this clock, born now.
    #[must_use]
    pub fn with_clock(limit: impl Into<Limit>, clock: C) -> Self {
        let limit = limit.into();
        let state = Step::new(&limit).unseen();
        let birth = clock.now();
        Self {
            birth,
            clock,
            numbers: Numbers::new(&limit, birth),
            hot: Hot { word: AtomicU64::new(LOCKED), latest: AtomicU64::new(0) },
            // The first to come finds out whether the word can be given back.
            parked: AtomicBool::new(true),
            rest: Mutex::new(Rest {
                word: 0,
                state,
                granted: 0,
                banned_until: Time::ZERO,
                next_permit: PermitId::FIRST,
            }),
            epoch: AtomicU64::new(0),
            returned: AtomicU64::new(0),
            queues: WaitQueues::default(),
        }
    }

    /// Charges one unit.
    #[inline(always)]
    pub fn check(&self) -> Status {
        self.check_n(1)
    }

    /// Charges `cost` units; all of them, or none.
    #[inline(always)]
    pub fn check_n(&self, cost: u32) -> Status {
        let now = self.clock.now();
        if C::MONOTONIC { self.decide(cost, now, Mode::Charge) } else { self.check_at(cost, now) }
    }

    /// Charges at the caller's own time, a point on this limiter's clock. A time before one already used counts as that
    /// one.
    #[inline(always)]
    pub fn check_at(&self, cost: u32, now: Time) -> Status {
        let now = self.never_back(now);
        let status = self.decide(cost, now, Mode::Charge);
        if !status.is_deny() && cost > 0 {
            // Racing threads may leave the earlier of two times; both were now.
            self.hot.latest.store(now.as_nanos(), Relaxed);
        }
        status
    }

    /// What [`check_n`](Self::check_n) would answer, charging nothing.
    pub fn peek(&self, cost: u32) -> Status {
        self.decide(cost, self.never_back(self.clock.now()), Mode::Peek)
    }

    /// Takes up to `units` off the newest live use.
    pub fn refund(&self, units: u32) {
        self.change_bucket(BucketChange::MoreRoom, || {
            self.update(|step, state, at| step.refund(state, at, units));
        });
    }

    /// Forgets what was used. A grant or a ban stays.
    pub fn reset(&self) {
        let reset = |step: &Step, state: &mut State, _| {
            *state = step.unseen();
            self.epoch.fetch_add(1, Release);
        };
        self.change_bucket(BucketChange::MoreRoom, || self.update(reset));
    }

    /// Gives `units` above the limit, until used; they are spent before the limit's own.
    pub fn grant(&self, units: u32) {
        self.change_bucket(BucketChange::MoreRoom, || {
            let mut rest = self.rest();
            rest.granted = rest.granted.saturating_add(units);
            self.with_state(&mut rest, self.clock.now(), |_, _, _| ());
        });
    }

    /// Refuses everything for this long from now. Zero lifts the ban.
    pub fn ban(&self, lasting: Duration) {
        self.change_bucket(BucketChange::Unknown, || {
            let mut rest = self.rest();
            let now = self.never_back(self.clock.now());
            rest.banned_until = now + lasting;
            self.with_state(&mut rest, now, |_, _, _| ());
        });
    }

    /// Gives back what a permit holds; how many units came back.
    pub fn leave(&self, permit: PermitId) -> u32 {
        self.change_bucket(BucketChange::MoreRoom, || self.leave_slots(permit))
    }

    fn leave_slots(&self, permit: PermitId) -> u32 {
        self.update(|_, state, at| match state {
            State::Holders(holders) => holders.leave(at, permit),
            _ => 0,
        })
    }

    /// Lets a permit hold its units for another `max_hold`. Whether it still held them.
    pub fn renew(&self, permit: PermitId) -> bool {
        self.update(|step, state, at| match (step, state) {
            (Step::Concurrency(it), State::Holders(holders)) => it.renew(holders, at, permit),
            _ => false,
        })
    }

    /// Changes the limit's numbers, keeping what was consumed.
    pub fn change(&self, to: impl Into<Limit>) {
        let step = Step::new(&to.into());
        self.change_bucket(BucketChange::Unknown, || {
            let mut rest = self.rest();
            self.turn_over(&mut rest, step, self.never_back(self.clock.now()), || {
                self.epoch.fetch_add(1, Release);
            });
        });
    }

    /// Changes something, and lets those who wait know.
    fn change_bucket<R>(&self, effect: BucketChange, act: impl FnOnce() -> R) -> R {
        change(self, &Bucket::Only, effect, act)
    }

    /// The clock that decides.
    #[must_use]
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// The short way where there is one: no lock but the word's own, no mutex.
    #[inline(always)]
    fn decide(&self, cost: u32, now: Time, mode: Mode) -> Status {
        match self.try_word(cost, now, mode) {
            Ok(status) => status,
            Err(why) => self.decide_slowly(why, cost, now, mode),
        }
    }

    #[inline(always)]
    fn try_word(&self, cost: u32, now: Time, mode: Mode) -> Result<Status, Miss> {
        let (edition, narrow) = self.numbers.glance();
        let word = Word(&self.hot.word);
        let value = word.glance().ok_or(Miss::Busy)?;
        let (status, next) = narrow.ask_quickly(value, now, cost).ok_or(Miss::Long)?;
        if !status.is_allow() || cost == 0 || mode == Mode::Peek {
            return if self.numbers.is_current(edition) { Ok(status) } else { Err(Miss::Busy) };
        }
        if !word.try_lock(value) {
            return Err(Miss::Busy);
        }
        if !self.numbers.is_current(edition) {
            word.unlock(value);
            return Err(Miss::Busy);
        }
        word.unlock(next);
        Ok(status)
    }

    #[cold]
    fn decide_slowly(&self, mut why: Miss, cost: u32, now: Time, mode: Mode) -> Status {
        let mut backoff = Backoff::default();
        while why == Miss::Busy && !self.parked.load(Acquire) {
            backoff.wait();
            match self.try_word(cost, now, mode) {
                Ok(status) => return status,
                Err(again) => why = again,
            }
        }
        if self.queues.any() {
            return self.decide_behind_queue(cost, now, mode);
        }
        self.decide_locked(&mut self.rest(), cost, None, now, mode).0
    }

    /// The long way, under the mutex.
    #[cold]
    fn decide_locked(
        &self,
        rest: &mut Rest,
        cost: u32,
        up_to: Option<u64>,
        now: Time,
        mode: Mode,
    ) -> (Status, Taken) {
        let now = self.never_back(now);
        let banned_for = rest.banned_until.nanos_since(now);
        let paid = cost.min(rest.granted);
        let permit = rest.next_permit;
        let (mut status, mut taken) = self.with_state(rest, now, |step, state, at| {
            let ask = Ask { at, cost: cost - paid, up_to };
            if banned_for > 0 && cost > 0 {
                let idle = step.ask(state, &Ask { cost: 0, ..ask }).status;
                return (step.ask(state, &ask).status.banned(idle, banned_for), Taken::default());
            }
            let mut answer = step.ask_to(mode, state, &ask);
            let taken = step.taken(state, &ask, &answer);
            if !answer.status.is_deny() && ask.cost > 0 && mode.charges() {
                step.commit(state, &ask, &answer, permit);
                answer.status.permit = matches!(step, Step::Concurrency(_)).then_some(permit);
            }
            (answer.status, taken)
        });
        (taken.granted, taken.epoch, taken.returned) =
            (paid, self.epoch.load(Acquire), self.returned.load(Acquire));
        let left = if status.is_deny() { rest.granted } else { rest.granted - paid };
        status.add_remaining(left);
        if !status.is_deny() && cost > 0 && mode.charges() {
            self.hot.latest.fetch_max(now.as_nanos(), Relaxed);
            rest.granted = left;
            rest.next_permit = permit.next();
        }
        (status, taken)
    }

    fn update<R>(&self, change: impl FnOnce(&Step, &mut State, Moment) -> R) -> R {
        self.with_state(&mut self.rest(), self.clock.now(), change)
    }

    /// Runs `change` on the state, wherever it is.
    fn with_state<R>(
        &self,
        rest: &mut Rest,
        now: Time,
        change: impl FnOnce(&Step, &mut State, Moment) -> R,
    ) -> R {
        let now = self.never_back(now);
        self.rebase(rest, now);
        let word = self.take_word(rest);
        let (_, narrow) = self.numbers.read();
        let mut state = match narrow {
            Some(narrow) => State::Words(narrow.widen(word, self.birth)),
            None => std::mem::replace(&mut rest.state, State::Words([0, 0])),
        };
        let changed = change(&self.numbers.step(), &mut state, self.moment(now));
        self.put_word(rest, narrow, state, now);
        changed
    }

    /// The word, locked; parked words already are.
    fn take_word(&self, rest: &Rest) -> u64 {
        if self.parked.load(Acquire) { rest.word } else { Word(&self.hot.word).lock() }
    }

    /// Writes the state. The word is given back where nothing but the word decides, and stays locked (parked) where it does
    /// not: then everybody comes here.
    fn put_word(&self, rest: &mut Rest, narrow: Option<Narrow>, state: State, now: Time) {
        rest.word = match (narrow, &state) {
            (Some(narrow), State::Words(words)) => narrow.at_least_unseen(narrow.narrow(*words, self.birth)),
            _ => 0,
        };
        rest.state = state;
        let alone = rest.granted == 0 && rest.banned_until <= now && !self.queues.any();
        let parks = !(alone && narrow.is_some_and(|narrow| narrow.is_past_unseen(now)));
        self.parked.store(parks, Release);
        if !parks {
            Word(&self.hot.word).unlock(rest.word);
        }
    }

    /// Moves the base of the word along before the line outgrows it.
    fn rebase(&self, rest: &mut Rest, now: Time) {
        let (_, narrow) = self.numbers.read();
        if narrow.is_some_and(|narrow| narrow.ask(0, now, 0, None) == Err(Outgrown)) {
            let step = Step::clone(&self.numbers.step());
            self.turn_over(rest, step, now, || ());
        }
    }

    /// Turns the state over; `meanwhile` is run while nobody can charge.
    fn turn_over(&self, rest: &mut Rest, step: Step, now: Time, meanwhile: impl FnOnce()) {
        let at = self.moment(now);
        let word = self.take_word(rest);
        // The line begins here: a time before it counts as this one.
        self.hot.latest.fetch_max(now.as_nanos(), Relaxed);
        self.numbers.change(step, Some(at.since_birth), |old, new| {
            meanwhile();
            let mut state = match &old.narrow {
                Some(narrow) => State::Words(narrow.widen(word, self.birth)),
                None => std::mem::replace(&mut rest.state, State::Words([0, 0])),
            };
            new.step.convert(&old.step, &mut state, at);
            rest.state = state;
        });
        let state = std::mem::replace(&mut rest.state, State::Words([0, 0]));
        self.put_word(rest, self.numbers.read().1, state, now);
    }

    #[inline]
    fn never_back(&self, now: Time) -> Time {
        now.max(Time::from_nanos(self.hot.latest.load(Relaxed)))
    }

    fn moment(&self, now: Time) -> Moment {
        Moment::new(now.nanos_since(self.birth), self.clock.unix(now))
    }

    fn rest(&self) -> MutexGuard<'_, Rest> {
        hold(&self.rest)
    }
}

/// Why the short way did not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Miss {
    /// Another thread is at the word for a moment, or it is parked.
    Busy,
    /// The answer takes more thought: a wait, a never, a line outgrown.
    Long,
}
