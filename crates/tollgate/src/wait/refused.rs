//! Why somebody did not pass.

use super::{
    gate::Denied,
    order::{Few, Order},
};
use crate::{
    decision::{Retry, Status, Verdict},
    store::StoreError,
    time,
};
use std::time::Duration;
use thiserror::Error;

/// A turn that was not had; nothing was charged.
#[derive(Clone, Debug, Error)]
#[error("{reason}")]
pub struct Refused {
    reason: Reason,
    by: usize,
    statuses: Few<Status>,
}

/// Why a turn was not had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Reason {
    /// The turn would have come later than the caller wanted to wait.
    #[error("the turn would come later than the wait allows{}", hint(.retry_after))]
    Late {
        /// When the same wait would be long enough, if nothing else came; `None` where nobody can say.
        retry_after: Option<Duration>,
    },
    /// Every slot is held and as many wait already as may.
    #[error("every slot is held, and {}", crowd(*.queue))]
    QueueFull {
        /// How many may wait.
        queue: u32,
    },
    /// The cost is above what the limit can ever give.
    #[error("the cost is above what the limit can ever give: no wait is long enough")]
    Never,
}

/// Why a set of charges did not pass.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum WaitError {
    /// It was refused; nothing was charged.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The store could not decide.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How a turn ends that is not had.
#[derive(Clone, Debug)]
pub enum Ending {
    /// It was refused.
    Refused(Refused),
    /// Nobody could decide.
    Store(StoreError),
}

impl Refused {
    /// From a denial as it is.
    pub(crate) fn of(order: &Order, denied: Denied) -> Self {
        let reason = match denied.verdict() {
            Verdict::Never => Reason::Never,
            Verdict::Deny(nanos) => Reason::Late { retry_after: Some(time::hint(nanos)) },
            _ => Reason::Late { retry_after: None },
        };
        Self::new(reason, order.charge_of(denied.by), order.spread(denied.statuses))
    }

    pub(crate) const fn new(reason: Reason, by: usize, statuses: Few<Status>) -> Self {
        Self { reason, by, statuses }
    }

    /// Why.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// When the same wait would be long enough, if nothing else came. `None` where nobody can say, or never.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.reason {
            Reason::Late { retry_after } => retry_after,
            _ => None,
        }
    }

    /// The same as a refused check says it.
    #[must_use]
    pub const fn retry(&self) -> Retry {
        match self.reason {
            Reason::Late { retry_after: Some(after) } => Retry::After(after),
            Reason::Late { retry_after: None } | Reason::QueueFull { .. } => Retry::WhenReleased,
            Reason::Never => Retry::Never,
        }
    }

    /// Which charge refuses, in the order they were given.
    #[must_use]
    pub const fn denied_by(&self) -> usize {
        self.by
    }

    /// How every charge stands by itself, in the order they were given.
    pub fn statuses(&self) -> &[Status] {
        &self.statuses
    }
}

impl From<Ending> for WaitError {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Refused(refused) => Self::Refused(refused),
            Ending::Store(error) => Self::Store(error),
        }
    }
}

impl From<Ending> for Refused {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Refused(refused) => refused,
            // A limiter's own store knows its own limit from beginning to end: nobody can remove it.
            Ending::Store(_) => Self::new(Reason::Never, 0, Few::Many(Vec::new())),
        }
    }
}

fn hint(retry_after: &Option<Duration>) -> String {
    retry_after.map_or_else(String::new, |after| format!("; try again in {after:?}"))
}

fn crowd(queue: u32) -> String {
    match queue {
        0 => "the limit lets nobody wait (see Concurrency::with_queue)".into(),
        1 => "one waits already, which is all that may".into(),
        queue => format!("{queue} wait already, which is all that may"),
    }
}
