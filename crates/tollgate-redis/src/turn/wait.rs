//! Waiting for a turn.

use super::{
    TurnError,
    line::Place,
    permit::{RedisPermit, Renewal},
    reservation::{Booked, RedisReservation},
};
use crate::{
    asking::nonsense,
    limit::RedisLimit,
    question::{Question, Told, Verb},
    status::set_status,
    store::{LONGEST_WAIT, RedisStore},
};
use std::time::Duration;
use tollgate::{Charge, Decision, Retry, SetStatus, StoreError, Time};

/// How often a slot is asked for while nobody can say when one comes back: sooner at first.
const SOONEST: Duration = Duration::from_millis(2);
const LATEST: Duration = Duration::from_millis(50);

/// What a question for a turn came to.
enum Turn {
    Booked(RedisReservation),
    /// Refused, and by which bucket, and whether asking again later may help.
    Refused(SetStatus, Refuser),
}

struct Refuser {
    bucket: Vec<u8>,
    books: bool,
    /// Whether its charge waits for the limit's own pace and nothing else.
    paced: bool,
    /// How long its charge may wait.
    patience: Duration,
}

/// What is waited for where a limit with a pace of its own has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// Until there is some.
    Awaited,
    /// Only as long as the charge says: the pace is for those who fit.
    AsSaid,
}

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
    ) -> Result<RedisReservation, TurnError> {
        match self.book(charges, up_to).await? {
            Turn::Booked(turn) => Ok(turn),
            Turn::Refused(status, _) => Err(TurnError::Refused(status)),
        }
    }

    /// Waits for a turn, `up_to` so long ([`Duration::MAX`]: however long). Where turns are booked, one that would come later is
    /// refused at once. Dropped before it is due, the turn is given back.
    ///
    /// # Errors
    /// Where no turn comes in time, or Redis does not answer.
    pub async fn wait(&self, charges: &[Charge<'_, RedisLimit>], up_to: Duration) -> Result<(), TurnError> {
        let (turn, _) = self.turn(charges, up_to, Room::Awaited).await?;
        // It has come, so what it charged is spent; slots are not held.
        let (_, _, booked) = turn.into_parts();
        drop(booked);
        Ok(())
    }

    /// As [`wait`](Self::wait), and holds the slots of the concurrency limits among the charges.
    ///
    /// # Errors
    /// Where no turn comes in time, or Redis does not answer.
    pub async fn enter(
        &self,
        charges: &[Charge<'_, RedisLimit>],
        up_to: Duration,
    ) -> Result<RedisPermit, TurnError> {
        self.enter_for(charges, up_to, Room::Awaited).await
    }

    pub(super) async fn enter_for(
        &self,
        charges: &[Charge<'_, RedisLimit>],
        up_to: Duration,
        room: Room,
    ) -> Result<RedisPermit, TurnError> {
        let (turn, waited) = self.turn(charges, up_to, room).await?;
        Ok(RedisPermit::new(turn, waited))
    }

    /// A turn that has come, and how long it was waited for: not at all where there was room at once, however long Redis took
    /// to say so.
    async fn turn(
        &self,
        charges: &[Charge<'_, RedisLimit>],
        up_to: Duration,
        room: Room,
    ) -> Result<(RedisReservation, Duration), TurnError> {
        let begun = self.now();
        let mut deadline = begun + up_to;
        let mut place: Option<Place<'_>> = None;
        let mut pause = SOONEST;
        loop {
            // On this node those who wait at a bucket go one after the other.
            let first = match &place {
                Some(place) => Some(self.until(deadline, place.first()).await.ok_or(TurnError::TimedOut)?),
                None => None,
            };
            loop {
                let left = deadline - self.now();
                let (status, refuser) = match self.book(charges, left).await? {
                    Turn::Booked(turn) => {
                        let at_once = place.is_none() && turn.is_due();
                        // Whoever comes next in line need not wait for what this one booked elsewhere.
                        drop(first);
                        turn.ready().await;
                        let waited = if at_once { Duration::ZERO } else { self.now() - begun };
                        return Ok((turn, waited));
                    }
                    Turn::Refused(status, refuser) => (status, refuser),
                };
                let after = match status.decision() {
                    _ if refuser.books || (room == Room::AsSaid && refuser.paced) => {
                        return Err(TurnError::Refused(status));
                    }
                    Decision::Deny(Retry::After(after)) => after.max(Duration::from_micros(1)),
                    Decision::Deny(Retry::WhenReleased) => pause,
                    _ => return Err(TurnError::Refused(status)),
                };
                // Whoever refuses says how long it may be waited for there.
                deadline = begun + up_to.min(refuser.patience);
                let mut again = self.now() + after;
                if again > deadline {
                    // Nobody knows when somebody leaves: the last look is when patience ends.
                    let may_come = matches!(status.decision(), Decision::Deny(Retry::WhenReleased));
                    if !may_come {
                        return Err(TurnError::Refused(status));
                    } else if self.now() >= deadline {
                        return Err(if up_to.min(refuser.patience).is_zero() {
                            TurnError::Refused(status)
                        } else {
                            TurnError::TimedOut
                        });
                    }
                    again = deadline;
                }
                if place.as_ref().is_none_or(|place| place.bucket() != refuser.bucket) {
                    place = Some(self.shared.lines.join(&refuser.bucket));
                    break;
                }
                if let Some(place) = &place {
                    let _ = self.until(again, place.nudged()).await;
                }
                pause = (pause * 2).min(LATEST);
            }
            drop(first);
        }
    }

    async fn book(&self, charges: &[Charge<'_, RedisLimit>], up_to: Duration) -> Result<Turn, StoreError> {
        let (mut parts, part_of) = self.parts(charges).await?;
        let micros = u64::try_from(up_to.as_micros()).unwrap_or(u64::MAX).min(LONGEST_WAIT);
        let patience: Vec<Option<u64>> = parts.iter().map(|part| part.up_to).collect();
        for part in &mut parts {
            part.up_to = Some(part.up_to.map_or(micros, |own| own.min(micros)));
        }
        let permit = self.draw();
        let asked = self.now();
        let question = Question { verb: Verb::Reserve { permit }, parts: parts.clone() };
        let Told::Statuses(standings) = self.ask(question).await? else { return Err(nonsense()) };
        let status = set_status(&standings, &part_of, Some(permit));
        if let Some(by) = status.denied_by() {
            let part = &parts[part_of[by]];
            // A charge that waits for its limit's pace, however long, and does not say how long for room.
            let paced = part.edition.waits() && patience[part_of[by]].is_none_or(|own| own >= LONGEST_WAIT);
            let patience = patience[part_of[by]].map_or(Duration::MAX, Duration::from_micros);
            let refuser = Refuser { bucket: part.key.to_vec(), books: part.edition.books(), paced, patience };
            return Ok(Turn::Refused(status, refuser));
        }
        let wait = match status.decision() {
            Decision::Wait(wait) => wait,
            _ => Duration::ZERO,
        };
        let slots = status.permit().map(|_| Renewal::start(self, permit, &parts, asked));
        let taken = standings.into_iter().map(|standing| standing.taken).collect();
        let booked = Booked { parts, part_of, taken, slots };
        // From when the answer came: never early.
        Ok(Turn::Booked(RedisReservation::new(self.clone(), status, self.now() + wait, booked)))
    }

    /// The future's output, unless that time comes first.
    async fn until<T>(&self, deadline: Time, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            output = future => Some(output),
            () = self.sleep_until(deadline) => None,
        }
    }
}
