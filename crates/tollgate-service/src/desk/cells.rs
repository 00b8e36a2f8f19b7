//! Cells at the desk: numbers that come with the question, under the same switch and in the same books as limits.

use super::{AskError, CellAnswered, DoorName, Sitting};
use std::time::Duration;
use tollgate::{Cells, DecidedBy, Key, OnFailure, Owing, Throttle, Throttled};

impl<S: Cells> Sitting<'_, S> {
    /// Asks a cell, and charges it where that passes.
    ///
    /// # Errors
    /// Where the store does not answer and no policy decides instead.
    pub async fn throttle(
        &self,
        door: DoorName,
        key: Key<'_>,
        asked: &Throttle,
    ) -> Result<Throttled, AskError> {
        let skipped = !self.is_enabled();
        let told = if skipped {
            // Everything passes, and no store is touched.
            asked.by_policy(OnFailure::Open, Duration::ZERO).said_by(DecidedBy::Store)
        } else {
            self.store().throttle(key, asked).await.inspect_err(|_| {
                let units = u32::try_from(asked.wanted().max(0)).unwrap_or(u32::MAX);
                self.ledger.unanswered(door, &[(None, key, units)]);
            })?
        };
        self.ledger.throttled(&CellAnswered { door, key, units: asked.wanted(), told: &told, skipped });
        Ok(told)
    }

    /// Forgets what a cell owes. Whether it owed anything.
    ///
    /// # Errors
    /// Where the store does not answer.
    pub async fn forget(&self, key: Key<'_>) -> Result<bool, AskError> {
        Ok(self.store().forget(key).await?)
    }

    /// Until when a cell owes; `None` where it does not.
    ///
    /// # Errors
    /// Where the store does not answer.
    pub async fn owing(&self, key: Key<'_>) -> Result<Option<Owing>, AskError> {
        Ok(self.store().owing(key).await?)
    }
}
