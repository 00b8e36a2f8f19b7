//! When the next turn of a queue comes, as far as is known.
//!
//! It is worked out from what Redis said last and from the limit's rate, so that one question is asked for a turn, and
//! arrivals are judged without one. It is a lower bound: other nodes may have booked since.

use crate::limit::Edition;
use std::time::Duration;
use tollgate::Time;

/// A turn that is not booked.
#[derive(Clone, Copy)]
pub(super) struct Outlook {
    turn: Time,
    /// For so many units at once: it comes later for more, and earlier for less.
    units: u64,
    /// Whether it is only when to ask again.
    is_guess: bool,
}

impl Outlook {
    /// Redis said when the turn of a charge comes.
    pub(super) fn told(turn: Time, edition: &Edition, cost: u64) -> Self {
        Self { turn, units: own(edition, cost), is_guess: false }
    }

    /// A turn was booked, and others come after it.
    pub(super) fn after(turn: Time, edition: &Edition, cost: u64) -> Self {
        let paid_later = cost - own(edition, cost);
        Self { turn: turn + edition.pace(paid_later), units: 0, is_guess: false }
    }

    /// Nobody knows, and Redis is asked then.
    pub(super) const fn guess(at: Time) -> Self {
        Self { turn: at, units: 0, is_guess: true }
    }

    pub(super) const fn is_guess(self) -> bool {
        self.is_guess
    }

    /// When the turn of a charge comes that stands behind so many units.
    pub(super) fn turn_of(self, edition: &Edition, ahead: u64, cost: u64) -> Time {
        let units = ahead.saturating_add(own(edition, cost));
        match units.checked_sub(self.units) {
            Some(more) => self.turn + edition.pace(more),
            None => earlier(self.turn, edition.pace(self.units - units)),
        }
    }
}

/// What a charge waits for of its own cost.
fn own(edition: &Edition, cost: u64) -> u64 {
    if edition.is_paid_in_advance() { cost } else { 0 }
}

pub(super) fn earlier(time: Time, by: Duration) -> Time {
    Time::from_nanos(time.as_nanos().saturating_sub(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)))
}
