//! Slots that are held, and renewed while they are.

use super::wait::Released;
use crate::{
    question::{Part, Parts, Question, Told, Verb},
    store::RedisStore,
};
use std::{
    num::NonZeroU64,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::task::AbortHandle;
use tollgate::{Held, Limit, Passed, Permit, PermitId, Sealed, SetStatus, Status, StoreError, Time};

/// Slots of a fleet-wide limit, held until this is dropped. A node that dies holds them for `max_hold` from its last renewal.
#[must_use = "a permit that is dropped gives its slots back"]
#[derive(Debug)]
pub struct RedisPermit {
    status: SetStatus,
    slots: Slots,
    waited: Duration,
}

#[derive(Debug)]
enum Slots {
    None,
    Shared(Renewal),
    /// Of this node's own share, had while Redis did not answer.
    Own(Permit<'static>),
}

impl RedisPermit {
    pub(super) fn new(released: Released) -> Self {
        let Released { status, slots, waited } = released;
        Self { status, slots: slots.map_or(Slots::None, Slots::Shared), waited }
    }

    /// Had without Redis, by policy.
    pub(crate) fn without_redis(status: SetStatus, own: Option<Permit<'static>>) -> Self {
        let waited = own.as_ref().map_or(Duration::ZERO, Permit::waited);
        Self { status, slots: own.map_or(Slots::None, Slots::Own), waited }
    }

    /// How every charge stood when it was made, in the order they were given.
    pub fn statuses(&self) -> &[Status] {
        self.status.statuses()
    }

    /// How long it waited to enter.
    #[must_use]
    pub const fn waited(&self) -> Duration {
        self.waited
    }

    /// Whether the slots are still held, as far as this node knows: a node that could not reach Redis for `max_hold` has lost
    /// them.
    #[must_use]
    pub fn is_held(&self) -> bool {
        match &self.slots {
            Slots::None => true,
            Slots::Shared(renewal) => renewal.is_held(),
            Slots::Own(permit) => permit.renew(),
        }
    }

    /// Gives the slots back, and hears how many units came back.
    ///
    /// # Errors
    /// Where Redis does not answer; then they come back by time.
    pub async fn leave(self) -> Result<u32, StoreError> {
        match self.slots {
            Slots::Shared(slots) => slots.leave().await,
            // Given back by being dropped, at once.
            Slots::None | Slots::Own(_) => Ok(0),
        }
    }
}

/// What is left of a permit by somebody who does not hold its slots.
impl From<RedisPermit> for Passed {
    fn from(permit: RedisPermit) -> Self {
        Self::from_status(&permit.status, permit.waited)
    }
}

impl Sealed for RedisPermit {}

impl Held for RedisPermit {
    fn statuses(&self) -> &[Status] {
        Self::statuses(self)
    }

    fn waited(&self) -> Duration {
        Self::waited(self)
    }

    fn renew_every(&self) -> Option<Duration> {
        match &self.slots {
            Slots::Own(permit) => permit.renew_every(),
            // Those in Redis are renewed in the background.
            Slots::None | Slots::Shared(_) => None,
        }
    }

    fn renew(&self) -> bool {
        self.is_held()
    }

    fn keep(self) -> Option<PermitId> {
        match self.slots {
            Slots::None => None,
            Slots::Shared(renewal) => renewal.keep(),
            Slots::Own(permit) => permit.keep(),
        }
    }
}

/// Slots, renewed in the background; dropped, they are given back.
#[derive(Debug)]
pub(super) struct Renewal {
    store: RedisStore,
    held: Option<Holding>,
    /// Until when they are surely held, in nanoseconds on the store's clock; zero once they are lost.
    until: Arc<AtomicU64>,
    task: AbortHandle,
}

#[derive(Clone, Debug)]
struct Holding {
    permit: u64,
    parts: Parts,
}

impl Renewal {
    /// Renews what `permit` holds under those of the parts that have slots, since it was asked for.
    pub(super) fn start(store: &RedisStore, permit: u64, parts: &[Part], asked: Time) -> Self {
        let holders = |part: &&Part| matches!(part.edition.limit, Limit::Concurrency(_));
        let parts: Parts = parts.iter().filter(holders).cloned().collect();
        let held = Holding { permit, parts };
        let until = Arc::new(AtomicU64::new((asked + held.shortest()).as_nanos()));
        let renewing = renew_for_good(store.clone(), held.clone(), Arc::clone(&until));
        let task = tokio::spawn(renewing).abort_handle();
        Self { store: store.clone(), held: Some(held), until, task }
    }

    fn is_held(&self) -> bool {
        self.store.now().as_nanos() < self.until.load(Relaxed)
    }

    /// Lets go without giving back: time will.
    pub(super) fn forget(mut self) {
        self.held = None;
    }

    /// Lets go without giving back, and says by which name others can.
    fn keep(mut self) -> Option<PermitId> {
        let held = self.held.take()?;
        NonZeroU64::new(held.permit).map(PermitId::new)
    }

    async fn leave(mut self) -> Result<u32, StoreError> {
        let Some(held) = self.held.take() else { return Ok(0) };
        let units = self.store.ask(held.leave()).await?.number()?;
        held.wake_waiters(&self.store);
        Ok(u32::try_from(units).unwrap_or(u32::MAX))
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.task.abort();
        if let Some(held) = self.held.take() {
            self.store.tell(held.leave());
            held.wake_waiters(&self.store);
        }
    }
}

impl Holding {
    fn leave(&self) -> Question {
        Question { verb: Verb::Leave { permit: self.permit }, parts: self.parts.clone() }
    }

    /// Whoever of this node waits for a slot may look.
    fn wake_waiters(&self, store: &RedisStore) {
        self.parts.iter().for_each(|part| store.shared.queues.look_again(&part.key));
    }

    /// A third of the shortest `max_hold`: two renewals may be lost.
    fn every(&self) -> Duration {
        self.shortest() / 3
    }

    fn shortest(&self) -> Duration {
        let holds = self.parts.iter().filter_map(|part| match &part.edition.limit {
            Limit::Concurrency(limit) => Some(limit.max_hold()),
            _ => None,
        });
        holds.min().unwrap_or(Duration::from_secs(1))
    }
}

async fn renew_for_good(store: RedisStore, held: Holding, until: Arc<AtomicU64>) {
    let verb = Verb::Renew { permit: held.permit };
    loop {
        store.sleep_for(held.every()).await;
        let asked = store.now();
        let renewed = store.ask(Question { verb: verb.clone(), parts: held.parts.clone() }).await;
        match renewed.and_then(Told::number) {
            Ok(count) if count < held.parts.len() as u64 => {
                until.store(0, Relaxed);
                return;
            }
            Ok(_) => until.store((asked + held.shortest()).as_nanos(), Relaxed),
            // Without an answer nobody knows; the next one will tell.
            Err(_) => {}
        }
    }
}
