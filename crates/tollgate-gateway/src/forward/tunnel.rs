//! After a switch of protocols: bytes both ways until both ends are done.
//!
//! The tunnel is a task of its own, since the client's connection ends as HTTP with the answer. What the answer was to
//! hold until its end (a permit, the slot in the gauges) is held by the tunnel instead.

use crate::{
    request::RequestBody,
    serve::{Gate, Switching},
    upstream::stream::Stream,
};
use bytes::BytesMut;
use http::Request;
use std::{
    any::Any,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{
    io::{AsyncWriteExt, copy_bidirectional},
    sync::oneshot,
};

type Guards = Vec<Box<dyn Any + Send>>;

/// The client's side of a tunnel that may be.
pub(super) struct Tunnel {
    /// None where the client cannot switch.
    client: Option<oneshot::Receiver<Gate>>,
}

/// A tunnel that is: the answer's handle on it.
pub(crate) struct Tunnelled {
    held: Arc<Mutex<Option<Guards>>>,
}

impl Tunnel {
    pub(super) fn new(request: &mut Request<RequestBody>) -> Self {
        let switching = request.extensions_mut().remove::<Switching>();
        Self { client: switching.and_then(|switching| switching.take()) }
    }

    pub(super) fn open(self, mut server: Stream, ahead: BytesMut) -> Tunnelled {
        let held = Arc::new(Mutex::new(Some(Guards::new())));
        let end = End(held.clone());
        tokio::spawn(async move {
            let _end = end;
            let Some(client) = self.client else { return };
            let Ok(mut client) = client.await else { return };
            if !ahead.is_empty() && client.write_all(&ahead).await.is_err() {
                return;
            }
            // How it ended is between the two ends.
            let _ = copy_bidirectional(&mut client, &mut server).await;
        });
        Tunnelled { held }
    }
}

impl Tunnelled {
    /// Keeps `guard` until the tunnel ends; if that was already, not at all.
    pub(crate) fn hold(&self, guard: Box<dyn Any + Send>) {
        if let Some(held) = &mut *self.held.lock().unwrap_or_else(PoisonError::into_inner) {
            held.push(guard);
        }
    }
}

/// Lets go of what is held, however the task ends.
struct End(Arc<Mutex<Option<Guards>>>);

impl Drop for End {
    fn drop(&mut self) {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(held);
    }
}
