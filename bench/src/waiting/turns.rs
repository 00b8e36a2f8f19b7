//! What is waited at: ours and the peers behind one trait, and the limits that all of them have in common.

use crate::subject::units;
use governor::{DefaultDirectRateLimiter, Quota};
use std::{
    future::Future,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};
use tokio::time::{Instant, sleep_until};
use tollgate::{Limiter, Passed, Rate, SlidingLog, TokenBucket};

/// A limiter whose turns can be waited for.
pub(super) trait Turns: Send + Sync + 'static {
    /// The library's own future: nothing of ours around it, so that it is as large as it is.
    fn turn(&self) -> impl Future<Output: Outcome> + Send;
}

/// What a wait ends with.
pub(super) trait Outcome: Send {
    fn is_granted(&self) -> bool;

    /// From the arrival to the release, where the limiter says.
    fn waited(&self) -> Option<Duration> {
        None
    }
}

impl Turns for Limiter {
    fn turn(&self) -> impl Future<Output: Outcome> + Send {
        self.wait()
    }
}

/// Ours, waiting up to some time.
pub(super) struct Patient {
    pub(super) limiter: Limiter,
    pub(super) up_to: Duration,
}

impl Turns for Patient {
    fn turn(&self) -> impl Future<Output: Outcome> + Send {
        self.limiter.wait().up_to(self.up_to)
    }
}

impl Turns for leaky_bucket::RateLimiter {
    fn turn(&self) -> impl Future<Output: Outcome> + Send {
        self.acquire_one()
    }
}

impl Turns for DefaultDirectRateLimiter {
    fn turn(&self) -> impl Future<Output: Outcome> + Send {
        self.until_ready()
    }
}

/// The least that can give out turns: they are counted, and slept for. It has no burst, and nothing comes back.
pub(super) struct Timers {
    begun: Instant,
    turns: AtomicU32,
    apart: Duration,
}

impl Turns for Timers {
    fn turn(&self) -> impl Future<Output: Outcome> + Send {
        sleep_until(self.begun + self.apart * self.turns.fetch_add(1, Relaxed))
    }
}

/// Ours.
impl<E: Send> Outcome for Result<Passed, E> {
    fn is_granted(&self) -> bool {
        self.is_ok()
    }

    fn waited(&self) -> Option<Duration> {
        self.as_ref().ok().map(Passed::waited)
    }
}

/// The peers have no other.
impl Outcome for () {
    fn is_granted(&self) -> bool {
        true
    }
}

/// A rate and a burst. Buckets are empty to begin with.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    pub(super) rate: u32,
    pub(super) per: Duration,
    pub(super) burst: u32,
}

impl Numbers {
    pub(super) fn ours(self) -> Limiter {
        let rate = Rate::new(self.rate.into(), self.per).expect("a rate");
        let limiter = Limiter::new(TokenBucket::new(rate, self.burst).expect("a limit"));
        assert!(limiter.check_n(self.burst).is_allow());
        limiter
    }

    pub(super) fn governors(self) -> DefaultDirectRateLimiter {
        let quota =
            Quota::with_period(self.per / self.rate).expect("a period").allow_burst(units(self.burst));
        let limiter = governor::RateLimiter::direct(quota);
        assert!(matches!(limiter.check_n(units(self.burst)), Ok(Ok(()))));
        limiter
    }

    pub(super) fn timers(self) -> Timers {
        Timers { begun: Instant::now(), turns: AtomicU32::new(0), apart: self.per / self.rate }
    }

    /// leaky-bucket refills by the interval; what came in the meantime comes at its end.
    pub(super) fn leaky_buckets(self, interval: Duration) -> leaky_bucket::RateLimiter {
        let refill = f64::from(self.rate) * interval.as_secs_f64() / self.per.as_secs_f64();
        assert!(refill >= 1.0 && refill.fract() == 0.0, "{refill} an interval");
        leaky_bucket::RateLimiter::builder()
            .max((self.burst as usize).max(refill as usize))
            .initial(0)
            .refill(refill as usize)
            .interval(interval)
            .build()
    }
}

/// Ours at a log, which is full.
pub(super) fn full_log(numbers: Numbers) -> Limiter {
    let limiter = Limiter::new(SlidingLog::new(numbers.rate, numbers.per).expect("a limit"));
    assert!(limiter.check_n(numbers.rate).is_allow());
    limiter
}
