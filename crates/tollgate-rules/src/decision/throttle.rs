//! `CL.THROTTLE`: buckets whose numbers come with every request, under the same switch and recorder as limits.

use super::{ChargeOutcome, DecisionError, RecordedLimit, Session};
use std::time::Duration;
use tollgate::{Cells, DecidedBy, Key, OnFailure, Owing, Throttle, Throttled};

impl<S: Cells> Session<S> {
    /// Charges a bucket where that passes.
    ///
    /// # Errors
    /// Where the store does not answer and no failure policy decides instead.
    pub async fn throttle(&self, key: Key<'_>, asked: &Throttle) -> Result<Throttled, DecisionError> {
        let units = u32::try_from(asked.wanted().max(0)).unwrap_or(u32::MAX);
        let record = |outcome| self.record(RecordedLimit::Throttle, key, units, outcome);
        let Some(store) = self.rules.deciding_store() else {
            record(ChargeOutcome::Skipped);
            return Ok(asked.by_policy(OnFailure::Open, Duration::ZERO).said_by(DecidedBy::Switch));
        };
        match store.throttle(key, asked).await {
            Ok(told) => {
                record(if told.is_allow() { ChargeOutcome::Allowed } else { ChargeOutcome::Denied });
                Ok(told)
            }
            Err(error) => {
                record(ChargeOutcome::Unanswered);
                Err(error.into())
            }
        }
    }

    /// Forgets what a bucket owes. Whether it owed anything.
    ///
    /// # Errors
    /// Where the store does not answer.
    pub async fn forget(&self, key: Key<'_>) -> Result<bool, DecisionError> {
        Ok(self.rules.store.forget(key).await?)
    }

    /// Until when a bucket owes; `None` where it does not.
    ///
    /// # Errors
    /// Where the store does not answer.
    pub async fn owing(&self, key: Key<'_>) -> Result<Option<Owing>, DecisionError> {
        Ok(self.rules.store.owing(key).await?)
    }
}
