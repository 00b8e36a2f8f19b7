//! A set let in, whether Redis answers or not.

use super::{TurnError, permit::RedisPermit, request::Room};
use crate::{limit::RedisLimit, store::RedisStore};
use std::{sync::Arc, time::Duration};
use tollgate::{Charge, Decision, Enter, Entered, Retry, SetStatus, Status, StoreError};

impl Enter for RedisStore {
    type Permit = RedisPermit;

    async fn enter(
        self: &Arc<Self>,
        charges: &[Charge<'_, RedisLimit>],
    ) -> Result<Entered<RedisPermit>, StoreError> {
        // As in a check: who does not say does not wait, unless the limit itself has a pace.
        let own = |charge: &Charge<'_, RedisLimit>| {
            if charge.limit.named.edition().waits() { Duration::MAX } else { Duration::ZERO }
        };
        let in_time: Vec<_> =
            charges.iter().map(|charge| charge.up_to(charge.up_to.unwrap_or_else(|| own(charge)))).collect();
        match self.enter_for(&in_time, Duration::MAX, Room::AsSaid).await {
            Ok(permit) => Ok(Entered::In(permit)),
            Err(TurnError::Refused(status)) => Ok(Entered::Refused(status)),
            Err(TurnError::TimedOut) => Ok(Entered::Refused(timed_out(&self.peek(charges).await?))),
            Err(TurnError::Store(error)) => self.enter_without(charges, error).await,
        }
    }
}

/// How charges stand whose turn did not come: there may be room by now, and still they were refused.
fn timed_out(status: &SetStatus) -> SetStatus {
    let mut statuses = status.statuses().to_vec();
    if !status.is_deny()
        && let Some(first) = statuses.first_mut()
    {
        let refused = Decision::Deny(Retry::WhenReleased);
        *first = Status::new(refused, first.limit(), first.remaining(), first.reset_after());
    }
    SetStatus::new(statuses, None)
}
