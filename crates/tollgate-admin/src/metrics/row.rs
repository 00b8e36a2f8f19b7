//! Where a number lies that every core adds to: a place in a row of cells.

use super::cells::{Cells, LINE};
use std::sync::Arc;

/// One number's place. Clones are the same place.
#[derive(Clone, Debug)]
pub(super) struct Place {
    cells: Arc<Cells>,
    cell: usize,
    /// Tells how many handles there are: the cells are shared with other numbers.
    held: Arc<()>,
}

impl Place {
    /// Wraps around.
    #[inline]
    pub(super) fn add(&self, n: u64) {
        self.cells.add(self.cell, n);
    }

    /// What all cores have added.
    pub(super) fn sum(&self) -> u64 {
        self.cells.sum(self.cell)
    }

    /// Whether somebody else has it too.
    pub(super) fn is_held(&self) -> bool {
        Arc::strong_count(&self.held) > 1
    }
}

/// Numbers that were made one after the other lie side by side: those of one rule, as a rule.
#[derive(Debug, Default)]
pub struct Row {
    current: Option<Arc<Cells>>,
    used: usize,
}

impl Row {
    pub(super) fn next(&mut self) -> Place {
        if self.used == LINE {
            self.current = None;
        }
        let cells = self.current.get_or_insert_with(|| {
            self.used = 0;
            Arc::new(Cells::new(LINE))
        });
        self.used += 1;
        Place { cells: Arc::clone(cells), cell: self.used - 1, held: Arc::new(()) }
    }
}
