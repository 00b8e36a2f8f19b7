//! A number that only grows.

use super::{
    cells::{Cells, LINE},
    family::{Kind, Metric},
    text::Series,
};
use std::sync::Arc;

/// A number that only grows. Clones are the same counter.
#[derive(Clone, Debug)]
pub struct Counter {
    cells: Arc<Cells>,
    cell: usize,
    /// Tells how many handles there are: the cells are shared with other counters.
    held: Arc<()>,
}

impl Counter {
    /// One more.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// `n` more.
    #[inline]
    pub fn add(&self, n: u64) {
        self.cells.add(self.cell, n);
    }

    /// How many so far.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.cells.sum(self.cell)
    }
}

/// Counters that were made one after the other lie side by side: those of one rule, as a rule.
#[derive(Debug, Default)]
pub struct Row {
    current: Option<Arc<Cells>>,
    used: usize,
}

impl Row {
    pub(super) fn next(&mut self) -> (Arc<Cells>, usize) {
        if self.used == LINE {
            self.current = None;
        }
        let cells = self.current.get_or_insert_with(|| {
            self.used = 0;
            Arc::new(Cells::new(LINE))
        });
        self.used += 1;
        (Arc::clone(cells), self.used - 1)
    }
}

impl Metric for Counter {
    type Room = Row;
    const KIND: Kind = Kind::Counter;

    fn make(room: &mut Row) -> Self {
        let (cells, cell) = room.next();
        Self { cells, cell, held: Arc::new(()) }
    }

    fn is_held(&self) -> bool {
        Arc::strong_count(&self.held) > 1
    }

    fn was_used(&self) -> bool {
        self.total() > 0
    }

    fn write(&self, series: &mut Series<'_>) {
        series.sample("", None, self.total());
    }
}
