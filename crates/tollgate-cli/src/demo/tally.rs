//! What clients met, counted by themselves, and how it was second by second.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It reached the service at once.
    Passed,
    /// It reached the service after a wait.
    Waited,
    /// The gateway refused it, by a rule if it said by which.
    Refused(Option<String>),
    /// Something else went wrong.
    Failed,
}

/// So many of each; `passed` without those that waited.
#[derive(Clone, Default, Debug)]
pub(super) struct Counts {
    pub(super) passed: u64,
    pub(super) waited: u64,
    pub(super) refused: u64,
    pub(super) failed: u64,
    /// Bytes of bodies.
    pub(super) bytes: u64,
    /// Refusals by rule.
    pub(super) by: BTreeMap<String, u64>,
}

impl Counts {
    fn count(&mut self, fate: Fate) {
        match fate {
            Fate::Passed => self.passed += 1,
            Fate::Waited => self.waited += 1,
            Fate::Refused(by) => {
                self.refused += 1;
                if let Some(by) = by {
                    *self.by.entry(by).or_default() += 1;
                }
            }
            Fate::Failed => self.failed += 1,
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.waited += other.waited;
        self.refused += other.refused;
        self.failed += other.failed;
        self.bytes += other.bytes;
        for (rule, count) in &other.by {
            *self.by.entry(rule.clone()).or_default() += count;
        }
    }

    pub(super) const fn requests(&self) -> u64 {
        self.passed + self.waited + self.refused + self.failed
    }

    /// The rule that refused most.
    pub(super) fn refuser(&self) -> Option<&str> {
        self.by.iter().max_by_key(|(_, count)| **count).map(|(rule, _)| rule.as_str())
    }
}

/// What one client met since it was last asked for.
#[derive(Default)]
pub(super) struct Tally(Mutex<Counts>);

impl Tally {
    pub(super) fn count(&self, fate: Fate) {
        self.hold().count(fate);
    }

    pub(super) fn received(&self, bytes: usize) {
        self.hold().bytes += bytes as u64;
    }

    fn take(&self) -> Counts {
        std::mem::take(&mut self.hold())
    }

    fn hold(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How it was for one client: the last seconds, and all of them together.
#[derive(Default)]
pub(super) struct Past {
    /// The latest is the last.
    pub(super) seconds: VecDeque<Counts>,
    pub(super) total: Counts,
}

impl Past {
    /// As many seconds as are shown.
    pub(super) const KEPT: usize = 20;

    /// A second has passed.
    pub(super) fn turn(&mut self, tally: &Tally) {
        self.push(tally.take());
    }

    pub(super) fn push(&mut self, second: Counts) {
        self.total.add(&second);
        self.seconds.push_back(second);
        if self.seconds.len() > Self::KEPT {
            self.seconds.pop_front();
        }
    }

    /// The last second.
    pub(super) fn now(&self) -> Counts {
        self.seconds.back().cloned().unwrap_or_default()
    }
}
