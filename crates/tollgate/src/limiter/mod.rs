//! One bucket. Waiting at it is in [`gate`].

mod gate;

pub(crate) use gate::SingleBucket;

use crate::{
    clock::{Clock, SystemClock},
    decision::Status,
    limit::Limit,
    slot::{ChargeRequest, LockedSlot, Miss, Parameters, SingleWord, SlotCounters, SlotExtras, SlotState},
    step::{Mode, Moment, State, Step, concurrency::PermitId, narrow::Narrow, taken::Taken},
    sync::{
        AtomicBool, AtomicU64, Backoff, LOCKED, Mutex,
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
    parameters: Parameters,
    hot: Hot,
    /// Whether the word stays locked, because it alone does not decide: the state is not one word, or there is a grant, a ban
    /// or a queue. Changed under the mutex.
    parked: AtomicBool,
    rest: Mutex<Rest>,
    counters: SlotCounters,
    permits: AtomicU64,
    queues: WaitQueues,
}

/// What every charge writes, on a cache line of its own, so that readers of the parameters are not disturbed.
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
    extras: SlotExtras,
}

impl<C> std::fmt::Debug for Limiter<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limiter").field("birth", &self.parameters.birth()).finish_non_exhaustive()
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
        Self {
            parameters: Parameters::new(&limit, clock.now()),
            clock,
            hot: Hot { word: AtomicU64::new(LOCKED), latest: AtomicU64::new(0) },
            // The first to come finds out whether the word can be given back.
            parked: AtomicBool::new(true),
            rest: Mutex::new(Rest { word: 0, state, extras: SlotExtras::default() }),
            counters: SlotCounters::default(),
            permits: AtomicU64::new(0),
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
        self.change_bucket(BucketChange::MoreRoom, |slot| slot.refund(units));
    }

    /// Forgets what was used. A grant or a ban stays.
    pub fn reset(&self) {
        self.change_bucket(BucketChange::MoreRoom, |slot| slot.reset());
    }

    /// Gives `units` above the limit, until used; they are spent before the limit's own.
    pub fn grant(&self, units: u32) {
        self.change_bucket(BucketChange::MoreRoom, |slot| slot.grant(units));
    }

    /// Refuses everything for this long from now. Zero lifts the ban.
    pub fn ban(&self, lasting: Duration) {
        self.change_bucket(BucketChange::Unknown, |slot| slot.ban(lasting));
    }

    /// Gives back what a permit holds; how many units came back.
    pub fn leave(&self, permit: PermitId) -> u32 {
        self.change_bucket(BucketChange::MoreRoom, |slot| slot.leave(permit))
    }

    /// Lets a permit hold its units for another `max_hold`. Whether it still held them.
    pub fn renew(&self, permit: PermitId) -> bool {
        self.with_slot(self.clock.now(), |slot| slot.renew(permit)).unwrap_or(false)
    }

    /// Changes the limit's numbers, keeping what was consumed.
    pub fn change(&self, to: impl Into<Limit>) {
        let step = Step::new(&to.into());
        change(self, &Bucket::Only, BucketChange::Unknown, || {
            let mut rest = hold(&self.rest);
            self.turn_over(&mut rest, step, self.never_back(self.clock.now()), || {
                self.parameters.count_change();
            });
        });
    }

    /// Changes the bucket, and lets those who wait know.
    fn change_bucket<R>(&self, effect: BucketChange, act: impl FnOnce(&mut LockedSlot<'_>) -> R) -> R {
        change(self, &Bucket::Only, effect, || self.with_slot(self.clock.now(), act))
    }

    /// The clock that decides.
    #[must_use]
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Without a lock where the word alone decides.
    #[inline(always)]
    fn decide(&self, cost: u32, now: Time, mode: Mode) -> Status {
        match self.try_single_word(cost, now, mode) {
            Ok(status) => status,
            Err(why) => self.decide_locked(why, cost, now, mode),
        }
    }

    #[inline(always)]
    fn try_single_word(&self, cost: u32, now: Time, mode: Mode) -> Result<Status, Miss> {
        let (version, narrow) = self.parameters.glance();
        let word = Word(&self.hot.word);
        // Unless another thread holds it, or it is parked.
        let value = word.glance().ok_or(Miss::Busy)?;
        let word = SingleWord { parameters: &self.parameters, version, narrow, word, value };
        word.try_charge(cost, now, mode, || true)
    }

    #[cold]
    fn decide_locked(&self, mut why: Miss, cost: u32, now: Time, mode: Mode) -> Status {
        let mut backoff = Backoff::default();
        while why == Miss::Busy && !self.parked.load(Acquire) {
            backoff.wait();
            match self.try_single_word(cost, now, mode) {
                Ok(status) => return status,
                Err(again) => why = again,
            }
        }
        if self.queues.any() {
            return self.decide_behind_queue(cost, now, mode);
        }
        self.charge_locked(&ChargeRequest { cost: cost.into(), up_to: None, mode }, now, None)
    }

    /// Charges under the mutex. `taken` is for what the charge consumes.
    fn charge_locked(&self, request: &ChargeRequest, now: Time, taken: Option<&mut Taken>) -> Status {
        self.with_slot(now, |slot| {
            let next_permit = || PermitId::numbered(self.permits.fetch_add(1, Relaxed));
            let status = slot.charge(request, next_permit, taken);
            if request.mode.charges() && request.cost > 0 && !status.is_deny() {
                self.hot.latest.fetch_max(slot.now.as_nanos(), Relaxed);
            }
            status
        })
    }

    /// Runs `act` on the slot under its lock.
    #[inline(always)]
    fn with_slot<R>(&self, now: Time, act: impl FnOnce(&mut LockedSlot<'_>) -> R) -> R {
        let rest = &mut *hold(&self.rest);
        let now = self.never_back(now);
        let mut narrow = self.parameters.read().1;
        if narrow.is_some_and(|narrow| narrow.is_outgrown(now)) {
            self.turn_over(rest, Step::clone(&self.parameters.step()), now, || ());
            narrow = self.parameters.read().1;
        }
        let word = self.take_word(rest);
        let state = match (&narrow, &mut rest.state) {
            (Some(_), _) => SlotState::Word(word),
            (None, State::Words(words)) => SlotState::Words(*words),
            (None, state) => SlotState::Owned(std::mem::replace(state, State::Words([0, 0]))),
        };
        let parameters = (&self.parameters, narrow.as_ref());
        let contents = (state, rest.extras);
        let mut slot =
            LockedSlot::new(parameters, None, &self.counters, contents, now, || self.clock.unix(now));
        let result = act(&mut slot);
        rest.extras = slot.extras;
        self.put_state(rest, narrow.as_ref(), slot.state, now);
        result
    }

    /// The word, locked; parked words already are.
    fn take_word(&self, rest: &Rest) -> u64 {
        if self.parked.load(Acquire) { rest.word } else { Word(&self.hot.word).lock() }
    }

    /// Writes the state. The word is given back where it alone decides, and stays locked (parked) where it does not: then every
    /// charge comes to the mutex.
    #[inline(always)]
    fn put_state(&self, rest: &mut Rest, narrow: Option<&Narrow>, state: SlotState<'_>, now: Time) {
        match state {
            SlotState::Word(word) => rest.word = narrow.map_or(word, |narrow| narrow.at_least_unseen(word)),
            SlotState::Words(words) => rest.state = State::Words(words),
            SlotState::Owned(state) => rest.state = state,
            SlotState::Kept(_) => {}
        }
        rest.extras.banned_until = rest.extras.banned_until.filter(|until| *until > now);
        let is_alone = rest.extras == SlotExtras::default() && !self.queues.any();
        let parks = !(is_alone && narrow.is_some_and(|narrow| narrow.is_past_unseen(now)));
        self.parked.store(parks, Release);
        if !parks {
            Word(&self.hot.word).unlock(rest.word);
        }
    }

    /// Writes the state under other parameters, or under the same counted from another base. `meanwhile` runs while nothing can
    /// be charged.
    fn turn_over(&self, rest: &mut Rest, step: Step, now: Time, meanwhile: impl FnOnce()) {
        let at = Moment::new(now.nanos_since(self.parameters.birth()), self.clock.unix(now));
        let word = self.take_word(rest);
        // The line begins here: a time before it counts as this one.
        self.hot.latest.fetch_max(now.as_nanos(), Relaxed);
        let mut turned = (None, SlotState::Words([0, 0]));
        self.parameters.change(step, Some(at.since_birth), |old, new| {
            meanwhile();
            let mut state = match &old.narrow {
                Some(narrow) => State::Words(narrow.widen(word, old.birth)),
                None => std::mem::replace(&mut rest.state, State::Words([0, 0])),
            };
            new.step.convert(&old.step, &mut state, at);
            turned = (new.narrow, SlotState::of(state, new.narrow.as_ref(), new.birth));
        });
        self.put_state(rest, turned.0.as_ref(), turned.1, now);
    }

    #[inline]
    fn never_back(&self, now: Time) -> Time {
        now.max(Time::from_nanos(self.hot.latest.load(Relaxed)))
    }
}
