//! What a node and the server say to each other, in words that know no wire.
//!
//! There is one call. Each of its lines names a bucket and may do three things there, in this order: settle leases that the
//! node is done with, charge a cost (decided exactly, all lines or none), and wish for a new lease. A renewal is a line that
//! costs nothing, and cost nothing always passes.

use std::time::Duration;
use tollgate::{Retry, Time};

/// A bucket: a limit and a key, as a keyed hash of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BucketId(pub(crate) u128);

/// A lease, unlike every other that is out on its bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LeaseId(pub(crate) u64);

/// So many units of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) bucket: BucketId,
    pub(crate) cost: u32,
}

/// A call to the server, and when it was made by the node's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) asked: Time,
    pub(crate) lines: Vec<Line>,
}

/// What a call wants of one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) bucket: BucketId,
    pub(crate) cost: u32,
    pub(crate) settle: [Option<Settlement>; 2],
    pub(crate) wish: Option<Wish>,
}

/// The end of a lease: what was used of it. The rest is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settlement {
    pub(crate) lease: LeaseId,
    pub(crate) used: u32,
}

/// A lease that would be welcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) lease: LeaseId,
    pub(crate) units: u32,
}

/// How one line was answered. Where any line is denied, nothing was charged and nothing leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// When the cost would pass, where it does not.
    pub(crate) denied: Option<Retry>,
    pub(crate) limit: u32,
    /// What is left after the charge, and without what is leased to anybody.
    pub(crate) remaining: u32,
    pub(crate) reset_after: Option<Duration>,
    /// How many units of the wish were granted, and for how long.
    pub(crate) leased: u32,
    pub(crate) life: Duration,
}

impl Line {
    /// A line that only gives back.
    pub(crate) const fn giving_back(bucket: BucketId, settle: [Option<Settlement>; 2]) -> Self {
        Self { bucket, cost: 0, settle, wish: None }
    }

    /// Whether the server would notice it.
    pub(crate) const fn is_something(&self) -> bool {
        self.cost > 0 || self.wish.is_some() || self.settle[0].is_some() || self.settle[1].is_some()
    }
}
