//! The shape that users of Guava's `RateLimiter` know: permits a second as a number, `acquire`, `try_acquire`, `set_rate`.
//!
//! The arithmetic is [`smooth`](crate::step::smooth)'s, whose unit is the microsecond: times are cut to whole ones on the
//! way in, as there. Up to 1000 permits a second every wait is Guava's, to the microsecond; above that the long-run rate
//! is exact, where Guava's is not. What a caller books is plain data under one mutex, which nobody holds while asleep.
//!
//! It knows no keys and cannot be part of a set; a [`SmoothBursty`] or [`SmoothWarmingUp`] in a store can.

use crate::{
    clock::{Clock, SystemClock, Timer},
    decision::Verdict,
    limit::{SmoothBursty, SmoothWarmingUp},
    step::{Ask, Moment, Words, smooth::Smooth},
    sync::{Mutex, hold},
    time::{Time, nanos},
};
use std::{fmt, num::NonZeroU32, time::Duration};
use thiserror::Error;

/// Hands out permits at a rate, and makes whoever asks too early wait.
///
/// A caller never waits for their own permits but for those of the callers before them: a thousand at once pass at once,
/// and the next caller waits for all of them.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{ManualClock, RateLimiter};
///
/// let clock = ManualClock::new();
/// let limiter = RateLimiter::create(5.0)?.with_clock(clock.clone());
/// assert_eq!(limiter.acquire_n(5)?, Duration::ZERO); // at once; who comes next waits for it
/// assert!(!limiter.try_acquire_for(Duration::from_millis(999)), "a second is more than that");
/// clock.advance(Duration::from_secs(1));
/// assert!(limiter.try_acquire());
/// # Ok::<(), tollgate::RateLimiterError>(())
/// ```
///
/// What Guava fixes can be chosen: make it from a [`SmoothBursty`] with another burst or a full start, or from a
/// [`SmoothWarmingUp`] with another cold factor.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Rate, RateLimiter, SmoothBursty};
///
/// let limit = SmoothBursty::new(Rate::per_second(5)?).with_max_burst(Duration::from_secs(10))?.with_initial(50)?;
/// let limiter = RateLimiter::from(limit);
/// assert!(limiter.acquire_n(50)?.is_zero() && limiter.try_acquire(), "fifty were there, and this one is on credit");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Other than in Guava, an `acquire` that is given up before its turn gives everything back if nobody acquired after it: drop
/// the future of [`acquire_async`](Self::acquire_async), and the limiter is as if it had not been asked. Those who acquired
/// after it keep their turns, so then nothing comes back.
pub struct RateLimiter<C = SystemClock> {
    clock: C,
    birth: Time,
    shape: Shape,
    state: Mutex<State>,
}

/// What a change of rate leaves as it is.
#[derive(Clone, Copy)]
enum Shape {
    /// Seconds of the rate that can be stored, and permits stored at first.
    Bursty { max_burst: f64, initial: f64 },
    /// Microseconds until warm, and how much dearer a cold permit is.
    WarmingUp { warmup: f64, cold_factor: f64 },
}

struct State {
    smooth: Smooth,
    /// How often the rate was set.
    changes: u64,
    words: Words,
    /// The latest microsecond anybody asked at: an earlier time counts as that one.
    latest: u64,
}

/// More nanoseconds than any wait has, so that there always is a turn.
const FOR_EVER: u64 = u64::MAX;

/// Why a limiter cannot be made, changed or asked so.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum RateLimiterError {
    /// Zero, below zero, or not a number. An infinite rate is one: it never waits.
    #[error("a rate must be a number greater than zero, not {permits_per_second}")]
    Rate {
        /// The rate that was asked for.
        permits_per_second: f64,
    },
    /// Nothing is asked for.
    #[error("permits must be greater than zero")]
    NoPermits,
}

impl RateLimiter {
    /// A limiter that stores up to one second of unused permits, none at first.
    ///
    /// # Errors
    /// Where the rate is not a number greater than zero.
    pub fn create(permits_per_second: f64) -> Result<Self, RateLimiterError> {
        let shape = Shape::Bursty { max_burst: 1.0, initial: 0.0 };
        Ok(Self::new(shape, shape.at(checked(permits_per_second)?), SystemClock::new()))
    }

    /// A limiter that is slow after rest, at first too: permits cost three times the interval when cold, and it takes
    /// `warmup` of use until they come at the full rate.
    ///
    /// Without any warm-up it stores nothing: every permit takes its interval, and rest buys none. (Guava takes a zero as
    /// well, and stops limiting for good at the first rest.)
    ///
    /// # Errors
    /// Where the rate is not a number greater than zero.
    pub fn create_warming_up(permits_per_second: f64, warmup: Duration) -> Result<Self, RateLimiterError> {
        let shape = Shape::WarmingUp { warmup: warmup.as_micros() as f64, cold_factor: 3.0 };
        Ok(Self::new(shape, shape.at(checked(permits_per_second)?), SystemClock::new()))
    }
}

