//! A waiter as its queues know it.

use super::{DeferredWakes, QueueId};
use crate::{
    decision::Status,
    few::Few,
    time::{Time, hint, nanos},
    wait::{
        gate::Booked,
        order::{Bucket, Order, WaitSpan},
        refused::{Ending, Reason, Refused},
    },
};
use std::{mem, task::Waker, time::Duration};

pub(super) struct Waiter {
    pub(super) order: Order,
    pub(super) span: WaitSpan,
    /// Whether it stands in a queue, where it asks for one charge. A set says in which queues.
    pub(super) is_queued: bool,
    /// When its turn was expected on arrival.
    pub(super) expected: Option<Time>,
    pub(super) alarm: Alarm,
    pub(super) waker: Option<Waker>,
    pub(super) state: WaiterState,
}

/// Whether a waiter looks at its queue by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alarm {
    /// It sleeps until then, or until it is woken.
    Set(Option<Time>),
    /// It was woken to look at the time, and has not done so yet.
    Woken,
}

pub(super) enum WaiterState {
    Waiting,
    /// Released with one charge that holds no slots, after it waited for so long.
    Passed(Box<(Status, Duration)>),
    Released(Box<Booked>),
    Ended(Box<Ending>),
    /// It did not fetch its slots in time, and has its place but no turn.
    Withdrawn,
}

impl Waiter {
    pub(super) fn new(mut order: Order, span: WaitSpan) -> Self {
        if let Order::Set(set) = &mut order {
            // One that comes again begins anew.
            set.moves = 0;
        }
        Self {
            order,
            span,
            is_queued: false,
            expected: None,
            alarm: Alarm::Set(None),
            waker: None,
            state: WaiterState::Waiting,
        }
    }

    pub(super) const fn is_waiting(&self) -> bool {
        matches!(self.state, WaiterState::Waiting)
    }

    /// In which queues it stands, by the numbers of the tolls.
    pub(super) fn queued_at(&self) -> &[usize] {
        match &self.order {
            Order::Set(set) => &set.queued_at,
            Order::One(_) if self.is_queued => &[0],
            Order::One(_) => &[],
        }
    }

    /// From now on it stands in the queue of a toll, too.
    pub(super) fn join(&mut self, toll: usize) {
        match &mut self.order {
            Order::One(_) => self.is_queued = true,
            Order::Set(set) if set.queued_at.contains(&toll) => {}
            Order::Set(set) => set.queued_at.push(toll),
        }
    }

    /// From now on it stands in no queue. In which it stood.
    pub(super) fn leave(&mut self) -> Few<usize> {
        match &mut self.order {
            Order::Set(set) => Few::Many(mem::take(&mut set.queued_at)),
            Order::One(_) => mem::take(&mut self.is_queued).then_some(0).into_iter().collect(),
        }
    }

    /// The latest time at which its turn may come at a toll.
    pub(super) fn deadline(&self, toll: usize) -> Option<Time> {
        let own = self.order.tolls().get(toll).and_then(|toll| toll.up_to);
        let up_to = own.map_or(self.span.up_to, |own| own.min(self.span.up_to));
        (up_to < u64::MAX).then(|| self.span.began + Duration::from_nanos(up_to))
    }

    /// When it stops waiting where it stands, and for which toll.
    pub(super) fn ends(&self) -> Option<(Time, usize)> {
        self.queued_at().iter().filter_map(|toll| Some((self.deadline(*toll)?, *toll))).min()
    }

    /// The bucket of a queue in which it stands.
    pub(super) fn bucket_of(&self, id: QueueId) -> Option<&Bucket> {
        self.order.tolls().iter().map(|toll| &toll.bucket).find(|bucket| bucket.queue() == id)
    }

    /// Wakes it, to look at the time.
    pub(super) fn wake_to_set_alarm(&mut self, effects: &mut DeferredWakes) {
        self.alarm = Alarm::Woken;
        effects.wake.extend(self.waker.take());
    }

    /// That it is refused at a toll, whose turn would come then; or where nobody could say, at that time.
    pub(super) fn refused(&self, toll: usize, start: Result<Time, Time>, statuses: Few<Status>) -> Ending {
        let missing = |start: Time| self.deadline(toll).map(|by| hint(nanos(start - by)));
        let reason = match start {
            // A wait as long as this one is long enough when it begins later by what is missing.
            Ok(start) => Reason::Late { retry_after: missing(start).unwrap_or_default() },
            Err(at) => Reason::TimedOut { waited: at - self.span.began },
        };
        Ending::Refused(Refused::new(reason, &self.order, toll, statuses))
    }
}

impl Alarm {
    /// Whether it goes off by then.
    pub(super) fn is_set_by(self, at: Time) -> bool {
        matches!(self, Self::Set(Some(alarm)) if alarm <= at)
    }

    /// Whether it is going off by this time of the clock, at most so late.
    pub(super) fn is_going_off(self, clock: Time, grain: Duration) -> bool {
        matches!(self, Self::Set(Some(alarm)) if alarm <= clock && clock - alarm < grain)
    }
}
