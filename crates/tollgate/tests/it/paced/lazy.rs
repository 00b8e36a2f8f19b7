//! A clock that wakes whoever sleeps by it late, and counts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};
use tollgate::{Clock, ManualClock, Sleep, Time, Timer};

/// A manual clock that counts the timers it gave and the wakes that came.
#[derive(Clone, Debug, Default)]
pub(super) struct Lazy {
    pub(super) clock: ManualClock,
    timers: Arc<AtomicU64>,
    wakes: Arc<Wakes>,
}

#[derive(Debug, Default)]
struct Wakes(AtomicU64);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Clock for Lazy {
    fn now(&self) -> Time {
        self.clock.now()
    }

    fn unix(&self, at: Time) -> u64 {
        self.clock.unix(at)
    }
}

impl Timer for Lazy {
    #[expect(clippy::redundant_async_block, reason = "it panics when polled again after it was ready")]
    fn sleep_until(&self, at: Time) -> Sleep {
        self.timers.fetch_add(1, SeqCst);
        let sleep = self.clock.sleep_until(at);
        Box::pin(async move { sleep.await })
    }
}

impl Lazy {
    pub(super) fn timers(&self) -> u64 {
        self.timers.load(SeqCst)
    }

    /// Polls until it is ready, and moves the clock whenever it is not: 0 to 4 milliseconds later than was asked for.
    /// Nobody but a timer may wake.
    pub(super) fn drive<T>(&self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        let waker = Waker::from(self.wakes.clone());
        loop {
            if let Poll::Ready(done) = poll(&mut Context::from_waker(&waker)) {
                let (wakes, timers) = (self.wakes.0.load(SeqCst), self.timers());
                assert!(wakes <= timers, "{wakes} wakes by {timers} timers");
                return done;
            }
            let at = self.clock.next_sleeper().expect("whoever waits sleeps until some time");
            self.clock.set(at + Duration::from_millis(self.timers() * 3 % 5));
        }
    }
}

/// Polls once, for whoever does not care to be woken.
pub(super) fn once<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
    poll(&mut Context::from_waker(Waker::noop()))
}
