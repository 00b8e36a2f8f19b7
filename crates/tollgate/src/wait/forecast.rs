//! When a turn would come: a bucket's state, copied, with time run forward on it.
//!
//! Exact while nobody else comes, nobody gives up and everybody goes when they may. It only decides who is told at once
//! that waiting would be in vain; who goes when is decided by the bucket.

use super::{
    gate::Gate,
    order::{Bucket, Order, Toll},
    queues::QueueId,
};
use crate::{
    decision::Verdict,
    step::{Answer, Ask, Moment, State, Step, concurrency::PermitId},
    time::Time,
};
use std::{sync::Arc, time::Duration};

/// A bucket at some time, perhaps to come.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) step: Arc<Step>,
    pub(crate) state: State,
    /// When that is: on the clock, and as the step counts.
    pub(crate) now: Time,
    pub(crate) at: Moment,
    /// Units that were granted by hand, spent first.
    pub(crate) granted: u32,
}

/// When a charge goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Goes {
    /// When it is made: for one that books, before it starts.
    pub(crate) made: Time,
    pub(crate) start: Time,
}

impl Goes {
    /// When it would pass if it may wait for so many nanoseconds.
    pub(crate) fn pass_at(self, up_to: u64) -> Time {
        self.made.max(Time::from_nanos(self.start.as_nanos().saturating_sub(up_to)))
    }
}

/// A hint is exact: what is refused passes when it is asked again then.
const TRIES: usize = 3;

impl View {
    /// When a charge of so many units would go if it came at `now`, or as soon after that as there is room; `None` where
    /// nobody can say.
    pub(crate) fn goes(&self, units: u32, now: Time) -> Option<Goes> {
        self.find(units, now).map(|found| Goes { made: found.now, start: found.start })
    }

    /// The same, and makes the charge; when it starts.
    pub(crate) fn serve(&mut self, units: u32, now: Time) -> Option<Time> {
        if let Some(start) = self.book(units, now) {
            return Some(start);
        }
        let found = self.find(units, now)?;
        if found.ask.cost > 0 {
            self.step.commit(&mut self.state, &found.ask, found.answer.next, PermitId::FIRST);
        }
        self.granted -= units.min(self.granted);
        (self.now, self.at) = (found.now, found.ask.at);
        Some(found.start)
    }

    /// The same at a bucket, which most limits are, without saying how it stands.
    fn book(&mut self, units: u32, now: Time) -> Option<Time> {
        let (Step::Bucket(_, bucket), State::Words(words), 0) = (&*self.step, &mut self.state, self.granted)
        else {
            return None;
        };
        let (now, at) = later(self.now, self.at, now.nanos_since(self.now));
        let (nanos, next) = bucket.book(*words, at, units)?;
        *words = next;
        (self.now, self.at) = (now, at);
        Some(now + Duration::from_nanos(nanos))
    }

    /// Takes units back that were foreseen to be used.
    pub(crate) fn refund(&mut self, units: u32) {
        self.step.refund(&mut self.state, self.at, units);
    }

    /// Later by so many nanoseconds.
    pub(crate) fn skip(&mut self, nanos: u64) {
        (self.now, self.at) = later(self.now, self.at, nanos);
    }

    fn find(&self, units: u32, now: Time) -> Option<Found> {
        let (mut now, mut at) = later(self.now, self.at, now.nanos_since(self.now));
        let cost = units - units.min(self.granted);
        // What refills by intervals is not paid for in advance by those who wait.
        let up_to = if matches!(*self.step, Step::Interval(_)) { 0 } else { u64::MAX };
        for _ in 0..TRIES {
            let ask = Ask { at, cost, up_to: Some(up_to) };
            let answer = self.step.ask(&self.state, &ask);
            let start = match answer.status.in_nanos() {
                Verdict::Allow => now,
                Verdict::Wait(nanos) => now + Duration::from_nanos(nanos),
                Verdict::Deny(nanos) => {
                    (now, at) = later(now, at, nanos.max(1));
                    continue;
                }
                Verdict::WhenReleased | Verdict::Never => return None,
            };
            return Some(Found { start, now, ask, answer });
        }
        None
    }
}

/// Sets served one after the other, on copies of the buckets of one that comes after them.
pub(crate) struct SetForecast {
    /// Each bucket, and when the last of those who wait there went. Of slots there is none, since nobody knows when they come
    /// back.
    buckets: Vec<(QueueId, View, Time)>,
    now: Time,
}

impl SetForecast {
    pub(crate) fn new(gate: &dyn Gate, order: &Order, now: Time) -> Self {
        let copied = |toll: &Toll| {
            let view = (toll.cost > 0).then(|| gate.look(&toll.bucket)).flatten()?;
            Some((toll.bucket.queue(), view, now))
        };
        Self { buckets: order.tolls().iter().filter_map(copied).collect(), now }
    }

    /// When a set would go next: when all its limits have room, as far as anybody knows.
    pub(crate) fn goes(&self, order: &Order) -> Option<Time> {
        let tolls = || order.tolls().iter().filter_map(|toll| Some((toll, self.bucket(&toll.bucket)?)));
        let mut at = tolls().map(|(_, (_, _, last))| *last).max().unwrap_or(self.now);
        for _ in 0..TRIES * order.tolls().len() {
            let mut latest = at;
            for (toll, (_, view, _)) in tolls().filter(|(toll, _)| toll.cost > 0) {
                latest = latest.max(view.goes(toll.units(), at)?.start);
            }
            if latest == at {
                return Some(at);
            }
            at = latest;
        }
        None
    }

    /// The same, and makes its charges.
    pub(crate) fn serve(&mut self, order: &Order) {
        let Some(at) = self.goes(order) else { return };
        for toll in order.tolls().iter().filter(|toll| toll.cost > 0) {
            let id = toll.bucket.queue();
            if let Some((_, view, last)) = self.buckets.iter_mut().find(|(of, ..)| *of == id) {
                view.serve(toll.units(), at);
                *last = at;
            }
        }
    }

    fn bucket(&self, bucket: &Bucket) -> Option<&(QueueId, View, Time)> {
        let id = bucket.queue();
        self.buckets.iter().find(|(of, ..)| *of == id)
    }
}

struct Found {
    start: Time,
    /// When the charge is made: for one that books, before it starts.
    now: Time,
    ask: Ask,
    answer: Answer,
}

fn later(now: Time, at: Moment, nanos: u64) -> (Time, Moment) {
    let at = Moment::new(at.since_birth.saturating_add(nanos), at.unix.saturating_add(nanos));
    (now + Duration::from_nanos(nanos), at)
}
