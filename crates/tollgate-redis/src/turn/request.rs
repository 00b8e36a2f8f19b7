//! One question for a turn, and what Redis made of it.
//!
//! A [`Request`] is what a waiter wants charged, with the numbers that are in force whenever it is asked for. The answer is
//! a turn or a [`Denial`], which says which bucket refuses and when the turn would come there.

use super::{
    permit::Renewal,
    reservation::{Booked, RedisReservation},
};
use crate::{
    asking::Begun,
    gather::Carrier,
    limit::{Edition, Named, RedisLimit},
    question::{Part, Parts, Question, Standings, Told, Verb},
    status::set_status,
    store::{LONGEST_WAIT, RedisStore},
};
use std::{sync::Arc, time::Duration};
use tollgate::{Charge, Decision, Retry, SetStatus, Status, StoreError, Time};

/// Whether a limit's own pace is waited for where it has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// Until there is some.
    Awaited,
    /// Only as long as the charge says: the pace is for those who fit.
    AsSaid,
}

/// What a waiter wants charged.
pub(super) struct Request {
    parts: Parts,
    /// Whose numbers the parts are charged by.
    limits: Vec<Arc<Named>>,
    part_of: Vec<usize>,
    pub(super) begun: Time,
    up_to: Duration,
    room: Room,
}

/// An answer.
pub(super) enum Answer {
    Turn(RedisReservation),
    Denied(Denial),
}

/// Which bucket refuses a request.
pub(super) struct Denial {
    /// The bucket's place among the request's parts.
    pub(super) part: usize,
    /// When the turn comes; `None` where nobody can say.
    pub(super) turn: Option<Time>,
    /// Whether waiting is of no use.
    pub(super) is_final: bool,
    /// The answer to the caller, where the question was asked with all of its patience.
    status: Option<SetStatus>,
}

impl Request {
    pub(super) fn bucket(&self, part: usize) -> &Arc<[u8]> {
        &self.parts[part].key
    }

    pub(super) fn buckets(&self) -> impl Iterator<Item = &Arc<[u8]>> {
        self.parts.iter().map(|part| &part.key)
    }

    pub(super) fn cost(&self, part: usize) -> u64 {
        self.parts[part].cost
    }

    /// The numbers in force.
    pub(super) fn edition(&self, part: usize) -> Arc<Edition> {
        self.limits[part].edition()
    }

    /// Whether it can be booked ahead.
    pub(super) fn books_ahead(&self) -> bool {
        self.limits.len() == 1 && self.edition(0).books()
    }

    /// Whether a turn of one is a turn of the other.
    pub(super) fn charges_as(&self, parts: &[Part], part_of: &[usize]) -> bool {
        let is_same = |(one, other): (&Part, &Part)| one.cost == other.cost && one.key == other.key;
        self.part_of == part_of
            && self.parts.len() == parts.len()
            && self.parts.iter().zip(parts).all(is_same)
    }

    pub(super) fn same_charges(&self, other: &Self) -> bool {
        self.charges_as(&other.parts, &other.part_of)
    }

    /// How long a part may be waited for.
    fn patience(&self, part: usize) -> Duration {
        self.up_to.min(self.parts[part].up_to.map_or(Duration::MAX, Duration::from_micros))
    }

    pub(super) fn deadline(&self, part: usize) -> Time {
        self.begun + self.patience(part)
    }

    /// Whether a charge waits for its limit's pace, however long, and does not say how long for room.
    fn is_paced(&self, part: usize) -> bool {
        self.parts[part].edition.waits() && self.parts[part].up_to.is_none_or(|own| own >= LONGEST_WAIT)
    }

