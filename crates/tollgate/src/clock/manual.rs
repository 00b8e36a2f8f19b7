//! A clock for tests: it moves when told to, and whoever sleeps by it wakes then.

use super::{Clock, Sleep, Timer, unparker};
use crate::time::{Time, nanos};
use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

/// A clock that moves only when told to. Clones share one time, and wake whoever sleeps until a time that has come.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Clock, ManualClock};
///
/// let clock = ManualClock::new();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(3));
/// assert_eq!(clock.now() - before, Duration::from_secs(3));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    now: Arc<AtomicU64>,
    unix_offset: Arc<AtomicU64>,
    sleepers: Arc<Mutex<Sleepers>>,
}

/// Who sleeps, by when they wake and in the order they lay down.
#[derive(Debug, Default)]
struct Sleepers {
    count: u64,
    by_time: BTreeMap<(Time, u64), Waker>,
}

impl ManualClock {
    /// A clock that stands at [`Time::ZERO`], which it takes for the beginning of 1970.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock on.
    pub fn advance(&self, by: Duration) {
        self.set(self.now() + by);
    }

    /// Moves the clock to `to`, backwards too: a clock that misbehaves is worth testing.
    pub fn set(&self, to: Time) {
        self.now.store(to.as_nanos(), SeqCst);
        let woken = {
            let mut sleepers = self.sleepers();
            let later = sleepers.by_time.split_off(&(to, u64::MAX));
            std::mem::replace(&mut sleepers.by_time, later)
        };
        woken.into_values().for_each(Waker::wake);
    }

    /// Says that [`Time::ZERO`] is `since_1970` after the beginning of 1970, as a stepped wall clock would.
    pub fn set_wall(&self, since_1970: Duration) {
        self.unix_offset.store(nanos(since_1970), SeqCst);
    }

    /// The earliest time that somebody sleeps until.
    #[must_use]
    pub fn next_sleeper(&self) -> Option<Time> {
        self.sleepers().by_time.keys().next().map(|(at, _)| *at)
    }

    fn sleepers(&self) -> MutexGuard<'_, Sleepers> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time::from_nanos(self.now.load(SeqCst))
    }

    fn unix(&self, at: Time) -> u64 {
        at.as_nanos().saturating_add(self.unix_offset.load(SeqCst))
    }

    fn park(&self, until: Option<Time>) {
        let Some(until) = until else { return thread::park() };
        let waker = unparker();
        let mut sleep = ManualSleep { clock: self.clone(), until, place: None };
        if Pin::new(&mut sleep).poll(&mut Context::from_waker(&waker)).is_pending() {
            thread::park();
        }
    }
}

impl Timer for ManualClock {
    fn sleep_until(&self, at: Time) -> Sleep {
        Box::pin(ManualSleep { clock: self.clone(), until: at, place: None })
    }
}

/// Ready when the clock stands at `until` or later.
struct ManualSleep {
    clock: ManualClock,
    until: Time,
    place: Option<u64>,
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let (clock, waker) = (self.clock.clone(), context.waker().clone());
        let mut sleepers = clock.sleepers();
        // Looked at under the lock that `set` takes after moving the clock: no wake is lost.
        if clock.now() >= self.until {
            return Poll::Ready(());
        }
        let place = self.place.unwrap_or(sleepers.count);
        sleepers.count = sleepers.count.max(place + 1);
        let before = sleepers.by_time.insert((self.until, place), waker);
        drop(sleepers);
        drop(before);
        self.place = Some(place);
        Poll::Pending
    }
}

impl Drop for ManualSleep {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            let waker = self.clock.sleepers().by_time.remove(&(self.until, place));
            drop(waker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_sleeps_by_the_clock_wakes_when_it_is_moved() {
        let clock = ManualClock::new();
        let until = Time::from_nanos(1_000);
        let sleeper = thread::spawn({
            let clock = clock.clone();
            move || {
                while clock.now() < until {
                    clock.park(Some(until));
                }
            }
        });
        while clock.next_sleeper() != Some(until) {
            thread::yield_now();
        }
        clock.set(Time::from_nanos(999));
        assert_eq!(clock.next_sleeper(), Some(until), "a nanosecond early is early");
        clock.set(until);
        sleeper.join().unwrap();
        assert_eq!(clock.next_sleeper(), None);
    }

    #[test]
    fn a_dropped_sleep_leaves_nothing_behind() {
        let clock = ManualClock::new();
        let mut sleep = clock.sleep_until(Time::from_nanos(5));
        assert!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(sleep);
        assert_eq!(clock.next_sleeper(), None);
    }
}
