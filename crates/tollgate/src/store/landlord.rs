//! The store, as a table asks it about slots while a key enters.

use super::{
    entry::Entry,
    limit_list::LimitList,
    memory::{MemoryStore, WhenFull},
    table::{Landlord, Life, NOBODY, Tag, tag_of},
};
use crate::{
    clock::Clock,
    slot::{EPOCH, Settled, Version},
    step::{State, Step},
    time::Time,
};
use std::sync::atomic::Ordering::Relaxed;

/// Whoever lets a key in.
pub(super) struct Owner<'a, C> {
    pub(super) store: &'a MemoryStore<C>,
    pub(super) limits: &'a LimitList,
    pub(super) entering: &'a Entry,
    pub(super) version: Version,
    pub(super) now: Time,
}

impl<C: Clock> Landlord for Owner<'_, C> {
    fn life(&self, tag: Tag, words: [u64; 2]) -> Life {
        if tag == NOBODY {
            return Life::Idle;
        }
        // A limit that this list does not know yet, or that is just being removed: not ours to judge.
        let known = self.limits.get(tag);
        let Some(entry) = known.filter(|entry| !entry.is_retired()) else { return Life::Pinned };
        // While a limit's numbers change its words cannot be read.
        let Some(numbers) = entry.parameters.try_read() else { return Life::Pinned };
        let step = match numbers {
            Settled::Narrow(narrow) => {
                let asked = narrow.ask(words[0], entry.never_back(self.now), 0, None);
                return live_for(asked.map_or(u64::MAX, |(status, _)| status.reset_nanos()));
            }
            Settled::Step(step) => step,
        };
        let at = self.store.moment(entry, self.now);
        if !step.is_boxed() {
            return live_for(step.idle_in(&State::Words([words[0] >> 1, words[1]]), at));
        }
        let left = match words[1] {
            0 => 0,
            number => match self.store.arena.try_state(number) {
                Some(state) => step.idle_in(&state, at),
                None => return Life::Pinned,
            },
        };
        if left > 0 && matches!(**step, Step::Concurrency(_)) { Life::Pinned } else { live_for(left) }
    }

    fn evicts(&self) -> bool {
        self.store.when_full == WhenFull::Evict
    }

    fn in_force(&self) -> bool {
        self.entering.parameters.is_current(self.version)
    }

    fn vacated(&self, meta: u64, words: [u64; 2], life: Life) {
        let entry = self.limits.get(tag_of(meta));
        if life != Life::Idle {
            self.store.evicted.fetch_add(1, Relaxed);
            // Should the key come back, its bucket is a fresh one: what was taken from the old one is not in it.
            self.store.counters.at(meta)[EPOCH].fetch_add(1, Relaxed);
        }
        if words[1] != 0 && entry.is_some_and(|entry| entry.parameters.step().is_boxed()) {
            self.store.arena.drop_state(words[1]);
        }
    }
}

fn live_for(nanos: u64) -> Life {
    if nanos == 0 { Life::Idle } else { Life::Live(nanos) }
}
