//! Waiting for a turn, and reserving one.
//!
//! A waiter asks Redis itself while nobody else waits at its buckets. Told to wait, it stands in the queue of the bucket
//! that refused it, at the place of its arrival, and moves to another's queue when that one refuses. Its deadline is judged
//! when it arrives, by what Redis last said and by those in front; it can only become better, unless other nodes take more
//! than their share or the numbers change.

use super::{
    NoTurn,
    permit::Renewal,
    queue::{Handed, take},
    request::{Answer, Denial, Request, Room},
    reservation::RedisReservation,
    serving,
};
use crate::{limit::RedisLimit, store::RedisStore};
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;
use tollgate::{Charge, Reason, Refused, SetStatus, Time, WaitError};

impl RedisStore {
    /// Books a turn that comes within `up_to` ([`Duration::MAX`]: whenever), or says at once that there is none. Windows,
    /// logs, counters and slots do not book: there it is now or not.
    ///
    /// # Errors
    /// Where the turn would not come in time, or Redis does not answer.
    pub async fn reserve(
        &self,
        charges: &[Charge<'_, RedisLimit>],
        up_to: Duration,
    ) -> Result<RedisReservation, WaitError> {
        let request = self.request(charges, up_to, Room::AsSaid).await?;
        // Booked as far ahead as the charges may wait.
        let parts = request.parts(self, Duration::MAX).await?;
        let denial = match self.book(&request, parts).await? {
            Answer::Turn(turn) => return Ok(turn),
            Answer::Denied(denial) => denial,
        };
        let books = request.edition(denial.part).books();
        let reason = |after| match books {
            true => Reason::Late { retry_after: after },
            false => Reason::NoRoom { retry_after: Some(after) },
        };
        Err(Refused::from_status(&self.refusal(&request, denial).await?, charges, reason).into())
    }

    /// Waits until it is released.
    pub(super) async fn released(
        &self,
        charges: &[Charge<'_, RedisLimit>],
        up_to: Duration,
        room: Room,
    ) -> Result<Released, NoTurn> {
        let request = Arc::new(self.request(charges, up_to, room).await?);
        let mut place = Place { store: self, arrival: self.shared.queues.arrive(), stands: None };
        let mut next = match self.shared.queues.occupied(&request) {
            Some(part) => Next::Join(part, None),
            None => Next::Heard(self.ask_for(&request, self.horizon()).await?),
        };
        let mut has_waited = false;
        loop {
            let (part, known) = match next {
                Next::Heard(Answer::Turn(turn)) if turn.is_due() || !request.books_ahead() => {
                    has_waited |= !turn.is_due();
                    let due = turn.due();
                    let (status, slots) = turn.spend();
                    // What is left is the limit's own pace, which is paid for.
                    self.sleep(due).await;
                    let waited = if has_waited { self.now() - request.begun } else { Duration::ZERO };
                    return Ok(Released { status, slots, waited });
                }
                Next::Heard(Answer::Turn(turn)) => (0, Some(Answer::Turn(turn))),
                Next::Heard(Answer::Denied(denial)) if denial.is_final => {
                    let is_over = denial.turn.is_none() && self.now() >= request.deadline(denial.part);
                    let had_time = request.deadline(denial.part) > request.begun;
                    return Err(match is_over && had_time {
                        true => NoTurn::TimedOut,
                        false => NoTurn::Refused(self.refusal(&request, denial).await?),
                    });
                }
                Next::Heard(Answer::Denied(denial)) => (denial.part, Some(Answer::Denied(denial))),
                Next::Join(part, known) => (part, known),
            };
            has_waited = true;
            if let Err(turn) = place.join(&request, part, known) {
                let denial = Denial::by_queue(part, turn);
                return Err(NoTurn::Refused(self.refusal(&request, denial).await?));
            }
            next = match place.called(request.deadline(part)).await {
                Called::Handed(Handed::Turn(turn)) => match take(&turn) {
                    Some(turn) => Next::Heard(Answer::Turn(turn)),
                    // It took too long to come for it.
                    None => Next::Join(part, None),
                },
                Called::Handed(Handed::Denied(denial)) => Next::Heard(Answer::Denied(denial)),
                Called::Handed(Handed::Failed(error)) => return Err(error.into()),
                Called::Again => Next::Join(part, None),
                Called::TooLate => return Err(NoTurn::TimedOut),
            };
        }
    }
}

/// A turn that has come and is spent.
pub(super) struct Released {
    pub(super) status: SetStatus,
    /// Given back when they are dropped.
    pub(super) slots: Option<Renewal>,
    /// Nothing where there was room at once, however long Redis took to say so.
    pub(super) waited: Duration,
}

/// What a waiter does next.
enum Next {
    Heard(Answer),
    Join(usize, Option<Answer>),
}

enum Called {
    Handed(Handed),
    /// The queue has gone, with a runtime.
    Again,
    TooLate,
}

/// A waiter's place; left when it is dropped.
struct Place<'a> {
    store: &'a RedisStore,
    arrival: u64,
    stands: Option<(Arc<[u8]>, oneshot::Receiver<Handed>)>,
}

impl Place<'_> {
    fn join(
        &mut self,
        request: &Arc<Request>,
        part: usize,
        known: Option<Answer>,
    ) -> Result<(), Option<Time>> {
        let queues = &self.store.shared.queues;
        let (handed, is_new) = queues.join(self.arrival, request, part, known, self.store.now())?;
        let bucket = Arc::clone(request.bucket(part));
        if is_new {
            serving::start(self.store, &bucket);
        }
        self.stands = Some((bucket, handed));
        Ok(())
    }

    /// Waits for what the queue has to say, until the deadline; longer where the turn is in hand, and only the timer is late.
    async fn called(&mut self, deadline: Time) -> Called {
        let store = self.store;
        let Some((bucket, handed)) = &mut self.stands else { return Called::Again };
        let mut until = deadline;
        loop {
            tokio::select! {
                biased;
                called = &mut *handed => {
                    self.stands = None;
                    return called.map_or(Called::Again, Called::Handed);
                }
                () = store.sleep(until) => {}
            }
            if !store.shared.queues.covers(bucket, self.arrival, deadline) {
                // It may have been handed over at the last moment.
                return match handed.try_recv() {
                    Ok(called) => {
                        self.stands = None;
                        Called::Handed(called)
                    }
                    Err(_) => Called::TooLate,
                };
            }
            until = store.now() + Duration::from_millis(1);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some((bucket, mut handed)) = self.stands.take() {
            self.store.shared.queues.leave(&bucket, self.arrival, &mut handed);
        }
    }
}
