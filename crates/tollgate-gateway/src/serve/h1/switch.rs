//! A request that may switch protocols: whoever does gets the bytes of the connection once the answer is out.

use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;
use tollgate_net::ActivityStream;

/// Among a request's extensions, where it asks to switch.
#[derive(Clone)]
pub(crate) struct Switching(Arc<Mutex<Option<oneshot::Receiver<ActivityStream>>>>);

impl Switching {
    pub(super) fn new() -> (oneshot::Sender<ActivityStream>, Self) {
        let (sender, receiver) = oneshot::channel();
        (sender, Self(Arc::new(Mutex::new(Some(receiver)))))
    }

    /// Where the connection will come; once.
    pub(crate) fn take(&self) -> Option<oneshot::Receiver<ActivityStream>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
