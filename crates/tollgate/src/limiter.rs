//! One bucket.

use crate::{
    clock::{Clock, SystemClock},
    decision::{DecidedBy, Status},
    limit::Limit,
    step::{Ask, Moment, State, Step, concurrency::PermitId, narrow::Outgrown},
    store::Numbers,
    sync::{AtomicU64, Backoff, Word},
    time::{Time, nanos},
};
use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    time::Duration,
};

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
    /// Whether anything but the word decides: a grant, a ban.
    extra: AtomicBool,
    rest: Mutex<Rest>,
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
    state: State,
    granted: u32,
    banned_until: Time,
    permits: u64,
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
        Self {
            birth: clock.now(),
            clock,
            numbers: Numbers::new(&limit),
            hot: Hot { word: AtomicU64::new(0), latest: AtomicU64::new(0) },
            extra: AtomicBool::new(false),
            rest: Mutex::new(Rest { state, granted: 0, banned_until: Time::ZERO, permits: 0 }),
        }
    }

    /// Charges one unit.
    #[inline]
    pub fn check(&self) -> Status {
        self.check_at(1, self.clock.now())
    }

    /// Charges `cost` units; all of them, or none.
    #[inline]
    pub fn check_n(&self, cost: u32) -> Status {
        self.check_at(cost, self.clock.now())
    }

    /// Charges at the caller's own time, a point on this limiter's clock. A time before one already used counts as that
    /// one.
    #[inline]
    pub fn check_at(&self, cost: u32, now: Time) -> Status {
        self.decide(cost, None, now, Charging::Yes)
    }

    /// What [`check_n`](Self::check_n) would answer, charging nothing.
    pub fn peek(&self, cost: u32) -> Status {
        self.decide(cost, None, self.clock.now(), Charging::No)
    }

    /// Books `cost` units, waiting up to `up_to` for the turn; a longer wait is a refusal that charges nothing.
    pub fn reserve(&self, cost: u32, up_to: Duration) -> Status {
        self.decide(cost, Some(nanos(up_to)), self.clock.now(), Charging::Yes)
    }

    /// Takes up to `units` off the newest live use.
    pub fn refund(&self, units: u32) {
        self.update(|step, state, at| step.refund(state, at, units));
    }

    /// Forgets what was used. A grant or a ban stays.
    pub fn reset(&self) {
        self.update(|step, state, _| *state = step.unseen());
    }

    /// Gives `units` above the limit, until used; they are spent before the limit's own.
    pub fn grant(&self, units: u32) {
        let mut rest = self.rest();
        rest.granted = rest.granted.saturating_add(units);
        self.extra.store(true, Release);
    }

    /// Refuses everything for this long from now. Zero lifts the ban.
    pub fn ban(&self, lasting: Duration) {
        let mut rest = self.rest();
        rest.banned_until = self.clock.now() + lasting;
        self.extra.store(true, Release);
    }

    /// Enters a concurrency limit. Where the status allows, the permit is to be given back to [`leave`](Self::leave).
    pub fn enter(&self, units: u32) -> (Status, Option<PermitId>) {
        let now = self.clock.now();
        let mut rest = self.rest();
        let status = self.decide_at_rest(&mut rest, units, None, now, Charging::Yes);
        let entered = !status.is_deny() && units > 0 && matches!(rest.state, State::Holders(_));
        (status, entered.then_some(PermitId(rest.permits)))
    }

    /// Gives back what a permit holds; how many units came back.
    pub fn leave(&self, permit: PermitId) -> u32 {
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
        let mut rest = self.rest();
        self.turn_over(&mut rest, step, self.never_back(self.clock.now()));
    }

    /// The clock that decides.
    #[must_use]
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    #[inline(always)]
    fn decide(&self, cost: u32, up_to: Option<u64>, now: Time, charging: Charging) -> Status {
        match self.try_word(cost, up_to, now, charging) {
            Some(status) => status,
            None => self.decide_slowly(cost, up_to, now, charging),
        }
    }

    /// The short way; `None` where the state is not one word, or somebody else was at it.
    #[inline(always)]
    fn try_word(&self, cost: u32, up_to: Option<u64>, now: Time, charging: Charging) -> Option<Status> {
        if self.extra.load(Acquire) {
            return None;
        }
        let (edition, narrow) = self.numbers.glance();
        let word = Word(&self.hot.word);
        let value = word.glance()?;
        let now = self.never_back(now);
        let (status, next) = narrow?.ask(value, now.nanos_since(self.birth), cost, up_to).ok()?;
        if status.is_deny() || cost == 0 || charging == Charging::No {
            return self.numbers.is_current(edition).then_some(status);
        }
        if !word.try_lock(value) {
            return None;
        }
        if !self.numbers.is_current(edition) {
            word.unlock(value);
            return None;
        }
        self.hot.latest.store(now.as_nanos(), Relaxed);
        word.unlock(next);
        Some(status)
    }

    #[cold]
    fn decide_slowly(&self, cost: u32, up_to: Option<u64>, now: Time, charging: Charging) -> Status {
        let mut backoff = Backoff::default();
        while !self.extra.load(Acquire) {
            let (_, Some(narrow)) = self.numbers.read() else { break };
            let since_birth = self.never_back(now).nanos_since(self.birth);
            if narrow.ask(0, since_birth, 0, None) == Err(Outgrown) {
                self.rebase(self.never_back(now));
            }
            backoff.wait();
            if let Some(status) = self.try_word(cost, up_to, now, charging) {
                return status;
            }
        }
        self.decide_at_rest(&mut self.rest(), cost, up_to, now, charging)
    }

    /// The long way, under the mutex.
    #[cold]
    fn decide_at_rest(
        &self,
        rest: &mut Rest,
        cost: u32,
        up_to: Option<u64>,
        now: Time,
        charging: Charging,
    ) -> Status {
        let now = self.never_back(now);
        let banned_for = rest.banned_until.nanos_since(now);
        let paid = cost.min(rest.granted);
        let permit = PermitId(rest.permits + 1);
        let mut status = self.with_state(rest, now, |step, state, at| {
            let ask = Ask { at, cost: cost - paid, up_to };
            if banned_for > 0 && cost > 0 {
                let idle = step.ask(state, &Ask { cost: 0, ..ask }).status;
                return idle.refused(banned_for, DecidedBy::Ban);
            }
            let answer = step.ask(state, &ask);
            if !answer.status.is_deny() && ask.cost > 0 && charging == Charging::Yes {
                step.commit(state, &ask, &answer, permit);
            }
            answer.status
        });
        let left = if status.is_deny() { rest.granted } else { rest.granted - paid };
        status.add_remaining(left);
        if !status.is_deny() && charging == Charging::Yes {
            self.hot.latest.fetch_max(now.as_nanos(), Relaxed);
            rest.granted = left;
            rest.permits = permit.0;
        }
        if rest.granted == 0 && banned_for == 0 {
            self.extra.store(false, Release);
        }
        status
    }

    fn update<R>(&self, change: impl FnOnce(&Step, &mut State, Moment) -> R) -> R {
        self.with_state(&mut self.rest(), self.never_back(self.clock.now()), change)
    }

    /// Runs `change` on the state, wherever it is.
    fn with_state<R>(
        &self,
        rest: &mut Rest,
        now: Time,
        change: impl FnOnce(&Step, &mut State, Moment) -> R,
    ) -> R {
        self.rebase_at_rest(rest, now);
        let step = self.numbers.step();
        let at = self.moment(now);
        let (_, Some(narrow)) = self.numbers.read() else { return change(&step, &mut rest.state, at) };
        let word = Word(&self.hot.word).lock();
        let mut state = State::Words(narrow.widen(word));
        let changed = change(&step, &mut state, at);
        Word(&self.hot.word).unlock(match state {
            State::Words(words) => narrow.narrow(words),
            _ => word,
        });
        changed
    }

    #[cold]
    fn rebase(&self, now: Time) {
        self.rebase_at_rest(&mut self.rest(), now);
    }

    fn rebase_at_rest(&self, rest: &mut Rest, now: Time) {
        let (_, narrow) = self.numbers.read();
        let since_birth = now.nanos_since(self.birth);
        if narrow.is_some_and(|narrow| narrow.ask(0, since_birth, 0, None) == Err(Outgrown)) {
            let step = Step::clone(&self.numbers.step());
            self.turn_over(rest, step, now);
        }
    }

    fn turn_over(&self, rest: &mut Rest, step: Step, now: Time) {
        let at = self.moment(now);
        self.numbers.change(step, Some(at.since_birth), |old, new| {
            let word = Word(&self.hot.word).lock();
            let mut state = match &old.narrow {
                Some(narrow) => State::Words(narrow.widen(word)),
                None => std::mem::replace(&mut rest.state, State::Words([0, 0])),
            };
            new.step.convert(&old.step, &mut state, at);
            Word(&self.hot.word).unlock(match (&new.narrow, &state) {
                (Some(narrow), State::Words(words)) => narrow.narrow(*words),
                _ => 0,
            });
            rest.state = state;
        });
    }

    #[inline]
    fn never_back(&self, now: Time) -> Time {
        now.max(Time::from_nanos(self.hot.latest.load(Relaxed)))
    }

    fn moment(&self, now: Time) -> Moment {
        Moment::new(now.nanos_since(self.birth), self.clock.unix(now))
    }

    fn rest(&self) -> MutexGuard<'_, Rest> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Charging {
    Yes,
    No,
}
