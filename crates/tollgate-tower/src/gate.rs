//! The store behind a layer, whatever its clock: asked at once, or waited for.
//!
//! A layer's type would otherwise carry its clock through every signature that it appears in.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};
use tollgate::{Charge, MemoryStore, Permit, SetStatus, Sleep, Status, StoreError, Timer, WaitError};

/// A turn that is waited for.
pub(crate) type Entering = Pin<Box<dyn Future<Output = Result<Permit<'static>, WaitError>> + Send>>;

/// Where charges are made.
pub(crate) trait Gate: Send + Sync {
    /// Charges all or none, now.
    fn check(&self, charges: &[Charge<'_>]) -> Result<SetStatus, StoreError>;

    /// Charges one, now.
    fn check_one(&self, charge: &Charge<'_>) -> Result<Status, StoreError>;

    /// Charges all or none, when their turn comes, and holds their slots. Its place is taken when it is first polled.
    fn enter(&self, charges: &[Charge<'_>]) -> Entering;

    /// Ready after so long.
    fn sleep(&self, time: Duration) -> Sleep;
}

impl<C: Timer + Send + Sync + 'static> Gate for Arc<MemoryStore<C>> {
    fn check(&self, charges: &[Charge<'_>]) -> Result<SetStatus, StoreError> {
        MemoryStore::check(self, charges)
    }

    fn check_one(&self, charge: &Charge<'_>) -> Result<Status, StoreError> {
        MemoryStore::check_one(self, charge)
    }

    fn enter(&self, charges: &[Charge<'_>]) -> Entering {
        Box::pin(self.enter_owned(charges))
    }

    fn sleep(&self, time: Duration) -> Sleep {
        self.clock().sleep_until(self.clock().now() + time)
    }
}
