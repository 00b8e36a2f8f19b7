//! SIGTERM and SIGINT, turned into a [`Drain`].
//!
//! Apart from [`drain`](crate::drain), which does not care who asks: a test asks, and so may an operator over HTTP.

use crate::Drain;
use tokio::signal::unix::{SignalKind, signal};

/// The system would not hand signals over.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen for SIGTERM and SIGINT: {source}")]
pub struct SignalError {
    #[from]
    source: std::io::Error,
}

/// From now on each SIGTERM and each SIGINT [asks](Drain::begin) to leave: the first begins, the second ends it at once.
///
/// The signals are caught when this returns; a task on the current runtime passes them on.
///
/// # Errors
///
/// If the system does not hand signals over.
///
/// # Panics
///
/// Outside of a tokio runtime with I/O enabled.
pub fn stop_on_signals(drain: &Drain) -> Result<(), SignalError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let drain = drain.clone();
    tokio::spawn(async move {
        loop {
            let caught = tokio::select! {
                caught = terminate.recv() => caught,
                caught = interrupt.recv() => caught,
            };
            if caught.is_none() {
                return;
            }
            drain.begin();
        }
    });
    Ok(())
}
