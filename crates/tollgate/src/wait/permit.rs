//! Slots that come back by themselves.

use super::{
    gate::{self, AnyGate, At, WaitAt},
    order::Bucket,
    passed::Passed,
    queues::BucketChange,
};
use crate::{
    decision::Status,
    few::Few,
    step::{concurrency::PermitId, turns::Turns},
};
use std::{fmt, time::Duration};

/// Slots of concurrency limits, held until this is dropped.
///
/// They come back whatever ends the holder: a return, a panic, an aborted task. A permit that is forgotten (leaked), or held
/// for longer than the limit's `max_hold` without a [renewal](Self::renew), loses its slots then; dropping it later gives
/// nothing back a second time.
///
/// It also stands for a set that entered no concurrency limit, and then holds nothing.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Concurrency, Limiter};
///
/// let connections = Limiter::new(Concurrency::new(2, Duration::from_secs(30))?.with_queue(10));
/// let one = connections.enter().blocking()?;
/// let two = connections.enter().blocking()?;
/// assert!(connections.enter().up_to(Duration::ZERO).blocking().is_err());
/// drop(one);
/// assert!(connections.enter().blocking().is_ok());
/// # drop(two);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a permit that is dropped gives its slots back"]
pub struct Permit<'a> {
    gate: AnyGate<'a>,
    buckets: Few<Bucket>,
    passed: Passed,
}

impl<'a> Permit<'a> {
    pub(super) fn new<T: WaitAt + 'a>(at: At<'a, T>, buckets: Few<Bucket>, passed: Passed) -> Self {
        Self { gate: at.into(), buckets, passed }
    }

    /// Lets it hold its slots for another `max_hold` from now. Whether it still held all of them; if not, somebody else may
    /// be in them.
    pub fn renew(&self) -> bool {
        self.passed.permit.is_none_or(|id| {
            // Every one of them, whatever became of the first.
            self.buckets
                .iter()
                .map(|bucket| self.gate.gate().renew(bucket, id))
                .fold(true, |all, held| all & held)
        })
    }

    /// How long it holds its slots without a renewal: the shortest `max_hold` of its limits. `None` where it holds nothing.
    #[must_use]
    pub fn max_hold(&self) -> Option<Duration> {
        let holds = self.buckets.iter().filter_map(|bucket| match self.gate.gate().turns(bucket) {
            Turns::Slots { max_hold, .. } => Some(max_hold),
            _ => None,
        });
        holds.min()
    }

    /// How every charge stood when it entered, in the order they were given.
    pub fn statuses(&self) -> &[Status] {
        self.passed.statuses()
    }

    /// How long it waited to enter.
    #[must_use]
    pub const fn waited(&self) -> Duration {
        self.passed.waited
    }

    /// Puts the slots into other hands, which renew them and give them back by this name: from here on nothing comes back by
    /// itself but by `max_hold`. `None` where it holds nothing.
    #[must_use = "who does not know the name cannot give the slots back"]
    pub fn keep(mut self) -> Option<PermitId> {
        self.passed.permit.take()
    }

    /// Runs `work`, and renews the permit while it lasts: work may take longer than `max_hold` and a holder that was
    /// forgotten still loses its slots.
    #[cfg(feature = "tokio")]
    pub async fn hold_while<F: Future>(&self, work: F) -> F::Output {
        let Some(max_hold) = self.max_hold() else { return work.await };
        let mut work = std::pin::pin!(work);
        self.renew();
        loop {
            match tokio::time::timeout(max_hold / 3, &mut work).await {
                Ok(done) => return done,
                Err(_) => self.renew(),
            };
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.passed.permit {
            let gate = self.gate.gate();
            for bucket in self.buckets.iter() {
                gate::change(gate, bucket, BucketChange::MoreRoom, || gate.leave(bucket, id));
            }
        }
    }
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("id", &self.passed.permit).field("statuses", &self.statuses()).finish()
    }
}
