//! What the script told of each part, in the words of every store.

use crate::question::Standing;
use std::{num::NonZeroU64, time::Duration};
use tollgate::{DecidedBy, Decision, PermitId, Retry, SetStatus, Status};

/// How the charges stand, from how their parts do.
pub(crate) fn set_status(standings: &[Standing], part_of: &[usize], permit: Option<u64>) -> SetStatus {
    // One charge and no slots, as most are.
    if let ([standing], [0]) = (standings, part_of)
        && !standing.slots
    {
        return SetStatus::one(standing.status());
    }
    let refused = standings.iter().any(|standing| standing.verdict >= 2);
    let permit = permit.filter(|_| !refused).and_then(NonZeroU64::new).map(PermitId::new);
    let held = permit.filter(|_| standings.iter().any(|standing| standing.slots));
    let statuses = part_of.iter().filter_map(|part| standings.get(*part)).map(|standing| {
        let status = standing.status();
        match permit {
            Some(permit) if standing.slots => status.held_by(permit),
            _ => status,
        }
    });
    SetStatus::new(statuses, held)
}

impl Standing {
    pub(crate) fn status(&self) -> Status {
        let time = Duration::from_micros(self.time);
        let decision = match self.verdict {
            0 => Decision::Allow,
            1 => Decision::Wait(time),
            2 => Decision::Deny(Retry::After(time)),
            3 => Decision::Deny(Retry::WhenReleased),
            _ => Decision::Deny(Retry::Never),
        };
        let units = |units: u64| u32::try_from(units).unwrap_or(u32::MAX);
        let status = Status::new(
            decision,
            units(self.limit),
            units(self.remaining),
            self.reset.map(Duration::from_micros),
        );
        if self.banned { status.said_by(DecidedBy::Ban) } else { status }
    }
}
