//! A limit's parameters as every check reads them, and as a change replaces them.
//!
//! A sequence lock: readers take a copy and check whether the sequence moved; it is odd while parameters change. A charge
//! checks once more when it holds its slot's lock. A change makes the sequence odd first and visits every slot after that, so
//! a charge either sees the change or is visited.

use crate::{
    limit::Limit,
    step::{
        Step,
        narrow::{NARROW_WORDS, Narrow},
    },
    sync::{AtomicU64, Backoff, Ordering, fence},
    time::Time,
};
use arc_swap::{ArcSwap, Guard};
use std::sync::Arc;

pub(crate) struct Parameters {
    sequence: AtomicU64,
    /// The one-word bucket, or zeros.
    narrow: [AtomicU64; NARROW_WORDS],
    step: ArcSwap<Step>,
    birth: Time,
    changes: AtomicU64,
}

/// Which parameters were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version(u64);

impl Parameters {
    pub(crate) fn new(limit: &Limit, birth: Time) -> Self {
        let step = Step::new(limit);
        let words = narrow_words(&step, birth, 0);
        Self {
            sequence: AtomicU64::new(0),
            narrow: words.map(AtomicU64::new),
            step: ArcSwap::from_pointee(step),
            birth,
            changes: AtomicU64::new(0),
        }
    }

    /// The numbers in force; waits while they change.
    #[inline]
    pub(crate) fn read(&self) -> (Version, Option<Narrow>) {
        loop {
            let sequence = self.sequence.load(Ordering::Acquire);
            let words = std::array::from_fn(|word| self.narrow[word].load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            if sequence & 1 == 0 && self.sequence.load(Ordering::Relaxed) == sequence {
                return (Version(sequence), Narrow::from_words(words));
            }
            self.settle();
        }
    }

    /// The numbers as they are just now but for the last, of a limit whose state is one word: to be thrown away unless the
    /// version [is current](Self::is_current) afterwards. The word is to be looked at after that: whoever changes the
    /// numbers of a single bucket holds its lock.
    #[inline(always)]
    pub(crate) fn glance(&self) -> (Version, Narrow) {
        let sequence = self.sequence.load(Ordering::Acquire);
        let mut words = [0; NARROW_WORDS];
        for (word, atomic) in words.iter_mut().zip(&self.narrow).take(NARROW_WORDS - 1) {
            *word = atomic.load(Ordering::Relaxed);
        }
        (Version(sequence), Narrow::from_words_unchecked(words))
    }

    /// As [`glance`](Self::glance), where the numbers are settled and the state is one word.
    #[inline(always)]
    pub(crate) fn glance_settled(&self) -> Option<(Version, Narrow)> {
        let (version, narrow) = self.glance();
        (version.0 & 1 == 0 && narrow.is_there()).then_some((version, narrow))
    }

    /// When the limit was created.
    pub(crate) const fn birth(&self) -> Time {
        self.birth
    }

    /// How often they became others: what was charged before is not given back afterwards.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Says that they become others: once no charge under the old ones is under way, and none under the new ones yet.
    pub(crate) fn count_change(&self) {
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// The step in force at that version or a later one.
    pub(crate) fn step(&self) -> Guard<Arc<Step>> {
        self.step.load()
    }

    /// The numbers, unless they are changing.
    pub(crate) fn try_read(&self) -> Option<Settled> {
        let sequence = self.sequence.load(Ordering::Acquire);
        let settled = match self.narrow_now() {
            Some(narrow) => Settled::Narrow(narrow),
            None => Settled::Step(self.step.load()),
        };
        fence(Ordering::Acquire);
        (sequence & 1 == 0 && self.sequence.load(Ordering::Relaxed) == sequence).then_some(settled)
    }

    /// Whether that version is still in force; certain until the slot's lock is given back.
    #[inline(always)]
    pub(crate) fn is_current(&self, version: Version) -> bool {
        crate::sync::order_lock_before_look();
        fence(Ordering::Acquire);
        self.sequence.load(Ordering::SeqCst) == version.0
    }

    /// Replaces the numbers. `visit` is run in between, while readers wait, and turns every state over; it is given the
    /// old step and word form and the new ones. Words count from `base`; without one no state is kept in one word. One
    /// change at a time is the caller's to see to.
    pub(crate) fn change(&self, step: Step, base: Option<u64>, visit: impl FnOnce(&Form, &Form)) {
        let change = self.begin_change(step, base);
        visit(&change.old, &change.new);
        change.finish();
    }

    /// Begins to replace the numbers, as [`change`](Self::change) does; readers wait until the change is finished.
    pub(crate) fn begin_change(&self, step: Step, base: Option<u64>) -> ParametersChange<'_> {
        let old = Form { step: Arc::clone(&self.step.load()), narrow: self.narrow_now(), birth: self.birth };
        let words = base.map_or([0; NARROW_WORDS], |base| narrow_words(&step, self.birth, base));
        let new = Form { step: Arc::new(step), narrow: Narrow::from_words(words), birth: self.birth };
        self.sequence.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        ParametersChange { parameters: self, old, new, words }
    }

    fn narrow_now(&self) -> Option<Narrow> {
        Narrow::from_words(std::array::from_fn(|word| self.narrow[word].load(Ordering::Relaxed)))
    }

    #[cold]
    fn settle(&self) {
        let mut backoff = Backoff::default();
        while self.sequence.load(Ordering::Acquire) & 1 == 1 {
            backoff.wait();
        }
    }
}

/// Numbers that are being replaced.
pub(crate) struct ParametersChange<'p> {
    parameters: &'p Parameters,
    pub(crate) old: Form,
    pub(crate) new: Form,
    /// The new one-word bucket, or zeros.
    words: [u64; NARROW_WORDS],
}

impl ParametersChange<'_> {
    /// Puts the new numbers in force.
    pub(crate) fn finish(self) {
        for (word, value) in self.parameters.narrow.iter().zip(self.words) {
            word.store(value, Ordering::Relaxed);
        }
        self.parameters.step.store(self.new.step);
        self.parameters.sequence.fetch_add(1, Ordering::Release);
    }
}

/// Numbers that were not changing when they were read: all that a state of one word needs, or the whole step.
pub(crate) enum Settled {
    Narrow(Narrow),
    Step(Guard<Arc<Step>>),
}

/// How a limit's states are written.
pub(crate) struct Form {
    pub(crate) step: Arc<Step>,
    pub(crate) narrow: Option<Narrow>,
    pub(crate) birth: Time,
}

fn narrow_words(step: &Step, birth: Time, base: u64) -> [u64; NARROW_WORDS] {
    match step {
        Step::Bucket(_, bucket) => {
            Narrow::new(bucket, birth, base).map_or([0; NARROW_WORDS], Narrow::to_words)
        }
        _ => [0; NARROW_WORDS],
    }
}
