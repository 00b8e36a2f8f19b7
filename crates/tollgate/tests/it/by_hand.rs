//! Limiters and stores on a clock that is moved by hand, for the tests of waiting.

use crate::limits::per;
use std::{
    task::{Context, Waker},
    time::Duration,
};
use tollgate::{
    Align, Bounds, Delay, FixedWindow, KeyedLimiter, LeakyBucket, Limit, Limiter, ManualClock, MemoryStore,
    Rate, Refill, SlidingCounter, SlidingLog, SlidingWindow, SmoothBursty, SmoothWarmingUp, TokenBucket,
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn bucket(per_second: u32, burst: u32) -> TokenBucket {
    TokenBucket::new(Rate::per_second(per_second).unwrap(), burst).unwrap()
}

/// So many in a second, exactly.
pub(crate) fn log(limit: u32) -> SlidingLog {
    SlidingLog::new(limit, SECOND).unwrap()
}

/// One a second, a queue of ten, the first two of them not delayed.
pub(crate) fn queue_of_ten() -> LeakyBucket {
    LeakyBucket::new(Rate::per_second(1).unwrap(), 10).unwrap().with_delay(Delay::After(2)).unwrap()
}

pub(crate) fn limiter(limit: impl Into<Limit>) -> (Limiter<ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    (Limiter::with_clock(limit, clock.clone()), clock)
}

pub(crate) fn keyed(limit: impl Into<Limit>, max_keys: usize) -> (KeyedLimiter<ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    (KeyedLimiter::with_clock(limit, Bounds { max_keys, ..Bounds::default() }, clock.clone()), clock)
}

pub(crate) fn store() -> (MemoryStore<ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    (MemoryStore::with_clock(Bounds { max_keys: 100, ..Bounds::default() }, clock.clone()), clock)
}

/// Polls that wake nobody.
pub(crate) fn by_nobody() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// Everything that can be waited for but slots in flight, each with room for three at once and then one or three a second.
pub(crate) fn rates() -> Vec<Limit> {
    let rate = Rate::per_second(3).unwrap();
    vec![
        bucket(3, 3).into(),
        bucket(3, 3).with_refill(Refill::Interval).into(),
        // Two words of state.
        TokenBucket::new(per(1_000_000_007, Duration::from_nanos(333_333_335_666_666_669)), 3)
            .unwrap()
            .into(),
        LeakyBucket::new(rate, 3).unwrap().into(),
        LeakyBucket::new(rate, 3).unwrap().with_delay(Delay::After(1)).unwrap().into(),
        // A rate whose interval is whole microseconds: nothing is lost to truncation.
        SmoothBursty::new(Rate::per_second(4).unwrap()).into(),
        SmoothWarmingUp::new(Rate::per_second(4).unwrap(), SECOND).unwrap().into(),
        FixedWindow::new(3, SECOND).unwrap().into(),
        FixedWindow::new(3, SECOND).unwrap().with_align(Align::FirstHit).into(),
        log(3).into(),
        SlidingWindow::new(3, SECOND, SECOND / 10).unwrap().into(),
        SlidingCounter::new(3, SECOND).unwrap().into(),
    ]
}
