//! Two plays of one schedule, compared: who passed, who was delayed and by how much, who was refused.
//!
//! Requests that are the same in everything, their time included, are interchangeable: which of them a server takes
//! first is chance. So what became of them is compared as a whole, the earliest of one side with the earliest of the
//! other.

use super::{Arrivals, Seen};
use std::{fmt, time::Duration};

/// What became of a request, as far as a limit has a say in it. In order: the better fate first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It passed, and its answer began this long after asking.
    Passed(Duration),
    /// It was refused: 429 or 503, as the one or the other would have it.
    Refused,
    /// Neither: there was no whole answer.
    Broken(String),
}

/// A request that the two sides treat differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its place in the schedule; of interchangeable ones, one of them.
    pub number: usize,
    /// When it was due.
    pub due: Duration,
    /// What became of it here and there.
    pub fates: [Fate; 2],
}

impl Seen {
    /// What became of it.
    pub fn fate(&self) -> Fate {
        match &self.answer {
            Ok(answer) if matches!(answer.status, 429 | 503) => Fate::Refused,
            Ok(_) => Fate::Passed(self.waited()),
            Err(why) => Fate::Broken(why.clone()),
        }
    }
}

impl Arrivals {
    /// Who fared differently, where delays that are no more than `tolerance` apart are the same. Passing at once is a
    /// delay of next to nothing, so it is the same as a delay within the tolerance.
    ///
    /// # Panics
    ///
    /// Where a side has not one fate for every request.
    #[track_caller]
    pub fn differences(&self, one: &[Fate], other: &[Fate], tolerance: Duration) -> Vec<Difference> {
        assert_eq!((one.len(), other.len()), (self.len(), self.len()), "a fate for every request");
        let mut differences = Vec::new();
        let mut compared = vec![false; self.len()];
        for number in 0..self.len() {
            if compared[number] {
                continue;
            }
            let alike: Vec<usize> =
                (number..self.len()).filter(|other| self.0[*other] == self.0[number]).collect();
            alike.iter().for_each(|number| compared[*number] = true);
            let sorted = |fates: &[Fate]| {
                let mut fates: Vec<Fate> = alike.iter().map(|number| fates[*number].clone()).collect();
                fates.sort();
                fates
            };
            for (number, (one, other)) in alike.iter().zip(sorted(one).into_iter().zip(sorted(other))) {
                if !one.is_same(&other, tolerance) {
                    let due = self.0[*number].at;
                    differences.push(Difference { number: *number, due, fates: [one, other] });
                }
            }
        }
        differences
    }

    /// Panics where [`differences`](Self::differences) finds any, and lists them.
    #[track_caller]
    pub fn assert_same(&self, one: &[Fate], other: &[Fate], tolerance: Duration) {
        let differences = self.differences(one, other, tolerance);
        let lines: Vec<String> = differences.iter().map(ToString::to_string).collect();
        assert!(
            lines.is_empty(),
            "{} of {} fared differently:\n{}",
            lines.len(),
            self.len(),
            lines.join("\n")
        );
    }
}

impl Fate {
    fn is_same(&self, other: &Self, tolerance: Duration) -> bool {
        match (self, other) {
            (Self::Passed(one), Self::Passed(other)) => one.abs_diff(*other) <= tolerance,
            (Self::Refused, Self::Refused) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed(after) => write!(f, "passed after {after:.1?}"),
            Self::Refused => write!(f, "refused"),
            Self::Broken(why) => write!(f, "broken ({why})"),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, other] = &self.fates;
        write!(f, "request {}, due at {:?}: {one} here, {other} there", self.number, self.due)
    }
}
