//! Slots that are held, and renewed while they are.

use super::reservation::RedisReservation;
use crate::{
    question::{Part, Question, Told, Verb},
    store::RedisStore,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::task::AbortHandle;
use tollgate::{Limit, SetStatus, StoreError, Time};

/// Slots of a fleet-wide limit, held until this is dropped. A node that dies holds them for `max_hold` from its last renewal.
#[must_use = "a permit that is dropped gives its slots back"]
#[derive(Debug)]
pub struct RedisPermit {
    status: SetStatus,
    slots: Option<Renewal>,
}

impl RedisPermit {
    pub(super) fn new(turn: RedisReservation) -> Self {
        let (_, status, booked) = turn.into_parts();
        Self { status, slots: booked.and_then(|booked| booked.slots) }
    }

    /// How every charge stood when it was made.
    pub const fn status(&self) -> &SetStatus {
        &self.status
    }

    /// Whether the slots are still held, as far as this node knows: a node that could not reach Redis for `max_hold` has lost
    /// them.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.slots.as_ref().is_none_or(Renewal::is_held)
    }

    /// Gives the slots back, and hears how many units came back.
    ///
    /// # Errors
    /// Where Redis does not answer; then they come back by time.
    pub async fn leave(mut self) -> Result<u32, StoreError> {
        match self.slots.take() {
            Some(slots) => slots.leave().await,
            None => Ok(0),
        }
    }
}

/// Slots, renewed in the background; dropped, they are given back.
#[derive(Debug)]
pub(super) struct Renewal {
    store: RedisStore,
    held: Option<Held>,
    /// Until when they are surely held, in nanoseconds on the store's clock; zero once they are lost.
    until: Arc<AtomicU64>,
    task: AbortHandle,
}

#[derive(Clone, Debug)]
struct Held {
    permit: u64,
    parts: Vec<Part>,
}

impl Renewal {
    /// Renews what `permit` holds under those of the parts that have slots, since it was asked for.
    pub(super) fn start(store: &RedisStore, permit: u64, parts: &[Part], asked: Time) -> Self {
        let holders = |part: &&Part| matches!(part.edition.limit, Limit::Concurrency(_));
        let parts: Vec<Part> = parts.iter().filter(holders).cloned().collect();
        let held = Held { permit, parts };
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

    async fn leave(mut self) -> Result<u32, StoreError> {
        let Some(held) = self.held.take() else { return Ok(0) };
        let units = self.store.ask(held.leave()).await?.number()?;
        held.nudge(&self.store);
        Ok(u32::try_from(units).unwrap_or(u32::MAX))
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.task.abort();
        if let Some(held) = self.held.take() {
            self.store.tell(held.leave());
            held.nudge(&self.store);
        }
    }
}

impl Held {
    fn leave(&self) -> Question {
        Question { verb: Verb::Leave { permit: self.permit }, parts: self.parts.clone() }
    }

    /// Whoever of this node waits for a slot may look.
    fn nudge(&self, store: &RedisStore) {
        self.parts.iter().for_each(|part| store.shared.lines.nudge(&part.key));
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

async fn renew_for_good(store: RedisStore, held: Held, until: Arc<AtomicU64>) {
    let verb = Verb::Renew { permit: held.permit };
    loop {
        store.sleep_until(store.now() + held.every()).await;
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
