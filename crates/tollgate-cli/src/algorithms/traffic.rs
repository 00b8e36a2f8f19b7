//! The requests that every algorithm meets.

use std::time::Duration;
use tollgate::Time;

/// Requests that come together.
pub(super) struct Group {
    pub(super) name: &'static str,
    /// When the first comes, as the picture says it.
    pub(super) begins: &'static str,
    first_ms: u64,
    every_ms: u64,
    pub(super) count: usize,
    /// What stands before it in the picture.
    pub(super) mark: char,
}

/// A burst; a trickle slower than the limits; a rush on both sides of a window's edge; silence, and a last burst.
pub(super) const GROUPS: [Group; 5] = [
    Group { name: "burst", begins: "0 s", first_ms: 0, every_ms: 10, count: 9, mark: ' ' },
    Group { name: "calm", begins: "1.4 s", first_ms: 1400, every_ms: 150, count: 5, mark: ' ' },
    Group { name: "rush", begins: "2.92 s", first_ms: 2920, every_ms: 10, count: 8, mark: ' ' },
    Group { name: "goes on", begins: "3 s", first_ms: 3000, every_ms: 10, count: 8, mark: '|' },
    Group { name: "burst", begins: "6 s", first_ms: 6000, every_ms: 10, count: 9, mark: ' ' },
];

/// How many requests there are in all.
pub(super) const COUNT: usize = 39;

impl Group {
    /// When its requests come.
    pub(super) fn times(&self) -> impl Iterator<Item = Time> {
        let time = |index| Time::ZERO + Duration::from_millis(self.first_ms + self.every_ms * index as u64);
        (0..self.count).map(time)
    }
}
