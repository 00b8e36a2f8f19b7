//! Counts by key that a key has no room for: keys share 65,536 of each by fingerprint.
//!
//! One counts what ends the life of what a key has used: resets, and evictions of live keys. A turn that was taken before
//! such an end gives nothing back after it, since it would give back somebody else's. (Changes of numbers end everybody's and
//! are counted by the limit.) Another counts the units that came back to a key: a reservation that is cancelled must know how
//! many of those that were charged after it no longer show. Either way a count that another key shares errs on the safe side:
//! once in 65,536 times a turn gives back less.

use super::table::fingerprint_of;
use crate::slot::SlotCounters;
use std::sync::OnceLock;

/// Counts by fingerprint; had when first needed.
#[derive(Default)]
pub(super) struct KeyCounts(OnceLock<Box<[SlotCounters]>>);

const COUNTS: usize = 1 << 16;

impl KeyCounts {
    /// The counts of the key whose slot has this meta word, or of those that share them.
    pub(super) fn at(&self, meta: u64) -> &SlotCounters {
        &self.0.get_or_init(|| bytemuck::zeroed_slice_box(COUNTS))[fingerprint_of(meta) as usize % COUNTS]
    }
}
