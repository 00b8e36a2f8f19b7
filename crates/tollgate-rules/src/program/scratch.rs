//! What is found out about one request while it is matched, in memory that is used again for the next.
//!
//! Every entry carries the stamp of the request it belongs to, so nothing is cleared between requests, and programs of
//! different sizes can share it. One a thread, used by nobody else: a match neither awaits nor calls back.

use super::{
    paths::Fact,
    subjects::{SubjectId, ValueId},
};
use std::cell::RefCell;

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Runs `work` with this thread's scratch, made ready for a new request.
pub(super) fn with_scratch<R>(sizes: Sizes, work: impl FnOnce(&mut Scratch) -> R) -> R {
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.begin(sizes);
        work(scratch)
    })
}

/// How many there are of what is remembered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    pub(super) facts: usize,
    pub(super) places: usize,
    pub(super) subjects: usize,
    pub(super) checks: usize,
}

#[derive(Default)]
pub(super) struct Scratch {
    stamp: Stamp,
    /// One for each segment of each path. 2^64 are more than a thread sees.
    steps: u64,
    facts: Vec<Stamp>,
    places: Vec<u64>,
    subjects: Vec<Seen>,
    checks: Vec<(Stamp, bool)>,
    /// The facts that hold, in no order.
    pub(super) held: Vec<Fact>,
    /// Places in a trie; used by whoever walks it.
    pub(super) here: Vec<u32>,
    pub(super) next: Vec<u32>,
    /// Lists of candidates, each a range of postings.
    pub(super) lists: Vec<(u32, u32)>,
}

/// Which request. Half as many bytes hold twice as many facts in a cache; when all numbers are used up, everything is
/// forgotten.
type Stamp = u32;

/// What is known of one subject.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    stamp: Stamp,
    pub(super) value: ValueId,
    /// Where its text is.
    pub(super) place: u32,
}

impl Scratch {
    fn begin(&mut self, sizes: Sizes) {
        if self.stamp == Stamp::MAX {
            self.forget();
        }
        self.stamp += 1;
        grow(&mut self.facts, sizes.facts);
        grow(&mut self.places, sizes.places);
        grow(&mut self.subjects, sizes.subjects);
        grow(&mut self.checks, sizes.checks);
        self.held.clear();
    }

    /// No entry belongs to any request that is still to come.
    fn forget(&mut self) {
        self.stamp = 0;
        self.facts.clear();
        self.subjects.clear();
        self.checks.clear();
    }

    pub(super) fn hold(&mut self, fact: Fact) {
        let mark = &mut self.facts[fact as usize];
        if *mark != self.stamp {
            *mark = self.stamp;
            self.held.push(fact);
        }
    }

    pub(super) fn holds(&self, fact: Fact) -> bool {
        self.facts[fact as usize] == self.stamp
    }

    /// From here on places count as not visited.
    pub(super) fn step(&mut self) {
        self.steps += 1;
    }

    /// Whether the place is visited for the first time in this step.
    pub(super) fn visit(&mut self, place: u32) -> bool {
        let mark = &mut self.places[place as usize];
        let first = *mark != self.steps;
        *mark = self.steps;
        first
    }

    pub(super) fn seen(&self, subject: SubjectId) -> Option<Seen> {
        let seen = self.subjects[subject as usize];
        (seen.stamp == self.stamp).then_some(seen)
    }

    pub(super) fn see(&mut self, subject: SubjectId, value: ValueId, place: u32) -> Seen {
        let seen = Seen { stamp: self.stamp, value, place };
        self.subjects[subject as usize] = seen;
        seen
    }

    pub(super) fn checked(&self, check: u32) -> Option<bool> {
        let (stamp, holds) = self.checks[check as usize];
        (stamp == self.stamp).then_some(holds)
    }

    pub(super) fn check(&mut self, check: u32, holds: bool) -> bool {
        self.checks[check as usize] = (self.stamp, holds);
        holds
    }
}

fn grow<T: Clone + Default>(list: &mut Vec<T>, size: usize) {
    if list.len() < size {
        list.resize(size, T::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first request after the numbers begin anew has the number of the very first.
    #[test]
    fn nothing_is_left_when_numbers_begin_anew() {
        let mut scratch = Scratch::default();
        let sizes = Sizes { facts: 2, places: 1, subjects: 1, checks: 1 };
        scratch.begin(sizes);
        scratch.hold(0);
        scratch.see(0, 7, 0);
        scratch.check(0, true);
        scratch.stamp = Stamp::MAX - 1;
        scratch.begin(sizes);
        scratch.hold(1);
        assert!(scratch.holds(1) && !scratch.holds(0));
        scratch.begin(sizes);
        assert!(!scratch.holds(0) && !scratch.holds(1));
        assert!(scratch.seen(0).is_none() && scratch.checked(0).is_none());
        assert!(scratch.held.is_empty());
    }
}
