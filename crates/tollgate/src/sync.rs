//! Atomics, which loom replaces when it explores interleavings, and the lock bit beside a word.

#[cfg(loom)]
use loom::thread::yield_now;
#[cfg(not(loom))]
use std::thread::yield_now;

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, Ordering, fence},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, Ordering, fence},
};

use std::sync::PoisonError;

/// The mutex, whatever happened to others who held it: all it guards is plain data.
pub(crate) fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same for a mutex that loom does not explore.
pub(crate) fn hold_plain<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for another thread's few instructions: spins for longer and longer, then yields, since the holder may have been
/// put to sleep.
#[derive(Default)]
pub(crate) struct Backoff {
    waits: u32,
}

/// Spins this often, twice as long each time, before the first yield.
const SPINS: u32 = 7;

impl Backoff {
    #[cold]
    pub(crate) fn wait(&mut self) {
        if cfg!(loom) || self.waits == SPINS {
            return yield_now();
        }
        for _ in 0..16 << self.waits {
            std::hint::spin_loop();
        }
        self.waits += 1;
    }
}

/// The lock bit.
pub(crate) const LOCKED: u64 = 1;

/// An even value, whose last bit is a lock. Whoever holds the lock may store; everyone may read.
///
/// Locking is one compare-and-swap from the value that was read, so that a decision made on that value is still right
/// when the lock is had. Unlocking is a plain store, which the next reader's load is served from at once.
#[repr(transparent)]
pub(crate) struct Word<'a>(pub(crate) &'a AtomicU64);

impl Word<'_> {
    /// The value, once nobody holds the lock.
    #[inline]
    pub(crate) fn read(&self) -> u64 {
        let raw = self.0.load(Ordering::Acquire);
        if raw & LOCKED == 0 { raw } else { self.read_slowly() }
    }

    #[cold]
    fn read_slowly(&self) -> u64 {
        let mut backoff = Backoff::default();
        loop {
            backoff.wait();
            let raw = self.0.load(Ordering::Acquire);
            if raw & LOCKED == 0 {
                return raw;
            }
        }
    }

    /// The lock, if the value is still `value`.
    #[inline(always)]
    pub(crate) fn try_lock(&self, value: u64) -> bool {
        self.0.compare_exchange(value, value | LOCKED, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// The lock, and the value under it.
    pub(crate) fn lock(&self) -> u64 {
        let mut backoff = Backoff::default();
        loop {
            let value = self.read();
            if self.try_lock(value) {
                return value;
            }
            backoff.wait();
        }
    }

    /// Gives the lock back and leaves `value`.
    #[inline]
    pub(crate) fn unlock(&self, value: u64) {
        self.0.store(value, Ordering::Release);
    }
}

/// Orders a lock just taken before a look at whether the numbers are still in force. The lock's own exchange and the
/// look are both sequentially consistent, which is enough; loom does not model that order and takes a fence.
#[inline]
pub(crate) fn order_lock_before_look() {
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

impl Word<'_> {
    /// As [`try_read`](Self::try_read), for a value that is locked from before it is used.
    #[inline(always)]
    pub(crate) fn glance(&self) -> Option<u64> {
        let raw = self.0.load(Ordering::Acquire);
        (raw & LOCKED == 0).then_some(raw)
    }

    /// The value, unless somebody holds the lock.
    pub(crate) fn try_read(&self) -> Option<u64> {
        let raw = self.0.load(Ordering::SeqCst);
        (raw & LOCKED == 0).then_some(raw)
    }
}
