//! What somebody has whose turn has come.

use super::gate::Booked;
use crate::{
    decision::{SetStatus, Status, Verdict},
    few::Few,
    step::concurrency::PermitId,
};
use std::time::Duration;

/// A turn that has come: its charges are made, and it may go on.
#[derive(Clone, Debug)]
pub struct Passed {
    pub(super) statuses: Few<Status>,
    pub(super) permit: Option<PermitId>,
    pub(super) waited: Duration,
}

impl Passed {
    pub(super) fn new(booked: Option<Booked>, waited: Duration) -> Self {
        let (mut statuses, permit) =
            booked.map_or((Few::Many(Vec::new()), None), |it| (it.statuses, it.permit));
        // It has waited; now it goes.
        for status in statuses.iter_mut().filter(|status| matches!(status.verdict, Verdict::Wait(_))) {
            status.verdict = Verdict::Allow;
        }
        Self { statuses, permit, waited }
    }

    /// A turn that came in a store outside this crate, after a wait of so long.
    #[must_use]
    pub fn from_status(status: &SetStatus, waited: Duration) -> Self {
        Self { statuses: status.statuses().iter().copied().collect(), permit: None, waited }
    }

    /// One charge that went through, and took no slot that is held.
    pub(super) const fn one(mut status: Status, waited: Duration) -> Self {
        status.verdict = Verdict::Allow;
        Self { statuses: Few::One(status), permit: status.permit, waited }
    }

    /// How every charge stood when it was made, at the release, in the order they were given; one, unless it was a set. With a
    /// leaky bucket's delay it was made before the delay.
    pub fn statuses(&self) -> &[Status] {
        &self.statuses
    }

    /// How long it waited, from its arrival to the instant of its release. The task may have been woken a little later.
    #[must_use]
    pub const fn waited(&self) -> Duration {
        self.waited
    }
}
