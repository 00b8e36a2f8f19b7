//! The limits of a store by their tags, and the tags that are free.
//!
//! Readers load a snapshot, and a change replaces it. Limits are kept in chunks that snapshots share: to add one copies one
//! chunk, and to add many at once copies each chunk once, so that it takes time linear in their number.

use super::{
    entry::Entry,
    table::{NOBODY, Tag},
};
use std::sync::Arc;

const CHUNK: usize = 256;

/// The limits of a store at one moment.
#[derive(Clone, Default)]
pub(super) struct LimitList(Vec<Arc<[Option<Arc<Entry>>; CHUNK]>>);

impl LimitList {
    pub(super) fn get(&self, tag: Tag) -> Option<&Arc<Entry>> {
        let tag = tag as usize;
        self.0.get(tag / CHUNK)?[tag % CHUNK].as_ref()
    }

    pub(super) fn set(&mut self, tag: Tag, entry: Option<Arc<Entry>>) {
        let tag = tag as usize;
        while self.0.len() <= tag / CHUNK {
            self.0.push(Arc::new([const { None }; CHUNK]));
        }
        Arc::make_mut(&mut self.0[tag / CHUNK])[tag % CHUNK] = entry;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.0.iter().flat_map(|chunk| chunk.iter().flatten())
    }
}

/// What adding and removing limits needs to know of those before. Held while limits are added, changed or removed.
#[derive(Default)]
pub(super) struct LimitNumbers {
    /// How many limits there ever were: tells those apart that had the same tag.
    serial: u64,
    /// The highest tag that was ever given; zero is no limit's.
    highest: Tag,
    /// Tags whose limits were removed.
    free: Vec<Tag>,
}

impl LimitNumbers {
    /// How many limits there can be.
    pub(super) const MOST: usize = NOBODY as usize - 1;

    /// Whether there are tags for so many more limits.
    pub(super) fn has_room_for(&self, count: usize) -> bool {
        count <= Self::MOST - self.highest as usize + self.free.len()
    }

    /// A tag and a serial for one of the limits that there is room for.
    pub(super) fn next(&mut self) -> (Tag, u64) {
        self.serial += 1;
        let tag = self.free.pop().unwrap_or_else(|| {
            self.highest += 1;
            self.highest
        });
        (tag, self.serial)
    }

    /// No slot has this tag any more.
    pub(super) fn give_back(&mut self, tag: Tag) {
        self.free.push(tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rate, TokenBucket, store::entry::Tables, time::Time};

    fn entry(tag: Tag) -> Option<Arc<Entry>> {
        let limit = TokenBucket::new(Rate::per_second(1).unwrap(), 1).unwrap().into();
        Some(Arc::new(Entry::new("limit", (0, tag, 0), Time::ZERO, &limit, Arc::new(Tables::new(1)))))
    }

    /// How many chunks two snapshots do not share.
    fn copied(one: &LimitList, other: &LimitList) -> usize {
        let pairs = one.0.iter().zip(&other.0);
        pairs.filter(|(one, other)| !Arc::ptr_eq(one, other)).count() + one.0.len().abs_diff(other.0.len())
    }

    #[test]
    fn a_change_copies_only_the_chunks_that_it_touches() {
        let mut list = LimitList::default();
        (1..=10_000).for_each(|tag| list.set(tag, entry(tag)));
        assert_eq!(list.iter().count(), 10_000);
        let before = list.clone();
        list.set(5_000, None);
        assert_eq!(copied(&before, &list), 1);
        (10_001..=12_000).for_each(|tag| list.set(tag, entry(tag)));
        assert_eq!(copied(&before, &list), 1 + 1 + 2_000 / CHUNK, "its own, the last, and new ones");
        assert!(before.get(5_000).is_some() && list.get(5_000).is_none() && list.get(12_000).is_some());
    }

    #[test]
    fn there_are_as_many_limits_as_tags_and_those_given_back_are_given_again() {
        let most = LimitNumbers::MOST as Tag;
        let mut numbers = LimitNumbers { highest: most - 1, ..LimitNumbers::default() };
        assert!(numbers.has_room_for(1) && !numbers.has_room_for(2));
        assert_eq!(numbers.next(), (most, 1));
        assert!(!numbers.has_room_for(1));
        numbers.give_back(7);
        assert_eq!(numbers.next(), (7, 2));
    }
}
