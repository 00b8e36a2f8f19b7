//! Why somebody did not pass.

use super::{
    gate::{Denied, Gate},
    order::{Order, Toll},
};
use crate::{
    charge::Charge,
    decision::{Decision, Retry, SetStatus, Status, Verdict},
    few::Few,
    step::turns::Turns,
    store::StoreError,
    time,
};
use std::{fmt, time::Duration};
use thiserror::Error;

/// A turn that was not had; nothing was charged.
#[derive(Clone, Debug)]
pub struct Refused {
    reason: Reason,
    by: usize,
    statuses: Few<Status>,
}

/// Why a turn was not had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The turn would have come later than the caller wanted to wait. Told on arrival; or later, where the limit's numbers
    /// were lowered or a debt or a ban came in between.
    Late {
        /// When the same wait would be long enough, if nothing else came.
        retry_after: Duration,
    },
    /// A turn was to be reserved where others wait, or at a limit that cannot book ahead and has no room now.
    NoRoom {
        /// When there will be, if nothing else came; `None` for slots, since nobody knows when somebody will leave.
        retry_after: Option<Duration>,
    },
    /// It waited for so long, and the turn did not come.
    TimedOut {
        /// How long it waited.
        waited: Duration,
    },
    /// Every slot is held and as many wait already as may.
    QueueFull {
        /// How many may wait.
        queue: u32,
    },
    /// The cost is above what the limit can ever give.
    Never {
        /// What was asked for.
        cost: u64,
        /// What the limit gives at most.
        most: u32,
    },
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
    pub(crate) fn of(gate: &dyn Gate, order: &Order, denied: Denied) -> Self {
        let books = |toll: &Toll| gate.turns(&toll.bucket) == Turns::Booked;
        let reason = match denied.verdict() {
            Verdict::Never => return Self::never(order, denied),
            Verdict::Deny(nanos) if order.tolls().get(denied.by).is_some_and(books) => {
                Reason::Late { retry_after: time::hint(nanos) }
            }
            Verdict::Deny(nanos) => Reason::NoRoom { retry_after: Some(time::hint(nanos)) },
            _ => Reason::NoRoom { retry_after: None },
        };
        Self::new(reason, order, denied.by, denied.statuses)
    }

    /// From a denial for good.
    pub(crate) fn never(order: &Order, denied: Denied) -> Self {
        let cost = order.tolls().get(denied.by).map_or(0, |toll| toll.cost);
        let most = denied.statuses.get(denied.by).map_or(0, Status::limit);
        Self::new(Reason::Never { cost, most }, order, denied.by, denied.statuses)
    }

    /// From a set that a store outside this crate has refused. `late` says what a refusal for some time means: that the turn
    /// comes too late, or that there is no room now.
    #[must_use]
    pub fn from_status<L>(
        status: &SetStatus,
        charges: &[Charge<'_, L>],
        late: impl FnOnce(Duration) -> Reason,
    ) -> Self {
        let by = status.denied_by().unwrap_or(0);
        let reason = match status.decision() {
            Decision::Deny(Retry::After(after)) => late(after),
            Decision::Deny(Retry::Never) => Reason::Never {
                cost: charges.get(by).map_or(0, |charge| charge.cost.into()),
                most: status.statuses().get(by).map_or(0, Status::limit),
            },
            _ => Reason::NoRoom { retry_after: None },
        };
        Self::with_reason(reason, status)
    }

    /// From how a set stands in a store outside this crate, and why it was refused. It may have room again by now.
    #[must_use]
    pub fn with_reason(reason: Reason, status: &SetStatus) -> Self {
        let by = status.denied_by().unwrap_or(0);
        Self { reason, by, statuses: status.statuses().iter().copied().collect() }
    }

    /// From how every toll stands, and which of them refuses.
    pub(crate) fn new(reason: Reason, order: &Order, by: usize, statuses: Few<Status>) -> Self {
        Self { reason, by: order.charge_of(by), statuses: order.spread(statuses) }
    }

    /// Why.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// When the same would pass, if nothing else came. `None` where nobody can say, or never.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.reason {
            Reason::Late { retry_after } => Some(retry_after),
            Reason::NoRoom { retry_after } => retry_after,
            _ => None,
        }
    }

    /// The same as a refused check says it.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match (self.retry_after(), self.reason) {
            (Some(after), _) => Retry::After(after),
            (None, Reason::Never { .. }) => Retry::Never,
            (None, Reason::TimedOut { .. }) => match self.statuses.get(self.by).map(Status::decision) {
                Some(Decision::Deny(retry)) => retry,
                _ => Retry::WhenReleased,
            },
            (None, _) => Retry::WhenReleased,
        }
    }

    /// How every charge stands, as a refused check says it.
    pub fn status(&self) -> SetStatus {
        let (retry, by) = (self.retry(), self.by);
        let stands =
            |(place, status): (usize, &Status)| if place == by { status.denied(retry) } else { *status };
        SetStatus::new(self.statuses.iter().enumerate().map(stands), None)
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
            Ending::Store(_) => {
                let (reason, statuses) = (Reason::Never { cost: 0, most: 0 }, Few::Many(Vec::new()));
                Self { reason, by: 0, statuses }
            }
        }
    }
}

impl WaitError {
    /// The refusal, where it is one.
    #[must_use]
    pub const fn refused(&self) -> Option<&Refused> {
        match self {
            Self::Refused(refused) => Some(refused),
            Self::Store(_) => None,
        }
    }
}

impl std::error::Error for Refused {}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)?;
        if self.statuses.len() > 1 {
            write!(f, " (charge {} of the set)", self.by)?;
        }
        Ok(())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late { retry_after } => {
                write!(f, "the turn would come later than the wait allows; try again in {retry_after:.3?}")
            }
            Self::NoRoom { retry_after: Some(after) } => {
                write!(
                    f,
                    "there is no room now, and this limit is not booked ahead; try again in {after:.3?}"
                )
            }
            Self::NoRoom { retry_after: None } => {
                f.write_str("every slot is held, and slots are not booked ahead")
            }
            Self::TimedOut { waited } => write!(f, "the turn did not come within {waited:.3?}"),
            Self::QueueFull { queue: 0 } => f.write_str(
                "every slot is held, and the limit lets nobody wait (see Concurrency::with_queue)",
            ),
            Self::QueueFull { queue } => {
                write!(f, "every slot is held, and {queue} wait already, which is all that may")
            }
            Self::Never { cost, most } => {
                write!(
                    f,
                    "a cost of {cost} is above the {most} that the limit can ever give: no wait is long enough"
                )
            }
        }
    }
}
