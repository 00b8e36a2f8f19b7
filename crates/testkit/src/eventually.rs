//! Waiting for something to become true, instead of sleeping and hoping.

use std::{
    future::Future,
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

/// The same for a task: `ask` may await, and other tasks go on between two questions. By tokio's clock of the moment, so not for
/// a runtime whose time is paused.
///
/// # Panics
///
/// As [`eventually`] does.
pub async fn eventually_async<T, F: Future<Output = Option<T>>>(what: &str, mut ask: impl FnMut() -> F) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "after {PATIENCE:?} still waiting for {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