impl From<SmoothBursty> for RateLimiter {
    fn from(limit: SmoothBursty) -> Self {
        let shape = Shape::Bursty { max_burst: limit.max_burst_seconds(), initial: limit.initial.into() };
        Self::new(shape, shape.at(limit.rate.units_per_second()), SystemClock::new())
    }
}

impl From<SmoothWarmingUp> for RateLimiter {
    fn from(limit: SmoothWarmingUp) -> Self {
        let shape = Shape::WarmingUp { warmup: limit.warmup as f64 / 1e3, cold_factor: limit.cold_factor };
        Self::new(shape, shape.at(limit.rate.units_per_second()), SystemClock::new())
    }
}

impl<C: Clock> RateLimiter<C> {
    fn new(shape: Shape, smooth: Smooth, clock: C) -> Self {
        // Written out, since a change of rate treats a state never used as any other.
        let state = State { smooth, changes: 0, words: smooth.born(), latest: 0 };
        Self { birth: clock.now(), clock, shape, state: Mutex::new(state) }
    }

    /// The same limiter by another clock, as new.
    #[must_use]
    pub fn with_clock<D: Clock>(self, clock: D) -> RateLimiter<D> {
        let smooth = hold(&self.state).smooth;
        RateLimiter::new(self.shape, smooth, clock)
    }

    /// Takes a permit, and sleeps until its turn. Answers how long that was.
    pub fn acquire(&self) -> Duration {
        self.block(NonZeroU32::MIN)
    }

    /// Takes so many permits, and sleeps until their turn. Answers how long that was.
    ///
    /// # Errors
    /// Where `permits` is zero.
    pub fn acquire_n(&self, permits: u32) -> Result<Duration, RateLimiterError> {
        Ok(self.block(some(permits)?))
    }

    /// Takes a permit if its turn is now.
    #[must_use = "without the permit, do not go on"]
    pub fn try_acquire(&self) -> bool {
        self.try_acquire_for(Duration::ZERO)
    }

    /// Takes so many permits if their turn is now.
    ///
    /// # Errors
    /// Where `permits` is zero.
    pub fn try_acquire_n(&self, permits: u32) -> Result<bool, RateLimiterError> {
        self.try_acquire_n_for(permits, Duration::ZERO)
    }

    /// Takes a permit and sleeps until its turn, if that comes within `timeout`; answers no at once if not.
    #[must_use = "without the permit, do not go on"]
    pub fn try_acquire_for(&self, timeout: Duration) -> bool {
        self.book(NonZeroU32::MIN, nanos(timeout)).map(Turn::block).is_some()
    }

    /// Takes so many permits and sleeps until their turn, if that comes within `timeout`; answers no at once if not.
    ///
    /// # Errors
    /// Where `permits` is zero.
    pub fn try_acquire_n_for(&self, permits: u32, timeout: Duration) -> Result<bool, RateLimiterError> {
        Ok(self.book(some(permits)?, nanos(timeout)).map(Turn::block).is_some())
    }

    /// As [`acquire_n`](Self::acquire_n), for a task. Permits are taken when it is first polled; dropped before its turn it
    /// gives them back, if nobody acquired after it.
    ///
    /// By the system's clock a task can sleep with the feature `tokio`.
    ///
    /// # Errors
    /// Where `permits` is zero.
    pub async fn acquire_async(&self, permits: u32) -> Result<Duration, RateLimiterError>
    where
        C: Timer,
    {
        match self.book(some(permits)?, FOR_EVER) {
            Some(turn) => Ok(turn.sleep().await),
            None => Ok(Duration::ZERO),
        }
    }

