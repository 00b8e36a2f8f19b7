//! SIGTERM and SIGINT, turned into a [`Drain`]; SIGHUP, turned into [`ReloadRequests`].
//!
//! Apart from [`drain`](crate::drain), which does not care who asks: a test asks, and so may an operator over HTTP.

use crate::{Drain, Phase};
use std::future::pending;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

/// The system would not hand signals over.
#[derive(Debug, thiserror::Error)]
#[error("cannot install a signal handler: {source}")]
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

/// Requests to read files again, such as SIGHUP makes.
///
/// Each clone receives every request that its original has not received yet. Requests that arrive before one is
/// received count as one: whoever reloads afterwards has seen everything.
#[derive(Clone, Debug)]
pub struct ReloadRequests(watch::Receiver<()>);

impl ReloadRequests {
    /// Requests that never come.
    #[must_use]
    pub fn never() -> Self {
        Self(watch::channel(()).1)
    }

    /// Waits for the next request. Cancel safe.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            pending::<()>().await;
        }
    }
}

/// From now on each SIGHUP is a [request](ReloadRequests) to reload, and does not end the process. Once the drain has
/// begun, SIGHUP is ignored.
///
/// The signal is caught when this returns; a task on the current runtime passes it on.
///
/// # Errors
///
/// If the system does not hand signals over.
///
/// # Panics
///
/// Outside of a tokio runtime with I/O enabled.
pub fn reload_on_hangup(drain: &Drain) -> Result<ReloadRequests, SignalError> {
    let mut hangup = signal(SignalKind::hangup())?;
    let (requests, received) = watch::channel(());
    let drain = drain.clone();
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            if drain.phase() == Phase::Serving {
                // Where nobody follows a file there is nothing to reload.
                let _ = requests.send(());
            }
        }
    });
    Ok(ReloadRequests(received))
}
