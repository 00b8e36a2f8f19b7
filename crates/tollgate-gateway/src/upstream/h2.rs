//! HTTP/2 to a server: one connection a worker, shared by its requests. hyper runs it, as a task of the worker.

use super::{connect::ConnectError, shard, shard::SHARDS, stream::Stream};
use crate::request::RequestBody;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

pub(crate) type Sender = http2::SendRequest<RequestBody>;

/// The connections of a server.
#[derive(Default)]
pub(super) struct Http2 {
    workers: [WorkerConnection; SHARDS],
    /// The server was asked and speaks HTTP/1.1.
    unlikely: AtomicBool,
}

/// The connection of one worker.
#[derive(Default)]
struct WorkerConnection {
    sender: Mutex<Option<Sender>>,
    turn: tokio::sync::Mutex<()>,
    /// Why the last connection was not made, and when that was known.
    failure: Mutex<Option<(Instant, ConnectError)>>,
}

impl Http2 {
    fn connection_of_worker(&self) -> &WorkerConnection {
        &self.workers[shard::current()]
    }

    /// This worker's connection, if it takes requests.
    pub(super) fn ready(&self) -> Option<Sender> {
        lock(&self.connection_of_worker().sender).as_ref().filter(|sender| !sender.is_closed()).cloned()
    }

    /// The right to make this worker's connection.
    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.connection_of_worker().turn.lock().await
    }

    /// Why nobody could connect since then: whoever waited for a turn meanwhile need not try the same again.
    pub(super) fn failed_since(&self, then: Instant) -> Option<ConnectError> {
        let failure = lock(&self.connection_of_worker().failure);
        failure.as_ref().filter(|(at, _)| *at >= then).map(|(_, error)| error.clone())
    }

    pub(super) fn note_failure(&self, error: &ConnectError) {
        *lock(&self.connection_of_worker().failure) = Some((Instant::now(), error.clone()));
    }

    pub(super) fn is_unlikely(&self) -> bool {
        self.unlikely.load(Ordering::Relaxed)
    }

    pub(super) fn set_unlikely(&self) {
        self.unlikely.store(true, Ordering::Relaxed);
    }

    pub(super) async fn start(&self, stream: Stream) -> Result<Sender, ConnectError> {
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            // A server that is gone without a word is noticed within 30 seconds.
            .keep_alive_interval(Duration::from_secs(20))
            .keep_alive_timeout(Duration::from_secs(10))
            .initial_stream_window_size(1 << 20)
            .initial_connection_window_size(4 << 20)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| ConnectError::Failed(error.to_string()))?;
        tokio::spawn(async move {
            // Whoever waits on it is told; there is nobody else to tell.
            let _ = connection.await;
        });
        *lock(&self.connection_of_worker().sender) = Some(sender.clone());
        Ok(sender)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
