//! What is decided while Redis does not answer: for each limit open, closed or local.
//!
//! A set is decided as a whole here too. One closed limit refuses it; otherwise those that are local decide, all or none, in
//! this node's memory on its share of each limit; what is open passes. Every status says that it was decided so. A refusal by
//! Redis is an answer, and never comes here.

use crate::{limit::RedisLimit, store::RedisStore};
use std::{num::NonZeroU32, time::Duration};
use tollgate::{
    Bounds, Charge, Clock, DecidedBy, Decision, LimitHandle, ManualClock, MemoryStore, OnFailure, PermitId,
    Retry, SetStatus, Status, StoreError, SystemClock, Time,
};

/// When a closed limit tells callers to come back: about when the next probe will have been answered.
const COME_BACK: Duration = Duration::from_secs(1);

/// Shares of the limits, in memory.
pub(crate) struct Local {
    pub(crate) store: MemoryStore<LocalClock>,
    nodes: NonZeroU32,
}

/// The clock of this machine, or the test's.
pub(crate) enum LocalClock {
    System(SystemClock),
    Manual(ManualClock),
}

impl Local {
    pub(crate) fn new(nodes: u32, clock: Option<ManualClock>) -> Self {
        let clock = clock.map_or_else(|| LocalClock::System(SystemClock::default()), LocalClock::Manual);
        let store = MemoryStore::with_clock(Bounds::default(), clock);
        Self { store, nodes: NonZeroU32::new(nodes).unwrap_or(NonZeroU32::MIN) }
    }

    /// Gives back what a permit holds here; none where it is not one of ours.
    pub(crate) fn leave(&self, charges: &[Charge<'_, RedisLimit>], permit: PermitId) -> u32 {
        let shares: Vec<_> = charges
            .iter()
            .filter_map(|charge| charge.limit.named.known_share().map(|handle| (charge.key, handle)))
            .collect();
        let charges: Vec<Charge<'_>> = shares.iter().map(|(key, handle)| Charge::new(handle, *key)).collect();
        self.store.leave(&charges, permit).unwrap_or(0)
    }

    /// Lets a permit that this node gave hold on; not where it is not one of ours.
    pub(crate) fn renew(&self, charges: &[Charge<'_, RedisLimit>], permit: PermitId) -> bool {
        let shares: Vec<_> = charges
            .iter()
            .filter_map(|charge| charge.limit.named.known_share().map(|handle| (charge.key, handle)))
            .collect();
        let charges: Vec<Charge<'_>> = shares.iter().map(|(key, handle)| Charge::new(handle, *key)).collect();
        !charges.is_empty() && self.store.renew(&charges, permit).unwrap_or(false)
    }

    /// This node's share of a limit: made when it is first needed, and changed with it.
    fn share(&self, limit: &RedisLimit) -> Result<LimitHandle, StoreError> {
        limit.named.local_share(|edition, known| {
            let share = edition.limit.share(self.nodes);
            match known {
                Some(handle) => self.store.change(handle, share).map(|()| handle.clone()),
                None => self.store.add(share),
            }
        })
    }
}

impl RedisStore {
    /// What is done about a limit while Redis does not answer; `None` where its caller wants to know.
    pub(crate) fn policy(&self, limit: &RedisLimit) -> Option<OnFailure> {
        self.shared.settings.on_failure.map(|policy| limit.on_failure.unwrap_or(policy))
    }

    /// Decides a set without Redis.
    pub(crate) fn decide_without(
        &self,
        charges: &[Charge<'_, RedisLimit>],
        error: StoreError,
        charging: Charging,
    ) -> Result<SetStatus, StoreError> {
        let is_outage = matches!(error, StoreError::Unavailable { .. } | StoreError::Unanswered { .. });
        let policies: Option<Vec<OnFailure>> =
            charges.iter().map(|charge| self.policy(charge.limit)).collect();
        let Some(policies) = policies.filter(|_| is_outage) else { return Err(error) };
        let closed =
            policies.iter().zip(charges).any(|(policy, it)| *policy == OnFailure::Closed && it.cost > 0);
        let locals = self.decide_locally(charges, &policies, if closed { Charging::No } else { charging })?;
        let mut locals_told = locals.as_ref().map(SetStatus::statuses).unwrap_or_default().iter();
        let statuses = policies.iter().zip(charges).map(|(policy, charge)| {
            let most = charge.limit.named.edition().limit.most();
            let told = match policy {
                OnFailure::Closed if charge.cost > 0 => Decision::Deny(Retry::After(COME_BACK)),
                OnFailure::Local => {
                    if let Some(status) = locals_told.next() {
                        return status.said_by(DecidedBy::Failure(OnFailure::Local));
                    }
                    Decision::Allow
                }
                OnFailure::Open | OnFailure::Closed => Decision::Allow,
            };
            let left = if matches!(told, Decision::Allow) { most } else { 0 };
            Status::new(told, most, left, Some(Duration::ZERO)).said_by(DecidedBy::Failure(*policy))
        });
        let permit = locals.as_ref().and_then(SetStatus::permit);
        self.shared.counts.without_redis();
        Ok(SetStatus::new(statuses.collect(), permit))
    }

    /// Decides those of the charges that are local, as one set.
    fn decide_locally(
        &self,
        charges: &[Charge<'_, RedisLimit>],
        policies: &[OnFailure],
        charging: Charging,
    ) -> Result<Option<SetStatus>, StoreError> {
        let local = &self.shared.local;
        let of = |(charge, policy): (_, &OnFailure)| (*policy == OnFailure::Local).then_some(charge);
        let locals: Vec<&Charge<'_, RedisLimit>> = charges.iter().zip(policies).filter_map(of).collect();
        if locals.is_empty() {
            return Ok(None);
        }
        let handles: Vec<LimitHandle> =
            locals.iter().map(|charge| local.share(charge.limit)).collect::<Result<_, _>>()?;
        let charges: Vec<Charge<'_>> = locals
            .iter()
            .zip(&handles)
            .map(|(charge, handle)| Charge {
                limit: handle,
                key: charge.key,
                cost: charge.cost,
                up_to: charge.up_to,
            })
            .collect();
        match charging {
            Charging::Yes => local.store.check(&charges).map(Some),
            Charging::No => local.store.peek(&charges).map(Some),
        }
    }
}

/// Whether a set is charged or only asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charging {
    Yes,
    No,
}

impl Clock for LocalClock {
    fn now(&self) -> Time {
        match self {
            Self::System(clock) => clock.now(),
            Self::Manual(clock) => clock.now(),
        }
    }

    fn unix(&self, at: Time) -> u64 {
        match self {
            Self::System(clock) => clock.unix(at),
            Self::Manual(clock) => clock.unix(at),
        }
    }
}
