//! Numbers that every core adds to without disturbing the others.
//!
//! A row of cells exists once a shard, each on cache lines of its own; a thread adds to its shard, and a reader adds the
//! shards up. There are as many shards as cores, rounded up to a power of two, 64 at most; threads get theirs in turn.
//! Where there are more threads than shards some share one, and nothing but speed is lost.
//!
//! A cell takes 8 bytes a shard, in rows of 16.

use std::{
    cell::Cell,
    num::NonZeroUsize,
    sync::{
        OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

/// The cells in one line. 128 bytes, since processors fetch cache lines in pairs.
pub(super) const LINE: usize = 16;

/// More shards than this make reading dearer and counting no cheaper.
const MAX_SHARDS: usize = 64;

#[derive(Debug, Default)]
#[repr(align(128))]
struct Line([AtomicU64; LINE]);

/// A row of numbers, once a shard.
#[derive(Debug)]
pub(super) struct Cells {
    /// All lines of the first shard, then all of the second, ...
    lines: Box<[Line]>,
    lines_a_shard: usize,
    /// One less than there are shards. Kept here, where it is at hand.
    mask: usize,
}

impl Cells {
    pub(super) fn new(cells: usize) -> Self {
        let lines_a_shard = cells.div_ceil(LINE);
        let lines = (0..shards() * lines_a_shard).map(|_| Line::default()).collect();
        Self { lines, lines_a_shard, mask: shards() - 1 }
    }

    /// Adds to one cell of this thread's shard. Wraps around.
    #[inline]
    pub(super) fn add(&self, cell: usize, n: u64) {
        let line = (shard() & self.mask) * self.lines_a_shard + cell / LINE;
        if let Some(line) = self.lines.get(line) {
            line.0[cell % LINE].fetch_add(n, Relaxed);
        }
    }

    /// What all shards hold together. Wraps around.
    pub(super) fn sum(&self, cell: usize) -> u64 {
        let lines = self.lines.iter().skip(cell / LINE).step_by(self.lines_a_shard);
        lines.fold(0, |sum, line| sum.wrapping_add(line.0[cell % LINE].load(Relaxed)))
    }
}

/// How many shards there are: a power of two.
pub(crate) fn shards() -> usize {
    static SHARDS: OnceLock<usize> = OnceLock::new();
    *SHARDS.get_or_init(|| {
        thread::available_parallelism().map_or(1, NonZeroUsize::get).next_power_of_two().min(MAX_SHARDS)
    })
}

/// This thread's number, given out in turn. It is the caller's to fold it to the shards there are.
#[inline]
pub(crate) fn shard() -> usize {
    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    MINE.with(|mine| match mine.get() {
        usize::MAX => number(mine),
        number => number,
    })
}

#[cold]
fn number(mine: &Cell<usize>) -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    mine.set(NEXT.fetch_add(1, Relaxed) % usize::MAX);
    mine.get()
}
