//! What an operator gave or took by hand: grants and bans.
//!
//! They are few, so they live beside the table, under one lock. A limit counts its own: while it has none, which is nearly
//! always, a check costs one load and never comes here.

use crate::{sync::Ordering, time::Time};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError, atomic::AtomicUsize},
};

/// One key's extras.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extra {
    /// Units above the capacity, spent before anything else.
    pub(crate) granted: u32,
    pub(crate) banned_until: Option<Time>,
}

/// A limit's tag and a key's whole fingerprint.
pub(crate) type Holder = (u16, [u64; 2]);

#[derive(Default)]
pub(crate) struct Extras {
    by_key: Mutex<HashMap<Holder, Extra>>,
}

/// How many extras a limit has.
#[derive(Default)]
pub(crate) struct ExtraCount(AtomicUsize);

impl ExtraCount {
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }
}

impl Extra {
    /// Nanoseconds that the ban lasts; zero where there is none.
    pub(crate) fn banned_for(&self, now: Time) -> u64 {
        self.banned_until.map_or(0, |until| until.nanos_since(now))
    }

    fn is_spent(&self, now: Time) -> bool {
        self.granted == 0 && self.banned_for(now) == 0
    }
}

impl Extras {
    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<Holder, Extra>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a key's extras, and forgets them once they are spent.
    pub(crate) fn change(
        &self,
        holder: Holder,
        count: &ExtraCount,
        now: Time,
        change: impl FnOnce(&mut Extra),
    ) {
        let mut by_key = self.lock();
        update(&mut by_key, holder, count, now, change);
    }
}

/// As [`Extras::change`], under the lock.
pub(crate) fn update(
    by_key: &mut HashMap<Holder, Extra>,
    holder: Holder,
    count: &ExtraCount,
    now: Time,
    change: impl FnOnce(&mut Extra),
) {
    let before = by_key.get(&holder).copied();
    let mut extra = before.unwrap_or_default();
    change(&mut extra);
    if extra.is_spent(now) {
        if before.is_some() {
            by_key.remove(&holder);
            count.0.fetch_sub(1, Ordering::Release);
        }
    } else if by_key.insert(holder, extra).is_none() {
        count.0.fetch_add(1, Ordering::Release);
    }
}
