//! What the program says while it serves: lines on standard error, for people or as JSON.
//!
//! Refusals and accesses are told as their own settings say, whatever the level of everything else: each has a target of its
//! own, and lines of that target are not judged by `log.level`. All of it follows the rule file while it is served, except
//! for the format. No line holds a header or a query: either may be what lets somebody in.

mod refusals;

pub(crate) use refusals::Refusals;

use std::{
    env,
    io::{self, IsTerminal},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};
use tollgate_gateway::{Access, Observer};
use tollgate_rules::model::{AccessLog, LogFormat, LogLevel, LogSettings};
use tracing::Level;
use tracing_subscriber::{
    Layer as _, Registry, filter::Targets, fmt, layer::SubscriberExt as _, reload,
    util::SubscriberInitExt as _,
};

/// Lines about requests that were refused.
pub(crate) const REFUSED: &str = "refused";
/// Lines about requests that are done.
const ACCESS: &str = "access";

static LEVELS: OnceLock<reload::Handle<Targets, Registry>> = OnceLock::new();
static ACCESSES: AtomicBool = AtomicBool::new(false);

/// Begins to log, once.
pub(crate) fn begin(settings: LogSettings) {
    let (filter, handle) = reload::Layer::new(targets(settings));
    // A line that cannot be written is lost: to complain on standard error, which is what cannot be written to, panics.
    let lines = fmt::layer().with_writer(io::stderr).with_ansi(is_coloured()).log_internal_errors(false);
    let lines = match settings.format {
        LogFormat::Text => lines.with_target(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).boxed(),
    };
    // A second beginning, as in a test, leaves the first in force.
    if tracing_subscriber::registry().with(filter).with(lines).try_init().is_ok() {
        let _ = LEVELS.set(handle);
    }
    ACCESSES.store(settings.access == AccessLog::On, Relaxed);
}

/// Goes on by other settings.
pub(crate) fn follow(settings: LogSettings) {
    if let Some(levels) = LEVELS.get() {
        // It fails where nobody logs any more.
        let _ = levels.reload(targets(settings));
    }
    ACCESSES.store(settings.access == AccessLog::On, Relaxed);
}

/// No more than is wanted anywhere: what is above the highest of these costs nothing at all.
fn targets(settings: LogSettings) -> Targets {
    Targets::new()
        .with_default(severity(settings.level))
        .with_target(REFUSED, severity(settings.refusals_level))
        .with_target(ACCESS, Level::INFO)
}

fn severity(level: LogLevel) -> Level {
    match level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
        LogLevel::Trace => Level::TRACE,
    }
}

fn is_coloured() -> bool {
    io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// A line for every request that is done, where the file asks for them.
pub(crate) struct AccessLines;

impl Observer for AccessLines {
    fn wants_access(&self) -> bool {
        ACCESSES.load(Relaxed)
    }

    fn access(&self, access: &Access) {
        let Access { peer, method, uri, version, status, sent, took, .. } = access;
        let status = status.map_or(0, |status| status.as_u16());
        let (path, took_us) = (uri.path(), u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        tracing::info!(target: ACCESS, %peer, %method, path, ?version, status, sent, took_us, "answered");
    }
}
