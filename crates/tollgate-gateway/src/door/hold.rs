//! What a request holds until its response has ended.

use std::sync::Arc;
use tokio::task::AbortHandle;
use tollgate::Held;

/// Slots, renewed while the response lasts and given back when this is dropped.
pub(super) struct Holding<P> {
    _permits: Arc<Vec<P>>,
    renewing: Option<AbortHandle>,
}

impl<P: Held> Holding<P> {
    pub(super) fn new(permits: Vec<P>) -> Self {
        let permits = Arc::new(permits);
        let every = permits.iter().filter_map(Held::renew_every).min();
        // A response that is over sooner has nothing to renew, and most are: the first renewal is what costs.
        let renewing = every.map(|every| {
            let renewed = Arc::downgrade(&permits);
            let task = tokio::spawn(async move {
                loop {
                    tokio::time::sleep(every).await;
                    let Some(permits) = renewed.upgrade() else { return };
                    permits.iter().for_each(|permit| {
                        permit.renew();
                    });
                }
            });
            task.abort_handle()
        });
        Self { _permits: permits, renewing }
    }
}

impl<P> Drop for Holding<P> {
    fn drop(&mut self) {
        if let Some(task) = &self.renewing {
            task.abort();
        }
    }
}