    /// As [`try_acquire_n_for`](Self::try_acquire_n_for), for a task. Permits are taken when it is first polled; dropped
    /// before its turn it gives them back, if nobody acquired after it.
    ///
    /// # Errors
    /// Where `permits` is zero.
    pub async fn try_acquire_async(&self, permits: u32, timeout: Duration) -> Result<bool, RateLimiterError>
    where
        C: Timer,
    {
        match self.book(some(permits)?, nanos(timeout)) {
            Some(turn) => {
                turn.sleep().await;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Changes the rate. Turns that were booked stay as they are, so the next caller still waits for them at the old rate;
    /// what is stored keeps its fraction of the most that can be; who sleeps sleeps on.
    ///
    /// # Errors
    /// Where the rate is not a number greater than zero.
    pub fn set_rate(&self, permits_per_second: f64) -> Result<(), RateLimiterError> {
        let smooth = self.shape.at(checked(permits_per_second)?);
        let mut state = hold(&self.state);
        let (_, at) = self.moment(&mut state);
        state.words = smooth.convert(&state.smooth, state.words, at);
        state.smooth = smooth;
        state.changes += 1;
        Ok(())
    }

    /// Permits a second. As it is kept as an interval, its last digit may not be what was set.
    #[must_use]
    pub fn rate(&self) -> f64 {
        hold(&self.state).smooth.permits_per_second()
    }

    /// The clock it runs on.
    #[must_use]
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    fn block(&self, permits: NonZeroU32) -> Duration {
        self.book(permits, FOR_EVER).map_or(Duration::ZERO, Turn::block)
    }

    /// Takes permits if their turn comes within so many nanoseconds.
    fn book(&self, permits: NonZeroU32, patience: u64) -> Option<Turn<'_, C>> {
        // Cut to microseconds, as time is.
        let patience = if patience == FOR_EVER { patience } else { patience - patience % 1_000 };
        let mut state = hold(&self.state);
        let (now, at) = self.moment(&mut state);
        let answer = state.smooth.ask(state.words, &Ask { at, cost: permits.get(), up_to: Some(patience) });
        let wait = match answer.status.verdict {
            Verdict::Allow => Duration::ZERO,
            Verdict::Wait(nanos) => Duration::from_nanos(nanos),
            _ => return None,
        };
        let before = std::mem::replace(&mut state.words, answer.next);
        let (smooth, changes, after) = (state.smooth, state.changes, state.words);
        let until = now + wait;
        Some(Turn { limiter: self, wait, until, smooth, changes, before, after, has_come: false })
    }

    /// Now in whole microseconds since birth: on the clock, and as the limiter counts it.
    fn moment(&self, state: &mut State) -> (Time, Moment) {
        let micros = self.clock.now().nanos_since(self.birth) / 1_000;
        state.latest = state.latest.max(micros);
        (self.birth + Duration::from_micros(micros), Moment::new(state.latest * 1_000, 0))
    }
}

impl<C> fmt::Debug for RateLimiter<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = hold(&self.state).smooth.permits_per_second();
        f.debug_struct("RateLimiter").field("rate", &rate).finish_non_exhaustive()
    }
}

/// Permits taken for a turn that has yet to come. Dropped before that, as a future or by a panic, it gives them back, unless
/// others were taken after it: those keep their turns, and a part that came back could be followed by a charge of any size.
struct Turn<'a, C: Clock> {
    limiter: &'a RateLimiter<C>,
    wait: Duration,
    until: Time,
    /// The numbers that `before` and `after` are in.
    smooth: Smooth,
    changes: u64,
    before: Words,
    after: Words,
    has_come: bool,
}

impl<C: Clock> Turn<'_, C> {
    fn block(mut self) -> Duration {
        if !self.wait.is_zero() {
            let clock = &self.limiter.clock;
            while clock.now() < self.until {
                clock.park(Some(self.until));
            }
        }
        self.has_come = true;
        self.wait
    }

    async fn sleep(mut self) -> Duration
    where
        C: Timer,
    {
        if !self.wait.is_zero() {
            let clock = &self.limiter.clock;
            while clock.now() < self.until {
                clock.sleep_until(self.until).await;
            }
        }
        self.has_come = true;
        self.wait
    }
}

impl<C: Clock> Drop for Turn<'_, C> {
    fn drop(&mut self) {
        // A turn that came and was not used is spent.
        if self.has_come || self.wait.is_zero() || self.limiter.clock.now() >= self.until {
            return;
        }
        let mut state = hold(&self.limiter.state);
        let (_, at) = self.limiter.moment(&mut state);
        // Before its turn comes the state changes by charges only, so what it left behind is still there if it was the last.
        let convert = |words| match state.changes == self.changes {
            true => words,
            false => state.smooth.convert(&self.smooth, words, at),
        };
        if state.words == convert(self.after) {
            state.words = convert(self.before);
        }
    }
}

impl Shape {
    fn at(self, permits_per_second: f64) -> Smooth {
        match self {
            Self::Bursty { max_burst, initial } => {
                Smooth::bursty(permits_per_second, max_burst, initial.min(max_burst * permits_per_second))
            }
            Self::WarmingUp { warmup, cold_factor } => {
                Smooth::warming_up(permits_per_second, warmup, cold_factor)
            }
        }
    }
}

fn checked(permits_per_second: f64) -> Result<f64, RateLimiterError> {
    if permits_per_second > 0.0 {
        Ok(permits_per_second)
    } else {
        Err(RateLimiterError::Rate { permits_per_second })
    }
}

fn some(permits: u32) -> Result<NonZeroU32, RateLimiterError> {
    NonZeroU32::new(permits).ok_or(RateLimiterError::NoPermits)
}
