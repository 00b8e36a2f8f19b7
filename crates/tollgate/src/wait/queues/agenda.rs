//! When the head of each queue is decided next, soonest first. The first entry is kept apart: nearly always there is no other.

use super::QueueId;
use crate::time::Time;
use std::collections::BTreeSet;

#[derive(Default)]
pub(super) struct Agenda {
    /// Before all others.
    first: Option<(Time, QueueId)>,
    others: BTreeSet<(Time, QueueId)>,
}

impl Agenda {
    /// The first entry that is due by now, and whether it is the only one.
    pub(super) fn due(&self, now: Time) -> Option<((Time, QueueId), bool)> {
        let first = self.first.filter(|(at, _)| *at <= now)?;
        Some((first, self.others.first().is_none_or(|(at, _)| *at > now)))
    }

    pub(super) fn insert(&mut self, entry: (Time, QueueId)) {
        let other = match self.first {
            Some(first) if first < entry => Some(entry),
            _ => self.first.replace(entry).filter(|first| *first != entry),
        };
        self.others.extend(other);
    }

    pub(super) fn remove(&mut self, entry: (Time, QueueId)) {
        if self.first == Some(entry) {
            self.first = self.others.pop_first();
        } else {
            self.others.remove(&entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn is_a_sorted_set(steps in prop::collection::vec((0_u64..6, 0_u64..3, any::<bool>()), 0..200)) {
            let (mut agenda, mut set) = (Agenda::default(), BTreeSet::new());
            for (at, id, is_inserted) in steps {
                let entry = (Time::from_nanos(at), [id, id]);
                if is_inserted {
                    agenda.insert(entry);
                    set.insert(entry);
                } else {
                    agenda.remove(entry);
                    set.remove(&entry);
                }
                let due = |now| set.iter().filter(|(at, _)| *at <= now).count();
                for now in (0..6).map(Time::from_nanos) {
                    let expected = set.first().filter(|_| due(now) > 0).map(|first| (*first, due(now) == 1));
                    prop_assert_eq!(agenda.due(now), expected);
                }
                prop_assert_eq!(agenda.first.into_iter().chain(agenda.others.iter().copied()).collect::<BTreeSet<_>>(), set.clone());
            }
        }
    }
}
