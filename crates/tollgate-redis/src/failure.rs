//! What is decided while Redis does not answer: for each limit open, closed or local.
//!
//! A set is decided as a whole here too. One closed limit refuses it; otherwise those that are local decide, all or none, in
//! this node's memory on its share of each limit; what is open passes. Every status says that it was decided so. A refusal by
//! Redis is an answer, and never comes here.

use crate::{
    asking::is_outage,
    limit::{Edition, RedisLimit},
    store::RedisStore,
    turn::{RedisPermit, Room},
};
use std::{num::NonZeroU32, sync::Arc, time::Duration};
use tollgate::{
    Bounds, Charge, Clock, DecidedBy, Decision, Enter, Entered, Key, LimitHandle, ManualClock, MemoryStore,
    OnFailure, PermitId, Reason, Refused, Retry, SetStatus, Sleep, Status, StoreError, SystemClock, Time,
    Timer, WaitError,
};

/// When a closed limit tells callers to come back: about when the next probe will have been answered.
pub(crate) const COME_BACK: Duration = Duration::from_secs(1);

/// Shares of the limits, in memory.
pub(crate) struct Local {
    pub(crate) store: Arc<MemoryStore<LocalClock>>,
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
        let store = Arc::new(MemoryStore::with_clock(Bounds::default(), clock));
        Self { store, nodes: NonZeroU32::new(nodes).unwrap_or(NonZeroU32::MIN) }
    }

    pub(crate) const fn nodes(&self) -> NonZeroU32 {
        self.nodes
    }

    /// Gives back what a permit holds here; none where it is not one of ours.
    pub(crate) fn leave(&self, charges: &[Charge<'_, RedisLimit>], permit: PermitId) -> u32 {
        let shares = known_shares(charges);
        let charges: Vec<Charge<'_>> = shares.iter().map(|(key, handle)| Charge::new(handle, *key)).collect();
        self.store.leave(&charges, permit).unwrap_or(0)
    }

    /// Lets a permit that this node gave hold on; not where it is not one of ours.
    pub(crate) fn renew(&self, charges: &[Charge<'_, RedisLimit>], permit: PermitId) -> bool {
        let shares = known_shares(charges);
        let charges: Vec<Charge<'_>> = shares.iter().map(|(key, handle)| Charge::new(handle, *key)).collect();
        !charges.is_empty() && self.store.renew(&charges, permit).unwrap_or(false)
    }

    /// This node's share of a limit: made when it is first needed, and changed with it.
    fn share(&self, limit: &RedisLimit) -> Result<LimitHandle, StoreError> {
        let edition = limit.named.edition();
        let mut share = limit.named.share();
        match &mut *share {
            Some(share) if Arc::ptr_eq(&share.of, &edition) => Ok(share.handle.clone()),
            Some(share) => {
                self.store.change(&share.handle, edition.limit.share(self.nodes))?;
                share.of = edition;
                Ok(share.handle.clone())
            }
            None => {
                let handle = self.store.add(&limit.named.name, edition.limit.share(self.nodes))?;
                *share = Some(Share { store: Arc::clone(&self.store), handle: handle.clone(), of: edition });
                Ok(handle)
            }
        }
    }
}

/// A node's share of a limit. It goes with the limit's last handle: limits that come with questions come and go, and memory
/// has room for so many.
pub(crate) struct Share {
    store: Arc<MemoryStore<LocalClock>>,
    handle: LimitHandle,
    /// Whose numbers it has.
    of: Arc<Edition>,
}

impl Drop for Share {
    fn drop(&mut self) {
        // It is there as long as this is.
        let _ = self.store.remove(&self.handle);
    }
}

/// Whose buckets, on those shares that were ever needed.
fn known_shares<'c>(charges: &[Charge<'c, RedisLimit>]) -> Vec<(Key<'c>, LimitHandle)> {
    let known = |charge: &Charge<'c, RedisLimit>| {
        charge.limit.named.share().as_ref().map(|share| (charge.key, share.handle.clone()))
    };
    charges.iter().filter_map(known).collect()
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
        let policies = self.policies(charges, error)?;
        let charging = if is_closed(&policies, charges) { Charging::No } else { charging };
        let (locals, handles) = self.locals(charges, &policies)?;
        let locals = own_charges(&locals, &handles);
        let told = match charging {
            _ if locals.is_empty() => None,
            Charging::Yes => Some(self.shared.local.store.check(&locals)?),
            Charging::No => Some(self.shared.local.store.peek(&locals)?),
        };
        let statuses = told.as_ref().map(SetStatus::statuses).unwrap_or_default();
        let permit = told.as_ref().and_then(SetStatus::permit);
        self.shared.counts.without_redis();
        Ok(SetStatus::new(by_policy(charges, &policies, statuses), permit))
    }

    /// Lets a set in without Redis: what is local waits and holds slots of this node's own share.
    pub(crate) async fn enter_without(
        &self,
        charges: &[Charge<'_, RedisLimit>],
        up_to: Duration,
        room: Room,
        error: StoreError,
    ) -> Result<RedisPermit, WaitError> {
        let policies = self.policies(charges, error.clone())?;
        if is_closed(&policies, charges) {
            let status = self.decide_without(charges, error, Charging::No)?;
            let reason = |after| Reason::NoRoom { retry_after: Some(after) };
            return Err(Refused::from_status(&status, charges, reason).into());
        }
        let (locals, handles) = self.locals(charges, &policies)?;
        let locals = own_charges(&locals, &handles);
        self.shared.counts.without_redis();
        let status = |locals: &[Status]| SetStatus::new(by_policy(charges, &policies, locals), None);
        if locals.is_empty() {
            return Ok(RedisPermit::without_redis(status(&[]), None));
        }
        let local = &self.shared.local.store;
        let entered = match room {
            Room::Awaited => local.enter_owned(&locals).up_to(up_to).await,
            Room::AsSaid => match Enter::enter(local, &locals).await? {
                Entered::In(permit) => Ok(permit),
                Entered::Refused(refused) => Err(refused.into()),
            },
        };
        match entered {
            Ok(permit) => Ok(RedisPermit::without_redis(status(permit.statuses()), Some(permit))),
            Err(WaitError::Refused(refused)) => {
                let status = status(refused.status().statuses());
                Err(Refused::with_reason(refused.reason(), &status).into())
            }
            Err(error) => Err(error),
        }
    }

    /// What is done about each charge, where the error is an outage and somebody said what to do.
    fn policies(
        &self,
        charges: &[Charge<'_, RedisLimit>],
        error: StoreError,
    ) -> Result<Vec<OnFailure>, StoreError> {
        let policies: Option<Vec<OnFailure>> =
            charges.iter().map(|charge| self.policy(charge.limit)).collect();
        policies.filter(|_| is_outage(&error)).ok_or(error)
    }

    /// Those of the charges that are local, and this node's shares of their limits.
    fn locals<'c>(
        &self,
        charges: &[Charge<'c, RedisLimit>],
        policies: &[OnFailure],
    ) -> Result<(Vec<Charge<'c, RedisLimit>>, Vec<LimitHandle>), StoreError> {
        let of = |(charge, policy): (&Charge<'c, RedisLimit>, &OnFailure)| {
            (*policy == OnFailure::Local).then_some(*charge)
        };
        let locals: Vec<_> = charges.iter().zip(policies).filter_map(of).collect();
        let handles = locals.iter().map(|charge| self.shared.local.share(charge.limit));
        let handles = handles.collect::<Result<_, _>>()?;
        Ok((locals, handles))
    }
}

/// One closed limit refuses the set.
fn is_closed(policies: &[OnFailure], charges: &[Charge<'_, RedisLimit>]) -> bool {
    policies.iter().zip(charges).any(|(policy, it)| *policy == OnFailure::Closed && it.cost > 0)
}

/// The same charges, on this node's shares.
fn own_charges<'c>(locals: &[Charge<'c, RedisLimit>], handles: &'c [LimitHandle]) -> Vec<Charge<'c>> {
    let own = |(charge, limit): (&Charge<'c, RedisLimit>, _)| Charge {
        limit,
        key: charge.key,
        cost: charge.cost,
        up_to: charge.up_to,
    };
    locals.iter().zip(handles).map(own).collect()
}

/// How every charge stands by its policy; the local ones as told.
fn by_policy(charges: &[Charge<'_, RedisLimit>], policies: &[OnFailure], locals: &[Status]) -> Vec<Status> {
    let mut locals_told = locals.iter();
    let stands = |(policy, charge): (&OnFailure, &Charge<'_, RedisLimit>)| {
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
    };
    policies.iter().zip(charges).map(stands).collect()
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

impl Timer for LocalClock {
    fn sleep_until(&self, at: Time) -> Sleep {
        match self {
            Self::System(clock) => clock.sleep_until(at),
            Self::Manual(clock) => clock.sleep_until(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate::{FixedWindow, Store};

    /// Whoever brought ever new limits while Redis was away once filled this node's memory with their shares.
    #[tokio::test]
    async fn a_share_goes_with_the_last_handle_of_its_limit() {
        // Nobody listens there.
        let store = RedisStore::builder("redis://127.0.0.1:1").on_failure(OnFailure::Local);
        let store = store.open().expect("an address");
        let limit = store.add("limit", FixedWindow::forever(9).expect("a limit")).expect("kept");
        let told = store.check(&[Charge::new(&limit, "k")]).await.expect("decided");
        assert_eq!(told.statuses()[0].decided_by(), DecidedBy::Failure(OnFailure::Local));
        let share = limit.named.share().as_ref().map(|share| share.handle.clone()).expect("it needed one");
        let is_there = || store.shared.local.store.check(&[Charge::new(&share, "k")]).is_ok();
        let other = limit.clone();
        store.remove_limit(&limit);
        drop(limit);
        assert!(is_there(), "somebody may still charge it");
        drop(other);
        assert!(!is_there());
    }
}
