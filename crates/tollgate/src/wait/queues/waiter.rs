//! A waiter as its queues know it.

use super::{DeferredWakes, QueueId};
use crate::{
    decision::Status,
    few::Few,
    time::{Time, hint, nanos},
    wait::{
        gate::Booked,
        order::{Bucket, Order, Terms},
        refused::{Ending, Reason, Refused},
    },
};
use std::{mem, slice, task::Waker, time::Duration};

pub(super) struct Waiter {
    pub(super) order: Order,
    pub(super) terms: Terms,
    pub(super) queued_at: QueuedAt,
    /// When its turn was expected on arrival.
    pub(super) expected: Option<Time>,
    pub(super) alarm: Alarm,
    pub(super) waker: Option<Waker>,
    pub(super) state: WaiterState,
}

/// In which queues a waiter stands, by the numbers of the tolls. Only a set goes from one queue to another, or stands in
/// several.
pub(super) enum QueuedAt {
    NoQueue,
    One(usize),
    Moved(Box<Moved>),
}

pub(super) struct Moved {
    tolls: Vec<usize>,
    /// How often it went from one queue to another.
    count: u32,
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
    Released(Box<Booked>),
    Ended(Box<Ending>),
    /// It did not fetch its slots in time, and has its place but no turn.
    Withdrawn,
}

impl Waiter {
    pub(super) const fn new(order: Order, terms: Terms) -> Self {
        Self {
            order,
            terms,
            queued_at: QueuedAt::NoQueue,
            expected: None,
            alarm: Alarm::Set(None),
            waker: None,
            state: WaiterState::Waiting,
        }
    }

    pub(super) const fn is_waiting(&self) -> bool {
        matches!(self.state, WaiterState::Waiting)
    }

    /// The latest time at which its turn may come at a toll.
    pub(super) fn deadline(&self, toll: usize) -> Option<Time> {
        let own = self.order.tolls().get(toll).and_then(|toll| toll.up_to);
        let up_to = own.map_or(self.terms.up_to, |own| own.min(self.terms.up_to));
        (up_to < u64::MAX).then(|| self.terms.began + Duration::from_nanos(up_to))
    }

    /// When it stops waiting where it stands, and for which toll.
    pub(super) fn ends(&self) -> Option<(Time, usize)> {
        self.queued_at.tolls().iter().filter_map(|toll| Some((self.deadline(*toll)?, *toll))).min()
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
            Err(at) => Reason::TimedOut { waited: at - self.terms.began },
        };
        Ending::Refused(Refused::new(reason, &self.order, toll, statuses))
    }
}

impl QueuedAt {
    pub(super) fn tolls(&self) -> &[usize] {
        match self {
            Self::NoQueue => &[],
            Self::One(toll) => slice::from_ref(toll),
            Self::Moved(moved) => &moved.tolls,
        }
    }

    pub(super) const fn moves(&self) -> u32 {
        match self {
            Self::NoQueue | Self::One(_) => 0,
            Self::Moved(moved) => moved.count,
        }
    }

    /// Adds the queue of a toll.
    pub(super) fn add(&mut self, toll: usize) {
        if let Self::NoQueue = self {
            *self = Self::One(toll);
        } else if !self.tolls().contains(&toll) {
            self.moved().tolls.push(toll);
        }
    }

    /// Counts a move.
    pub(super) fn count_move(&mut self) {
        let moved = self.moved();
        moved.count = moved.count.saturating_add(1);
    }

    /// In which queues it stood; it stands in none from now on.
    pub(super) fn leave(&mut self) -> Few<usize> {
        match self {
            Self::Moved(moved) => Few::Many(mem::take(&mut moved.tolls)),
            _ => mem::replace(self, Self::NoQueue).tolls().iter().copied().collect(),
        }
    }

    fn moved(&mut self) -> &mut Moved {
        if !matches!(self, Self::Moved(_)) {
            *self = Self::Moved(Box::new(Moved { tolls: self.tolls().to_vec(), count: 0 }));
        }
        match self {
            Self::Moved(moved) => moved,
            Self::NoQueue | Self::One(_) => unreachable!("it has just been made"),
        }
    }
}

impl Alarm {
    /// Whether it goes off by then.
    pub(super) fn is_set_by(self, at: Time) -> bool {
        matches!(self, Self::Set(Some(alarm)) if alarm <= at)
    }
}