    /// The parts by the numbers in force, each with the patience that is left, at most so much where it is not the limit's
    /// own pace.
    pub(super) async fn parts(&self, store: &RedisStore, most: Duration) -> Result<Parts, StoreError> {
        let now = store.now();
        let mut parts = self.parts.clone();
        for (place, (part, named)) in parts.iter_mut().zip(&self.limits).enumerate() {
            part.edition = store.edition(named).await?;
            let left = self.deadline(place) - now;
            let left = if part.edition.waits() { left } else { left.min(most) };
            part.up_to = Some(u64::try_from(left.as_micros()).unwrap_or(u64::MAX).min(LONGEST_WAIT));
        }
        Ok(parts)
    }
}

impl RedisStore {
    /// How long before a turn it is asked for: a timer's grain, and two calls.
    pub(super) fn lead(&self) -> Duration {
        const GRAIN: Duration = Duration::from_millis(2);
        const LONGEST: Duration = Duration::from_millis(50);
        (GRAIN + 2 * self.shared.gatherer.last_took()).min(LONGEST)
    }

    /// How far ahead turns are booked for waiters: the lead, and 25 ms, within which several nodes book one after the
    /// other instead of refusing one another. At most 75 ms.
    pub(super) fn horizon(&self) -> Duration {
        const BESIDE_OTHERS: Duration = Duration::from_millis(25);
        self.lead() + BESIDE_OTHERS
    }

