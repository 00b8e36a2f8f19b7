//! Small change: a few leased units that a thread has in hand, so that threads which spend from one lease do not meet.
//!
//! What is in a purse was spent from the lease when it was put there, and may be used until the lease ends or is settled,
//! whichever is first: the era goes up before any settlement leaves, and a purse of an earlier era is empty. Units that are
//! lost so count as used. A purse holds a sixty-fourth of what was left of the lease, so little is lost: nothing where leases
//! are small.

use crate::lease::{BucketId, Hashed};
use std::{cell::RefCell, collections::HashMap, hash::BuildHasherDefault};
use tollgate::{Status, Time};

/// Units in hand, and until when they may be spent.
#[derive(Clone, Copy)]
pub(crate) struct Purse {
    pub(crate) units: u32,
    pub(crate) until: Time,
    /// Between which settlements it was filled.
    pub(crate) era: u64,
    /// How the bucket stood then.
    pub(crate) status: Status,
}

/// So many purses a thread has; then it begins anew.
const MOST: usize = 256;

type Purses = HashMap<BucketId, Purse, BuildHasherDefault<Hashed>>;

thread_local! {
    static PURSES: RefCell<Purses> = RefCell::default();
}

/// Spends from this thread's purse, if that has enough.
#[inline]
pub(crate) fn spend(bucket: BucketId, cost: u32, era: u64, now: impl FnOnce() -> Time) -> Option<Status> {
    PURSES.with_borrow_mut(|purses| {
        let purse = purses.get_mut(&bucket)?;
        if purse.units < cost || purse.era != era || now() >= purse.until {
            return None;
        }
        purse.units -= cost;
        Some(purse.status)
    })
}

/// Puts units into this thread's purse.
pub(crate) fn fill(bucket: BucketId, purse: Purse) {
    PURSES.with_borrow_mut(|purses| {
        if purses.len() >= MOST {
            purses.clear();
        }
        purses.insert(bucket, purse);
    });
}
