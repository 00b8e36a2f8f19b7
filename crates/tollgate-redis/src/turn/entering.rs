//! Waiting for a turn and entering: in Redis, or without it as each limit's failure policy says.

use super::{NoTurn, permit::RedisPermit, request::Room};
use crate::{
    limit::RedisLimit,
    store::{LONGEST_WAIT, RedisStore},
};
use std::{
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tollgate::{
    Answer, Charge, Enter, Entered, OwnedCharges, Passed, Reason, Refused, SetStatus, Sleep, WaitError,
};

type Entering<'a> = Pin<Box<dyn Future<Output = Result<RedisPermit, WaitError>> + Send + 'a>>;

/// A turn that is waited for, as [`tollgate::Wait`] in memory: await it. Nothing is sent before the first poll. Dropped before
/// its turn has come, it leaves the queue and costs nothing.
#[must_use = "nothing is waited for until it is awaited"]
pub struct RedisWait<'a, G = Passed> {
    store: &'a RedisStore,
    charges: &'a [Charge<'a, RedisLimit>],
    up_to: Duration,
    waiting: Option<Entering<'a>>,
    granted: PhantomData<fn() -> G>,
}

impl<'a, G> RedisWait<'a, G> {
    /// Waits this long at most. A turn that would come later is refused at once. Without this it waits for as long as it takes.
    pub const fn up_to(mut self, up_to: Duration) -> Self {
        self.up_to = up_to;
        self
    }
}

impl<G: From<RedisPermit>> Future for RedisWait<'_, G> {
    type Output = Result<G, WaitError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let (store, charges, up_to) = (this.store, this.charges, this.up_to);
        let waiting =
            this.waiting.get_or_insert_with(|| Box::pin(store.enter_set(charges, up_to, Room::Awaited)));
        waiting.as_mut().poll(context).map_ok(G::from)
    }
}

impl RedisStore {
    /// Waits for a turn in the queues of the charges' buckets. All charges are made when it comes, or none; slots of a
    /// concurrency limit are waited for and not held. While Redis does not answer, each limit's failure policy decides.
    pub const fn wait<'a>(&'a self, charges: &'a [Charge<'a, RedisLimit>]) -> RedisWait<'a> {
        self.turn(charges)
    }

    /// Waits as [`wait`](Self::wait) does, and holds the slots of the concurrency limits among the charges until the permit is
    /// dropped.
    pub const fn enter<'a>(&'a self, charges: &'a [Charge<'a, RedisLimit>]) -> RedisWait<'a, RedisPermit> {
        self.turn(charges)
    }

    const fn turn<'a, G>(&'a self, charges: &'a [Charge<'a, RedisLimit>]) -> RedisWait<'a, G> {
        RedisWait { store: self, charges, up_to: Duration::MAX, waiting: None, granted: PhantomData }
    }

    /// Enters a set in Redis, or without it.
    async fn enter_set(
        &self,
        charges: &[Charge<'_, RedisLimit>],
        up_to: Duration,
        room: Room,
    ) -> Result<RedisPermit, WaitError> {
        let begun = self.now();
        // As in a check: a charge that does not say how long it waits does not, unless its limit has a pace of its own.
        let patience = |charge: &Charge<'_, RedisLimit>| match (room, charge.up_to) {
            (Room::AsSaid, None) if charge.limit.named.edition().waits() => Some(Duration::MAX),
            (Room::AsSaid, None) => Some(Duration::ZERO),
            // Shorter than a wait that nobody said the length of.
            (Room::AsSaid, Some(said)) => Some(said.min(Duration::from_micros(LONGEST_WAIT - 1))),
            (Room::Awaited, said) => said,
        };
        let timed = charges.iter().map(|charge| Charge { up_to: patience(charge), ..*charge });
        match self.released(&timed.collect::<Vec<_>>(), up_to, room).await {
            Ok(released) => Ok(RedisPermit::new(released)),
            Err(NoTurn::Refused(status)) => Err(refused(&status, charges).into()),
            Err(NoTurn::TimedOut) => {
                let reason = Reason::TimedOut { waited: self.now() - begun };
                Err(Refused::with_reason(reason, &self.peek(charges).await?).into())
            }
            Err(NoTurn::Store(error)) => {
                let left = up_to.saturating_sub(self.now() - begun);
                self.enter_without(charges, left, room, error).await
            }
        }
    }
}

/// A refusal by Redis. What is asked for in vain was to come in time.
fn refused(status: &SetStatus, charges: &[Charge<'_, RedisLimit>]) -> Refused {
    Refused::from_status(status, charges, |retry_after| Reason::Late { retry_after })
}

impl Enter for RedisStore {
    type Permit = RedisPermit;

    fn enter(
        self: &Arc<Self>,
        charges: &[Charge<'_, RedisLimit>],
    ) -> impl Answer<Entered<RedisPermit>> + use<> {
        let (store, owned) = (Self::clone(self), OwnedCharges::new(charges));
        async move {
            let borrowed = owned.borrow();
            let charges = borrowed.charges();
            let entered = store.enter_set(&charges, Duration::MAX, Room::AsSaid).await;
            entered.map(Entered::In).or_else(Entered::from_error)
        }
    }

    fn sleep(&self, time: Duration) -> Sleep {
        self.sleep_for(time)
    }
}

impl<G> std::fmt::Debug for RedisWait<'_, G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisWait").field("up_to", &self.up_to).finish_non_exhaustive()
    }
}
