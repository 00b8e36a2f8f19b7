//! What an operator gave or took by hand: grants and bans.
//!
//! They are few, so they live beside the table, under one lock. A limit counts its own: while it has none, which is nearly
//! always, a check costs one load and never comes here. Bans that ran out are swept when somebody comes after the first of
//! them has, so that a limit is on its short way again without anybody's doing.

use super::table::Tag;
use crate::{
    slot::SlotExtras,
    sync::{Ordering, hold_plain},
    time::Time,
};
use std::{
    collections::HashMap,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, atomic::AtomicUsize},
    time::Duration,
};

/// One key's extras.
#[derive(Debug)]
pub(crate) struct Extra {
    pub(crate) extras: SlotExtras,
    count: Arc<ExtraCount>,
}

/// A limit's tag and a key's whole fingerprint.
pub(crate) type Holder = (Tag, [u64; 2]);

#[derive(Default)]
pub(crate) struct Extras(Mutex<Held>);

/// All extras, under their lock.
#[derive(Default)]
pub(crate) struct Held {
    by_key: HashMap<Holder, Extra>,
    /// When the first ban will have run out, or later where a sweep would not be worth it yet.
    sweep_at: Option<Time>,
}

/// How many extras a limit has, and how many wait at its buckets.
#[derive(Debug, Default)]
pub(crate) struct ExtraCount(AtomicUsize);

impl ExtraCount {
    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }

    /// Counts somebody who waits at one of the limit's buckets: they too are looked for on the long way only.
    pub(crate) fn add_waiter(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn remove_waiter(&self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Extra {
    fn is_spent(&self, now: Time) -> bool {
        self.extras.granted == 0 && self.extras.banned_for(now) == 0
    }
}

impl Extras {
    /// The extras, rid of what ran out.
    pub(crate) fn lock(&self, now: Time) -> MutexGuard<'_, Held> {
        let mut held = hold_plain(&self.0);
        if held.sweep_at.is_some_and(|at| at <= now) {
            held.sweep(now);
        }
        held
    }
}

impl Held {
    /// Changes a key's extras, and forgets them once they are spent.
    pub(crate) fn change(
        &mut self,
        holder: Holder,
        count: &Arc<ExtraCount>,
        now: Time,
        change: impl FnOnce(&mut SlotExtras),
    ) {
        let extra = self.by_key.entry(holder).or_insert_with(|| {
            count.0.fetch_add(1, Ordering::Release);
            Extra { count: Arc::clone(count), extras: SlotExtras::default() }
        });
        change(&mut extra.extras);
        let until = extra.extras.banned_until;
        if extra.is_spent(now) {
            count.0.fetch_sub(1, Ordering::Release);
            self.by_key.remove(&holder);
        } else if until.is_some() && (self.sweep_at.is_none() || until < self.sweep_at) {
            self.sweep_at = until;
        }
    }

    /// Forgets all of these limits'.
    pub(crate) fn forget(&mut self, is_gone: impl Fn(Tag) -> bool) {
        self.by_key.retain(|(tag, _), _| !is_gone(*tag));
    }

    fn sweep(&mut self, now: Time) {
        self.by_key.retain(|_, extra| {
            let spent = extra.is_spent(now);
            if spent {
                extra.count.0.fetch_sub(1, Ordering::Release);
            }
            !spent
        });
        let bans = self.by_key.values().filter_map(|extra| extra.extras.banned_until);
        let first = bans.filter(|until| *until > now).min();
        // A sweep looks at every extra: not more often than a microsecond for each of them.
        let worth = now + Duration::from_micros(self.by_key.len() as u64);
        self.sweep_at = first.map(|first| first.max(worth));
    }
}

impl Deref for Held {
    type Target = HashMap<Holder, Extra>;

    fn deref(&self) -> &Self::Target {
        &self.by_key
    }
}
