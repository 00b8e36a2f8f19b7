//! What the program says while it serves: lines on standard error.

use std::{
    net::IpAddr,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Instant,
};
use tollgate_gateway::{Access, Observer};
use tollgate_rules::model::{LogLevel, LogSettings, RefusalLog};
use tracing::level_filters::LevelFilter;

/// Refusals a second that a sampled log shows.
const SAMPLED: u64 = 5;

/// Begins to log, once.
pub(crate) fn begin(settings: LogSettings) {
    let level = match settings.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let lines =
        tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_target(false);
    // A second beginning, as in a test, leaves the first in force.
    let _ = lines.try_init();
}

/// Refusals in the log: all, a few a second, or none. Their number is in the metrics.
pub(crate) struct Refusals {
    which: RefusalLog,
    begun: Instant,
    /// The second that is being counted, and how many it had so far.
    second: AtomicU64,
    shown: AtomicU64,
    hidden: AtomicU64,
}

impl Refusals {
    pub(crate) fn new(which: RefusalLog) -> Self {
        Self {
            which,
            begun: Instant::now(),
            second: AtomicU64::new(0),
            shown: AtomicU64::new(0),
            hidden: AtomicU64::new(0),
        }
    }

    pub(crate) fn log(&self, route: &str, rule: &str, method: &str, path: &str, ip: IpAddr) {
        match self.which {
            RefusalLog::Off => return,
            RefusalLog::Sampled if !self.has_room() => {
                self.hidden.fetch_add(1, Relaxed);
                return;
            }
            RefusalLog::Sampled | RefusalLog::All => {}
        }
        let hidden = self.hidden.swap(0, Relaxed);
        tracing::info!(route, rule, method, path, %ip, hidden, "refused");
    }

    /// Whether this second has shown few so far. Two threads at its edge may show one too many.
    fn has_room(&self) -> bool {
        let second = self.begun.elapsed().as_secs();
        if self.second.swap(second, Relaxed) != second {
            self.shown.store(0, Relaxed);
        }
        self.shown.fetch_add(1, Relaxed) < SAMPLED
    }
}

/// A line for every request that is done.
pub(crate) struct AccessLines;

impl Observer for AccessLines {
    fn wants_access(&self) -> bool {
        true
    }

    fn access(&self, access: &Access) {
        let Access { peer, method, uri, version, status, sent, took, .. } = access;
        let status = status.map_or(0, |status| status.as_u16());
        let took_us = took.as_micros();
        tracing::info!(target: "access", %peer, %method, %uri, ?version, status, sent, took_us);
    }
}
