//! The one clock that all processes of a machine share, and how Redis's own relates to it.
//!
//! The server decides on its wall clock, at a moment that nobody outside knows: some time between asking and being
//! answered. So a node notes both on the monotonic clock, and the wall clocks of nodes are used for nothing. Redis's clock
//! is the machine's wall clock: how far it is ahead of the monotonic one is measured before a case and after it.

use rustix::time::{ClockId, clock_gettime};
use testkit::RedisServer;

/// Nanoseconds on the clock that all processes share.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// A wall clock may be slewed by this part of the time that passes, one in so many: the most that systems do.
pub(crate) const SLEW: u64 = 2_000;

/// By how many nanoseconds Redis's clock is ahead of the shared one, at least and at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerClock {
    pub(crate) least: u64,
    pub(crate) most: u64,
    at: u64,
}

impl ServerClock {
    pub(crate) fn measure(server: &RedisServer) -> Self {
        let readings = (0..8).map(|_| {
            let asked = now();
            let time = server.command(&["TIME"]);
            let answered = now();
            let part = |index: usize| time.items()[index].text().parse::<u64>().unwrap_or_default();
            let told = (part(0) * 1_000_000 + part(1)) * 1_000;
            // Redis cuts its time off to whole microseconds.
            Self { least: told - answered, most: told + 1_000 - asked, at: answered }
        });
        readings.min_by_key(|reading| reading.most - reading.least).expect("several readings")
    }

    /// What holds for the whole time between two measurements.
    pub(crate) fn until(self, later: Self) -> Result<Self, String> {
        let slewed = (later.at - self.at) / SLEW;
        if later.least > self.most + slewed || later.most + slewed < self.least {
            return Err(
                "the machine's wall clock was set meanwhile: nothing can be said, please run again".into()
            );
        }
        Ok(Self { least: self.least.min(later.least), most: self.most.max(later.most), ..later })
    }

    /// The server's time at one of ours, in nanoseconds since 1970, as near as is known.
    pub(crate) const fn about(self, at: u64) -> u64 {
        at + self.least.midpoint(self.most)
    }

    /// In which window since 1970 a moment between these two lies, if that is certain.
    pub(crate) fn window(self, (from, to): (u64, u64), window: u64) -> Option<u64> {
        let index = (from + self.least) / window;
        (index == (to + self.most) / window).then_some(index)
    }
}
