//! Refusals in the log: all, a few a second, or none. Their number is in the metrics.
//!
//! A flood of refusals is when a log is read and when it must not grow with the flood. So a sample is shown, and whatever is
//! left out is counted in the log too: in the next line that is shown, or in a line of its own when nothing more is refused.

use super::REFUSED;
use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tollgate_rules::model::{LogLevel, LogSettings, RefusalLog};

/// Refusals a second that a sampled log shows.
const SAMPLED: u64 = 5;

/// Calls a macro with the name of a level.
macro_rules! on_level {
    ($level:expr, $tell:ident) => {
        match $level {
            level if level == LogLevel::Error as u8 => $tell!(error),
            level if level == LogLevel::Warn as u8 => $tell!(warn),
            level if level == LogLevel::Debug as u8 => $tell!(debug),
            level if level == LogLevel::Trace as u8 => $tell!(trace),
            _ => $tell!(info),
        }
    };
}

/// Clones are the same log, so that a sample goes on over a change of the rules.
#[derive(Clone)]
pub(crate) struct Refusals(Arc<Inner>);

struct Inner {
    begun: Instant,
    which: AtomicU8,
    level: AtomicU8,
    /// The second that is being counted, and how many it had so far.
    second: AtomicU64,
    shown: AtomicU64,
    hidden: AtomicU64,
}

impl Refusals {
    pub(crate) fn new(settings: LogSettings) -> Self {
        let inner = Inner {
            begun: Instant::now(),
            which: AtomicU8::new(settings.refusals as u8),
            level: AtomicU8::new(settings.refusals_level as u8),
            second: AtomicU64::new(0),
            shown: AtomicU64::new(0),
            hidden: AtomicU64::new(0),
        };
        Self(Arc::new(inner))
    }

    /// Goes on by other settings.
    pub(crate) fn follow(&self, settings: LogSettings) {
        self.0.which.store(settings.refusals as u8, Relaxed);
        self.0.level.store(settings.refusals_level as u8, Relaxed);
    }

    pub(crate) fn log(&self, route: &str, rule: &str, method: &str, path: &str, ip: IpAddr) {
        const SAMPLE: u8 = RefusalLog::Sampled as u8;
        const OFF: u8 = RefusalLog::Off as u8;
        match self.0.which.load(Relaxed) {
            OFF => return,
            SAMPLE if !self.0.has_room() => {
                self.0.hidden.fetch_add(1, Relaxed);
                return;
            }
            _ => {}
        }
        let left_out = self.0.hidden.swap(0, Relaxed);
        // A level is part of the place that logs.
        macro_rules! tell {
            ($level:ident) => {
                tracing::$level!(target: REFUSED, route, rule, method, path, %ip, left_out, "refused")
            };
        }
        on_level!(self.0.level.load(Relaxed), tell);
    }

    /// Tells now and then of refusals that were left out and that no later line has told of. Ends when it is dropped.
    pub(crate) async fn count_left_out(self) {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let inner = &self.0;
            if inner.second.load(Relaxed) == inner.begun.elapsed().as_secs() {
                continue;
            }
            let left_out = inner.hidden.swap(0, Relaxed);
            if left_out > 0 {
                macro_rules! tell {
                    ($level:ident) => {
                        tracing::$level!(target: REFUSED, left_out, "more were refused")
                    };
                }
                on_level!(inner.level.load(Relaxed), tell);
            }
        }
    }
}

impl Inner {
    /// Whether this second has shown few so far. Two threads at its edge may show one too many.
    fn has_room(&self) -> bool {
        let second = self.begun.elapsed().as_secs();
        if self.second.swap(second, Relaxed) != second {
            self.shown.store(0, Relaxed);
        }
        self.shown.fetch_add(1, Relaxed) < SAMPLED
    }
}
