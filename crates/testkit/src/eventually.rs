//! Waiting for something to become true, instead of sleeping and hoping.

use std::{
    thread,
    time::{Duration, Instant},
};

/// More than anything here takes on two busy cores; only a test that fails waits this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Short beside what is waited for, long enough not to starve it.
const PAUSE: Duration = Duration::from_millis(5);

/// Asks until there is an answer, and gives it. Blocks the thread.
///
/// # Panics
///
/// If there is none for half a minute; `what` completes the sentence "still waiting for".
#[track_caller]
pub fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "after {PATIENCE:?} still waiting for {what}");
        thread::sleep(PAUSE);
    }
}
