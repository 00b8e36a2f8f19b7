//! What nodes wrote down: one line an ask, merged by the checker.

use tollgate::{DecidedBy, Decision};

/// One question of one node, and what it was told.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// On the clock that all processes share: the server decided somewhere in between.
    pub(crate) asked: u64,
    pub(crate) answered: u64,
    pub(crate) told: Told,
    pub(crate) by: By,
    /// Until the key is as if never used, in microseconds.
    pub(crate) reset: u64,
    pub(crate) cost: u64,
    /// Which of the limits were charged, a bit each.
    pub(crate) charged: u32,
    /// When it was about to give its slots back, and when that was answered.
    pub(crate) left: Option<(u64, u64)>,
    pub(crate) generation: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Allow,
    /// Microseconds.
    Wait(u64),
    Deny,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Store,
    Lease,
    /// Neither: a fleet whose server answers has no business with that.
    Other,
}

/// Some units, used at one moment in between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) units: u64,
}

impl Ask {
    pub(crate) const fn passed(&self) -> bool {
        !matches!(self.told, Told::Deny)
    }

    pub(crate) const fn charges(&self, limit: usize) -> bool {
        self.charged & (1 << limit) != 0
    }

    pub(crate) fn middle(&self) -> u64 {
        self.asked.midpoint(self.answered)
    }

    /// When the units were taken.
    pub(crate) const fn used(&self) -> Used {
        Used { from: self.asked, to: self.answered, units: self.cost }
    }

    /// When whoever was told to wait went on.
    pub(crate) const fn started(&self) -> Used {
        let wait = match self.told {
            // Hints are rounded up to the microsecond.
            Told::Wait(micros) => micros.saturating_sub(1) * 1_000,
            _ => 0,
        };
        Used { from: self.asked + wait, to: self.answered + wait + 1_000, units: self.cost }
    }

    pub(crate) fn line(&self) -> String {
        let (told, wait) = match self.told {
            Told::Allow => ("allow", 0),
            Told::Wait(micros) => ("wait", micros),
            Told::Deny => ("deny", 0),
        };
        let by = match self.by {
            By::Store => "store",
            By::Lease => "lease",
            By::Other => "other",
        };
        let (leaving, left) = self.left.unwrap_or_default();
        let Self { asked, answered, reset, cost, charged, generation, .. } = self;
        format!(
            "{asked} {answered} {told} {wait} {by} {reset} {cost} {charged} {leaving} {left} {generation}"
        )
    }

    pub(crate) fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |place: usize| words.get(place)?.parse::<u64>().ok();
        Some(Self {
            asked: number(0)?,
            answered: number(1)?,
            told: match *words.get(2)? {
                "allow" => Told::Allow,
                "wait" => Told::Wait(number(3)?),
                "deny" => Told::Deny,
                _ => return None,
            },
            by: match *words.get(4)? {
                "store" => By::Store,
                "lease" => By::Lease,
                _ => By::Other,
            },
            reset: number(5)?,
            cost: number(6)?,
            charged: u32::try_from(number(7)?).ok()?,
            left: Some((number(8)?, number(9)?)).filter(|(leaving, _)| *leaving > 0),
            generation: number(10)?,
        })
    }
}

impl From<Decision> for Told {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Allow => Self::Allow,
            Decision::Wait(wait) => Self::Wait(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX)),
            Decision::Deny(_) => Self::Deny,
        }
    }
}

impl From<DecidedBy> for By {
    fn from(by: DecidedBy) -> Self {
        match by {
            DecidedBy::Store => Self::Store,
            DecidedBy::Lease => Self::Lease,
            _ => Self::Other,
        }
    }
}
