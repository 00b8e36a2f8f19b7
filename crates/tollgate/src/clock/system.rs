//! The machine's own clock.

use super::Clock;
use crate::time::{Time, nanos};
use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{SystemTime, UNIX_EPOCH},
};

/// The machine's clock: the processor's time stamp counter where it is invariant, the system's monotonic clock
/// elsewhere.
#[derive(Clone, Debug)]
pub struct SystemClock {
    line: Line,
    anchor: &'static Anchor,
}

/// Where the ticks began, and what they are worth: calibrated by quanta, converted here without its second look at which
/// clock it is.
#[derive(Clone, Debug)]
struct Line {
    ticks: quanta::Clock,
    origin: u64,
    /// Nanoseconds that 2^40 ticks take.
    worth: u64,
}

/// One a process, so that every [`SystemClock`] measures along the same line.
#[derive(Debug)]
struct Anchor {
    line: Line,
    /// Unix time less line time.
    offset: AtomicU64,
    set_at: AtomicU64,
}

/// How long the wall's offset from the line is trusted.
const ANCHOR_FOR: u64 = 60_000_000_000;

impl SystemClock {
    /// The machine's clock.
    #[must_use]
    pub fn new() -> Self {
        static ANCHOR: OnceLock<Anchor> = OnceLock::new();
        let anchor = ANCHOR.get_or_init(|| {
            let ticks = quanta::Clock::new();
            let worth = ticks.delta_as_nanos(0, 1 << 40);
            // A second back: another core's counter may be a little behind this one's.
            let second = ((1_000_000_000_u128 << 40) / u128::from(worth.max(1))) as u64;
            let line = Line { origin: ticks.raw().wrapping_sub(second), worth, ticks };
            let now = nanos_of(ticks_since(&line), line.worth);
            Anchor {
                line,
                offset: AtomicU64::new(unix_now().saturating_sub(now)),
                set_at: AtomicU64::new(now),
            }
        });
        Self { line: anchor.line.clone(), anchor }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    const MONOTONIC: bool = true;

    #[inline(always)]
    fn now(&self) -> Time {
        Time::measured(nanos_of(ticks_since(&self.line), self.line.worth))
    }

    fn unix(&self, at: Time) -> u64 {
        let now = self.now().as_nanos();
        let set_at = self.anchor.set_at.load(Relaxed);
        if now.saturating_sub(set_at) > ANCHOR_FOR
            && self.anchor.set_at.compare_exchange(set_at, now, Relaxed, Relaxed).is_ok()
        {
            self.anchor.offset.store(unix_now().saturating_sub(now), Relaxed);
        }
        at.as_nanos().saturating_add(self.anchor.offset.load(Relaxed))
    }
}

#[inline(always)]
fn ticks_since(line: &Line) -> u64 {
    line.ticks.raw().wrapping_sub(line.origin)
}

/// What so many ticks come to, when 2^40 of them take `worth` nanoseconds.
#[inline(always)]
fn nanos_of(ticks: u64, worth: u64) -> u64 {
    ((u128::from(ticks) * u128::from(worth)) >> 40) as u64
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_system_clock_moves_on_and_agrees_with_the_wall() {
        let clock = SystemClock::new();
        let first = clock.now();
        let other = SystemClock::new();
        while other.now() == first {}
        assert!(other.now() > first, "two system clocks share one line");

        let wall = unix_now();
        let ours = clock.unix(clock.now());
        assert!(ours.abs_diff(wall) < 5_000_000_000, "the wall says {wall}, the anchored line {ours}");
    }

    #[test]
    fn ticks_of_any_length_are_converted() {
        for hertz in [1_000_000_u128, 24_000_000, 54_000_000, 1_000_000_000, 5_000_000_000] {
            let worth = u64::try_from((1_000_000_000_u128 << 40) / hertz).unwrap();
            let day = u64::try_from(86_400 * hertz).unwrap();
            let nanos = nanos_of(day, worth);
            assert!(nanos.abs_diff(86_400_000_000_000) < 100_000, "{hertz} Hz: a day takes {nanos} ns");
        }
    }

    #[test]
    fn the_system_clock_runs_at_the_right_speed() {
        let clock = SystemClock::new();
        let (theirs, ours) = (std::time::Instant::now(), clock.now());
        while theirs.elapsed() < Duration::from_millis(20) {}
        let (theirs, ours) = (theirs.elapsed(), clock.now() - ours);
        assert!(ours.abs_diff(theirs) < theirs / 2, "{ours:?} for {theirs:?}");
    }
}
