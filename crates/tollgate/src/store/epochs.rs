//! What ends the life of what a key has used: resets, and evictions of live keys. A turn that was taken before such an end gives
//! nothing back after it, since it would give back somebody else's.
//!
//! A key has no room for a count of its own, so keys share 65,536 counts by fingerprint. One key's end takes for an end of its
//! own one turn in 65,536 of others, which then stays spent: the safe side. Changes of numbers end everybody's and are counted
//! by the limit.

use std::sync::{
    OnceLock,
    atomic::{
        AtomicU32,
        Ordering::{Acquire, Release},
    },
};

/// Counts by fingerprint; had when first needed.
#[derive(Default)]
pub(super) struct Epochs(OnceLock<Box<[AtomicU32]>>);

const COUNTS: usize = 1 << 16;

impl Epochs {
    /// How many ends there were of the key whose slot has this meta word, or of one that shares its count.
    pub(super) fn of(&self, meta: u64) -> u64 {
        self.0.get().map_or(0, |counts| counts[place(meta)].load(Acquire).into())
    }

    /// Says that what the key had used is no more.
    pub(super) fn end(&self, meta: u64) {
        let counts = self.0.get_or_init(|| bytemuck::zeroed_slice_box(COUNTS));
        counts[place(meta)].fetch_add(1, Release);
    }
}

/// By the fingerprint above the tag.
fn place(meta: u64) -> usize {
    (meta >> 16) as usize % COUNTS
}