    pub(super) async fn request(
        &self,
        charges: &[Charge<'_, RedisLimit>],
        up_to: Duration,
        room: Room,
    ) -> Result<Request, StoreError> {
        let begun = self.now();
        let (parts, part_of) = self.parts(charges).await?;
        let limit_of = |part| {
            let place = part_of.iter().position(|of| *of == part);
            place.map(|place| Arc::clone(&charges[place].limit.named))
        };
        let limits = (0..parts.len()).filter_map(limit_of).collect();
        Ok(Request { parts, limits, part_of, begun, up_to, room })
    }

    /// Asks for a turn, booked up to so far ahead if it can be.
    pub(super) async fn ask_for(&self, request: &Request, ahead: Duration) -> Result<Answer, StoreError> {
        let most = if request.books_ahead() { ahead } else { Duration::ZERO };
        let parts = request.parts(self, most).await?;
        self.book(request, parts).await
    }

    /// Asks for several turns in one call, for requests that charge the same.
    pub(super) async fn ask_for_each(
        &self,
        requests: &[Arc<Request>],
        ahead: Duration,
    ) -> Vec<Result<Answer, StoreError>> {
        let mut begun = Vec::with_capacity(requests.len());
        for request in requests {
            begun.push(match request.parts(self, ahead).await {
                Ok(parts) => Ok(self.begin_booking(parts)),
                Err(error) => Err(error),
            });
        }
        let mut answers = Vec::with_capacity(requests.len());
        for (request, begun) in requests.iter().zip(begun) {
            answers.push(match begun {
                Ok((begun, booking)) => {
                    self.finish(begun).await.and_then(|told| self.booked(request, booking, told))
                }
                Err(error) => Err(error),
            });
        }
        answers
    }

    /// Sends a question about one bucket.
    fn begin_booking(&self, parts: Parts) -> (Begun<'_>, Booking) {
        let booking = Booking { permit: self.draw(), asked: self.now(), parts };
        let group = self.shared.gatherer.link().group_of(&booking.parts[0].key);
        (self.begin(group, booking.question(), self.deadline(), Carrier::Task), booking)
    }

    pub(super) async fn book(&self, request: &Request, parts: Parts) -> Result<Answer, StoreError> {
        let booking = Booking { permit: self.draw(), asked: self.now(), parts };
        let told = self.ask(booking.question()).await?;
        self.booked(request, booking, told)
    }

    fn booked(&self, request: &Request, booking: Booking, told: Told) -> Result<Answer, StoreError> {
        let standings = told.statuses()?;
        let Booking { permit, asked, parts } = booking;
        let status = set_status(&standings, &request.part_of, Some(permit));
        if status.is_deny() {
            return Ok(Answer::Denied(self.denial(request, &parts, &standings, status)));
        }
        let wait = match status.decision() {
            Decision::Wait(wait) => wait,
            _ => Duration::ZERO,
        };
        let slots = status.permit().map(|_| Renewal::start(self, permit, &parts, asked));
        let taken = standings.into_iter().map(|standing| standing.taken).collect();
        let booked = Booked { parts, part_of: request.part_of.clone(), taken, slots };
        // From when the answer came: never early.
        Ok(Answer::Turn(RedisReservation::new(self.clone(), status, self.now() + wait, booked)))
    }

    fn denial(&self, request: &Request, parts: &[Part], standings: &Standings, status: SetStatus) -> Denial {
        let now = self.now();
        let by = status.denied_by().map_or(0, |by| request.part_of[by]);
        let mut denial = Denial { part: by, turn: None, is_final: false, status: None };
        let mut asked_with_all = true;
        for (place, (part, standing)) in parts.iter().zip(standings).enumerate() {
            let (deadline, asked) = (request.deadline(place), Duration::from_micros(part.up_to.unwrap_or(0)));
            asked_with_all &= asked >= (deadline - now).min(Duration::from_micros(LONGEST_WAIT));
            if standing.passes() {
                continue;
            }
            let after = Duration::from_micros(standing.time.max(1));
            let turn = match standing.status().decision() {
                Decision::Deny(Retry::After(_)) if standing.banned => Some(now + after),
                Decision::Deny(Retry::After(_)) => Some(now + after + asked),
                Decision::Deny(Retry::WhenReleased) => None,
                _ => {
                    denial.is_final = true;
                    None
                }
            };
            let is_refused_by_pace = request.room == Room::AsSaid && request.is_paced(place);
            let is_late = turn.is_some_and(|turn| turn > deadline) || (turn.is_none() && now >= deadline);
            denial.is_final |= is_late || (place == by && is_refused_by_pace);
            if place == by {
                denial.turn = turn;
            }
        }
        denial.status = asked_with_all.then_some(status);
        denial
    }

    /// Tells the caller that its turn does not come in time.
    pub(super) async fn refusal(&self, request: &Request, denial: Denial) -> Result<SetStatus, StoreError> {
        match denial.status {
            Some(status) => Ok(status),
            None => self.look(request, &denial).await,
        }
    }

    /// How the charges stand that are refused on account of a queue, or of a turn that was asked for with less than all
    /// patience.
    async fn look(&self, request: &Request, denial: &Denial) -> Result<SetStatus, StoreError> {
        let parts = request.parts(self, Duration::MAX).await?;
        let standings = self.ask(Question { verb: Verb::Peek, parts }).await?.statuses()?;
        let status = set_status(&standings, &request.part_of, None);
        let after = denial.turn.map(|turn| (turn - self.now()).saturating_sub(request.patience(denial.part)));
        let retry = match (status.decision(), after) {
            (Decision::Deny(Retry::After(told)), Some(after)) if told < after => Retry::After(after),
            (Decision::Deny(_), _) => return Ok(status),
            (_, Some(after)) => Retry::After(after.max(Duration::from_micros(1))),
            (_, None) => Retry::WhenReleased,
        };
        let mut statuses = status.statuses().to_vec();
        let by = request.part_of.iter().position(|part| *part == denial.part);
        if let Some(status) = by.and_then(|by| statuses.get_mut(by)) {
            *status =
                Status::new(Decision::Deny(retry), status.limit(), status.remaining(), status.reset_after());
        }
        Ok(SetStatus::new(statuses, None))
    }
}

/// A question for a turn on its way.
struct Booking {
    permit: u64,
    asked: Time,
    parts: Parts,
}

impl Booking {
    fn question(&self) -> Question {
        Question { verb: Verb::Reserve { permit: self.permit }, parts: self.parts.clone() }
    }
}

impl Denial {
    /// By the queue in front of a request.
    pub(super) const fn by_queue(part: usize, turn: Option<Time>) -> Self {
        Self { part, turn, is_final: true, status: None }
    }
}
